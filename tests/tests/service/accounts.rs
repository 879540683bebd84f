//! The client's v1 API against the built server.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use tokio::sync::Semaphore;
use transcript_core::{
    ErrorKind,
    accounts::TranscriptParams,
    chat::{ChatRole, ChatTurn},
    lookup::VideoReference,
    service::{Caller, Service as _, ServiceErrorKind, ServiceQuestion},
    wire::v1::{BuyCreditsRequest, RegisterRequest, SubscribeRequest},
};
use upstream_reqwest::service::{ServiceClient, ServiceOptions};

use super::{
    fake::{FakeReply, FakeService},
    fixture::{NONE, OTHER, ServiceFixture, VIDEO},
};
use crate::server::{
    platform::fetch_count,
    v1::mail_client::{MailClient, token_from},
};

fn transcript_params(video: &str) -> TranscriptParams {
    TranscriptParams { video_id: Some(video.to_owned()), ..TranscriptParams::default() }
}

fn registration() -> RegisterRequest {
    RegisterRequest { email: "ann@example.org".to_owned() }
}

/// The caller of the next attempt with this idempotency key.
fn once(caller: &Caller, idempotency_key: &str) -> Caller {
    Caller { idempotency_key: Some(idempotency_key.to_owned()), ..caller.clone() }
}

/// A client, and a caller with the key of a new account.
async fn create_account(fixture: &ServiceFixture) -> Result<(ServiceClient, Caller)> {
    let (client, mut outbox) = (fixture.client()?, MailClient::new(&fixture.data));
    let anonymous = Caller::default();
    assert!(client.register(&anonymous, registration()).await?.body.success);
    let verified = client.verify(&anonymous, token_from(&outbox.next().await?)?, false).await?.body;
    assert_eq!((verified.success, verified.plan.as_str()), (true, "free"));
    Ok((client, Caller::with_key(verified.api_key)))
}

