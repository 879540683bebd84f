//! `verbatim accounts`: manages accounts of the v1 API.
//!
//! Servers do not cache accounts, so a change applies to the next request of a running server.

use std::{fmt::Write as _, sync::Arc};

use serde::Serialize;
use transcript_core::{
    Random,
    accounts::{AccountAdmin, AccountView, PlanState, Profile, ProviderRefs},
    ids::GrantId,
    ledger::Entry,
    wire::v1::{AccountExport, AccountInfo, StatementLine},
};
use verbatim::{SystemRandom, Verbatim};

use super::{
    CommandError,
    accounts_arguments::{AccountsCommand, DeleteAccountArgs, GrantArgs, ListAccountsArgs, ShowAccountArgs},
    confirm::confirm,
    listing::{print_all, seconds},
    open_existing, print, print_json, shown,
};
use crate::{
    config::{OUTBOX_FOLDER, Settings},
    mail::delete_mails,
};

/// Longest memo that is printed, in characters.
const MEMO_MAX: usize = 200;

/// Runs a subcommand of `accounts`.
pub(super) async fn run(settings: &Settings, command: AccountsCommand) -> Result<(), CommandError> {
    let verbatim = open_existing(settings).await?;
    let accounts = &verbatim.accounts().admin;
    let done = match command {
        AccountsCommand::List(args) => list(accounts, &args).await,
        AccountsCommand::Show(args) => show(accounts, &args).await,
        AccountsCommand::Grant(args) => grant(accounts, &args).await,
        AccountsCommand::Block(args) => set_blocked(accounts, &args.selector, true).await,
        AccountsCommand::Unblock(args) => set_blocked(accounts, &args.selector, false).await,
        AccountsCommand::Statement(args) => statement(accounts, &args).await,
        AccountsCommand::Export(args) => export(accounts, &args.selector).await,
        AccountsCommand::Delete(args) => delete(settings, &verbatim, &args).await,
    };
    verbatim.close().await;
    done
}

async fn list(accounts: &Arc<AccountAdmin>, args: &ListAccountsArgs) -> Result<(), CommandError> {
    print_all::<AccountRow, _, _>(args.json, |page| accounts.list(page), table).await
}

async fn show(accounts: &Arc<AccountAdmin>, args: &ShowAccountArgs) -> Result<(), CommandError> {
    let view = accounts.show(&args.account.selector).await?;
    match args.json {
        true => print_json(&pretty(&AccountRow::from(&view))),
        false => print(&as_text(&view)),
    }
}

