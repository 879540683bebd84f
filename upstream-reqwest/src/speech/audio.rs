//! The audio of a video: decoded from the platform's file, and encoded for the service.

use std::{fs::File, os::unix::fs::FileExt as _, process::Stdio, sync::Arc, time::Duration};

use bytes::{BufMut as _, Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::{ChildStdin, ChildStdout},
};

use super::{
    AudioFormat,
    chunking::AudioChunk,
    failure::SpeechFailure,
    ffmpeg::Ffmpeg,
    loudness::{Loudness, LoudnessMeter, RATE, SAMPLE},
};
use crate::social::is_shorter;

/// Readable container formats. Playlists are excluded: they reference other files.
const CONTAINER_FORMATS: &str = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,mpegts,ogg,mp3,aac,flac,wav,flv,avi";
/// Time limits for decoding a whole video and for encoding a chunk.
const READ_LIMIT: Duration = Duration::from_secs(900);
const WRITE_LIMIT: Duration = Duration::from_secs(180);
/// Bytes per read or write.
const CHUNK_BYTES: usize = 128 << 10;
/// Minimum length of audio, in milliseconds.
const AUDIO_MIN_MS: u64 = 100;
/// Length of a WAV header in bytes.
const WAV_HEAD: u32 = 44;

/// Audio as PCM samples in an unnamed file.
#[derive(Debug)]
pub(super) struct DecodedAudio {
    file: Arc<File>,
    pub(super) loudness: Loudness,
}

impl DecodedAudio {
    /// Decodes the audio of a file, up to `max_ms` milliseconds. The platform states the length `stated_ms`.
    ///
    /// # Errors
    /// [`SpeechFailure::NoAudio`]; [`SpeechFailure::NotSound`], also when a part of it is missing;
    /// [`SpeechFailure::TooLong`] when it is longer; errors of the program and of the temporary file.
    pub(super) async fn read(
        ffmpeg: &Ffmpeg,
        video: File,
        stated_ms: Option<u64>,
        max_ms: u64,
    ) -> Result<Self, SpeechFailure> {
        let file = tempfile::tempfile().map_err(disk_full)?;
        let samples = file.try_clone().map_err(disk_full)?;
        // Two more seconds, to distinguish a video that is too long from one that just fits.
        let seconds = (max_ms / 1_000 + 2).to_string();
        let arguments = [
            "-format_whitelist",
            CONTAINER_FORMATS,
            // The file has no name: it is the program's standard input.
            "-i",
            "file:/dev/stdin",
            "-map",
            "0:a:0",
            "-vn",
            "-sn",
            "-dn",
            "-map_metadata",
            "-1",
            // Fills a late start and gaps with silence, so that times match the video's.
            "-af",
            "aresample=async=1:first_pts=0",
            "-ac",
            "1",
            "-ar",
            "16000",
            "-t",
            &seconds,
            "-f",
            "s16le",
            "pipe:1",
        ];
        let running = ffmpeg.start(arguments, Stdio::from(video))?;
        let none = async |_| Ok(());
        let (meter, ended) =
            running.end(READ_LIMIT, none, async |stdout| measure(stdout, samples).await).await?;
        let loudness = meter.finish();
        if !ended.status.success() {
            tracing::debug!(error_output = ended.error_output, "audio decoding failed");
            return Err(classify_error_output(&ended.error_output));
        }
        // The exit status of a file that is cut off or damaged is success.
        if !ended.error_output.trim().is_empty() && is_missing_audio(loudness.length_ms(), stated_ms) {
            tracing::debug!(error_output = ended.error_output, "audio decoding is incomplete");
            return Err(SpeechFailure::NotSound);
        }
        match loudness.length_ms() {
            0..AUDIO_MIN_MS => Err(SpeechFailure::NoAudio),
            length_ms if length_ms > max_ms => Err(SpeechFailure::TooLong { length_ms: None, max_ms }),
            _ => Ok(Self { file: Arc::new(file), loudness }),
        }
    }

    /// Encodes a chunk, to at most `max` bytes.
    ///
    /// # Errors
    /// [`SpeechFailure::PartTooLarge`]; errors of the program.
    pub(super) async fn write(
        &self,
        ffmpeg: &Ffmpeg,
        part: AudioChunk,
        format: AudioFormat,
        max: u64,
    ) -> Result<Bytes, SpeechFailure> {
        let range = Samples::for_chunk(part);
        let limit = usize::try_from(max).unwrap_or(usize::MAX);
        let encoder: &[&str] = match format {
            AudioFormat::Wav => return self.wav(range, limit).await,
            AudioFormat::Flac => &["-c:a", "flac", "-f", "flac", "pipe:1"],
            AudioFormat::Ogg => {
                &["-c:a", "libopus", "-b:a", "24k", "-application", "voip", "-f", "ogg", "pipe:1"]
            }
        };
        let raw = ["-f", "s16le", "-ar", "16000", "-ac", "1", "-i", "pipe:0"];
        let running = ffmpeg.start(raw.iter().chain(encoder), Stdio::piped())?;
        let feed = async |stdin| self.feed(range, stdin).await;
        let (body, ended) =
            running.end(WRITE_LIMIT, feed, async |stdout| collect(stdout, limit).await).await?;
        if ended.status.success() && !body.is_empty() {
            return Ok(body);
        }
        tracing::warn!(error_output = ended.error_output, "audio encoding failed");
        Err(SpeechFailure::ProgramFailed)
    }

