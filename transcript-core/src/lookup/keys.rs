//! Keys of Surface A: making them, and what they have used.

use std::{fmt, net::IpAddr};

use super::{Entitlement, KeyPlan, Lookup, Proof, visitor::Visitor};
use crate::{
    directory::{
        AddKey, LookupKey, NewKey, Owner,
        key::{Key, Surface},
    },
    engine::retry::persistently,
    error::{Error, Result},
    ids::{KeyId, WalletId, random_name},
    ledger::{
        Terms,
        terms::{self, Period},
    },
    time::Timestamp,
};

/// One day, the window of the mint limit.
const DAY_MS: u64 = 24 * 3600 * 1000;

/// A request for a new key (specification 4, createApiKey).
#[derive(Clone, Debug)]
pub struct CreateKey {
    /// What its owner calls it.
    pub label: Option<String>,
    /// Its owner's e-mail address.
    pub email: Option<String>,
    /// A proof of a paid plan, where one came: a good one makes the key a plus key.
    pub proof: Option<Proof>,
    /// Who asks.
    pub origin: Origin,
}

impl CreateKey {
    /// The longest label, in characters.
    pub const LABEL_LENGTH_MAX: usize = 100;
    /// The longest e-mail address, in characters (RFC 5321: a path of 256 with its brackets).
    pub const EMAIL_LENGTH_MAX: usize = 254;
}

/// Who asks for a new key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Somebody on the network, limited by their network.
    Network(Option<IpAddr>),
    /// The operator, not limited.
    Operator,
}

/// What came of a request for a new key.
#[derive(Debug)]
pub enum CreateKeyOutcome {
    /// It is made.
    Created(NewLookupKey),
    /// The network has made as many as it may.
    Limited {
        /// After how many milliseconds another may be made.
        retry_after_ms: u64,
    },
    /// Whoever the proof names has as many live plus keys as they may.
    SubjectFull {
        /// How many those are.
        limit: u32,
        /// After how many milliseconds one of them ends, unless it is renewed; none when there is no limit
        /// but 0.
        retry_after_ms: Option<u64>,
    },
    /// A field is outside its bounds.
    Bad(BadKeyRequest),
}

/// A key that was made, for its one showing.
#[derive(Debug)]
pub struct NewLookupKey {
    /// The key in the clear.
    pub key: Key,
    /// What it may do.
    pub status: KeyStatus,
}

/// A field of a key request that is outside its bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadKeyRequest {
    /// The field.
    pub field: &'static str,
    /// What was wrong, and what to give instead.
    pub message: String,
}

impl fmt::Display for BadKeyRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// A key's plan and what is left of its allowance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyStatus {
    /// The key's public name.
    pub id: KeyId,
    /// What its owner calls it.
    pub label: Option<String>,
    /// What it has used.
    pub usage: KeyUse,
    /// When the allowance is replaced by a fresh one.
    pub resets_at: Timestamp,
    /// When the key was made.
    pub created_at: Timestamp,
}

/// What a key has used of its allowance (specification 2.2, key object).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyUse {
    /// The key's plan.
    pub plan: KeyPlan,
    /// The period of the allowance.
    pub period: Period,
    /// Spent and held in the period.
    pub used: u64,
    /// New transcripts per period.
    pub allowance: u64,
    /// What is left.
    pub remaining: u64,
}

/// Who a bearer credential belongs to.
#[derive(Debug)]
pub(super) enum Caller {
    /// No credential came.
    Unkeyed,
    /// A credential that opens nothing here; the sentence says why.
    Stranger(&'static str),
    /// A key of Surface A.
    Key(LookupKey),
    /// A visitor of the watch page, who has passed the check; no credential of theirs is looked at.
    Visitor(Visitor),
}

impl Lookup {
    /// Makes a new key.
    ///
    /// # Errors
    /// The ports' faults: nothing is made, or a key that nobody was shown.
    pub async fn create_key(&self, ask: CreateKey) -> Result<CreateKeyOutcome> {
        let lookup = self.clone();
        self.parts.transcripts.task(async move { lookup.make_key(ask).await }).await?
    }

