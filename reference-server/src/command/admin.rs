//! `verbatim admin-tokens` and `verbatim audit-log`.

use std::{
    fmt::Write as _,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use transcript_core::{
    Page, PageRequest, Result,
    admin::{AdminToken, AuditEntry},
    page::PAGE_LIMIT,
};

use super::{
    CommandError,
    admin_arguments::{AdminTokensCommand, AuditLogArgs},
    listing::{print_all, seconds},
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
    let mut text = String::new();
    if with_heading {
        text.push_str("CREATED               REVOKED               NAME\n");
    }
    for token in tokens {
        let revoked = token.revoked_at.map_or_else(|| "-".to_owned(), |at| seconds(&at.to_string()));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:20}  {revoked:20}  {}", seconds(&token.created_at.to_string()), token.name);
    }
    text
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
    let mut text = String::new();
    let mut row = |columns: [&str; 6]| {
        let [at, operator, interface, operation, subject, result] = columns;
        let line = format!("{at:20}  {operator:16}  {interface:9}  {operation:19}  {subject:40}  {result}");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", line.trim_end());
    };
    if with_heading {
        row(["AT", "OPERATOR", "INTERFACE", "OPERATION", "SUBJECT", "RESULT"]);
    }
    for entry in entries {
        let result = entry.result.as_ref().map_or("-", |result| result.text.as_str());
        let detail = entry.detail.as_ref().map_or(String::new(), |detail| format!(" ({detail})"));
        row([
            &seconds(&entry.at.to_string()),
            &shown(&entry.operator, TEXT_MAX),
            entry.interface.as_str(),
            &entry.operation,
            &shown(entry.subject.as_deref().unwrap_or("-"), TEXT_MAX),
            &shown(&format!("{result}{detail}"), TEXT_MAX),
        ]);
    }
    text
}
