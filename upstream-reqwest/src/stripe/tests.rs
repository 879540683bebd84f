//! Tests of the Stripe client: requests, retries and error messages.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
    task::JoinSet,
};
use transcript_core::{
    ErrorKind,
    accounts::{Order, OrderItem, OrderState, payments::ProviderObject, webhooks::sign},
    ids::{AccountId, OrderId},
};

use super::*;

/// A request as Stripe received it.
#[derive(Clone, Debug)]
struct SeenRequest {
    line: String,
    headers: BTreeMap<String, String>,
    body: String,
}

/// A fake Stripe server; it stops on drop.
struct FakeStripe {
    url: String,
    requests: Arc<Mutex<Vec<SeenRequest>>>,
    _task: JoinSet<()>,
}

/// A response: status, additional header lines, body.
type FakeStripeResponse = (u16, &'static str, String);

impl FakeStripe {
    /// Starts a server that runs `script` with each request and the number of earlier ones.
    ///
    /// `None` hangs up.
    async fn start(
        script: impl Fn(&SeenRequest, usize) -> Option<FakeStripeResponse> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&requests);
        let mut task = JoinSet::new();
        task.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let mut stream = BufReader::new(stream);
                let request = read(&mut stream).await;
                let before = {
                    let mut log = log.lock().unwrap();
                    log.push(request.clone());
                    log.len() - 1
                };
                let Some((status, headers, body)) = script(&request, before) else { continue };
                let answer = format!(
                    "HTTP/1.1 {status} X\r\nconnection: close\r\nrequest-id: req_7\r\n{headers}content-length: {}\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        Self { url, requests, _task: task }
    }

    fn stripe(&self) -> StripeProvider {
        StripeProvider::new(StripeOptions {
            secret_key: "sk_test_hush".to_owned(),
            webhook_secrets: vec!["whsec_hush".to_owned()],
            api_url: Some(self.url.clone()),
            base_url: "https://v.example".to_owned(),
            ..StripeOptions::default()
        })
        .unwrap()
    }

    fn requests(&self) -> Vec<SeenRequest> {
        self.requests.lock().unwrap().clone()
    }
}

async fn read(stream: &mut BufReader<tokio::net::TcpStream>) -> SeenRequest {
    let (mut line, mut headers) = (String::new(), BTreeMap::new());
    stream.read_line(&mut line).await.unwrap();
    loop {
        let mut header = String::new();
        stream.read_line(&mut header).await.unwrap();
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    let line = line.trim_end_matches("\r\n").trim_end_matches(" HTTP/1.1").to_owned();
    SeenRequest { line, headers, body: String::from_utf8(body).unwrap() }
}

fn sale() -> CheckoutRequest {
    CheckoutRequest {
        order: Order {
            id: OrderId::new("order-1"),
            version: 1,
            account: AccountId::new("account-1"),
            item: OrderItem::Pack("1k".to_owned()),
            credits: 1_000,
            amount_minor: 1_200,
            currency: "usd".to_owned(),
            state: OrderState::Open,
            payment: None,
            refunded_credits: Vec::new(),
            returned_minor: 0,
            paid_minor: None,
            language: Some("pt-BR".to_owned()),
            created_at: Timestamp::from_millis(0),
        },
        email: "ann@example.org".to_owned(),
        customer: Some("cus_1".to_owned()),
        subscription: None,
    }
}

const SESSION: &str = r#"{"id": "cs_1", "mode": "payment", "status": "open", "payment_status": "unpaid",
    "url": "https://checkout.stripe.example/c/pay/cs_1#secret", "amount_total": 1200, "currency": "usd",
    "client_reference_id": "order-1", "metadata": {"verbatim_order": "order-1"}, "livemode": false,
    "payment_intent": null, "subscription": null}"#;

fn error(code: &str, param: &str) -> String {
    format!(
        r#"{{"error": {{"type": "invalid_request_error", "code": "{code}", "param": "{param}",
        "message": "No such thing: 'cus_1'; sk_test_hush ann@example.org"}}}}"#
    )
}

