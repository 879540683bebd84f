//! Keys of Surface B: the first one, the next one, and the way back for whoever lost theirs.

use std::net::IpAddr;

use sha2::{Digest, Sha256};

use super::{Accounts, Refused, Standing, Visit, authenticate::unauthorized};
use crate::{
    directory::{
        NewKey, Owner, Plan, Redeem, Redeemed, Rotated,
        key::{Key, Surface},
    },
    engine::retry::persistently,
    error::Result,
    ids::{AccountId, KeyId, WalletId, random_name},
    time::Timestamp,
};

/// The length of a verification token: 256 bits in hexadecimal.
const TOKEN_LENGTH: usize = 64;
const MINUTE_MS: u64 = 60 * 1000;

/// What came of redeeming a verification token.
#[derive(Debug)]
pub enum Verification {
    /// The account's new key.
    Issued(NewAccountKey),
    /// The address has an account: nothing happened, and a person must confirm before its old key dies.
    NeedsConfirmation,
}

/// A key of an account, for its one showing.
#[derive(Debug)]
pub struct NewAccountKey {
    /// The key in the clear.
    pub key: Key,
    /// Whether the account was made just now.
    pub first: bool,
    /// The plan by which the account is treated.
    pub plan: Plan,
    /// The credits that can be spent now; none when the ledger is away in this moment.
    pub credits_remaining: Option<u64>,
    /// Whether the account is blocked: then the key opens nothing until the operator ends that.
    pub is_blocked: bool,
}

impl Accounts {
    /// Redeems a verification token: makes the account of its address, or gives the account that the address
    /// has a new key and ends the old one. Invalid, used and expired tokens are told alike.
    ///
    /// `confirmed` says that a person asked for it: without it, a token for an address that has an account
    /// does nothing, so that no scanner of mails can end a live key.
    ///
    /// # Errors
    /// [`Refused::BadRequest`] for a token that cannot be redeemed; [`Refused::RateLimited`] when too many
    /// attempts came from the network; [`Refused::Internal`].
    pub async fn verify(
        &self,
        token: &str,
        confirmed: bool,
        client: Option<IpAddr>,
    ) -> Result<Verification, Refused> {
        let (accounts, token) = (self.clone(), token.to_owned());
        self.task(async move { accounts.redeem(&token, confirmed, client).await }).await
    }

    async fn redeem(
        &self,
        token: &str,
        confirmed: bool,
        client: Option<IpAddr>,
    ) -> Result<Verification, Refused> {
        let parts = &self.parts;
        let now = parts.clock.now();
        let limit = self.options().verify_per_network_per_minute;
        let takes = self.own.networks.takes("verify", client, limit, MINUTE_MS, now);
        if let Some((_, retry_after_ms)) = self.limited(takes, now).await? {
            return Err(Refused::too_many(
                "Too many verification links were opened from your network",
                retry_after_ms,
            ));
        }
        let is_token = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if token.len() != TOKEN_LENGTH || !token.bytes().all(is_token) {
            return Err(not_redeemable());
        }
        let (key, record) = self.new_key(now)?;
        let ask = Redeem {
            digest: Sha256::digest(token.as_bytes()).to_vec(),
            confirmed,
            new_account: AccountId::new(random_name(parts.random.as_ref(), "account")),
            new_wallet: WalletId::new(random_name(parts.random.as_ref(), "account")),
            key: record,
        };
        match self.surely(|| parts.directory.redeem(ask.clone())).await? {
            Redeemed::Issued { account, first } => {
                let standing = Standing::of(&account, self.options(), now);
                // The key is there: it is shown whatever becomes of the ledger.
                let credits_remaining = match first {
                    true => Some(standing.plan_credits),
                    false => self.credits_here(&account).await.ok().map(|credits| credits.remaining),
                };
                Ok(Verification::Issued(NewAccountKey {
                    key,
                    first,
                    plan: standing.plan,
                    credits_remaining,
                    is_blocked: account.blocked,
                }))
            }
            Redeemed::NeedsConfirmation => Ok(Verification::NeedsConfirmation),
            Redeemed::Invalid => Err(not_redeemable()),
        }
    }

    /// Replaces the key that a visitor came with. Of two at once one wins, the other gets 401.
    ///
    /// # Errors
    /// [`Refused::Unauthorized`] when the key was replaced meanwhile; [`Refused::Internal`].
    ///
    /// # Cancellation
    /// Dropping the future leaves the key replaced or not.
    pub async fn rotate(&self, visit: Visit) -> Result<Key, Refused> {
        let accounts = self.clone();
        let old_digest = visit.caller().key_digest.clone();
        self.task(async move { accounts.replace_key(&old_digest).await }).await
    }

    async fn replace_key(&self, old_digest: &[u8]) -> Result<Key, Refused> {
        let (key, record) = self.new_key(self.parts.clock.now())?;
        let directory = &self.parts.directory;
        let rotate = || async {
            match directory.rotate(old_digest, record.clone()).await? {
                Rotated::Rotated => Ok(true),
                // An earlier try of this very call may have taken effect unheard: then the new key lives.
                Rotated::Stale => {
                    let owner = directory.owner(&record.digest).await?;
                    Ok(matches!(owner, Some(Owner::Account { key, .. }) if key == record.id))
                }
            }
        };
        let patience = self.parts.transcripts.patience();
        match persistently(patience, rotate).await {
            Ok(true) => Ok(key),
            Ok(false) => Err(unauthorized("The API key was replaced by a newer one in this very moment.")),
            Err(error) => {
                tracing::error!(%error, "whether a key was replaced is not known");
                Err(Refused::Internal(
                    "The service could not reach its storage, and your key may have been replaced. If it no longer \
                     works, register again with the same e-mail address to get a new one."
                        .to_owned(),
                ))
            }
        }
    }

    /// A new key, and what is stored of it.
    fn new_key(&self, now: Timestamp) -> Result<(Key, NewKey), Refused> {
        let random = self.parts.random.as_ref();
        let key = Key::generate(Surface::Account, random).map_err(|error| Refused::store(&error))?;
        let id = KeyId::new(random_name(random, "key"));
        let record = NewKey { id, digest: key.digest(), hint: key.hint(), now };
        Ok((key, record))
    }
}

fn not_redeemable() -> Refused {
    Refused::BadRequest(
        "token: this verification link is invalid, was used, or is older than 24 hours; POST /api/v1/register sends \
         a new one"
            .to_owned(),
    )
}
