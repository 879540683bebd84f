//! What Stripe itself publishes: its own stand-in takes our requests, its own description has the answers of
//! ours, and its own library makes and accepts the same signatures.

use std::{
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use serde_json::{Value, json};
use transcript_core::{
    Clock, Timestamp,
    accounts::{
        Item, Order, OrderState,
        payments::{Checkout, Heard, Sale, Subject, WebhookCall},
    },
    directory::Plan,
    ids::{AccountId, OrderId},
};
use verbatim::SystemClock;

use super::{
    fake::{Event, Exchange, KEY, SECRET, now_s, sign},
    till::{Till, checkout},
};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/stripe");

/// Where Stripe's tools are. The first caller has them installed.
fn tools() -> Result<&'static PathBuf> {
    static TOOLS: OnceLock<Option<PathBuf>> = OnceLock::new();
    let installed = TOOLS.get_or_init(|| {
        let output = Command::new(format!("{FOLDER}/install.sh")).stderr(Stdio::inherit()).output().ok()?;
        let path = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| PathBuf::from(path.trim()))
    });
    installed.as_ref().context("Stripe's tools cannot be installed")
}

/// Runs Stripe's library; returns what it prints, where it succeeds.
pub(crate) fn python(arguments: &[&str], input: &[u8]) -> Result<String> {
    let mut command = Command::new(tools()?.join("venv/bin/python"));
    command.arg(format!("{FOLDER}/tools.py")).args(arguments);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    child.stdin.take().context("no input")?.write_all(input)?;
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// Stripe's own stand-in, which remembers nothing. Dropping it ends it.
struct Mock {
    child: Child,
    url: String,
}

impl Mock {
    fn start() -> Result<Self> {
        let mut command = Command::new(tools()?.join("bin/stripe-mock"));
        command.args(["-http-addr", "127.0.0.1:0", "-https-addr", "127.0.0.1:0", "-strict-version-check"]);
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("no output")?).lines();
        let url = lines.by_ref().map_while(Result::ok).find_map(|line| {
            line.strip_prefix("Listening for HTTP at address: ").map(|address| format!("http://{address}"))
        });
        // It ends when nobody reads what it says.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Ok(Self { child, url: url.context("it did not start")? })
    }

    /// The status of a request, and what was said of it.
    async fn ask(&self, method: &Method, path: &str, fields: &str) -> Result<(u16, Value)> {
        let query = if *method == Method::GET { format!("?{fields}") } else { String::new() };
        let body = if *method == Method::GET { String::new() } else { fields.to_owned() };
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}{query}", self.url))
            .header("authorization", format!("Bearer {KEY}"))
            .header("stripe-version", "2026-08-26.dahlia")
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Full::new(Bytes::from(body)))?;
        let response = Client::builder(TokioExecutor::new()).build_http().request(request).await?;
        let status = response.status().as_u16();
        Ok((status, serde_json::from_slice(&response.into_body().collect().await?.to_bytes())?))
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Everything that our client ever asks, with what the stand-in answers.
async fn everything() -> Vec<Exchange> {
    let till = Till::open().await;
    till.buy("order-1", "1k").await;
    till.deliver(till.stripe.pay("order-1", now_s())).await;
    let payment = till.stripe.payment("order-1");
    till.deliver(till.stripe.refund(&payment, 400)).await;
    till.deliver(till.stripe.dispute(&payment, "under_review")).await;
    till.subscribe("order-2", Plan::Pro).await;
    till.subscribe("order-3", Plan::Starter).await;
    till.deliver(till.stripe.pay("order-3", now_s() - 60)).await;
    let subscription = till.stripe.subscription("order-3");
    till.subscribe("order-4", Plan::Pro).await;
    till.deliver(till.stripe.exchange(&subscription, "pro", now_s(), 899)).await;
    till.deliver(till.stripe.refund(&till.stripe.payment("order-3"), 10)).await;
    till.deliver(till.stripe.renew(&subscription, now_s(), false)).await;
    till.stripe.schedule(&subscription);
    checkout(till.stripe.url()).stop(&subscription).await.unwrap();
    assert_eq!(till.stripe.object(&subscription)["cancel_at_period_end"], json!(true));
    till.subscribe("order-5", Plan::Starter).await;
    till.deliver(till.stripe.cancel(&subscription)).await;
    till.payments.sweep_returned(None).await.unwrap();
    till.stripe.exchanges()
}

#[tokio::test]
async fn stripe_takes_our_requests_as_they_are() -> Result<()> {
    let mock = Mock::start()?;
    let mut asked: Vec<(Method, String)> = Vec::new();
    for Exchange { method, path, fields, .. } in everything().await {
        let (status, said) = mock.ask(&method, &path, &fields).await?;
        assert_eq!(status, 200, "{method} {path} {fields}: {said}");
        let is_name = |part: &&str| part.contains("_test") || part.contains("_plan_");
        let parts = path.split('/').map(|part| if is_name(&part) { "{id}" } else { part });
        asked.push((method, parts.collect::<Vec<_>>().join("/")));
    }
    asked.sort_unstable_by_key(|(method, path)| format!("{method} {path}"));
    asked.dedup();
    assert!(asked.len() >= 18, "all that we ever ask was asked: {asked:?}");
    // It does look: a field that nobody knows, and a value of another kind.
    for fields in ["mode=payment&modus=1", "mode=gift", "line_items[0][quantity]=one"] {
        assert_eq!(mock.ask(&Method::POST, "/v1/checkout/sessions", fields).await?.0, 400, "{fields}");
    }
    Ok(())
}

