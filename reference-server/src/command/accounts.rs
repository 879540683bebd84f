//! `verbatim accounts`: manages accounts of the v1 API.
//!
//! Servers do not cache accounts, so a change applies to the next request of a running server.

use std::sync::Arc;

use serde::Serialize;
use transcript_core::{
    ErrorKind,
    accounts::{AccountView, PlanState},
    ledger::Entry,
    wire::v1::StatementLine,
};

use super::{
    CommandError,
    accounts_arguments::{
        AccountsCommand, CreateAccountArgs, DeleteAccountArgs, GrantArgs, RevokeGrantArgs, ShowAccountArgs,
    },
    confirm::confirm,
    listing::{print_all, seconds, table},
    open, open_existing, operations, print, print_json,
    search::shell_word,
    shown,
};
use crate::{
    config::Settings,
    operations::{
        AccountRow, DeleteOutcome, NewAccount, NewAccountRow, Operations, new_grant_name, start_grant_name,
    },
    routes::ExportBody,
};

/// Longest memo that is printed, in characters.
const MEMO_MAX: usize = 200;

/// Runs a subcommand of `accounts`.
pub(super) async fn run(settings: &Settings, command: AccountsCommand) -> Result<(), CommandError> {
    let verbatim = match command {
        AccountsCommand::Create(_) => open(settings).await?,
        _ => open_existing(settings).await?,
    };
    let operations = &operations(settings, &verbatim);
    let done = match command {
        AccountsCommand::Create(args) => create(operations, &args).await,
        AccountsCommand::NewKey(args) => new_key(operations, &args).await,
        AccountsCommand::List(args) => {
            print_all::<AccountRow, _, _>(args.json, |page| operations.list_accounts(page), account_table)
                .await
        }
        AccountsCommand::Show(args) => show(operations, &args).await,
        AccountsCommand::Grant(args) => grant(operations, &args).await,
        AccountsCommand::RevokeGrant(args) => revoke_grant(operations, &args).await,
        AccountsCommand::Block(args) => set_blocked(operations, &args.selector, true).await,
        AccountsCommand::Unblock(args) => set_blocked(operations, &args.selector, false).await,
        AccountsCommand::Statement(args) => statement(operations, &args).await,
        AccountsCommand::Export(args) => export(operations, &args.selector).await,
        AccountsCommand::Delete(args) => delete(operations, &args).await,
    };
    verbatim.close().await;
    done
}

async fn create(operations: &Operations, args: &CreateAccountArgs) -> Result<(), CommandError> {
    let new = operations.create_account(&args.name, args.credits, &args.memo).await?;
    print_new(&new, args.json)?;
    let Some(why) = &new.ungranted else { return Ok(()) };
    let (id, credits) = (&new.view.account.id, args.credits);
    Err(CommandError::Fault(format!(
        "the account exists, but its credits are not granted: {why}\n`verbatim accounts grant {id} {credits} --id {} \
         --memo {}` grants them once.",
        start_grant_name(id),
        shell_word(&args.memo)
    )))
}

async fn new_key(operations: &Operations, args: &ShowAccountArgs) -> Result<(), CommandError> {
    print_new(&operations.issue_account_key(&args.account.selector).await?, args.json)
}

/// Prints the new key of an account, alone or with the account.
fn print_new(new: &NewAccount, is_json: bool) -> Result<(), CommandError> {
    let printed = match is_json {
        true => print_json(&pretty(&NewAccountRow::from(new))),
        false => print(&format!("{}\n", new.key.reveal())),
    };
    printed.map_err(|_| {
        let id = &new.view.account.id;
        let what = format!(
            "standard output was closed; `verbatim accounts new-key {id}` replaces the unprinted key"
        );
        CommandError::Fault(what)
    })
}

async fn show(operations: &Operations, args: &ShowAccountArgs) -> Result<(), CommandError> {
    let view = operations.show_account(&args.account.selector).await?;
    match args.json {
        true => print_json(&pretty(&AccountRow::from(&view))),
        false => print(&as_text(&view)),
    }
}

async fn grant(operations: &Operations, args: &GrantArgs) -> Result<(), CommandError> {
    let id = args.id.clone().map_or_else(new_grant_name, Ok)?;
    let granted = operations.grant_or_find(&args.account.selector, &id, args.credits, &args.memo).await;
    let (view, is_found) = granted.map_err(|error| match error.kind() {
        ErrorKind::Unavailable | ErrorKind::Unexpected => CommandError::Fault(format!(
            "{error}\nThe credits may have been granted. The same command with `--id {id}` grants them once."
        )),
        _ => error.into(),
    })?;
    let note = if is_found { "already granted; " } else { "" };
    let (email, remaining) = (&view.account.email, view.credits.remaining);
    print(&format!("{email}: {note}{remaining} credits left (grant {id})\n"))
}

