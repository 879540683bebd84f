//! Replies to repeat, in memory.

use std::collections::HashMap;

use async_trait::async_trait;

use super::Shared;
use crate::{
    accounts::{Attempt, Begun, Replies, Reply},
    error::{Error, ErrorKind, Result, Retry},
    ids::Holder,
};

/// [`Replies`] in memory. A clone is the same store.
#[derive(Clone, Debug, Default)]
pub struct MemoryReplies {
    attempts: Shared<HashMap<String, Known>>,
}

/// The last attempt under a key, and the reply that it gave.
#[derive(Debug)]
struct Known {
    attempt: Attempt,
    reply: Option<Reply>,
}

#[async_trait]
impl Replies for MemoryReplies {
    async fn begin(&self, attempt: Attempt) -> Result<Begun> {
        let mut attempts = self.attempts.lock();
        attempts.retain(|_, known| known.attempt.keep_until > attempt.now);
        if let Some(known) = attempts.get(&attempt.key) {
            if known.attempt.fingerprint != attempt.fingerprint {
                return Ok(Begun::Mismatch);
            }
            if let Some(reply) = &known.reply {
                return Ok(Begun::Done(reply.clone()));
            }
            if known.attempt.holder != attempt.holder && known.attempt.lease_until > attempt.now {
                return Ok(Begun::InFlight);
            }
        }
        attempts.insert(attempt.key.clone(), Known { attempt, reply: None });
        Ok(Begun::Fresh)
    }

    async fn finish(&self, key: &str, holder: &Holder, reply: Reply) -> Result<()> {
        let mut attempts = self.attempts.lock();
        match attempts.get_mut(key).filter(|known| known.attempt.holder == *holder) {
            Some(known) => {
                known.reply.get_or_insert(reply);
                Ok(())
            }
            None => Err(Error::new(
                ErrorKind::Conflict,
                Retry::Never,
                "the attempt is not this holder's any more",
            )),
        }
    }

    async fn abandon(&self, key: &str, holder: &Holder) -> Result<()> {
        let mut attempts = self.attempts.lock();
        if attempts.get(key).is_some_and(|known| known.attempt.holder == *holder && known.reply.is_none()) {
            attempts.remove(key);
        }
        Ok(())
    }
}

#[cfg(all(test, feature = "testing"))]
mod conformance {
    use std::sync::Arc;

    crate::replies_conformance!(Arc::new(super::MemoryReplies::default()));
}
