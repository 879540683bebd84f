//! The code samples of the documentation, run unchanged in curl, Python, JavaScript and Rust against the built server.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    harness::{ServerFixture, create_keys, import_example},
    v1::mail_client::{MailClient, key_from, register, token_from},
};
use crate::{
    install::installed,
    stripe::fake::{FakeStripe, KEY, SECRET, now_s, sign},
};

/// The Rust samples, as modules of one program. `UPDATE=1` writes the file.
const RUST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/samples/rust_samples.inc");
/// Address in the Rust samples: a program cannot be compiled for the port of each test.
const RUST_BASE_URL: &str = "http://127.0.0.1:8080";
const VIDEO: &str = "https://youtu.be/dQw4w9WgXcQ";

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
        import_example(&data, VIDEO)?;
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

    /// A new email address.
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
        if needs("VERBATIM_JOB") {
            let key = environment.get("VERBATIM_ACCOUNT_KEY").context("a job needs an account")?;
            let job = self.job(key).await?;
            environment.insert("VERBATIM_JOB", job);
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
        let key = self.account().await?;
        let reply = self.server.post_as(&key, "/api/v1/buy-credits", r#"{"pack": "1k"}"#).await?;
        let page = reply.json()["checkout_url"].as_str().context("no address")?.to_owned();
        let (_, rest) = page.split_once("/checkout/").context("no order")?;
        let (order, token) = rest.split_once("/sandbox?token=").context("no page of the sandbox")?;
        Ok((order.to_owned(), token.to_owned()))
    }

    /// A new job of an account.
    async fn job(&self, key: &str) -> Result<String> {
        let reply = self.server.post_as(key, "/api/v1/jobs", r#"{"urls": ["dQw4w9WgXcQ"]}"#).await?;
        reply.json()["job_id"].as_str().map(str::to_owned).context("no job")
    }

    async fn document(&self) -> Result<Value> {
        Ok(self.server.get("/openapi.json").await?.json())
    }
}

/// A sample: its name, its language and its source.
pub(super) type Sample = (String, String, String);

/// Output of a sample.
pub(super) fn run_sample(
    (name, language, source): &Sample,
    address: &str,
    environment: &BTreeMap<&str, String>,
) -> Result<String> {
    let mut command = match language.as_str() {
        "Shell" => Command::new("sh"),
        "Python" => Command::new("python3"),
        "Rust" => Command::new(env!("CARGO_BIN_EXE_samples")),
        _ => Command::new("node"),
    };
    match language.as_str() {
        "Shell" => command.args(["-euc", source]),
        "Python" => command.args(["-c", source]),
        // The server is the proxy of the address in the source.
        "Rust" => command.arg(name).env("http_proxy", format!("http://{address}")),
        _ => command.args(["--input-type=module", "--eval", source]),
    };
    let direct = if language == "Rust" { "" } else { "*" };
    let output = command.envs(environment).env("no_proxy", direct).stdin(Stdio::null()).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{language}:\n{source}\n{errors}");
    Ok(String::from_utf8(output.stdout)?)
}

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

fn samples_of(operation: &Value) -> Result<Vec<Sample>> {
    let name = operation["operationId"].as_str().context("an operation without a name")?;
    let samples = operation["x-codeSamples"].as_array().with_context(|| format!("{name} has no samples"))?;
    let text = |sample: &Value, field: &str| sample[field].as_str().unwrap_or_default().to_owned();
    Ok(samples.iter().map(|one| (name.to_owned(), text(one, "lang"), text(one, "source"))).collect())
}

/// The samples of a page of the documentation, by the number of their group: `chat-0`.
fn samples_of_page(guide: &str, page: &str) -> Vec<Sample> {
    let mut found = Vec::new();
    for (group, part) in page.split("<div class=\"samples\">").skip(1).enumerate() {
        for sample in part.split("<code data-lang=\"").skip(1) {
            let Some((language, rest)) = sample.split_once("\">") else { continue };
            let source = rest.split("</code>").next().unwrap_or_default();
            let source = [("&quot;", "\""), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")]
                .iter()
                .fold(source.to_owned(), |source, (escaped, plain)| source.replace(escaped, plain));
            found.push((format!("{guide}-{group}"), language.to_owned(), source));
        }
    }
    found
}

async fn samples_of_guides(server: &ServerFixture) -> Result<Vec<Sample>> {
    let overview = server.get("/docs").await?.text();
    let links = overview.split("href=\"docs/guides/").skip(1);
    let names: BTreeSet<_> = links.filter_map(|rest| rest.split('"').next()).collect();
    ensure!(names.len() > 8, "{names:?}");
    let mut found = Vec::new();
    for name in names {
        found.extend(samples_of_page(name, &server.get(&format!("/docs/guides/{name}")).await?.text()));
    }
    Ok(found)
}

async fn run_one(fixture: &mut SamplesFixture, sample: &Sample) -> Result<String> {
    let (name, language, source) = sample;
    let address = fixture.server.address().to_owned();
    assert!(source.contains(&address), "{name}: {source}");
    let environment = fixture.environment(source).await?;
    let text = run_sample(sample, &address, &environment).with_context(|| name.clone())?;
    assert!(!text.trim().is_empty(), "{name} in {language}");
    Ok(text)
}

async fn run_all(fixture: &mut SamplesFixture, selects: fn(&str) -> bool) -> Result<usize> {
    let document = fixture.document().await?;
    let mut count = 0;
    for operation in operations(&document) {
        let samples = samples_of(operation)?;
        let languages: Vec<_> = samples.iter().map(|(_, language, _)| language.as_str()).collect();
        assert_eq!(languages, ["Shell", "Python", "JavaScript", "Rust"], "{operation}");
        for sample in samples.iter().filter(|(id, ..)| selects(id)) {
            let text = run_one(fixture, sample).await?;
            let (id, language, _) = sample;
            for name in names(operation) {
                assert!(text.contains(name), "{id} in {language}: no {name} in {text}");
            }
            count += 1;
        }
    }
    Ok(count)
}

#[tokio::test(flavor = "multi_thread")]
async fn documentation_rust_samples_are_those_of_the_program() -> Result<()> {
    let data = TempDir::new()?;
    let server = ServerFixture::start(&data, &[("VERBATIM_SERVER__BASE_URL", RUST_BASE_URL)])?;
    let document = server.get("/openapi.json").await?.json();
    let mut all = samples_of_guides(&server).await?;
    for operation in operations(&document) {
        all.extend(samples_of(operation)?);
    }
    let (mut modules, mut arms) = (String::new(), String::new());
    let rust = all.iter().filter(|(_, language, _)| language == "Rust");
    for (index, (name, _, source)) in rust.enumerate() {
        let source = source.replace("async fn main", "pub(super) async fn main");
        modules += &format!("mod sample{index} {{\n{source}}}\n\n");
        arms += &format!("        \"{name}\" => sample{index}::main(),\n");
    }
    let text = format!(
        "{modules}pub(super) fn run(name: &str) -> Result<(), Box<dyn std::error::Error>> {{\n    match name {{\n{arms}        \
         _ => Err(format!(\"there is no sample {{name}}\").into()),\n    }}\n}}\n"
    );
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(RUST, &text)?;
    }
    ensure!(text == std::fs::read_to_string(RUST)?, "the samples have changed: run this test with UPDATE=1");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn documentation_samples_run_and_print_their_fields() -> Result<()> {
    installed("samples")?;
    // Stripe events need a server with Stripe payments.
    let mut sandbox = SamplesFixture::start(&[])?;
    let all = run_all(&mut sandbox, |id| id != "takeStripeEvent").await?;
    assert!(all >= 80, "{all}");
    let guides = samples_of_guides(&sandbox.server).await?;
    assert!(guides.len() >= 40, "{}", guides.len());
    for sample in &guides {
        run_one(&mut sandbox, sample).await?;
    }
    let stripe = FakeStripe::start().await?;
    let settings = [
        ("VERBATIM_STRIPE__SECRET_KEY", KEY),
        ("VERBATIM_STRIPE__WEBHOOK_SECRETS", SECRET),
        ("VERBATIM_STRIPE__API_URL", stripe.url()),
    ];
    let mut stripe_fixture = SamplesFixture::start(&settings)?;
    assert_eq!(run_all(&mut stripe_fixture, |id| id == "takeStripeEvent").await?, 4);
    Ok(())
}
