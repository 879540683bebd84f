//! Word search in one transcript.

use std::sync::Arc;

use super::{
    Chat, Passage, WordQuery,
    bm25::{Bm25Query, score_all, sort_by_score},
    passages,
};
use crate::{
    error::{Error, Result},
    transcript::Transcript,
};

/// Passages of a transcript that match a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptHits {
    /// Whether each passage contains all words. If false, no passage does, and these are the best matches.
    pub is_exact: bool,
    /// Number of matching passages, including those beyond the limit.
    pub total: usize,
    /// Passages: in transcript order if exact, otherwise best first.
    pub passages: Vec<Passage>,
}

impl Chat {
    /// Splits a transcript into passages, on the blocking pool if it is long; see [`passages`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unavailable`] if the service is stopping.
    pub async fn passages(&self, transcript: Arc<Transcript>) -> Result<Vec<Passage>> {
        let text_bytes = text_bytes(&transcript);
        self.cpu_pool.work(text_bytes, move || passages(&transcript.segments)).await
    }

    /// Finds the passages that contain all words of a query, otherwise those that match it best.
    ///
    /// No model is called. [`WordQuery`] defines the comparison. At most `limit` passages are returned.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] if the query has no word, [`crate::ErrorKind::Unavailable`] if the service is
    /// stopping.
    pub async fn search(
        &self,
        transcript: Arc<Transcript>,
        query: &str,
        limit: usize,
    ) -> Result<TranscriptHits> {
        let words = WordQuery::new(query)
            .ok_or_else(|| Error::invalid("query: it has no word: enter at least one word"))?;
        let query = query.to_owned();
        let text_bytes = text_bytes(&transcript);
        self.cpu_pool.work(text_bytes, move || search(&transcript, &words, &query, limit)).await
    }
}

/// Bytes of a transcript's text.
fn text_bytes(transcript: &Transcript) -> usize {
    transcript.segments.iter().map(|segment| segment.text.len()).sum()
}

fn search(transcript: &Transcript, words: &WordQuery, query: &str, limit: usize) -> TranscriptHits {
    let all = passages(&transcript.segments);
    let exact: Vec<usize> = all
        .iter()
        .enumerate()
        .filter(|(_, passage)| words.is_match(&passage.text))
        .map(|(index, _)| index)
        .collect();
    let is_exact = !exact.is_empty();
    let indices = if is_exact {
        exact
    } else {
        let mut wanted = Bm25Query::default();
        wanted.add_informative(query);
        sort_by_score(&score_all(&all, &wanted))
    };
    let found = indices.iter().take(limit).filter_map(|index| all.get(*index).cloned()).collect();
    TranscriptHits { is_exact, total: indices.len(), passages: found }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Handle;

    use super::*;
    use crate::{
        transcript::{LanguageTag, Segment, TrackInfo, TrackKind},
        video::{Platform, VideoId},
    };

    async fn found(query: &str, limit: usize) -> Result<(bool, usize, Vec<String>)> {
        let spoken =
            ["The Café by the mill.", "Bread, and a mill.", "A quiet harbour.", "The café was full."];
        let segments = spoken
            .iter()
            .enumerate()
            .map(|(n, text)| Segment::new(*text, n as u64 * 60_000, 5_000))
            .collect();
        let transcript = Transcript {
            video: VideoId::new(Platform::YouTube, "dQw4w9WgXcQ").unwrap(),
            title: None,
            author: None,
            duration_ms: None,
            track: TrackInfo::new(LanguageTag::english(), TrackKind::Human),
            source: "imported".to_owned(),
            segments,
        };
        let chat = Chat::extractive(Handle::current());
        let hits = chat.search(Arc::new(transcript), query, limit).await?;
        let texts = hits.passages.into_iter().map(|passage| passage.text).collect();
        Ok((hits.is_exact, hits.total, texts))
    }

    #[tokio::test]
    async fn search_all_words_precede_partial_matches() {
        let (is_exact, total, texts) = found("cafe", 10).await.unwrap();
        assert_eq!((is_exact, total), (true, 2));
        assert_eq!(texts, ["The Café by the mill.", "The café was full."]);
        assert_eq!(found("cafe", 1).await.unwrap(), (true, 2, vec!["The Café by the mill.".to_owned()]));
        let (is_exact, _, texts) = found("harbour bread", 10).await.unwrap();
        assert!(!is_exact);
        assert!(texts.contains(&"A quiet harbour.".to_owned()), "{texts:?}");
        assert_eq!(found("xylophone", 10).await.unwrap(), (false, 0, Vec::new()));
        assert!(found(" … ", 10).await.unwrap_err().message().contains("at least one word"));
    }
}
