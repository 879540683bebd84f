//! `verbatim accounts`: the accounts of the v1 API, from the operator's hand.
//!
//! Nothing of an account is kept in memory by a server, so that a running one obeys from its next request on.

use std::fmt::Write as _;

use serde::Serialize;
use transcript_core::{
    Random,
    accounts::{AccountView, Accounts, PlanState, Profile, Ties},
    ids::GrantId,
    ledger::Entry,
    wire::v1::{AccountExport, Me, StatementLine},
};
use verbatim::{SystemRandom, Verbatim};

use super::{
    Failure,
    accounts_arguments::{AccountsCommand, DeleteAccount, Grant, ListAccounts, ShowAccount},
    confirm::confirmed,
    listing::{print_all, seconds},
    open_existing, print, print_json, shown,
};
use crate::{
    config::{OUTBOX_FOLDER, Settings},
    mail::forget_mails,
};

/// The most characters of a memo that are shown.
const MEMO_MAX: usize = 200;

/// Runs one of the commands about accounts.
pub(super) async fn run(settings: &Settings, command: AccountsCommand) -> Result<(), Failure> {
    let verbatim = open_existing(settings).await?;
    let accounts = verbatim.accounts();
    let done = match command {
        AccountsCommand::List(ask) => list(accounts, &ask).await,
        AccountsCommand::Show(ask) => show(accounts, &ask).await,
        AccountsCommand::Grant(ask) => grant(accounts, &ask).await,
        AccountsCommand::Block(ask) => set_blocked(accounts, &ask.who, true).await,
        AccountsCommand::Unblock(ask) => set_blocked(accounts, &ask.who, false).await,
        AccountsCommand::Statement(ask) => statement(accounts, &ask).await,
        AccountsCommand::Export(ask) => export(accounts, &ask.who).await,
        AccountsCommand::Delete(ask) => delete(settings, &verbatim, &ask).await,
    };
    verbatim.close().await;
    done
}

async fn list(accounts: &Accounts, ask: &ListAccounts) -> Result<(), Failure> {
    print_all::<AccountRow, _, _>(ask.json, |page| accounts.list(page), table).await
}

async fn show(accounts: &Accounts, ask: &ShowAccount) -> Result<(), Failure> {
    let view = accounts.show(&ask.account.who).await?;
    match ask.json {
        true => print_json(&pretty(&AccountRow::from(&view))),
        false => print(&as_text(&view)),
    }
}

