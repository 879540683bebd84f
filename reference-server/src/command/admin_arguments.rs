//! Arguments of `verbatim admin-tokens` and `verbatim audit-log`.

use clap::{Args, Subcommand};

use super::arguments::JsonListArgs;
use crate::operations::TokenName;

#[derive(Debug, Subcommand)]
pub(super) enum AdminTokensCommand {
    /// Create a token and print it; it is shown only once
    Create(CreateTokenArgs),
    /// List all tokens, with revoked ones
    List(JsonListArgs),
    /// Revoke a token, with effect on its next request, also on running servers
    Revoke(RevokeTokenArgs),
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim admin-tokens create ann
  verbatim admin-tokens create billing-system > token.txt

The admin API serves at admin.listen, for requests with the header Authorization: Bearer TOKEN. The audit \
log has the name of the token, so give each person and each program their own. A name is used once: the next \
token of ann can be ann-2. Exit status 1: a token has or had this name.")]
pub(super) struct CreateTokenArgs {
    /// Who uses the token: letters, digits and . - _ @
    #[arg(value_name = "NAME", value_parser = TokenName::parse)]
    pub(super) name: TokenName,
}

#[derive(Args, Debug)]
#[command(after_help = "Example:
  verbatim admin-tokens revoke ann

Exit status 1: no live token has that name.")]
pub(super) struct RevokeTokenArgs {
    /// Name of the token, as `admin-tokens list` prints it
    #[arg(value_name = "NAME", value_parser = TokenName::parse)]
    pub(super) name: TokenName,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim audit-log
  verbatim audit-log --count 20
  verbatim audit-log --count 1000 --json | jq -r '.[] | select(.operation == \"accounts.delete\")'

Has the operations of `keys`, `accounts`, `admin-tokens`, `archive withdraw` and `delete`, `jobs` and `ledger audit`, by the \
command and by the admin API. The operator of a command is the user of the system. An operation without a \
result is running, or its end was not recorded, such as after a crash.")]
pub(super) struct AuditLogArgs {
    /// Number of entries
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) count: u32,
    /// Print a JSON array
    #[arg(long)]
    pub(super) json: bool,
}
