//! The conformance suite: what every implementation of a storage port must pass, whoever wrote it.
//!
//! Each case is a plain async function of a fresh store, which panics with the rule of the contract that
//! the store broke. A macro for each port turns all its cases into tests. Its argument is an expression
//! that makes a fresh store; it may await. The expression's value is the store in an [`Arc`], or that and
//! something to keep until the case is over, such as a temporary folder.
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
//! The tests run on several threads, so that races are real.

use std::{any::Any, fmt, pin::Pin, sync::Arc, time::Duration};

use crate::{
    error::{Error, ErrorKind, Result},
    page::{Page, PageRequest},
    time::Timestamp,
};

pub mod archive;
pub mod charges;
pub mod directory;
pub mod ledger;
pub mod limits;
pub mod orders;
pub mod outbox;
pub mod replies;
pub mod secrets;

/// What the expression of a conformance macro makes: a store, alone or with something to keep.
pub trait Made {
    /// The store.
    type Store: ?Sized;

    /// The store, shared with whatever is kept.
    fn store(&self) -> Arc<Self::Store>;
}

impl<S: ?Sized> Made for Arc<S> {
    type Store = S;

    fn store(&self) -> Arc<S> {
        Arc::clone(self)
    }
}

impl<S: ?Sized, K> Made for (Arc<S>, K) {
    type Store = S;

    fn store(&self) -> Arc<S> {
        Arc::clone(&self.0)
    }
}

/// One case of a suite, for implementations whose tests are not Rust's.
pub struct Case<S: ?Sized> {
    /// Its name, which says the rule.
    pub name: &'static str,
    /// Runs it on a fresh store; it panics with the rule that is broken.
    pub run: fn(Arc<S>) -> Running,
}

impl<S: ?Sized + Send + Sync + 'static> Case<S> {
    /// Runs the case on a fresh store, on a thread of its own of the runtime that waits for it: the rule that the store
    /// breaks, or none.
    pub async fn broken_rule(self, store: Arc<S>) -> Option<String> {
        let runtime = tokio::runtime::Handle::current();
        // A rule that is broken is told by a panic.
        let ended = tokio::task::spawn_blocking(move || runtime.block_on((self.run)(store))).await;
        Some(match ended.err()?.try_into_panic() {
            Ok(told) => said(told.as_ref()),
            Err(_) => "it was interrupted".to_owned(),
        })
    }
}

/// What a panic says.
fn said(told: &(dyn Any + Send)) -> String {
    match (told.downcast_ref::<String>(), told.downcast_ref::<&str>()) {
        (Some(text), _) => text.clone(),
        (_, Some(text)) => (*text).to_owned(),
        _ => "it broke down".to_owned(),
    }
}

/// A case that runs, on the thread that began it.
pub type Running = Pin<Box<dyn Future<Output = ()>>>;

impl<S: ?Sized> fmt::Debug for Case<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The cases of [`crate::archive::Archive`].
pub fn archive_cases() -> Vec<Case<dyn crate::archive::Archive>> {
    crate::archive_conformance_cases!(conformance_list;)
}

/// The cases of [`crate::ledger::Ledger`].
pub fn ledger_cases() -> Vec<Case<dyn crate::ledger::Ledger>> {
    crate::ledger_conformance_cases!(conformance_list;)
}

/// The cases of [`crate::directory::Directory`].
pub fn directory_cases() -> Vec<Case<dyn crate::directory::Directory>> {
    crate::directory_conformance_cases!(conformance_list;)
}

/// The cases of a port as a list.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_list {
    (case [$($module:tt)*] $case:ident) => {
        $crate::testing::Case {
            name: stringify!($case),
            run: |store| Box::pin($($module)*::$case(store)),
        }
    };
    ($port:path; $module:tt; $($case:ident)*) => {
        vec![$($crate::conformance_list!(case $module $case)),*]
    };
}

