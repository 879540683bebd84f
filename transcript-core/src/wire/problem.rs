//! Errors of the lookup API: problem details.

use serde::{Deserialize, Serialize};

#[cfg(feature = "openapi")]
use crate::lookup::FailureReason;

/// A problem details object (RFC 9457), the body of every error of the lookup API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Problem {
    /// The kind of problem: `about:blank`, or a permanent name.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind in a few words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong with this request, and what to do.
    pub detail: String,
    /// Reserved for the failure reason of a lookup; the server does not send it.
    #[serde(rename = "failureReason", default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "openapi",
        schemars(with = "String", extend("enum" = FailureReason::ALL.map(FailureReason::as_str)))
    )]
    pub failure_reason: Option<String>,
}
