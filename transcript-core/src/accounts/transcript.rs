//! The transcript of a video for credits (specification 4, `GET /api/v1/transcript`; design 4).

use std::fmt;

use super::{Accounts, Refused, Reply, Visit};
use crate::{
    archive::{Absence, Found, StoredTranscript, Wish},
    engine::{Fetch, Outcome},
    lookup::FailureReason,
    supplier::SupplyError,
    transcript::{LanguageTag, TrackKind},
    video::{Platform, VideoId, VideoLink},
};

/// How many languages a sentence names.
const LANGUAGES_MAX: usize = 20;

/// A request for a transcript, as its parameters came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TranscriptAsk {
    /// `video_id`: the 11-character id.
    pub video_id: Option<String>,
    /// `url`: the full link.
    pub url: Option<String>,
    /// `lang`: a language tag; without one it is English, and then never a machine's translation.
    pub lang: Option<String>,
}

/// A transcript that is ready to be delivered. Dropped instead, it costs nothing where that can still be
/// helped: what is only held is returned.
pub struct TranscriptReady {
    visit: Visit,
    /// The transcript.
    pub stored: StoredTranscript,
    /// Whether it was archived when it was asked for (`X-Cache`).
    pub from_cache: bool,
    /// The credits that are left once it is delivered (`X-Credits-Remaining`), where that is known.
    pub credits_remaining: Option<u64>,
}

impl fmt::Debug for TranscriptReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TranscriptReady")
            .field("visit", &self.visit)
            .field("from_cache", &self.from_cache)
            .field("credits_remaining", &self.credits_remaining)
            .finish_non_exhaustive()
    }
}

impl TranscriptReady {
    /// Delivers the answer that was made of it: see [`Visit::deliver`].
    ///
    /// # Errors
    /// As [`Visit::deliver`].
    pub async fn deliver(self, reply: Reply) -> Result<Reply, Refused> {
        self.visit.deliver(reply).await
    }
}

/// Which transcript of a video is wanted.
#[derive(Clone, Debug)]
pub(super) enum Wanted {
    /// Its default one, in whatever language.
    Any,
    /// English, since no language was named: what a machine translated was not asked for.
    English,
    /// What was named.
    Language(LanguageTag),
}

impl Wanted {
    fn wish(&self) -> Wish {
        match self {
            // The default is English wherever there is English.
            Self::Any | Self::English => Wish::Default,
            Self::Language(tag) => Wish::Language(tag.clone()),
        }
    }

    fn is_met(&self, stored: &StoredTranscript) -> bool {
        match self {
            Self::English => LanguageTag::english().matches(&stored.transcript.track.language),
            Self::Any | Self::Language(_) => true,
        }
    }
}

/// A transcript, and whether it was archived before.
pub(super) type Got = (StoredTranscript, bool);

impl Accounts {
    /// The transcript of a video on the long-form site, for `credits.per_transcript`: ready to be delivered.
    /// It costs the same from the archive or not; a failure costs nothing. Callers at the same time share
    /// one fetch, and each pays their own.
    ///
    /// # Errors
    /// Every refusal but 401 and 429; nothing is charged, and all that was taken is given back.
    ///
    /// # Cancellation
    /// Dropping the future gives back what was taken. A fetch that has begun goes on, and is archived.
    pub async fn transcript(&self, visit: Visit, ask: TranscriptAsk) -> Result<TranscriptReady, Refused> {
        let accounts = self.clone();
        self.task(async move { accounts.prepare(visit, &ask).await }).await
    }

    async fn prepare(&self, mut visit: Visit, ask: &TranscriptAsk) -> Result<TranscriptReady, Refused> {
        match self.obtain(&mut visit, ask).await {
            Ok((stored, from_cache, credits_remaining)) => {
                Ok(TranscriptReady { visit, stored, from_cache, credits_remaining })
            }
            Err(refused) => Err(visit.refuse(refused).await),
        }
    }

    async fn obtain(
        &self,
        visit: &mut Visit,
        ask: &TranscriptAsk,
    ) -> Result<(StoredTranscript, bool, Option<u64>), Refused> {
        let wanted = wanted(ask.lang.as_deref())?;
        let video = Self::video(ask)?;
        visit.tells_of(&video);
        let (cost, memo) = (self.options().credits_per_transcript, format!("transcript {video}"));
        match self.archived(&video, &wanted).await? {
            Some((stored, from_cache)) => {
                let left = visit.take(cost, &memo).await?;
                Ok((stored, from_cache, left))
            }
            None => {
                let left = visit.hold_here(cost, &memo).await?;
                let (stored, from_cache) = self.fetched(&video, &wanted).await?;
                Ok((stored, from_cache, Some(left)))
            }
        }
    }