    async fn make_key(&self, ask: CreateKey) -> Result<CreateKeyOutcome> {
        let parts = &self.parts;
        let (label, email) = match (clean_label(ask.label), clean_email(ask.email)) {
            (Ok(label), Ok(email)) => (label, email),
            (Err(bad), _) | (_, Err(bad)) => return Ok(CreateKeyOutcome::Bad(bad)),
        };
        let now = parts.clock.now();
        if let Origin::Network(client) = ask.origin {
            let limit = parts.options.mint_per_network_per_day;
            let takes = self.networks.takes("mint", client, limit, DAY_MS, now);
            if let Some(limited_ms) = self.limited(takes, now).await? {
                // Networks have other names after midnight, and nothing counted yet.
                let midnight_ms = wait_ms(now, Period::Day.ends(now));
                return Ok(CreateKeyOutcome::Limited { retry_after_ms: limited_ms.min(midnight_ms) });
            }
        }
        let key = Key::generate(Surface::Lookup, parts.random.as_ref())?;
        let (subject, entitled_until) = match self.entitlement(ask.proof.as_ref(), now) {
            Some(Entitlement { subject, until }) => (Some(subject), Some(until)),
            None => (None, None),
        };
        let record = LookupKey {
            key: NewKey {
                id: KeyId::new(random_name(parts.random.as_ref(), "key")),
                digest: key.digest(),
                hint: key.hint(),
                now,
            },
            wallet: WalletId::new(random_name(parts.random.as_ref(), "key")),
            label,
            email,
            subject,
            entitled_until,
        };
        // Repeated when its outcome is unknown: a key that nobody was shown helps nobody.
        let plus_keys = parts.options.plus_keys_per_subject;
        let add = || parts.directory.add_key(record.clone(), plus_keys);
        match persistently(parts.transcripts.patience(), add).await? {
            AddKey::Added => {}
            AddKey::SubjectFull { room_at } => {
                return Ok(CreateKeyOutcome::SubjectFull {
                    limit: plus_keys,
                    retry_after_ms: room_at.map(|at| wait_ms(now, at)),
                });
            }
        }
        // A new key has used nothing, so no store need be asked once the key is made.
        let status = self.status(&record, self.usage(&record, now, 0), now);
        Ok(CreateKeyOutcome::Created(NewLookupKey { key, status }))
    }

    /// The public name of the key that a credential is; none when it is no live key of Surface A. One read: nothing is
    /// renewed, and no balance is looked up.
    ///
    /// # Errors
    /// The ports' faults.
    pub async fn key_id(&self, credential: &str) -> Result<Option<KeyId>> {
        let (lookup, credential) = (self.clone(), credential.to_owned());
        let work = async move {
            Ok(match lookup.caller(Some(&credential), None).await? {
                Caller::Key(key) => Some(key.key.id),
                Caller::Unkeyed | Caller::Stranger(_) | Caller::Visitor(_) => None,
            })
        };
        self.parts.transcripts.task(work).await?
    }

    /// A key's plan and remaining allowance; none when the credential is no live key of Surface A.
    ///
    /// A good proof of a paid plan renews a plus key of its subject first.
    ///
    /// # Errors
    /// The ports' faults.
    pub async fn key_status(&self, credential: &str, proof: Option<&Proof>) -> Result<Option<KeyStatus>> {
        let (lookup, credential, proof) = (self.clone(), credential.to_owned(), proof.cloned());
        let work = async move {
            let Caller::Key(key) = lookup.caller(Some(&credential), proof.as_ref()).await? else {
                return Ok(None);
            };
            let now = lookup.parts.clock.now();
            let usage = lookup.key_use(&key, now).await?;
            Ok(Some(lookup.status(&key, usage, now)))
        };
        self.parts.transcripts.task(work).await?
    }

