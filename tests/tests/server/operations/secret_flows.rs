//! Requests of every kind with marked keys, tokens, passwords and texts.

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::json;
use tempfile::TempDir;

use crate::{
    mcp::client::{call, http_target, run_calls},
    server::{
        harness::{ServerFixture, run, verbatim_with},
        keys::issuer::TestIssuer,
        v1::mail_client::{MailClient, key_from, register, token_from},
    },
    stripe::fake::{FakeEvent, FakeStripe, SECRET, now_s},
};

pub(super) const VIDEO: &str = "dyke-walk-0";
const JSON: (&str, &str) = ("content-type", "application/json");

/// API key of a service in the settings.
pub(super) const SERVICE_KEY: &str = "key-of-the-speech-service";
/// Password of the proxy in the settings.
pub(super) const PROXY_PASSWORD: &str = "password-of-the-proxy";
/// What the transcript says, which belongs in the archive, and what a caller asks, which belongs nowhere.
pub(super) const TEXTS: [&str; 3] =
    ["sheep keep the grass", "So the dyke holds", "why does the grass stay short"];

/// What requests sent, and what came back.
pub(super) struct SentSecrets {
    /// Secrets and texts.
    pub(super) all: Vec<String>,
    /// Those of which databases have digests only.
    pub(super) keys: Vec<String>,
    /// Those that a stored reply has as well.
    pub(super) replied: Vec<String>,
    /// Bodies of errors, and what commands printed.
    pub(super) errors: Vec<String>,
}

impl SentSecrets {
    fn add_keys(&mut self, keys: impl IntoIterator<Item = String>) {
        for key in keys {
            self.all.push(key.clone());
            self.keys.push(key);
        }
    }
}

/// Percent-encodes every byte.
fn percent_encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

/// Sends requests with a key in wrong places, as it is and in every encoding; returns the bodies of errors.
async fn send_misplaced(server: &ServerFixture, key: &str) -> Result<(Vec<String>, Vec<String>)> {
    let once = percent_encoded(key);
    let (twice, thrice) = (once.replace('%', "%25"), percent_encoded(&percent_encoded(&once)));
    let partly = key.replace("vb", "%76b");
    let written = vec![key.to_owned(), once, twice, thrice, partly];
    let mut errors = Vec::new();
    for key in &written {
        for target in [
            format!("/api/transcript/{key}"),
            format!("/api/v1/{key}"),
            format!("/watch/video_site/{key}"),
            format!("/{key}/x"),
            format!("/api/transcript?v={VIDEO}&key={key}"),
            format!("/api/transcript?v={key}"),
            format!("/api/v1/verify?token={key}"),
        ] {
            let referer = format!("https://app.example/?key={key}");
            let headers = [("referer", referer.as_str()), ("x-request-id", key.as_str()), ("cookie", key)];
            let reply = server.send(Method::GET, &target, &headers, "").await?;
            if !reply.status.is_success() {
                errors.push(reply.text());
            }
        }
    }
    Ok((written, errors))
}

