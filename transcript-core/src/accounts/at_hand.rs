//! A call for an answer that is at hand: let in, counted and charged in one step of the store.
//!
//! Whose key it is, is remembered from earlier calls. Nothing rests on that memory: the store charges only
//! while the key opens the account in the version that was remembered, and says so when it does not.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::{
    Accounts, Caller, ChargeOutcome, ChargeRequest, RateState, Refused, Route, Standing,
    authenticate::read_key,
    charge::{left, refused},
};
use crate::{
    directory::key::Key,
    engine::retry::persistently,
    error::{Error, ErrorKind, Result as StoreResult, Retry},
    ids::{HoldId, random_name},
    ledger::{HoldOutcome, HoldState},
    video::VideoId,
};

/// How often a key is looked up anew before its call is given up: each time its account has changed in between.
const LOOKS_MAX: u32 = 4;

/// What became of a call for an answer that is at hand, once it was counted.
#[derive(Debug)]
pub struct AtHand {
    /// The account's rate limit after this call.
    pub rate: RateState,
    /// The credits that are left, where that is known; or why the answer must not be sent.
    pub paid: Result<Option<u64>, Refused>,
}

impl Accounts {
    /// Lets in, counts and charges a call for the transcript of a video that is archived and ready to be sent:
    /// once this says that it is paid, the answer is sent. For calls without an `Idempotency-Key`; the checks
    /// come in the order of [`Accounts::enter`] and [`Accounts::transcript`], and what costs the same there costs
    /// the same here.
    ///
    /// Unlike the others it takes no way through the engine's runtime while all goes well: it is awaited where it
    /// is called.
    ///
    /// # Errors
    /// [`Refused::Unauthorized`], [`Refused::RateLimited`], [`Refused::Internal`]: the call was not counted.
    ///
    /// # Cancellation
    /// Dropping the future leaves the call charged or not charged: as in [`Accounts::transcript`], what is at
    /// hand is delivered in the moment in which it is asked for.
    pub async fn charge_at_hand(&self, bearer: Option<&str>, video: &VideoId) -> Result<AtHand, Refused> {
        let key = read_key(bearer)?;
        let digest: [u8; 32] = Sha256::digest(key.reveal().as_bytes()).into();
        let memo = format!("transcript {video}");
        for _ in 0..LOOKS_MAX {
            let caller = match self.own.callers.get(&digest) {
                Some(caller) => caller,
                None => self.look_up(&key, digest).await?,
            };
            match self.charge_caller(&caller, &memo).await? {
                Some(at_hand) => return Ok(at_hand),
                None => self.own.callers.remove(&digest),
            };
        }
        Err(Refused::Internal(
            "The account was changing all the while: nothing was charged, please try again in a moment."
                .to_owned(),
        ))
    }

    /// Whose key it is, from now on remembered.
    async fn look_up(&self, key: &Key, digest: [u8; 32]) -> Result<Arc<Caller>, Refused> {
        let (accounts, key) = (self.clone(), key.clone());
        let caller = self.task(async move { accounts.caller(&key).await }).await?;
        let caller = Arc::new(caller);
        self.own.callers.insert(digest, Arc::clone(&caller));
        Ok(caller)
    }

    /// Counts and charges a call; none when the account is not what it was.
    async fn charge_caller(&self, caller: &Caller, memo: &str) -> Result<Option<AtHand>, Refused> {
        let ask = self.charge_request(caller, memo);
        let limit = self.rate_limit(&ask.take)?;
        let first = self.charge_once(ask.clone()).await;
        let known = first.is_ok();
        let outcome = match first {
            Err(error) if error.kind() == ErrorKind::Invalid => return Err(Refused::store(&error)),
            Err(error) if error.retry() == Retry::Never => Err(error),
            Err(_) => self.charge_again(ask.clone()).await,
            Ok(outcome) => Ok(outcome),
        };
        match outcome {
            Ok(ChargeOutcome::Counted { remaining, reset_ms, spent }) => {
                let paid = match spent {
                    HoldOutcome::Held { balances }
                    | HoldOutcome::Known { state: HoldState::Closed { .. }, balances } => {
                        Ok(Some(left(&balances)))
                    }
                    // The first try failed, and may yet take effect in a store that is slow.
                    _ if !known => Ok(None),
                    other => Err(refused(&ask.spend, other, self.options().sells)),
                };
                Ok(Some(AtHand { rate: limit.state(remaining, reset_ms), paid }))
            }
            Ok(ChargeOutcome::Limited { retry_after_ms }) if known => Err(limit.refuse(retry_after_ms)),
            Ok(ChargeOutcome::Stale) if known => Ok(None),
            Ok(ChargeOutcome::Undone(error)) if known => Err(Refused::store(&error)),
            // Whether a try took effect is not known: the answer is given, as in `Accounts::spend`.
            outcome => {
                tracing::error!(hold = %ask.spend.id, ?outcome, "whether credits were spent is not known");
                Ok(Some(AtHand { rate: limit.state(0, 0), paid: Ok(None) }))
            }
        }
    }

    fn charge_request(&self, caller: &Caller, memo: &str) -> ChargeRequest {
        let (account, cost) = (&caller.account, self.options().credits_per_transcript);
        let now = self.parts.clock.now();
        // Names that grow with time lie side by side in a store. There is one attempt at this work, ever.
        let work = format!("{}-{:012x}", Route::Transcript.as_str(), now.as_millis());
        let id = HoldId::new(random_name(self.parts.random.as_ref(), &work) + "-once");
        let standing = Standing::of(account, self.options(), now);
        let spend = self.request_at(now, account, &standing, id, cost, memo);
        ChargeRequest {
            key_digest: caller.key_digest.clone(),
            account: account.id.clone(),
            version: account.version,
            take: Self::request_take(account, &standing),
            spend,
        }
    }

    /// One call of the store, awaited where the caller awaits.
    async fn charge_once(&self, ask: ChargeRequest) -> StoreResult<ChargeOutcome> {
        let timed = {
            // For the timer: the caller's executor may have none.
            let _inside = self.parts.transcripts.runtime().enter();
            tokio::time::timeout(self.parts.transcripts.patience().attempt, self.parts.charges.charge(ask))
        };
        timed.await.unwrap_or_else(|_| Err(Error::unavailable("the store did not answer in time")))
    }

    /// The same until it is known what became of it, or patience is at its end.
    async fn charge_again(&self, ask: ChargeRequest) -> StoreResult<ChargeOutcome> {
        let (patience, charges) = (self.parts.transcripts.patience(), Arc::clone(&self.parts.charges));
        let again = move || {
            let (charges, ask) = (Arc::clone(&charges), ask.clone());
            async move {
                match charges.charge(ask).await? {
                    // This try was not made; the one before it may have been.
                    ChargeOutcome::Undone(error) => Err(error),
                    outcome => Ok(outcome),
                }
            }
        };
        self.parts.transcripts.task(async move { persistently(patience, again).await }).await?
    }
}
