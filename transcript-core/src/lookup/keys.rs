//! API keys of the lookup API: creation and usage.

use std::{net::IpAddr, sync::Arc, time::Duration};

use super::{
    Entitlement, EntitlementProof, EntitlementVerifier, KeyPlan, LookupOptions,
    limits::LookupLimits,
    request_counter::{CountOutcome, RequestCounter},
    visitor::Visitor,
};
use crate::{
    directory::{
        AddKeyOutcome, Directory, KeyAccess, KeyOwner, LookupKey, NewKeyRecord, RequestCounts,
        api_key::{ApiKey, ApiKind},
    },
    engine::Transcripts,
    error::{Error, Result},
    ids::{KeyId, WalletId, random_id},
    ledger::{
        Balance, Ledger, Terms,
        terms::{self, AllowancePeriod},
    },
    retry::{retry_store, with_timeout},
    text::{is_one_line, is_visible},
    time::{Clock, Random, Timestamp},
};

/// A request for a new key (specification 4.2).
#[derive(Clone, Debug)]
pub struct CreateKeyRequest {
    /// The owner's name for it.
    pub label: Option<String>,
    /// The owner's email address.
    pub email: Option<String>,
    /// A proof of a paid plan, if one was sent: a valid one makes the key a plus key.
    pub proof: Option<EntitlementProof>,
    /// Origin of the request.
    pub origin: KeyOrigin,
    /// Its expiry and quota, if the operator limits it; counts are ignored.
    pub access: KeyAccess,
}

impl CreateKeyRequest {
    /// The longest label, in characters.
    pub const LABEL_LENGTH_MAX: usize = 100;
    /// The longest email address, in characters (RFC 5321: a path of 256 with its brackets).
    pub const EMAIL_LENGTH_MAX: usize = 254;
}

/// Origin of a request for a new key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrigin {
    /// A client on the network, limited per network.
    Network(Option<IpAddr>),
    /// The operator, not limited.
    Operator,
}

/// Outcome of a request for a new key.
#[derive(Debug)]
pub enum CreateKeyOutcome {
    /// It was created.
    Created(IssuedLookupKey),
    /// The network has reached its limit of new keys.
    Limited {
        /// Time until another key may be created, in milliseconds.
        retry_after_ms: u64,
    },
    /// The subject of the proof has reached its limit of live plus keys.
    SubjectFull {
        /// The limit.
        limit: u32,
        /// Time until one of them ends without renewal, in milliseconds; `None` if the limit is 0.
        retry_after_ms: Option<u64>,
    },
    /// A field is outside its limits.
    Invalid(KeyRequestError),
}

/// A new key, shown once.
#[derive(Debug)]
pub struct IssuedLookupKey {
    /// The key in plain text.
    pub key: ApiKey,
    /// Its plan and usage.
    pub status: KeyStatus,
}

/// A field of a key request that is outside its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRequestError {
    /// The name of the field.
    pub field: &'static str,
    /// What is wrong, and what to send instead.
    pub message: String,
}

crate::display::display!(KeyRequestError, |this| format_args!("{}: {}", this.field, this.message));

/// A key's plan and remaining allowance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyStatus {
    /// The key's public ID.
    pub id: KeyId,
    /// The owner's name for it.
    pub label: Option<String>,
    /// Its usage.
    pub usage: KeyUsage,
    /// When the allowance resets.
    pub resets_at: Timestamp,
    /// When the key was created.
    pub created_at: Timestamp,
}

/// A key's usage of its allowance (specification 2.2, key object).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyUsage {
    /// The key's plan.
    pub plan: KeyPlan,
    /// The period of the allowance.
    pub period: AllowancePeriod,
    /// Spent and held in the period.
    pub used: u64,
    /// New transcripts per period.
    pub allowance: u64,
    /// Unused part of the allowance.
    pub remaining: u64,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one value per request")]
