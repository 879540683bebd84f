//! The runtime of targets whose parsers are asynchronous.

use std::cell::RefCell;

use tokio::runtime::{Builder, Runtime};

thread_local! {
    /// One for all runs: starting one takes longer than a run.
    static RUNTIME: RefCell<Runtime> =
        RefCell::new(Builder::new_current_thread().enable_time().build().expect("a runtime starts"));
}

/// Runs a future to its end.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.with_borrow(|runtime| runtime.block_on(future))
}
