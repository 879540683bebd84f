//! Words in the archive: which transcripts have them, and where.

use transcript_core::{
    Error, Result,
    archive::{ArchivedTrack, Found, StoredTranscript},
    chat::{Words, passages},
    page::PageRequest,
    transcript::LanguageTag,
};

use crate::Verbatim;

/// What is looked for in the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// Words, in any order and however they are written: case, accents and punctuation do not count.
    pub query: String,
    /// Only transcripts in a language that matches this BCP 47 tag; none: all.
    pub language: Option<String>,
    /// The most hits that are wanted.
    pub limit: u32,
}

/// A passage of an archived transcript that has all the words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchHit {
    /// The transcript.
    pub stored: StoredTranscript,
    /// When the passage starts, in milliseconds from the video's beginning.
    pub start_ms: u64,
    /// When it ends, in milliseconds from the video's beginning.
    pub end_ms: u64,
    /// Its words, on one line.
    pub text: String,
    /// The video's address at that moment.
    pub url: String,
}

impl Verbatim {
    /// The passages of archived transcripts that have all the words, by video and then by time.
    ///
    /// Every archived transcript is read until there are enough hits: it is for archives of some thousands. Withdrawn
    /// videos are left out.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] when there is no word in the query or the language is none;
    /// otherwise the storage's faults.
    pub async fn search(&self, ask: Search) -> Result<Vec<SearchHit>> {
        let words = Words::of(&ask.query)
            .ok_or_else(|| Error::invalid("there is nothing to look for: give at least one word"))?;
        let language = ask.language.as_deref().map(LanguageTag::parse).transpose()?;
        let most = usize::try_from(ask.limit).unwrap_or(usize::MAX);
        let mut hits = Vec::new();
        let mut page = PageRequest::first();
        while hits.len() < most {
            let found = self.archive().page(page).await?;
            for track in found.items {
                if language.as_ref().is_some_and(|wanted| !wanted.matches(&track.track.language)) {
                    continue;
                }
                if let Some(stored) = self.of_track(&track).await? {
                    look(&stored, &words, most, &mut hits);
                }
                if hits.len() >= most {
                    break;
                }
            }
            let Some(next) = found.next else { break };
            page = PageRequest { after: Some(next), ..PageRequest::first() };
        }
        Ok(hits)
    }

    /// The transcript of an archived track; none where another one answers its wishes by now.
    async fn of_track(&self, track: &ArchivedTrack) -> Result<Option<StoredTranscript>> {
        let Some(wish) = track.wishes.first() else { return Ok(None) };
        match self.archive().find(&track.video, wish, self.now()).await? {
            Found::Transcript(stored) => Ok(Some(stored)),
            Found::Absent(_) | Found::Withdrawn | Found::Nothing => Ok(None),
        }
    }
}

/// Adds the passages of a transcript that have the words.
fn look(stored: &StoredTranscript, words: &Words, most: usize, hits: &mut Vec<SearchHit>) {
    let transcript = &stored.transcript;
    for passage in passages(&transcript.segments) {
        if hits.len() >= most {
            return;
        }
        if words.are_in(&passage.text) {
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
    use crate::{Import, Options};

    #[tokio::test]
    async fn passages_with_all_the_words_are_found() {
        let verbatim = Verbatim::open(Options::default()).await.unwrap();
        for (id, language, text) in
            [("aaaaaaaaaaa", "en", "The Café by the mill."), ("bbbbbbbbbbb", "de", "Das Café an der Mühle.")]
        {
            let captions = format!("1\n00:01:01,000 --> 00:01:03,000\n{text}\n").into_bytes();
            let link = format!("https://youtu.be/{id}");
            let language = Some(language.to_owned());
            verbatim.import(Import { link, captions, language, ..Import::default() }).await.unwrap();
        }
        let search = async |query: &str, language: Option<&str>, limit| {
            let (query, language) = (query.to_owned(), language.map(str::to_owned));
            let hits = verbatim.search(Search { query, language, limit }).await.unwrap();
            hits.into_iter().map(|hit| hit.url).collect::<Vec<_>>()
        };
        let at = |id: &str| format!("https://www.youtube.com/watch?v={id}&t=61s");
        assert_eq!(search("cafe", None, 10).await, [at("aaaaaaaaaaa"), at("bbbbbbbbbbb")]);
        assert_eq!(search("MILL cafe", None, 10).await, [at("aaaaaaaaaaa")]);
        assert_eq!(search("cafe", Some("de-AT"), 10).await, [at("bbbbbbbbbbb")]);
        assert_eq!(search("cafe", None, 1).await, [at("aaaaaaaaaaa")]);
        assert!(search("water", None, 10).await.is_empty());
        let nothing = Search { query: " … ".to_owned(), language: None, limit: 1 };
        assert!(verbatim.search(nothing).await.unwrap_err().message().contains("at least one word"));
    }
}