/// One test for each case of a port: what the macro of each port expands to.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_cases {
    (case $make:expr; $port:path; [$($module:tt)*] $case:ident) => {
        #[::tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $case() {
            let made = $make;
            let store: ::std::sync::Arc<dyn $port> = $crate::testing::Made::store(&made);
            $($module)*::$case(store).await;
        }
    };
    ($make:expr; $port:path; $module:tt; $($case:ident)*) => {
        $($crate::conformance_cases! { case $make; $port; $module $case })*
    };
}

/// The moment this many seconds after the one at which every case begins: 2026-11-20T00:00:00Z.
fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_795_132_800_000 + seconds * 1_000)
}

/// The moment this many milliseconds after the one at which every case begins.
fn at_ms(millis: i64) -> Timestamp {
    Timestamp::from_millis(1_795_132_800_000 + millis)
}

/// The error of a call that must fail.
#[track_caller]
fn refused<T: fmt::Debug>(result: Result<T>, kind: ErrorKind, rule: &str) -> Error {
    match result {
        Ok(value) => panic!("{rule}: instead of {kind:?} it answered {value:?}"),
        Err(error) => {
            assert_eq!(error.kind(), kind, "{rule}: {error}");
            error
        }
    }
}

/// The value of a call that must succeed.
#[track_caller]
fn done<T>(result: Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => {
            panic!("a call within its contract succeeds; it failed with {:?}: {error}", error.kind())
        }
    }
}

/// All items, read in pages of a size; checks what holds for every page.
async fn pages<T>(limit: u32, read: impl AsyncFn(PageRequest) -> Result<Page<T>>) -> Vec<T> {
    let mut items = Vec::new();
    let mut request = PageRequest { after: None, limit };
    loop {
        let size = request.size();
        let page = done(read(request).await);
        assert!(page.items.len() <= size, "a page has at most as many items as were asked for");
        assert!(page.next.is_none() || page.items.len() == size, "only the last page is not full");
        items.extend(page.items);
        assert!(items.len() < 1_000_000, "paging comes to an end");
        let Some(next) = page.next else { return items };
        request = PageRequest { after: Some(next), limit };
    }
}

/// Runs tasks at the same time and collects what they answer, in the order of the tasks.
///
/// # Panics
/// When one of them panics, or when they are not done after a minute: they wait for each other.
async fn together<T, F>(tasks: impl IntoIterator<Item = F>) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let tasks: Vec<_> = tasks.into_iter().map(tokio::spawn).collect();
    let mut answers = Vec::with_capacity(tasks.len());
    for task in tasks {
        let answer = tokio::time::timeout(Duration::from_secs(60), task).await;
        let answer = answer.expect("calls at the same time do not wait for each other for ever");
        answers.push(answer.expect("a call at the same time as others does not panic"));
    }
    answers
}

/// A small deterministic source of choices: the linear congruential generator of Knuth's MMIX.
#[derive(Debug)]
struct Choices(u64);

impl Choices {
    fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[cfg(test)]
mod tests {
    /// Every case that a file defines must be in the list of its port's macro, or it never runs.
    fn check(list: &str, files: &[&str]) {
        for file in files {
            for line in file.lines().filter_map(|line| line.strip_prefix("pub async fn ")) {
                let case = line.split('(').next().unwrap();
                assert!(list.split_whitespace().any(|word| word == case), "{case} is in no list");
            }
        }
    }

    #[test]
    fn every_case_is_run() {
        check(
            include_str!("archive/mod.rs"),
            &[
                include_str!("archive/compacting.rs"),
                include_str!("archive/finding.rs"),
                include_str!("archive/holding.rs"),
                include_str!("archive/keeping.rs"),
                include_str!("archive/operating.rs"),
                include_str!("archive/sending.rs"),
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
            include_str!("replies.rs"),
            include_str!("secrets.rs"),
        ] {
            check(file, &[file]);
        }
        check(
            include_str!("ledger/mod.rs"),
            &[
                include_str!("ledger/holds.rs"),
                include_str!("ledger/repeats.rs"),
                include_str!("ledger/settling.rs"),
                include_str!("ledger/transfers.rs"),
                include_str!("ledger/auditing.rs"),
                include_str!("ledger/racing.rs"),
            ],
        );
    }
}