/// Sends requests of both APIs; returns the secrets in them.
pub(super) async fn send_secrets(server: &ServerFixture, outbox: &mut MailClient) -> Result<SentSecrets> {
    let mut secrets: Vec<String> = [
        "ann-the-secret@example.org",
        "name-of-a-request-7712",
        "eyJhbGciOiJFUzI1NiJ9.c2VjcmV0",
        "vba_wrong-key-1234567890",
        "label-of-a-key",
    ]
    .into_iter()
    .chain(TEXTS)
    .map(str::to_owned)
    .collect();
    let made = server.send(Method::POST, "/api/keys", &[JSON], "{\"label\":\"label-of-a-key\"}").await?;
    ensure!(made.status == 201, "{}", made.text());
    let key = made.json()["key"].as_str().unwrap_or_default().to_owned();
    let look_up = format!("/api/transcript?v={VIDEO}");
    for format in ["", "&format=text", "&format=md", "&format=srt", "&format=vtt"] {
        let reply = server.get_as(&key, &format!("{look_up}{format}")).await?;
        ensure!(reply.status == 200, "{}", reply.text());
        ensure!(server.get(&format!("{look_up}{format}")).await?.status == 200);
    }
    server.get_as(&key, "/api/keys/me").await?;
    server.get(&format!("/watch/video_site/{VIDEO}")).await?;
    let (written, mut errors) = send_misplaced(server, &key).await?;
    let proof = [("x-verbatim-entitlement", "eyJhbGciOiJFUzI1NiJ9.c2VjcmV0")];
    errors.push(server.send(Method::POST, "/api/keys", &proof, "").await?.text());

    let registered = register(server, "ann-the-secret@example.org").await?;
    ensure!(registered.status == 200, "{}", registered.text());
    let token = token_from(&outbox.next().await?)?;
    let verified = server.get(&format!("/api/v1/verify?token={token}")).await?;
    let account = key_from(&verified)?;
    for name in ["name-of-a-request-7712", ""] {
        let headers: &[_] = if name.is_empty() { &[] } else { &[("idempotency-key", name)] };
        let path = format!("/api/v1/transcript?video_id={VIDEO}");
        let reply = server.send_as(&account, Method::GET, &path, headers, "").await?;
        ensure!(reply.status == 200, "{}", reply.text());
    }
    let question = json!({ "video_id": VIDEO, "message": "why does the grass stay short?" }).to_string();
    let answer = server.post_as(&account, "/api/v1/chat", question).await?;
    ensure!(answer.status == 200, "{}", answer.text());
    errors.push(server.post_as("vba_wrong-key-1234567890", "/api/v1/rotate-key", "").await?.text());
    let rotated = server.post_as(&account, "/api/v1/rotate-key", "").await?;
    server.post_as("", "/api/v1/webhooks/stripe", "{\"id\":\"evt_sheep keep the grass\"}").await?;
    secrets.extend(written);
    let mut sent = SentSecrets { all: secrets, keys: Vec::new(), replied: Vec::new(), errors };
    sent.add_keys([
        key,
        token,
        account,
        key_from(&rotated)?,
        SERVICE_KEY.to_owned(),
        PROXY_PASSWORD.to_owned(),
    ]);
    Ok(sent)
}

/// The key of the account after its rotation.
fn account_key(sent: &SentSecrets) -> Result<String> {
    Ok(sent.keys.iter().rfind(|key| key.starts_with("vba_")).context("no account")?.clone())
}

/// Pays an order in the sandbox.
pub(super) async fn pay_in_sandbox(server: &ServerFixture, sent: &mut SentSecrets) -> Result<()> {
    // The reply is stored, and has the address of the page.
    let (key, path, body) = (account_key(sent)?, "/api/v1/buy-credits", "{\"pack\":\"1k\"}");
    let headers = [("idempotency-key", "name-of-an-order-4406"), JSON];
    let order = server.send_as(&key, Method::POST, path, &headers, body).await?;
    let page = order.json()["checkout_url"].as_str().unwrap_or_default().to_owned();
    let (path, token) = page.split_once("?token=").with_context(|| order.text())?;
    let (_, path) = path.split_once(server.address()).context("another server")?;
    ensure!(server.get(&format!("{path}?token={token}")).await?.status == 200);
    let form = [("content-type", "application/x-www-form-urlencoded")];
    for (deed, status) in [("pay", 303), ("token-of-a-deed", 400)] {
        let reply = server.send(Method::POST, path, &form, format!("token={token}&deed={deed}")).await?;
        ensure!(reply.status == status, "{deed}: {}", reply.text());
        sent.errors.push(reply.text());
    }
    sent.errors.push(server.get(&format!("{path}?token={token}x")).await?.text());
    sent.all.push(token.to_owned());
    sent.replied.push(token.to_owned());
    Ok(())
}

