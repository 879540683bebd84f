//! Transcription of one video, from its URL to its segments.

use std::{
    pin::pin,
    sync::atomic::{AtomicU64, Ordering},
};

use futures_util::{StreamExt as _, stream};
use tokio::{io::AsyncSeekExt as _, time::Instant};
use transcript_core::{
    supplier::{SupplyError, SupplyMonitor, SupplyOutput, SupplyRequest},
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript, remove_unfit_words},
    video::Platform,
};

use super::{
    NAME, SpeechToText,
    audio::DecodedAudio,
    chunking::{self, AudioChunk},
    failure::SpeechFailure,
    finished_chunks::{AudioKey, ChunkResult},
    hallucination,
    language::most_spoken,
    response::Transcription,
    timestamps,
};
use crate::social::{Media, MediaSource};

/// Maximum chunk length for a service without times, in milliseconds.
///
/// The text of a chunk then has the time of the whole chunk.
const UNTIMED_CHUNK_MS: u64 = 20_000;

/// Maximum length of the first chunk if the request names a language: models detect it in the first 30 seconds.
const LANGUAGE_CHUNK_MS: u64 = 60_000;

/// The transcription of one video.
pub(super) struct TranscriptionJob<'a> {
    pub(super) speech: &'a SpeechToText,
    pub(super) request: &'a SupplyRequest,
    pub(super) monitor: &'a dyn SupplyMonitor,
    pub(super) deadline: Instant,
}

