//! Word search in the archive.

use transcript_core::{
    Error, Result,
    archive::StoredTranscript,
    chat::{WordQuery, passages},
    page::PageRequest,
    transcript::LanguageTag,
};

use crate::ArchiveTools;

/// Request to search the archive.
#[derive(Clone, Debug, PartialEq, Eq, smart_default::SmartDefault)]
pub struct SearchRequest {
    /// Words in any order; case, accents and punctuation are ignored.
    pub query: String,
    /// Only transcripts in a language that matches this BCP 47 tag; `None`: all.
    pub language: Option<String>,
    /// Maximum number of hits.
    #[default(100)]
    pub limit: u32,
}

impl SearchRequest {
    /// A search for these words in all languages, for at most 100 hits.
    pub fn new(query: impl Into<String>) -> Self {
        Self { query: query.into(), ..Self::default() }
    }
}

/// A passage of an archived transcript that contains all words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchHit {
    /// The transcript.
    pub stored: StoredTranscript,
    /// Start of the passage, in milliseconds from the start of the video.
    pub start_ms: u64,
    /// End of the passage, in milliseconds from the start of the video.
    pub end_ms: u64,
    /// Text of the passage, on one line.
    pub text: String,
    /// Address of the video at the start time.
    pub url: String,
}

impl ArchiveTools {
    /// Returns the passages of archived transcripts that contain all words, by video and then by time.
    ///
    /// The search reads the archived transcripts one by one until there are enough hits, so it suits archives of a few
    /// thousand transcripts. For larger ones, operators and ranking use [`crate::Verbatim::search`] (feature `search`).
    /// Withdrawn videos are left out.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] if the query has no word or the language is invalid; otherwise errors of
    /// the storage.
    pub async fn search(&self, request: SearchRequest) -> Result<Vec<SearchHit>> {
        let words = WordQuery::new(&request.query)
            .ok_or_else(|| Error::invalid("the query has no words: give at least one word"))?;
        let language = request.language.as_deref().map(LanguageTag::parse).transpose()?;
        let limit = usize::try_from(request.limit).unwrap_or(usize::MAX);
        let mut hits = Vec::new();
        let mut page = PageRequest::first();
        while hits.len() < limit {
            let found = self.archive.list_tracks(page).await?;
            for track in found.items {
                if language.as_ref().is_some_and(|wanted| !wanted.matches(&track.track.language)) {
                    continue;
                }
                if let Some(stored) = self.track_transcript(&track).await? {
                    add_hits(&stored, &words, limit, &mut hits);
                }
                if hits.len() >= limit {
                    break;
                }
            }
            let Some(next) = found.next else { break };
            page = PageRequest { after: Some(next), ..PageRequest::first() };
        }
        Ok(hits)
    }
}

/// Adds the passages of a transcript that contain the words.
fn add_hits(stored: &StoredTranscript, words: &WordQuery, limit: usize, hits: &mut Vec<SearchHit>) {
    let transcript = &stored.transcript;
    for passage in passages(&transcript.segments) {
        if hits.len() >= limit {
            return;
        }
        if words.is_match(&passage.text) {
            hits.push(SearchHit {
                start_ms: passage.start_ms,
                end_ms: passage.end_ms,
                url: transcript.video.address_at(passage.start_ms / 1_000),
                text: passage.text,
                stored: stored.clone(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ImportRequest, Options, Verbatim};

    #[tokio::test]
    async fn search_finds_passages_with_all_words() {
        let verbatim = Verbatim::open(Options::default()).await.unwrap();
        for (id, language, text) in
            [("aaaaaaaaaaa", "en", "The Café by the mill."), ("bbbbbbbbbbb", "de", "Das Café an der Mühle.")]
        {
            let captions = format!("1\n00:01:01,000 --> 00:01:03,000\n{text}\n").into_bytes();
            let link = format!("https://youtu.be/{id}");
            let language = Some(language.to_owned());
            verbatim
                .tools()
                .import(ImportRequest { link, captions, language, ..ImportRequest::default() })
                .await
                .unwrap();
        }
        let search = async |query: &str, language: Option<&str>, limit| {
            let (query, language) = (query.to_owned(), language.map(str::to_owned));
            let hits = verbatim.tools().search(SearchRequest { query, language, limit }).await.unwrap();
            hits.into_iter().map(|hit| hit.url).collect::<Vec<_>>()
        };
        let at = |id: &str| format!("https://www.youtube.com/watch?v={id}&t=61s");
        assert_eq!(search("cafe", None, 10).await, [at("aaaaaaaaaaa"), at("bbbbbbbbbbb")]);
        assert_eq!(search("MILL cafe", None, 10).await, [at("aaaaaaaaaaa")]);
        assert_eq!(search("cafe", Some("de-AT"), 10).await, [at("bbbbbbbbbbb")]);
        assert_eq!(search("cafe", None, 1).await, [at("aaaaaaaaaaa")]);
        assert!(search("water", None, 10).await.is_empty());
        let defaults = SearchRequest::new("cafe");
        assert_eq!((&defaults.language, defaults.limit), (&None, 100));
        assert_eq!(verbatim.tools().search(defaults).await.unwrap().len(), 2);
        let nothing = SearchRequest::new(" … ");
        assert!(verbatim.tools().search(nothing).await.unwrap_err().message().contains("at least one word"));
    }
}