#[tokio::test(flavor = "multi_thread")]
async fn service_account_registers_and_gets_transcripts() -> Result<()> {
    let fixture = ServiceFixture::start(&[("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "1000")])?;
    let (client, caller) = create_account(&fixture).await?;
    let me = client.me(&caller).await?;
    assert_eq!((me.body.email.as_str(), me.body.credits_remaining), ("ann@example.org", 200));
    let rate = me.meta.rate.context("no RateLimit")?;
    assert_eq!((rate.name.as_str(), rate.limit, rate.remaining), ("account", Some(1_000), 999));

    let keyed = once(&caller, "order-1");
    let miss = client.transcript(&keyed, transcript_params(VIDEO)).await?;
    assert_eq!((miss.meta.is_cached, miss.meta.credits_remaining), (Some(false), Some(199)));
    let transcript = &miss.body.transcript;
    assert_eq!((transcript.track.language.as_str(), transcript.track.is_generated()), ("en", false));
    assert_eq!((transcript.title.as_deref(), transcript.segments.len()), (Some("A walk along the dyke"), 3));
    // The same request with the same idempotency key gets the stored response, without a charge.
    let again = client.transcript(&keyed, transcript_params(VIDEO)).await?;
    assert_eq!((again.meta.is_replayed, &again.body), (true, &miss.body));
    let hit = client.transcript(&caller, transcript_params(VIDEO)).await?;
    assert_eq!(
        (hit.meta.is_cached, hit.meta.credits_remaining, hit.meta.is_replayed),
        (Some(true), Some(198), false)
    );
    assert_eq!(fetch_count(&fixture.proxy, VIDEO), 1);
    // Another request with that idempotency key is rejected and not retried.
    let other = client.transcript(&keyed, transcript_params(OTHER)).await.unwrap_err();
    assert_eq!(other.kind, ServiceErrorKind::BadRequest, "{other}");
    // An invalid idempotency key is not sent.
    let invalid = client.transcript(&once(&caller, "é"), transcript_params(OTHER)).await.unwrap_err();
    assert_eq!((invalid.kind, invalid.status), (ServiceErrorKind::Core(ErrorKind::Invalid), None));

    let german = TranscriptParams { lang: Some("de".to_owned()), ..transcript_params(VIDEO) };
    let none = client.transcript(&caller, german).await.unwrap_err();
    assert_eq!((none.kind, none.status), (ServiceErrorKind::NotFound, Some(404)));
    assert!(none.to_string().contains("en"), "{none}");
    let bad = client.transcript(&caller, TranscriptParams::default()).await.unwrap_err();
    assert_eq!(bad.kind, ServiceErrorKind::BadRequest);
    let fault = client.transcript(&caller, transcript_params(NONE)).await.unwrap_err();
    assert_eq!(fault.kind, ServiceErrorKind::ServerError, "{fault}");
    assert_eq!(client.me(&caller).await?.body.credits_remaining, 198);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn service_chat_answers_and_replays() -> Result<()> {
    let fixture = ServiceFixture::start(&[("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "1000")])?;
    let (client, caller) = create_account(&fixture).await?;
    let question = |video: &str, history| ServiceQuestion {
        reference: VideoReference::Id(video.to_owned()),
        message: "What do the sheep keep short?".to_owned(),
        history,
    };
    let keyed = once(&caller, "question-1");
    let answer = client.chat(&keyed, question(VIDEO, Vec::new())).await?;
    assert!(answer.body.response.contains("The sheep keep the grass short."), "{answer:?}");
    assert_eq!((answer.body.credits.used, answer.body.credits.remaining), (1, 199));
    assert_eq!((answer.meta.credits_remaining, answer.meta.is_cached), (Some(199), Some(false)));
    let again = client.chat(&keyed, question(VIDEO, Vec::new())).await?;
    assert_eq!((again.meta.is_replayed, &again.body), (true, &answer.body));
    let turn = |role, content: &str| ChatTurn { role, content: content.to_owned() };
    let history = vec![turn(ChatRole::User, "Hello."), turn(ChatRole::Assistant, "Hello.")];
    let next = client.chat(&caller, question(VIDEO, history)).await?;
    assert_eq!((next.body.credits.remaining, next.meta.is_cached), (198, Some(true)));
    let long = ServiceQuestion { message: "x".repeat(2_001), ..question(VIDEO, Vec::new()) };
    assert_eq!(client.chat(&caller, long).await.unwrap_err().kind, ServiceErrorKind::BadRequest);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn service_slow_answer_is_charged_once() -> Result<()> {
    let gate = Arc::new(Semaphore::new(0));
    let model_gate = Arc::clone(&gate);
    let model = FakeService::start(move |_, _| {
        let delta = r#"{"choices":[{"index":0,"delta":{"content":"The sheep keep the grass short [s1]."}}]}"#;
        let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
        let body = format!("data: {delta}\n\ndata: {end}\n\ndata: [DONE]\n\n");
        let reply = FakeReply::new(200, "content-type: text/event-stream\r\n", body);
        FakeReply::Gated(Arc::clone(&model_gate), Box::new(reply))
    })
    .await?;
    let fixture = ServiceFixture::start(&[
        ("VERBATIM_CHAT__BASE_URL", model.base_url.as_str()),
        ("VERBATIM_CHAT__MODEL", "small"),
        ("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "1000"),
    ])?;
    let (client, caller) = create_account(&fixture).await?;
    client.transcript(&caller, transcript_params(VIDEO)).await?;
    // The model responds after the client's timeout, and after two more attempts.
    let options = ServiceOptions { timeout: Duration::from_secs(2), ..ServiceOptions::new(fixture.url()) };
    let hasty = ServiceClient::new(&options)?;
    let question = ServiceQuestion {
        reference: VideoReference::Id(VIDEO.to_owned()),
        message: "What do the sheep keep short?".to_owned(),
        history: Vec::new(),
    };
    let release = async {
        tokio::time::sleep(Duration::from_secs(7)).await;
        gate.add_permits(10);
    };
    let (answer, ()) = tokio::join!(hasty.chat(&caller, question), release);
    let answer = answer?;
    assert!(answer.meta.is_replayed && !answer.body.response.is_empty(), "{answer:?}");
    assert_eq!(client.me(&caller).await?.body.credits_remaining, 198);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn service_account_buys_and_rotates_keys() -> Result<()> {
    let fixture = ServiceFixture::start(&[("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "1000")])?;
    let (client, caller) = create_account(&fixture).await?;
    let pack = || BuyCreditsRequest { pack: "2k".to_owned() };
    let keyed = once(&caller, "order-1");
    let page = client.buy_credits(&keyed, pack()).await?.body;
    assert_eq!((page.pack.as_str(), page.credits, page.price_usd), ("2k", 2_000, 20.0));
    assert!(page.checkout_url.starts_with(&fixture.url()), "{page:?}");
    assert!(client.buy_credits(&keyed, pack()).await?.body.checkout_url.starts_with(&fixture.url()));
    let unknown = BuyCreditsRequest { pack: "3k".to_owned() };
    let bad = client.buy_credits(&caller, unknown).await.unwrap_err();
    assert_eq!(bad.kind, ServiceErrorKind::BadRequest, "{bad}");
    let plan = client.subscribe(&caller, SubscribeRequest { plan: "pro".to_owned() }).await?.body;
    assert!(plan.success && plan.checkout_url.starts_with(&fixture.url()), "{plan:?}");

    let rotated = Caller::with_key(client.rotate_key(&caller).await?.body.api_key);
    assert_eq!(client.me(&caller).await.unwrap_err().kind, ServiceErrorKind::Unauthorized);
    assert_eq!(client.me(&rotated).await?.body.email, "ann@example.org");

    // Verification for an address that has an account replaces the account's key, so it needs a confirmation.
    let mut outbox = MailClient::new(&fixture.data);
    client.register(&rotated, registration()).await?;
    let token = token_from(&outbox.next().await?)?;
    let verify = |confirmed| client.verify(&rotated, token.clone(), confirmed);
    assert_eq!(verify(false).await.unwrap_err().kind, ServiceErrorKind::Conflict);
    let verified = verify(true).await?.body;
    assert_eq!(client.me(&rotated).await.unwrap_err().kind, ServiceErrorKind::Unauthorized);
    let verified = Caller::with_key(verified.api_key);
    assert_eq!(client.me(&verified).await?.body.credits_remaining, 200);
    assert_eq!(verify(false).await.unwrap_err().kind, ServiceErrorKind::BadRequest);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn service_spent_credits_and_rate_report_remaining() -> Result<()> {
    let fixture = ServiceFixture::start(&[
        ("VERBATIM_PLANS__FREE__CREDITS", "1"),
        ("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "3"),
    ])?;
    let (client, caller) = create_account(&fixture).await?;
    let paid = client.transcript(&caller, transcript_params(VIDEO)).await?;
    assert_eq!(paid.meta.credits_remaining, Some(0));
    let spent = client.transcript(&caller, transcript_params(OTHER)).await.unwrap_err();
    assert_eq!((spent.kind, spent.status), (ServiceErrorKind::PaymentRequired, Some(402)));
    assert_eq!(spent.meta.credits_remaining, Some(0));
    client.me(&caller).await?;
    let limited = client.me(&caller).await.unwrap_err();
    assert_eq!((limited.kind, limited.status), (ServiceErrorKind::RateLimited, Some(429)));
    // A wait of a minute is left to the caller.
    assert!(limited.retry_after().context("no wait")?.as_secs() > 10, "{limited:?}");
    assert_eq!(limited.meta.rate.as_ref().map(|rate| rate.remaining), Some(0));
    Ok(())
}