/// Pays an order at Stripe, which sends signed events; others send forged ones.
pub(super) async fn pay_at_stripe(
    server: &ServerFixture,
    stripe: &FakeStripe,
    sent: &mut SentSecrets,
) -> Result<()> {
    let account = account_key(sent)?;
    let order = server.post_as(&account, "/api/v1/buy-credits", "{\"pack\":\"1k\"}").await?;
    let session = order.json()["checkout_url"].as_str().unwrap_or_default().to_owned();
    let session = stripe.object(session.rsplit('/').next().unwrap_or_default());
    let order = session["client_reference_id"].as_str().context("no order")?;
    let mut send = async |signature: &str, body: String, expect: u16| {
        let headers = [("stripe-signature", signature), JSON];
        let reply = server.send(Method::POST, "/api/v1/webhooks/stripe", &headers, body).await?;
        ensure!(reply.status == expect, "{}", reply.text());
        let code = signature.rsplit('=').next().unwrap_or_default();
        sent.all.push(code.to_owned());
        sent.keys.push(code.to_owned());
        if expect != 200 {
            sent.errors.push(reply.text());
        }
        anyhow::Ok(())
    };
    for event in stripe.pay(order, now_s()) {
        let signature = event.signature();
        send(&signature, event.body.replace("evt_", "evt_forged_"), 400).await?;
        send(&signature, event.body, 200).await?;
    }
    let hostile = FakeEvent::new("customer.created", &json!({ "email": "ann-the-secret@example.org" }));
    send(&hostile.signature(), hostile.body, 200).await?;
    let me = server.get_as(&account, "/api/v1/me").await?;
    ensure!(me.json()["credits_remaining"].as_u64() > Some(1_000), "{}", me.text());
    sent.add_keys([SECRET.to_owned(), crate::stripe::fake::KEY.to_owned()]);
    Ok(())
}

/// Creates and uses a key of a paid plan with a valid proof.
pub(super) async fn use_entitlement(
    server: &ServerFixture,
    issuer: &TestIssuer,
    sent: &mut SentSecrets,
) -> Result<()> {
    let proof = issuer.plus("subject-of-a-plan", 3_600);
    let headers = [("x-verbatim-entitlement", proof.as_str())];
    let made = server.send(Method::POST, "/api/keys", &headers, "").await?;
    ensure!(made.status == 201, "{}", made.text());
    let key = made.json()["key"].as_str().context("no key")?.to_owned();
    for path in ["/api/keys/me", &format!("/api/transcript?v={VIDEO}")] {
        ensure!(server.send_as(&key, Method::GET, path, &headers, "").await?.status == 200, "{path}");
    }
    let (_, signature) = proof.rsplit_once('.').context("no signature")?;
    sent.add_keys([key, signature.to_owned(), proof]);
    Ok(())
}

/// Calls every tool with the keys of both APIs, and with a wrong one.
pub(super) fn call_tools(server: &ServerFixture, sent: &mut SentSecrets) -> Result<()> {
    let lookup = sent.keys.iter().find(|key| key.starts_with("vbk_")).context("no key")?.clone();
    for key in [lookup, account_key(sent)?, "vba_wrong-key-1234567890".to_owned()] {
        let calls = [
            call("get_transcript", json!({ "video": VIDEO })),
            call("search_transcript", json!({ "video": VIDEO, "query": TEXTS[0] })),
            call("list_languages", json!({ "video": VIDEO })),
            call("ask_video", json!({ "video": VIDEO, "question": format!("{}?", TEXTS[2]) })),
            call("get_transcript", json!({ "video": "name-of-a-request-7712" })),
        ];
        let report = run_calls(&http_target(server, Some(&key)), "auto", &calls)?;
        sent.errors.push(report["results"][4].to_string().replace("name-of-a-request-7712", ""));
    }
    Ok(())
}

/// Runs an operator's commands beside the server.
pub(super) fn run_commands(data: &TempDir, settings: &[(&str, &str)], sent: &mut SentSecrets) -> Result<()> {
    let admin = |arguments: &[&str]| {
        let output = run(verbatim_with(data.path(), settings, arguments), b"")?;
        let printed = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        ensure!(output.status.success(), "{arguments:?}: {printed:?}");
        anyhow::Ok(printed)
    };
    let [key, log] = admin(&["keys", "create"])?;
    sent.add_keys([key.trim().to_owned()]);
    sent.errors.push(log);
    let mail = "ann-the-secret@example.org";
    for arguments in [
        &["accounts", "grant", mail, "5", "--id", "grant-of-an-operator"][..],
        &["accounts", "list"],
        &["accounts", "show", mail],
        &["accounts", "statement", mail],
        &["accounts", "export", mail],
        &["accounts", "block", mail],
        &["keys", "list"],
        &["ledger", "audit"],
        &["check-config"],
    ] {
        // These name the account to the operator, and the label of a key.
        let printed = admin(arguments)?.map(|text| text.replace(mail, "").replace("label-of-a-key", ""));
        sent.errors.extend(printed);
    }
    Ok(())
}
