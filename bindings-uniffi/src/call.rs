//! One exported call: a task that ends with its caller, its cancellation token or its timeout.

use std::{future::Future, sync::Arc, time::Duration};

use tokio::{sync::watch, task::JoinHandle};

use crate::{
    error::{Failure, FailureKind, VerbatimError},
    runtime,
};

/// Cancels calls. Any number of calls can share a token; it stays cancelled.
#[derive(Debug, uniffi::Object)]
pub struct CancelToken {
    cancelled: watch::Sender<bool>,
}

#[uniffi::export]
impl CancelToken {
    /// A token that is not cancelled yet.
    #[uniffi::constructor]
    pub fn new() -> Arc<Self> {
        Arc::new(Self { cancelled: watch::Sender::new(false) })
    }

    /// Cancels all present and future calls with this token.
    pub fn cancel(&self) {
        self.cancelled.send_replace(true);
    }

    /// Whether the token was cancelled.
    pub fn is_cancelled(&self) -> bool {
        *self.cancelled.borrow()
    }
}

impl CancelToken {
    async fn cancelled(&self) {
        let mut cancelled = self.cancelled.subscribe();
        // The token owns the sender, so the channel is open.
        let _open = cancelled.wait_for(|cancelled| *cancelled).await;
    }
}

/// Conditions that end a call early.
#[derive(Clone, Debug, Default, uniffi::Record)]
pub struct CallOptions {
    /// Timeout, after which the call fails as `TimedOut`; `None`: no timeout.
    #[uniffi(default = None)]
    pub timeout: Option<Duration>,
    /// Token that cancels the call, which then fails as `Cancelled`. Kotlin cancels the coroutine instead.
    #[uniffi(default = None)]
    pub cancel: Option<Arc<CancelToken>>,
}

/// Task on the runtime, aborted on drop.
struct CallTask<T>(JoinHandle<T>);

impl<T> Drop for CallTask<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs work on the runtime.
///
/// # Errors
/// Those of the work; `Cancelled`, `TimedOut`; `Unexpected` if the work panicked.
pub(crate) async fn run<T: Send + 'static>(
    call: Option<CallOptions>,
    work: impl Future<Output = Result<T, VerbatimError>> + Send + 'static,
) -> Result<T, VerbatimError> {
    let call = call.unwrap_or_default();
    let mut task = CallTask(runtime::handle()?.spawn(with_options(call, work)));
    match (&mut task.0).await {
        Ok(result) => result,
        Err(_) => Err(Failure::error(FailureKind::Unexpected, "the call panicked")),
    }
}

async fn with_options<T>(
    call: CallOptions,
    work: impl Future<Output = Result<T, VerbatimError>>,
) -> Result<T, VerbatimError> {
    let cancelled = async {
        match &call.cancel {
            Some(token) => token.cancelled().await,
            None => std::future::pending().await,
        }
    };
    let timed_out = async {
        match call.timeout {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = cancelled => Err(Failure::error(FailureKind::Cancelled, "the call was cancelled")),
        result = work => result,
        () = timed_out => Err(Failure::error(FailureKind::TimedOut, "the call exceeded its timeout")),
    }
}
