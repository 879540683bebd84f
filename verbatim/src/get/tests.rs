use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Notify;
use transcript_core::{
    supplier::{
        Supplier, SupplierInfo, SupplyError, SupplyMonitor, SupplyOutput, SupplyReason, SupplyRequest,
    },
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
};

use super::*;
use crate::{CustomPorts, Options, SupplierOptions, Verbatim};

/// Human captions in English with these segments.
pub(crate) fn test_transcript(segments: Vec<Segment>) -> Transcript {
    Transcript {
        video: VideoId::new(Platform::YouTube, "dQw4w9WgXcQ").unwrap(),
        title: None,
        author: None,
        duration_ms: None,
        track: TrackInfo::new(LanguageTag::english(), TrackKind::Human),
        source: "test".to_owned(),
        segments,
    }
}

async fn get(link: &str, language: Option<&str>) -> Result<GetOutcome> {
    let options = Options { suppliers: SupplierOptions::none(), ..Options::default() };
    let verbatim = Verbatim::open(options).await.unwrap();
    verbatim
        .get(GetRequest {
            link: link.to_owned(),
            language: language.map(str::to_owned),
            ..GetRequest::default()
        })
        .await
}

#[tokio::test]
async fn get_wrong_link_or_language_is_invalid() {
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
async fn get_without_supplier_returns_reason_and_watch_url() {
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

/// Fails with the error of a cable.
#[derive(Debug)]
struct BrokenSupplier;

#[async_trait]
impl Supplier for BrokenSupplier {
    fn info(&self) -> SupplierInfo {
        SupplierInfo::captions("broken", &[Platform::YouTube])
    }

    async fn supply(&self, _: SupplyRequest, _: Arc<dyn SupplyMonitor>) -> Result<SupplyOutput, SupplyError> {
        let cause = ErrorCause::new(std::io::Error::other("the cable is cut"));
        Err(SupplyError::new(SupplyReason::Unreachable, "The source cannot be reached.").with_cause(cause))
    }
}

#[tokio::test]
async fn missing_transcript_is_error_with_its_causes() {
    use std::error::Error as _;

    let options = Options::default().without_suppliers().with_supplier(Arc::new(BrokenSupplier));
    let verbatim = Verbatim::open(options).await.unwrap();
    let outcome = verbatim.get("https://youtu.be/dQw4w9WgXcQ").await.unwrap();
    assert!(outcome.transcript().is_none());
    let error = outcome.into_transcript().unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::Unavailable, "YouTube dQw4w9WgXcQ: The source cannot be reached.")
    );
    let missing = error.source().and_then(|source| source.downcast_ref::<UnavailableTranscript>()).unwrap();
    assert_eq!((missing.reason, missing.video_id.as_str()), (FailureReason::FetchError, "dQw4w9WgXcQ"));
    assert!(missing.to_string().starts_with("fetch_error"), "a chain of errors repeats nothing: {missing}");
    assert_eq!(missing.source().map(ToString::to_string).as_deref(), Some("the cable is cut"));

    let none = get("https://youtu.be/dQw4w9WgXcQ", None).await.unwrap().into_transcript().unwrap_err();
    assert_eq!((none.kind(), none.retry()), (ErrorKind::Unsupported, Retry::Never));
    let archived = GetRequest::new("https://youtu.be/dQw4w9WgXcQ").with_archived_only(true);
    let none = verbatim.get(archived).await.unwrap().into_transcript().unwrap_err();
    assert_eq!((none.kind(), none.retry()), (ErrorKind::NotFound, Retry::Never));
}

#[test]
fn get_store_error_is_never_invalid() {
    assert_eq!(store_error(Error::invalid("x")).kind(), ErrorKind::Unexpected);
    assert_eq!(store_error(Error::unavailable("x")).kind(), ErrorKind::Unavailable);
}

/// Signals when a call starts and when its work is dropped; responds when `go` is notified.
#[derive(Debug)]
struct SlowSupplier {
    started: Notify,
    dropped: Arc<Notify>,
    go: Notify,
}

#[async_trait]
impl Supplier for SlowSupplier {
    fn info(&self) -> SupplierInfo {
        SupplierInfo::captions("slow", &[Platform::YouTube])
    }