pub(super) enum LookupPrincipal {
    /// No credential was sent.
    Anonymous,
    /// The credential is no key of this API; the message says why.
    UnknownKey(&'static str),
    /// A key of the lookup API that has expired.
    ExpiredKey(Timestamp),
    /// A key of the lookup API.
    Key(LookupKey),
    /// A visitor of the watch page that has passed the check; their credential is ignored.
    Visitor(Visitor),
}

/// The keys of the lookup API. A clone is a handle to the same keys.
#[derive(Clone, Debug)]
pub struct LookupKeys {
    /// Runs the calls on the engine's runtime.
    pub(super) transcripts: Transcripts,
    pub(super) directory: Arc<dyn Directory>,
    pub(super) requests: RequestCounter,
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) limits: LookupLimits,
    pub(super) clock: Arc<dyn Clock>,
    /// Randomness for new keys.
    pub(super) random: Arc<dyn Random>,
    /// Verifies proofs of paid plans; `None` if no proof is accepted.
    pub(super) entitlements: Option<Arc<dyn EntitlementVerifier>>,
    pub(super) options: Arc<LookupOptions>,
}

impl LookupKeys {
    /// Creates a new key.
    ///
    /// # Errors
    /// The ports' errors: nothing was created, or a key that was never shown.
    pub async fn create(&self, request: CreateKeyRequest) -> Result<CreateKeyOutcome> {
        let keys = self.clone();
        self.transcripts.task(async move { keys.create_in_task(request).await }).await?
    }

    async fn create_in_task(&self, request: CreateKeyRequest) -> Result<CreateKeyOutcome> {
        let (label, email) = match (clean_label(request.label), clean_email(request.email)) {
            (Ok(label), Ok(email)) => (label, email),
            (Err(error), _) | (_, Err(error)) => return Ok(CreateKeyOutcome::Invalid(error)),
        };
        let now = self.clock.now();
        if request.access.is_expired(now) {
            let message = "give a time in the future".to_owned();
            return Ok(CreateKeyOutcome::Invalid(KeyRequestError { field: "expires", message }));
        }
        if let KeyOrigin::Network(client) = request.origin {
            let requests = self.limits.new_key(client, now);
            if let Some(limited_ms) = self.limits.check(requests, now).await? {
                // Network digests change at midnight, so nothing is counted under the new ones yet.
                let midnight_ms = now.millis_until(AllowancePeriod::Day.end(now));
                return Ok(CreateKeyOutcome::Limited { retry_after_ms: limited_ms.min(midnight_ms) });
            }
        }
        let key = ApiKey::generate(ApiKind::Lookup, self.random.as_ref())?;
        let (subject, entitled_until) = match self.entitlement(request.proof.as_ref(), now) {
            Some(Entitlement { subject, expires_at: until }) => (Some(subject), Some(until)),
            None => (None, None),
        };
        let record = LookupKey {
            key: NewKeyRecord {
                id: KeyId::new(random_id(self.random.as_ref(), "key")),
                digest: key.digest(),
                hint: key.hint(),
                now,
            },
            wallet: WalletId::new(random_id(self.random.as_ref(), "key")),
            label,
            email,
            subject,
            entitled_until,
            access: KeyAccess { requests: RequestCounts::default(), ..request.access },
        };
        // Retried when the outcome is unknown: a key that was never shown is useless.
        let plus_keys = self.options.plus_keys_per_subject;
        let add = || self.directory.add_key(record.clone(), plus_keys);
        match retry_store(self.transcripts.options().request_policy(), add).await? {
            AddKeyOutcome::Added => {}
            AddKeyOutcome::SubjectFull { room_at } => {
                return Ok(CreateKeyOutcome::SubjectFull {
                    limit: plus_keys,
                    retry_after_ms: room_at.map(|at| now.millis_until(at)),
                });
            }
        }
        // A new key has no usage, so no store call can fail after its creation.
        let status = key_status(&record, self.usage_of(&record, now, 0), now);
        Ok(CreateKeyOutcome::Created(IssuedLookupKey { key, status }))
    }