#[tokio::test]
async fn checkout_request_has_order_id() {
    let fake = FakeStripe::start(|_, _| Some((200, "", SESSION.to_owned()))).await;
    let page = fake.stripe().create_checkout(sale()).await.unwrap();
    assert_eq!(page.url, "https://checkout.stripe.example/c/pay/cs_1#secret");
    assert_eq!((page.payment.as_deref(), page.customer.as_deref()), (Some("cs_1"), Some("cus_1")));
    assert!(!format!("{page:?}").contains("https"), "the URL authorizes its holder, so it is not logged");
    let [request] = fake.requests().try_into().unwrap();
    assert_eq!(request.line, "POST /v1/checkout/sessions");
    for (name, value) in [
        ("authorization", "Bearer sk_test_hush"),
        ("idempotency-key", "order-1"),
        ("stripe-version", API_VERSION),
        ("content-type", "application/x-www-form-urlencoded"),
    ] {
        assert_eq!(request.headers[name], value, "{name}");
    }
    let form: BTreeMap<_, _> = url::form_urlencoded::parse(request.body.as_bytes()).into_owned().collect();
    for (name, value) in [
        ("mode", "payment"),
        ("customer", "cus_1"),
        ("client_reference_id", "order-1"),
        ("line_items[0][price_data][unit_amount]", "1200"),
        ("line_items[0][price_data][currency]", "usd"),
        ("line_items[0][quantity]", "1"),
        ("payment_intent_data[metadata][verbatim_order]", "order-1"),
        ("success_url", "https://v.example/checkout/order-1?hl=pt-BR"),
    ] {
        assert_eq!(form.get(name).map(String::as_str), Some(value), "{name}");
    }
}

#[tokio::test]
async fn checkout_transient_error_is_retried_with_same_key() {
    let fake = FakeStripe::start(|_, before| match before {
        0 => None,
        1 => Some((500, "", String::new())),
        _ => Some((200, "", SESSION.to_owned())),
    })
    .await;
    fake.stripe().create_checkout(sale()).await.unwrap();
    let keys: Vec<_> =
        fake.requests().iter().map(|request| request.headers["idempotency-key"].clone()).collect();
    assert_eq!(keys, ["order-1"; 3]);
}

/// Checks the number of attempts and the error for a repeated response.
async fn check_fault(
    status: u16,
    headers: &'static str,
    body: String,
    times: usize,
    kind: ErrorKind,
    expected_text: &str,
) {
    let fake = FakeStripe::start(move |_, _| Some((status, headers, body.clone()))).await;
    let error = fake.stripe().create_checkout(sale()).await.unwrap_err();
    let text = format!("{error} {error:?}");
    assert_eq!((error.kind(), fake.requests().len()), (kind, times), "{text}");
    assert!(text.contains(expected_text), "{text}");
    for secret in ["hush", "ann@", "https://", "127.0.0.1"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
}

#[tokio::test]
async fn error_contains_no_secret() {
    let missing = || error("resource_missing", "price");
    check_fault(400, "", missing(), 1, ErrorKind::Unexpected, "HTTP 400, resource_missing, price, req_7")
        .await;
    check_fault(400, "", "<html>".to_owned(), 1, ErrorKind::Unexpected, "HTTP 400, req_7").await;
    check_fault(401, "", missing(), 1, ErrorKind::Unexpected, "rejected stripe.secret_key").await;
    check_fault(403, "", missing(), 1, ErrorKind::Unexpected, "rights").await;
    check_fault(409, "", missing(), 3, ErrorKind::Unavailable, "HTTP 409").await;
    check_fault(429, "", missing(), 3, ErrorKind::Unavailable, "HTTP 429").await;
    check_fault(503, "", missing(), 3, ErrorKind::Unavailable, "HTTP 503").await;
    let never = "stripe-should-retry: false\r\n";
    check_fault(503, never, missing(), 1, ErrorKind::Unavailable, "HTTP 503").await;
    let always = "stripe-should-retry: true\r\n";
    check_fault(400, always, missing(), 3, ErrorKind::Unexpected, "HTTP 400").await;
    let redirect = "location: https://evil.example/\r\n";
    check_fault(302, redirect, String::new(), 1, ErrorKind::Unexpected, "HTTP 302").await;
    check_fault(200, "", "{\"id\": \"ann@\"}".to_owned(), 1, ErrorKind::Unexpected, "a field is missing")
        .await;
    check_fault(200, "", "x".repeat(3 << 20), 3, ErrorKind::Unavailable, "too large").await;
    let odd = error("sk_test_hush ann@example.org", "https://evil.example");
    check_fault(400, "", odd, 1, ErrorKind::Unexpected, "(HTTP 400, req_7)").await;
}

#[tokio::test]
async fn server_missing_or_silent_is_unavailable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("http://{}", listener.local_addr().unwrap());
    let options = StripeOptions {
        secret_key: "sk_test_hush".to_owned(),
        webhook_secrets: vec!["whsec_hush".to_owned()],
        api_url: Some(silent),
        timeout: Duration::from_millis(200),
        retries: 0,
        ..StripeOptions::default()
    };
    let stripe = StripeProvider::new(options).unwrap();
    let error = stripe.create_checkout(sale()).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Unavailable && error.message().contains("too long"), "{error}");
    drop(listener);
    let error = stripe.create_checkout(sale()).await.unwrap_err();
    assert!(
        error.kind() == ErrorKind::Unavailable && error.message().contains("the connection failed"),
        "{error}"
    );
}

