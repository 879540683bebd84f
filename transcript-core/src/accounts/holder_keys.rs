//! Keys as the holder of an account manages them: list, create, rotate, revoke.

use std::sync::Arc;

use super::{
    AccountKeys, admin::account_not_found, form_random::link_randoms, keys::new_key, sessions::form_id,
};
use crate::{
    directory::{Account, AccountKey, AddAccountKeyOutcome, NewAccountKey, NewKeyRecord, api_key::ApiKey},
    error::{ErrorKind, Result},
    ids::{AccountId, KeyId},
    text::{is_one_line, is_visible},
};

/// Outcome of creating a further key of an account.
#[derive(Debug)]
pub enum CreateAccountKeyOutcome {
    /// The key was created; it is shown once.
    Created(ApiKey),
    /// The same form created a key before: nothing was created.
    ///
    /// That key is no longer live, or too old to be shown again.
    Repeated,
    /// The account has [`AccountKeys::LIVE_MAX`] live keys.
    AccountFull,
    /// The name is too long, shows nothing, or is not on one line.
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
    /// `form` is random text of the form that requests the key: the same form creates one key. A browser that sends
    /// the form twice shows the second response only: within ten to twenty seconds it has the same key.
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
        if length > Self::NAME_LENGTH_MAX || !is_one_line(name) || !is_visible(name) {
            return Ok(CreateAccountKeyOutcome::InvalidName);
        }
        let (keys, account) = (Arc::clone(self), account.id.clone());
        let (name, form) = (name.to_owned(), form.to_owned());
        let work = async move {
            let id = KeyId::new(form_id("key", &account, &form));
            for random in link_randoms(&keys.context, &keys.digest, "create-key", id.as_str(), &form) {
                let (key, record) = new_key(random.as_ref(), keys.context.now())?;
                let new = NewAccountKey {
                    key: NewKeyRecord { id: id.clone(), ..record },
                    account: account.clone(),
                    name: name.clone(),
                };
                let add = || keys.directory.add_account_key(new.clone(), Self::LIVE_MAX);
                match keys.context.retry_store(add).await {
                    // Now, or by an earlier request of the form in this window: it may be revoked since.
                    Ok(AddAccountKeyOutcome::Added) => {
                        let owner = || keys.directory.key_owner(&new.key.digest);
                        return Ok(match keys.context.retry_store(owner).await {
                            Ok(None) => CreateAccountKeyOutcome::Repeated,
                            // Without a response of the store, too: a key that is not shown is lost.
                            Ok(Some(_)) | Err(_) => CreateAccountKeyOutcome::Created(key),
                        });
                    }
                    Ok(AddAccountKeyOutcome::AccountFull) => return Ok(CreateAccountKeyOutcome::AccountFull),
                    Ok(AddAccountKeyOutcome::Missing) => return Err(account_not_found()),
                    // The form created a key in another window.
                    Err(error) if error.kind() == ErrorKind::Conflict => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(CreateAccountKeyOutcome::Repeated)
        };
        self.context.transcripts.task(work).await?
    }

    /// Replaces one live key of an account by a new key of the same name; `None` if it is no live key of the account.
    ///
    /// `form` is the [`super::AccountSessions::form_token`] of the page, or empty. A browser that sends the form twice
    /// shows the second response only: within ten to twenty seconds the same form returns the same new key.
    ///
    /// # Errors
    /// As [`AccountKeys::list`].
    pub async fn rotate_one(
        self: &Arc<Self>,
        account: &AccountId,
        id: &KeyId,
        form: &str,
    ) -> Result<Option<ApiKey>> {
        let live = self.list(account).await?;
        // The form is in no database: with the id alone, who has a backup could derive the key.
        let form = if form.is_empty() { String::new() } else { format!("{account}\n{form}") };
        let (keys, id) = (Arc::clone(self), id.clone());
        let work = async move {
            let old = live.iter().find(|live| live.key.id == id);
            for random in link_randoms(&keys.context, &keys.digest, "rotate-key", id.as_str(), &form) {
                let (key, record) = new_key(random.as_ref(), keys.context.now())?;
                let is_live = match old {
                    Some(old) => keys.replace(&old.key.digest, &record).await?,
                    None => live.iter().any(|live| live.key.digest == record.digest),
                };
                if is_live {
                    return Ok(Some(key));
                }
            }
            Ok(None)
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
