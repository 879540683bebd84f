//! Tests against Stripe's own tools: stripe-mock accepts our requests, Stripe's API description matches the
//! responses of the fake, and Stripe's library and our code accept each other's signatures.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use anyhow::{Context as _, Result};
use http::Method;
use serde_json::{Value, json};
use transcript_core::{
    Clock, Timestamp,
    accounts::{
        Order, OrderItem,
        payments::{CheckoutRequest, PaymentProvider, ProviderObject, WebhookOutcome, WebhookRequest},
    },
    directory::Plan,
    ids::{AccountId, OrderId},
};
use verbatim::SystemClock;

use super::{
    fake::{FakeEvent, FakeExchange, KEY, SECRET, now_s, sign},
    fixture::{StripeFixture, checkout},
};
use crate::{
    install::installed,
    payments::fixture::open_order,
    server::harness::{run_ok, send_once_with},
};

/// Runs Stripe's library; returns its output, or an error if it fails.
pub(crate) fn python(arguments: &[&str], input: &[u8]) -> Result<String> {
    let mut command = Command::new(installed("stripe")?.join("venv/bin/python"));
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/stripe/tools.py")).args(arguments);
    run_ok(command, input)
}

/// The stateless stripe-mock. Drop stops it.
struct StripeMock {
    child: Child,
    address: String,
}

impl StripeMock {
    fn start() -> Result<Self> {
        let mut command = Command::new(installed("stripe")?.join("bin/stripe-mock"));
        command.args(["-http-addr", "127.0.0.1:0", "-https-addr", "127.0.0.1:0", "-strict-version-check"]);
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("no output")?).lines();
        let address = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("Listening for HTTP at address: ").map(str::to_owned));
        // The process stops when its output is not read.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Ok(Self { child, address: address.context("stripe-mock did not start")? })
    }

    /// Sends a request; returns the status and the body.
    async fn send(&self, method: &Method, path: &str, fields: &str) -> Result<(u16, Value)> {
        let (path, body) = match *method == Method::GET {
            true => (format!("{path}?{fields}"), String::new()),
            false => (path.to_owned(), fields.to_owned()),
        };
        let headers = [
            ("authorization", &*format!("Bearer {KEY}")),
            ("stripe-version", "2026-08-26.dahlia"),
            ("content-type", "application/x-www-form-urlencoded"),
        ];
        let reply = send_once_with(&self.address, method.clone(), &path, &headers, body).await?;
        Ok((reply.status.as_u16(), reply.json()))
    }
}

