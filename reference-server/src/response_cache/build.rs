//! Building of bodies: for the cache, or for one response, within the memory budgets of large bodies.

use std::{io, sync::Arc};

use transcript_core::archive::StoredBody;
use verbatim::read_cache::{FormCost, FormKey};

use super::{BodyForm, BodyKey, CachedBody, ResponseCache, body, shared::SharedHeaders, wrap};
use crate::api::{ByteBudget, ProblemResponse, ReservedBytes};

/// A body around stored bytes.
pub(super) enum WrappedBody {
    /// In the cache, or built on a blocking thread.
    Cached(Arc<CachedBody>),
    /// For this response only.
    Single(CachedBody),
}

/// Why a body is not built.
#[derive(Debug)]
pub(super) enum BuildError {
    /// There is no memory for it.
    Exhausted(ProblemResponse),
    /// Rendering or a compressor failed.
    Failed(io::Error),
}

impl From<ProblemResponse> for BuildError {
    fn from(refusal: ProblemResponse) -> Self {
        Self::Exhausted(refusal)
    }
}

impl From<io::Error> for BuildError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

impl ResponseCache {
    /// Returns the cached body of this key, or builds it around the stored bytes.
    ///
    /// `None` means that it cannot be built; the error is that there is no memory for it.
    pub(super) async fn get_or_wrap(
        &self,
        before: Vec<u8>,
        stored: StoredBody,
        key: BodyKey,
        shared: Option<SharedHeaders>,
    ) -> Option<Result<WrappedBody, ProblemResponse>> {
        if let Some(body) = self.cache.form(&key) {
            return Some(Ok(WrappedBody::Cached(body)));
        }
        let encoding = key.encoding;
        let length = wrap::length(&before, &stored, encoding);
        let is_admitted =
            key.cost() == FormCost::Costly || self.cache.admit(&key, body::memory_bytes(length));
        let is_cheap = wrap::is_cheap(&stored, encoding);
        let build = move || Ok(wrap::wrap(&before, &stored, encoding)?.with_shared(shared));
        let built = match is_cheap {
            true => self.build_here(key, length, is_admitted, build).await,
            false => self.build_elsewhere(&key, length, is_admitted, build).await.map(WrappedBody::Cached),
        };
        match built {
            Ok(body) => Some(Ok(body)),
            Err(BuildError::Exhausted(refusal)) => Some(Err(refusal)),
            Err(BuildError::Failed(error)) => {
                tracing::warn!(%error, "stored response body failed");
                None
            }
        }
    }

    /// Returns the memory of a body that is to be built, and whether the body is to be cached.
    ///
    /// An admitted body is not cached while removed bodies that are still being sent leave no memory for it.
    fn budget(&self, key: &BodyKey, bytes: usize, is_admitted: bool) -> (&ByteBudget, bool) {
        match is_admitted && self.cached_budget.has_room(bytes) {
            true => (&self.cached_budget, true),
            false => (self.response_budget(key), false),
        }
    }

    /// Returns the memory of bodies that are not cached.
    fn response_budget(&self, key: &BodyKey) -> &ByteBudget {
        match key.form {
            BodyForm::Lookup(_) => &self.budgets.0,
            BodyForm::V1 => &self.budgets.1,
        }
    }

    /// Adjusts the reservation of a built body to its length. Also returns whether the body is to be cached.
    ///
    /// A body that is longer than estimated is not cached if cached bodies have no memory left for it.
    fn with_reservation(
        &self,
        body: CachedBody,
        key: &BodyKey,
        reserved: Option<ReservedBytes>,
        is_cached: bool,
    ) -> Result<(CachedBody, bool), ProblemResponse> {
        let (length, budget) = (body.bytes().len(), self.response_budget(key));
        let (reserved, is_cached) = match is_cached {
            true => match self.cached_budget.try_adjust(reserved, length) {
                Ok(reserved) => (reserved, true),
                Err(_) => (budget.try_adjust(None, length)?, false),
            },
            false => (budget.try_adjust(reserved, length)?, false),
        };
        Ok((body.with_reservation(reserved), is_cached))
    }

    /// Builds a body of about this many bytes on this thread.
    async fn build_here(
        &self,
        key: BodyKey,
        bytes: usize,
        is_admitted: bool,
        build: impl FnOnce() -> io::Result<CachedBody> + Send,
    ) -> Result<WrappedBody, BuildError> {
        let (budget, is_cached) = self.budget(&key, bytes, is_admitted);
        let reserved = budget.reserve_response(bytes).await?;
        let (body, is_cached) = self.with_reservation(build()?, &key, reserved, is_cached)?;
        if !is_cached {
            return Ok(WrappedBody::Single(body));
        }
        let body = Arc::new(body);
        self.cache.insert_form(key, Arc::clone(&body), body.memory_bytes());
        Ok(WrappedBody::Cached(body))
    }

    /// Builds a body of about this many bytes on a blocking thread. Concurrent callers wait for the same body.
    pub(super) async fn build_elsewhere(
        &self,
        key: &BodyKey,
        bytes: usize,
        is_admitted: bool,
        build: impl FnOnce() -> io::Result<CachedBody> + Send + 'static,
    ) -> Result<Arc<CachedBody>, BuildError> {
        let (budget, is_cached) = self.budget(key, bytes, is_admitted);
        let make = async move {
            let reserved = budget.reserve_response(bytes).await?;
            // The work goes on if the caller disconnects, so it has the memory. The panic hook has logged a panic.
            let work = move || Ok::<_, io::Error>((build()?, reserved));
            let built = tokio::task::spawn_blocking(work).await.map_err(io::Error::other).flatten();
            let (body, reserved) = built?;
            let (body, is_cached) = self.with_reservation(body, key, reserved, is_cached)?;
            Ok::<_, BuildError>((Arc::new(body), is_cached))
        };
        if !is_cached {
            return make.await.map(|(body, _)| body);
        }
        let make_for_cache = async {
            match make.await {
                Ok((body, true)) => {
                    let bytes = body.memory_bytes();
                    Ok((body, bytes))
                }
                not_cached => Err(not_cached.map(|(body, _)| body)),
            }
        };
        self.cache.form_or_make(key, make_for_cache).await.or_else(|not_cached| not_cached)
    }
}
