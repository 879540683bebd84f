//! Adapter from a Python object to the archive, ledger and directory ports.
//!
//! Its methods have the names of the port. Arguments and results are plain data with the field names of the core's
//! records: dictionaries, lists, texts and numbers. A variant with fields is `{"held": {…}}`, one without fields is
//! `"conflict"`.

use std::sync::Arc;

use async_trait::async_trait;
use pyo3::{exceptions::PyTypeError, prelude::*, types::PyTuple};
use serde::{Serialize, de::DeserializeOwned};
use transcript_core::{
    Error, ErrorKind, Page, PageRequest, Result, Retry, Timestamp,
    archive::{
        Absence, Archive, ArchiveStats, ArchivedTrack, FetchLease, FindOutcome, KeyValueArchive,
        LeaseOutcome, PutRequest, StoredTranscript, TrackSelector,
    },
    directory::{
        Account, AccountRef, AddKeyOutcome, Directory, EraseOutcome, KeyOwner, KeySummary, LookupKey,
        NewKeyRecord, RedeemOutcome, RedeemRequest, RenewRequest, RotateOutcome, UpdateOutcome,
        VerificationToken,
    },
    ids::{AccountId, HoldId, Holder, KeyId, WalletId},
    ledger::{
        Balance, Entry, GrantOutcome, GrantRequest, HoldOutcome, HoldRequest, HoldState, Ledger,
        PeriodBalance, RevokeOutcome, RevokeRequest, SettleOutcome, SettleRequest, Terms,
    },
    video::{ShortLink, VideoId},
};

use super::{call::PyTarget, has_method, key_value::PyKeyValueStore};
use crate::{components::Components, events, exception_cause, lifecycle::attached};

/// A Python object that implements a storage port.
struct PyStore {
    target: PyTarget,
    name: &'static str,
}

transcript_core::debug_fields!(PyStore { name });

impl PyStore {
    /// Wraps the object as the port with this name.
    fn new(object: Bound<'_, PyAny>, name: &'static str, components: &mut Components) -> Self {
        Self { target: PyTarget::new(object, components), name }
    }

    /// Calls a method of the object; `arguments` is serialised as a list, which becomes the argument tuple.
    async fn call<R: DeserializeOwned + Send + 'static>(
        &self,
        method: &'static str,
        arguments: impl Serialize + Send,
    ) -> Result<R> {
        let arguments = serde_json::to_string(&arguments)
            .map_err(|error| Error::unexpected(format!("cannot encode an argument as JSON: {error}")))?;
        let name = self.name;
        let result = self.target.call(
            method,
            move |py| {
                let list = py.import("json")?.call_method1("loads", (arguments,))?;
                Ok(py.get_type::<PyTuple>().call1((list,))?.cast_into::<PyTuple>()?)
            },
            move |value| {
                let json = value.py().import("json")?.call_method1("dumps", (value,))?;
                let json: String = json.extract()?;
                serde_json::from_str(&json).map_err(|error| {
                    let message = format!("{name}.{method} returned an invalid result: {error}");
                    PyTypeError::new_err(message)
                })
            },
        );
        result.await.map_err(|error| to_error(name, method, error))
    }
}

/// Maps a Python exception to an error of the port.
pub(super) fn to_error(port: &'static str, method: &str, error: PyErr) -> Error {
    let error = attached(|py| {
        let is_instance = |class: &str| {
            let class = py.import("verbatim_transcripts._errors").and_then(|errors| errors.getattr(class));
            class.is_ok_and(|class| error.value(py).is_instance(&class).unwrap_or(false))
        };
        let (kind, retry) = if is_instance("StorageUnavailable") {
            (ErrorKind::Unavailable, Retry::Backoff)
        } else if is_instance("InvalidInput") {
            (ErrorKind::Invalid, Retry::Never)
        } else if is_instance("ConflictError") {
            (ErrorKind::Conflict, Retry::Never)
        } else if is_instance("NotFoundError") {
            (ErrorKind::NotFound, Retry::Never)
        } else if is_instance("StorageCorrupt") {
            (ErrorKind::Corrupt, Retry::Never)
        } else if is_instance("UnsupportedError") {
            (ErrorKind::Unsupported, Retry::Never)
        } else {
            (ErrorKind::Unexpected, Retry::Never)
        };
        let message = format!("{}.{method} raised {error}", port);
        if kind == ErrorKind::Unexpected {
            events::record_exception(py, port, method, &error);
        }
        Error::new(kind, retry, message).with_cause(Some(exception_cause::to_cause(py, &error)))
    });
    error.unwrap_or_else(|| Error::unavailable("the interpreter is exiting"))
}

