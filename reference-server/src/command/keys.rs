//! `verbatim keys`: manages API keys of the lookup API.

use std::fmt::Write as _;

use serde::Serialize;
use transcript_core::{
    directory::KeyAccess,
    ids::KeyId,
    lookup::{CreateKeyOutcome, CreateKeyRequest, KeyOrigin, KeyWithUsage},
    wire::lookup::KeyStatus,
};
use verbatim::Verbatim;

use super::{
    CommandError,
    arguments::{CreateKeysArgs, KeysCommand, ListKeysArgs, RevokeKeyArgs},
    listing::{print_all, seconds},
    open, open_existing, print, shown,
};
use crate::config::Settings;

/// Runs a subcommand of `keys`.
pub(super) async fn run(settings: &Settings, command: KeysCommand) -> Result<(), CommandError> {
    let verbatim = match command {
        KeysCommand::Create(_) => open(settings).await?,
        KeysCommand::List(_) | KeysCommand::Revoke(_) => open_existing(settings).await?,
    };
    let done = match command {
        KeysCommand::Create(args) => create(&verbatim, args).await,
        KeysCommand::List(args) => list(&verbatim, args).await,
        KeysCommand::Revoke(args) => revoke(&verbatim, args).await,
    };
    verbatim.close().await;
    done
}

/// Creates keys and prints each as soon as it exists.
async fn create(verbatim: &Verbatim, args: CreateKeysArgs) -> Result<(), CommandError> {
    for _ in 0..args.count {
        let request = CreateKeyRequest {
            label: args.label.clone(),
            email: args.email.clone(),
            proof: None,
            origin: KeyOrigin::Operator,
            access: KeyAccess::default(),
        };
        match verbatim.lookup().keys().create(request).await? {
            CreateKeyOutcome::Created(created) => {
                if let Err(failure) = print(&format!("{}\n", created.key.reveal())) {
                    return Err(revoke_unprinted(verbatim, &created.status.id, failure).await);
                }
            }
            CreateKeyOutcome::Invalid(bad) => return Err(CommandError::Wrong(format!("--{bad}"))),
            CreateKeyOutcome::Limited { .. } | CreateKeyOutcome::SubjectFull { .. } => {
                return Err(CommandError::Fault("key creation was limited".to_owned()));
            }
        }
    }
    Ok(())
}

/// Revokes a key that could not be printed, and returns the error.
async fn revoke_unprinted(verbatim: &Verbatim, key: &KeyId, failure: CommandError) -> CommandError {
    let why = match failure {
        CommandError::Fault(why) => why,
        _ => "standard output was closed".to_owned(),
    };
    let what = match verbatim.lookup().keys().revoke(key).await {
        Ok(_) => "the unprinted key was revoked",
        Err(_) => "the unprinted key still exists; revoke it with `verbatim keys revoke`",
    };
    CommandError::Fault(format!("{why}: {what} ({})", key.as_str()))
}

async fn list(verbatim: &Verbatim, args: ListKeysArgs) -> Result<(), CommandError> {
    print_all::<KeyRow, _, _>(args.json, |page| verbatim.lookup().keys().list(page), table_part).await
}

async fn revoke(verbatim: &Verbatim, args: RevokeKeyArgs) -> Result<(), CommandError> {
    match verbatim.lookup().keys().revoke(&KeyId::new(args.id.as_str())).await? {
        true => Ok(()),
        // Only an id is repeated: a key that was passed by mistake stays secret.
        false if args.id.starts_with("key-") => {
            Err(CommandError::Fault(format!("no live key has the id {:?}", args.id)))
        }
        false => {
            Err(CommandError::Fault("this is not a key id: `verbatim keys list` prints the ids".to_owned()))
        }
    }
}

/// Formats keys as a table. The label is the last column, because it may be long and contain spaces.
fn table_part(keys: &[KeyWithUsage], with_heading: bool) -> String {
    let mut text = String::new();
    let mut row = |columns: [&str; 7]| {
        let [id, hint, plan, used, created, revoked, label] = columns;
        let line = format!("{id:36}  {hint:12}  {plan:13}  {used:>13}  {created:20}  {revoked:20}  {label}");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", line.trim_end());
    };
    if with_heading {
        row(["ID", "KEY", "PLAN", "USED", "CREATED", "REVOKED", "LABEL"]);
    }
    for key in keys {
        let usage = key.status.usage;
        row([
            key.status.id.as_str(),
            &format!("{}…", key.hint),
            usage.plan.as_str(),
            &format!("{}/{}", usage.used, usage.allowance),
            &seconds(&key.status.created_at.to_string()),
            &key.revoked_at.map_or_else(|| "-".to_owned(), |at| seconds(&at.to_string())),
            &key.status.label.as_deref().map_or_else(|| "-".to_owned(), |label| shown(label, usize::MAX)),
        ]);
    }
    text
}

/// Key in `keys list --json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct KeyRow {
    #[serde(flatten)]
    status: KeyStatus,
    hint: String,
    email: Option<String>,
    subject: Option<String>,
    entitled_until: Option<String>,
    revoked_at: Option<String>,
}

impl From<&KeyWithUsage> for KeyRow {
    fn from(key: &KeyWithUsage) -> Self {
        Self {
            status: KeyStatus::from(&key.status),
            hint: key.hint.clone(),
            email: key.email.clone(),
            subject: key.subject.clone(),
            entitled_until: key.entitled_until.map(|until| until.to_string()),
            revoked_at: key.revoked_at.map(|at| at.to_string()),
        }
    }
}
