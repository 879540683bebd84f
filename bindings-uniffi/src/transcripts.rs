//! Transcripts out of an archive and from suppliers.

use std::sync::Arc;

use tokio::{sync::Semaphore, task::JoinSet};
use transcript_core::{chat::Question, ids::GrantId, video::VideoLink};
use verbatim::{Effect, Get, GetOutcome, Import, Search, Verbatim};

use crate::{
    call::{CallOptions, run},
    client::{ChatAnswer, ChatTurn, Client},
    error::{Failure, VerbatimError, count},
    opener::Opener,
    options::{self, TranscriptsOptions},
    progress::{Listening, Progress, ProgressListener},
    transcript::Transcript,
};

/// How many links are asked for at once, unless it is said.
const AT_ONCE: u32 = 8;

/// What came of one of several links.
#[derive(Clone, Debug, PartialEq, uniffi::Record)]
pub struct Answer {
    /// The link, as it was given.
    pub link: String,
    /// The transcript; none when it failed.
    pub transcript: Option<Transcript>,
    /// Why there is none.
    pub failure: Option<Failure>,
}

/// What came of a refresh.
#[derive(Clone, Debug, PartialEq, uniffi::Record)]
pub struct Refreshed {
    /// Whether it had changed, and is archived as a new revision.
    pub is_changed: bool,
    /// The transcript.
    pub transcript: Transcript,
}

/// Captions to import, and what they are of.
#[derive(Clone, Debug, uniffi::Record)]
pub struct ImportRequest {
    /// The link to the video. A short link must be known already: nobody is asked.
    pub link: String,
    /// The captions: WebVTT, SRT, TTML or what platforms send.
    pub captions: Vec<u8>,
    /// Their language as a BCP 47 tag, where it is known; otherwise the one that their header names.
    #[uniffi(default = None)]
    pub language: Option<String>,
    /// The video's title.
    #[uniffi(default = None)]
    pub title: Option<String>,
    /// Who published the video.
    #[uniffi(default = None)]
    pub author: Option<String>,
    /// Whether a machine recognised the words.
    #[uniffi(default = false)]
    pub is_generated: bool,
    /// Whether they replace what is archived.
    #[uniffi(default = false)]
    pub replace: bool,
}

/// What an import did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Enum)]
pub enum ImportEffect {
    /// There was nothing, and now there is this.
    Added,
    /// There was another transcript, and now there is this one.
    Replaced,
    /// There was another transcript, which stays.
    Kept,
    /// This very transcript was there already.
    Unchanged,
}

/// What was imported.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct Imported {
    /// The language.
    pub language: String,
    /// How many segments there are.
    pub segments: i64,
    /// What it did.
    pub effect: ImportEffect,
    /// How many characters could not be read, and are U+FFFD in the segments.
    pub unreadable: i64,
    /// How many cues were left out, since their times could not be read.
    pub left_out: i64,
}

/// A passage of an archived transcript that has all the words.
#[derive(Clone, Debug, PartialEq, uniffi::Record)]
pub struct SearchHit {
    /// The transcript.
    pub transcript: Transcript,
    /// When the passage starts, in milliseconds.
    pub start_ms: i64,
    /// When it ends, in milliseconds.
    pub end_ms: i64,
    /// Its words, on one line.
    pub text: String,
    /// The video's address at that moment.
    pub url: String,
}

/// How much the archive holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Record)]
pub struct ArchiveSize {
    /// Videos with at least one transcript.
    pub videos: i64,
    /// Transcripts, all revisions counted.
    pub transcripts: i64,
    /// The bytes that they take.
    pub bytes: i64,
}

/// An archive and suppliers. It opens with its first call, and calls may be made from any thread, at the same time.
#[derive(Debug, uniffi::Object)]
pub struct Transcripts {
    pub(crate) opener: Arc<Opener>,
    progress: Arc<Progress>,
}

fn found(outcome: GetOutcome) -> Result<Transcript, VerbatimError> {
    match outcome {
        GetOutcome::Found(found) => {
            Ok(Transcript::of(&found.stored.transcript, found.from_cache, found.stored.revision))
        }
        GetOutcome::Missing(missing) => Err(missing.into()),
    }
}

