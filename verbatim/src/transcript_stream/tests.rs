use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use transcript_core::{
    ErrorKind,
    supplier::{
        Supplier, SupplierInfo, SupplyError, SupplyMonitor, SupplyOutput, SupplyReason, SupplyRequest,
    },
    transcript::Segment,
    video::Platform,
};

use super::*;
use crate::{Options, get::tests::test_transcript};

/// Supplies the id of the video as text, the later the smaller its number is; those with `x` have no captions.
#[derive(Debug, Default)]
struct NumberSupplier {
    running: AtomicUsize,
    running_max: AtomicUsize,
}

/// Counts a call until it ends or is dropped.
struct RunningGuard<'a>(&'a AtomicUsize);

impl Drop for RunningGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Supplier for NumberSupplier {
    fn info(&self) -> SupplierInfo {
        SupplierInfo::captions("numbers", &[Platform::YouTube])
    }

    async fn supply(
        &self,
        request: SupplyRequest,
        _: Arc<dyn SupplyMonitor>,
    ) -> Result<SupplyOutput, SupplyError> {
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        let _guard = RunningGuard(&self.running);
        self.running_max.fetch_max(running, Ordering::SeqCst);
        let id = request.video.id().to_owned();
        let number: u64 = id.trim_start_matches(|letter: char| !letter.is_ascii_digit()).parse().unwrap();
        tokio::time::sleep(Duration::from_secs(1_000 - number)).await;
        if id.starts_with('x') {
            return Err(SupplyError::new(SupplyReason::NoCaptions, "This video has no captions."));
        }
        let transcript = Transcript {
            video: request.video,
            source: "numbers".to_owned(),
            ..test_transcript(vec![Segment::new(id, 0, 1_000)])
        };
        Ok(SupplyOutput { transcripts: vec![transcript], ..SupplyOutput::default() })
    }
}

async fn open() -> (Verbatim, Arc<NumberSupplier>) {
    let supplier = Arc::new(NumberSupplier::default());
    let mut options = Options::default()
        .without_suppliers()
        .with_supplier(Arc::clone(&supplier) as _)
        .with_wait(Duration::from_secs(10_000));
    options.detach_unpaid = false;
    (Verbatim::open(options).await.unwrap(), supplier)
}

fn links(letter: char, numbers: std::ops::Range<u32>) -> Vec<String> {
    numbers
        .map(|number| format!("https://youtu.be/{letter}{letter}{letter}{letter}{letter}{letter}{number:05}"))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn stream_returns_each_request_once_in_order_of_completion() {
    let (verbatim, supplier) = open().await;
    let requests: Vec<String> = links('a', 0..20).into_iter().chain(links('x', 20..25)).collect();
    let mut stream = verbatim.get_many(requests.iter().map(String::as_str).chain(["no link"]));
    let stream_size = stream.size_hint();
    let mut indexes = Vec::new();
    let mut found = 0;
    while let Some(outcome) = stream.next().await {
        match outcome.result {
            Ok(GetOutcome::Found(_)) => {
                found += 1;
                assert_eq!(outcome.request.link, requests[outcome.index]);
            }
            Ok(GetOutcome::Missing(_)) => assert!((20..25).contains(&outcome.index)),
            Err(error) => assert_eq!((outcome.index, error.kind()), (25, ErrorKind::Invalid)),
        }
        indexes.push(outcome.index);
    }
    let progress = StreamProgress { total: 26, found: 20, missing: 5, failed: 1, running: 0 };
    assert_eq!((stream.progress(), progress.done(), stream_size), (progress, 26, (26, Some(26))));
    assert_eq!((found, stream.size_hint()), (20, (0, Some(0))));
    // The invalid link needs no supplier; then the request that started last ends first.
    let expected: Vec<usize> = std::iter::once(25).chain((0..25).rev()).collect();
    assert_eq!(indexes, expected);
    assert_eq!(supplier.running_max.load(Ordering::SeqCst), 25);
}

#[tokio::test(start_paused = true)]
async fn stream_in_order_respects_concurrency() {
    let (verbatim, supplier) = open().await;
    let mut stream = verbatim.get_many(links('b', 0..40)).with_concurrency(3).in_order();
    for index in 0..40 {
        let outcome = stream.next().await.unwrap();
        assert_eq!(outcome.index, index);
        assert!(outcome.into_transcript().unwrap().to_text().contains(&format!("{index:05}")));
    }
    assert!(stream.next().await.is_none());
    assert_eq!(supplier.running_max.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn stream_dropped_stops_its_requests() {
    let (verbatim, supplier) = open().await;
    let mut stream = verbatim.get_many(links('c', 0..9)).with_concurrency(4);
    assert!(stream.next().await.is_some());
    assert!(stream.progress().running > 0 && supplier.running.load(Ordering::SeqCst) > 0);
    drop(stream);
    verbatim.close().await;
    assert_eq!(supplier.running.load(Ordering::SeqCst), 0);
}

#[test]
fn stream_after_runtime_shutdown_returns_errors() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (verbatim, _) = runtime.block_on(open());
    let mut stream = verbatim.get_many(links('d', 0..5));
    drop(runtime);
    let other = tokio::runtime::Builder::new_current_thread().build().unwrap();
    other.block_on(async {
        for done in 1..=5 {
            let error = stream.next().await.unwrap().into_transcript().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unexpected);
            assert_eq!(stream.progress().failed, done);
        }
        assert!(stream.next().await.is_none());
    });
}

#[tokio::test(start_paused = true)]
async fn stream_takes_further_requests() {
    let (verbatim, _) = open().await;
    for (letter, in_order, expect) in [('e', false, [1, 0]), ('f', true, [0, 1])] {
        let stream = verbatim.get_many(links(letter, 0..1));
        let mut stream = if in_order { stream.in_order() } else { stream };
        assert_eq!(stream.push(links(letter, 900..901).remove(0)), 1);
        for index in expect {
            assert_eq!(stream.next().await.unwrap().index, index);
        }
        assert!(stream.next().await.is_none());
        assert_eq!(stream.push(links(letter, 3..4).remove(0)), 2);
        assert_eq!(stream.next().await.unwrap().index, 2);
        assert!(stream.next().await.is_none());
        assert_eq!(stream.progress(), StreamProgress { total: 3, found: 3, ..StreamProgress::default() });
    }
}
