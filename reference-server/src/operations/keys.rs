//! Keys of the lookup API.

use transcript_core::{
    Error, Page, PageRequest, Result,
    directory::{FieldChange, KeyAccessChange, RequestQuota},
    ids::KeyId,
    lookup::{CreateKeyOutcome, CreateKeyRequest, IssuedLookupKey, KeyWithUsage},
};

use super::{Completed, Operation, Operations, quota_text};

/// Prefix of the ids of keys.
const ID_PREFIX: &str = "key-";

impl Operations {
    /// Creates a key.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] for a wrong field; the message begins with its name.
    pub(crate) async fn create_key(&self, request: CreateKeyRequest) -> Result<IssuedLookupKey> {
        let access = &request.access;
        let detail = [
            access.quota.map(|quota| format!("quota {}", quota_text(&quota))),
            access.expires_at.map(|end| format!("expires {end}")),
        ];
        let operation = Operation::new("keys.create").with(join(detail));
        let keys = self.verbatim.lookup().keys().clone();
        let work = async move {
            match keys.create(request).await? {
                CreateKeyOutcome::Created(created) => {
                    let subject = Some(created.status.id.to_string());
                    Ok(Completed { subject, ..Completed::done(created) })
                }
                CreateKeyOutcome::Invalid(bad) => Err(Error::invalid(bad.to_string())),
                CreateKeyOutcome::Limited { .. } | CreateKeyOutcome::SubjectFull { .. } => {
                    Err(Error::unexpected("key creation was limited"))
                }
            }
        };
        self.record(operation, work).await
    }

    /// Lists the keys, oldest first.
    pub(crate) async fn list_keys(&self, page: PageRequest) -> Result<Page<KeyWithUsage>> {
        let keys = self.verbatim.lookup().keys().clone();
        self.record_list("keys.list", async move { keys.list(page).await }).await
    }

    /// Changes the expiry and the quota of a key.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::NotFound`] without such a live key.
    pub(crate) async fn change_key(&self, id: &str, change: KeyAccessChange) -> Result<()> {
        let quota = |quota: &RequestQuota| quota_text(quota);
        let detail =
            [text("quota", change.quota, quota), text("expires", change.expires_at, ToString::to_string)];
        let operation = Operation::new("keys.set").with(join(detail));
        let keys = self.verbatim.lookup().keys().clone();
        self.on_key(operation, id, async move |key| keys.change_access(&key, change).await).await
    }

    /// Revokes a key.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::NotFound`] without such a live key.
    pub(crate) async fn revoke_key(&self, id: &str) -> Result<()> {
        let keys = self.verbatim.lookup().keys().clone();
        self.on_key(Operation::new("keys.revoke"), id, async move |key| keys.revoke(&key).await).await
    }

    async fn on_key<F>(&self, operation: Operation, id: &str, change: impl FnOnce(KeyId) -> F) -> Result<()>
    where
        F: Future<Output = Result<bool>> + Send + 'static,
    {
        // A key that was passed by mistake is not recorded.
        if !id.starts_with(ID_PREFIX) || id.len() > 100 {
            let message = "this is not a key id: the list of keys has the ids";
            return Err(Error::not_found(message));
        }
        let change = change(KeyId::new(id));
        let missing = Error::not_found(format!("no live key has the id {id:?}"));
        let work = async move {
            match change.await? {
                true => Ok(Completed::done(())),
                false => Err(missing),
            }
        };
        self.record(operation.on(id), work).await
    }
}

/// A changed field as text; `None` if it keeps its value.
fn text<T>(name: &str, change: FieldChange<T>, show: impl Fn(&T) -> String) -> Option<String> {
    match change {
        FieldChange::Keep => None,
        FieldChange::Clear => Some(format!("{name} none")),
        FieldChange::Set(value) => Some(format!("{name} {}", show(&value))),
    }
}

fn join<const N: usize>(parts: [Option<String>; N]) -> Option<String> {
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}
