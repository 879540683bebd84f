//! `verbatim keys`: manages API keys of the lookup API.

use transcript_core::{
    ErrorKind, Timestamp,
    directory::{FieldChange, KeyAccess, KeyAccessChange, RequestCounts},
    ledger::terms::AllowancePeriod,
    lookup::{CreateKeyRequest, KeyOrigin, KeyWithUsage},
};

use super::{
    CommandError,
    keys_arguments::{CreateKeysArgs, KeysCommand, SetKeyArgs},
    listing::{print_all, seconds, table},
    open, open_existing, operations, print, shown,
};
use crate::{
    config::Settings,
    operations::{KeyRow, Operations, parse_expiry, quota_text},
};

/// Runs a subcommand of `keys`.
pub(super) async fn run(settings: &Settings, command: KeysCommand) -> Result<(), CommandError> {
    let verbatim = match command {
        KeysCommand::Create(_) => open(settings).await?,
        _ => open_existing(settings).await?,
    };
    let operations = operations(settings, &verbatim);
    let done = match command {
        KeysCommand::Create(args) => create(&operations, args).await,
        KeysCommand::List(args) => {
            print_all::<KeyRow, _, _>(args.json, |page| operations.list_keys(page), key_table).await
        }
        KeysCommand::Set(args) => set(&operations, args).await,
        KeysCommand::Revoke(args) => operations.revoke_key(&args.id).await.map_err(Into::into),
    };
    verbatim.close().await;
    done
}

/// Creates keys and prints each as soon as it exists.
async fn create(operations: &Operations, args: CreateKeysArgs) -> Result<(), CommandError> {
    let expires_at = args.expires.as_deref().map(|text| expiry(operations, text)).transpose()?;
    for _ in 0..args.count {
        let request = CreateKeyRequest {
            label: args.label.clone(),
            email: args.email.clone(),
            proof: None,
            origin: KeyOrigin::Operator,
            access: KeyAccess { expires_at, quota: args.quota, requests: RequestCounts::default() },
        };
        let created = operations.create_key(request).await.map_err(|error| match error.kind() {
            // The message begins with the name of the option.
            ErrorKind::Invalid => CommandError::Wrong(format!("--{error}")),
            _ => error.into(),
        })?;
        if let Err(failure) = print(&format!("{}\n", created.key.reveal())) {
            return Err(revoke_unprinted(operations, created.status.id.as_str(), failure).await);
        }
    }
    Ok(())
}

fn expiry(operations: &Operations, text: &str) -> Result<Timestamp, CommandError> {
    let parsed = parse_expiry(text, operations.verbatim().now());
    parsed.map_err(|message| CommandError::Wrong(format!("--expires: {message}")))
}

/// Revokes a key that could not be printed, and returns the error.
async fn revoke_unprinted(operations: &Operations, key: &str, failure: CommandError) -> CommandError {
    let why = match failure {
        CommandError::Fault(why) => why,
        _ => "standard output was closed".to_owned(),
    };
    let what = match operations.revoke_key(key).await {
        Ok(()) => "the unprinted key was revoked",
        Err(_) => "the unprinted key still exists; revoke it with `verbatim keys revoke`",
    };
    CommandError::Fault(format!("{why}: {what} ({key})"))
}

async fn set(operations: &Operations, args: SetKeyArgs) -> Result<(), CommandError> {
    let expires_at = match (&args.expires, args.no_expiry) {
        (Some(text), _) => FieldChange::Set(expiry(operations, text)?),
        (None, true) => FieldChange::Clear,
        (None, false) => FieldChange::Keep,
    };
    let quota = match (args.quota, args.no_quota) {
        (Some(quota), _) => FieldChange::Set(quota),
        (None, true) => FieldChange::Clear,
        (None, false) => FieldChange::Keep,
    };
    Ok(operations.change_key(&args.id, KeyAccessChange { expires_at, quota }).await?)
}

/// Formats keys as a table. The label is the last column, because it may be long and contain spaces.
fn key_table(keys: &[KeyWithUsage], with_heading: bool) -> String {
    let columns = [
        ("ID", 36),
        ("KEY", 12),
        ("PLAN", 13),
        ("USED", -13),
        ("REQUESTS", -18),
        ("LAST REQUEST", 20),
        ("CREATED", 20),
        ("EXPIRES", 20),
        ("REVOKED", 20),
        ("LABEL", 0),
    ];
    let time = |time: Option<Timestamp>| time.map_or_else(|| "-".to_owned(), |at| seconds(&at.to_string()));
    let row = |key: &KeyWithUsage| {
        let (status, usage) = (&key.status, &key.status.usage);
        [
            status.id.to_string(),
            format!("{}…", key.hint),
            usage.plan.as_str().to_owned(),
            format!("{}/{}", usage.used, usage.allowance),
            requests(key),
            time(key.requests.last_at),
            seconds(&status.created_at.to_string()),
            time(key.expires_at),
            time(key.revoked_at),
            status.label.as_deref().map_or_else(|| "-".to_owned(), |label| shown(label, usize::MAX)),
        ]
    };
    table(columns, with_heading, keys.iter().map(row))
}

/// The requests of the quota's period and the quota; all requests if it has none.
fn requests(key: &KeyWithUsage) -> String {
    match &key.quota {
        None => key.requests.total.to_string(),
        Some(quota) => {
            let used = match quota.period {
                AllowancePeriod::Day => key.requests.day,
                AllowancePeriod::Month => key.requests.month,
            };
            format!("{used}/{}", quota_text(quota))
        }
    }
}