async fn grant(accounts: &Accounts, ask: &Grant) -> Result<(), Failure> {
    let id = match &ask.id {
        Some(name) => GrantId::of_operator(name),
        None => {
            let digits = SystemRandom::open()?.bytes(16);
            GrantId::of_operator(digits.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        }
    };
    let view = accounts.grant(&ask.account.who, id, ask.credits, &ask.memo).await?;
    print(&format!("{}: {} credits left\n", view.account.email, view.credits.remaining))
}

async fn set_blocked(accounts: &Accounts, who: &str, blocked: bool) -> Result<(), Failure> {
    let account = accounts.set_blocked(who, blocked).await?;
    print(&format!("{}: {}\n", account.email, if account.blocked { "blocked" } else { "not blocked" }))
}

async fn statement(accounts: &Accounts, ask: &ShowAccount) -> Result<(), Failure> {
    let who = ask.account.who.as_str();
    print_all::<StatementLine, _, _>(ask.json, |page| accounts.statement(who, page), statement_table).await
}

async fn export(accounts: &Accounts, who: &str) -> Result<(), Failure> {
    print_json(&pretty(&AccountExport::from(&accounts.export(who).await?)))
}

async fn delete(settings: &Settings, verbatim: &Verbatim, ask: &DeleteAccount) -> Result<(), Failure> {
    let accounts = verbatim.accounts();
    let view = accounts.show(&ask.account.who).await?;
    let (account, left) = (&view.account, view.credits.remaining);
    let question = format!("Erase the account of {}, with {left} credits left?", account.email);
    if !ask.yes && !confirmed(&question)? {
        return Err(Failure::Fault("nothing was deleted".to_owned()));
    }
    let mut told = String::new();
    let account = &match verbatim.payments().close(account).await {
        Ok(account) => account,
        Err(error) if ask.anyway => {
            told += &format!("its open payment pages could not be closed: {error}\n");
            account.clone()
        }
        Err(error) => {
            return Err(Failure::Fault(format!(
                "nothing was deleted: its open payment pages could not be closed: {error}; try again once the payment \
                 provider can be reached (--anyway deletes it all the same)"
            )));
        }
    };
    let ties = accounts.ties(account).await?;
    if !ties.is_empty() && !ask.anyway {
        return Err(Failure::Fault(format!("nothing was deleted: {}", tied(&ties))));
    }
    // As it was shown: whoever changed it while the question was open is not passed over.
    accounts.delete(account, ask.anyway).await?;
    told += &format!("{}: deleted\n", account.id);
    if let Some(subscription) = &ties.subscription {
        told += &format!("the subscription {subscription} goes on: cancel it at the payment provider\n");
    }
    for order in &ties.orders {
        let payment = verbatim.payments().order(order).await?.and_then(|order| order.payment);
        // What the sandbox keeps after its name tells nothing.
        let payment = payment.as_deref().and_then(|name| name.split(' ').next()).unwrap_or("unknown");
        told += &format!(
            "the order {order} may yet be paid (payment {payment}): the server's log will say so; refund it then\n"
        );
    }
    let folder = settings.data.join(OUTBOX_FOLDER);
    let mails = forget_mails(&folder, &account.email).map_err(|error| {
        let folder = folder.display();
        Failure::Fault(format!("{told}its mails in {folder} could not all be deleted: {error}"))
    })?;
    match mails {
        0 => {}
        1 => told += "1 mail to it was deleted from the outbox folder\n",
        mails => told += &format!("{mails} mails to it were deleted from the outbox folder\n"),
    }
    print(&told)
}

/// Why an account is not deleted, and what to do.
fn tied(ties: &Ties) -> String {
    let mut reasons = Vec::new();
    if let Some(subscription) = &ties.subscription {
        reasons.push(format!(
            "its subscription {subscription} would go on and charge somebody whom nobody knows any more; cancel it \
             at the payment provider first"
        ));
    }
    match ties.orders.as_slice() {
        [] => {}
        [order] => reasons.push(format!(
            "its order {order} may yet be paid; wait until its page has expired, within a day or two, or expire it \
             at the payment provider"
        )),
        orders => reasons.push(format!(
            "{} of its orders may yet be paid, the first one is {}; wait until their pages have expired, within a \
             day or two, or expire them at the payment provider",
            orders.len(),
            orders[0]
        )),
    }
    format!("{} (--anyway deletes it all the same)", reasons.join("; and "))
}

/// A document as people read it.
fn pretty(document: &impl Serialize) -> String {
    // A structure of texts and numbers is always JSON.
    format!("{}\n", serde_json::to_string_pretty(document).unwrap_or_default())
}

/// How an account stands with its plan.
fn state(view: &AccountView) -> &'static str {
    match (view.account.blocked, view.standing.state) {
        (true, _) => "blocked",
        (false, PlanState::Free) => "-",
        (false, PlanState::Paid) => "paid",
        (false, PlanState::Grace) => "overdue",
    }
}

/// Rows under their headings. The address comes last: it may be long.
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
            view.standing.plan.as_str(),
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
        ("plan", view.standing.plan.as_str().to_owned()),
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

/// An account in `accounts list --json` and `accounts show --json`.
#[derive(Serialize)]
struct AccountRow {
    id: String,
    #[serde(flatten)]
    account: Me,
    /// How it stands with its plan: `free`, `paid` or `grace`.
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
            account: Me::from(&profile),
            state: match view.standing.state {
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