    /// The video that is asked for: by its id, or by a link of the long-form site.
    pub(super) fn video(ask: &TranscriptAsk) -> Result<VideoId, Refused> {
        let (parameter, link) = match (&ask.video_id, &ask.url) {
            (Some(id), None) => ("video_id", VideoId::new(Platform::VideoSite, id).map(VideoLink::Video)),
            (None, Some(url)) => ("url", VideoLink::parse(url)),
            (None, None) => {
                return Err(bad("video_id: give the video's 11-character id, or its full link as url"));
            }
            (Some(_), Some(_)) => return Err(bad("video_id and url: give one of them, not both")),
        };
        let link = link.map_err(|error| bad(&format!("{parameter}: {error}")))?;
        let platform = match link {
            VideoLink::Video(video) if video.platform() == Platform::VideoSite => return Ok(video),
            VideoLink::Video(video) => video.platform(),
            VideoLink::Short(short) => short.platform(),
        };
        Err(bad(&format!(
            "url: the v1 API is for videos on {}; /api/transcript takes links to {}",
            Platform::VideoSite.name(),
            platform.name()
        )))
    }

    /// What the archive has; none when the suppliers must be asked.
    pub(super) async fn archived(&self, video: &VideoId, wanted: &Wanted) -> Result<Option<Got>, Refused> {
        let found = self.parts.transcripts.find_best(video, &wanted.wish()).await;
        match found.map_err(|error| Refused::store(&error))? {
            Found::Transcript(stored) if wanted.is_met(&stored) => Ok(Some((stored, true))),
            Found::Transcript(_) => match self.other_english(video).await? {
                Some(stored) => Ok(Some((stored, true))),
                None => Err(self.no_english(video).await),
            },
            Found::Absent(absence) => Err(absent(absence)),
            Found::Withdrawn => Err(withdrawn()),
            Found::Nothing => Ok(None),
        }
    }

    /// An archived English transcript of a video whose default is in another language, unless it is a
    /// machine's translation.
    async fn other_english(&self, video: &VideoId) -> Result<Option<StoredTranscript>, Refused> {
        let wish = Wish::Language(LanguageTag::english());
        let found = self.parts.transcripts.find_best(video, &wish).await;
        Ok(match found.map_err(|error| Refused::store(&error))? {
            Found::Transcript(stored) if stored.transcript.track.kind != TrackKind::Translated => {
                Some(stored)
            }
            _ => None,
        })
    }

    /// What the suppliers give, or others' work that is under way. It costs this caller only what was held.
    pub(super) async fn fetched(&self, video: &VideoId, wanted: &Wanted) -> Result<Got, Refused> {
        let fetch = Fetch { video: video.clone(), wish: wanted.wish(), payment: None };
        match self.parts.transcripts.get(fetch).await {
            Outcome::Archived(stored) | Outcome::Fetched(stored) if wanted.is_met(&stored) => {
                Ok((stored, false))
            }
            Outcome::Archived(_) | Outcome::Fetched(_) => Err(self.no_english(video).await),
            Outcome::Absent(absence) => Err(absent(absence)),
            Outcome::Withdrawn => Err(withdrawn()),
            Outcome::Failed(failure) => Err(self.unsupplied(&failure)),
            Outcome::Unsupplied => Err(Refused::Internal(format!(
                "This service has no source of new transcripts for {}: nothing was charged.",
                video.platform().name()
            ))),
            Outcome::StillWorking(still) => {
                Err(Refused::Internal(still.sentence(Some("nothing was charged"))))
            }
            Outcome::Broken(error) => Err(Refused::store(&error)),
            // Nobody is asked to pay for this fetch.
            Outcome::Refused { .. } => Err(Refused::interrupted()),
        }
    }

    /// A supplier's failure: the video's own, or a passing one of ours or the platform's.
    fn unsupplied(&self, failure: &SupplyError) -> Refused {
        let message = failure.message();
        match FailureReason::of_supply(failure) {
            FailureReason::NoCaptions => Refused::NotFound(message.to_owned()),
            _ => Refused::Internal(format!("{message} Nothing was charged.")),
        }
    }

    /// The video has no English transcript; the sentence names the languages that it has.
    async fn no_english(&self, video: &VideoId) -> Refused {
        let tracks = match self.parts.transcripts.tracks(video).await {
            Ok(tracks) => tracks,
            Err(error) => return Refused::store(&error),
        };
        let mut languages: Vec<&str> = Vec::new();
        for track in tracks.iter().filter(|track| track.track.kind != TrackKind::Translated) {
            let language = track.track.language.as_str();
            if !languages.contains(&language) {
                languages.push(language);
            }
        }
        let more = if languages.len() > LANGUAGES_MAX { ", …" } else { "" };
        languages.truncate(LANGUAGES_MAX);
        Refused::NotFound(format!(
            "This video has no English transcript. It has: {}{more}; name one of them as lang.",
            languages.join(", ")
        ))
    }
}

fn wanted(lang: Option<&str>) -> Result<Wanted, Refused> {
    match lang {
        None => Ok(Wanted::English),
        Some(text) => {
            LanguageTag::parse(text).map(Wanted::Language).map_err(|error| bad(&format!("lang: {error}")))
        }
    }
}

fn bad(message: &str) -> Refused {
    Refused::BadRequest(message.to_owned())
}

fn absent(absence: Absence) -> Refused {
    Refused::NotFound(absence.message)
}

pub(super) fn withdrawn() -> Refused {
    Refused::NotFound("This transcript was withdrawn by the operator of the service.".to_owned())
}
