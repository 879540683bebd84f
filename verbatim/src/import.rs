//! Captions that somebody has, into the archive.

use transcript_core::{
    Error, Result,
    archive::{Found, Keep, StoredTranscript, Wish, content_digest},
    captions,
    transcript::{LanguageTag, TrackInfo, TrackKind, Transcript, best_track},
    video::VideoId,
};

use crate::Verbatim;

/// The `source` of what was imported.
const SOURCE: &str = "import";
/// The longest title or author, in characters.
const TEXT_MAX: usize = 500;

/// Captions to import, and what they are of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Import {
    /// The link to the video.
    pub link: String,
    /// The captions in any format that is known: WebVTT, SRT, TTML, or YouTube's own.
    pub captions: Vec<u8>,
    /// Their language as a BCP 47 tag, where it is known.
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

/// What was imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The video.
    pub video: VideoId,
    /// The language.
    pub language: LanguageTag,
    /// How many segments the captions have.
    pub segments: u64,
    /// What the import did for each wish that the captions can answer.
    pub wishes: Vec<ImportedWish>,
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
        let video = match self.video(&ask.link).await? {
            Ok(video) => video,
            Err(missing) => return Err(Error::unavailable(missing.message)),
        };
        let transcript = transcript(&video, &ask)?;
        let mut known: Vec<TrackInfo> =
            self.archive().tracks(&video).await?.into_iter().map(|archived| archived.track).collect();
        if !known.contains(&transcript.track) {
            known.push(transcript.track.clone());
        }
        let wishes = wishes(&transcript.track, &known);
        let before = self.stored(&video, &wishes).await?;
        let digest = content_digest(&transcript);
        let language = transcript.track.language.clone();
        let segments = transcript.segments.len() as u64;
        self.archive()
            .keep(Keep {
                video: video.clone(),
                wishes: wishes.clone(),
                transcript,
                known_tracks: known,
                parser_version: captions::PARSER_VERSION,
                replace: ask.replace,
                now: self.now(),
            })
            .await?;
        let after = self.stored(&video, &wishes).await?;
        let is_ours = |stored: &Option<StoredTranscript>| {
            stored.as_ref().is_some_and(|stored| stored.content_sha256 == digest)
        };
        let effects =
            before.iter().zip(&after).map(|(before, after)| match (is_ours(before), is_ours(after)) {
                (true, _) => Effect::Unchanged,
                (false, false) => Effect::Kept,
                (false, true) if before.is_some() => Effect::Replaced,
                (false, true) => Effect::Added,
            });
        let wishes = wishes
            .iter()
            .zip(effects)
            .map(|(wish, effect)| ImportedWish { wish: wish.as_str().to_owned(), effect })
            .collect();
        Ok(Imported { video, language, segments, wishes })
    }

    /// What each wish has in the archive.
    async fn stored(&self, video: &VideoId, wishes: &[Wish]) -> Result<Vec<Option<StoredTranscript>>> {
        let mut stored = Vec::with_capacity(wishes.len());
        for wish in wishes {
            stored.push(match self.archive().find(video, wish, self.now()).await? {
                Found::Transcript(transcript) => Some(transcript),
                Found::Absent(_) | Found::Withdrawn | Found::Nothing => None,
            });
        }
        Ok(stored)
    }
}

fn transcript(video: &VideoId, ask: &Import) -> Result<Transcript> {
    let language = ask.language.as_deref().map_or(Ok(LanguageTag::unknown()), LanguageTag::parse)?;
    let kind = if ask.generated { TrackKind::Generated } else { TrackKind::Human };
    let segments = captions::parse(&ask.captions).map_err(|error| Error::invalid(error.to_string()))?;
    Ok(Transcript {
        video: video.clone(),
        title: text("title", ask.title.as_deref())?,
        author: text("author", ask.author.as_deref())?,
        duration_ms: None,
        track: TrackInfo::new(language, kind),
        source: SOURCE.to_owned(),
        segments,
    })
}

fn text(name: &str, text: Option<&str>) -> Result<Option<String>> {
    let text = text.map(str::trim).filter(|text| !text.is_empty());
    match text {
        Some(text) if text.chars().count() > TEXT_MAX => {
            Err(Error::invalid(format!("the {name} is too long: at most {TEXT_MAX} characters")))
        }
        text => Ok(text.map(str::to_owned)),
    }
}

/// The wishes that a track answers: its own language always; its language without a region and the
/// default where it is the best of the known tracks.
fn wishes(track: &TrackInfo, known: &[TrackInfo]) -> Vec<Wish> {
    let is_best = |wish: &Wish| best_track(known, wish).is_some_and(|place| known[place] == *track);
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
