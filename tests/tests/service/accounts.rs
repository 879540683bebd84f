//! The client's Surface B against the built server.

use anyhow::{Context as _, Result};
use transcript_core::{
    accounts::TranscriptAsk,
    wire::v1::{BuyCredits, ChatQuestion, ChatRole, ChatTurn, Register, Subscribe},
};
use upstream_reqwest::service::{IdempotencyKey, RefusalKind, ServiceClient};

use super::stage::{NONE, OTHER, Stage, VIDEO};
use crate::server::{
    platform::fetches,
    v1::post::{Outbox, token},
};

fn of(video: &str) -> TranscriptAsk {
    TranscriptAsk { video_id: Some(video.to_owned()), ..TranscriptAsk::default() }
}

fn ann() -> Register {
    Register { email: "ann@example.org".to_owned() }
}

/// A client with the key of a new account.
async fn account(stage: &Stage) -> Result<ServiceClient> {
    let (client, mut outbox) = (stage.client()?, Outbox::of(&stage.data));
    assert!(client.register(&ann()).await?.body.success);
    let verified = client.verify(&token(&outbox.next().await?)?).await?.body;
    assert_eq!((verified.success, verified.plan.as_str()), (true, "free"));
    Ok(client.with_key(&verified.api_key)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn from_an_address_to_transcripts() -> Result<()> {
    let stage = Stage::with(&[("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "1000")])?;
    let client = account(&stage).await?;
    let me = client.me().await?;
    assert_eq!((me.body.email.as_str(), me.body.credits_remaining), ("ann@example.org", 200));
    let rate = me.facts.rate.context("no RateLimit")?;
    assert_eq!((rate.name.as_str(), rate.limit, rate.remaining), ("account", Some(1_000), 999));

    let name = IdempotencyKey::random();
    let miss = client.transcript(&of(VIDEO), Some(name.clone())).await?;
    assert_eq!((miss.facts.is_cached, miss.facts.credits_remaining), (Some(false), Some(199)));
    assert_eq!((miss.body.language.as_str(), miss.body.is_generated), ("en", false));
    assert_eq!((miss.body.title.as_str(), miss.body.segments.len()), ("A walk along the dyke", 3));
    // The same request under the same name is the same answer, and free.
    let again = client.transcript(&of(VIDEO), Some(name.clone())).await?;
    assert_eq!((again.facts.is_replayed, &again.body), (true, &miss.body));
    let hit = client.transcript(&of(VIDEO), None).await?;
    assert_eq!(
        (hit.facts.is_cached, hit.facts.credits_remaining, hit.facts.is_replayed),
        (Some(true), Some(198), false)
    );
    assert_eq!(fetches(&stage.proxy, VIDEO), 1);
    // Under a name that was used for another request it is refused, and not asked again.
    let other = client.transcript(&of(OTHER), Some(name)).await.unwrap_err();
    assert_eq!(other.kind(), Some(RefusalKind::BadRequest), "{other}");

    let german = TranscriptAsk { lang: Some("de".to_owned()), ..of(VIDEO) };
    let none = client.transcript(&german, None).await.unwrap_err();
    assert_eq!((none.kind(), none.refusal().map(|no| no.status)), (Some(RefusalKind::NotFound), Some(404)));
    assert!(none.to_string().contains("en"), "{none}");
    let bad = client.transcript(&TranscriptAsk::default(), None).await.unwrap_err();
    assert_eq!(bad.kind(), Some(RefusalKind::BadRequest));
    let fault = client.transcript(&of(NONE), None).await.unwrap_err();
    assert_eq!(fault.kind(), Some(RefusalKind::Fault), "{fault}");
    assert_eq!(client.me().await?.body.credits_remaining, 198);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_about_a_video() -> Result<()> {
    let stage = Stage::with(&[("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "1000")])?;
    let client = account(&stage).await?;
    let ask = |video: &str, history| ChatQuestion {
        video_id: video.to_owned(),
        message: "What do the sheep keep short?".to_owned(),
        conversation_history: history,
    };
    let name = IdempotencyKey::random();
    let answer = client.chat(&ask(VIDEO, None), Some(name.clone())).await?;
    assert!(answer.body.response.contains("The sheep keep the grass short."), "{answer:?}");
    assert_eq!((answer.body.credits.used, answer.body.credits.remaining), (1, 199));
    assert_eq!((answer.facts.credits_remaining, answer.facts.is_cached), (Some(199), Some(false)));
    let again = client.chat(&ask(VIDEO, None), Some(name)).await?;
    assert_eq!((again.facts.is_replayed, &again.body), (true, &answer.body));
    let turn = |role, content: &str| ChatTurn { role, content: content.to_owned() };
    let history = vec![turn(ChatRole::User, "Hello."), turn(ChatRole::Assistant, "Hello.")];
    let next = client.chat(&ask(VIDEO, Some(history)), None).await?;
    assert_eq!((next.body.credits.remaining, next.facts.is_cached), (198, Some(true)));
    let long = ChatQuestion { message: "x".repeat(2_001), ..ask(VIDEO, None) };
    assert_eq!(client.chat(&long, None).await.unwrap_err().kind(), Some(RefusalKind::BadRequest));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_packs_and_keys() -> Result<()> {
    let stage = Stage::with(&[("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "1000")])?;
    let client = account(&stage).await?;
    let pack = BuyCredits { pack: "2k".to_owned() };
    let name = IdempotencyKey::new("order-1")?;
    let page = client.buy_credits(&pack, Some(name.clone())).await?.body;
    assert_eq!((page.pack.as_str(), page.credits, page.price_usd), ("2k", 2_000, 20.0));
    assert!(page.checkout_url.starts_with(&stage.url()), "{page:?}");
    assert!(client.buy_credits(&pack, Some(name)).await?.body.checkout_url.starts_with(&stage.url()));
    let bad = client.buy_credits(&BuyCredits { pack: "3k".to_owned() }, None).await.unwrap_err();
    assert_eq!(bad.kind(), Some(RefusalKind::BadRequest), "{bad}");
    let plan = client.subscribe(&Subscribe { plan: "pro".to_owned() }, None).await?.body;
    assert!(plan.success && plan.checkout_url.starts_with(&stage.url()), "{plan:?}");

    let rotated = client.rotate_key().await?.body;
    assert_eq!(client.me().await.unwrap_err().kind(), Some(RefusalKind::Unauthorized));
    let client = client.with_key(&rotated.api_key)?;
    assert_eq!(client.me().await?.body.email, "ann@example.org");

    // A link for an address that has an account ends the key that it has: only when that is meant.
    let mut outbox = Outbox::of(&stage.data);
    client.register(&ann()).await?;
    let token = token(&outbox.next().await?)?;
    assert_eq!(client.verify(&token).await.unwrap_err().kind(), Some(RefusalKind::Conflict));
    let verified = client.verify_confirmed(&token).await?.body;
    assert_eq!(client.me().await.unwrap_err().kind(), Some(RefusalKind::Unauthorized));
    assert_eq!(client.with_key(&verified.api_key)?.me().await?.body.credits_remaining, 200);
    assert_eq!(client.verify(&token).await.unwrap_err().kind(), Some(RefusalKind::BadRequest));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn spent_credits_and_a_spent_rate_are_told_with_what_is_left() -> Result<()> {
    let stage = Stage::with(&[
        ("VERBATIM_PLANS__FREE__CREDITS", "1"),
        ("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "3"),
    ])?;
    let client = account(&stage).await?;
    assert_eq!(client.transcript(&of(VIDEO), None).await?.facts.credits_remaining, Some(0));
    let spent = client.transcript(&of(OTHER), None).await.unwrap_err();
    let refusal = spent.refusal().context("no refusal")?;
    assert_eq!((refusal.kind, refusal.status), (RefusalKind::PaymentRequired, 402));
    assert_eq!(refusal.facts.credits_remaining, Some(0));
    client.me().await?;
    let limited = client.me().await.unwrap_err();
    let refusal = limited.refusal().context("no refusal")?;
    assert_eq!((refusal.kind, refusal.status), (RefusalKind::RateLimited, 429));
    // A wait of a minute is the caller's to decide on.
    assert!(limited.retry_after().context("no wait")?.as_secs() > 10, "{limited:?}");
    assert_eq!(refusal.facts.rate.as_ref().map(|rate| rate.remaining), Some(0));
    Ok(())
}