    /// Whose credential it is; a good proof of its own subject renews a plus key. A typo is recognised
    /// without a look-up.
    pub(super) async fn caller(&self, credential: Option<&str>, proof: Option<&Proof>) -> Result<Caller> {
        let Some(text) = credential else { return Ok(Caller::Unkeyed) };
        let Some(key) = Key::parse(text.trim()) else {
            return Ok(Caller::Stranger(
                "The API key in the Authorization header is not one of this service: check that it was copied whole.",
            ));
        };
        if key.surface() == Surface::Account {
            return Ok(Caller::Stranger(
                "The API key in the Authorization header is for the v1 API (/api/v1): this look-up takes a key \
                 that begins with vbk_.",
            ));
        }
        Ok(match self.bounded(self.parts.directory.owner(&key.digest())).await? {
            Some(Owner::Lookup(key)) => Caller::Key(self.renewed(key, proof).await),
            _ => Caller::Stranger("The API key in the Authorization header is unknown, or was revoked."),
        })
    }

    pub(super) fn status(&self, key: &LookupKey, usage: KeyUse, now: Timestamp) -> KeyStatus {
        KeyStatus {
            id: key.key.id.clone(),
            label: key.label.clone(),
            usage,
            resets_at: usage.period.ends(now),
            created_at: key.key.now,
        }
    }

    /// What a key has used at a moment.
    pub(super) async fn key_use(&self, key: &LookupKey, now: Timestamp) -> Result<KeyUse> {
        let terms = self.key_terms(key, now);
        let balance = self.bounded(self.parts.ledger.balance(&key.wallet, &terms)).await?;
        let pool = balance
            .pools
            .first()
            .ok_or_else(|| Error::unexpected("a balance without the pool that was asked"))?;
        Ok(self.usage(key, now, pool.used()))
    }

    fn usage(&self, key: &LookupKey, now: Timestamp, used: u64) -> KeyUse {
        let plan = KeyPlan::of(key, now);
        let allowance = plan.allowance(&self.parts.options);
        let remaining = allowance.saturating_sub(used);
        KeyUse { plan, period: plan.period(), used, allowance, remaining }
    }

    /// What a key may spend at a moment.
    pub(super) fn key_terms(&self, key: &LookupKey, now: Timestamp) -> Terms {
        let plan = KeyPlan::of(key, now);
        terms::allowance(plan.period(), plan.allowance(&self.parts.options), now)
    }
}

/// How long it is until a moment, in milliseconds.
fn wait_ms(now: Timestamp, until: Timestamp) -> u64 {
    u64::try_from(until.since(now).as_millis()).unwrap_or(u64::MAX)
}

/// A label without white space around it; none when nothing is left.
fn clean_label(label: Option<String>) -> Result<Option<String>, BadKeyRequest> {
    let bad = |message: &str| Err(BadKeyRequest { field: "label", message: message.to_owned() });
    let Some(label) = label else { return Ok(None) };
    // Judged as it came, so that the rule can be written down as a pattern and a length.
    if label.chars().count() > CreateKey::LABEL_LENGTH_MAX {
        return bad("a label has at most 100 characters");
    }
    if label.chars().any(char::is_control) {
        return bad("a label has no control characters or line breaks");
    }
    Ok(Some(label.trim().to_owned()).filter(|label| !label.is_empty()))
}

/// An address that could be one: it is only shown to the operator, never written to.
fn clean_email(email: Option<String>) -> Result<Option<String>, BadKeyRequest> {
    let Some(email) = email.filter(|email| !email.is_empty()) else { return Ok(None) };
    let is_plausible = email.chars().count() <= CreateKey::EMAIL_LENGTH_MAX
        && !email.chars().any(|c| c.is_control() || c.is_whitespace())
        && email.rsplit_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty());
    if is_plausible {
        Ok(Some(email))
    } else {
        let message = "give an e-mail address such as name@example.org, or leave it out".to_owned();
        Err(BadKeyRequest { field: "email", message })
    }
}
