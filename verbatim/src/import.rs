//! Transcripts that somebody has, into the archive. Nobody is asked for anything.

use std::{mem, sync::Arc};

use transcript_core::{
    Error, ErrorKind, Result, Retry,
    archive::{Found, Keep, StoredTranscript, Wish, content_digest},
    captions::{self, Occurrences},
    transcript::{LanguageTag, TrackInfo, TrackKind, Transcript, best_track},
    video::VideoId,
};

use crate::{Draft, Verbatim};

/// The `source` of what does not say where it comes from.
const SOURCE: &str = "import";

/// Captions to import, and what they are of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Import {
    /// The link to the video. A short link must be known already: nobody is asked.
    pub link: String,
    /// The captions in any format that [`Draft::read`] knows; one transcript.
    pub captions: Vec<u8>,
    /// Their language as a BCP 47 tag, where it is known; otherwise the one that their header names.
    pub language: Option<String>,
    /// The video's title.
    pub title: Option<String>,
    /// Who published the video.
    pub author: Option<String>,
    /// Whether a machine recognised the words.
    pub generated: bool,
    /// Whether they replace what is archived.
    pub replace: bool,
}

/// A draft to take into the archive.
#[derive(Clone, Debug, PartialEq)]
pub struct Admit {
    /// The transcript and what is known of it; its video must be known.
    pub draft: Draft,
    /// Whether it replaces what is archived.
    pub replace: bool,
    /// Whether it is only told what would be done.
    pub dry_run: bool,
}

/// What was imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The video.
    pub video: VideoId,
    /// The language.
    pub language: LanguageTag,
    /// How many segments the captions have.
    pub segments: u64,
    /// The characters that could not be read, and are U+FFFD in the segments.
    pub unreadable: Occurrences,
    /// The cues with words that are no segments, since their times could not be read.
    pub left_out: Occurrences,
    /// What the import did for each wish that the captions can answer.
    pub wishes: Vec<ImportedWish>,
    /// What became of a withdrawal that was imported in place of a transcript.
    pub withdrawal: Option<Effect>,
}

impl Imported {
    /// What the import did, of all wishes together: whoever imports wants to know whether the words are found from now on.
    /// Without a wish it did nothing.
    pub fn effect(&self) -> Effect {
        [Effect::Added, Effect::Replaced, Effect::Kept]
            .into_iter()
            .find(|effect| self.wishes.iter().any(|wish| wish.effect == *effect))
            .unwrap_or(Effect::Unchanged)
    }
}

/// What an import did for one wish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedWish {
    /// The wish: `default`, or a language.
    pub wish: String,
    /// What became of it.
    pub effect: Effect,
}

/// What an import did for a wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It had no transcript, and has this one now.
    Added,
    /// It had another transcript, and has this one now.
    Replaced,
    /// It had another transcript, and keeps it.
    Kept,
    /// It had this very transcript already.
    Unchanged,
}

impl Verbatim {
    /// Imports captions into the archive, where they are found from then on like any other transcript.
    ///
    /// They answer their own language, and the default too when they are the best of the tracks that the
    /// video is known to have.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] when the link, the language or the captions are none;
    /// [`transcript_core::ErrorKind::Conflict`] when the video was withdrawn; the storage's faults.
    pub async fn import(&self, ask: Import) -> Result<Imported> {
        let video = self.known_video(&ask.link).await?;
        let language = ask.language.as_deref().map(LanguageTag::parse).transpose()?;
        let mut drafts = Draft::read(&ask.captions)?;
        let (Some(mut draft), None) = (drafts.pop(), drafts.pop()) else {
            return Err(Error::invalid("several transcripts cannot be of one video in one language"));
        };
        draft.be_of(video)?;
        if let Some(language) = language {
            draft.be_in(language);
        }
        if ask.generated {
            draft.kind = Some(TrackKind::Generated);
        }
        draft.describe(ask.title.as_deref(), ask.author.as_deref())?;
        self.admit(Admit { draft, replace: ask.replace, dry_run: false }).await
    }

