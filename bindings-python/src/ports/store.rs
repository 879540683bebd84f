//! A Python object as an archive, a ledger or a directory of keys.
//!
//! Its methods have the port's names. Arguments and answers are plain data, with the names of the core's records:
//! dictionaries, lists, texts and numbers; a variant with fields is `{"held": {…}}`, one without is `"conflict"`.

use std::fmt;

use async_trait::async_trait;
use pyo3::{prelude::*, types::PyTuple};
use serde::{Serialize, de::DeserializeOwned};
use transcript_core::{
    Error, ErrorKind, Page, PageRequest, Result, Retry, Timestamp,
    archive::{Absence, Archive, ArchivedTrack, Claim, Found, Keep, Lease, Stats, StoredTranscript, Wish},
    directory::{
        Account, AccountRef, AddKey, Changed, Directory, Entitle, Erased, KeySummary, LookupKey, NewKey,
        Owner, Redeem, Redeemed, Rotated, Token,
    },
    ids::{AccountId, HoldId, Holder, KeyId, WalletId},
    ledger::{
        Balance, BalanceSince, Entry, Grant, GrantOutcome, HoldOutcome, HoldRequest, HoldState, Ledger,
        Revoke, RevokeOutcome, Settle, SettleOutcome, Terms,
    },
    video::{ShortLink, VideoId},
};

use super::call::Asked;
use crate::{ends::attached, raised};

/// A Python object as a store.
pub(crate) struct PyStore {
    asked: Asked,
    name: &'static str,
}

impl fmt::Debug for PyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PyStore").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PyStore {
    /// The object as what this name says.
    pub(crate) fn new(object: Bound<'_, PyAny>, name: &'static str) -> Self {
        Self { asked: Asked::new(object), name }
    }

    /// Calls a method with these arguments, which are a tuple.
    async fn ask<R: DeserializeOwned + Send + 'static>(
        &self,
        method: &'static str,
        arguments: impl Serialize + Send,
    ) -> Result<R> {
        let arguments = serde_json::to_string(&arguments)
            .map_err(|error| Error::unexpected(format!("an argument is no JSON: {error}")))?;
        let name = self.name;
        let answer = self.asked.call(
            method,
            move |py| {
                let list = py.import("json")?.call_method1("loads", (arguments,))?;
                Ok(py.get_type::<PyTuple>().call1((list,))?.cast_into::<PyTuple>()?)
            },
            move |given| {
                let json = given.py().import("json")?.call_method1("dumps", (given,))?;
                let json: String = json.extract()?;
                serde_json::from_str(&json).map_err(|error| {
                    let what = format!("{name}.{method} returned what is no answer: {error}");
                    pyo3::exceptions::PyTypeError::new_err(what)
                })
            },
        );
        answer.await.map_err(|error| self.fault(method, error))
    }

    /// The fault that an exception is.
    fn fault(&self, method: &str, error: PyErr) -> Error {
        let read = attached(|py| {
            let is = |class: &str| {
                let class = py.import("verbatim._errors").and_then(|errors| errors.getattr(class));
                class.is_ok_and(|class| error.value(py).is_instance(&class).unwrap_or(false))
            };
            let (kind, retry) = if is("StorageUnavailable") {
                (ErrorKind::Unavailable, Retry::Backoff)
            } else if is("InvalidInput") {
                (ErrorKind::Invalid, Retry::Never)
            } else if is("Conflict") {
                (ErrorKind::Conflict, Retry::Never)
            } else if is("NotFound") {
                (ErrorKind::NotFound, Retry::Never)
            } else if is("StorageCorrupt") {
                (ErrorKind::Corrupt, Retry::Never)
            } else if is("Unsupported") {
                (ErrorKind::Unsupported, Retry::Never)
            } else {
                (ErrorKind::Unexpected, Retry::Never)
            };
            let message = format!("{}.{method} raised {error}", self.name);
            raised::keep(&message, error.clone_ref(py));
            Error::new(kind, retry, message)
        });
        read.unwrap_or_else(|| Error::unavailable("the program is on its way out"))
    }
}

#[async_trait]
impl Archive for PyStore {
    async fn find(&self, video: &VideoId, wish: &Wish, now: Timestamp) -> Result<Found> {
        self.ask("find", (video, wish, now)).await
    }

    async fn tracks(&self, video: &VideoId) -> Result<Vec<ArchivedTrack>> {
        self.ask("tracks", (video,)).await
    }

    async fn keep(&self, keep: Keep) -> Result<StoredTranscript> {
        self.ask("keep", (keep,)).await
    }

    async fn keep_absence(&self, absence: Absence) -> Result<()> {
        self.ask("keep_absence", (absence,)).await
    }

    async fn claim(&self, lease: Lease) -> Result<Claim> {
        self.ask("claim", (lease,)).await
    }