impl TranscriptionJob<'_> {
    pub(super) async fn run(self, sources: &[&dyn MediaSource]) -> Result<SupplyOutput, SupplyError> {
        let to_error = |failure: SpeechFailure| {
            tracing::debug!(video = %self.request.video, ?failure, "transcription failed");
            failure.error()
        };
        // An outcome before the service is called does not show that the service works.
        let before = |error: SupplyError| match error.was_attempted() && !error.counts_against_supplier() {
            true => error.video_only(),
            false => error,
        };
        let (media, audio) = self.load_audible(sources).await.map_err(to_error).map_err(before)?;
        self.transcribe(media, &audio).await.map_err(to_error)
    }

    /// The video and its decoded audio; an error if the audio is silent.
    async fn load_audible(
        &self,
        sources: &[&dyn MediaSource],
    ) -> Result<(Media, DecodedAudio), SpeechFailure> {
        let (media, audio) = self.find_audio(sources).await?;
        self.check_cancelled()?;
        match audio.loudness.is_silent(0, audio.loudness.length_ms()) {
            true => Err(SpeechFailure::NoSpeech),
            false => Ok((media, audio)),
        }
    }

    async fn transcribe(&self, media: Media, audio: &DecodedAudio) -> Result<SupplyOutput, SpeechFailure> {
        let stated = media.language.as_ref();
        let results = match self.transcribe_chunks(audio, stated, self.speech.endpoint.is_timed()).await {
            Err(failure @ (SpeechFailure::Untimed | SpeechFailure::UntimedOnce)) => {
                if failure == SpeechFailure::Untimed {
                    self.speech.endpoint.set_untimed();
                }
                self.transcribe_chunks(audio, stated, false).await?
            }
            results => results?,
        };
        let supplied = self.supplied(media, audio.loudness.length_ms(), results)?;
        self.speech.finished.remove(&self.request.video);
        Ok(supplied)
    }

    /// The audio from the first source that has it.
    ///
    /// If all fail, the error of the first source is returned, since it contains the platform's own message, unless
    /// another source knows the state of the video.
    async fn find_audio(&self, sources: &[&dyn MediaSource]) -> Result<(Media, DecodedAudio), SpeechFailure> {
        let mut first_failure = None;
        for source in sources {
            match self.find_audio_from(*source).await {
                Ok(found) => return Ok(found),
                Err(failure) if failure.is_about_one_source() => {
                    tracing::debug!(video = %self.request.video, ?failure, "source returned no audio");
                    first_failure.get_or_insert(failure);
                }
                Err(failure) => return Err(failure),
            }
        }
        Err(first_failure.unwrap_or(SpeechFailure::NotSound))
    }

    async fn find_audio_from(
        &self,
        source: &dyn MediaSource,
    ) -> Result<(Media, DecodedAudio), SpeechFailure> {
        let media = source.media(self.request, self.monitor).await.map_err(SpeechFailure::Platform)?;
        self.check_metadata(&media)?;
        let audio = self.download_audio(&media).await?;
        Ok((media, audio))
    }

    /// Checks the metadata of the video against the limits, before the download.
    fn check_metadata(&self, media: &Media) -> Result<(), SpeechFailure> {
        let max_ms = self.max_ms();
        match media.duration_ms {
            Some(length_ms) if length_ms > max_ms => {
                return Err(SpeechFailure::TooLong { length_ms: Some(length_ms), max_ms });
            }
            _ => {}
        }
        match &media.language {
            Some(language) => self.check_language(language),
            None if self.speech.endpoint.names_language() => Ok(()),
            None => self.check_language(&LanguageTag::unknown()),
        }
    }

    /// Whether a transcript in this language matches the selector.
    ///
    /// The service is not given a language: with a wrong one it invents text in it.
    fn check_language(&self, language: &LanguageTag) -> Result<(), SpeechFailure> {
        match self.request.selector.language() {
            Some(selected) if !selected.matches(language) => Err(SpeechFailure::NoLanguage(language.clone())),
            _ => Ok(()),
        }
    }

    /// Downloads the file and decodes its audio.
    async fn download_audio(&self, media: &Media) -> Result<DecodedAudio, SpeechFailure> {
        let options = &self.speech.options;
        let disk_full = |error: std::io::Error| {
            tracing::warn!(%error, "temporary file failed");
            SpeechFailure::NoRoom
        };
        let mut file = tokio::fs::File::from_std(tempfile::tempfile().map_err(disk_full)?);
        let timeout = self.deadline.duration_since(Instant::now());
        let bytes = media
            .download(&self.speech.http, self.monitor, &mut file, options.max_download, timeout)
            .await
            // The platform was called for the URL, even if the file itself was not requested.
            .map_err(|error| SpeechFailure::Platform(error.mark_attempted()))?;
        if is_cut_off(media, bytes) {
            return Err(SpeechFailure::NotSound);
        }
        self.check_cancelled()?;
        self.monitor.report_progress("decoding", 0, 0);
        // Not every system opens the input of a program again from its start.
        file.rewind().await.map_err(disk_full)?;
        let file = file.into_std().await;
        DecodedAudio::read(&self.speech.ffmpeg, file, media.duration_ms, self.max_ms()).await
    }

    /// Transcribes all chunks, but those that an earlier attempt at this audio has finished.
    ///
    /// If the selector has a language, the first chunk with text is transcribed alone, to check its language before
    /// the others are sent. If the service names none, it is the stated one.
    async fn transcribe_chunks(
        &self,
        audio: &DecodedAudio,
        stated: Option<&LanguageTag>,
        is_timed: bool,
    ) -> Result<Vec<ChunkResult>, SpeechFailure> {
        let has_selected_language = self.request.selector.language().is_some();
        let mut chunks = self.split(audio, is_timed, has_selected_language);
        let loudness = &audio.loudness;
        chunks.retain(|chunk| !loudness.is_silent(chunk.start_ms, chunk.end_ms));
        let key = AudioKey::new(&self.request.video, loudness, is_timed);
        let (done, of) = (AtomicU64::new(0), chunks.len() as u64);
        self.monitor.report_progress("transcribing", 0, of);
        let run_chunk = async |chunk: AudioChunk| {
            let results = match self.speech.finished.find(&key, chunk) {
                Some(finished) => finished,
                None => {
                    let results = self.transcribe_chunk(audio, chunk, is_timed).await?;
                    self.speech.finished.put(&key, chunk, results.clone());
                    results
                }
            };
            self.monitor.report_progress("transcribing", done.fetch_add(1, Ordering::Relaxed) + 1, of);
            Ok::<_, SpeechFailure>((chunk.start_ms, results))
        };
        let mut results = Vec::with_capacity(chunks.len());
        let mut chunks = chunks.into_iter();
        if has_selected_language {
            for chunk in chunks.by_ref() {
                let first = run_chunk(chunk).await?;
                // A chunk without text has no language either.
                let has_text = first.1.length() > 0;
                let language = first.1.language.clone().or_else(|| stated.cloned());
                results.push(first);
                if has_text {
                    self.check_language(&language.unwrap_or_else(LanguageTag::unknown))?;
                    break;
                }
            }
        }
        // Starting no more than the concurrency limit gives other videos their share of the permits.
        let concurrency = usize::try_from(self.speech.options.concurrency).unwrap_or(usize::MAX);
        let mut running = pin!(stream::iter(chunks).map(run_chunk).buffer_unordered(concurrency));
        while let Some(chunk) = running.next().await {
            results.push(chunk?);
        }
        results.sort_by_key(|(start_ms, _)| *start_ms);
        Ok(results.into_iter().map(|(_, results)| results).collect())
    }

    /// The chunks of the audio. The first one is shorter if it decides whether the others are sent.
    fn split(&self, audio: &DecodedAudio, is_timed: bool, has_selected_language: bool) -> Vec<AudioChunk> {
        let longest = u64::try_from(self.speech.options.chunk_duration().as_millis()).unwrap_or(u64::MAX);
        let longest = if is_timed { longest } else { longest.min(UNTIMED_CHUNK_MS) };
        let first = if has_selected_language { longest.min(LANGUAGE_CHUNK_MS) } else { longest };
        chunking::split(&audio.loudness.frames, audio.loudness.length_ms(), first, longest)
    }

    async fn transcribe_chunk(
        &self,
        audio: &DecodedAudio,
        chunk: AudioChunk,
        is_timed: bool,
    ) -> Result<ChunkResult, SpeechFailure> {
        let endpoint = &self.speech.endpoint;
        let options = &self.speech.options;
        let _permit = endpoint.permit().await;
        self.check_cancelled()?;
        let body = audio.write(&self.speech.ffmpeg, chunk, options.format, options.max_bytes).await?;
        let accept = |transcription| validate(transcription, audio, chunk);
        let result = endpoint.transcribe(&body, is_timed, accept).await?;
        // A service that names the language with times may not do so without them.
        if result.length() > 0 && is_timed == endpoint.is_timed() {
            endpoint.record_language(result.language.is_some());
        }
        Ok(result)
    }

    /// Builds the transcript from all chunks.
    fn supplied(
        &self,
        media: Media,
        length_ms: u64,
        results: Vec<ChunkResult>,
    ) -> Result<SupplyOutput, SpeechFailure> {
        let language =
            most_spoken(results.iter().map(|results| (results.language.as_ref(), results.length())));
        let segments: Vec<_> = results.into_iter().flat_map(|results| results.segments).collect();
        let segments = hallucination::remove_repetition(segments);
        if segments.is_empty() {
            return Err(SpeechFailure::NoSpeech);
        }
        // Without a detected language the platform's statement is the best guess.
        let language = language.or(media.language).unwrap_or_else(LanguageTag::unknown);
        self.check_language(&language)?;
        let track = TrackInfo { original: true, ..TrackInfo::new(language, TrackKind::Generated) };
        let transcript = Transcript {
            video: self.request.video.clone(),
            title: media.title,
            author: media.author,
            duration_ms: media.duration_ms.or(Some(length_ms)),
            track: track.clone(),
            source: NAME.to_owned(),
            segments,
        };
        Ok(SupplyOutput {
            transcripts: vec![transcript],
            known_tracks: vec![track],
            metadata: media.metadata,
        })
    }

    fn max_ms(&self) -> u64 {
        u64::try_from(self.speech.options.max_duration.as_millis()).unwrap_or(u64::MAX)
    }

    fn check_cancelled(&self) -> Result<(), SpeechFailure> {
        if self.monitor.is_cancelled() { Err(SpeechFailure::Cancelled) } else { Ok(()) }
    }
}

