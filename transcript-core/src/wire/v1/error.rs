//! The body of every error of Surface B.

use serde::{Deserialize, Serialize};

use crate::accounts::Refused;

/// The body of every error of Surface B (specification 7).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "What was wrong, and what to do.")
)]
pub struct ErrorBody {
    /// The sentence for people.
    pub error: String,
    /// The HTTP status.
    pub code: u16,
}

impl From<&Refused> for ErrorBody {
    fn from(refused: &Refused) -> Self {
        Self { error: refused.message().to_owned(), code: refused.code() }
    }
}
