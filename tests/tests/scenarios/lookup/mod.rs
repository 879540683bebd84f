//! One story for each rule of the look-up (design 3) and each reason why there is no transcript.

mod failures;
mod fair_use;
mod free;
mod health;
mod links;
mod paying;
mod places;
mod storage;
mod visitors;
mod waiting;
