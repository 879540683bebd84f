//! Keys of a paid plan: creation, end, renewal, and invalid proofs.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{call, issuer::TestIssuer, mint, mint_key, serve};
use crate::{
    server::{
        harness::{ServerFixture, borrow_settings, run, verbatim, wait_until},
        platform::{platform_settings, start_platform},
    },
    stripe::fake::now_s,
};

const VIDEO: &str = "dyke-walk-0";
const ME: &str = "/api/keys/me";

/// Waits until a key has this plan.
async fn wait_for_plan(server: &ServerFixture, key: &str, plan: &str) -> Result<Value> {
    let mut status = Value::Null;
    wait_until(&format!("the plan of the key did not become {plan}"), async || {
        status = server.get_as(key, ME).await?.json();
        Ok(status["plan"] == plan)
    })
    .await?;
    Ok(status)
}

#[tokio::test(flavor = "multi_thread")]
async fn plus_key_ends_and_is_renewed() -> Result<()> {
    let proxy = start_platform(&[VIDEO, "dyke-walk-1"], Duration::ZERO)?;
    let data = TempDir::new()?;
    let issuer = TestIssuer::new()?;
    let settings = platform_settings(&proxy);
    let settings = borrow_settings(&settings);
    let server = serve(&data, &issuer, &settings)?;

    let reply = mint(&server, &issuer.plus("ann", 10)).await?;
    assert_eq!(reply.status, 201, "{}", reply.text());
    let made = reply.json();
    assert_eq!(
        (&made["plan"], &made["period"], &made["allowance"], &made["used"]),
        (&json!("plus"), &json!("day"), &json!(100), &json!(0))
    );
    let key = made["key"].as_str().unwrap_or_default().to_owned();
    let answer = server.get_as(&key, &format!("/api/transcript?v={VIDEO}")).await?.json();
    assert_eq!(answer["available"], json!(true), "{answer}");
    let day = server.get_as(&key, ME).await?.json();

    // The month's allowance does not include what was used of the day's.
    let ended = wait_for_plan(&server, &key, "plus_inactive").await?;
    assert_eq!(
        (&ended["period"], &ended["allowance"], &ended["used"], &ended["remaining"]),
        (&json!("month"), &json!(25), &json!(0), &json!(25))
    );
    let answer = server.get_as(&key, "/api/transcript?v=dyke-walk-1").await?.json();
    assert_eq!(
        answer["key"],
        json!({ "plan": "plus_inactive", "period": "month", "used": 1, "allowance": 25, "remaining": 24 })
    );

    // A proof of another subject, an expired one and a forged one do not renew it.
    let forged = TestIssuer::new()?.plus("ann", 3600);
    for proof in [issuer.plus("bob", 3600), issuer.plus("Ann", 3600), issuer.plus("ann", -61), forged] {
        for path in [ME, "/api/transcript?v=dyke-walk-1"] {
            call(&server, path, &key, &proof).await?;
        }
        assert_eq!(server.get_as(&key, ME).await?.json()["plan"], json!("plus_inactive"));
    }
    // A request with a valid proof of the same subject does, and the day's count continues.
    let renewed =
        call(&server, &format!("/api/transcript?v={VIDEO}"), &key, &issuer.plus("ann", 3600)).await?;
    assert_eq!(renewed.json()["key"]["plan"], json!("plus"));
    let again = server.get_as(&key, ME).await?.json();
    assert_eq!(again["plan"], json!("plus"));
    if again["resetsAt"] == day["resetsAt"] {
        assert_eq!(
            (&day["used"], &again["used"]),
            (&json!(1), &json!(1)),
            "a change of plan resets the count"
        );
    }
    // A free key stays free: it was not created with a proof.
    let free = mint_key(&server, "").await?;
    assert_eq!(call(&server, ME, &free, &issuer.plus("ann", 3600)).await?.json()["plan"], json!("free"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn plus_invalid_proof_creates_free_key() -> Result<()> {
    let data = TempDir::new()?;
    let issuer = TestIssuer::new()?;
    let many =
        [("VERBATIM_LIMITS__MINT_PER_NETWORK_PER_DAY", "1000"), ("VERBATIM_ENTITLEMENT__AUDIENCE", "v")];
    let server = serve(&data, &issuer, &many)?;
    let good = json!({ "sub": "ann", "plan": "plus", "exp": now_s() + 3600, "aud": "v" });
    let with = |name: &str, value: Value| {
        let mut claims = good.clone();
        claims[name] = value;
        issuer.sign(&claims)
    };
    assert_eq!(mint(&server, &issuer.sign(&good)).await?.json()["plan"], json!("plus"));
    let whole = issuer.sign(&good);
    let unsigned = whole.rsplit_once('.').map(|(message, _)| format!("{message}.")).unwrap_or_default();
    for proof in [
        issuer.sign_as(&json!({ "alg": "none" }), &good),
        issuer.sign_as(&json!({ "alg": "HS256", "kid": "shop" }), &good),
        issuer.sign_as(&json!({ "alg": "EdDSA", "kid": "someone" }), &good),
        TestIssuer::new()?.sign(&good),
        unsigned,
        whole.replace('.', "_"),
        format!("Bearer {whole}"),
        "plus".to_owned(),
        with("exp", json!(now_s() - 120)),
        with("nbf", json!(now_s() + 3600)),
        with("plan", json!("plus_inactive")),
        with("aud", json!("elsewhere")),
        with("sub", json!("")),
        with("sub", json!("s".repeat(256))),
        with("more", json!("x".repeat(9_000))),
    ] {
        let reply = mint(&server, &proof).await?;
        assert_eq!((reply.status.as_u16(), &reply.json()["plan"]), (201, &json!("free")), "{proof}");
    }
    // The end of a key's plan is limited to 401 days from now.
    let plan_end = |subject: &str| -> Result<String> {
        let listed = run(verbatim(data.path(), &["keys", "list", "--json"]), b"")?;
        let keys: Value = serde_json::from_slice(&listed.stdout)?;
        let found = keys.as_array().into_iter().flatten().find(|key| key["subject"] == subject);
        Ok(found.and_then(|key| key["entitledUntil"].as_str()).unwrap_or_default().to_owned())
    };
    for exp in [json!(1e18), json!(u64::MAX)] {
        let subject = exp.to_string();
        let claims = json!({ "sub": subject, "plan": "plus", "exp": exp, "aud": "v" });
        assert_eq!(mint(&server, &issuer.sign(&claims)).await?.json()["plan"], json!("plus"));
        assert!(plan_end(&subject)?.starts_with("20"), "{}", plan_end(&subject)?);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn plus_subject_is_limited_to_three_live_keys() -> Result<()> {
    let data = TempDir::new()?;
    let issuer = TestIssuer::new()?;
    let server = serve(&data, &issuer, &[("VERBATIM_LIMITS__MINT_PER_NETWORK_PER_DAY", "100")])?;
    let proof = issuer.plus("ann", 3600);
    let first = mint(&server, &proof).await?.json();
    for _ in 0..2 {
        mint_key(&server, &proof).await?;
    }
    let refused = mint(&server, &proof).await?;
    assert_eq!(refused.status, 429);
    assert_eq!(refused.header("content-type"), "application/problem+json");
    let wait: u64 = refused.header("retry-after").parse()?;
    assert!((3_500..=3_600).contains(&wait), "{wait}");
    assert!(
        refused.json()["detail"].as_str().is_some_and(|detail| detail.contains("3 keys")),
        "{}",
        refused.text()
    );
    assert!(!refused.text().contains("vbk_"));
    assert_eq!(mint(&server, &issuer.plus("bob", 3600)).await?.json()["plan"], json!("plus"));
    assert_eq!(mint(&server, "").await?.json()["plan"], json!("free"));

    // A revoked key makes room for one more.
    let revoke = ["keys", "revoke", first["id"].as_str().unwrap_or_default()];
    assert_eq!(run(verbatim(data.path(), &revoke), b"")?.status.code(), Some(0));
    assert_eq!(mint(&server, &proof).await?.status, 201);
    assert_eq!(mint(&server, &proof).await?.status, 429);
    // A renewal of expired keys does not exceed the limit either.
    let short = mint_key(&server, &issuer.plus("eve", 2)).await?;
    wait_for_plan(&server, &short, "plus_inactive").await?;
    let eve = issuer.plus("eve", 3600);
    for _ in 0..3 {
        mint_key(&server, &eve).await?;
    }
    assert_eq!(call(&server, ME, &short, &eve).await?.json()["plan"], json!("plus_inactive"));
    Ok(())
}
