use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Notify;
use transcript_core::{
    supplier::{Ask, Supplied, Supplier, SupplierCard, SupplierKind, SupplyError, Watcher},
    transcript::{Segment, TrackInfo, TrackKind, Transcript},
};

use super::*;
use crate::{Options, OwnParts, SupplierOptions};

async fn get(link: &str, language: Option<&str>) -> Result<GetOutcome> {
    let options = Options { suppliers: SupplierOptions::none(), ..Options::default() };
    let verbatim = Verbatim::open(options).await.unwrap();
    verbatim.get(Get { link: link.to_owned(), language: language.map(str::to_owned) }).await
}

#[tokio::test]
async fn a_wrong_link_or_language_is_invalid() {
    for (link, language) in [
        ("", None),
        ("https://example.org/", None),
        ("https://www.youtube.com/@someone", None),
        ("dQw4w9WgXcQ", Some("no language")),
    ] {
        let error = get(link, language).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{link} {language:?}");
    }
}

#[tokio::test]
async fn without_a_supplier_the_reason_and_the_watch_address_are_told() {
    for (link, watch_url) in [
        ("https://youtu.be/dQw4w9WgXcQ", "http://127.0.0.1:8080/watch/video_site/dQw4w9WgXcQ"),
        ("https://www.instagram.com/reel/Cabc123/", "http://127.0.0.1:8080/watch/reels/Cabc123"),
        ("https://vm.tiktok.com/ZMabcdef/", "http://127.0.0.1:8080/watch/short_video/vm:ZMabcdef"),
        (
            "https://www.instagram.com/share/reel/BAabc123/",
            "http://127.0.0.1:8080/watch/reels/share-reel:BAabc123",
        ),
    ] {
        let GetOutcome::Missing(missing) = get(link, None).await.unwrap() else { panic!("{link}") };
        assert_eq!((missing.reason, missing.watch_url.as_str()), (FailureReason::ConfigError, watch_url));
        assert!(missing.message.ends_with('.'), "{missing:?}");
    }
}

#[test]
fn a_store_is_never_the_fault_of_the_link() {
    assert_eq!(fault(Error::invalid("x")).kind(), ErrorKind::Unexpected);
    assert_eq!(fault(Error::unavailable("x")).kind(), ErrorKind::Unavailable);
}

/// Says when it was asked, and when its work was dropped; answers when it is told to.
#[derive(Debug)]
struct Slow {
    asked: Notify,
    dropped: Arc<Notify>,
    go: Notify,
}

#[async_trait]
impl Supplier for Slow {
    fn card(&self) -> SupplierCard {
        SupplierCard {
            name: "slow".to_owned(),
            platforms: vec![Platform::VideoSite],
            kind: SupplierKind::Captions,
        }
    }

    async fn supply(&self, ask: Ask, _: Arc<dyn Watcher>) -> Result<Supplied, SupplyError> {
        struct Dropped(Arc<Notify>);
        impl Drop for Dropped {
            fn drop(&mut self) {
                self.0.notify_one();
            }
        }
        let _dropped = Dropped(Arc::clone(&self.dropped));
        self.asked.notify_one();
        self.go.notified().await;
        let transcript = Transcript {
            video: ask.video,
            title: None,
            author: None,
            duration_ms: None,
            track: TrackInfo::new(LanguageTag::english(), TrackKind::Human),
            source: "slow".to_owned(),
            segments: vec![Segment::new("Hello.", 0, 1_000)],
        };
        Ok(Supplied { tracks: vec![transcript], known_tracks: Vec::new() })
    }
}

async fn with_slow(outlives: bool) -> (Verbatim, Arc<Slow>) {
    let slow = Arc::new(Slow { asked: Notify::new(), dropped: Arc::default(), go: Notify::new() });
    let mut suppliers = SupplierOptions::none();
    suppliers.add_own(slow.as_ref());
    let own = OwnParts { suppliers: vec![Arc::clone(&slow) as _], ..OwnParts::default() };
    (Verbatim::open(Options { suppliers, own, outlives, ..Options::default() }).await.unwrap(), slow)
}

fn begin(verbatim: &Verbatim) -> tokio::task::JoinHandle<Result<GetOutcome>> {
    let verbatim = verbatim.clone();
    tokio::spawn(async move {
        verbatim.get(Get { link: "https://youtu.be/dQw4w9WgXcQ".to_owned(), language: None }).await
    })
}

#[tokio::test(start_paused = true)]
async fn work_that_nobody_waits_for_ends_where_it_is_to() {
    let (verbatim, slow) = with_slow(false).await;
    let leaves = begin(&verbatim);
    slow.asked.notified().await;
    leaves.abort();
    slow.dropped.notified().await;
    // Nothing is left of it: whoever comes next is served.
    let stays = begin(&verbatim);
    slow.asked.notified().await;
    slow.go.notify_one();
    assert!(matches!(stays.await.unwrap().unwrap(), GetOutcome::Found(Found { from_cache: false, .. })));
}

#[tokio::test(start_paused = true)]
async fn work_outlives_who_left_where_others_wait_or_it_is_to() {
    for outlives in [false, true] {
        let (verbatim, slow) = with_slow(outlives).await;
        let leaves = begin(&verbatim);
        slow.asked.notified().await;
        let stays = (!outlives).then(|| begin(&verbatim));
        // The one who stays is in line before the other leaves.
        tokio::task::yield_now().await;
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        leaves.abort();
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        slow.go.notify_one();
        match stays {
            Some(stays) => assert!(matches!(stays.await.unwrap().unwrap(), GetOutcome::Found(_))),
            None => verbatim.transcripts().close().await,
        }
        let again = begin(&verbatim).await.unwrap().unwrap();
        assert!(matches!(again, GetOutcome::Found(Found { from_cache: true, .. })));
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_waited_for_long_enough_is_told_what_becomes_of_the_work() {
    for outlives in [false, true] {
        let (verbatim, slow) = with_slow(outlives).await;
        let GetOutcome::Missing(missing) = begin(&verbatim).await.unwrap().unwrap() else {
            panic!("nothing was supplied");
        };
        assert_eq!(missing.reason, FailureReason::FetchError);
        assert_eq!(missing.message.contains("still being transcribed"), outlives, "{}", missing.message);
        if outlives {
            slow.go.notify_one();
            verbatim.transcripts().close().await;
            assert!(matches!(begin(&verbatim).await.unwrap().unwrap(), GetOutcome::Found(_)));
        } else {
            assert!(missing.message.contains("more time"), "{}", missing.message);
            slow.dropped.notified().await;
        }
    }
}
