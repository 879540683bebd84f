//! Errors of Surface A: problem details.

use serde::{Deserialize, Serialize};

/// A problem details object (RFC 9457), the body of every error of Surface A.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    pub failure_reason: Option<String>,
}