async fn revoke_grant(operations: &Operations, args: &RevokeGrantArgs) -> Result<(), CommandError> {
    let revoked = operations.revoke_grant(&args.account.selector, &args.grant).await?;
    let note = if revoked.is_repeated { "already revoked; " } else { "" };
    let missing = match revoked.shortfall {
        0 => String::new(),
        shortfall => format!(", {shortfall} spent or held"),
    };
    let (view, taken) = (&revoked.view, revoked.taken);
    let (email, remaining) = (&view.account.email, view.credits.remaining);
    print(&format!("{email}: {note}{taken} credits taken back{missing}; {remaining} credits left\n"))
}

async fn set_blocked(operations: &Operations, selector: &str, blocked: bool) -> Result<(), CommandError> {
    let account = operations.set_account_blocked(selector, blocked).await?;
    print(&format!("{}: {}\n", account.email, if account.blocked { "blocked" } else { "not blocked" }))
}

async fn statement(operations: &Operations, args: &ShowAccountArgs) -> Result<(), CommandError> {
    let selector = args.account.selector.as_str();
    let page = |page| operations.account_statement(selector, page);
    print_all::<StatementLine, _, _>(args.json, page, statement_table).await
}

/// Prints the data of an account page by page: it may have millions of ledger entries.
async fn export(operations: &Operations, selector: &str) -> Result<(), CommandError> {
    let export = operations.export_account(selector).await?;
    let mut body = ExportBody::new(Arc::clone(&operations.verbatim().accounts().admin), &export)?;
    while let Some(part) = body.next_part().await? {
        print_json(&part)?;
    }
    Ok(())
}

async fn delete(operations: &Operations, args: &DeleteAccountArgs) -> Result<(), CommandError> {
    let view = operations.show_account(&args.account.selector).await?;
    let (account, remaining) = (&view.account, view.credits.remaining);
    let question = format!("Erase the account of {}, with {remaining} credits left?", account.email);
    if !args.yes && !confirm(&question)? {
        return Err(CommandError::Fault("nothing was deleted".to_owned()));
    }
    match operations.delete_account(account, args.anyway).await? {
        DeleteOutcome::Deleted { notes } => print(&format!("{}\n", notes.join("\n"))),
        DeleteOutcome::Refused(why) => {
            Err(CommandError::Fault(format!("nothing was deleted: {why} (--anyway deletes it nevertheless)")))
        }
    }
}

/// Formats a document as indented JSON.
fn pretty(document: &impl Serialize) -> String {
    // Serialization of texts and numbers cannot fail.
    format!("{}\n", serde_json::to_string_pretty(document).unwrap_or_default())
}

/// Returns the plan state of an account.
fn state(view: &AccountView) -> &'static str {
    match (view.account.blocked, view.effective_plan.state) {
        (true, _) => "blocked",
        (false, PlanState::Free) => "-",
        (false, PlanState::Paid) => "paid",
        (false, PlanState::Grace) => "overdue",
    }
}

/// Formats accounts as a table. The address is the last column, because it may be long.
fn account_table(accounts: &[AccountView], with_heading: bool) -> String {
    let columns = [("ID", 40), ("PLAN", 8), ("STATE", 8), ("CREDITS", -19), ("RESETS", 20), ("EMAIL", 0)];
    let row = |view: &AccountView| {
        [
            view.account.id.to_string(),
            view.effective_plan.plan.as_str().to_owned(),
            state(view).to_owned(),
            format!("{}/{}", view.credits.remaining, view.credits.total),
            seconds(&view.credits.resets_at.to_string()),
            view.account.email.clone(),
        ]
    };
    table(columns, with_heading, accounts.iter().map(row))
}

fn as_text(view: &AccountView) -> String {
    let account = &view.account;
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let lines = [
        ("email", account.email.clone()),
        ("id", account.id.to_string()),
        ("plan", view.effective_plan.plan.as_str().to_owned()),
        ("state", state(view).to_owned()),
        ("credits", format!("{} of {}", view.credits.remaining, view.credits.total)),
        ("resets", view.credits.resets_at.to_string()),
        ("paid through", or_none(&account.paid.map(|paid| paid.through.to_string()))),
        ("customer", or_none(&account.customer)),
        ("subscription", or_none(&account.subscription)),
    ];
    lines.map(|(name, value)| format!("{name}: {value}\n")).concat()
}

fn statement_table(entries: &[Entry], with_heading: bool) -> String {
    let columns = [("AT", 20), ("STEP", 8), ("CREDITS", -10), ("MONTH", 20), ("FOR", 0)];
    let row = |line: StatementLine| {
        let month = line.month.unwrap_or_else(|| "purchased".to_owned());
        [seconds(&line.at), line.step, line.credits.to_string(), month, shown(&line.memo, MEMO_MAX)]
    };
    table(columns, with_heading, entries.iter().map(StatementLine::from).map(row))
}
