//! `verbatim keys`: keys from the operator's hand.

use std::fmt::Write as _;

use serde::Serialize;
use transcript_core::{
    ids::KeyId,
    lookup::{CreateKey, CreateKeyOutcome, ListedKey, Origin},
    wire::lookup::KeyStatus,
};
use verbatim::Verbatim;

use super::{
    Failure,
    arguments::{CreateKeys, KeysCommand, ListKeys, RevokeKey},
    listing::{print_all, seconds},
    open, open_existing, print, shown,
};
use crate::config::Settings;

/// Runs one of the commands about keys.
pub(super) async fn run(settings: &Settings, command: KeysCommand) -> Result<(), Failure> {
    let verbatim = match command {
        KeysCommand::Create(_) => open(settings).await?,
        KeysCommand::List(_) | KeysCommand::Revoke(_) => open_existing(settings).await?,
    };
    let done = match command {
        KeysCommand::Create(ask) => create(&verbatim, ask).await,
        KeysCommand::List(ask) => list(&verbatim, ask).await,
        KeysCommand::Revoke(ask) => revoke(&verbatim, ask).await,
    };
    verbatim.close().await;
    done
}

/// Makes keys and prints each on its own line, as soon as it is made: what was printed exists.
async fn create(verbatim: &Verbatim, ask: CreateKeys) -> Result<(), Failure> {
    for _ in 0..ask.count {
        let create = CreateKey {
            label: ask.label.clone(),
            email: ask.email.clone(),
            proof: None,
            origin: Origin::Operator,
        };
        match verbatim.lookup().create_key(create).await? {
            CreateKeyOutcome::Created(created) => {
                if let Err(failure) = print(&format!("{}\n", created.key.reveal())) {
                    return Err(unseen(verbatim, &created.status.id, failure).await);
                }
            }
            CreateKeyOutcome::Bad(bad) => return Err(Failure::Wrong(format!("--{bad}"))),
            CreateKeyOutcome::Limited { .. } | CreateKeyOutcome::SubjectFull { .. } => {
                return Err(Failure::Fault("the operator's own keys were limited".to_owned()));
            }
        }
    }
    Ok(())
}

/// What is said of a key that nobody could read: nobody can use it, so it must not stay.
async fn unseen(verbatim: &Verbatim, key: &KeyId, failure: Failure) -> Failure {
    let why = match failure {
        Failure::Fault(why) => why,
        _ => "standard output was closed".to_owned(),
    };
    let what = match verbatim.lookup().revoke_key(key).await {
        Ok(_) => "the key that was to be printed is revoked again",
        Err(_) => "the key that was to be printed is still there; `verbatim keys revoke` ends it",
    };
    Failure::Fault(format!("{why}: {what} ({})", key.as_str()))
}

async fn list(verbatim: &Verbatim, ask: ListKeys) -> Result<(), Failure> {
    print_all::<KeyRow, _, _>(ask.json, |page| verbatim.lookup().keys(page), table_part).await
}

async fn revoke(verbatim: &Verbatim, ask: RevokeKey) -> Result<(), Failure> {
    match verbatim.lookup().revoke_key(&KeyId::new(ask.id.as_str())).await? {
        true => Ok(()),
        // The text is repeated only when it is an id: a key that was given by mistake stays secret.
        false if ask.id.starts_with("key-") => {
            Err(Failure::Fault(format!("there is no live key with the id {:?}", ask.id)))
        }
        false => Err(Failure::Fault("that is no key's id: `verbatim keys list` shows them".to_owned())),
    }
}

/// Rows under their headings. The label comes last: it may be long, and have spaces in it.
fn table_part(keys: &[ListedKey], with_heading: bool) -> String {
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

/// A key in `keys list --json`.
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

impl From<&ListedKey> for KeyRow {
    fn from(key: &ListedKey) -> Self {
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
