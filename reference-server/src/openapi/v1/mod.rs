//! The operations of Surface B, the v1 API.

mod examples;
mod operations;
mod parameters;
mod payments;
mod responses;

use serde_json::Value;
use transcript_core::accounts::AccountsOptions;

/// All paths with their operations.
pub(super) fn paths(options: &AccountsOptions) -> Value {
    let mut paths = operations::paths(options);
    if let (Some(paths), Value::Object(more)) = (paths.as_object_mut(), payments::paths(options)) {
        paths.extend(more);
    }
    paths
}
