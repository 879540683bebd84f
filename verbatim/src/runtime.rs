//! Futures that need the runtime, on any executor.

use std::{future::poll_fn, pin::pin};

use tokio::runtime::Handle;
use transcript_core::{Error, ErrorCause, Result};

/// The runtime of the caller.
///
/// # Errors
/// [`transcript_core::ErrorKind::Invalid`] outside a runtime.
pub(crate) fn current() -> Result<Handle> {
    Handle::try_current().map_err(|error| {
        Error::invalid("Verbatim::open must be called inside a Tokio runtime")
            .with_cause(Some(ErrorCause::new(error)))
    })
}

/// Polls a future with timers on this runtime, because any executor may poll the caller.
pub(crate) async fn within<F: Future>(runtime: &Handle, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| {
        let _guard = runtime.enter();
        future.as_mut().poll(context)
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        sync::Arc,
        task::{Context, Poll, Wake, Waker},
        thread::{self, Thread},
        time::Duration,
    };

    use transcript_core::ErrorKind;

    use crate::{GetRequest, Options, Verbatim};

    struct ThreadWaker(Thread);

    impl Wake for ThreadWaker {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    /// Polls a future outside every runtime.
    fn run<T>(future: impl Future<Output = T>) -> T {
        let waker = Waker::from(Arc::new(ThreadWaker(thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut future = pin!(future);
        loop {
            match future.as_mut().poll(&mut context) {
                Poll::Ready(result) => return result,
                Poll::Pending => thread::park(),
            }
        }
    }

    #[test]
    fn calls_run_on_other_executors() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let verbatim = runtime.block_on(Verbatim::open(Options::default().without_suppliers())).unwrap();
        let timeout = Duration::from_secs(5);
        for link in ["https://vm.tiktok.com/ZMabcdef/", "https://youtu.be/aaaaaaaaaaa"] {
            let outcome = run(verbatim.get(GetRequest::new(link).with_timeout(timeout))).unwrap();
            assert!(outcome.transcript().is_none());
        }
        assert!(run(verbatim.ready(timeout)).is_ready());
        assert!(run(verbatim.check_writes(timeout)).is_ready());
        run(verbatim.close());
    }

    #[test]
    fn open_outside_runtime_is_invalid() {
        let error = run(Verbatim::open(Options::default().without_suppliers())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
}