#[uniffi::export]
impl Transcripts {
    /// Reads the options; nothing is opened yet.
    ///
    /// # Errors
    /// `InvalidInput`, naming the option that is wrong.
    #[uniffi::constructor(default(options = None))]
    pub fn new(options: Option<TranscriptsOptions>) -> Result<Arc<Self>, VerbatimError> {
        let progress = Arc::<Progress>::default();
        let options = options.unwrap_or_default();
        let mailer = options.mailer.clone();
        let (options, folder) = options::read(options, Arc::clone(&progress))?;
        Ok(Arc::new(Self { opener: Arc::new(Opener::new(options, folder, mailer)), progress }))
    }

    /// The transcript of a video: archived, or fetched and archived.
    ///
    /// `link` is in any form that people use, or a YouTube id; `language` a BCP 47 tag, none for English where there
    /// is English, else the spoken language. `listener` hears how far the fetch is.
    ///
    /// # Errors
    /// `InvalidInput`; `NoCaptions`, `RateLimited`, `FetchFailed`, `NotConfigured` when there is none; a store's faults.
    #[uniffi::method(default(language = None, listener = None, call = None))]
    pub async fn get(
        &self,
        link: String,
        language: Option<String>,
        listener: Option<Arc<dyn ProgressListener>>,
        call: Option<CallOptions>,
    ) -> Result<Transcript, VerbatimError> {
        let (opener, progress) = (Arc::clone(&self.opener), Arc::clone(&self.progress));
        run(call, async move {
            let parts = opener.open().await?;
            let listening = listener.map(|listener| progress.listen(listener, video(&link)));
            let outcome = parts.get(Get { link, language }).await;
            if let Some(listening) = listening {
                listening.end().await;
            }
            found(outcome?)
        })
        .await
    }

    /// The transcripts of several videos, `at_once` of them at the same time (8 unless it is said), in the order of the
    /// links. `listener` hears of each answer as it comes. What fails is an answer, too.
    ///
    /// # Errors
    /// `InvalidInput` when `at_once` is 0; `Cancelled`, `TimedOut`.
    #[uniffi::method(default(language = None, at_once = None, listener = None, call = None))]
    pub async fn get_many(
        &self,
        links: Vec<String>,
        language: Option<String>,
        at_once: Option<u32>,
        listener: Option<Arc<dyn ProgressListener>>,
        call: Option<CallOptions>,
    ) -> Result<Vec<Answer>, VerbatimError> {
        let at_once = at_once.unwrap_or(AT_ONCE);
        if at_once == 0 {
            return Err(Failure::invalid("at_once must be at least 1"));
        }
        let (opener, progress) = (Arc::clone(&self.opener), Arc::clone(&self.progress));
        run(call, async move {
            let parts = opener.open().await?;
            let listening = listener.map(|listener| progress.listen(listener, None));
            let answers = several(&parts, links, language, at_once, listening.as_ref()).await;
            if let Some(listening) = listening {
                listening.end().await;
            }
            Ok(answers)
        })
        .await
    }

    /// Fetches a transcript again, now, and archives it as a new revision when it has changed.
    ///
    /// # Errors
    /// As [`Transcripts::get`].
    #[uniffi::method(default(language = None, call = None))]
    pub async fn refresh(
        &self,
        link: String,
        language: Option<String>,
        call: Option<CallOptions>,
    ) -> Result<Refreshed, VerbatimError> {
        let opener = Arc::clone(&self.opener);
        run(call, async move {
            let (is_changed, stored) = match opener.open().await?.refresh(Get { link, language }).await? {
                verbatim::Refreshed::Changed(stored) => (true, stored),
                verbatim::Refreshed::Unchanged(stored) => (false, stored),
                verbatim::Refreshed::Missing(missing) => return Err(missing.into()),
            };
            let transcript = Transcript::of(&stored.transcript, false, stored.revision);
            Ok(Refreshed { is_changed, transcript })
        })
        .await
    }