#[tokio::test]
async fn an_idempotency_key_is_of_one_request() {
    // Stripe refuses a key that comes with anything else than what it came with first.
    let till = Till::open().await;
    till.subscribe("order-1", Plan::Pro).await;
    till.subscribe("order-2", Plan::Starter).await;
    till.deliver(till.stripe.pay("order-2", now_s())).await;
    // Whatever comes of it: its page was closed, and there is a subscription by now.
    let _ = till.payments.subscribe(&till.account().await, Plan::Pro, OrderId::new("order-1")).await;
    till.subscribe("order-3", Plan::Pro).await;
    till.stripe.change(&till.stripe.subscription("order-2"), "cancel_at_period_end", true);
    till.subscribe("order-3", Plan::Pro).await;
    let mut known = std::collections::BTreeMap::new();
    for Exchange { path, fields, idempotency_key, .. } in till.stripe.exchanges() {
        let Some(key) = idempotency_key else { continue };
        let asked = format!("{path} {fields}");
        assert_eq!(known.entry(key.clone()).or_insert_with(|| asked.clone()), &asked, "{key}");
    }
    assert!(known.len() > 5, "{known:?}");
}

#[tokio::test]
async fn the_stand_in_answers_in_stripes_words() -> Result<()> {
    let spec = tools()?.join("spec3.json").display().to_string();
    let shapes = |exchanges: &[Value]| python(&["shapes", &spec], &serde_json::to_vec(exchanges)?);
    let told = |exchange: &Exchange| json!({ "method": exchange.method.as_str(), "path": exchange.path, "answer": exchange.answer });
    let all = everything().await;
    let mut exchanges: Vec<Value> = all.iter().filter(|exchange| exchange.status == 200).map(told).collect();
    assert_eq!(shapes(&exchanges)?, "");
    // It does look: a name that Stripe does not have, and a value of another kind.
    let session = exchanges.iter_mut().find(|exchange| exchange["answer"]["object"] == "checkout.session");
    let session = session.context("a checkout was opened")?;
    session["answer"]["paid"] = json!(true);
    session["answer"]["payment_status"] = json!("perhaps");
    let found = shapes(&exchanges)?;
    assert!(found.lines().count() == 2 && found.contains("'paid'") && found.contains("perhaps"), "{found}");
    Ok(())
}

fn sale(item: Item) -> Sale {
    let order = Order {
        id: OrderId::new("order-1"),
        version: 1,
        account: AccountId::new("account-ann"),
        item,
        credits: 1_000,
        amount_minor: 1_200,
        currency: "usd".to_owned(),
        state: OrderState::Open,
        payment: None,
        taken_back: Vec::new(),
        created_at: Timestamp::from_millis(0),
    };
    Sale { order, email: "ann@example.org".to_owned(), customer: None, subscription: None }
}

#[tokio::test]
async fn what_stripe_answers_can_be_read_whole() -> Result<()> {
    let mock = Mock::start()?;
    let checkout = checkout(&mock.url);
    for item in [Item::Pack("1k".to_owned()), Item::Plan(Plan::Starter)] {
        let page = checkout.open(sale(item)).await?;
        assert!(page.url.starts_with("https://"), "{}", page.url);
        assert!(page.payment.is_some_and(|name| checkout.knows(&name)));
        assert!(page.customer.is_some_and(|name| checkout.knows(&name)));
    }
    // It is told of samples, which are of no order of ours; but each of them is read.
    for object in ["cs_1", "pi_1", "in_1", "sub_1"] {
        assert_eq!(checkout.facts(&Subject::new(object)).await?, [], "{object}");
    }
    Ok(())
}

#[tokio::test]
async fn stripes_library_and_ours_believe_each_other() -> Result<()> {
    let till = Till::open().await;
    till.buy("order-1", "1k").await;
    let events: Vec<Event> = till.stripe.pay("order-1", now_s());
    let checkout = checkout(till.stripe.url());
    for Event { kind, body } in events {
        // Signed by Stripe's library, and believed by ours.
        let signature = python(&["sign", SECRET], body.as_bytes())?.trim().to_owned();
        let call = WebhookCall { signature: Some(signature.clone()), body: body.clone().into_bytes() };
        let now = SystemClock::default().now();
        assert!(matches!(checkout.hear(call, now).await?, Heard::About(_)), "{kind} {signature}");
        let changed =
            WebhookCall { signature: Some(signature), body: body.replace(": ", ":  ").into_bytes() };
        assert!(matches!(checkout.hear(changed, now).await?, Heard::Refused { .. }), "{kind}");
        // Signed by the stand-in, and believed by Stripe's library.
        let id: Value = serde_json::from_str(&body)?;
        let signature = sign(&body, SECRET, now_s());
        let heard = python(&["verify", SECRET, &signature], body.as_bytes())?;
        assert_eq!(heard.trim(), id["id"].as_str().unwrap_or_default());
        assert!(python(&["verify", "whsec_other", &signature], body.as_bytes()).is_err());
        let stale = sign(&body, SECRET, now_s() - 400);
        assert!(python(&["verify", SECRET, &stale], body.as_bytes()).is_err());
    }
    Ok(())
}