    async fn supply(
        &self,
        request: SupplyRequest,
        _: Arc<dyn SupplyMonitor>,
    ) -> Result<SupplyOutput, SupplyError> {
        struct DroppedFlag(Arc<Notify>);
        impl Drop for DroppedFlag {
            fn drop(&mut self) {
                self.0.notify_one();
            }
        }
        let _dropped = DroppedFlag(Arc::clone(&self.dropped));
        self.started.notify_one();
        self.go.notified().await;
        let transcript = Transcript {
            video: request.video,
            source: "slow".to_owned(),
            ..test_transcript(vec![Segment::new("Hello.", 0, 1_000)])
        };
        Ok(SupplyOutput { transcripts: vec![transcript], ..SupplyOutput::default() })
    }
}

async fn with_slow(outlives: bool) -> (Verbatim, Arc<SlowSupplier>) {
    let slow = Arc::new(SlowSupplier { started: Notify::new(), dropped: Arc::default(), go: Notify::new() });
    let mut suppliers = SupplierOptions::none();
    suppliers.add_custom(slow.as_ref());
    let custom = CustomPorts { suppliers: vec![Arc::clone(&slow) as _], ..CustomPorts::default() };
    (
        Verbatim::open(Options { suppliers, custom, detach_unpaid: outlives, ..Options::default() })
            .await
            .unwrap(),
        slow,
    )
}

fn spawn_get(verbatim: &Verbatim) -> tokio::task::JoinHandle<Result<GetOutcome>> {
    let verbatim = verbatim.clone();
    tokio::spawn(async move {
        verbatim
            .get(GetRequest { link: "https://youtu.be/dQw4w9WgXcQ".to_owned(), ..GetRequest::default() })
            .await
    })
}

#[tokio::test(start_paused = true)]
async fn fetch_without_waiter_is_cancelled_if_not_detached() {
    let (verbatim, slow) = with_slow(false).await;
    let first = spawn_get(&verbatim);
    slow.started.notified().await;
    first.abort();
    slow.dropped.notified().await;
    // The cancelled fetch leaves nothing behind: the next request is served.
    let second = spawn_get(&verbatim);
    slow.started.notified().await;
    slow.go.notify_one();
    assert!(matches!(
        second.await.unwrap().unwrap(),
        GetOutcome::Found(FoundTranscript { from_cache: false, .. })
    ));
}

#[tokio::test(start_paused = true)]
async fn fetch_survives_disconnect_with_waiter_or_detached() {
    for outlives in [false, true] {
        let (verbatim, slow) = with_slow(outlives).await;
        let first = spawn_get(&verbatim);
        slow.started.notified().await;
        let second = (!outlives).then(|| spawn_get(&verbatim));
        // The second request waits before the first one is aborted.
        tokio::task::yield_now().await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        first.abort();
        tokio::time::sleep(Duration::from_millis(100)).await;
        slow.go.notify_one();
        match second {
            Some(second) => assert!(matches!(second.await.unwrap().unwrap(), GetOutcome::Found(_))),
            None => verbatim.transcripts().close().await,
        }
        let again = spawn_get(&verbatim).await.unwrap().unwrap();
        assert!(matches!(again, GetOutcome::Found(FoundTranscript { from_cache: true, .. })));
    }
}

#[tokio::test(start_paused = true)]
async fn get_timeout_message_depends_on_detach() {
    for outlives in [false, true] {
        let (verbatim, slow) = with_slow(outlives).await;
        let GetOutcome::Missing(missing) = spawn_get(&verbatim).await.unwrap().unwrap() else {
            panic!("nothing was supplied");
        };
        assert_eq!(missing.reason, FailureReason::FetchError);
        assert_eq!(missing.message.contains("still being transcribed"), outlives, "{}", missing.message);
        if outlives {
            slow.go.notify_one();
            verbatim.transcripts().close().await;
            assert!(matches!(spawn_get(&verbatim).await.unwrap().unwrap(), GetOutcome::Found(_)));
        } else {
            assert!(missing.message.contains("more time"), "{}", missing.message);
            slow.dropped.notified().await;
        }
    }
}
