//! Keys as the holder of an account manages them: list, create, rotate, revoke.

use std::sync::Arc;

use super::{AccountKeys, admin::account_not_found, sessions::form_id};
use crate::{
    directory::{Account, AccountKey, AddAccountKeyOutcome, NewAccountKey, NewKeyRecord, api_key::ApiKey},
    error::{ErrorKind, Result},
    ids::{AccountId, KeyId},
};

/// Outcome of creating a further key of an account.
#[derive(Debug)]
pub enum CreateAccountKeyOutcome {
    /// The key was created; it is shown once.
    Created(ApiKey),
    /// The same form created a key before: nothing was created.
    Repeated,
    /// The account has [`AccountKeys::LIVE_MAX`] live keys.
    AccountFull,
    /// The name is empty, too long, or has control characters.
    InvalidName,
}

impl AccountKeys {
    /// Maximum number of live keys of an account.
    pub const LIVE_MAX: u32 = 20;
    /// Longest name of a key, in characters.
    pub const NAME_LENGTH_MAX: usize = 60;

    /// The live keys of an account, oldest first.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the directory does not list them; the errors of the ports.
    pub async fn list(self: &Arc<Self>, account: &AccountId) -> Result<Vec<AccountKey>> {
        let (keys, account) = (Arc::clone(self), account.clone());
        let work = async move { keys.context.retry_store(|| keys.directory.account_keys(&account)).await };
        self.context.transcripts.task(work).await?
    }

    /// Creates a further key of an account. Its other keys stay.
    ///
    /// `form` is random text of the form that requests the key: the same form creates one key.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if the account was erased; [`ErrorKind::Unsupported`] if the directory stores one key
    /// for an account; the errors of the ports.
    pub async fn create(
        self: &Arc<Self>,
        account: &Account,
        name: &str,
        form: &str,
    ) -> Result<CreateAccountKeyOutcome> {
        let name = name.trim();
        let length = name.chars().count();
        if !(1..=Self::NAME_LENGTH_MAX).contains(&length) || name.chars().any(char::is_control) {
            return Ok(CreateAccountKeyOutcome::InvalidName);
        }
        let (keys, name, account) = (Arc::clone(self), name.to_owned(), account.id.clone());
        let id = KeyId::new(form_id("key", &account, form));
        let work = async move {
            let (key, record) = keys.new_key(keys.context.now())?;
            let new = NewAccountKey { key: NewKeyRecord { id, ..record }, account, name };
            let add = || keys.directory.add_account_key(new.clone(), Self::LIVE_MAX);
            match keys.context.retry_store(add).await {
                Ok(AddAccountKeyOutcome::Added) => Ok(CreateAccountKeyOutcome::Created(key)),
                Ok(AddAccountKeyOutcome::AccountFull) => Ok(CreateAccountKeyOutcome::AccountFull),
                Ok(AddAccountKeyOutcome::Missing) => Err(account_not_found()),
                Err(error) if error.kind() == ErrorKind::Conflict => Ok(CreateAccountKeyOutcome::Repeated),
                Err(error) => Err(error),
            }
        };
        self.context.transcripts.task(work).await?
    }

    /// Replaces one live key of an account by a new key of the same name; `None` if it is no live key of the account.
    ///
    /// # Errors
    /// As [`AccountKeys::list`].
    pub async fn rotate_one(self: &Arc<Self>, account: &AccountId, id: &KeyId) -> Result<Option<ApiKey>> {
        let live = self.list(account).await?;
        let Some(old) = live.into_iter().find(|live| live.key.id == *id) else { return Ok(None) };
        let keys = Arc::clone(self);
        let work = async move {
            let (key, record) = keys.new_key(keys.context.now())?;
            Ok(keys.replace(&old.key.digest, &record).await?.then_some(key))
        };
        self.context.transcripts.task(work).await?
    }

    /// Revokes a live key of an account; returns whether it was one. Also the last key can be revoked.
    ///
    /// # Errors
    /// As [`AccountKeys::list`].
    pub async fn revoke(self: &Arc<Self>, account: &AccountId, id: &KeyId) -> Result<bool> {
        if !self.list(account).await?.iter().any(|live| live.key.id == *id) {
            return Ok(false);
        }
        let (keys, id) = (Arc::clone(self), id.clone());
        let work = async move {
            let now = keys.context.now();
            keys.context.retry_store(|| keys.directory.revoke_key(&id, now)).await.map(|_| true)
        };
        self.context.transcripts.task(work).await?
    }
}
