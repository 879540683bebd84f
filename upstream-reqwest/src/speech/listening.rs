//! Listening to one video, from its address to its words.

use std::{
    pin::pin,
    sync::atomic::{AtomicU64, Ordering},
};

use futures_util::{StreamExt as _, stream};
use tokio::{io::AsyncSeekExt as _, time::Instant};
use transcript_core::{
    archive::Wish,
    supplier::{Ask, Supplied, SupplyError, Watcher},
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
};

use super::{
    NAME, SpeechToText,
    answer::Said,
    cutting::{self, Part},
    invented,
    language::most_spoken,
    refusal::Refusal,
    sound::Sound,
    times,
};
use crate::social::{Media, MediaSource};

/// The longest part where the service tells no times, in milliseconds: the words of a part then have the time
/// of the whole part.
const UNTIMED_PART_MS: u64 = 20_000;

/// One video that is listened to.
pub(super) struct Listening<'a> {
    pub(super) parts: &'a SpeechToText,
    pub(super) ask: &'a Ask,
    pub(super) watcher: &'a dyn Watcher,
    pub(super) deadline: Instant,
}

/// What was heard in one part.
#[derive(Debug)]
struct Heard {
    language: Option<LanguageTag>,
    segments: Vec<Segment>,
}

impl Heard {
    /// How much was said, in bytes of text.
    fn length(&self) -> usize {
        self.segments.iter().map(|segment| segment.text.len()).sum()
    }
}

impl Listening<'_> {
    pub(super) async fn run(self, sources: &[&dyn MediaSource]) -> Result<Supplied, SupplyError> {
        let told = |refusal: Refusal| {
            tracing::debug!(video = %self.ask.video, ?refusal, "nothing was heard");
            refusal.error()
        };
        // What is found out before the service is asked does not show that it works.
        let before = |error: SupplyError| match error.was_asked() && !error.speaks_against_the_supplier() {
            true => error.only_the_video(),
            false => error,
        };
        let (media, sound) = self.at_hand(sources).await.map_err(told).map_err(before)?;
        self.listen(media, &sound).await.map_err(told)
    }

    /// The video and its sound, in which something can be heard.
    async fn at_hand(&self, sources: &[&dyn MediaSource]) -> Result<(Media, Sound), Refusal> {
        let (media, sound) = self.found(sources).await?;
        self.check_cancelled()?;
        match sound.loudness.is_silent(0, sound.loudness.length_ms()) {
            true => Err(Refusal::NoWords),
            false => Ok((media, sound)),
        }
    }

    async fn listen(&self, media: Media, sound: &Sound) -> Result<Supplied, Refusal> {
        let heard = match self.hear(sound, self.parts.endpoint.is_timed()).await {
            Err(refusal @ (Refusal::Untimed | Refusal::UntimedOnce)) => {
                if refusal == Refusal::Untimed {
                    self.parts.endpoint.set_untimed();
                }
                self.hear(sound, false).await?
            }
            heard => heard?,
        };
        self.supplied(media, sound.loudness.length_ms(), heard)
    }

    /// The sound, from the first source that has it. The first source's failure is told, since the platform's own
    /// words are in it, unless another one knows what the video is.
    async fn found(&self, sources: &[&dyn MediaSource]) -> Result<(Media, Sound), Refusal> {
        let mut told = None;
        for source in sources {
            match self.found_by(*source).await {
                Ok(found) => return Ok(found),
                Err(refusal) if refusal.is_about_one_source() => {
                    tracing::debug!(video = %self.ask.video, ?refusal, "no sound from this source");
                    told.get_or_insert(refusal);
                }
                Err(refusal) => return Err(refusal),
            }
        }
        Err(told.unwrap_or(Refusal::NotSound))
    }

    async fn found_by(&self, source: &dyn MediaSource) -> Result<(Media, Sound), Refusal> {
        let media = source.media(self.ask, self.watcher).await.map_err(Refusal::Platform)?;
        self.check_promises(&media)?;
        let sound = self.sound(&media).await?;
        Ok((media, sound))
    }

    /// Whether what the platform says of the video allows listening to it, before anything is fetched.
    fn check_promises(&self, media: &Media) -> Result<(), Refusal> {
        let max_ms = self.max_ms();
        match media.duration_ms {
            Some(length_ms) if length_ms > max_ms => {
                return Err(Refusal::TooLong { length_ms: Some(length_ms), max_ms });
            }
            _ => {}
        }
        match &media.language {
            Some(language) => self.check_wish(language),
            None => Ok(()),
        }
    }

    /// Whether a transcript in this language answers the wish. Nobody is made to speak another one: a service
    /// that is told the wrong language makes up words in it.
    fn check_wish(&self, language: &LanguageTag) -> Result<(), Refusal> {
        match &self.ask.wish {
            Wish::Language(wished) if !wished.matches(language) => Err(Refusal::NoLanguage(language.clone())),
            _ => Ok(()),
        }
    }

    /// Fetches the file, and reads its sound.
    async fn sound(&self, media: &Media) -> Result<Sound, Refusal> {
        let options = &self.parts.options;
        let no_room = |error: std::io::Error| {
            tracing::warn!(%error, "there is no temporary file");
            Refusal::NoRoom
        };
        let mut file = tokio::fs::File::from_std(tempfile::tempfile().map_err(no_room)?);
        let patience = self.deadline.duration_since(Instant::now());
        media
            .download(&self.parts.http, self.watcher, &mut file, options.max_download, patience)
            .await
            // The platform was asked where the file is, even where the file itself was not asked for.
            .map_err(|error| Refusal::Platform(error.after_asking()))?;
        self.check_cancelled()?;
        self.watcher.stage("decoding", 0, 0);
        // Not every system opens a file anew that a program is given as its input.
        file.rewind().await.map_err(no_room)?;
        Sound::read(&self.parts.ffmpeg, file.into_std().await, self.max_ms()).await
    }

    /// Hears all parts. When a language is wished the first part is heard alone: it tells whether the others are
    /// worth it.
    async fn hear(&self, sound: &Sound, is_timed: bool) -> Result<Vec<Heard>, Refusal> {
        let longest = u64::try_from(self.parts.options.part().as_millis()).unwrap_or(u64::MAX);
        let longest = if is_timed { longest } else { longest.min(UNTIMED_PART_MS) };
        let loudness = &sound.loudness;
        let mut parts = cutting::parts(&loudness.frames, loudness.length_ms(), longest);
        parts.retain(|part| !loudness.is_silent(part.start_ms, part.end_ms));
        let (done, of) = (AtomicU64::new(0), parts.len() as u64);
        self.watcher.stage("transcribing", 0, of);
        let hear = async |part: Part| {
            let heard = self.hear_part(sound, part, is_timed).await?;
            self.watcher.stage("transcribing", done.fetch_add(1, Ordering::Relaxed) + 1, of);
            Ok::<_, Refusal>((part.start_ms, heard))
        };
        let mut heard = Vec::with_capacity(parts.len());
        let mut parts = parts.into_iter();
        if matches!(self.ask.wish, Wish::Language(_)) {
            for part in parts.by_ref() {
                let first = hear(part).await?;
                // Where nobody speaks yet no language is heard either.
                let is_telling = first.1.length() > 0;
                let language = first.1.language.clone();
                heard.push(first);
                if is_telling {
                    self.check_wish(&language.unwrap_or_else(LanguageTag::unknown))?;
                    break;
                }
            }
        }
        // No more than may be sent: whoever listens to another video gets a turn between them.
        let at_once = usize::try_from(self.parts.options.concurrency).unwrap_or(usize::MAX);
        let mut under_way = pin!(stream::iter(parts).map(hear).buffer_unordered(at_once));
        while let Some(part) = under_way.next().await {
            heard.push(part?);
        }
        heard.sort_by_key(|(start_ms, _)| *start_ms);
        Ok(heard.into_iter().map(|(_, heard)| heard).collect())
    }

    async fn hear_part(&self, sound: &Sound, part: Part, is_timed: bool) -> Result<Heard, Refusal> {
        let endpoint = &self.parts.endpoint;
        let options = &self.parts.options;
        let _permit = endpoint.permit().await;
        self.check_cancelled()?;
        let body = sound.write(&self.parts.ffmpeg, part, options.format, options.max_bytes).await?;
        endpoint.transcribe(&body, is_timed, |said| believed(said, sound, part)).await
    }

    /// The transcript, once all parts are heard.
    fn supplied(&self, media: Media, length_ms: u64, heard: Vec<Heard>) -> Result<Supplied, Refusal> {
        let language = most_spoken(heard.iter().map(|heard| (heard.language.as_ref(), heard.length())));
        let segments: Vec<_> = heard.into_iter().flat_map(|heard| heard.segments).collect();
        let segments = invented::without_loops(segments);
        if segments.is_empty() {
            return Err(Refusal::NoWords);
        }
        // What the platform says of the language is a guess as good as any, where nobody listened for it.
        let language = language.or(media.language).unwrap_or_else(LanguageTag::unknown);
        self.check_wish(&language)?;
        let track = TrackInfo { original: true, ..TrackInfo::new(language, TrackKind::Generated) };
        let transcript = Transcript {
            video: self.ask.video.clone(),
            title: media.title,
            author: media.author,
            duration_ms: media.duration_ms.or(Some(length_ms)),
            track: track.clone(),
            source: NAME.to_owned(),
            segments,
        };
        Ok(Supplied { tracks: vec![transcript], known_tracks: vec![track] })
    }

    fn max_ms(&self) -> u64 {
        u64::try_from(self.parts.options.max_duration.as_millis()).unwrap_or(u64::MAX)
    }

    fn check_cancelled(&self) -> Result<(), Refusal> {
        if self.watcher.cancelled() { Err(Refusal::Cancelled) } else { Ok(()) }
    }
}

