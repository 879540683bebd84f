//! Operations of operators: the one implementation behind the command and the admin API.
//!
//! Each operation is recorded in the audit log: who, what, when, and how it ended. The entry is written before the
//! operation begins, because ledger, directory and archive are separate transactions, and in two databases: so none
//! happens without a trace, but takedowns, which do not depend on the audit log. An operation ends even if its caller
//! disconnects.

mod accounts;
mod archive;
mod jobs;
mod keys;
mod ledger;
mod quota;
mod rows;
mod system_user;
mod tokens;

use std::{path::PathBuf, sync::Arc};

use futures_util::FutureExt as _;
use tokio::sync::RwLock;
use transcript_core::{
    Error, Page, PageRequest, Random as _, Result,
    admin::{AuditEntry, AuditId, AuditResult, OperatorInterface},
    hex,
};
use verbatim::{SystemRandom, Verbatim};

pub(crate) use accounts::{CREDITS_MAX, DeleteOutcome, MEMO_MAX, NewAccount, start_grant_name};
pub(crate) use quota::{QUOTA_PATTERN, parse_expiry, parse_quota, quota_text};
pub(crate) use rows::{
    AccountRow, AuditRow, JobRow, KeyRow, NewAccountRow, RevokedGrantRow, TokenRow, audit_report_json,
    pool_name,
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
    /// Each running operation locks it for reading.
    running: Arc<RwLock<()>>,
}

/// An operation for the audit log.
#[derive(Debug)]
struct Operation {
    name: &'static str,
    /// Id of the key, account or video, if it is known before.
    subject: Option<String>,
    detail: Option<String>,
    /// Whether it is not done if it cannot be recorded.
    needs_entry: bool,
}

/// Result of an operation, and what the audit log says of it.
#[derive(Debug)]
struct Completed<T> {
    value: T,
    /// Id of what the operation created.
    subject: Option<String>,
    /// Why nothing was changed.
    refusal: Option<String>,
    /// What else is known of an operation that is done.
    note: Option<&'static str>,
}

impl<T> Completed<T> {
    fn done(value: T) -> Self {
        Self { value, subject: None, refusal: None, note: None }
    }
}

impl Operation {
    fn new(name: &'static str) -> Self {
        Self { name, subject: None, detail: None, needs_entry: true }
    }

    fn on(self, subject: impl Into<String>) -> Self {
        Self { subject: Some(subject.into()), ..self }
    }

    fn with(self, detail: Option<String>) -> Self {
        Self { detail, ..self }
    }

    /// A takedown, which must not depend on the audit log.
    fn takedown(name: &'static str) -> Self {
        Self { needs_entry: false, ..Self::new(name) }
    }
}

impl Operations {
    pub(crate) fn new(verbatim: Verbatim, outbox_folder: PathBuf, operator: Operator) -> Self {
        Self { verbatim, outbox_folder, operator, running: Arc::default() }
    }

    /// The same operations for another operator.
    pub(crate) fn for_operator(&self, operator: Operator) -> Self {
        Self { operator, ..self.clone() }
    }

    /// The same operations over the services of another handle.
    pub(crate) fn over(&self, verbatim: &Verbatim) -> Self {
        Self { verbatim: verbatim.clone(), ..self.clone() }
    }

    /// Waits until no operation of these and of their copies runs.
    pub(crate) async fn wait_until_idle(&self) {
        drop(self.running.write().await);
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
        Ok(self.record_if_possible(operation, work).await?.0)
    }

    /// As [`Operations::record`]; also returns why there is no entry of a takedown.
    async fn record_if_possible<T: Send + 'static>(
        &self,
        operation: Operation,
        work: impl Future<Output = Result<Completed<T>>> + Send + 'static,
    ) -> Result<(T, Option<Error>)> {
        let (this, running) = (self.clone(), Arc::clone(&self.running).read_owned().await);
        let work = async move {
            let _running = running;
            let id = AuditId::new(random_id("audit")?);
            let needs_entry = operation.needs_entry;
            let entry = this.entry(id.clone(), operation);
            let unrecorded = match this.verbatim.admin_store().begin_audit(entry.clone()).await {
                Err(error) if needs_entry => return Err(error),
                begun => begun.err(),
            };
            if let Some(error) = &unrecorded {
                tracing::error!(%error, ?entry, "operation not recorded in the audit log");
            }
            let ended = work.await;
            let (text, subject) = result_text(&ended);
            if unrecorded.is_none() {
                this.record_end(&id, text, subject).await;
            }
            ended.map(|completed| (completed.value, unrecorded))
        };
        // Boxed: the runtime's code for a task is compiled for each type of work.
        tokio::spawn(work.boxed()).await.map_err(|_| Error::unexpected("the operation ended early"))?
    }

    /// Records how an operation ended.
    async fn record_end(&self, id: &AuditId, text: String, subject: Option<String>) {
        let result = AuditResult { at: self.verbatim.now(), text };
        if let Err(error) = self.verbatim.admin_store().end_audit(id, result, subject).await {
            tracing::error!(%error, entry = %id, "end of an operation not recorded");
        }
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

/// What the audit log says of the end of an operation, and the id of what it created.
fn result_text<T>(ended: &Result<Completed<T>>) -> (String, Option<String>) {
    let (text, subject) = match ended {
        Ok(Completed { refusal: Some(why), subject, .. }) => (format!("refused: {why}"), subject.clone()),
        Ok(Completed { note: Some(note), subject, .. }) => {
            (format!("{}: {note}", AuditResult::DONE), subject.clone())
        }
        Ok(Completed { subject, .. }) => (AuditResult::DONE.to_owned(), subject.clone()),
        Err(error) => (format!("failed: {error}"), None),
    };
    (text.chars().take(RESULT_LENGTH_MAX).collect(), subject)
}

pub(crate) fn new_grant_name() -> Result<String> {
    random_id("grant")
}

/// A new id: the kind of item, and random digits.
fn random_id(prefix: &str) -> Result<String> {
    let bytes = SystemRandom::open()?.bytes(ID_LENGTH);
    Ok(format!("{prefix}-{}", hex::encode(&bytes)))
}
