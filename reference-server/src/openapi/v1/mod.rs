//! The operations of Surface B, the v1 API.

mod examples;
mod operations;
mod parameters;
mod responses;

use serde_json::Value;
use transcript_core::accounts::AccountsOptions;

/// All paths with their operations.
pub(super) fn paths(options: &AccountsOptions) -> Value {
    operations::paths(options)
}