#[tokio::test]
async fn customer_missing_is_created_again() {
    let fake = FakeStripe::start(|request, _| {
        let is_old = request.body.contains("customer=cus_1");
        Some(match request.line.as_str() {
            "POST /v1/customers" => (200, "", "{\"id\": \"cus_2\"}".to_owned()),
            _ if is_old => (400, "", error("resource_missing", "customer")),
            _ => (200, "", SESSION.to_owned()),
        })
    })
    .await;
    let stripe = fake.stripe();
    let new = stripe.create_checkout(CheckoutRequest { customer: None, ..sale() }).await.unwrap();
    let recreated = stripe.create_checkout(sale()).await.unwrap();
    assert_eq!((new.customer.as_deref(), recreated.customer.as_deref()), (Some("cus_2"), Some("cus_2")));
    let keys: Vec<_> =
        fake.requests().iter().map(|request| request.headers["idempotency-key"].clone()).collect();
    assert_eq!(
        keys,
        ["customer-account-1", "order-1", "order-1", "customer-account-1-after-cus_1", "order-1-anew"]
    );
}

#[tokio::test]
async fn snapshots_of_unknown_or_foreign_object_are_empty() {
    let fake = FakeStripe::start(|request, _| {
        Some(match request.line.contains("cs_other") {
            true => (200, "", SESSION.replace("_id\": \"order-1\"", "_id\": null")),
            false => (404, "", error("resource_missing", "id")),
        })
    })
    .await;
    let stripe = fake.stripe();
    for object in ["cs_gone", "in_gone", "pi_gone", "sub_gone", "cs_other"] {
        assert_eq!(stripe.snapshots(&ProviderObject::new(object)).await.unwrap(), [], "{object}");
    }
    let request_count = fake.requests().len();
    // No request is sent for an invalid id.
    for object in ["", "cs", "x_1", "cs_1/expire", "cs_../../v1/charges", "cs_1?a=b", "cs_\u{0}"] {
        assert_eq!(stripe.snapshots(&ProviderObject::new(object)).await.unwrap(), [], "{object:?}");
        assert!(!stripe.owns(object));
    }
    assert_eq!((request_count, fake.requests().len()), (5, 5));
    assert!(stripe.owns("cs_test_a1B2") && stripe.owns("sub_1") && !stripe.owns("sandbox-order-1"));
}

#[tokio::test]
async fn session_of_other_program_has_no_snapshot() {
    let is_read = async |old: &str, new: &str| {
        assert!(SESSION.contains(old), "{old}");
        let session = SESSION.replace(old, new);
        let fake = FakeStripe::start(move |_, _| Some((200, "", session.clone()))).await;
        let snapshots = fake.stripe().snapshots(&ProviderObject::new("cs_1")).await.unwrap();
        if let [PaymentSnapshot::Payment(state)] = snapshots.as_slice() {
            assert_eq!((state.order.as_str(), state.session.as_deref()), ("order-1", Some("cs_1")));
        }
        !snapshots.is_empty()
    };
    assert!(is_read("cs_1", "cs_1").await);
    let metadata = "{\"verbatim_order\": \"order-1\"}";
    for (old, new) in [
        // A payment link whose visitor chose the reference.
        (metadata, "{}"),
        (metadata, "null"),
        (metadata, "{\"order\": \"order-1\"}"),
        (metadata, "{\"verbatim_order\": \"order-2\"}"),
        ("\"client_reference_id\": \"order-1\"", "\"client_reference_id\": null"),
        ("\"mode\": \"payment\"", "\"mode\": \"setup\""),
        ("\"livemode\": false", "\"livemode\": true"),
    ] {
        assert!(!is_read(old, new).await, "{new}");
    }
}

#[tokio::test]
async fn webhook_without_valid_signature_is_rejected() {
    let fake = FakeStripe::start(|_, _| None).await;
    let stripe = fake.stripe();
    let body = br#"{"type": "checkout.session.completed", "data": {"object": {"object": "checkout.session",
        "id": "cs_1", "customer": "cus_1"}}}"#;
    let now = Timestamp::from_millis(1_795_176_000_000);
    let parse_call = async |signature: Option<String>| {
        stripe.parse_webhook(WebhookRequest { signature, body: body.to_vec() }, now).await.unwrap()
    };
    let subject = ProviderObject { object: "cs_1".to_owned(), customer: Some("cus_1".to_owned()) };
    let signed = sign(body, &["whsec_hush".to_owned()], now);
    assert_eq!(parse_call(Some(signed)).await, WebhookOutcome::Events(vec![subject]));
    for forged in [None, Some(sign(body, &["whsec_other".to_owned()], now)), Some("t=1".to_owned())] {
        let WebhookOutcome::Rejected { reason } = parse_call(forged).await else {
            panic!("a forged signature must be rejected")
        };
        assert!(reason.contains("signature") || reason.contains("Stripe-Signature"), "{reason}");
    }
}
