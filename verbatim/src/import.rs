//! Import of existing transcripts into the archive, without network access.

use std::{mem, sync::Arc};

use transcript_core::{
    Error, Result,
    archive::{ArchivedTrack, FindOutcome, PutRequest, TrackSelector, content_digest},
    captions::{self, Occurrences},
    transcript::{LanguageTag, TrackInfo, TrackKind, Transcript, VideoMetadata, best_track},
    video::VideoId,
};

use crate::{ArchiveTools, ImportDraft};

/// `source` of transcripts that name none.
const SOURCE: &str = "import";

/// Captions to import, with their metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportRequest {
    /// Link to the video. A short link must be known, since there is no network access.
    pub link: String,
    /// The captions in any format that [`ImportDraft::read`] knows; one transcript.
    pub captions: Vec<u8>,
    /// Language as a BCP 47 tag; `None`: the one that the header of the captions names.
    ///
    /// Of TTML in several languages, the one that matches it is read.
    pub language: Option<String>,
    /// Title of the video.
    pub title: Option<String>,
    /// Publisher of the video.
    pub author: Option<String>,
    /// Whether the captions are machine-generated.
    pub generated: bool,
    /// Whether the captions replace an archived transcript.
    pub replace: bool,
}

/// Request to import a draft.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportDraftRequest {
    /// The transcript and its metadata; its video must be set.
    pub draft: ImportDraft,
    /// Whether the draft replaces an archived transcript.
    pub replace: bool,
    /// Whether the import only reports what it would do.
    pub dry_run: bool,
}

/// Outcome of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportOutcome {
    /// The video.
    pub video: VideoId,
    /// The language.
    pub language: LanguageTag,
    /// Number of segments.
    pub segments: u64,
    /// Unreadable characters, which are U+FFFD in the segments.
    pub unreadable: Occurrences,
    /// Cues with text that are left out: their times are unreadable, or they are in another language.
    pub left_out: Occurrences,
    /// Name of the encoding of the body if it is not Unicode: the one that XML declares, else a guess.
    pub encoding: Option<&'static str>,
    /// Effect on each selector that the captions answer.
    pub selectors: Vec<SelectorImport>,
    /// Effect of an imported withdrawal.
    pub withdrawal: Option<ImportEffect>,
}

impl ImportOutcome {
    /// Strongest effect over all selectors; `Unchanged` without selectors.
    ///
    /// After `Added` and `Replaced`, lookups return the imported text.
    pub fn effect(&self) -> ImportEffect {
        [ImportEffect::Added, ImportEffect::Replaced, ImportEffect::Kept]
            .into_iter()
            .find(|effect| self.selectors.iter().any(|selector| selector.effect == *effect))
            .unwrap_or(ImportEffect::Unchanged)
    }
}

/// Effect of an import on one selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectorImport {
    /// The selector: `default`, a language, or `translation:` and a language.
    pub selector: String,
    /// The effect.
    pub effect: ImportEffect,
}

/// What an import changed for a selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportEffect {
    /// The selector had no transcript and has this one now.
    Added,
    /// The selector had another transcript and has this one now.
    Replaced,
    /// The selector had another transcript and keeps it.
    Kept,
    /// The selector had this transcript already.
    Unchanged,
}