    async fn unclaim(&self, video: &VideoId, wish: &Wish, holder: &Holder) -> Result<()> {
        self.ask("unclaim", (video, wish, holder)).await
    }

    async fn link(&self, link: &ShortLink) -> Result<Option<VideoId>> {
        self.ask("link", (link,)).await
    }

    async fn keep_link(&self, link: &ShortLink, video: &VideoId) -> Result<()> {
        self.ask("keep_link", (link, video)).await
    }

    async fn withdraw(&self, video: &VideoId, withdrawn: bool, now: Timestamp) -> Result<()> {
        self.ask("withdraw", (video, withdrawn, now)).await
    }

    async fn forget(&self, video: &VideoId) -> Result<()> {
        self.ask("forget", (video,)).await
    }

    async fn changes(&self) -> Result<u64> {
        self.ask("changes", [(); 0]).await
    }

    async fn page(&self, page: PageRequest) -> Result<Page<ArchivedTrack>> {
        self.ask("page", (page,)).await
    }

    async fn withdrawn(&self, page: PageRequest) -> Result<Page<VideoId>> {
        self.ask("withdrawn", (page,)).await
    }

    async fn stats(&self) -> Result<Stats> {
        self.ask("stats", [(); 0]).await
    }
}

#[async_trait]
impl Ledger for PyStore {
    async fn hold(&self, ask: HoldRequest) -> Result<HoldOutcome> {
        self.ask("hold", (ask,)).await
    }

    async fn spend(&self, ask: HoldRequest) -> Result<HoldOutcome> {
        self.ask("spend", (ask,)).await
    }

    async fn extend(&self, id: &HoldId, until: Timestamp) -> Result<HoldState> {
        self.ask("extend", (id, until)).await
    }

    async fn settle(&self, ask: Settle) -> Result<SettleOutcome> {
        self.ask("settle", (ask,)).await
    }

    async fn grant(&self, grant: Grant) -> Result<GrantOutcome> {
        self.ask("grant", (grant,)).await
    }

    async fn revoke(&self, ask: Revoke) -> Result<RevokeOutcome> {
        self.ask("revoke", (ask,)).await
    }

    async fn balance(&self, wallet: &WalletId, terms: &Terms) -> Result<Balance> {
        self.ask("balance", (wallet, terms)).await
    }

    async fn balance_since(
        &self,
        wallet: &WalletId,
        terms: &Terms,
        since: Timestamp,
    ) -> Result<BalanceSince> {
        self.ask("balance_since", (wallet, terms, since)).await
    }

    async fn expire(&self, now: Timestamp, limit: u32) -> Result<u32> {
        self.ask("expire", (now, limit)).await
    }

    async fn entries(&self, wallet: &WalletId, page: PageRequest) -> Result<Page<Entry>> {
        self.ask("entries", (wallet, page)).await
    }

    async fn wallets(&self, page: PageRequest) -> Result<Page<Balance>> {
        self.ask("wallets", (page,)).await
    }
}

#[async_trait]
impl Directory for PyStore {
    async fn owner(&self, key_digest: &[u8]) -> Result<Option<Owner>> {
        self.ask("owner", (key_digest,)).await
    }

    async fn add_key(&self, key: LookupKey, live_per_subject: u32) -> Result<AddKey> {
        self.ask("add_key", (key, live_per_subject)).await
    }

    async fn entitle(&self, ask: Entitle) -> Result<bool> {
        self.ask("entitle", (ask,)).await
    }

    async fn rotate(&self, old_digest: &[u8], new: NewKey) -> Result<Rotated> {
        self.ask("rotate", (old_digest, new)).await
    }

    async fn revoke_key(&self, key: &KeyId, now: Timestamp) -> Result<bool> {
        self.ask("revoke_key", (key, now)).await
    }

    async fn keys(&self, page: PageRequest) -> Result<Page<KeySummary>> {
        self.ask("keys", (page,)).await
    }

    async fn put_token(&self, token: Token) -> Result<()> {
        self.ask("put_token", (token,)).await
    }

    async fn redeem(&self, ask: Redeem) -> Result<Redeemed> {
        self.ask("redeem", (ask,)).await
    }

    async fn account(&self, who: &AccountRef) -> Result<Option<Account>> {
        self.ask("account", (who,)).await
    }

    async fn change_account(&self, account: Account) -> Result<Changed> {
        self.ask("change_account", (account,)).await
    }

    async fn erase_account(&self, id: &AccountId, version: u64, now: Timestamp) -> Result<Erased> {
        self.ask("erase_account", (id, version, now)).await
    }

    async fn accounts(&self, page: PageRequest) -> Result<Page<Account>> {
        self.ask("accounts", (page,)).await
    }
}
