//! The code samples of the documentation, run unchanged in curl, Python and JavaScript against the built server.

use std::{
    collections::BTreeMap,
    process::{Command, Stdio},
    sync::OnceLock,
};

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    harness::{ServerFixture, create_keys, run, verbatim},
    v1::mail_client::{MailClient, key_from, register, token_from},
};
use crate::stripe::fake::{FakeStripe, KEY, SECRET, now_s, sign};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/lighthouse.vtt");
const INSTALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/samples/install.sh");
const VIDEO: &str = "https://youtu.be/dQw4w9WgXcQ";

/// Installs the programs that run the samples, if they are missing.
fn install_tools() -> Result<()> {
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    let install =
        || Command::new(INSTALL).stdout(Stdio::null()).status().is_ok_and(|status| status.success());
    ensure!(*INSTALLED.get_or_init(install), "curl, Python or Node cannot be installed");
    Ok(())
}

/// A server with sandbox payments, and the values that its samples read from the environment.
struct SamplesFixture {
    data: TempDir,
    server: ServerFixture,
    outbox: MailClient,
    made: usize,
}

impl SamplesFixture {
    fn start(more: &[(&str, &str)]) -> Result<Self> {
        let data = TempDir::new()?;
        let import = ["import", EXAMPLE, "--video", VIDEO, "--lang", "en"];
        ensure!(run(verbatim(data.path(), &import), b"")?.status.success(), "the example is imported");
        let outbox = MailClient::new(&data);
        let mut settings = vec![
            ("VERBATIM_PLANS__PRO__PRICE_USD", "29"),
            ("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "1000"),
            ("VERBATIM_LIMITS__REGISTER_PER_NETWORK_PER_HOUR", "1000"),
        ];
        settings.extend(more);
        let server = ServerFixture::start(&data, &settings)?;
        Ok(Self { data, server, outbox, made: 0 })
    }

    /// A new mail address.
    fn address(&mut self) -> String {
        self.made += 1;
        format!("person{}@example.org", self.made)
    }

    /// The token mailed to a new address. Samples send mails too.
    async fn token(&mut self) -> Result<String> {
        let address = self.address();
        register(&self.server, &address).await?;
        loop {
            let mail = self.outbox.next().await?;
            if mail.contains(&address) {
                return token_from(&mail);
            }
        }
    }

    async fn account(&mut self) -> Result<String> {
        let token = self.token().await?;
        key_from(&self.server.get(&format!("/api/v1/verify?token={token}")).await?)
    }

    /// New values for the environment variables that a sample uses: a call may use up each of them.
    async fn environment(&mut self, sample: &str) -> Result<BTreeMap<&'static str, String>> {
        let mut environment = BTreeMap::new();
        let needs = |name: &str| sample.contains(name);
        if needs("VERBATIM_KEY") {
            environment.insert("VERBATIM_KEY", create_keys(&self.data, 1)?.remove(0));
        }
        if needs("VERBATIM_ACCOUNT_KEY") {
            environment.insert("VERBATIM_ACCOUNT_KEY", self.account().await?);
        }
        if needs("VERBATIM_TOKEN") {
            environment.insert("VERBATIM_TOKEN", self.token().await?);
        }
        if needs("VERBATIM_ORDER") {
            let (order, token) = self.order().await?;
            environment.extend([("VERBATIM_ORDER", order), ("VERBATIM_ORDER_TOKEN", token)]);
        }
        if needs("STRIPE_EVENT") {
            let event = json!({ "id": "evt_1", "object": "event", "type": "customer.created", "created": now_s(),
                "livemode": false, "data": { "object": { "id": "cus_1", "object": "customer" } } });
            let event = event.to_string();
            environment.insert("STRIPE_SIGNATURE", sign(&event, SECRET, now_s()));
            environment.insert("STRIPE_EVENT", event);
        }
        Ok(environment)
    }

