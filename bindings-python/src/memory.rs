//! The core's stores in memory, as objects that Python can call and wrap: for tests of what is built on the ports.

use std::sync::Arc;

use pyo3::{exceptions::PyValueError, prelude::*};
use serde::{Serialize, de::DeserializeOwned};
use transcript_core::{
    Error, PageRequest, Result, Timestamp,
    directory::{Account, AccountRef, Directory, Entitle, LookupKey, NewKey, Redeem, Token},
    ids::{AccountId, HoldId, KeyId, WalletId},
    ledger::{Grant, HoldRequest, Ledger, Revoke, Settle, Terms},
    memory::{MemoryDirectory, MemoryLedger},
};

use crate::pending::Pending;

/// A store in memory; its answers are JSON.
#[pyclass(frozen, module = "verbatim._native")]
pub(crate) struct MemoryStore(Kind);

#[derive(Clone)]
enum Kind {
    Ledger(Arc<MemoryLedger>),
    Directory(Arc<MemoryDirectory>),
}

#[pymethods]
impl MemoryStore {
    #[new]
    fn new(port: &str) -> PyResult<Self> {
        match port {
            "ledger" => Ok(Self(Kind::Ledger(Arc::default()))),
            "directory" => Ok(Self(Kind::Directory(Arc::default()))),
            _ => Err(PyValueError::new_err(format!("there is no such store: {port:?}"))),
        }
    }

    /// Calls a method with arguments in a JSON array.
    fn ask(&self, method: String, arguments: String) -> Pending {
        let kind = self.0.clone();
        let work = async move {
            Ok(match kind {
                Kind::Ledger(store) => ledger(store.as_ref(), &method, &arguments).await?,
                Kind::Directory(store) => directory(store.as_ref(), &method, &arguments).await?,
            })
        };
        Pending::new(work, |py, json| Ok(json.into_pyobject(py)?.into_any().unbind()))
    }
}

fn read<T: DeserializeOwned>(json: &str) -> Result<T> {
    serde_json::from_str(json).map_err(|error| Error::invalid(error.to_string()))
}

fn json(answer: &impl Serialize) -> Result<String> {
    serde_json::to_string(answer).map_err(|error| Error::unexpected(error.to_string()))
}

fn no_method(method: &str) -> Error {
    Error::invalid(format!("there is no method {method:?}"))
}

async fn ledger(store: &dyn Ledger, method: &str, arguments: &str) -> Result<String> {
    match method {
        "hold" => {
            let (a,): (HoldRequest,) = read(arguments)?;
            json(&store.hold(a).await?)
        }
        "spend" => {
            let (a,): (HoldRequest,) = read(arguments)?;
            json(&store.spend(a).await?)
        }
        "extend" => {
            let (a, b): (HoldId, Timestamp) = read(arguments)?;
            json(&store.extend(&a, b).await?)
        }
        "settle" => {
            let (a,): (Settle,) = read(arguments)?;
            json(&store.settle(a).await?)
        }
        "grant" => {
            let (a,): (Grant,) = read(arguments)?;
            json(&store.grant(a).await?)
        }
        "revoke" => {
            let (a,): (Revoke,) = read(arguments)?;
            json(&store.revoke(a).await?)
        }
        "balance" => {
            let (a, b): (WalletId, Terms) = read(arguments)?;
            json(&store.balance(&a, &b).await?)
        }
        "balance_since" => {
            let (a, b, c): (WalletId, Terms, Timestamp) = read(arguments)?;
            json(&store.balance_since(&a, &b, c).await?)
        }
        "expire" => {
            let (a, b): (Timestamp, u32) = read(arguments)?;
            json(&store.expire(a, b).await?)
        }
        "entries" => {
            let (a, b): (WalletId, PageRequest) = read(arguments)?;
            json(&store.entries(&a, b).await?)
        }
        "wallets" => {
            let (a,): (PageRequest,) = read(arguments)?;
            json(&store.wallets(a).await?)
        }
        _ => Err(no_method(method)),
    }
}

async fn directory(store: &dyn Directory, method: &str, arguments: &str) -> Result<String> {
    match method {
        "owner" => {
            let (a,): (Vec<u8>,) = read(arguments)?;
            json(&store.owner(&a).await?)
        }
        "add_key" => {
            let (a, b): (LookupKey, u32) = read(arguments)?;
            json(&store.add_key(a, b).await?)
        }
        "entitle" => {
            let (a,): (Entitle,) = read(arguments)?;
            json(&store.entitle(a).await?)
        }
        "rotate" => {
            let (a, b): (Vec<u8>, NewKey) = read(arguments)?;
            json(&store.rotate(&a, b).await?)
        }
        "revoke_key" => {
            let (a, b): (KeyId, Timestamp) = read(arguments)?;
            json(&store.revoke_key(&a, b).await?)
        }
        "keys" => {
            let (a,): (PageRequest,) = read(arguments)?;
            json(&store.keys(a).await?)
        }
        "put_token" => {
            let (a,): (Token,) = read(arguments)?;
            json(&store.put_token(a).await?)
        }
        "redeem" => {
            let (a,): (Redeem,) = read(arguments)?;
            json(&store.redeem(a).await?)
        }
        "account" => {
            let (a,): (AccountRef,) = read(arguments)?;
            json(&store.account(&a).await?)
        }
        "change_account" => {
            let (a,): (Account,) = read(arguments)?;
            json(&store.change_account(a).await?)
        }
        "erase_account" => {
            let (a, b, c): (AccountId, u64, Timestamp) = read(arguments)?;
            json(&store.erase_account(&a, b, c).await?)
        }
        "accounts" => {
            let (a,): (PageRequest,) = read(arguments)?;
            json(&store.accounts(a).await?)
        }
        _ => Err(no_method(method)),
    }
}
