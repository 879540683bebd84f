//! Keys of the v1 API: issue, rotation, and recovery of a lost key.

use std::{net::IpAddr, sync::Arc};

use super::{
    AccountCredits, OrderStore, Outbox, RequestGuard, SessionStore, V1Error, authenticate::unauthorized,
    call_context::CallContext, form_random::link_randoms, rate_limit::AccountLimits, sessions::digest_of,
};
use crate::{
    directory::{
        Directory, KeyOwner, NewKeyRecord, Plan, RedeemOutcome, RedeemRequest, RotateOutcome,
        api_key::{ApiKey, ApiKind},
    },
    error::Result,
    ids::{AccountId, KeyId, WalletId, random_id},
    keyed_digest::KeyedDigest,
    limits::{MINUTE_MS, network_hasher::NetworkHasher},
    time::{Random, Timestamp},
};

/// Outcome of redeeming a verification token.
#[derive(Debug)]
pub enum VerifyOutcome {
    /// The account's new key.
    Issued(IssuedAccountKey),
    /// The address has an account: nothing was changed.
    /// A person must confirm before its old key is revoked.
    NeedsConfirmation,
}

/// A new key of an account, to be shown once.
#[derive(Debug)]
pub struct IssuedAccountKey {
    /// The account.
    pub account: AccountId,
    /// The key in plain text.
    pub key: ApiKey,
    /// Whether the account was created by this call.
    pub is_new_account: bool,
    /// The plan that applies to the account now.
    pub plan: Plan,
    /// The credits that can be spent now; `None` if the ledger is unavailable.
    pub credits_remaining: Option<u64>,
    /// Whether the account is blocked: its key is rejected until the operator unblocks it.
    pub is_blocked: bool,
}

/// Registers addresses, and issues and rotates the keys of accounts.
///
/// Uses the outbox, the directory, the rate limiter, and the ledger for the credits that are reported with a key.
#[derive(Debug)]
pub struct AccountKeys {
    pub(super) context: Arc<CallContext>,
    pub(super) limits: Arc<AccountLimits>,
    pub(super) credits: Arc<AccountCredits>,
    pub(super) directory: Arc<dyn Directory>,
    pub(super) outbox: Arc<dyn Outbox>,
    /// Read by the mail sender: the orders of receipts.
    #[cfg_attr(not(feature = "mail"), expect(dead_code, reason = "only the mail sender reads it"))]
    pub(super) orders: Arc<dyn OrderStore>,
    /// Written by the mail sender: the links of sign-in emails.
    #[cfg_attr(not(feature = "mail"), expect(dead_code, reason = "only the mail sender writes it"))]
    pub(super) sessions: Arc<dyn SessionStore>,
    /// Digests networks and addresses for their rate limits, so that neither is stored.
    pub(super) networks: NetworkHasher,
    /// Derives the key that a form issues.
    pub(super) digest: KeyedDigest,
}

impl AccountKeys {
    /// Redeems a verification token.
    /// Creates the account of its address, or replaces the key of that account.
    ///
    /// Invalid, used and expired tokens have the same error. `confirmed` means that a person requested it:
    /// otherwise a token for an address with an account does nothing, so that a mail scanner that opens links
    /// cannot revoke a live key.
    ///
    /// # Errors
    /// [`V1Error::BadRequest`] for a token that cannot be redeemed; [`V1Error::RateLimited`] after too many
    /// attempts from the network; [`V1Error::Internal`].
    pub async fn verify(
        self: &Arc<Self>,
        token: &str,
        confirmed: bool,
        client: Option<IpAddr>,
    ) -> Result<VerifyOutcome, V1Error> {
        self.verify_form(token, "", confirmed, client).await
    }

    /// Redeems a verification token as [`AccountKeys::verify`], for the button of a page.
    ///
    /// `form` is the [`super::AccountSessions::form_token`] of the page, or empty. A browser that sends the form twice
    /// shows the second response only: within ten to twenty seconds the same form returns the same key.
    ///
    /// # Errors
    /// As [`AccountKeys::verify`].
    pub async fn verify_form(
        self: &Arc<Self>,
        token: &str,
        form: &str,
        confirmed: bool,
        client: Option<IpAddr>,
    ) -> Result<VerifyOutcome, V1Error> {
        let (keys, token, form) = (Arc::clone(self), token.to_owned(), form.to_owned());
        let work = async move {
            let (options, now) = (&keys.context.options, keys.context.now());
            let limit = options.verify_per_network_per_minute;
            let limits = keys.networks.limit_requests("verify", client, limit, MINUTE_MS, now);
            if let Some(retry_after_ms) = keys.limits.acquire(limits, now).await? {
                return Err(V1Error::rate_limited(
                    "Too many verification links were opened from your network",
                    retry_after_ms,
                ));
            }
            let Some(digest) = digest_of(&token) else { return Err(invalid_token()) };
            for random in link_randoms(&keys.context, &keys.digest, "verify", &token, &form) {
                let new = new_key(random.as_ref(), now).map_err(V1Error::from_store_error)?;
                if let Some(outcome) = keys.redeem(&digest, confirmed, new).await? {
                    return Ok(outcome);
                }
            }
            Err(invalid_token())
        };
        self.context.task(work).await
    }