    /// Takes a draft into the archive, or tells what that would do.
    ///
    /// It answers the wishes that it names; a draft that names none answers its own language, and the
    /// default too when it is the best of the tracks that the video is known to have.
    ///
    /// # Errors
    /// As [`Verbatim::import`]; `Invalid` also when the draft's video is not known.
    pub async fn admit(&self, ask: Admit) -> Result<Imported> {
        let Admit { mut draft, replace, dry_run } = ask;
        let (unreadable, left_out) = (mem::take(&mut draft.unreadable), mem::take(&mut draft.left_out));
        let Some(video) = draft.video.clone() else {
            return Err(Error::invalid(
                "it does not say which video it is of, and neither does the file's name",
            ));
        };
        if draft.withdrawn {
            return self.admit_withdrawal(video, dry_run).await;
        }
        let named_wishes = draft.wishes.clone();
        let mut known: Vec<TrackInfo> =
            self.archive().tracks(&video).await?.into_iter().map(|archived| archived.track).collect();
        let parser_version = draft.parser_version.unwrap_or(captions::PARSER_VERSION);
        let mut told = draft.known_tracks.clone();
        let transcript = transcript(&video, draft)?;
        told.push(transcript.track.clone());
        for track in told {
            if !known.iter().any(|known| known.is_same(&track)) {
                known.push(track);
            }
        }
        let wishes = if named_wishes.is_empty() { wishes(&transcript.track, &known) } else { named_wishes };
        let before = self.stored(&video, &wishes).await?;
        let digest = content_digest(&transcript);
        let language = transcript.track.language.clone();
        let segments = transcript.segments.len() as u64;
        let keep = Keep {
            video: video.clone(),
            wishes: wishes.clone(),
            transcript: Arc::new(transcript),
            known_tracks: known,
            parser_version,
            replace,
            now: self.now(),
        };
        keep.check()?;
        if !dry_run {
            self.archive().keep(keep).await?;
        }
        let wishes = wishes.iter().zip(before).map(|(wish, before)| ImportedWish {
            wish: wish.as_str().to_owned(),
            effect: effect(before.as_ref(), &digest, replace),
        });
        let (wishes, withdrawal) = (wishes.collect(), None);
        Ok(Imported { video, language, segments, unreadable, left_out, wishes, withdrawal })
    }

    /// Takes a video down that was taken down in the archive that the draft comes from.
    async fn admit_withdrawal(&self, video: VideoId, dry_run: bool) -> Result<Imported> {
        let found = self.archive().find(&video, &Wish::Default, self.now()).await?;
        let is_withdrawn = found == Found::Withdrawn;
        if !is_withdrawn && !dry_run {
            self.archive().withdraw(&video, true, self.now()).await?;
        }
        Ok(Imported {
            video,
            language: LanguageTag::unknown(),
            segments: 0,
            unreadable: Occurrences::default(),
            left_out: Occurrences::default(),
            wishes: Vec::new(),
            withdrawal: Some(if is_withdrawn { Effect::Unchanged } else { Effect::Added }),
        })
    }

    /// What each wish has in the archive.
    ///
    /// # Errors
    /// Conflict when the video was withdrawn.
    async fn stored(&self, video: &VideoId, wishes: &[Wish]) -> Result<Vec<Option<StoredTranscript>>> {
        let mut stored = Vec::with_capacity(wishes.len());
        for wish in wishes {
            stored.push(match self.archive().find(video, wish, self.now()).await? {
                Found::Transcript(transcript) => Some(transcript),
                Found::Absent(_) | Found::Nothing => None,
                Found::Withdrawn => {
                    let message = "the video was withdrawn by the operator, so nothing of it is archived";
                    return Err(Error::new(ErrorKind::Conflict, Retry::Never, message));
                }
            });
        }
        Ok(stored)
    }
}

/// What keeping a transcript with this digest does for a wish that has `before`.
fn effect(before: Option<&StoredTranscript>, digest: &[u8], replace: bool) -> Effect {
    match before {
        None => Effect::Added,
        Some(before) if before.content_sha256 == digest => Effect::Unchanged,
        Some(_) if replace => Effect::Replaced,
        Some(_) => Effect::Kept,
    }
}

fn transcript(video: &VideoId, draft: Draft) -> Result<Transcript> {
    let transcript = Transcript {
        video: video.clone(),
        title: draft.title,
        author: draft.author,
        duration_ms: draft.duration_ms,
        track: TrackInfo {
            language: draft.language.unwrap_or_else(LanguageTag::unknown),
            kind: draft.kind.unwrap_or(TrackKind::Human),
            name: draft.name,
            original: draft.original,
        },
        source: draft.source.unwrap_or_else(|| SOURCE.to_owned()),
        segments: draft.segments,
    };
    transcript.check().map(|()| transcript)
}

/// The wishes that a track answers: its own language always; its language without a region and the
/// default where it is the best of the known tracks.
fn wishes(track: &TrackInfo, known: &[TrackInfo]) -> Vec<Wish> {
    let is_best = |wish: &Wish| best_track(known, wish).is_some_and(|place| known[place].is_same(track));
    let own = Wish::Language(track.language.clone());
    let mut wishes = vec![own];
    let primary = LanguageTag::parse(track.language.primary()).map(Wish::Language);
    for wish in [Ok(Wish::Default), primary].into_iter().flatten() {
        if !wishes.contains(&wish) && is_best(&wish) {
            wishes.push(wish);
        }
    }
    wishes
}

#[cfg(test)]
mod tests;