    /// The public ID of a credential's key; `None` if it is no live key of the lookup API.
    ///
    /// One read: renews nothing, and reads no balance.
    ///
    /// # Errors
    /// The ports' errors.
    pub async fn id(&self, credential: &str) -> Result<Option<KeyId>> {
        let (keys, credential) = (self.clone(), credential.to_owned());
        let work = async move {
            Ok(match keys.principal(Some(&credential), None).await? {
                LookupPrincipal::Key(key) => Some(key.key.id),
                _ => None,
            })
        };
        self.transcripts.task(work).await?
    }

    /// A key's plan and remaining allowance; `None` if the credential is no live key of the lookup API.
    ///
    /// A valid proof of a paid plan renews a plus key of its subject first.
    ///
    /// # Errors
    /// The ports' errors.
    pub async fn status(
        &self,
        credential: &str,
        proof: Option<&EntitlementProof>,
    ) -> Result<Option<KeyStatus>> {
        let (keys, credential, proof) = (self.clone(), credential.to_owned(), proof.cloned());
        let work = async move {
            let LookupPrincipal::Key(key) = keys.principal(Some(&credential), proof.as_ref()).await? else {
                return Ok(None);
            };
            let now = keys.clock.now();
            let usage = keys.usage(&key, now).await?;
            Ok(Some(key_status(&key, usage, now)))
        };
        self.transcripts.task(work).await?
    }

    /// When a credential's key expired; `None` if it is no expired key of the lookup API.
    ///
    /// # Errors
    /// The ports' errors.
    pub async fn expired_at(&self, credential: &str) -> Result<Option<Timestamp>> {
        let (keys, credential) = (self.clone(), credential.to_owned());
        let work = async move {
            Ok(match keys.principal(Some(&credential), None).await? {
                LookupPrincipal::ExpiredKey(end) => Some(end),
                _ => None,
            })
        };
        self.transcripts.task(work).await?
    }

    /// Adds the requests that were counted since the last call to the directory.
    ///
    /// A process calls it every few seconds, and before it ends: requests that it has not added are lost with it.
    ///
    /// # Errors
    /// Those of the directory: the requests stay counted, for the next call.
    pub async fn flush_requests(&self) -> Result<()> {
        self.requests.flush().await
    }

    /// Counts a request of a key; returns the time until a retry if its quota is used up.
    pub(super) async fn count_request(&self, key: &LookupKey) -> Result<Option<Duration>> {
        Ok(match self.requests.count(key, self.clock.now()).await? {
            CountOutcome::Counted => None,
            CountOutcome::Exhausted { retry_after } => Some(retry_after),
        })
    }

    /// The principal of a credential.
    ///
    /// A valid proof of the key's own subject renews a plus key. A typo is detected without a directory lookup.
    pub(super) async fn principal(
        &self,
        credential: Option<&str>,
        proof: Option<&EntitlementProof>,
    ) -> Result<LookupPrincipal> {
        let Some(text) = credential else { return Ok(LookupPrincipal::Anonymous) };
        let Some(key) = ApiKey::parse(text.trim()) else {
            return Ok(LookupPrincipal::UnknownKey(
                "The API key in the Authorization header is not valid. Check that it was copied whole.",
            ));
        };
        if key.kind() == ApiKind::V1 {
            return Ok(LookupPrincipal::UnknownKey(
                "The API key in the Authorization header is for the v1 API (/api/v1). The lookup API takes a key \
                 that begins with vbk_.",
            ));
        }
        Ok(match self.with_store_timeout(self.directory.key_owner(&key.digest())).await? {
            Some(KeyOwner::Lookup(key)) => match key.access.expires_at {
                Some(end) if key.access.is_expired(self.clock.now()) => LookupPrincipal::ExpiredKey(end),
                _ => LookupPrincipal::Key(self.apply_proof(key, proof).await),
            },
            _ => LookupPrincipal::UnknownKey(
                "The API key in the Authorization header is unknown, or was revoked.",
            ),
        })
    }

