//! Operations of the v1 API.

mod chat;
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
    for more in [chat::paths(options), payments::paths(options)] {
        if let (Some(paths), Value::Object(more)) = (paths.as_object_mut(), more) {
            paths.extend(more);
        }
    }
    paths
}
