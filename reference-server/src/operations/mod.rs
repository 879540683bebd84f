//! Operations of operators: the one implementation behind the command and the admin API.
//!
//! Each operation is recorded in the audit log: who, what, when, and how it ended. The entry is written before the
//! operation begins, because ledger, directory and archive are separate transactions, and in two databases: so none
//! happens without a trace. An operation ends even if its caller disconnects.

mod accounts;
mod archive;
mod jobs;
mod keys;
mod ledger;
mod quota;
mod rows;
mod system_user;
mod tokens;

use std::path::PathBuf;

use futures_util::FutureExt as _;
use transcript_core::{
    Error, Page, PageRequest, Random as _, Result,
    admin::{AuditEntry, AuditId, AuditResult, OperatorInterface},
    hex,
};
use verbatim::{SystemRandom, Verbatim};

pub(crate) use accounts::{CREDITS_MAX, DeleteOutcome, NewAccount};
pub(crate) use quota::{parse_expiry, parse_quota, quota_text};
pub(crate) use rows::{
    AccountRow, AuditRow, JobRow, KeyRow, NewAccountRow, TokenRow, audit_report_json, pool_name,
};
pub(crate) use system_user::system_user;
pub(crate) use tokens::{TokenName, authenticate};

/// Longest result in the audit log, in characters.
const RESULT_LENGTH_MAX: usize = 300;
/// Length of a random id in bytes.
const ID_LENGTH: u32 = 16;

/// Who operates.
#[derive(Clone, Debug)]
pub(crate) struct Operator {
    /// Name of the admin token, or of the system's user.
    pub(crate) name: String,
    pub(crate) interface: OperatorInterface,
}

impl Operator {
    /// The user of the system who runs the command.
    pub(crate) fn of_command() -> Self {
        Self { name: system_user(), interface: OperatorInterface::Command }
    }
}

/// The operations of one operator.
#[derive(Clone, Debug)]
pub(crate) struct Operations {
    verbatim: Verbatim,
    /// Folder of the mails that are not sent by SMTP.
    outbox_folder: PathBuf,
    operator: Operator,
}

/// An operation for the audit log.
#[derive(Debug)]
struct Operation {
    name: &'static str,
    /// Id of the key, account or video, if it is known before.
    subject: Option<String>,
    detail: Option<String>,
}

/// Result of an operation, and what the audit log says of it.
#[derive(Debug)]
struct Completed<T> {
    value: T,
    /// Id of what the operation created.
    subject: Option<String>,
    /// Why nothing was changed.
    refusal: Option<String>,
}

impl<T> Completed<T> {
    fn done(value: T) -> Self {
        Self { value, subject: None, refusal: None }
    }
}

impl Operation {
    fn new(name: &'static str) -> Self {
        Self { name, subject: None, detail: None }
    }

    fn on(self, subject: impl Into<String>) -> Self {
        Self { subject: Some(subject.into()), ..self }
    }

    fn with(self, detail: Option<String>) -> Self {
        Self { detail, ..self }
    }
}

impl Operations {
    pub(crate) fn new(verbatim: Verbatim, outbox_folder: PathBuf, operator: Operator) -> Self {
        Self { verbatim, outbox_folder, operator }
    }

    /// The same operations for another operator.
    pub(crate) fn for_operator(&self, operator: Operator) -> Self {
        Self { operator, ..self.clone() }
    }

    /// The service on which they operate.
    pub(crate) fn verbatim(&self) -> &Verbatim {
        &self.verbatim
    }

    /// A page of the audit log, newest first. Reading it is not recorded.
    pub(crate) async fn audit_log(&self, page: PageRequest) -> Result<Page<AuditEntry>> {
        self.verbatim.admin_store().audit_log(page).await
    }

    /// Records the operation, runs it to its end, and records how it ended.
    ///
    /// # Errors
    /// Those of the operation, and of the audit log: then the operation was not run.
    async fn record<T: Send + 'static>(
        &self,
        operation: Operation,
        work: impl Future<Output = Result<Completed<T>>> + Send + 'static,
    ) -> Result<T> {
        let this = self.clone();
        let work = async move {
            let store = this.verbatim.admin_store();
            let id = AuditId::new(random_id("audit")?);
            let entry = this.entry(id.clone(), operation);
            store.begin_audit(entry).await?;
            let ended = work.await;
            let (text, subject) = match &ended {
                Ok(Completed { refusal: None, subject, .. }) => {
                    (AuditResult::DONE.to_owned(), subject.clone())
                }
                Ok(Completed { refusal: Some(why), subject, .. }) => {
                    (format!("refused: {why}"), subject.clone())
                }
                Err(error) => (format!("failed: {error}"), None),
            };
            let text = text.chars().take(RESULT_LENGTH_MAX).collect();
            let result = AuditResult { at: this.verbatim.now(), text };
            if let Err(error) = store.end_audit(&id, result, subject).await {
                tracing::error!(%error, entry = %id, "end of an operation not recorded");
            }
            ended.map(|completed| completed.value)
        };
        // Boxed: the runtime's code for a task is compiled for each type of work.
        tokio::spawn(work.boxed()).await.map_err(|_| Error::unexpected("the operation ended early"))?
    }

    /// As [`Operations::record`], for a page of a list.
    async fn record_list<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        self.record(Operation::new(name), async { work.await.map(Completed::done) }).await
    }

    fn entry(&self, id: AuditId, operation: Operation) -> AuditEntry {
        AuditEntry {
            id,
            at: self.verbatim.now(),
            operator: self.operator.name.clone(),
            interface: self.operator.interface,
            operation: operation.name.to_owned(),
            subject: operation.subject,
            detail: operation.detail,
            result: None,
        }
    }
}

/// The name of a new grant.
pub(crate) fn new_grant_name() -> Result<String> {
    random_id("grant")
}

/// A new id: the kind of item, and random digits.
fn random_id(prefix: &str) -> Result<String> {
    let bytes = SystemRandom::open()?.bytes(ID_LENGTH);
    Ok(format!("{prefix}-{}", hex::encode(&bytes)))
}