    async fn feed(&self, range: Samples, stdin: Option<ChildStdin>) -> Result<(), SpeechFailure> {
        let mut stdin = stdin.ok_or(SpeechFailure::ProgramFailed)?;
        let mut range = range;
        while let Some(chunk) = self.chunk(&mut range).await? {
            // The program ended early; its exit status has the reason.
            if stdin.write_all(&chunk).await.is_err() {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn wav(&self, range: Samples, max: usize) -> Result<Bytes, SpeechFailure> {
        let length = u32::try_from(range.end - range.start).map_err(|_| SpeechFailure::PartTooLarge)?;
        let whole = length as usize + WAV_HEAD as usize;
        if whole > max {
            return Err(SpeechFailure::PartTooLarge);
        }
        let mut body = BytesMut::with_capacity(whole);
        wav_head(&mut body, length);
        let mut range = range;
        while let Some(chunk) = self.chunk(&mut range).await? {
            body.put_slice(&chunk);
        }
        Ok(body.freeze())
    }

    /// The next samples of a range; `None` at its end.
    async fn chunk(&self, range: &mut Samples) -> Result<Option<Vec<u8>>, SpeechFailure> {
        let length = usize::try_from(range.end - range.start).unwrap_or(usize::MAX).min(CHUNK_BYTES);
        if length == 0 {
            return Ok(None);
        }
        let (file, start) = (Arc::clone(&self.file), range.start);
        let read = tokio::task::spawn_blocking(move || {
            let mut chunk = vec![0; length];
            file.read_exact_at(&mut chunk, start).map(|()| chunk)
        });
        let chunk = read.await.map_err(|_| SpeechFailure::ProgramFailed)?.map_err(disk_full)?;
        range.start += length as u64;
        Ok(Some(chunk))
    }
}

/// A byte range in the file of samples.
#[derive(Clone, Copy, Debug)]
struct Samples {
    start: u64,
    end: u64,
}

impl Samples {
    fn for_chunk(part: AudioChunk) -> Self {
        let offset = |ms: u64| ms * RATE / 1_000 * SAMPLE;
        Self { start: offset(part.start_ms), end: offset(part.end_ms) }
    }
}

/// Writes samples to a file and measures their loudness.
async fn measure(mut stdout: ChildStdout, file: File) -> Result<LoudnessMeter, SpeechFailure> {
    let mut file = tokio::fs::File::from_std(file);
    let mut meter = LoudnessMeter::default();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let length = stdout.read(&mut chunk).await.map_err(|_| SpeechFailure::ProgramFailed)?;
        let bytes = chunk.get(..length).unwrap_or_default();
        if bytes.is_empty() {
            file.flush().await.map_err(disk_full)?;
            return Ok(meter);
        }
        meter.take(bytes);
        file.write_all(bytes).await.map_err(disk_full)?;
    }
}

/// The output of the program, up to `max` bytes.
async fn collect(mut stdout: ChildStdout, max: usize) -> Result<Bytes, SpeechFailure> {
    let mut body = BytesMut::new();
    loop {
        body.reserve(CHUNK_BYTES);
        let length = stdout.read_buf(&mut body).await.map_err(|_| SpeechFailure::ProgramFailed)?;
        if length == 0 {
            return Ok(body.freeze());
        }
        if body.len() > max {
            return Err(SpeechFailure::PartTooLarge);
        }
    }
}

/// Whether audio of this length is none, or much shorter than stated.
fn is_missing_audio(length_ms: u64, stated_ms: Option<u64>) -> bool {
    length_ms < AUDIO_MIN_MS || stated_ms.is_some_and(|stated_ms| is_shorter(length_ms, stated_ms))
}

/// Classifies the error output of a failed decoding.
fn classify_error_output(error_output: &str) -> SpeechFailure {
    let says = |words: &str| error_output.contains(words);
    if says("matches no streams") || says("does not contain any stream") {
        SpeechFailure::NoAudio
    } else {
        SpeechFailure::NotSound
    }
}

/// The header of a WAV file with `length` bytes of samples.
fn wav_head(body: &mut BytesMut, length: u32) {
    let rate = 16_000_u32;
    body.put_slice(b"RIFF");
    body.put_u32_le(length.saturating_add(WAV_HEAD - 8));
    body.put_slice(b"WAVEfmt ");
    body.put_u32_le(16);
    // PCM in one channel.
    body.put_u16_le(1);
    body.put_u16_le(1);
    body.put_u32_le(rate);
    body.put_u32_le(rate * 2);
    body.put_u16_le(2);
    body.put_u16_le(16);
    body.put_slice(b"data");
    body.put_u32_le(length);
}

fn disk_full(error: std::io::Error) -> SpeechFailure {
    tracing::warn!(%error, "audio file access failed");
    SpeechFailure::NoRoom
}