/// The methods of an archive. The others of the port have defaults, which a Python object does not replace.
const ARCHIVE: [&str; 14] = [
    "find",
    "tracks",
    "put",
    "put_absence",
    "acquire_lease",
    "release_lease",
    "short_link",
    "put_short_link",
    "withdraw",
    "delete",
    "change_counter",
    "list_tracks",
    "list_withdrawn",
    "stats",
];
const KEY_VALUE: [&str; 3] = ["get", "write", "list"];
const LEDGER: [&str; 11] = [
    "hold",
    "spend",
    "extend",
    "settle",
    "grant",
    "revoke",
    "balance",
    "balance_since",
    "expire",
    "entries",
    "wallets",
];
const DIRECTORY: [&str; 12] = [
    "key_owner",
    "add_key",
    "renew_entitlement",
    "rotate",
    "revoke_key",
    "keys",
    "put_token",
    "redeem",
    "account",
    "update_account",
    "erase_account",
    "accounts",
];

/// The methods that an object lacks.
fn missing_methods(object: &Bound<'_, PyAny>, methods: &[&'static str]) -> Vec<&'static str> {
    methods.iter().filter(|method| !has_method(object, method)).copied().collect()
}

/// Checks that an object has all methods of a port.
///
/// # Errors
/// `TypeError` with the missing methods.
fn check_methods(
    object: &Bound<'_, PyAny>,
    port: &str,
    class: &str,
    methods: &[&'static str],
) -> PyResult<()> {
    let missing = missing_methods(object, methods);
    if missing.is_empty() {
        return Ok(());
    }
    let (kind, missing) = (object.get_type(), missing.join(", "));
    Err(PyTypeError::new_err(format!(
        "{port} needs the methods of verbatim_transcripts.{class}; {kind} lacks: {missing}"
    )))
}

/// A Python object as an archive: one with the methods of the port, or a store of keys and values.
///
/// # Errors
/// `TypeError` with the missing methods.
pub(crate) fn archive(object: Bound<'_, PyAny>, components: &mut Components) -> PyResult<Arc<dyn Archive>> {
    let is_key_value =
        missing_methods(&object, &KEY_VALUE).len() < KEY_VALUE.len() && !object.hasattr("find")?;
    if is_key_value {
        check_methods(&object, "archive", "KeyValueStore", &KEY_VALUE)?;
        let store = PyKeyValueStore::new(object, components);
        return Ok(Arc::new(KeyValueArchive::new(Arc::new(store))));
    }
    check_methods(&object, "archive", "Archive", &ARCHIVE)?;
    Ok(Arc::new(PyStore::new(object, "archive", components)))
}

/// A Python object as a ledger.
///
/// # Errors
/// `TypeError` with the missing methods.
pub(crate) fn ledger(object: Bound<'_, PyAny>, components: &mut Components) -> PyResult<Arc<dyn Ledger>> {
    check_methods(&object, "ledger", "Ledger", &LEDGER)?;
    Ok(Arc::new(PyStore::new(object, "ledger", components)))
}

/// A Python object as a directory of keys and accounts.
///
/// # Errors
/// `TypeError` with the missing methods.
pub(crate) fn directory(
    object: Bound<'_, PyAny>,
    components: &mut Components,
) -> PyResult<Arc<dyn Directory>> {
    check_methods(&object, "directory", "Directory", &DIRECTORY)?;
    Ok(Arc::new(PyStore::new(object, "directory", components)))
}

#[async_trait]
impl Archive for PyStore {
    async fn find(&self, video: &VideoId, selector: &TrackSelector, now: Timestamp) -> Result<FindOutcome> {
        self.call("find", (video, selector, now)).await
    }

    async fn tracks(&self, video: &VideoId) -> Result<Vec<ArchivedTrack>> {
        self.call("tracks", (video,)).await
    }

    async fn put(&self, request: PutRequest) -> Result<StoredTranscript> {
        self.call("put", (request,)).await
    }

    async fn put_absence(&self, absence: Absence) -> Result<()> {
        self.call("put_absence", (absence,)).await
    }

    async fn acquire_lease(&self, lease: FetchLease) -> Result<LeaseOutcome> {
        self.call("acquire_lease", (lease,)).await
    }

    async fn release_lease(&self, video: &VideoId, selector: &TrackSelector, holder: &Holder) -> Result<()> {
        self.call("release_lease", (video, selector, holder)).await
    }

    async fn short_link(&self, link: &ShortLink) -> Result<Option<VideoId>> {
        self.call("short_link", (link,)).await
    }

    async fn put_short_link(&self, link: &ShortLink, video: &VideoId) -> Result<()> {
        self.call("put_short_link", (link, video)).await
    }

    async fn withdraw(&self, video: &VideoId, withdrawn: bool, now: Timestamp) -> Result<()> {
        self.call("withdraw", (video, withdrawn, now)).await
    }

    async fn delete(&self, video: &VideoId) -> Result<()> {
        self.call("delete", (video,)).await
    }

    async fn change_counter(&self) -> Result<u64> {
        self.call("change_counter", [(); 0]).await
    }

    async fn list_tracks(&self, page: PageRequest) -> Result<Page<ArchivedTrack>> {
        self.call("list_tracks", (page,)).await
    }

    async fn list_withdrawn(&self, page: PageRequest) -> Result<Page<VideoId>> {
        self.call("list_withdrawn", (page,)).await
    }

    async fn stats(&self) -> Result<ArchiveStats> {
        self.call("stats", [(); 0]).await
    }
}

#[async_trait]
impl Ledger for PyStore {
    async fn hold(&self, request: HoldRequest) -> Result<HoldOutcome> {
        self.call("hold", (request,)).await
    }

    async fn spend(&self, request: HoldRequest) -> Result<HoldOutcome> {
        self.call("spend", (request,)).await
    }

    async fn extend(&self, id: &HoldId, expires_at: Timestamp) -> Result<HoldState> {
        self.call("extend", (id, expires_at)).await
    }

    async fn settle(&self, request: SettleRequest) -> Result<SettleOutcome> {
        self.call("settle", (request,)).await
    }

    async fn grant(&self, request: GrantRequest) -> Result<GrantOutcome> {
        self.call("grant", (request,)).await
    }

    async fn revoke(&self, request: RevokeRequest) -> Result<RevokeOutcome> {
        self.call("revoke", (request,)).await
    }

    async fn balance(&self, wallet: &WalletId, terms: &Terms) -> Result<Balance> {
        self.call("balance", (wallet, terms)).await
    }

    async fn balance_since(
        &self,
        wallet: &WalletId,
        terms: &Terms,
        since: Timestamp,
    ) -> Result<PeriodBalance> {
        self.call("balance_since", (wallet, terms, since)).await
    }

    async fn expire(&self, now: Timestamp, limit: u32) -> Result<u32> {
        self.call("expire", (now, limit)).await
    }

    async fn entries(&self, wallet: &WalletId, page: PageRequest) -> Result<Page<Entry>> {
        self.call("entries", (wallet, page)).await
    }

    async fn wallets(&self, page: PageRequest) -> Result<Page<Balance>> {
        self.call("wallets", (page,)).await
    }
}

#[async_trait]
impl Directory for PyStore {
    async fn key_owner(&self, key_digest: &[u8]) -> Result<Option<KeyOwner>> {
        self.call("key_owner", (key_digest,)).await
    }

    async fn add_key(&self, key: LookupKey, live_per_subject: u32) -> Result<AddKeyOutcome> {
        self.call("add_key", (key, live_per_subject)).await
    }

    async fn renew_entitlement(&self, request: RenewRequest) -> Result<bool> {
        self.call("renew_entitlement", (request,)).await
    }

    async fn rotate(&self, old_digest: &[u8], new: NewKeyRecord) -> Result<RotateOutcome> {
        self.call("rotate", (old_digest, new)).await
    }

    async fn revoke_key(&self, key: &KeyId, now: Timestamp) -> Result<bool> {
        self.call("revoke_key", (key, now)).await
    }

    async fn keys(&self, page: PageRequest) -> Result<Page<KeySummary>> {
        self.call("keys", (page,)).await
    }

    async fn put_token(&self, token: VerificationToken) -> Result<()> {
        self.call("put_token", (token,)).await
    }

    async fn redeem(&self, request: RedeemRequest) -> Result<RedeemOutcome> {
        self.call("redeem", (request,)).await
    }

    async fn account(&self, account: &AccountRef) -> Result<Option<Account>> {
        self.call("account", (account,)).await
    }

    async fn update_account(&self, account: Account) -> Result<UpdateOutcome> {
        self.call("update_account", (account,)).await
    }

    async fn erase_account(&self, id: &AccountId, version: u64, now: Timestamp) -> Result<EraseOutcome> {
        self.call("erase_account", (id, version, now)).await
    }

    async fn accounts(&self, page: PageRequest) -> Result<Page<Account>> {
        self.call("accounts", (page,)).await
    }
}