impl Drop for StripeMock {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Every kind of request that our client sends, with the responses of the fake.
async fn all_exchanges() -> Vec<FakeExchange> {
    let fixture = StripeFixture::start().await;
    fixture.buy("order-1", "1k").await;
    fixture.deliver(fixture.stripe.pay("order-1", now_s())).await;
    let payment = fixture.stripe.payment("order-1");
    fixture.deliver(fixture.stripe.refund(&payment, 400)).await;
    fixture.deliver(fixture.stripe.dispute(&payment, "under_review")).await;
    fixture.subscribe("order-2", Plan::Pro).await;
    fixture.subscribe("order-3", Plan::Starter).await;
    fixture.deliver(fixture.stripe.pay("order-3", now_s() - 60)).await;
    let subscription = fixture.stripe.subscription("order-3");
    fixture.subscribe("order-4", Plan::Pro).await;
    fixture.deliver(fixture.stripe.exchange(&subscription, "pro", now_s(), 899)).await;
    fixture.deliver(fixture.stripe.refund(&fixture.stripe.payment("order-3"), 10)).await;
    fixture.deliver(fixture.stripe.renew(&subscription, now_s(), false)).await;
    fixture.stripe.schedule(&subscription);
    checkout(fixture.stripe.url()).cancel_at_period_end(&subscription).await.unwrap();
    assert_eq!(fixture.stripe.object(&subscription)["cancel_at_period_end"], json!(true));
    fixture.subscribe("order-5", Plan::Starter).await;
    fixture.deliver(fixture.stripe.cancel(&subscription)).await;
    fixture.payments.reconcile_refunds(None).await.unwrap();
    fixture.stripe.exchanges()
}

#[tokio::test]
async fn stripe_mock_accepts_our_requests() -> Result<()> {
    let mock = StripeMock::start()?;
    let mut requested: Vec<(Method, String)> = Vec::new();
    for FakeExchange { method, path, fields, .. } in all_exchanges().await {
        let (status, body) = mock.send(&method, &path, &fields).await?;
        assert_eq!(status, 200, "{method} {path} {fields}: {body}");
        let is_name = |part: &&str| part.contains("_test") || part.contains("_plan_");
        let parts = path.split('/').map(|part| if is_name(&part) { "{id}" } else { part });
        requested.push((method, parts.collect::<Vec<_>>().join("/")));
    }
    requested.sort_unstable_by_key(|(method, path)| format!("{method} {path}"));
    requested.dedup();
    assert!(requested.len() >= 18, "not every endpoint was called: {requested:?}");
    // Counter-check: an unknown field, and values of a wrong type.
    for fields in ["mode=payment&modus=1", "mode=gift", "line_items[0][quantity]=one"] {
        assert_eq!(mock.send(&Method::POST, "/v1/checkout/sessions", fields).await?.0, 400, "{fields}");
    }
    Ok(())
}

#[tokio::test]
async fn idempotency_key_belongs_to_one_request() {
    // Stripe rejects a key that was first used with another request.
    let fixture = StripeFixture::start().await;
    fixture.subscribe("order-1", Plan::Pro).await;
    fixture.subscribe("order-2", Plan::Starter).await;
    fixture.deliver(fixture.stripe.pay("order-2", now_s())).await;
    // The result does not matter: the session expired, and a subscription exists by now.
    let _ = fixture.payments.subscribe(&fixture.account().await, Plan::Pro, OrderId::new("order-1")).await;
    fixture.subscribe("order-3", Plan::Pro).await;
    fixture.stripe.change(&fixture.stripe.subscription("order-2"), "cancel_at_period_end", true);
    fixture.subscribe("order-3", Plan::Pro).await;
    let mut known = std::collections::BTreeMap::new();
    for FakeExchange { path, fields, idempotency_key, .. } in fixture.stripe.exchanges() {
        let Some(key) = idempotency_key else { continue };
        let request_line = format!("{path} {fields}");
        assert_eq!(known.entry(key.clone()).or_insert_with(|| request_line.clone()), &request_line, "{key}");
    }
    assert!(known.len() > 5, "{known:?}");
}

#[tokio::test]
async fn fake_responses_match_api_description() -> Result<()> {
    let spec = installed("stripe")?.join("spec3.json").display().to_string();
    let shapes = |exchanges: &[Value]| python(&["shapes", &spec], &serde_json::to_vec(exchanges)?);
    let exchange_json = |exchange: &FakeExchange| json!({ "method": exchange.method.as_str(), "path": exchange.path, "answer": exchange.answer });
    let all = all_exchanges().await;
    let mut exchanges: Vec<Value> =
        all.iter().filter(|exchange| exchange.status == 200).map(exchange_json).collect();
    assert_eq!(shapes(&exchanges)?, "");
    // Counter-check: an unknown field, and a value of a wrong type.
    let session = exchanges.iter_mut().find(|exchange| exchange["answer"]["object"] == "checkout.session");
    let session = session.context("no checkout session")?;
    session["answer"]["paid"] = json!(true);
    session["answer"]["payment_status"] = json!("perhaps");
    let found = shapes(&exchanges)?;
    assert!(found.lines().count() == 2 && found.contains("'paid'") && found.contains("perhaps"), "{found}");
    Ok(())
}

fn sale(item: OrderItem) -> CheckoutRequest {
    let order = open_order("order-1", AccountId::new("account-ann"), Timestamp::from_millis(0));
    let order = Order { item, ..order };
    CheckoutRequest { order, email: "ann@example.org".to_owned(), customer: None, subscription: None }
}

#[tokio::test]
async fn stripe_mock_responses_are_readable() -> Result<()> {
    let mock = StripeMock::start()?;
    let checkout = checkout(&format!("http://{}", mock.address));
    for item in [OrderItem::Pack("1k".to_owned()), OrderItem::Plan(Plan::Starter)] {
        let page = checkout.create_checkout(sale(item)).await?;
        assert!(page.url.starts_with("https://"), "{}", page.url);
        assert!(page.payment.is_some_and(|name| checkout.owns(&name)));
        assert!(page.customer.is_some_and(|name| checkout.owns(&name)));
    }
    // The responses are samples without an order of ours; each must be readable.
    for object in ["cs_1", "pi_1", "in_1", "sub_1"] {
        assert_eq!(checkout.snapshots(&ProviderObject::new(object)).await?, [], "{object}");
    }
    Ok(())
}

#[tokio::test]
async fn signatures_are_compatible_with_stripe_library() -> Result<()> {
    let fixture = StripeFixture::start().await;
    fixture.buy("order-1", "1k").await;
    let events: Vec<FakeEvent> = fixture.stripe.pay("order-1", now_s());
    let checkout = checkout(fixture.stripe.url());
    for FakeEvent { kind, body } in events {
        // Signed by Stripe's library, accepted by ours.
        let signature = python(&["sign", SECRET], body.as_bytes())?.trim().to_owned();
        let call = WebhookRequest { signature: Some(signature.clone()), body: body.clone().into_bytes() };
        let now = SystemClock::default().now();
        assert!(
            matches!(checkout.parse_webhook(call, now).await?, WebhookOutcome::Events(_)),
            "{kind} {signature}"
        );
        let changed =
            WebhookRequest { signature: Some(signature), body: body.replace(": ", ":  ").into_bytes() };
        assert!(
            matches!(checkout.parse_webhook(changed, now).await?, WebhookOutcome::Rejected { .. }),
            "{kind}"
        );
        // Signed by the fake, accepted by Stripe's library.
        let id: Value = serde_json::from_str(&body)?;
        let signature = sign(&body, SECRET, now_s());
        let outcome = python(&["verify", SECRET, &signature], body.as_bytes())?;
        assert_eq!(outcome.trim(), id["id"].as_str().unwrap_or_default());
        assert!(python(&["verify", "whsec_other", &signature], body.as_bytes()).is_err());
        let stale = sign(&body, SECRET, now_s() - 400);
        assert!(python(&["verify", SECRET, &stale], body.as_bytes()).is_err());
    }
    Ok(())
}