    /// A new sandbox order and the token of its page.
    async fn order(&mut self) -> Result<(String, String)> {
        let bearer = format!("Bearer {}", self.account().await?);
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        let reply =
            self.server.send(Method::POST, "/api/v1/buy-credits", &headers, r#"{"pack": "1k"}"#).await?;
        let page = reply.json()["checkout_url"].as_str().context("no address")?.to_owned();
        let (_, rest) = page.split_once("/checkout/").context("no order")?;
        let (order, token) = rest.split_once("/sandbox?token=").context("no page of the sandbox")?;
        Ok((order.to_owned(), token.to_owned()))
    }

    async fn document(&self) -> Result<Value> {
        Ok(self.server.get("/openapi.json").await?.json())
    }
}

/// Output of a sample.
fn run_sample(language: &str, source: &str, environment: &BTreeMap<&str, String>) -> Result<String> {
    let mut command = match language {
        "Shell" => Command::new("sh"),
        "Python" => Command::new("python3"),
        _ => Command::new("node"),
    };
    match language {
        "Shell" => command.args(["-euc", source]),
        "Python" => command.args(["-c", source]),
        _ => command.args(["--input-type=module", "--eval", source]),
    };
    let output = command.envs(environment).env("no_proxy", "*").stdin(Stdio::null()).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{language}:\n{source}\n{errors}");
    Ok(String::from_utf8(output.stdout)?)
}

/// The operations of a document.
fn operations(document: &Value) -> impl Iterator<Item = &Value> {
    let items = document["paths"].as_object().into_iter().flat_map(|paths| paths.values());
    items.filter_map(Value::as_object).flat_map(|item| item.values())
}

/// The field names of an operation's response, from its first example.
fn names(operation: &Value) -> Vec<&str> {
    let answers = operation["responses"].as_object().into_iter().flatten();
    let good = answers.filter(|(status, _)| status.starts_with('2')).map(|(_, answer)| answer).next();
    let examples = good.map(|answer| &answer["content"]["application/json"]["examples"]);
    let first = examples.and_then(Value::as_object).and_then(|all| all.values().next());
    let fields = first.and_then(|example| example["value"].as_object());
    // The imported video of the fixture has no metadata.
    let is_known = |name: &&str| !matches!(*name, "chapters" | "metadata");
    fields.map_or_else(Vec::new, |fields| fields.keys().map(String::as_str).filter(is_known).collect())
}

async fn run_all(fixture: &mut SamplesFixture, selects: impl Fn(&str) -> bool) -> Result<usize> {
    let document = fixture.document().await?;
    let mut count = 0;
    for operation in operations(&document) {
        let id = operation["operationId"].as_str().context("an operation without a name")?;
        let samples =
            operation["x-codeSamples"].as_array().with_context(|| format!("{id} has no samples"))?;
        let languages: Vec<_> = samples.iter().filter_map(|sample| sample["lang"].as_str()).collect();
        assert_eq!(languages, ["Shell", "Python", "JavaScript"], "{id}");
        if !selects(id) {
            continue;
        }
        for (language, sample) in languages.iter().zip(samples) {
            let source = sample["source"].as_str().context("no source")?;
            assert!(source.contains(fixture.server.address()), "{id}: {source}");
            let environment = fixture.environment(source).await?;
            let text = run_sample(language, source, &environment).with_context(|| id.to_owned())?;
            assert!(!text.trim().is_empty(), "{id} in {language}");
            for name in names(operation) {
                assert!(text.contains(name), "{id} in {language}: no {name} in {text}");
            }
            count += 1;
        }
    }
    Ok(count)
}

#[tokio::test(flavor = "multi_thread")]
async fn documentation_samples_run_and_print_their_fields() -> Result<()> {
    install_tools()?;
    // Stripe events need a server with Stripe payments.
    let mut sandbox = SamplesFixture::start(&[])?;
    let all = run_all(&mut sandbox, |id| id != "takeStripeEvent").await?;
    assert!(all >= 60, "{all}");
    let stripe = FakeStripe::start().await?;
    let settings = [
        ("VERBATIM_STRIPE__SECRET_KEY", KEY),
        ("VERBATIM_STRIPE__WEBHOOK_SECRETS", SECRET),
        ("VERBATIM_STRIPE__API_URL", stripe.url()),
    ];
    let mut stripe_fixture = SamplesFixture::start(&settings)?;
    assert_eq!(run_all(&mut stripe_fixture, |id| id == "takeStripeEvent").await?, 3);
    Ok(())
}
