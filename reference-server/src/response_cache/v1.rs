//! Bodies of `GET /api/v1/transcript`: the same for all callers, each of whom is charged.

use std::sync::Arc;

use transcript_core::{
    accounts::PreparedTranscript, archive::TrackSelector, video::VideoId, wire::v1::VideoTranscript,
};

use super::{
    BodyForm, CachedBody, CachedRoute, QUERY_LENGTH_MAX, QueryRef, ResponseCache, Selection, WrappedBody,
    digest,
};
use crate::api::{ContentEncoding, ProblemResponse, ResultOrigin};

/// How to build the body of a query again.
#[derive(Debug)]
pub(crate) struct V1Source {
    /// The video.
    pub(crate) video: VideoId,
    /// Selectors under which the archive may have the transcript.
    selectors: Vec<TrackSelector>,
    /// Digest of the transcript's content.
    content_sha256: Vec<u8>,
    /// The response before the segments.
    before: Vec<u8>,
}

impl V1Source {
    /// Approximate memory in bytes.
    pub(super) fn bytes(&self) -> u64 {
        (size_of::<Self>() + self.content_sha256.len() + self.before.len() + 64 * self.selectors.len()) as u64
    }
}

/// What a query selects: a body that is cached or can be built.
pub(crate) struct V1Selection {
    selection: Selection,
    /// The video, and how to build the body.
    pub(crate) source: Arc<V1Source>,
}

/// Body of a query, ready to be charged and sent.
pub(crate) struct V1Body {
    /// The body.
    pub(crate) body: Arc<CachedBody>,
    /// Where the body comes from.
    pub(crate) origin: ResultOrigin,
}

impl ResponseCache {
    /// Caches what a query for this track selects, with the change counter read before the lookup.
    pub(crate) fn insert_v1(
        &self,
        query: &str,
        requested: &TrackSelector,
        ready: &PreparedTranscript,
        changes: u64,
    ) {
        if !ready.from_cache {
            return;
        }
        let stored = &ready.stored;
        let Ok(before) = VideoTranscript::before_segments(stored, requested.language()) else { return };
        // The part before the segments names the requested language, so it is part of the digest.
        let Some(body_sha256) = digest(&stored.content_sha256, &before) else { return };
        // A language that is not stored is answered by a matching track.
        let mut selectors =
            vec![requested.clone(), TrackSelector::Default, stored.transcript.track.selector()];
        selectors.dedup();
        let content_sha256 = stored.content_sha256.clone();
        let video = stored.transcript.video.clone();
        let source = V1Source { video, content_sha256, selectors, before };
        let selection = Selection { body_sha256, form: BodyForm::V1, source: Some(Arc::new(source)) };
        self.store((CachedRoute::V1, query), selection, changes);
    }

    /// Returns what a query selects if that is known and valid. Builds nothing.
    ///
    /// `None` means that the route must answer.
    pub(crate) async fn v1_selection(&self, query: &str) -> Option<V1Selection> {
        if query.len() > QUERY_LENGTH_MAX {
            return None;
        }
        let selection = self.cache.selection_or_wait(&QueryRef { route: CachedRoute::V1, query }).await?;
        let source = selection.source.clone()?;
        Some(V1Selection { selection, source })
    }

    /// Returns the selected body, from the cache or around the stored bytes.
    ///
    /// `None` means that the route must answer. The error is that there is no memory for the body.
    pub(crate) async fn v1_body(
        &self,
        selected: &V1Selection,
        encoding: ContentEncoding,
    ) -> Option<Result<V1Body, ProblemResponse>> {
        let V1Selection { selection: known, source } = selected;
        let key = known.key(encoding);
        if let Some(body) = self.cache.form(&key) {
            return Some(Ok(V1Body { body, origin: ResultOrigin::Ready }));
        }
        for selector in &source.selectors {
            // A failing archive is reported by the route.
            let stored = self.lookup.transcripts().stored_body(&source.video, selector).await.ok()?;
            if let Some(stored) = stored.filter(|stored| stored.content_sha256 == source.content_sha256) {
                let built = self.get_or_wrap(source.before.clone(), stored, key, None).await?;
                return Some(built.map(|body| {
                    let body = match body {
                        WrappedBody::Cached(body) => body,
                        WrappedBody::Single(body) => Arc::new(body),
                    };
                    V1Body { body, origin: ResultOrigin::Stored }
                }));
            }
        }
        None
    }
}
