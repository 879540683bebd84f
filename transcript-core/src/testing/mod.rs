//! Conformance suites: the tests that every implementation of a storage port passes.
//!
//! Each case is an async function that takes an empty store and panics with the rule of the contract that the store
//! breaks. One macro per port turns the cases of that port into tests. Its argument is an expression that creates an
//! empty store and may await. Its value is the store in an [`Arc`], or a tuple of that and a value to keep until the
//! case ends, such as a temporary folder.
//!
//! ```
//! # use std::sync::Arc;
//! # use transcript_core::memory::MemoryLedger;
//! #[cfg(test)]
//! mod ledger {
//!     transcript_core::ledger_conformance!(Arc::new(super::MemoryLedger::default()));
//! }
//! ```
//!
//! The tests run on several threads, so races are real.

use std::{any::Any, fmt, pin::Pin, sync::Arc, time::Duration};

use crate::{
    error::{Error, ErrorKind, Result},
    page::{Page, PageRequest},
    time::Timestamp,
};

pub mod admin;
pub mod archive;
pub mod charges;
pub mod directory;
pub mod idempotency;
mod job_failures;
pub mod job_lists;
pub mod jobs;
pub mod ledger;
mod limit_model;
pub mod limits;
pub mod orders;
pub mod outbox;
#[cfg(feature = "search")]
pub mod search_index;
pub mod secrets;
pub mod sessions;
pub mod webhooks;

pub use limit_model::LimitModel;

/// Value of a conformance macro's expression: a store, alone or with a value that it needs.
pub trait IntoStore {
    /// Type of the store.
    type Store: ?Sized;

    /// Returns the store.
    fn store(&self) -> Arc<Self::Store>;
}

impl<S: ?Sized> IntoStore for Arc<S> {
    type Store = S;

    fn store(&self) -> Arc<S> {
        Arc::clone(self)
    }
}

impl<S: ?Sized, K> IntoStore for (Arc<S>, K) {
    type Store = S;

    fn store(&self) -> Arc<S> {
        Arc::clone(&self.0)
    }
}

/// One case of a suite, for implementations whose tests are not written in Rust.
pub struct ConformanceCase<S: ?Sized> {
    /// Name of the case; it states the rule.
    pub name: &'static str,
    /// Runs the case on an empty store; panics with the broken rule.
    pub run: fn(Arc<S>) -> RunningCase,
}

impl<S: ?Sized + Send + Sync + 'static> ConformanceCase<S> {
    /// Runs the case on an empty store; returns the broken rule, or `None` if the case passes.
    ///
    /// The case runs on a blocking thread of the current Tokio runtime.
    pub async fn run(self, store: Arc<S>) -> Option<String> {
        let runtime = tokio::runtime::Handle::current();
        // A case reports a broken rule by a panic.
        let result = tokio::task::spawn_blocking(move || runtime.block_on((self.run)(store))).await;
        Some(match result.err()?.try_into_panic() {
            Ok(payload) => panic_message(payload.as_ref()),
            Err(_) => "the case was cancelled".to_owned(),
        })
    }
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    match (payload.downcast_ref::<String>(), payload.downcast_ref::<&str>()) {
        (Some(text), _) => text.clone(),
        (_, Some(text)) => (*text).to_owned(),
        _ => "the case panicked without a message".to_owned(),
    }
}

/// A running case; it stays on the thread that started it.
pub type RunningCase = Pin<Box<dyn Future<Output = ()>>>;

impl<S: ?Sized> fmt::Debug for ConformanceCase<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConformanceCase").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Returns the cases of [`crate::archive::Archive`].
pub fn archive_cases() -> Vec<ConformanceCase<dyn crate::archive::Archive>> {
    crate::archive_conformance_cases!(conformance_list;)
}

/// Returns the cases of [`crate::ledger::Ledger`].
pub fn ledger_cases() -> Vec<ConformanceCase<dyn crate::ledger::Ledger>> {
    crate::ledger_conformance_cases!(conformance_list;)
}

/// Returns the cases of [`crate::directory::Directory`].
pub fn directory_cases() -> Vec<ConformanceCase<dyn crate::directory::Directory>> {
    crate::directory_conformance_cases!(conformance_list;)
}

/// Builds the list of cases of a port.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_list {
    (case [$($module:tt)*] $case:ident) => {
        $crate::testing::ConformanceCase {
            name: stringify!($case),
            run: |store| Box::pin($($module)*::$case(store)),
        }
    };
    ($port:path; $module:tt; $($case:ident)*) => {
        vec![$($crate::conformance_list!(case $module $case)),*]
    };
}

/// Generates one test per case of a port; the macro of each port expands to it.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_cases {
    (case $make:expr; $port:path; [$($module:tt)*] $case:ident) => {
        #[::tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $case() {
            let made = $make;
            let store: ::std::sync::Arc<dyn $port> = $crate::testing::IntoStore::store(&made);
            $($module)*::$case(store).await;
        }
    };
    ($make:expr; $port:path; $module:tt; $($case:ident)*) => {
        $($crate::conformance_cases! { case $make; $port; $module $case })*
    };
}

