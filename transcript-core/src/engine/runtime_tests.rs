//! Tests: the runtime on which work runs, depending on the runtime of the caller.

use std::{sync::Mutex, time::Duration};

use async_trait::async_trait;
use tokio::runtime::{self, Id, Runtime};

use super::{
    refresh_tests::{FrozenClock, SequentialRandom, transcript, video},
    *,
};
use crate::{
    memory::MemoryArchive,
    supplier::{Supplier, SupplierInfo, SupplierKind, SupplyMonitor, SupplyOutput, SupplyRequest},
};

/// Records the runtime of each call.
#[derive(Debug, Default)]
struct RecordingRuntime(Mutex<Vec<Id>>);

#[async_trait]
impl Supplier for RecordingRuntime {
    fn info(&self) -> SupplierInfo {
        let platforms = vec![Platform::YouTube];
        SupplierInfo { name: "words".to_owned(), platforms, kind: SupplierKind::Captions }
    }

    async fn supply(&self, _: SupplyRequest, _: Arc<dyn SupplyMonitor>) -> Result<SupplyOutput, SupplyError> {
        self.0.lock().unwrap().push(Handle::current().id());
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok(SupplyOutput { transcripts: vec![transcript("words")], known_tracks: Vec::new() })
    }
}

fn runtime() -> Runtime {
    runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

#[test]
fn call_runs_on_caller_runtime_or_engine_runtime() {
    let (engine_runtime, caller_runtime, other_runtime) = (runtime(), runtime(), runtime());
    let supplier = Arc::new(RecordingRuntime::default());
    let (archive, random) = (Arc::new(MemoryArchive::default()), Arc::new(SequentialRandom::default()));
    let transcripts =
        Transcripts::builder(archive, Arc::new(FrozenClock), random, engine_runtime.handle().clone())
            .supplier(Platform::YouTube, Arc::clone(&supplier) as _)
            .caller_runtime(caller_runtime.handle().clone())
            .build();
    let callers = [&engine_runtime, &caller_runtime, &other_runtime, &caller_runtime];
    for caller in callers {
        let outcome = caller.block_on(transcripts.refresh(&video(), &TrackSelector::Default));
        assert!(matches!(outcome, FetchOutcome::Fetched(_)), "{outcome:?}");
    }
    let expect = [&engine_runtime, &caller_runtime, &engine_runtime, &caller_runtime]
        .map(|runtime| runtime.handle().id());
    assert_eq!(*supplier.0.lock().unwrap(), expect);
    // A flight on the caller runtime serves waiters on any runtime.
    let fetch = || FetchRequest { video: video(), selector: TrackSelector::Default, payment: None };
    let both = [&caller_runtime, &other_runtime].map(|caller| {
        caller.spawn({
            let transcripts = transcripts.clone();
            async move { transcripts.get(fetch()).await }
        })
    });
    for outcome in both {
        assert!(matches!(other_runtime.block_on(outcome).unwrap(), FetchOutcome::Archived(_)));
    }
}