    /// Redeems the token with this digest for this key; `None` if it cannot be redeemed.
    async fn redeem(
        &self,
        digest: &[u8],
        confirmed: bool,
        (key, record): (ApiKey, NewKeyRecord),
    ) -> Result<Option<VerifyOutcome>, V1Error> {
        let now = record.now;
        let redeem = RedeemRequest {
            digest: digest.to_vec(),
            confirmed,
            new_account: AccountId::new(self.context.random_id("account")),
            new_wallet: WalletId::new(self.context.random_id("account")),
            key: record,
        };
        let redeemed = self.context.retry_store(|| self.directory.redeem(redeem.clone())).await;
        Ok(match redeemed.map_err(V1Error::from_store_error)? {
            RedeemOutcome::Issued { account, first } => {
                let effective_plan = self.context.effective_plan(&account, now);
                // The key exists: it is returned whether or not the ledger is available.
                let credits_remaining = match first {
                    true => Some(effective_plan.plan_credits),
                    false => {
                        let credits = self.credits.balance(&account).await;
                        credits.map_err(V1Error::from_store_error).ok().map(|credits| credits.remaining)
                    }
                };
                Some(VerifyOutcome::Issued(IssuedAccountKey {
                    account: account.id,
                    key,
                    is_new_account: first,
                    plan: effective_plan.plan,
                    credits_remaining,
                    is_blocked: account.blocked,
                }))
            }
            RedeemOutcome::NeedsConfirmation => Some(VerifyOutcome::NeedsConfirmation),
            RedeemOutcome::Invalid => None,
        })
    }

    /// Replaces the key of the request. Of two concurrent calls one succeeds, the other gets 401.
    ///
    /// # Errors
    /// [`V1Error::Unauthorized`] if another call replaced the key first; [`V1Error::Internal`].
    ///
    /// # Cancellation
    /// Dropping the future leaves the key replaced or not replaced.
    pub async fn rotate(self: &Arc<Self>, guard: RequestGuard) -> Result<ApiKey, V1Error> {
        let keys = Arc::clone(self);
        let old_digest = guard.caller().key_digest.clone();
        let work = async move {
            let (key, record) = keys.new_key(keys.context.now()).map_err(V1Error::from_store_error)?;
            match keys.replace(&old_digest, &record).await {
                Ok(true) => Ok(key),
                Ok(false) => Err(unauthorized("The API key was replaced by a newer one at the same time.")),
                Err(error) => {
                    tracing::error!(%error, "key rotation outcome unknown");
                    Err(V1Error::Internal(
                        "The service could not reach its storage, and your key may have been replaced. If it no longer \
                         works, register again with the same email address, which replaces all keys of the account."
                            .to_owned(),
                    ))
                }
            }
        };
        self.context.task(work).await
    }

    /// Replaces the live key with this digest; returns false if there is none.
    pub(super) async fn replace(&self, old_digest: &[u8], new: &NewKeyRecord) -> Result<bool> {
        let directory = &self.directory;
        let rotate_key = || async {
            match directory.rotate(old_digest, new.clone()).await? {
                RotateOutcome::Rotated => Ok(true),
                // An earlier try of this call may have taken effect: then the new key is live.
                RotateOutcome::Stale => {
                    let owner = directory.key_owner(&new.digest).await?;
                    Ok(matches!(owner, Some(KeyOwner::Account { key, .. }) if key == new.id))
                }
            }
        };
        self.context.retry_store(rotate_key).await
    }

    /// Generates a key, and its record for storage.
    fn new_key(&self, now: Timestamp) -> Result<(ApiKey, NewKeyRecord)> {
        new_key(self.context.random.as_ref(), now)
    }
}

/// Makes a key and its record of these random bytes.
pub(super) fn new_key(random: &dyn Random, now: Timestamp) -> Result<(ApiKey, NewKeyRecord)> {
    let key = ApiKey::generate(ApiKind::V1, random)?;
    let id = KeyId::new(random_id(random, "key"));
    let record = NewKeyRecord { id, digest: key.digest(), hint: key.hint(), now };
    Ok((key, record))
}

fn invalid_token() -> V1Error {
    V1Error::BadRequest(
        "token: this verification link is invalid, was used, or is older than 24 hours; POST /api/v1/register sends \
         a new one"
            .to_owned(),
    )
}
