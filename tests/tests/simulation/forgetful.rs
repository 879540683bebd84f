//! Replies that are forgotten as soon as they are given: broken on purpose, as [`super::mutation`].

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{
    Result,
    accounts::{Attempt, Begun, Replies, Reply},
    ids::Holder,
};

/// Everybody who begins is told that nothing is known, once the work before is done.
#[derive(Debug)]
pub(crate) struct ForgetfulReplies(pub(crate) Arc<dyn Replies>);

#[async_trait]
impl Replies for ForgetfulReplies {
    async fn begin(&self, attempt: Attempt) -> Result<Begun> {
        Ok(match self.0.begin(attempt).await? {
            Begun::Done(_) => Begun::Fresh,
            begun => begun,
        })
    }

    async fn finish(&self, key: &str, holder: &Holder, reply: Reply) -> Result<()> {
        // Whoever was let in again finds another's reply.
        let _ = self.0.finish(key, holder, reply).await;
        Ok(())
    }

    async fn abandon(&self, key: &str, holder: &Holder) -> Result<()> {
        self.0.abandon(key, holder).await
    }
}
