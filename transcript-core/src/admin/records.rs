//! Records of admin tokens and of the audit log.

use serde::{Deserialize, Serialize};

pub use crate::ids::AuditId;
use crate::{names::names, time::Timestamp};

/// Length of the longest name of an operator, in characters.
pub const NAME_LENGTH_MAX: usize = 64;

/// Whether a text can be the name of an admin token: letters, digits, `.`, `_`, `-` and `@`.
pub fn is_operator_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '@');
    !name.is_empty() && name.len() <= NAME_LENGTH_MAX && name.chars().all(is_allowed)
}

/// A new admin token, without the token itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewAdminToken {
    /// Name of its owner, for the audit log.
    pub name: String,
    /// SHA-256 of the whole token: 32 bytes.
    pub digest: Vec<u8>,
    /// Current time.
    pub now: Timestamp,
}

/// An admin token as operators see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdminToken {
    /// Name of its owner.
    pub name: String,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of revocation; `None` if not revoked.
    pub revoked_at: Option<Timestamp>,
}

/// How an operator starts an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperatorInterface {
    /// The command; the operator is the user of the system.
    Command,
    /// The admin API; the operator is the name of the token.
    Api,
}

names!(OperatorInterface, from_wire {
    Command = "command",
    Api = "api",
});

/// An operation in the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Id of the entry.
    pub id: AuditId,
    /// When the operation began.
    pub at: Timestamp,
    /// Who did it.
    pub operator: String,
    /// How it was started.
    pub interface: OperatorInterface,
    /// Name of the operation, such as `keys.revoke`.
    pub operation: String,
    /// Id of the key, account or video; `None` if it concerns no single one, or none was found.
    pub subject: Option<String>,
    /// Further data, such as an amount. No secrets and no personal data.
    pub detail: Option<String>,
    /// How it ended; `None` while it runs, or if its end was not recorded.
    pub result: Option<AuditResult>,
}

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditResult {
    /// When it ended.
    pub at: Timestamp,
    /// `done`, or why not.
    pub text: String,
}

impl AuditResult {
    /// Text of a completed operation.
    pub const DONE: &'static str = "done";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operator_name_has_plain_characters_only() {
        for name in ["ann", "Ann.Example_2", "ann@example.org", "a-b", &"x".repeat(64)] {
            assert!(is_operator_name(name), "{name}");
        }
        for name in ["", " ann", "ann\n", "ann;", "änn", "a b", &"x".repeat(65)] {
            assert!(!is_operator_name(name), "{name}");
        }
    }
}
