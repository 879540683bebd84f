//! Words in one transcript: where they were said.

use std::sync::Arc;

use super::{
    Chat, Passage, Words, passages,
    rank::{Query, best, rank},
};
use crate::{
    error::{Error, Result},
    transcript::Transcript,
};

/// Where the words of a query were said in a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hits {
    /// Whether every passage has all the words. Else none of the transcript has, and these are those that fit best.
    pub is_exact: bool,
    /// How many passages there are, those beyond the limit included.
    pub total: usize,
    /// The passages: in the order of the transcript where they have all the words, else the best first.
    pub passages: Vec<Passage>,
}

impl Chat {
    /// The passages of a transcript, cut beside the runtime's own threads where it is long; see [`passages`].
    ///
    /// # Errors
    /// Unavailable when the service is stopping.
    pub async fn passages(&self, transcript: Arc<Transcript>) -> Result<Vec<Passage>> {
        let bytes = bytes(&transcript);
        self.desk.work(bytes, move || passages(&transcript.segments)).await
    }

    /// The passages of a transcript that have all the words of a query; where none has, those that fit it best.
    ///
    /// No model is asked. How words are compared, [`Words`] says; at most `limit` passages are returned.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] when there is no word in the query; unavailable when the service is stopping.
    pub async fn search(&self, transcript: Arc<Transcript>, query: &str, limit: usize) -> Result<Hits> {
        let words = Words::of(query)
            .ok_or_else(|| Error::invalid("query: there is nothing to look for: give at least one word"))?;
        let query = query.to_owned();
        let bytes = bytes(&transcript);
        self.desk.work(bytes, move || search(&transcript, &words, &query, limit)).await
    }
}

/// How many bytes the words of a transcript have.
fn bytes(transcript: &Transcript) -> usize {
    transcript.segments.iter().map(|segment| segment.text.len()).sum()
}

fn search(transcript: &Transcript, words: &Words, query: &str, limit: usize) -> Hits {
    let all = passages(&transcript.segments);
    let exact: Vec<usize> =
        all.iter().enumerate().filter(|(_, passage)| words.are_in(&passage.text)).map(|(at, _)| at).collect();
    let is_exact = !exact.is_empty();
    let places = if is_exact {
        exact
    } else {
        let mut wanted = Query::default();
        wanted.add_telling(query);
        best(&rank(&all, &wanted))
    };
    let found = places.iter().take(limit).filter_map(|at| all.get(*at).cloned()).collect();
    Hits { is_exact, total: places.len(), passages: found }
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
            video: VideoId::new(Platform::VideoSite, "dQw4w9WgXcQ").unwrap(),
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
    async fn all_the_words_come_before_some_of_them() {
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
