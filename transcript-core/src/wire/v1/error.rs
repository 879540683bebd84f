//! Body of every error of the v1 API.

use serde::{Deserialize, Serialize};

use crate::accounts::V1Error;

/// Body of every error of the v1 API (specification 7.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "What is wrong, and what to do.")
)]
pub struct ErrorBody {
    /// The message for people.
    pub error: String,
    /// The HTTP status.
    pub code: u16,
}

impl From<&V1Error> for ErrorBody {
    fn from(error: &V1Error) -> Self {
        Self { error: error.message().to_owned(), code: error.code() }
    }
}
