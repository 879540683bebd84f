//! The service in the process: its client, and credits for its accounts.

use std::sync::Arc;

use transcript_core::ids::GrantId;

use crate::{
    call::run,
    client::Client,
    error::{VerbatimError, count},
    transcripts::Transcripts,
};

#[uniffi::export]
impl Transcripts {
    /// Grants credits to an account of the service in the process, once per id, and returns its balance.
    ///
    /// # Errors
    /// `NotFound` if there is no such account; failures of a store.
    pub async fn grant(&self, email: String, credits: u32, id: String) -> Result<i64, VerbatimError> {
        let lazy = Arc::clone(&self.lazy);
        run(None, async move {
            let verbatim = lazy.open().await?;
            let (admin, id) = (&verbatim.accounts().admin, GrantId::operator_grant(id));
            let view = admin.grant(&email, id, credits.into(), "granted by the app").await?;
            Ok(count(view.credits.remaining))
        })
        .await
    }

    /// Client of the service in the process, with this key. It needs no server.
    #[uniffi::method(default(key = None))]
    pub fn service(&self, key: Option<String>) -> Arc<Client> {
        Client::local(Arc::clone(&self.lazy), key)
    }
}
