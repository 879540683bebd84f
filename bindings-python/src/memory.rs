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

async fn ledger(store: &dyn Ledger, method: &str, arguments: &str) -> Result<String> {
    match method {
        "hold" => {
            let (a,): (HoldRequest,) = decode(arguments)?;
            encode(&store.hold(a).await?)
        }
        "spend" => {
            let (a,): (HoldRequest,) = decode(arguments)?;
            encode(&store.spend(a).await?)
        }
        "extend" => {
            let (a, b): (HoldId, Timestamp) = decode(arguments)?;
            encode(&store.extend(&a, b).await?)
        }
        "settle" => {
            let (a,): (SettleRequest,) = decode(arguments)?;
            encode(&store.settle(a).await?)
        }
        "grant" => {
            let (a,): (GrantRequest,) = decode(arguments)?;
            encode(&store.grant(a).await?)
        }
        "revoke" => {
            let (a,): (RevokeRequest,) = decode(arguments)?;
            encode(&store.revoke(a).await?)
        }
        "balance" => {
            let (a, b): (WalletId, Terms) = decode(arguments)?;
            encode(&store.balance(&a, &b).await?)
        }
        "balance_since" => {
            let (a, b, c): (WalletId, Terms, Timestamp) = decode(arguments)?;
            encode(&store.balance_since(&a, &b, c).await?)
        }
        "expire" => {
            let (a, b): (Timestamp, u32) = decode(arguments)?;
            encode(&store.expire(a, b).await?)
        }
        "entries" => {
            let (a, b): (WalletId, PageRequest) = decode(arguments)?;
            encode(&store.entries(&a, b).await?)
        }
        "wallets" => {
            let (a,): (PageRequest,) = decode(arguments)?;
            encode(&store.wallets(a).await?)
        }
        _ => Err(unknown_method(method)),
    }
}

async fn directory(store: &dyn Directory, method: &str, arguments: &str) -> Result<String> {
    match method {
        "key_owner" => {
            let (a,): (Vec<u8>,) = decode(arguments)?;
            encode(&store.key_owner(&a).await?)
        }
        "add_key" => {
            let (a, b): (LookupKey, u32) = decode(arguments)?;
            encode(&store.add_key(a, b).await?)
        }
        "renew_entitlement" => {
            let (a,): (RenewRequest,) = decode(arguments)?;
            encode(&store.renew_entitlement(a).await?)
        }
        "rotate" => {
            let (a, b): (Vec<u8>, NewKeyRecord) = decode(arguments)?;
            encode(&store.rotate(&a, b).await?)
        }
        "revoke_key" => {
            let (a, b): (KeyId, Timestamp) = decode(arguments)?;
            encode(&store.revoke_key(&a, b).await?)
        }
        "keys" => {
            let (a,): (PageRequest,) = decode(arguments)?;
            encode(&store.keys(a).await?)
        }
        "put_token" => {
            let (a,): (VerificationToken,) = decode(arguments)?;
            encode(&store.put_token(a).await?)
        }
        "redeem" => {
            let (a,): (RedeemRequest,) = decode(arguments)?;
            encode(&store.redeem(a).await?)
        }
        "account" => {
            let (a,): (AccountRef,) = decode(arguments)?;
            encode(&store.account(&a).await?)
        }
        "update_account" => {
            let (a,): (Account,) = decode(arguments)?;
            encode(&store.update_account(a).await?)
        }
        "erase_account" => {
            let (a, b, c): (AccountId, u64, Timestamp) = decode(arguments)?;
            encode(&store.erase_account(&a, b, c).await?)
        }
        "accounts" => {
            let (a,): (PageRequest,) = decode(arguments)?;
            encode(&store.accounts(a).await?)
        }
        _ => Err(unknown_method(method)),
    }
}