impl ArchiveTools {
    /// Imports captions into the archive, where they are found like any other transcript.
    ///
    /// They answer their own language, and also the default if they are the best known track of the video.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] if the link, the language or the captions are invalid;
    /// [`transcript_core::ErrorKind::Conflict`] if the video is withdrawn; errors of the storage.
    ///
    /// ```
    /// use verbatim::{ImportRequest, Options, Verbatim};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), verbatim::Error> {
    /// let verbatim = Verbatim::open(Options::default()).await?;
    /// let import = ImportRequest {
    ///     link: "https://youtu.be/dQw4w9WgXcQ".to_owned(),
    ///     captions: b"1\n00:00:01,500 --> 00:00:03,000\nIt is so quiet here.\n".to_vec(),
    ///     language: Some("en".to_owned()),
    ///     ..ImportRequest::default()
    /// };
    /// verbatim.tools().import(import).await?;
    ///
    /// let transcript = verbatim.get("https://www.youtube.com/watch?v=dQw4w9WgXcQ").await?.into_transcript()?;
    /// assert_eq!(transcript.segments[0].text, "It is so quiet here.");
    /// assert_eq!(transcript.segments[0].start_ms, 1_500);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn import(&self, request: ImportRequest) -> Result<ImportOutcome> {
        let video = self.known_video(&request.link).await?;
        let language = request.language.as_deref().map(LanguageTag::parse).transpose()?;
        let mut drafts = ImportDraft::read_in(&request.captions, language.as_ref())?;
        let (Some(mut draft), None) = (drafts.pop(), drafts.pop()) else {
            return Err(Error::invalid(
                "the captions contain several transcripts: import one per video and language",
            ));
        };
        draft.set_video(video)?;
        if let Some(language) = language {
            draft.set_language(language);
        }
        if request.generated {
            draft.kind = Some(TrackKind::Generated);
        }
        draft.set_metadata(request.title.as_deref(), request.author.as_deref())?;
        self.import_draft(ImportDraftRequest { draft, replace: request.replace, dry_run: false }).await
    }

    /// Imports all transcripts of a body that names their videos: exports, and the JSON of the APIs.
    ///
    /// # Errors
    /// As [`ArchiveTools::import`]; `Invalid` also if a transcript has no video. Those before it are imported.
    pub async fn import_all(&self, body: &[u8], replace: bool) -> Result<Vec<ImportOutcome>> {
        let mut outcomes = Vec::new();
        for draft in ImportDraft::read(body)? {
            let request = ImportDraftRequest { draft, replace, dry_run: false };
            outcomes.push(self.import_draft(request).await?);
        }
        Ok(outcomes)
    }

    /// Imports a draft into the archive, or reports what that would do.
    ///
    /// It answers the selectors that it names. A draft without selectors answers its own language, and also the default
    /// if it is the best known track of the video, even in place of an import in another language, which still answers
    /// its own. Without `replace`, its metadata only fills what is unknown: an old export would otherwise replace newer
    /// metadata, which has no revisions.
    ///
    /// # Errors
    /// As [`ArchiveTools::import`]; `Invalid` also if the draft has no video.
    pub async fn import_draft(&self, request: ImportDraftRequest) -> Result<ImportOutcome> {
        let ImportDraftRequest { mut draft, replace, dry_run } = request;
        let (unreadable, left_out) = (mem::take(&mut draft.unreadable), mem::take(&mut draft.left_out));
        let encoding = draft.encoding;
        let Some(video) = draft.video.clone() else {
            return Err(Error::invalid("neither the content nor the file name names the video"));
        };
        if draft.withdrawn {
            return self.import_withdrawal(video, dry_run).await;
        }
        let named_selectors = draft.selectors.clone();
        let archived = self.archive.tracks(&video).await?;
        let parser_version = draft.parser_version.unwrap_or(captions::PARSER_VERSION);
        let mut tracks = draft.known_tracks.clone();
        let mut metadata = mem::take(&mut draft.metadata);
        if !replace {
            metadata = self.known_metadata(&video, &archived).await?.or(&metadata);
        }
        let mut known: Vec<TrackInfo> = archived.iter().map(|archived| archived.track.clone()).collect();
        let transcript = transcript(&video, draft)?;
        tracks.push(transcript.track.clone());
        for track in tracks {
            if !known.iter().any(|known| known.is_same(&track)) {
                known.push(track);
            }
        }
        let is_named = !named_selectors.is_empty();
        let selectors = if is_named { named_selectors } else { track_selectors(&transcript.track, &known) };
        let before = self.states(&video, &selectors).await?;
        let digest = content_digest(&transcript);
        let language = transcript.track.language.clone();
        let segments = transcript.segments.len() as u64;
        let mut put = PutRequest {
            video: video.clone(),
            selectors: selectors.clone(),
            transcript: Arc::new(transcript),
            known_tracks: known,
            metadata,
            parser_version,
            replace,
            now: self.now(),
        };
        put.check()?;
        let replace = replace || (!is_named && self.moves_default(&put, &archived, &before, &digest).await?);
        put.replace = replace;
        if !dry_run {
            self.put(put, &before).await?;
        }
        let selectors = selectors.iter().zip(before).map(|(selector, before)| SelectorImport {
            selector: selector.as_str().to_owned(),
            effect: effect(&before, &digest, replace),
        });
        let (selectors, withdrawal) = (selectors.collect(), None);
        Ok(ImportOutcome { video, language, segments, unreadable, left_out, encoding, selectors, withdrawal })
    }

    /// Withdraws a video that was withdrawn in the archive that the draft comes from.
    async fn import_withdrawal(&self, video: VideoId, dry_run: bool) -> Result<ImportOutcome> {
        let is_withdrawn = match self.archive.find(&video, &TrackSelector::Default, self.now()).await {
            Err(error) if error.is_unreadable() => false,
            found => found? == FindOutcome::Withdrawn,
        };
        if !is_withdrawn && !dry_run {
            self.archive.withdraw(&video, true, self.now()).await?;
        }
        Ok(ImportOutcome {
            video,
            language: LanguageTag::unknown(),
            segments: 0,
            unreadable: Occurrences::default(),
            left_out: Occurrences::default(),
            encoding: None,
            selectors: Vec::new(),
            withdrawal: Some(if is_withdrawn { ImportEffect::Unchanged } else { ImportEffect::Added }),
        })
    }

    /// Whether the track becomes the default in place of an import in another language.
    ///
    /// The order of the imports would decide otherwise. Nothing is lost: that import still answers its language, and
    /// no other selector changes. A default that was fetched stays.
    async fn moves_default(
        &self,
        put: &PutRequest,
        archived: &[ArchivedTrack],
        before: &[SelectorState],
        digest: &[u8],
    ) -> Result<bool> {
        let track = &put.transcript.track;
        let states = put.selectors.iter().zip(before);
        let kept = states.filter(|(_, before)| effect(before, digest, put.replace) == ImportEffect::Kept);
        let is_default_kept = kept.map(|(selector, _)| selector).eq([&TrackSelector::Default]);
        let default = archived.iter().find(|archived| archived.selectors.contains(&TrackSelector::Default));
        let answers_other_language = default.is_some_and(|default| {
            default.selectors.len() > 1 && default.track.language.primary() != track.language.primary()
        });
        if !is_default_kept
            || !answers_other_language
            || !is_best(track, &put.known_tracks, &TrackSelector::Default)
        {
            return Ok(false);
        }
        let found = self.archive.find(&put.video, &TrackSelector::Default, put.now).await?;
        Ok(matches!(found, FindOutcome::Transcript(stored) if stored.transcript.source == SOURCE))
    }

    /// Stores the transcript; it replaces one that cannot be read, whatever the request says.
    async fn put(&self, put: PutRequest, before: &[SelectorState]) -> Result<()> {
        let states = put.selectors.iter().cloned().zip(before);
        let (unreadable, others): (Vec<_>, Vec<_>) =
            states.partition(|(_, before)| !put.replace && matches!(before, SelectorState::Unreadable));
        for (part, replace) in [(unreadable, true), (others, put.replace)] {
            let selectors: Vec<_> = part.into_iter().map(|(selector, _)| selector).collect();
            if !selectors.is_empty() {
                self.archive.put(PutRequest { selectors, replace, ..put.clone() }).await?;
            }
        }
        Ok(())
    }

    /// The metadata of an archived video; the default if none of its transcripts can be read.
    ///
    /// Best effort: metadata that a concurrent fetch stores after this is read may be replaced.
    async fn known_metadata(&self, video: &VideoId, tracks: &[ArchivedTrack]) -> Result<VideoMetadata> {
        for selector in tracks.iter().filter_map(|track| track.selectors.first()) {
            match self.archive.find(video, selector, self.now()).await {
                Ok(FindOutcome::Transcript(stored)) => return Ok(stored.details.metadata.clone()),
                Ok(FindOutcome::Absence(_) | FindOutcome::Withdrawn | FindOutcome::NotFound) => {}
                Err(error) if error.is_unreadable() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(VideoMetadata::default())
    }

    /// What is stored for each selector.
    ///
    /// # Errors
    /// `Conflict` if the video is withdrawn.
    async fn states(&self, video: &VideoId, selectors: &[TrackSelector]) -> Result<Vec<SelectorState>> {
        let mut states = Vec::with_capacity(selectors.len());
        for selector in selectors {
            states.push(match self.archive.find(video, selector, self.now()).await {
                Ok(FindOutcome::Transcript(stored)) => SelectorState::Stored(stored.content_sha256),
                Ok(FindOutcome::Absence(_) | FindOutcome::NotFound) => SelectorState::Missing,
                Ok(FindOutcome::Withdrawn) => {
                    let message = "the video was withdrawn by the operator, so nothing of it can be imported";
                    return Err(Error::conflict(message));
                }
                Err(error) if error.is_unreadable() => SelectorState::Unreadable,
                Err(error) => return Err(error),
            });
        }
        Ok(states)
    }
}

/// What a selector has before an import.
enum SelectorState {
    Missing,
    /// A transcript with this digest.
    Stored(Vec<u8>),
    /// A transcript that cannot be read.
    Unreadable,
}

/// Effect of storing a transcript with this digest on a selector that has `before`.
fn effect(before: &SelectorState, digest: &[u8], replace: bool) -> ImportEffect {
    match before {
        SelectorState::Missing => ImportEffect::Added,
        SelectorState::Unreadable => ImportEffect::Replaced,
        SelectorState::Stored(before) if before == digest => ImportEffect::Unchanged,
        SelectorState::Stored(_) if replace => ImportEffect::Replaced,
        SelectorState::Stored(_) => ImportEffect::Kept,
    }
}

fn transcript(video: &VideoId, draft: ImportDraft) -> Result<Transcript> {
    let transcript = Transcript {
        video: video.clone(),
        title: draft.title,
        author: draft.author,
        duration_ms: draft.duration_ms,
        track: TrackInfo {
            language: draft.language.unwrap_or_else(LanguageTag::unknown),
            kind: draft.kind.unwrap_or(match draft.is_recognised {
                true => TrackKind::Generated,
                false => TrackKind::Human,
            }),
            name: draft.name,
            original: draft.original,
        },
        source: draft.source.unwrap_or_else(|| SOURCE.to_owned()),
        segments: draft.segments,
    };
    transcript.check().map(|()| transcript)
}

/// Selectors that a track answers.
///
/// Its own language always; its language without a region and the default if it is the best known track.
fn track_selectors(track: &TrackInfo, known: &[TrackInfo]) -> Vec<TrackSelector> {
    let mut selectors = vec![track.selector()];
    let primary = LanguageTag::parse(track.language.primary()).map(TrackSelector::Language);
    for selector in [Ok(TrackSelector::Default), primary].into_iter().flatten() {
        if !selectors.contains(&selector) && is_best(track, known, &selector) {
            selectors.push(selector);
        }
    }
    selectors
}

/// Whether a track is the best of the known ones for a selector.
fn is_best(track: &TrackInfo, known: &[TrackInfo], selector: &TrackSelector) -> bool {
    best_track(known, selector).and_then(|index| known.get(index)).is_some_and(|best| best.is_same(track))
}

#[cfg(test)]
mod tests;
