//! `verbatim keys`: operators list keys, and revoke them under a running server.

use std::process::Output;

use anyhow::Result;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{issuer::TestIssuer, mint, serve};
use crate::server::harness::{ServerFixture, create_keys, run, text, verbatim};

fn command(data: &TempDir, arguments: &[&str]) -> Result<Output> {
    run(verbatim(data.path(), &[&["keys"], arguments].concat()), b"")
}

fn list_keys(data: &TempDir) -> Result<Vec<Value>> {
    let output = command(data, &["list", "--json"])?;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_list_shows_status_of_each_key() -> Result<()> {
    let data = TempDir::new()?;
    let issuer = TestIssuer::new()?;
    let server = serve(&data, &issuer, &[])?;
    assert_eq!(list_keys(&data)?, Vec::<Value>::new());
    let made = command(&data, &["create", "--label", "a reader's key", "--email", "me@example.org"])?;
    let key = text(&made.stdout).trim().to_owned();
    mint(&server, &issuer.plus("ann", 3600)).await?;

    let all = list_keys(&data)?;
    assert_eq!(all.len(), 2);
    let status = server.get_as(&key, "/api/keys/me").await?.json();
    for (name, value) in status.as_object().into_iter().flatten() {
        assert_eq!(all[0][name], *value, "{name}");
    }
    assert_eq!(all[0]["label"], json!("a reader's key"));
    assert_eq!(all[0]["email"], json!("me@example.org"));
    assert!(
        all[0]["hint"].as_str().is_some_and(|hint| hint.len() < 20 && key.starts_with(hint)),
        "{}",
        all[0]
    );
    assert_eq!(
        (&all[0]["revokedAt"], &all[0]["subject"], &all[0]["plan"]),
        (&json!(null), &json!(null), &json!("free"))
    );
    assert_eq!(
        (&all[1]["subject"], &all[1]["plan"], &all[1]["allowance"]),
        (&json!("ann"), &json!("plus"), &json!(100))
    );

    let table = text(&command(&data, &["list"])?.stdout);
    let lines: Vec<_> = table.lines().collect();
    assert_eq!(lines.len(), 3, "{table}");
    for (line, words) in [
        (0, &["ID", "KEY", "PLAN", "USED", "CREATED", "REVOKED", "LABEL"][..]),
        (1, &["free", "0/25", "a reader's key"]),
        (2, &["plus", "0/100"]),
    ] {
        assert!(words.iter().all(|word| lines[line].contains(word)), "{table}");
    }
    assert!(!table.contains(&key), "the list shows a whole key");
    Ok(())
}

#[test]
fn keys_list_over_one_page_shows_all() -> Result<()> {
    let data = TempDir::new()?;
    // One more than a page of the store.
    assert_eq!(create_keys(&data, 1_000)?.len(), 1_000);
    assert_eq!(create_keys(&data, 1)?.len(), 1);
    let all = list_keys(&data)?;
    let mut ids: Vec<_> = all.iter().filter_map(|key| key["id"].as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((all.len(), ids.len()), (1_001, 1_001));
    assert_eq!(text(&command(&data, &["list"])?.stdout).lines().count(), 1_002);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_revoked_key_is_rejected_at_once() -> Result<()> {
    let data = TempDir::new()?;
    let server = ServerFixture::start(&data, &[])?;
    let made = create_keys(&data, 2)?;
    for key in &made {
        assert_eq!(server.get_as(key, "/api/keys/me").await?.status, 200);
    }
    let id = list_keys(&data)?[0]["id"].as_str().unwrap_or_default().to_owned();
    let revoked = command(&data, &["revoke", &id])?;
    assert_eq!(revoked.status.code(), Some(0), "{}", text(&revoked.stderr));
    let refused = server.get_as(&made[0], "/api/keys/me").await?;
    assert_eq!(refused.status, 401);
    let miss = server.get_as(&made[0], "/api/transcript?v=dyke-walk-0").await?.json();
    assert_eq!((&miss["failureReason"], &miss["key"]), (&json!("needs_verification"), &json!(null)));
    assert_eq!(server.get_as(&made[1], "/api/keys/me").await?.status, 200);
    assert!(list_keys(&data)?[0]["revokedAt"].is_string());

    for (wrong, status) in [(id.as_str(), 1), ("key-0", 1), (made[1].as_str(), 1), ("", 1)] {
        let refused = command(&data, &["revoke", wrong])?;
        assert_eq!(refused.status.code(), Some(status), "{wrong}");
        assert!(text(&refused.stderr).len() > 20 && !text(&refused.stderr).contains("vbk_"), "{wrong}");
    }
    assert_eq!(command(&data, &["revoke"])?.status.code(), Some(2));
    assert_eq!(
        server.get_as(&made[1], "/api/keys/me").await?.status,
        200,
        "a key was revoked by its text, not its id"
    );
    Ok(())
}

#[test]
fn config_untrusted_entitlement_keys_stop_start() -> Result<()> {
    let data = TempDir::new()?;
    let file = data.path().join("keys.json");
    std::fs::write(&file, TestIssuer::new()?.key_set())?;
    let weak = json!({ "keys": [{ "kty": "oct", "k": "c2hvcnQ" }] }).to_string();
    let check = |keys: &str, name: &str| {
        let mut command = verbatim(data.path(), &[name]);
        command.env("VERBATIM_ENTITLEMENT__KEYS", keys);
        run(command, b"")
    };
    assert_eq!(check(&file.display().to_string(), "check-config")?.status.code(), Some(0));
    for name in ["serve", "check-config"] {
        for keys in [weak.as_str(), "{\"keys\": []}", "nowhere.json"] {
            let refused = check(keys, name)?;
            assert_eq!(refused.status.code(), Some(2), "{keys}: {}", text(&refused.stderr));
            let message = text(&refused.stderr);
            assert!(message.contains("entitlement.keys") && !message.contains("c2hvcnQ"), "{message}");
        }
    }
    Ok(())
}
