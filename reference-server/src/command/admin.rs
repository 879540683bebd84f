//! `verbatim admin-tokens` and `verbatim audit-log`.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use transcript_core::{
    Page, PageRequest, Result,
    admin::{AdminToken, AuditEntry},
    page::PAGE_LIMIT,
};

use super::{
    CommandError,
    admin_arguments::{AdminTokensCommand, AuditLogArgs},
    listing::{print_all, seconds, table},
    open, open_existing, operations, print, shown,
};
use crate::{
    config::Settings,
    operations::{AuditRow, Operations, TokenName, TokenRow},
};

/// Longest text of an entry that is printed, in characters.
const TEXT_MAX: usize = 200;

/// Runs a subcommand of `admin-tokens`.
pub(super) async fn run_tokens(settings: &Settings, command: AdminTokensCommand) -> Result<(), CommandError> {
    let verbatim = match command {
        AdminTokensCommand::Create(_) => open(settings).await?,
        AdminTokensCommand::List(_) | AdminTokensCommand::Revoke(_) => open_existing(settings).await?,
    };
    let operations = operations(settings, &verbatim);
    let done = match command {
        AdminTokensCommand::Create(args) => create(&operations, args.name).await,
        AdminTokensCommand::List(args) => {
            print_all::<TokenRow, _, _>(args.json, |page| operations.list_tokens(page), token_table).await
        }
        AdminTokensCommand::Revoke(args) => operations.revoke_token(args.name).await.map_err(Into::into),
    };
    verbatim.close().await;
    done
}

async fn create(operations: &Operations, name: TokenName) -> Result<(), CommandError> {
    let token = operations.create_token(name.clone()).await?;
    if print(&format!("{}\n", token.reveal())).is_ok() {
        return Ok(());
    }
    let what = match operations.revoke_token(name).await {
        Ok(()) => "the unprinted token was revoked; choose another name for the next one",
        Err(_) => "the unprinted token still exists; revoke it with `verbatim admin-tokens revoke`",
    };
    Err(CommandError::Fault(format!("standard output was closed: {what}")))
}

fn token_table(tokens: &[AdminToken], with_heading: bool) -> String {
    let row = |token: &AdminToken| {
        let revoked = token.revoked_at.map_or_else(|| "-".to_owned(), |at| seconds(&at.to_string()));
        [seconds(&token.created_at.to_string()), revoked, token.name.clone()]
    };
    table([("CREATED", 20), ("REVOKED", 20), ("NAME", 0)], with_heading, tokens.iter().map(row))
}

/// Prints the newest entries of the audit log.
pub(super) async fn run_audit_log(settings: &Settings, args: AuditLogArgs) -> Result<(), CommandError> {
    let verbatim = open_existing(settings).await?;
    let operations = operations(settings, &verbatim);
    let left = AtomicU32::new(args.count);
    let page = async |page: PageRequest| -> Result<Page<AuditEntry>> {
        let limit = left.load(Relaxed).min(PAGE_LIMIT);
        let mut page = operations.audit_log(PageRequest { limit, ..page }).await?;
        left.fetch_sub(limit, Relaxed);
        page.next = page.next.filter(|_| left.load(Relaxed) > 0);
        Ok(page)
    };
    let done = print_all::<AuditRow, _, _>(args.json, page, audit_table).await;
    verbatim.close().await;
    done
}

fn audit_table(entries: &[AuditEntry], with_heading: bool) -> String {
    let columns =
        [("AT", 20), ("OPERATOR", 16), ("INTERFACE", 9), ("OPERATION", 21), ("SUBJECT", 40), ("RESULT", 0)];
    let row = |entry: &AuditEntry| {
        let result = entry.result.as_ref().map_or("-", |result| result.text.as_str());
        let detail = entry.detail.as_ref().map_or(String::new(), |detail| format!(" ({detail})"));
        [
            seconds(&entry.at.to_string()),
            shown(&entry.operator, TEXT_MAX),
            entry.interface.as_str().to_owned(),
            entry.operation.clone(),
            shown(entry.subject.as_deref().unwrap_or("-"), TEXT_MAX),
            shown(&format!("{result}{detail}"), TEXT_MAX),
        ]
    };
    table(columns, with_heading, entries.iter().map(row))
}

#[cfg(test)]
mod tests {
    use transcript_core::{Timestamp, admin::OperatorInterface, ids::AuditId};

    use super::*;

    #[test]
    fn audit_log_longest_operation_fits_its_column() {
        let entry = AuditEntry {
            id: AuditId::new("1"),
            at: Timestamp::from_millis(0),
            operator: "ann".to_owned(),
            interface: OperatorInterface::Command,
            operation: "accounts.revoke-grant".to_owned(),
            subject: Some("account-1".to_owned()),
            detail: None,
            result: None,
        };
        let text = audit_table(&[entry], true);
        let (heading, row) = text.split_once('\n').unwrap();
        assert_eq!(heading.find("SUBJECT"), row.find("account-1"), "{text}");
    }
}
