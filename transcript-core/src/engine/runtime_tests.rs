//! Tests: the runtime on which work runs, depending on the runtime of the caller.

use std::{sync::Mutex, time::Duration};

use async_trait::async_trait;
use tokio::runtime::{self, Id, Runtime};

use super::{
    refresh_tests::{transcript, video},
    *,
};
use crate::{
    memory::MemoryArchive,
    supplier::{Supplier, SupplierInfo, SupplyMonitor, SupplyOutput, SupplyRequest},
    test_doubles::{ManualClock, SequentialRandom},
};

/// Records the runtime of each call, and how many tasks it has.
#[derive(Debug, Default)]
struct RecordingRuntime(Mutex<Vec<(Id, usize)>>);

#[async_trait]
impl Supplier for RecordingRuntime {
    fn info(&self) -> SupplierInfo {
        SupplierInfo::captions("words", &[Platform::YouTube])
    }

    async fn supply(&self, _: SupplyRequest, _: Arc<dyn SupplyMonitor>) -> Result<SupplyOutput, SupplyError> {
        let runtime = Handle::current();
        self.0.lock().unwrap().push((runtime.id(), runtime.metrics().num_alive_tasks()));
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok(SupplyOutput { transcripts: vec![transcript("words")], ..SupplyOutput::default() })
    }
}

fn runtime() -> Runtime {
    runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// An engine without suppliers on this runtime.
fn builder(runtime: &Runtime) -> EngineBuilder {
    let (clock, random) = (Arc::new(ManualClock::default()), Arc::new(SequentialRandom::default()));
    Transcripts::builder(Arc::new(MemoryArchive::default()), clock, random, runtime.handle().clone())
}

#[test]
fn call_runs_on_caller_runtime_or_engine_runtime() {
    let (engine_runtime, caller_runtime, other_runtime) = (runtime(), runtime(), runtime());
    let supplier = Arc::new(RecordingRuntime::default());
    let transcripts = builder(&engine_runtime)
        .supplier(Platform::YouTube, Arc::clone(&supplier) as _)
        .caller_runtime(caller_runtime.handle().clone())
        .build();
    let callers = [&engine_runtime, &caller_runtime, &other_runtime, &caller_runtime];
    let idle = |runtime: &Runtime| runtime.metrics().num_alive_tasks() == 0;
    for caller in callers {
        // The task of an earlier flight ends shortly after its outcome is sent.
        other_runtime.block_on(async {
            while !(idle(&engine_runtime) && idle(&caller_runtime)) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        let outcome = caller.block_on(transcripts.refresh(&video(), &TrackSelector::Default));
        assert!(matches!(outcome, FetchOutcome::Fetched(_)), "{outcome:?}");
    }
    // The flight and the supplier; a call from another runtime is one more task.
    let expect = [(&engine_runtime, 2), (&caller_runtime, 2), (&engine_runtime, 3), (&caller_runtime, 2)];
    let expect = expect.map(|(runtime, tasks)| (runtime.handle().id(), tasks));
    assert_eq!(*supplier.0.lock().unwrap(), expect);
    // A flight on the caller runtime serves waiters on any runtime.
    let fetch = || FetchRequest { video: video(), selector: TrackSelector::Default, payer: None };
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

#[test]
fn call_after_end_of_runtime_is_final() {
    let (engine_runtime, other_runtime) = (runtime(), runtime());
    let transcripts = builder(&engine_runtime).build();
    drop(engine_runtime);
    let error = other_runtime.block_on(transcripts.task(std::future::ready(()))).unwrap_err();
    assert_eq!((error.kind(), error.retry()), (ErrorKind::Unavailable, Retry::Never));
    assert!(error.message().contains("the runtime"), "{error}");
}

#[test]
fn call_that_panics_is_error_with_cause() {
    let (engine_runtime, other_runtime) = (runtime(), runtime());
    let transcripts = builder(&engine_runtime).build();
    let error = other_runtime.block_on(transcripts.task(async { panic!("a defect") }));
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unexpected);
    assert!(error.cause().is_some_and(|cause| cause.error().to_string().contains("a defect")), "{error}");
}
