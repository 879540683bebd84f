//! The audit of the ledger.

use transcript_core::Result;
use verbatim::AuditReport;

use super::{Completed, Operation, Operations};

impl Operations {
    /// Recomputes every balance from its entries.
    pub(crate) async fn audit_ledger(&self) -> Result<AuditReport> {
        let verbatim = self.verbatim.clone();
        let work = async move {
            let report = verbatim.audit().await?;
            let refusal = match report.disagreements.len() {
                0 => None,
                count => Some(format!("{count} differences")),
            };
            Ok(Completed { refusal, ..Completed::done(report) })
        };
        self.record(Operation::new("ledger.audit"), work).await
    }
}
