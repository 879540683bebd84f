//! Arguments of `verbatim keys`.

use clap::{ArgGroup, Args, Subcommand};
use transcript_core::directory::RequestQuota;

use super::arguments::JsonListArgs;
use crate::operations::parse_quota;

#[derive(Debug, Subcommand)]
pub(super) enum KeysCommand {
    /// Create keys and print each on a line; a key is shown only once
    Create(CreateKeysArgs),
    /// List all keys with their usage, oldest first
    #[command(after_help = "Examples:
  verbatim keys list
  verbatim keys list --json | jq -r '.[] | select(.plan == \"plus\") | .id'

Usage and allowance are those of the current UTC month, or of the day for plus keys: they count new \
transcripts. Requests count every lookup with the key: those of the quota's period, or all of them without a \
quota. The last requests of running servers are added within 5 seconds.")]
    List(JsonListArgs),
    /// Change the expiry or the quota of a key
    Set(SetKeyArgs),
    /// Revoke a key, with effect on its next request, also on running servers
    Revoke(RevokeKeyArgs),
}

#[derive(Args, Debug)]
#[command(after_help = "Example:
  verbatim keys revoke key-0123456789abcdef0123456789abcdef

Exit status 1: no live key has that id.")]
pub(super) struct RevokeKeyArgs {
    /// Id of the key, as `keys list` prints it; not the key itself
    #[arg(value_name = "ID")]
    pub(super) id: String,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim keys create --label laptop
  verbatim keys create --label \"Example Ltd\" --quota 20000/month --expires 2027-12-31
  verbatim keys create --count 10 --expires 30d > keys.txt")]
pub(super) struct CreateKeysArgs {
    /// Label of the keys
    #[arg(long)]
    pub(super) label: Option<String>,
    /// Email address of the owner
    #[arg(long)]
    pub(super) email: Option<String>,
    /// Maximum number of requests, such as 1000/day or 20000/month [default: no limit]
    #[arg(long, value_name = "N/PERIOD", value_parser = parse_quota)]
    pub(super) quota: Option<RequestQuota>,
    /// End of the keys: a time, a date (UTC), or a duration such as 30d [default: never]
    #[arg(long, value_name = "TIME")]
    pub(super) expires: Option<String>,
    /// Number of keys
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) count: u32,
}

#[derive(Args, Debug)]
#[command(group(ArgGroup::new("change").required(true).multiple(true)))]
#[command(after_help = "Examples:
  verbatim keys set key-0123456789abcdef0123456789abcdef --quota 5000/day
  verbatim keys set key-0123456789abcdef0123456789abcdef --expires 2027-12-31
  verbatim keys set key-0123456789abcdef0123456789abcdef --no-quota --no-expiry

Takes effect with the next request, also on running servers. Requests that were made count. A key over its \
quota gets 429 with Retry-After until the UTC day or month ends, an expired key 401. Exit status 1: no live \
key has that id.")]
pub(super) struct SetKeyArgs {
    /// Id of the key, as `keys list` prints it; not the key itself
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// Maximum number of requests, such as 1000/day or 20000/month
    #[arg(long, value_name = "N/PERIOD", value_parser = parse_quota, group = "change")]
    pub(super) quota: Option<RequestQuota>,
    /// Remove the quota
    #[arg(long, conflicts_with = "quota", group = "change")]
    pub(super) no_quota: bool,
    /// End of the key: a time, a date (UTC), or a duration such as 30d
    #[arg(long, value_name = "TIME", group = "change")]
    pub(super) expires: Option<String>,
    /// Remove the expiry
    #[arg(long, conflicts_with = "expires", group = "change")]
    pub(super) no_expiry: bool,
}
