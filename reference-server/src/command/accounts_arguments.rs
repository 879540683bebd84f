//! What `verbatim accounts` takes.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(super) enum AccountsCommand {
    /// List all accounts with what they have left, oldest first
    List(ListAccounts),
    /// Show an account
    Show(ShowAccount),
    /// Give an account credits, which do not expire
    Grant(Grant),
    /// Block an account: its key opens nothing from its next request on
    Block(Who),
    /// Unblock an account: its key works again
    Unblock(Who),
    /// Print every step of an account's credits, oldest first
    Statement(ShowAccount),
    /// Print an account with every step of its credits and all that it ordered, as JSON
    Export(Who),
    /// Erase an account: its address, keys and names elsewhere
    Delete(DeleteAccount),
}

/// Whose account.
#[derive(Args, Debug)]
pub(super) struct Who {
    /// The account's e-mail address, or its id as `accounts list` shows it
    #[arg(value_name = "EMAIL|ID")]
    pub(super) who: String,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim accounts list
  verbatim accounts list --json | jq -r '.[] | select(.plan != \"free\") | .email'

Credits are those that are left, and those of the current month.")]
pub(super) struct ListAccounts {
    /// Print a JSON array
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Exit status 1: there is no such account.")]
pub(super) struct ShowAccount {
    #[command(flatten)]
    pub(super) account: Who,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim accounts grant ann@example.org 500
  verbatim accounts grant ann@example.org 500 --id ticket-4711 --memo \"for the outage of May\"

With --id the same grant is made once, however often it is asked for.")]
pub(super) struct Grant {
    #[command(flatten)]
    pub(super) account: Who,
    /// How many credits
    #[arg(value_name = "CREDITS", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(super) credits: u64,
    /// A name for this grant [default: a fresh one]
    #[arg(long, value_name = "NAME")]
    pub(super) id: Option<String>,
    /// What it is for; the account's statement shows it
    #[arg(long, value_name = "TEXT", default_value = "from the operator")]
    pub(super) memo: String,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim accounts export ann@example.org > ann.json
  verbatim accounts delete ann@example.org

The address, the keys, the mails that wait or lie in the outbox folder, and the names at the payment provider
go. What was done with the credits and what was ordered stays, without anything of the person; credits that are
left are lost. The address may register anew. Look-up keys that name the address stay: see `verbatim keys`.

Payment pages that are open are closed first. An account with a subscription, or with an order that may yet be paid,
is not deleted: cancel the subscription at the payment provider first, and wait until the money has come or the page
has expired, within a day or two. So is one whose pages cannot be closed now. --anyway deletes it all the same: then the subscription is to be cancelled by hand, and what is still paid is to be refunded.

On a terminal it is asked first; elsewhere --yes must be given. Exit status 1: there is no such account, or it was
not deleted for one of these reasons, or it has changed in the meantime.")]
pub(super) struct DeleteAccount {
    #[command(flatten)]
    pub(super) account: Who,
    /// Do not ask
    #[arg(long)]
    pub(super) yes: bool,
    /// Delete it although a subscription goes on, or an order may yet be paid
    #[arg(long)]
    pub(super) anyway: bool,
}
