//! Replies to repeat, behind the gate.

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{
    Result,
    accounts::{Attempt, Begun, Replies, Reply},
    ids::Holder,
};

use super::nothing;
use crate::simulation::gate::Gate;

#[derive(Debug)]
pub(crate) struct FaultyReplies {
    pub(crate) inner: Arc<dyn Replies>,
    pub(crate) gate: Arc<Gate>,
}

impl FaultyReplies {
    fn inner(&self) -> Arc<dyn Replies> {
        Arc::clone(&self.inner)
    }
}

#[async_trait]
impl Replies for FaultyReplies {
    async fn begin(&self, attempt: Attempt) -> Result<Begun> {
        let (inner, what) = (self.inner(), format!("{} by {}", attempt.key, attempt.holder));
        self.gate.pass("replies.begin", || what, async move { inner.begin(attempt).await }, nothing).await
    }

    async fn finish(&self, key: &str, holder: &Holder, reply: Reply) -> Result<()> {
        let (inner, key, holder) = (self.inner(), key.to_owned(), holder.clone());
        let what = format!("{key} by {holder}");
        let work = async move { inner.finish(&key, &holder, reply).await };
        self.gate.pass("replies.finish", || what, work, nothing).await
    }

    async fn abandon(&self, key: &str, holder: &Holder) -> Result<()> {
        let (inner, key, holder) = (self.inner(), key.to_owned(), holder.clone());
        let what = format!("{key} by {holder}");
        let work = async move { inner.abandon(&key, &holder).await };
        self.gate.pass("replies.abandon", || what, work, nothing).await
    }
}
