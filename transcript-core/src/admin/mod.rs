//! Operators: the tokens of the admin API, and the audit log of what operators did.

mod records;

use std::fmt;

use async_trait::async_trait;

pub use records::{
    AdminToken, AuditEntry, AuditId, AuditResult, NAME_LENGTH_MAX, NewAdminToken, OperatorInterface,
    is_operator_name,
};

use crate::{
    error::Result,
    page::{Page, PageRequest},
    time::Timestamp,
};

/// Store of admin tokens and of the audit log.
///
/// Each method is one transaction, as with [`crate::directory::Directory`]. Entries of the audit log are never deleted,
/// and change only once: when the operation ends.
#[async_trait]
pub trait AdminStore: fmt::Debug + Send + Sync + 'static {
    /// Adds a token; returns whether its name was free.
    ///
    /// **Behaviour**: names of revoked tokens stay taken, so that a name in the audit log always means the same token.
    /// The same token again (name and digest) returns true and changes nothing.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Conflict`] if the digest belongs to another name.
    async fn add_admin_token(&self, token: NewAdminToken) -> Result<bool>;

    /// The name of the live token with this digest.
    async fn admin_name(&self, digest: &[u8]) -> Result<Option<String>>;

    /// Revokes a token; returns whether a live one has this name.
    async fn revoke_admin_token(&self, name: &str, now: Timestamp) -> Result<bool>;

    /// Lists the tokens by name, with revoked ones.
    async fn admin_tokens(&self, page: PageRequest) -> Result<Page<AdminToken>>;

    /// Records that an operation begins. The same entry again changes nothing.
    async fn begin_audit(&self, entry: AuditEntry) -> Result<()>;

    /// Records how an operation ended, and its subject if the entry has none yet.
    ///
    /// **Behaviour**: an entry that has a result keeps it.
    async fn end_audit(&self, id: &AuditId, result: AuditResult, subject: Option<String>) -> Result<()>;

    /// Lists the entries of the audit log, newest first.
    async fn audit_log(&self, page: PageRequest) -> Result<Page<AuditEntry>>;
}
