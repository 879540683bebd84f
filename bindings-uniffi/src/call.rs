//! One exported call: a task on the runtime that ends with whoever asked, with its token or with its time.

use std::{future::Future, sync::Arc, time::Duration};

use tokio::{sync::watch, task::JoinHandle};

use crate::{
    error::{Failure, FailureKind, VerbatimError},
    runtime,
};

/// Calls work off. Any number of calls may share one; it stays cancelled.
#[derive(Debug, uniffi::Object)]
pub struct CancelToken {
    cancelled: watch::Sender<bool>,
}

#[uniffi::export]
impl CancelToken {
    /// A token that calls nothing off yet.
    #[uniffi::constructor]
    pub fn new() -> Arc<Self> {
        Arc::new(Self { cancelled: watch::Sender::new(false) })
    }

    /// Calls off all that has this token, and all that will have it.
    pub fn cancel(&self) {
        self.cancelled.send_replace(true);
    }

    /// Whether it was called.
    pub fn is_cancelled(&self) -> bool {
        *self.cancelled.borrow()
    }
}

impl CancelToken {
    async fn cancelled(&self) {
        let mut cancelled = self.cancelled.subscribe();
        // The sender is this token's own, so the channel is open.
        let _open = cancelled.wait_for(|cancelled| *cancelled).await;
    }
}

/// When a call ends before it is done.
#[derive(Clone, Debug, Default, uniffi::Record)]
pub struct CallOptions {
    /// How long it may take; none: as long as it takes. Then it fails as `TimedOut`.
    #[uniffi(default = None)]
    pub timeout: Option<Duration>,
    /// What calls it off; then it fails as `Cancelled`. Kotlin needs none: there the coroutine is cancelled.
    #[uniffi(default = None)]
    pub cancel: Option<Arc<CancelToken>>,
}

/// Work on the runtime that ends when nobody waits for it any more.
struct Task<T>(JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Does work on the runtime.
///
/// # Errors
/// The work's own; `Cancelled`, `TimedOut`; `Unexpected` when it broke down, which is told and goes no further.
pub(crate) async fn run<T: Send + 'static>(
    call: Option<CallOptions>,
    work: impl Future<Output = Result<T, VerbatimError>> + Send + 'static,
) -> Result<T, VerbatimError> {
    let call = call.unwrap_or_default();
    let mut task = Task(runtime::handle()?.spawn(limited(call, work)));
    match (&mut task.0).await {
        Ok(result) => result,
        Err(_) => Err(Failure::of(FailureKind::Unexpected, "the work broke down")),
    }
}

async fn limited<T>(
    call: CallOptions,
    work: impl Future<Output = Result<T, VerbatimError>>,
) -> Result<T, VerbatimError> {
    let cancelled = async {
        match &call.cancel {
            Some(token) => token.cancelled().await,
            None => std::future::pending().await,
        }
    };
    let late = async {
        match call.timeout {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = cancelled => Err(Failure::of(FailureKind::Cancelled, "the call was cancelled")),
        result = work => result,
        () = late => Err(Failure::of(FailureKind::TimedOut, "the call took longer than it was given")),
    }
}