/// Time in seconds after the start of every case, 2026-11-20T00:00:00Z.
fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_795_132_800_000 + seconds * 1_000)
}

/// Time in milliseconds after the start of every case.
fn at_ms(millis: i64) -> Timestamp {
    Timestamp::from_millis(1_795_132_800_000 + millis)
}

/// Returns the error of a call that must fail.
#[track_caller]
fn expect_error<T>(result: Result<T>, kind: ErrorKind, rule: &str) -> Error {
    let Err(error) = result else { panic!("{rule}: the call must fail with {kind:?}") };
    let found = error.kind();
    assert!(found == kind, "{rule}: the call must fail with {kind:?}; it failed with {found:?}: {error}");
    error
}

/// Returns the value of a call that must succeed.
#[track_caller]
fn expect_ok<T>(result: Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => {
            panic!("a valid call succeeds; it failed with {:?}: {error}", error.kind())
        }
    }
}

/// Reads all items in pages of `limit` and checks each page.
async fn read_pages<T>(limit: u32, read: impl AsyncFn(PageRequest) -> Result<Page<T>>) -> Vec<T> {
    let mut items = Vec::new();
    let mut request = PageRequest { after: None, limit };
    loop {
        let size = request.size();
        let page = expect_ok(read(request).await);
        assert!(page.items.len() <= size, "a page has at most as many items as requested");
        assert!(page.next.is_none() || page.items.len() == size, "only the last page may be partly filled");
        items.extend(page.items);
        assert!(items.len() < 1_000_000, "paging terminates");
        let Some(next) = page.next else { return items };
        request = PageRequest { after: Some(next), limit };
    }
}

/// Runs tasks concurrently and returns their results in the order of the tasks.
///
/// # Panics
/// If a task panics, or if a task takes longer than one minute (deadlock).
async fn run_concurrently<T, F>(tasks: impl IntoIterator<Item = F>) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let tasks: Vec<_> = tasks.into_iter().map(tokio::spawn).collect();
    let mut results = Vec::with_capacity(tasks.len());
    for task in tasks {
        let result = tokio::time::timeout(Duration::from_secs(60), task).await;
        let result = result.expect("concurrent calls do not deadlock");
        results.push(result.unwrap_or_else(|error| match error.try_into_panic() {
            // The broken rule.
            Ok(payload) => std::panic::resume_unwind(payload),
            Err(_) => panic!("a concurrent call is not cancelled"),
        }));
    }
    results
}

/// Calls a store from concurrent tasks, once for each argument; see [`run_concurrently`].
fn call_concurrently<S, A, T, F>(
    store: &Arc<S>,
    arguments: impl IntoIterator<Item = A>,
    call: impl Fn(Arc<S>, A) -> F,
) -> impl Future<Output = Vec<T>>
where
    S: ?Sized,
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let calls = arguments.into_iter().map(|argument| call(Arc::clone(store), argument));
    run_concurrently(calls.collect::<Vec<_>>())
}

/// Deterministic random numbers: the linear congruential generator of Knuth's MMIX.
#[derive(Debug)]
struct SeededRng(u64);

impl SeededRng {
    fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[cfg(test)]
mod tests {
    /// Checks that the list of a port names every case of `files`; an unlisted case never runs.
    fn check(list: &str, files: &[&str]) {
        for file in files {
            for line in file.lines().filter_map(|line| line.strip_prefix("pub async fn ")) {
                let case = line.split('(').next().unwrap();
                assert!(list.split_whitespace().any(|word| word == case), "{case} is in no list");
            }
        }
    }

    #[test]
    fn conformance_suite_lists_every_case() {
        check(
            include_str!("archive/mod.rs"),
            &[
                include_str!("archive/compaction.rs"),
                include_str!("archive/verification.rs"),
                include_str!("archive/find.rs"),
                include_str!("archive/leases.rs"),
                include_str!("archive/put.rs"),
                include_str!("archive/operations.rs"),
                include_str!("archive/stored_body.rs"),
            ],
        );
        check(
            include_str!("directory/mod.rs"),
            &[
                include_str!("directory/accounts.rs"),
                include_str!("directory/keys.rs"),
                include_str!("directory/tokens.rs"),
            ],
        );
        for file in [
            include_str!("charges.rs"),
            include_str!("limits.rs"),
            include_str!("orders.rs"),
            include_str!("outbox.rs"),
            include_str!("idempotency.rs"),
            include_str!("secrets.rs"),
            include_str!("sessions.rs"),
        ] {
            check(file, &[file]);
        }
        check(
            include_str!("search_index/mod.rs"),
            &[include_str!("search_index/mod.rs"), include_str!("search_index/upkeep.rs")],
        );
        check(
            include_str!("ledger/mod.rs"),
            &[
                include_str!("ledger/holds.rs"),
                include_str!("ledger/idempotency.rs"),
                include_str!("ledger/settle.rs"),
                include_str!("ledger/transfers.rs"),
                include_str!("ledger/audit_cases.rs"),
                include_str!("ledger/races.rs"),
                include_str!("ledger/walk.rs"),
            ],
        );
    }
}
