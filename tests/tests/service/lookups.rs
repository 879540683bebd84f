//! The client's lookup API against the built server.

use anyhow::{Context as _, Result, ensure};
use transcript_core::{
    lookup::{AttributionTag, FailureReason},
    transcript::LanguageTag,
    wire::lookup::KeyRequest,
};
use upstream_reqwest::service::{RejectionKind, ServiceLookup, TextFormat, TextResponse};

use super::fixture::{NONE, OTHER, ServiceFixture, VIDEO, link};
use crate::server::platform::fetch_count;

const UNKNOWN: &str = "vbk_000000000000000000000000000000000000";

#[tokio::test(flavor = "multi_thread")]
async fn service_lookup_misses_fetches_and_hits() -> Result<()> {
    let fixture = ServiceFixture::start(&[])?;
    let client = fixture.client()?;
    let request = ServiceLookup { src: Some(AttributionTag::McpOther), ..ServiceLookup::url(link(VIDEO)) };
    let miss = client.look_up(&request).await?;
    // The URL is exactly the server's.
    let watch_url = format!("{}/watch/video_site/{VIDEO}?src=mcp_other", fixture.url());
    assert_eq!((miss.body.available, &miss.body.watch_url), (false, &watch_url));
    assert_eq!(miss.body.failure_reason.as_deref(), Some(FailureReason::NeedsVerification.as_str()));
    assert!(miss.meta.request_id.is_some() && miss.meta.language.is_none());
    assert_eq!(fetch_count(&fixture.proxy, VIDEO), 0);

    let keyed = client.with_key(&fixture.key()?)?;
    let fetched = keyed.look_up(&ServiceLookup::id(VIDEO)).await?;
    assert!(fetched.body.available && !fetched.body.from_cache);
    assert_eq!(fetched.body.source.as_deref(), Some("youtube-captions"));
    assert_eq!(fetched.body.key.as_ref().map(|key| key.used), Some(1));
    assert_eq!(
        (fetched.meta.language.clone(), fetched.meta.is_generated),
        (Some(LanguageTag::english()), Some(false))
    );
    assert_eq!(fetched.body.transcript[0].text, format!("This is {VIDEO}."));

    let hit = client.look_up(&request).await?;
    assert_eq!((hit.body.from_cache, &hit.body.transcript), (true, &fetched.body.transcript));
    assert_eq!(fetch_count(&fixture.proxy, VIDEO), 1);
    let status = keyed.key_status(None).await?.body;
    assert_eq!((status.usage.used, status.usage.remaining), (1, 24));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn service_text_lookup_supports_every_format() -> Result<()> {
    let fixture = ServiceFixture::start(&[("VERBATIM_LIMITS__FREE_PER_MONTH", "1")])?;
    let client = fixture.client()?.with_key(&fixture.key()?)?;
    for (format, begins) in [
        (TextFormat::Text, "This is dyke-walk-0. The sheep"),
        (TextFormat::Markdown, "# A walk along the dyke"),
        (TextFormat::Srt, "1\n00:00:00,500 --> "),
        (TextFormat::WebVtt, "WEBVTT\n\n00:00:00.500"),
    ] {
        let answer = client.look_up_text(&ServiceLookup::id(VIDEO), format).await?;
        let TextResponse::Text(text) = answer.body else { panic!("{format:?}: {answer:?}") };
        assert!(text.starts_with(begins), "{format:?}: {text}");
    }
    let spent = client.look_up_text(&ServiceLookup::id(OTHER), TextFormat::Text).await?.body;
    let watch_url = format!("{}/watch/video_site/{OTHER}", fixture.url());
    let TextResponse::Missing { is_allowance_spent: true, message, watch_url: reported_url } = &spent else {
        panic!("{spent:?}")
    };
    assert!(*reported_url == watch_url && message.contains("allowance"), "{spent:?}");
    let json = client.look_up(&ServiceLookup::id(OTHER)).await?.body;
    assert_eq!(json.failure_reason.as_deref(), Some("key_allowance"));
    let unkeyed = fixture.client()?.look_up_text(&ServiceLookup::id(NONE), TextFormat::WebVtt).await?.body;
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
    let request = KeyRequest { label: Some("laptop".to_owned()), email: None };
    let made = client.create_key(&request, None).await?.body;
    assert_eq!((made.status.label.as_deref(), made.status.usage.plan.as_str()), (Some("laptop"), "free"));
    assert!(!format!("{made:?}").contains(&made.key));
    let keyed = client.with_key(&made.key)?;
    assert!(!format!("{keyed:?}").contains(made.key.trim_start_matches("vbk_")), "{keyed:?}");
    // An invalid entitlement leaves the key unchanged.
    assert_eq!(keyed.key_status(Some("no.such.token")).await?.body.id, made.status.id);
    assert!(keyed.key_status(Some("no\ntoken")).await.is_err());

    let limited = client.create_key(&request, None).await.unwrap_err();
    assert_eq!(limited.kind(), Some(RejectionKind::RateLimited));
    assert!(limited.retry_after().context("no wait")?.as_secs() > 0);
    for stranger in [client.clone(), client.with_key(UNKNOWN)?] {
        let refused = stranger.key_status(None).await.unwrap_err();
        assert_eq!(
            (refused.kind(), refused.rejection().map(|no| no.status)),
            (Some(RejectionKind::Unauthorized), Some(401))
        );
    }
    let bad = client.look_up(&ServiceLookup::url("https://example.org/")).await.unwrap_err();
    assert_eq!(bad.kind(), Some(RejectionKind::BadRequest));
    assert!(bad.to_string().starts_with("url: "), "{bad}");
    Ok(())
}