    /// Name of a valid credential's key or account, unique among both; `None` without one.
    ///
    /// Valid is a key of this server that has not expired, of either API.
    pub(super) async fn owner_name(&self, credential: Option<&str>) -> Result<Option<String>> {
        let Some(key) = credential.and_then(|text| ApiKey::parse(text.trim())) else { return Ok(None) };
        let owner = self.with_store_timeout(self.directory.key_owner(&key.digest())).await?;
        Ok(match owner {
            Some(KeyOwner::Lookup(key)) if key.access.is_expired(self.clock.now()) => None,
            Some(KeyOwner::Lookup(key)) => Some(format!("key-{}", key.key.id)),
            Some(KeyOwner::Account { account, .. }) => Some(format!("account-{}", account.id)),
            None => None,
        })
    }

    /// The balance of a wallet under these terms.
    pub(super) async fn balance(&self, wallet: &WalletId, terms: &Terms) -> Result<Balance> {
        self.with_store_timeout(self.ledger.balance(wallet, terms)).await
    }

    /// A key's usage at a time.
    pub(super) async fn usage(&self, key: &LookupKey, now: Timestamp) -> Result<KeyUsage> {
        let terms = self.terms(key, now);
        let balance = self.balance(&key.wallet, &terms).await?;
        let pool =
            balance.pools.first().ok_or_else(|| Error::unexpected("the balance lacks the requested pool"))?;
        Ok(self.usage_of(key, now, pool.used()))
    }

    fn usage_of(&self, key: &LookupKey, now: Timestamp, used: u64) -> KeyUsage {
        let plan = KeyPlan::for_key(key, now);
        let allowance = plan.allowance(&self.options);
        let remaining = allowance.saturating_sub(used);
        KeyUsage { plan, period: plan.period(), used, allowance, remaining }
    }

    /// Awaits a store call, with the store timeout.
    pub(super) async fn with_store_timeout<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        with_timeout(self.transcripts.options().store_timeout, call).await
    }

    /// A key's pools and limits at a time.
    pub(super) fn terms(&self, key: &LookupKey, now: Timestamp) -> Terms {
        let plan = KeyPlan::for_key(key, now);
        terms::allowance(plan.period(), plan.allowance(&self.options), now)
    }
}

/// A key's plan and remaining allowance.
pub(super) fn key_status(key: &LookupKey, usage: KeyUsage, now: Timestamp) -> KeyStatus {
    KeyStatus {
        id: key.key.id.clone(),
        label: key.label.clone(),
        usage,
        resets_at: usage.period.end(now),
        created_at: key.key.now,
    }
}

/// A label without surrounding white space; `None` if it shows nothing.
fn clean_label(label: Option<String>) -> Result<Option<String>, KeyRequestError> {
    let error = |message: &str| Err(KeyRequestError { field: "label", message: message.to_owned() });
    let Some(label) = label else { return Ok(None) };
    // Checked before trimming, so that the rule can be written as a pattern and a length.
    if label.chars().count() > CreateKeyRequest::LABEL_LENGTH_MAX {
        return error("a label has at most 100 characters");
    }
    if !is_one_line(&label) {
        return error("a label has no control characters, line breaks or characters that reorder others");
    }
    Ok(Some(label.trim().to_owned()).filter(|label| is_visible(label)))
}

/// An address with a plausible form: it is shown to the operator only, no mail is sent to it.
fn clean_email(email: Option<String>) -> Result<Option<String>, KeyRequestError> {
    let Some(email) = email.filter(|email| !email.is_empty()) else { return Ok(None) };
    let is_plausible = email.chars().count() <= CreateKeyRequest::EMAIL_LENGTH_MAX
        && !email.chars().any(|c| c.is_control() || c.is_whitespace())
        && email.rsplit_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty());
    if is_plausible {
        Ok(Some(email))
    } else {
        let message = "give an email address such as name@example.org, or leave it out".to_owned();
        Err(KeyRequestError { field: "email", message })
    }
}
