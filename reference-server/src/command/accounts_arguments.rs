//! Arguments of `verbatim accounts`.

use clap::{Args, Subcommand};

use super::arguments::JsonListArgs;
use crate::operations::CREDITS_MAX;

/// Returns a parser of numbers of credits.
fn credits_from(min: u64) -> impl Fn(&str) -> Result<u64, String> + Clone {
    move |text| {
        let credits = text.parse::<u64>().ok().filter(|credits| (min..=CREDITS_MAX).contains(credits));
        credits.ok_or_else(|| format!("give a number from {min} to {CREDITS_MAX}"))
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum AccountsCommand {
    /// Create an account without an email address and print its key; it is shown only once
    Create(CreateAccountArgs),
    /// Replace all keys of an account by a new one, and print it; the old ones are refused at once
    NewKey(ShowAccountArgs),
    /// List all accounts with their remaining credits, oldest first
    #[command(after_help = "Examples:
  verbatim accounts list
  verbatim accounts list --json | jq -r '.[] | select(.plan != \"free\") | .email'

Credits are the remaining ones and those of the current month.")]
    List(JsonListArgs),
    /// Show an account
    Show(ShowAccountArgs),
    /// Grant credits, which do not expire, to an account
    Grant(GrantArgs),
    /// Take the credits of a grant back, as far as they are not spent or held
    RevokeGrant(RevokeGrantArgs),
    /// Block an account: its keys are refused from the next request on
    Block(AccountSelector),
    /// Unblock an account: its keys are accepted again
    Unblock(AccountSelector),
    /// Print all ledger entries of an account, oldest first
    Statement(ShowAccountArgs),
    /// Print an account with its ledger entries and orders, as JSON
    Export(AccountSelector),
    /// Erase an account: its address, keys and references at the payment provider
    Delete(DeleteAccountArgs),
}

/// Selects an account.
#[derive(Args, Debug)]
pub(super) struct AccountSelector {
    /// Email address of the account, its name, or its id as `accounts list` prints it
    #[arg(value_name = "EMAIL|NAME|ID")]
    pub(super) selector: String,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim accounts create \"Example Ltd\"
  verbatim accounts create example-ltd --credits 5000 --memo \"contract 17\" --json

The name is in the place of an email address, also in responses of the API. No mail is sent: `accounts \
new-key` replaces a lost key. Exit status 1: an account has this name, or the credits were not granted.")]
pub(super) struct CreateAccountArgs {
    /// Name of the account: 1 to 100 characters, without @
    #[arg(value_name = "NAME")]
    pub(super) name: String,
    /// Number of credits, which do not expire, beside those of the free plan
    #[arg(long, default_value_t = 0, value_parser = credits_from(0), allow_negative_numbers = true)]
    pub(super) credits: u64,
    /// Reason for the credits, shown in the account's statement
    #[arg(long, value_name = "TEXT", default_value = "from the operator")]
    pub(super) memo: String,
    /// Print the account and its key as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Exit status 1: no such account.")]
pub(super) struct ShowAccountArgs {
    #[command(flatten)]
    pub(super) account: AccountSelector,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim accounts grant ann@example.org 500
  verbatim accounts grant ann@example.org 500 --id ticket-4711 --memo \"for the outage of May\"

With --id a repeated grant has no effect. The command prints the id, also after an error: with it the grant can be \
repeated, and `accounts revoke-grant` takes its credits back.")]
pub(super) struct GrantArgs {
    #[command(flatten)]
    pub(super) account: AccountSelector,
    /// Number of credits
    #[arg(value_name = "CREDITS", value_parser = credits_from(1), allow_negative_numbers = true)]
    pub(super) credits: u64,
    /// Name of this grant [default: a new one]
    #[arg(long, value_name = "NAME")]
    pub(super) id: Option<String>,
    /// Reason, shown in the account's statement
    #[arg(long, value_name = "TEXT", default_value = "from the operator")]
    pub(super) memo: String,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim accounts revoke-grant ann@example.org ticket-4711

A repeated command has no effect. `verbatim audit-log` has the ids of earlier grants; that of the credits with which \
an account was created is start-ACCOUNT, with the id of the account. A refund at the payment provider takes \
purchased credits back. Exit status 1: no such account or grant, or the credits were purchased.")]
pub(super) struct RevokeGrantArgs {
    #[command(flatten)]
    pub(super) account: AccountSelector,
    /// Name of the grant, as `accounts grant` prints it
    #[arg(value_name = "GRANT")]
    pub(super) grant: String,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim accounts export ann@example.org > ann.json
  verbatim accounts delete ann@example.org

Erases the address, the keys, queued mails, mails in the outbox folder, and the references at the payment \
provider. Ledger entries and orders are kept without personal data; remaining credits are lost. The address \
can register again. Keys of the lookup API that name the address are kept: see `verbatim keys`.

Open checkout sessions are closed first. An account is not deleted if it has a subscription, or an order \
that may still be paid, or if a checkout session cannot be closed: cancel the subscription at the payment \
provider, and wait until the money has arrived or the session has expired, within a day or two. --anyway \
deletes the account nevertheless; then cancel the subscription and refund later payments by hand.

On a terminal the command prompts for confirmation; elsewhere --yes is required. Exit status 1: no such \
account, or it was not deleted for one of these reasons, or it was changed concurrently.")]
pub(super) struct DeleteAccountArgs {
    #[command(flatten)]
    pub(super) account: AccountSelector,
    /// Skip the confirmation
    #[arg(long)]
    pub(super) yes: bool,
    /// Delete it despite a subscription or an order that may still be paid
    #[arg(long)]
    pub(super) anyway: bool,
}