/// Whether a file of this size is only a part of any of the video's files.
fn is_cut_off(media: &Media, bytes: u64) -> bool {
    // The size that yt-dlp states for TikTok is not known to be that of the file at this URL.
    let is_exact = media.video.platform() == Platform::YouTube;
    is_exact && media.addresses.iter().all(|address| address.bytes.is_some_and(|stated| bytes < stated))
}

/// Validates a response: keeps text with audible sound, at times within the chunk.
fn validate(
    transcription: Transcription,
    audio: &DecodedAudio,
    chunk: AudioChunk,
) -> Result<ChunkResult, SpeechFailure> {
    let length_ms = chunk.length_ms();
    if let Some(covered_ms) = transcription.covered_ms() {
        let missing_ms = length_ms.saturating_sub(covered_ms);
        let is_part = missing_ms > MISSING_MAX_MS && missing_ms > length_ms / 20;
        if is_part && !audio.loudness.is_silent(chunk.start_ms + covered_ms, chunk.end_ms) {
            return Err(SpeechFailure::Unreadable("it covers a part of the audio"));
        }
    }
    let mut segments = match transcription.spans {
        Some(spans) => {
            let spans = hallucination::remove_invented(&spans);
            timestamps::to_segments(&spans, length_ms)?
        }
        None if length_ms > UNTIMED_CHUNK_MS && !transcription.text.trim().is_empty() => {
            return Err(if transcription.is_list_incomplete {
                SpeechFailure::UntimedOnce
            } else {
                SpeechFailure::Untimed
            });
        }
        // A short chunk is precise enough as the time of its text.
        None => audio
            .loudness
            .audible_range(chunk.start_ms, chunk.end_ms)
            .map(|(from, to)| Segment::new(transcription.text.trim(), from - chunk.start_ms, to - from))
            .into_iter()
            .collect(),
    };
    for segment in &mut segments {
        segment.start_ms += chunk.start_ms;
        for word in &mut segment.words {
            word.start_ms += chunk.start_ms;
        }
    }
    remove_unfit_words(&mut segments);
    segments.retain(|segment| {
        // Times may be slightly off, so a wider range is checked for sound.
        let around =
            (segment.start_ms.saturating_sub(TIME_TOLERANCE_MS), segment.end_ms() + TIME_TOLERANCE_MS);
        hallucination::has_words(&segment.text) && !audio.loudness.is_silent(around.0, around.1)
    });
    Ok(ChunkResult { language: transcription.language, segments })
}

/// Length of the audio by which a stated duration may be too short, in milliseconds: services round it.
const MISSING_MAX_MS: u64 = 3_000;
/// Tolerance for a service's times when checking for sound, in milliseconds.
const TIME_TOLERANCE_MS: u64 = 1_000;
