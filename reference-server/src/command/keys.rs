//! `verbatim keys`: keys from the operator's hand.

use std::fmt::Write as _;

use serde::Serialize;
use transcript_core::{
    PageRequest,
    ids::KeyId,
    lookup::{CreateKey, CreateKeyOutcome, ListedKey, Origin},
    wire::lookup::KeyStatus,
};
use verbatim::Verbatim;

use super::{
    Failure,
    arguments::{CreateKeys, KeysCommand, ListKeys, RevokeKey},
    open, print, print_json, shown,
};
use crate::config::Settings;

/// Runs one of the commands about keys.
pub(super) async fn run(settings: &Settings, command: KeysCommand) -> Result<(), Failure> {
    let verbatim = open(settings).await?;
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
            CreateKeyOutcome::Created(created) => print(&format!("{}\n", created.key.reveal()))?,
            CreateKeyOutcome::Bad(bad) => return Err(Failure::Wrong(format!("--{bad}"))),
            CreateKeyOutcome::Limited { .. } | CreateKeyOutcome::SubjectFull { .. } => {
                return Err(Failure::Fault("the operator's own keys were limited".to_owned()));
            }
        }
    }
    Ok(())
}

/// Prints all keys, page by page.
async fn list(verbatim: &Verbatim, ask: ListKeys) -> Result<(), Failure> {
    let mut request = PageRequest::first();
    let mut is_first = true;
    loop {
        let page = verbatim.lookup().keys(request).await?;
        match ask.json {
            true => print_json(&array_part(&page.items, is_first, page.next.is_none()))?,
            false => print(&table_part(&page.items, is_first))?,
        }
        is_first = false;
        match page.next {
            Some(after) => request = PageRequest { after: Some(after), ..PageRequest::first() },
            None => return Ok(()),
        }
    }
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

/// A moment without its milliseconds, for people.
fn seconds(moment: &str) -> String {
    moment.split_once('.').map_or_else(|| moment.to_owned(), |(whole, _)| format!("{whole}Z"))
}

/// Items of one JSON array that is written in parts.
fn array_part(keys: &[ListedKey], is_first: bool, is_last: bool) -> String {
    let mut text = String::from(if is_first { "[" } else { "" });
    for (number, key) in keys.iter().enumerate() {
        text.push_str(if is_first && number == 0 { "\n" } else { ",\n" });
        // A structure of texts and numbers is always JSON.
        text.push_str(&serde_json::to_string(&KeyRow::from(key)).unwrap_or_default());
    }
    text.push_str(if is_last { "\n]\n" } else { "" });
    text
}

/// A key in `keys list --json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct KeyRow<'a> {
    #[serde(flatten)]
    status: KeyStatus,
    hint: &'a str,
    email: Option<&'a str>,
    subject: Option<&'a str>,
    entitled_until: Option<String>,
    revoked_at: Option<String>,
}

impl<'a> From<&'a ListedKey> for KeyRow<'a> {
    fn from(key: &'a ListedKey) -> Self {
        Self {
            status: KeyStatus::from(&key.status),
            hint: &key.hint,
            email: key.email.as_deref(),
            subject: key.subject.as_deref(),
            entitled_until: key.entitled_until.map(|until| until.to_string()),
            revoked_at: key.revoked_at.map(|at| at.to_string()),
        }
    }
}
