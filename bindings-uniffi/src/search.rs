//! Search in archived transcripts.

use std::sync::Arc;

use verbatim::SearchRequest;

use crate::{
    call::{CallOptions, run},
    error::{VerbatimError, count},
    transcript::Transcript,
    transcripts::Transcripts,
};

/// A passage of an archived transcript that contains all words of a query.
#[derive(Clone, Debug, PartialEq, uniffi::Record)]
pub struct SearchHit {
    /// The transcript, without the times of words: many hits can be of one long video.
    pub transcript: Transcript,
    /// Start of the passage in milliseconds.
    pub start_ms: i64,
    /// End of the passage in milliseconds.
    pub end_ms: i64,
    /// Text of the passage, on one line.
    pub text: String,
    /// URL of the video at the start of the passage.
    pub url: String,
}

#[uniffi::export]
impl Transcripts {
    /// Searches archived transcripts for passages with all words, in any spelling variant.
    ///
    /// Returns at most `limit` passages, by default 100, and scans the archive until it has them. For operators and
    /// ranking use `search_videos_page`.
    ///
    /// # Errors
    /// `InvalidInput` if the query has no word or the language is invalid.
    #[uniffi::method(default(language = None, limit = None, call = None))]
    pub async fn search(
        &self,
        query: String,
        language: Option<String>,
        limit: Option<u32>,
        call: Option<CallOptions>,
    ) -> Result<Vec<SearchHit>, VerbatimError> {
        let lazy = Arc::clone(&self.lazy);
        run(call, async move {
            let limit = limit.unwrap_or(SearchRequest::default().limit);
            let search = SearchRequest { query, language, limit };
            let hits = lazy.open().await?.tools().search(search).await?;
            Ok(hits.into_iter().map(SearchHit::from).collect())
        })
        .await
    }
}

impl From<verbatim::SearchHit> for SearchHit {
    fn from(hit: verbatim::SearchHit) -> Self {
        let mut transcript = Transcript::from_stored(&hit.stored, true);
        for segment in &mut transcript.segments {
            segment.words = Vec::new();
        }
        Self {
            transcript,
            start_ms: count(hit.start_ms),
            end_ms: count(hit.end_ms),
            text: hit.text,
            url: hit.url,
        }
    }
}
