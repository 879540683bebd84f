//! Scenarios of lookups: one for each rule (specification 11) and each failure reason.

mod archived;
mod concurrency;
mod failures;
mod fair_use;
mod health;
mod in_progress;
mod links;
mod paying;
mod storage;
mod visitors;
