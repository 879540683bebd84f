//! The sound of a video: read from whatever the platform gave, and written as a service wants it.

use std::{fs::File, os::unix::fs::FileExt as _, process::Stdio, sync::Arc, time::Duration};

use bytes::{BufMut as _, Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::{ChildStdin, ChildStdout},
};

use super::{
    SoundFormat,
    cutting::Part,
    ffmpeg::Ffmpeg,
    loudness::{Loudness, Meter, RATE, SAMPLE},
    refusal::Refusal,
};

/// The forms of files that are read. Playlists are not among them: they name other files.
const READABLE: &str = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,mpegts,ogg,mp3,aac,flac,wav,flv,avi";
/// How long reading a whole video, and writing a part, may take.
const READ_LIMIT: Duration = Duration::from_secs(900);
const WRITE_LIMIT: Duration = Duration::from_secs(180);
/// How much is read and written at once, in bytes.
const STEP: usize = 128 << 10;
/// The length of a WAV file's head, in bytes.
const WAV_HEAD: u32 = 44;

/// A sound as samples, in a file without a name.
#[derive(Debug)]
pub(super) struct Sound {
    file: Arc<File>,
    pub(super) loudness: Loudness,
}

impl Sound {
    /// Reads the sound of a file, of which at most `max_ms` milliseconds are wanted.
    ///
    /// # Errors
    /// [`Refusal::NoSound`], [`Refusal::NotSound`]; [`Refusal::TooLong`] when it is longer; what may happen to
    /// the program and to the room for the samples.
    pub(super) async fn read(ffmpeg: &Ffmpeg, video: File, max_ms: u64) -> Result<Self, Refusal> {
        let file = tempfile::tempfile().map_err(no_room)?;
        let samples = file.try_clone().map_err(no_room)?;
        // A moment more, so that one that is longer is told from one that just fits.
        let seconds = (max_ms / 1_000 + 2).to_string();
        let arguments = [
            "-format_whitelist",
            READABLE,
            // The file has no name: this is the one that the program was given as its input.
            "-i",
            "file:/dev/stdin",
            "-map",
            "0:a:0",
            "-vn",
            "-sn",
            "-dn",
            "-map_metadata",
            "-1",
            // Where sound begins late or has gaps, silence stands for them, so that times are the video's.
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
            tracing::debug!(complaint = ended.complaint, "no sound could be read");
            return Err(complained(&ended.complaint));
        }
        match loudness.length_ms() {
            0..100 => Err(Refusal::NoSound),
            length_ms if length_ms > max_ms => Err(Refusal::TooLong { length_ms: None, max_ms }),
            _ => Ok(Self { file: Arc::new(file), loudness }),
        }
    }

