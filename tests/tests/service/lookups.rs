//! The client's lookup API against the built server.

use anyhow::{Context as _, Result, ensure};
use transcript_core::{
    ErrorKind,
    lookup::{AttributionTag, EntitlementProof, FailureReason},
    service::{Caller, Service as _, ServiceErrorKind, ServiceLookup, TextFormat, TextResponse},
    transcript::LanguageTag,
    wire::lookup::KeyRequest,
};

use super::fixture::{NONE, OTHER, ServiceFixture, VIDEO, link};
use crate::server::platform::fetch_count;

const UNKNOWN: &str = "vbk_000000000000000000000000000000000000";

#[tokio::test(flavor = "multi_thread")]
async fn service_lookup_misses_fetches_and_hits() -> Result<()> {
    let fixture = ServiceFixture::start(&[])?;
    let client = fixture.client()?;
    let lookup = || ServiceLookup::url(link(VIDEO));
    let anonymous = Caller { src: Some(AttributionTag::McpOther), ..Caller::default() };
    let miss = client.look_up(&anonymous, lookup()).await?;
    // The URL is exactly the server's.
    let watch_url = format!("{}/watch/video_site/{VIDEO}?src=mcp_other", fixture.url());
    assert_eq!((miss.body.transcript.is_some(), &miss.body.result.watch_url), (false, &watch_url));
    let reason = miss.body.result.failure_reason.as_deref();
    assert_eq!(reason, Some(FailureReason::NeedsVerification.as_str()));
    assert!(miss.meta.request_id.is_some() && miss.meta.language.is_none());
    assert_eq!(fetch_count(&fixture.proxy, VIDEO), 0);

    let keyed = Caller::with_key(fixture.key()?);
    // Without permission to fetch, the key is not sent.
    let archived = client.look_up(&keyed, ServiceLookup { may_fetch: false, ..lookup() }).await?.body;
    assert!(archived.transcript.is_none() && archived.result.key.is_none(), "{archived:?}");
    let german = ServiceLookup { language: LanguageTag::parse("de").ok(), ..lookup() };
    let missing = client.look_up(&keyed, german).await?.body.result;
    assert_eq!(missing.failure_reason.as_deref(), Some(FailureReason::NoCaptions.as_str()), "{missing:?}");
    assert_eq!(missing.key.map(|key| key.used), Some(0));
    let before = fetch_count(&fixture.proxy, VIDEO);
    let fetched = client.look_up(&keyed, ServiceLookup::id(VIDEO)).await?;
    let stored = fetched.body.transcript.context("no transcript")?;
    assert!(!fetched.body.result.from_cache && fetched.body.result.transcript.is_empty());
    assert_eq!(stored.transcript.source, "youtube-captions");
    assert_eq!(fetched.body.result.key.as_ref().map(|key| key.used), Some(1));
    assert_eq!(
        (fetched.meta.language.clone(), fetched.meta.is_generated),
        (Some(LanguageTag::english()), Some(false))
    );
    assert_eq!(stored.transcript.segments[0].text, format!("This is {VIDEO}."));

    let hit = client.look_up(&anonymous, lookup()).await?.body;
    let hit_segments = hit.transcript.map(|stored| stored.transcript.segments.clone());
    assert_eq!((hit.result.from_cache, hit_segments), (true, Some(stored.transcript.segments.clone())));
    assert_eq!(fetch_count(&fixture.proxy, VIDEO), before + 1);
    let status = client.key_status(&keyed).await?.body;
    assert_eq!((status.usage.used, status.usage.remaining), (1, 24));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn service_text_lookup_supports_every_format() -> Result<()> {
    let fixture = ServiceFixture::start(&[("VERBATIM_LIMITS__FREE_PER_MONTH", "1")])?;
    let (client, caller) = (fixture.client()?, Caller::with_key(fixture.key()?));
    for (format, begins) in [
        (TextFormat::Text, "This is dyke-walk-0. The sheep"),
        (TextFormat::Markdown, "# A walk along the dyke"),
        (TextFormat::Srt, "1\n00:00:00,500 --> "),
        (TextFormat::WebVtt, "WEBVTT\n\n00:00:00.500"),
    ] {
        let answer = client.text(&caller, ServiceLookup::id(VIDEO), format).await?;
        let TextResponse::Text(text) = answer.body else { panic!("{format:?}: {answer:?}") };
        assert!(text.starts_with(begins), "{format:?}: {text}");
    }
    let spent = client.text(&caller, ServiceLookup::id(OTHER), TextFormat::Text).await?.body;
    let watch_url = format!("{}/watch/video_site/{OTHER}", fixture.url());
    let TextResponse::Missing { is_allowance_spent: true, message, watch_url: reported_url } = &spent else {
        panic!("{spent:?}")
    };
    assert!(*reported_url == watch_url && message.contains("allowance"), "{spent:?}");
    let json = client.look_up(&caller, ServiceLookup::id(OTHER)).await?.body;
    assert_eq!(json.result.failure_reason.as_deref(), Some("key_allowance"));
    let anonymous = Caller::default();
    let unkeyed = client.text(&anonymous, ServiceLookup::id(NONE), TextFormat::WebVtt).await?.body;
    ensure!(
        matches!(&unkeyed, TextResponse::Missing { is_allowance_spent: false, watch_url, .. } if watch_url.ends_with(NONE)),
        "{unkeyed:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn service_keys_are_created_and_rejected() -> Result<()> {
    let fixture = ServiceFixture::start(&[("VERBATIM_LIMITS__MINT_PER_NETWORK_PER_DAY", "1")])?;
    let client = fixture.client()?;
    let request = || KeyRequest { label: Some("laptop".to_owned()), email: None };
    let anonymous = Caller::default();
    let made = client.create_key(&anonymous, request()).await?.body;
    assert_eq!((made.status.label.as_deref(), made.status.usage.plan.as_str()), (Some("laptop"), "free"));
    assert!(!format!("{made:?}").contains(&made.key));
    let keyed = Caller::with_key(made.key.clone());
    assert!(!format!("{keyed:?}").contains(made.key.trim_start_matches("vbk_")), "{keyed:?}");
    // An invalid entitlement leaves the key unchanged.
    let proven = |proof: &str| Caller { proof: Some(EntitlementProof::new(proof)), ..keyed.clone() };
    assert_eq!(client.key_status(&proven("no.such.token")).await?.body.id, made.status.id);
    let unsent = client.key_status(&proven("no\ntoken")).await.unwrap_err();
    assert_eq!(unsent.kind, ServiceErrorKind::Core(ErrorKind::Invalid));

    let limited = client.create_key(&anonymous, request()).await.unwrap_err();
    assert_eq!(limited.kind, ServiceErrorKind::RateLimited);
    assert!(limited.retry_after().context("no wait")?.as_secs() > 0);
    for stranger in [anonymous.clone(), Caller::with_key(UNKNOWN)] {
        let refused = client.key_status(&stranger).await.unwrap_err();
        assert_eq!((refused.kind, refused.status), (ServiceErrorKind::Unauthorized, Some(401)));
    }
    let bad = client.look_up(&anonymous, ServiceLookup::url("https://example.org/")).await.unwrap_err();
    assert_eq!(bad.kind, ServiceErrorKind::BadRequest);
    assert!(bad.to_string().starts_with("url: "), "{bad}");
    Ok(())
}
