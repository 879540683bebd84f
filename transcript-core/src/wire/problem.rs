//! Errors of Surface A: problem details.

use serde::{Deserialize, Serialize};

#[cfg(feature = "openapi")]
use crate::lookup::FailureReason;

/// A problem details object (RFC 9457), the body of every error of Surface A.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Problem {
    /// What kind of problem it is: `about:blank`, or a name that never changes.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind in a few words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What was wrong with this very request, and what to do.
    pub detail: String,
    /// The look-up's failure reason, where one applies.
    #[serde(rename = "failureReason", default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "openapi",
        schemars(with = "String", extend("enum" = FailureReason::ALL.map(FailureReason::as_str)))
    )]
    pub failure_reason: Option<String>,
}