    /// A part of it in a form for sending, of at most `max` bytes.
    ///
    /// # Errors
    /// [`Refusal::PartTooLarge`]; what may happen to the program.
    pub(super) async fn write(
        &self,
        ffmpeg: &Ffmpeg,
        part: Part,
        format: SoundFormat,
        max: u64,
    ) -> Result<Bytes, Refusal> {
        let range = Samples::of(part);
        let limit = usize::try_from(max).unwrap_or(usize::MAX);
        let encoder: &[&str] = match format {
            SoundFormat::Wav => return self.wav(range, limit).await,
            SoundFormat::Flac => &["-c:a", "flac", "-f", "flac", "pipe:1"],
            SoundFormat::Ogg => {
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
        tracing::warn!(complaint = ended.complaint, "a part of a sound could not be written");
        Err(Refusal::ProgramFailed)
    }

    async fn feed(&self, range: Samples, stdin: Option<ChildStdin>) -> Result<(), Refusal> {
        let mut stdin = stdin.ok_or(Refusal::ProgramFailed)?;
        let mut range = range;
        while let Some(chunk) = self.chunk(&mut range).await? {
            // It has ended early: its status says why.
            if stdin.write_all(&chunk).await.is_err() {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn wav(&self, range: Samples, max: usize) -> Result<Bytes, Refusal> {
        let length = u32::try_from(range.end - range.start).map_err(|_| Refusal::PartTooLarge)?;
        let whole = length as usize + WAV_HEAD as usize;
        if whole > max {
            return Err(Refusal::PartTooLarge);
        }
        let mut body = BytesMut::with_capacity(whole);
        wav_head(&mut body, length);
        let mut range = range;
        while let Some(chunk) = self.chunk(&mut range).await? {
            body.put_slice(&chunk);
        }
        Ok(body.freeze())
    }

    /// The next samples of a range; none at its end.
    async fn chunk(&self, range: &mut Samples) -> Result<Option<Vec<u8>>, Refusal> {
        let length = usize::try_from(range.end - range.start).unwrap_or(usize::MAX).min(STEP);
        if length == 0 {
            return Ok(None);
        }
        let (file, start) = (Arc::clone(&self.file), range.start);
        let read = tokio::task::spawn_blocking(move || {
            let mut chunk = vec![0; length];
            file.read_exact_at(&mut chunk, start).map(|()| chunk)
        });
        let chunk = read.await.map_err(|_| Refusal::ProgramFailed)?.map_err(no_room)?;
        range.start += length as u64;
        Ok(Some(chunk))
    }
}

/// Bytes of the file of samples.
#[derive(Clone, Copy, Debug)]
struct Samples {
    start: u64,
    end: u64,
}

impl Samples {
    fn of(part: Part) -> Self {
        let place = |ms: u64| ms * RATE / 1_000 * SAMPLE;
        Self { start: place(part.start_ms), end: place(part.end_ms) }
    }
}

/// Puts samples into a file, and measures them.
async fn measure(mut stdout: ChildStdout, file: File) -> Result<Meter, Refusal> {
    let mut file = tokio::fs::File::from_std(file);
    let mut meter = Meter::default();
    let mut chunk = vec![0; STEP];
    loop {
        let length = stdout.read(&mut chunk).await.map_err(|_| Refusal::ProgramFailed)?;
        let bytes = chunk.get(..length).unwrap_or_default();
        if bytes.is_empty() {
            file.flush().await.map_err(no_room)?;
            return Ok(meter);
        }
        meter.take(bytes);
        file.write_all(bytes).await.map_err(no_room)?;
    }
}

/// What the program writes, as long as it is not too much.
async fn collect(mut stdout: ChildStdout, max: usize) -> Result<Bytes, Refusal> {
    let mut body = BytesMut::new();
    loop {
        body.reserve(STEP);
        let length = stdout.read_buf(&mut body).await.map_err(|_| Refusal::ProgramFailed)?;
        if length == 0 {
            return Ok(body.freeze());
        }
        if body.len() > max {
            return Err(Refusal::PartTooLarge);
        }
    }
}

/// What it means that no sound could be read.
fn complained(complaint: &str) -> Refusal {
    let says = |words: &str| complaint.contains(words);
    if says("matches no streams") || says("does not contain any stream") {
        Refusal::NoSound
    } else {
        Refusal::NotSound
    }
}

/// The head of a WAV file with so many bytes of samples.
fn wav_head(body: &mut BytesMut, length: u32) {
    let rate = 16_000_u32;
    body.put_slice(b"RIFF");
    body.put_u32_le(length.saturating_add(WAV_HEAD - 8));
    body.put_slice(b"WAVEfmt ");
    body.put_u32_le(16);
    // Samples as they are, in one channel.
    body.put_u16_le(1);
    body.put_u16_le(1);
    body.put_u32_le(rate);
    body.put_u32_le(rate * 2);
    body.put_u16_le(2);
    body.put_u16_le(16);
    body.put_slice(b"data");
    body.put_u32_le(length);
}

fn no_room(error: std::io::Error) -> Refusal {
    tracing::warn!(%error, "sound could not be put down");
    Refusal::NoRoom
}
