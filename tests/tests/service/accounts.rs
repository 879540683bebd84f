//! The client's v1 API against the built server.

use anyhow::{Context as _, Result};
use transcript_core::{
    accounts::TranscriptParams,
    wire::v1::{BuyCreditsRequest, ChatQuestion, ChatRole, ChatTurn, RegisterRequest, SubscribeRequest},
};
use upstream_reqwest::service::{IdempotencyKey, RejectionKind, ServiceClient};

use super::fixture::{NONE, OTHER, ServiceFixture, VIDEO};
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

/// A client with the key of a new account.
async fn create_account_client(fixture: &ServiceFixture) -> Result<ServiceClient> {
    let (client, mut outbox) = (fixture.client()?, MailClient::new(&fixture.data));
    assert!(client.register(&registration()).await?.body.success);
    let verified = client.verify(&token_from(&outbox.next().await?)?).await?.body;
    assert_eq!((verified.success, verified.plan.as_str()), (true, "free"));
    Ok(client.with_key(&verified.api_key)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn service_account_registers_and_gets_transcripts() -> Result<()> {
    let fixture = ServiceFixture::start(&[("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "1000")])?;
    let client = create_account_client(&fixture).await?;
    let me = client.me().await?;
    assert_eq!((me.body.email.as_str(), me.body.credits_remaining), ("ann@example.org", 200));
    let rate = me.meta.rate.context("no RateLimit")?;
    assert_eq!((rate.name.as_str(), rate.limit, rate.remaining), ("account", Some(1_000), 999));

    let idempotency_key = IdempotencyKey::random();
    let miss = client.transcript(&transcript_params(VIDEO), Some(idempotency_key.clone())).await?;
    assert_eq!((miss.meta.is_cached, miss.meta.credits_remaining), (Some(false), Some(199)));
    assert_eq!((miss.body.language.as_str(), miss.body.is_generated), ("en", false));
    assert_eq!((miss.body.title.as_str(), miss.body.segments.len()), ("A walk along the dyke", 3));
    // The same request with the same idempotency key gets the stored response, without a charge.
    let again = client.transcript(&transcript_params(VIDEO), Some(idempotency_key.clone())).await?;
    assert_eq!((again.meta.is_replayed, &again.body), (true, &miss.body));
    let hit = client.transcript(&transcript_params(VIDEO), None).await?;
    assert_eq!(
        (hit.meta.is_cached, hit.meta.credits_remaining, hit.meta.is_replayed),
        (Some(true), Some(198), false)
    );
    assert_eq!(fetch_count(&fixture.proxy, VIDEO), 1);
    // Another request with that idempotency key is rejected and not retried.
    let other = client.transcript(&transcript_params(OTHER), Some(idempotency_key)).await.unwrap_err();
    assert_eq!(other.kind(), Some(RejectionKind::BadRequest), "{other}");

    let german = TranscriptParams { lang: Some("de".to_owned()), ..transcript_params(VIDEO) };
    let none = client.transcript(&german, None).await.unwrap_err();
    assert_eq!(
        (none.kind(), none.rejection().map(|no| no.status)),
        (Some(RejectionKind::NotFound), Some(404))
    );
    assert!(none.to_string().contains("en"), "{none}");
    let bad = client.transcript(&TranscriptParams::default(), None).await.unwrap_err();
    assert_eq!(bad.kind(), Some(RejectionKind::BadRequest));
    let fault = client.transcript(&transcript_params(NONE), None).await.unwrap_err();
    assert_eq!(fault.kind(), Some(RejectionKind::ServerError), "{fault}");
    assert_eq!(client.me().await?.body.credits_remaining, 198);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn service_chat_answers_and_replays() -> Result<()> {
    let fixture = ServiceFixture::start(&[("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "1000")])?;
    let client = create_account_client(&fixture).await?;
    let question = |video: &str, history| ChatQuestion {
        video_id: video.to_owned(),
        message: "What do the sheep keep short?".to_owned(),
        conversation_history: history,
    };
    let idempotency_key = IdempotencyKey::random();
    let answer = client.chat(&question(VIDEO, None), Some(idempotency_key.clone())).await?;
    assert!(answer.body.response.contains("The sheep keep the grass short."), "{answer:?}");
    assert_eq!((answer.body.credits.used, answer.body.credits.remaining), (1, 199));
    assert_eq!((answer.meta.credits_remaining, answer.meta.is_cached), (Some(199), Some(false)));
    let again = client.chat(&question(VIDEO, None), Some(idempotency_key)).await?;
    assert_eq!((again.meta.is_replayed, &again.body), (true, &answer.body));
    let turn = |role, content: &str| ChatTurn { role, content: content.to_owned() };
    let history = vec![turn(ChatRole::User, "Hello."), turn(ChatRole::Assistant, "Hello.")];
    let next = client.chat(&question(VIDEO, Some(history)), None).await?;
    assert_eq!((next.body.credits.remaining, next.meta.is_cached), (198, Some(true)));
    let long = ChatQuestion { message: "x".repeat(2_001), ..question(VIDEO, None) };
    assert_eq!(client.chat(&long, None).await.unwrap_err().kind(), Some(RejectionKind::BadRequest));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn service_account_buys_and_rotates_keys() -> Result<()> {
    let fixture = ServiceFixture::start(&[("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "1000")])?;
    let client = create_account_client(&fixture).await?;
    let pack = BuyCreditsRequest { pack: "2k".to_owned() };
    let idempotency_key = IdempotencyKey::new("order-1")?;
    let page = client.buy_credits(&pack, Some(idempotency_key.clone())).await?.body;
    assert_eq!((page.pack.as_str(), page.credits, page.price_usd), ("2k", 2_000, 20.0));
    assert!(page.checkout_url.starts_with(&fixture.url()), "{page:?}");
    assert!(
        client.buy_credits(&pack, Some(idempotency_key)).await?.body.checkout_url.starts_with(&fixture.url())
    );
    let bad = client.buy_credits(&BuyCreditsRequest { pack: "3k".to_owned() }, None).await.unwrap_err();
    assert_eq!(bad.kind(), Some(RejectionKind::BadRequest), "{bad}");
    let plan = client.subscribe(&SubscribeRequest { plan: "pro".to_owned() }, None).await?.body;
    assert!(plan.success && plan.checkout_url.starts_with(&fixture.url()), "{plan:?}");

    let rotated = client.rotate_key().await?.body;
    assert_eq!(client.me().await.unwrap_err().kind(), Some(RejectionKind::Unauthorized));
    let client = client.with_key(&rotated.api_key)?;
    assert_eq!(client.me().await?.body.email, "ann@example.org");

    // Verification for an address that has an account replaces the account's key, so it needs a confirmation.
    let mut outbox = MailClient::new(&fixture.data);
    client.register(&registration()).await?;
    let token = token_from(&outbox.next().await?)?;
    assert_eq!(client.verify(&token).await.unwrap_err().kind(), Some(RejectionKind::Conflict));
    let verified = client.verify_confirmed(&token).await?.body;
    assert_eq!(client.me().await.unwrap_err().kind(), Some(RejectionKind::Unauthorized));
    assert_eq!(client.with_key(&verified.api_key)?.me().await?.body.credits_remaining, 200);
    assert_eq!(client.verify(&token).await.unwrap_err().kind(), Some(RejectionKind::BadRequest));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn service_spent_credits_and_rate_report_remaining() -> Result<()> {
    let fixture = ServiceFixture::start(&[
        ("VERBATIM_PLANS__FREE__CREDITS", "1"),
        ("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "3"),
    ])?;
    let client = create_account_client(&fixture).await?;
    assert_eq!(client.transcript(&transcript_params(VIDEO), None).await?.meta.credits_remaining, Some(0));
    let spent = client.transcript(&transcript_params(OTHER), None).await.unwrap_err();
    let rejection = spent.rejection().context("no rejection")?;
    assert_eq!((rejection.kind, rejection.status), (RejectionKind::PaymentRequired, 402));
    assert_eq!(rejection.meta.credits_remaining, Some(0));
    client.me().await?;
    let limited = client.me().await.unwrap_err();
    let rejection = limited.rejection().context("no rejection")?;
    assert_eq!((rejection.kind, rejection.status), (RejectionKind::RateLimited, 429));
    // A wait of a minute is left to the caller.
    assert!(limited.retry_after().context("no wait")?.as_secs() > 10, "{limited:?}");
    assert_eq!(rejection.meta.rate.as_ref().map(|rate| rate.remaining), Some(0));
    Ok(())
}