/// What is believed of an answer: words where there is sound, at times within their part.
fn believed(said: Said, sound: &Sound, part: Part) -> Result<Heard, Refusal> {
    let length_ms = part.length_ms();
    let mut segments = match said.pieces {
        Some(pieces) => {
            let pieces: Vec<_> = pieces.into_iter().filter(|piece| !invented::is_disowned(piece)).collect();
            times::placed(&pieces, length_ms)?
        }
        None if length_ms > UNTIMED_PART_MS && !said.text.trim().is_empty() => {
            return Err(if said.is_list_empty { Refusal::UntimedOnce } else { Refusal::Untimed });
        }
        // A short part says well enough when its words were spoken.
        None => sound
            .loudness
            .heard(part.start_ms, part.end_ms)
            .map(|(from, to)| Segment::new(said.text.trim(), from - part.start_ms, to - from))
            .into_iter()
            .collect(),
    };
    for segment in &mut segments {
        segment.start_ms += part.start_ms;
    }
    segments.retain(|segment| {
        // Times may be off by a little, so a little more is listened to.
        let around = (segment.start_ms.saturating_sub(SLIP_MS), segment.end_ms() + SLIP_MS);
        invented::has_words(&segment.text) && !sound.loudness.is_silent(around.0, around.1)
    });
    Ok(Heard { language: said.language, segments })
}

/// How far a service's times may be off without its words being taken for made up, in milliseconds.
const SLIP_MS: u64 = 1_000;