    /// Takes captions into the archive, where they are found from then on like any other transcript.
    ///
    /// # Errors
    /// `InvalidInput` when the link, the language or the captions are none; `Conflict` when the video was withdrawn.
    #[uniffi::method(default(call = None))]
    pub async fn import_captions(
        &self,
        request: ImportRequest,
        call: Option<CallOptions>,
    ) -> Result<Imported, VerbatimError> {
        let opener = Arc::clone(&self.opener);
        run(call, async move {
            let ImportRequest { link, captions, language, title, author, is_generated, replace } = request;
            let import = Import { link, captions, language, title, author, generated: is_generated, replace };
            Ok(Imported::of(&opener.open().await?.import(import).await?))
        })
        .await
    }

    /// The passages of archived transcripts that have all the words, however these are written; at most `limit`, or 50.
    ///
    /// # Errors
    /// `InvalidInput` when there is no word in the query or the language is none.
    #[uniffi::method(default(language = None, limit = None, call = None))]
    pub async fn search(
        &self,
        query: String,
        language: Option<String>,
        limit: Option<u32>,
        call: Option<CallOptions>,
    ) -> Result<Vec<SearchHit>, VerbatimError> {
        let opener = Arc::clone(&self.opener);
        run(call, async move {
            let search = Search { query, language, limit: limit.unwrap_or(50) };
            let hits = opener.open().await?.search(search).await?;
            Ok(hits.into_iter().map(SearchHit::of).collect())
        })
        .await
    }

    /// Answers a question about a video from its transcript, which is fetched where it is not archived. Nobody is
    /// charged. Every quotation and citation was checked against the words.
    ///
    /// # Errors
    /// As [`Transcripts::get`]; `InvalidInput` when the question is none; the model's faults.
    #[uniffi::method(default(history = [], call = None))]
    pub async fn ask(
        &self,
        link: String,
        question: String,
        history: Vec<ChatTurn>,
        call: Option<CallOptions>,
    ) -> Result<ChatAnswer, VerbatimError> {
        let opener = Arc::clone(&self.opener);
        run(call, async move {
            let question = Question::new(&question, history.into_iter().map(Into::into).collect());
            let question = question.map_err(|error| Failure::invalid(error.to_string()))?;
            let parts = opener.open().await?;
            match parts.get(Get { link, language: None }).await? {
                GetOutcome::Missing(missing) => Err(missing.into()),
                GetOutcome::Found(found) => {
                    let video = found.stored.transcript.video.id().to_owned();
                    let answer = parts.chat().ask(found.stored.transcript, question).await?;
                    Ok(ChatAnswer::free(video, answer))
                }
            }
        })
        .await
    }

    /// Deletes everything that is archived and known of a video.
    ///
    /// # Errors
    /// `InvalidInput` when the link is none.
    #[uniffi::method(default(call = None))]
    pub async fn forget(&self, link: String, call: Option<CallOptions>) -> Result<(), VerbatimError> {
        let opener = Arc::clone(&self.opener);
        run(call, async move {
            let parts = opener.open().await?;
            let video = parts.known_video(&link).await?;
            Ok(parts.delete(&video).await?)
        })
        .await
    }

    /// How much the archive holds.
    ///
    /// # Errors
    /// A store's faults.
    #[uniffi::method(default(call = None))]
    pub async fn size(&self, call: Option<CallOptions>) -> Result<ArchiveSize, VerbatimError> {
        let opener = Arc::clone(&self.opener);
        run(call, async move {
            let stats = opener.open().await?.stats().await?;
            let (videos, transcripts) = (count(stats.videos), count(stats.transcripts));
            Ok(ArchiveSize { videos, transcripts, bytes: count(stats.bytes) })
        })
        .await
    }

    /// Credits for an account of the service within the process, once for each id; the credits that it has then.
    ///
    /// # Errors
    /// `NotFound` when there is no such account; a store's faults.
    pub async fn grant(&self, email: String, credits: u32, id: String) -> Result<i64, VerbatimError> {
        let opener = Arc::clone(&self.opener);
        run(None, async move {
            let parts = opener.open().await?;
            let id = GrantId::of_operator(id);
            let view = parts.accounts().grant(&email, id, credits.into(), "granted by the app").await?;
            Ok(count(view.credits.remaining))
        })
        .await
    }

