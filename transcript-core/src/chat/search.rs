//! Word search in one transcript.

use std::sync::Arc;

use super::{
    Chat, Passage, WordQuery,
    bm25::{Bm25Query, score_all, sort_by_score},
    cpu_pool::INLINE_BYTES,
    passages,
    search_index::SearchIndex,
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
    /// Whether [`Chat::passages`] and [`Chat::search`] wait for others with this transcript, because it is long.
    ///
    /// A shorter one is processed at once. Each caller that waits with a long one has it in memory: bound their number.
    pub fn is_long(transcript: &Transcript) -> bool {
        transcript.text_bytes() >= INLINE_BYTES
    }

    /// Splits a transcript into passages, on the blocking pool if it is long; see [`passages`].
    ///
    /// Searches have a bound of concurrent work apart from that of answers.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unavailable`] if the service is stopping.
    pub async fn passages(&self, transcript: Arc<Transcript>) -> Result<Arc<[Passage]>> {
        self.search_pool.work(transcript.text_bytes(), move || passages(&transcript.segments).into()).await
    }

    /// Finds the passages of a transcript that contain all words of a query, otherwise those that match it best.
    ///
    /// No model is called. [`WordQuery`] defines the comparison. At most `limit` passages are returned.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] if the query has no word, [`crate::ErrorKind::Unavailable`] if the service is
    /// stopping.
    pub async fn search(
        &self,
        passages: Arc<[Passage]>,
        query: &str,
        limit: usize,
    ) -> Result<TranscriptHits> {
        let words = WordQuery::new(query)
            .ok_or_else(|| Error::invalid("query: it has no word: enter at least one word"))?;
        let query = query.to_owned();
        let text_bytes = passages.iter().map(|passage| passage.text.len()).sum();
        self.search_pool.work(text_bytes, move || search(&passages, &words, &query, limit)).await
    }
}

fn search(all: &[Passage], words: &WordQuery, query: &str, limit: usize) -> TranscriptHits {
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
        let index = SearchIndex::new(all);
        let mut wanted = Bm25Query::new(index.common_words(query));
        wanted.add_informative(query);
        sort_by_score(&score_all(&index, all, &wanted).scores)
    };
    let found = indices.iter().take(limit).filter_map(|index| all.get(*index).cloned()).collect();
    TranscriptHits { is_exact, total: indices.len(), passages: found }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Handle;

    use super::*;
    use crate::{chat::tests::transcript_of, transcript::Segment};

    fn transcript(spoken: &[&str]) -> Arc<Transcript> {
        let segments = spoken
            .iter()
            .enumerate()
            .map(|(n, text)| Segment::new(*text, n as u64 * 60_000, 5_000))
            .collect();
        transcript_of(segments)
    }

    async fn found(query: &str, limit: usize) -> Result<(bool, usize, Vec<String>)> {
        let spoken =
            ["The Café by the mill.", "Bread, and a mill.", "A quiet harbour.", "The café was full."];
        let chat = Chat::extractive(Handle::current());
        let hits = chat.search(chat.passages(transcript(&spoken)).await?, query, limit).await?;
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

    #[tokio::test]
    async fn search_queue_does_not_delay_answers() {
        let spoken: Vec<String> =
            (0..1_000).map(|n| format!("The mill of year {n} made bread in a harbour.")).collect();
        let long = transcript(&spoken.iter().map(String::as_str).collect::<Vec<_>>());
        let chat = Chat::extractive(Handle::current());
        let all = chat.passages(Arc::clone(&long)).await.unwrap();
        // One search runs until the end of the test, and all others wait for it.
        let (release, released) = std::sync::mpsc::channel::<()>();
        let pool = chat.search_pool.clone();
        let blocked =
            tokio::spawn(async move { pool.work(usize::MAX, move || released.recv().is_err()).await });
        let mut searches = tokio::task::JoinSet::new();
        for _ in 0..48 {
            let (chat, all) = (chat.clone(), Arc::clone(&all));
            searches.spawn(async move { chat.search(all, "year 77", 10).await });
        }
        tokio::task::yield_now().await;
        let question = crate::chat::Question::new("What did the mill make?", Vec::new()).unwrap();
        let answer = chat.answer(long, question).await.unwrap();
        assert!(answer.response.contains("bread"), "{}", answer.response);
        assert!(!blocked.is_finished() && searches.try_join_next().is_none());
        drop(release);
        assert!(blocked.await.unwrap().unwrap());
        while let Some(hits) = searches.join_next().await {
            assert_eq!(hits.unwrap().unwrap().total, 1);
        }
    }
}
