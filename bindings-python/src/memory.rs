//! The core's in-memory stores as Python objects, for tests of code on the ports.

use std::sync::Arc;

use pyo3::{exceptions::PyValueError, prelude::*};
use serde::{Serialize, de::DeserializeOwned};
use transcript_core::{
    Error, PageRequest, Result, Timestamp,
    directory::{
        Account, AccountRef, Directory, LookupKey, NewKeyRecord, RedeemRequest, RenewRequest,
        VerificationToken,
    },
    ids::{AccountId, HoldId, KeyId, WalletId},
    ledger::{GrantRequest, HoldRequest, Ledger, RevokeRequest, SettleRequest, Terms},
    memory::{MemoryDirectory, MemoryLedger},
};

use crate::pending::PendingCall;

/// An in-memory store; its results are JSON.
#[pyclass(frozen, module = "verbatim_transcripts._native")]
pub(crate) struct MemoryStore(StoreKind);

#[derive(Clone)]
enum StoreKind {
    Ledger(Arc<MemoryLedger>),
    Directory(Arc<MemoryDirectory>),
}

#[pymethods]
impl MemoryStore {
    #[new]
    fn new(port: &str) -> PyResult<Self> {
        match port {
            "ledger" => Ok(Self(StoreKind::Ledger(Arc::default()))),
            "directory" => Ok(Self(StoreKind::Directory(Arc::default()))),
            _ => Err(PyValueError::new_err(format!(
                "there is no in-memory store {port:?}; stores: 'ledger', 'directory'"
            ))),
        }
    }

    /// Calls a method with arguments in a JSON array.
    fn call(&self, method: String, arguments: String) -> PendingCall {
        let kind = self.0.clone();
        let future = async move {
            Ok(match kind {
                StoreKind::Ledger(store) => ledger(store.as_ref(), &method, &arguments).await?,
                StoreKind::Directory(store) => directory(store.as_ref(), &method, &arguments).await?,
            })
        };
        PendingCall::new(future, |py, json| Ok(json.into_pyobject(py)?.into_any().unbind()))
    }
}

fn decode<T: DeserializeOwned>(json: &str) -> Result<T> {
    serde_json::from_str(json).map_err(|error| Error::invalid(error.to_string()))
}

fn encode(result: &impl Serialize) -> Result<String> {
    serde_json::to_string(result).map_err(|error| Error::unexpected(error.to_string()))
}

fn unknown_method(method: &str) -> Error {
    Error::invalid(format!("unknown method {method:?}"))
}

/// Calls a method of a store with arguments that are read from the JSON array `arguments`.
macro_rules! call {
    ($store:ident.$method:ident($($value:expr),*), $arguments:ident: ($($name:ident: $kind:ty),*)) => {{
        let ($($name,)*): ($($kind,)*) = decode($arguments)?;
        encode(&$store.$method($($value),*).await?)
    }};
}

async fn ledger(store: &dyn Ledger, method: &str, arguments: &str) -> Result<String> {
    match method {
        "hold" => call!(store.hold(request), arguments: (request: HoldRequest)),
        "spend" => call!(store.spend(request), arguments: (request: HoldRequest)),
        "extend" => call!(store.extend(&id, expires_at), arguments: (id: HoldId, expires_at: Timestamp)),
        "settle" => call!(store.settle(request), arguments: (request: SettleRequest)),
        "grant" => call!(store.grant(request), arguments: (request: GrantRequest)),
        "revoke" => call!(store.revoke(request), arguments: (request: RevokeRequest)),
        "balance" => call!(store.balance(&wallet, &terms), arguments: (wallet: WalletId, terms: Terms)),
        "balance_since" => {
            call!(
                store.balance_since(&wallet, &terms, since),
                arguments: (wallet: WalletId, terms: Terms, since: Timestamp)
            )
        }
        "expire" => call!(store.expire(now, limit), arguments: (now: Timestamp, limit: u32)),
        "entries" => call!(store.entries(&wallet, page), arguments: (wallet: WalletId, page: PageRequest)),
        "wallets" => call!(store.wallets(page), arguments: (page: PageRequest)),
        _ => Err(unknown_method(method)),
    }
}

async fn directory(store: &dyn Directory, method: &str, arguments: &str) -> Result<String> {
    match method {
        "key_owner" => call!(store.key_owner(&key_digest), arguments: (key_digest: Vec<u8>)),
        "add_key" => {
            call!(store.add_key(key, live_per_subject), arguments: (key: LookupKey, live_per_subject: u32))
        }
        "renew_entitlement" => call!(store.renew_entitlement(request), arguments: (request: RenewRequest)),
        "rotate" => {
            call!(store.rotate(&old_digest, new), arguments: (old_digest: Vec<u8>, new: NewKeyRecord))
        }
        "revoke_key" => call!(store.revoke_key(&key, now), arguments: (key: KeyId, now: Timestamp)),
        "keys" => call!(store.keys(page), arguments: (page: PageRequest)),
        "put_token" => call!(store.put_token(token), arguments: (token: VerificationToken)),
        "redeem" => call!(store.redeem(request), arguments: (request: RedeemRequest)),
        "account" => call!(store.account(&reference), arguments: (reference: AccountRef)),
        "update_account" => call!(store.update_account(account), arguments: (account: Account)),
        "erase_account" => {
            call!(store.erase_account(&id, version, now), arguments: (id: AccountId, version: u64, now: Timestamp))
        }
        "accounts" => call!(store.accounts(page), arguments: (page: PageRequest)),
        _ => Err(unknown_method(method)),
    }
}