    /// The service within the process, for a caller with this key: what a server would say, without a server.
    #[uniffi::method(default(key = None))]
    pub fn service(&self, key: Option<String>) -> Arc<Client> {
        Client::within(Arc::clone(&self.opener), key)
    }

    /// Waits for the work that is under way and closes the files; the next call opens them again. For an app that goes
    /// into the background: a file that stays locked there may be its end.
    #[uniffi::method(default(call = None))]
    pub async fn pause(&self, call: Option<CallOptions>) -> Result<(), VerbatimError> {
        let opener = Arc::clone(&self.opener);
        run(call, async move {
            opener.pause().await;
            Ok(())
        })
        .await
    }

    /// Waits for the work that is under way and closes everything, for good: further calls fail as `Closed`.
    #[uniffi::method(default(call = None))]
    pub async fn shutdown(&self, call: Option<CallOptions>) -> Result<(), VerbatimError> {
        let opener = Arc::clone(&self.opener);
        run(call, async move {
            opener.close().await;
            Ok(())
        })
        .await
    }

    /// Whether it was shut down.
    pub fn is_shut_down(&self) -> bool {
        self.opener.is_closed()
    }
}

/// The video that a link names by itself.
fn video(link: &str) -> Option<transcript_core::video::VideoId> {
    match VideoLink::parse(link) {
        Ok(VideoLink::Video(video)) => Some(video),
        _ => None,
    }
}

/// Several links, so many at once; the answers in the links' order.
async fn several(
    parts: &Verbatim,
    links: Vec<String>,
    language: Option<String>,
    at_once: u32,
    listening: Option<&Listening>,
) -> Vec<Answer> {
    let room = Arc::new(Semaphore::new(usize::try_from(at_once).unwrap_or(1).min(Semaphore::MAX_PERMITS)));
    let mut work = JoinSet::new();
    let mut answers: Vec<_> = links
        .iter()
        .map(|link| Answer {
            link: link.clone(),
            transcript: None,
            failure: Some(Failure::plain(crate::FailureKind::Unexpected, "the work broke down")),
        })
        .collect();
    for (place, link) in links.into_iter().enumerate() {
        let (parts, language, room) = (parts.clone(), language.clone(), Arc::clone(&room));
        work.spawn(async move {
            let _place = room.acquire_owned().await;
            let outcome = parts.get(Get { link, language }).await.map_err(VerbatimError::from);
            (place, outcome.and_then(found))
        });
    }
    while let Some(done) = work.join_next().await {
        let Ok((place, outcome)) = done else { continue };
        let Some(answer) = answers.get_mut(place) else { continue };
        match outcome {
            Ok(transcript) => (answer.transcript, answer.failure) = (Some(transcript), None),
            Err(error) => answer.failure = Some(error.failure().clone()),
        }
        if let Some(listening) = listening {
            listening.answered(answer.clone()).await;
        }
    }
    answers
}

impl Imported {
    fn of(imported: &verbatim::Imported) -> Self {
        Self {
            language: imported.language.as_str().to_owned(),
            segments: count(imported.segments),
            effect: match imported.effect() {
                Effect::Added => ImportEffect::Added,
                Effect::Replaced => ImportEffect::Replaced,
                Effect::Kept => ImportEffect::Kept,
                Effect::Unchanged => ImportEffect::Unchanged,
            },
            unreadable: count(imported.unreadable.count),
            left_out: count(imported.left_out.count),
        }
    }
}

impl SearchHit {
    fn of(hit: verbatim::SearchHit) -> Self {
        Self {
            transcript: Transcript::of(&hit.stored.transcript, true, hit.stored.revision),
            start_ms: count(hit.start_ms),
            end_ms: count(hit.end_ms),
            text: hit.text,
            url: hit.url,
        }
    }
}