async fn grant(accounts: &Arc<AccountAdmin>, args: &GrantArgs) -> Result<(), CommandError> {
    let id = match &args.id {
        Some(name) => GrantId::operator_grant(name),
        None => {
            let digits = SystemRandom::open()?.bytes(16);
            GrantId::operator_grant(digits.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        }
    };
    let view = accounts.grant(&args.account.selector, id, args.credits, &args.memo).await?;
    print(&format!("{}: {} credits left\n", view.account.email, view.credits.remaining))
}

async fn set_blocked(
    accounts: &Arc<AccountAdmin>,
    selector: &str,
    blocked: bool,
) -> Result<(), CommandError> {
    let account = accounts.set_blocked(selector, blocked).await?;
    print(&format!("{}: {}\n", account.email, if account.blocked { "blocked" } else { "not blocked" }))
}

async fn statement(accounts: &Arc<AccountAdmin>, args: &ShowAccountArgs) -> Result<(), CommandError> {
    let selector = args.account.selector.as_str();
    print_all::<StatementLine, _, _>(args.json, |page| accounts.statement(selector, page), statement_table)
        .await
}

async fn export(accounts: &Arc<AccountAdmin>, selector: &str) -> Result<(), CommandError> {
    print_json(&pretty(&AccountExport::from(&accounts.export(selector).await?)))
}

async fn delete(
    settings: &Settings,
    verbatim: &Verbatim,
    args: &DeleteAccountArgs,
) -> Result<(), CommandError> {
    let accounts = &verbatim.accounts().admin;
    let view = accounts.show(&args.account.selector).await?;
    let (account, remaining) = (&view.account, view.credits.remaining);
    let question = format!("Erase the account of {}, with {remaining} credits left?", account.email);
    if !args.yes && !confirm(&question)? {
        return Err(CommandError::Fault("nothing was deleted".to_owned()));
    }
    let mut text = String::new();
    let account = &match verbatim.payments().close(account).await {
        Ok(account) => account,
        Err(error) if args.anyway => {
            text += &format!("its open checkout sessions could not be closed: {error}\n");
            account.clone()
        }
        Err(error) => {
            return Err(CommandError::Fault(format!(
                "nothing was deleted: its open checkout sessions could not be closed: {error}; try again once the \
                 payment provider is reachable (--anyway deletes it nevertheless)"
            )));
        }
    };
    let refs = accounts.provider_refs(account).await?;
    if !refs.is_empty() && !args.anyway {
        return Err(CommandError::Fault(format!("nothing was deleted: {}", deletion_obstacles(&refs))));
    }
    // The account as shown: a change during the confirmation makes the deletion fail.
    accounts.delete(account, args.anyway).await?;
    text += &format!("{}: deleted\n", account.id);
    if let Some(subscription) = &refs.subscription {
        text += &format!("the subscription {subscription} continues: cancel it at the payment provider\n");
    }
    for order in &refs.orders {
        let payment = verbatim.payments().order(order).await?.and_then(|order| order.payment);
        // The sandbox stores a token after the name.
        let payment = payment.as_deref().and_then(|name| name.split(' ').next()).unwrap_or("unknown");
        text += &format!(
            "the order {order} may still be paid (payment {payment}): the server's log reports it; refund it then\n"
        );
    }
    let folder = settings.data.join(OUTBOX_FOLDER);
    let mails = delete_mails(&folder, &account.email).map_err(|error| {
        let folder = folder.display();
        CommandError::Fault(format!("{text}some of its mails in {folder} could not be deleted: {error}"))
    })?;
    match mails {
        0 => {}
        1 => text += "1 mail to it was deleted from the outbox folder\n",
        mails => text += &format!("{mails} mails to it were deleted from the outbox folder\n"),
    }
    print(&text)
}

/// Returns the reasons why an account cannot be deleted, with the remedies.
fn deletion_obstacles(refs: &ProviderRefs) -> String {
    let mut reasons = Vec::new();
    if let Some(subscription) = &refs.subscription {
        reasons.push(format!(
            "its subscription {subscription} would continue to charge a customer without an account; cancel it at the \
             payment provider first"
        ));
    }
    match refs.orders.as_slice() {
        [] => {}
        [order] => reasons.push(format!(
            "its order {order} may still be paid; wait until its checkout session has expired, within a day or two, or \
             expire it at the payment provider"
        )),
        orders => reasons.push(format!(
            "{} of its orders may still be paid, the first is {}; wait until their checkout sessions have expired, \
             within a day or two, or expire them at the payment provider",
            orders.len(),
            orders[0]
        )),
    }
    format!("{} (--anyway deletes it nevertheless)", reasons.join("; and "))
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
fn table(accounts: &[AccountView], with_heading: bool) -> String {
    let mut text = String::new();
    let mut row = |columns: [&str; 6]| {
        let [id, plan, state, credits, resets, email] = columns;
        let line = format!("{id:40}  {plan:8}  {state:8}  {credits:>19}  {resets:20}  {email}");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", line.trim_end());
    };
    if with_heading {
        row(["ID", "PLAN", "STATE", "CREDITS", "RESETS", "EMAIL"]);
    }
    for view in accounts {
        row([
            view.account.id.as_str(),
            view.effective_plan.plan.as_str(),
            state(view),
            &format!("{}/{}", view.credits.remaining, view.credits.total),
            &seconds(&view.credits.resets_at.to_string()),
            &view.account.email,
        ]);
    }
    text
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
    let mut text = String::new();
    let mut row = |columns: [&str; 5]| {
        let [at, step, credits, month, memo] = columns;
        let line = format!("{at:20}  {step:8}  {credits:>10}  {month:20}  {memo}");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", line.trim_end());
    };
    if with_heading {
        row(["AT", "STEP", "CREDITS", "MONTH", "FOR"]);
    }
    for line in entries.iter().map(StatementLine::from) {
        let month = line.month.as_deref().unwrap_or("purchased");
        row([&seconds(&line.at), &line.step, &line.credits.to_string(), month, &shown(&line.memo, MEMO_MAX)]);
    }
    text
}

/// Account in `accounts list --json` and `accounts show --json`.
#[derive(Serialize)]
struct AccountRow {
    id: String,
    #[serde(flatten)]
    account: AccountInfo,
    /// Plan state: `free`, `paid` or `grace`.
    state: &'static str,
    blocked: bool,
    months_from: String,
    paid_through: Option<String>,
    customer: Option<String>,
    subscription: Option<String>,
}

impl From<&AccountView> for AccountRow {
    fn from(view: &AccountView) -> Self {
        let account = &view.account;
        let profile = Profile { email: account.email.clone(), credits: view.credits };
        Self {
            id: account.id.to_string(),
            account: AccountInfo::from(&profile),
            state: match view.effective_plan.state {
                PlanState::Free => "free",
                PlanState::Paid => "paid",
                PlanState::Grace => "grace",
            },
            blocked: account.blocked,
            months_from: account.anchor.to_string(),
            paid_through: account.paid.map(|paid| paid.through.to_string()),
            customer: account.customer.clone(),
            subscription: account.subscription.clone(),
        }
    }
}
