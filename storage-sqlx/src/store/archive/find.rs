//! The transcript of a selector, decoded or lazy.

use std::sync::Arc;

use transcript_core::{
    Error, Result, Timestamp,
    archive::{Absence, FindOutcome, LazyTranscript, StoredBody, StoredTranscript, TrackSelector},
    transcript::TrackKind,
    video::VideoId,
};

use super::details::EncodedDetails;
#[cfg(feature = "postgres")]
use super::details::postgres_details;
#[cfg(feature = "sqlite")]
use super::details::sqlite_details;
use crate::{
    body::{EncodedBody, damaged, misplaced},
    body_v1::BodyV1,
    cold,
    error::{DbResult, corrupt},
    sql::{Database, Row, Statement, sql, values},
};

/// Approximate memory of a row in addition to its values.
const ROW_BYTES: u64 = 512;

/// Everything stored about a selector, in one row, with the change counter of the same snapshot.
///
/// A transcript is in one of three forms: its body, its cold form or, only in old files, the first form.
pub(crate) const FIND: Statement = sql! {
    sqlite: concat!(
        "SELECT d.video IS NOT NULL, c.count, t.revision, t.parser_version, t.stored_at,
            t.content_sha256, t.body_length, t.body,
            CASE WHEN b.transcript IS NULL THEN unhex((SELECT group_concat(hex(p.bytes), '' ORDER BY p.id) FROM cold p
                WHERE p.id BETWEEN t.id * 65536 AND t.id * 65536 + 65535)) END,
            b.content_sha256, b.length, b.checksum, b.source, b.about, b.segments,
            a.reason, a.message, a.asked, a.until, o.bytes, w.wish IS NOT NULL, ",
        sqlite_details!(),
        " FROM changes c
        LEFT JOIN withdrawals d ON d.video = $1
        LEFT JOIN wishes w ON w.video = $1 AND w.wish = $2 AND d.video IS NULL
        LEFT JOIN transcripts t ON t.id = w.transcript
        LEFT JOIN bodies b ON b.transcript = t.id
        LEFT JOIN words o ON o.transcript = t.id
        LEFT JOIN details m ON m.video = $1
        LEFT JOIN absences a ON a.video = $1 AND a.wish = $2 AND w.wish IS NULL AND a.until > $3
        WHERE c.only_row = 1"
    ),
    postgres: concat!(
        "SELECT d.video IS NOT NULL, c.count, t.revision, t.parser_version, t.stored_at,
            t.content_sha256, b.length, NULL::BYTEA,
            p.body,
            b.content_sha256, b.length, b.checksum, b.source, b.about, b.segments,
            a.reason, a.message, a.asked, a.until, o.bytes, w.wish IS NOT NULL, ",
        postgres_details!(),
        " FROM changes c
        LEFT JOIN withdrawals d ON d.video = $1
        LEFT JOIN wishes w ON w.video = $1 AND w.wish = $2 AND d.video IS NULL
        LEFT JOIN transcripts t ON t.video = $1 AND t.id = w.transcript
        LEFT JOIN bodies b ON b.video = $1 AND b.transcript = w.transcript
        LEFT JOIN words o ON o.video = $1 AND o.transcript = w.transcript
        LEFT JOIN cold p ON p.video = $1 AND p.transcript = w.transcript AND b.video IS NULL
        LEFT JOIN absences a ON a.video = $1 AND a.wish = $2 AND w.wish IS NULL AND a.until > $3
        WHERE c.only_row = 1"
    ),
};
/// Columns of [`FIND`]: the first of the version, of the body and of an absence, the words, whether the selector is
/// stored, the first of the details.
const VERSION_COLUMN: usize = 1;
const FIND_BODY_COLUMN: usize = 9;
const ABSENCE_COLUMN: usize = 15;
const WORDS_COLUMN: usize = 19;
const IS_STORED_COLUMN: usize = 20;
const DETAILS_COLUMN: usize = 21;

/// The columns of a body that [`decode_body`] reads.
macro_rules! body_columns {
    () => {
        "b.content_sha256, b.length, b.checksum, b.source, b.about, b.segments, "
    };
}
/// The columns of [`LAZY`] before the details.
macro_rules! lazy_columns {
    () => {
        concat!("c.count, t.revision, t.parser_version, t.stored_at, ", body_columns!(), "o.bytes, ")
    };
}

/// A selector's transcript with its body, as [`FIND`] returns it; nulls if it is in another form. A withdrawn video has
/// no row.
///
/// It reads neither absences nor other forms, which take an eighth of the time of [`FIND`] in a file.
pub(crate) const LAZY: Statement = sql! {
    sqlite: concat!(
        "SELECT ",
        lazy_columns!(),
        sqlite_details!(),
        " FROM wishes w
        JOIN changes c ON c.only_row = 1
        JOIN transcripts t ON t.id = w.transcript
        LEFT JOIN bodies b ON b.transcript = w.transcript
        LEFT JOIN words o ON o.transcript = w.transcript
        LEFT JOIN details m ON m.video = $1
        WHERE w.video = $1 AND w.wish = $2 AND NOT EXISTS (SELECT 1 FROM withdrawals WHERE video = $1)"
    ),
    postgres: concat!(
        "SELECT ",
        lazy_columns!(),
        postgres_details!(),
        " FROM wishes w
        JOIN changes c ON c.only_row = 1
        JOIN transcripts t ON t.video = w.video AND t.id = w.transcript
        LEFT JOIN bodies b ON b.video = w.video AND b.transcript = w.transcript
        LEFT JOIN words o ON o.video = w.video AND o.transcript = w.transcript
        WHERE w.video = $1 AND w.wish = $2 AND NOT EXISTS (SELECT 1 FROM withdrawals WHERE video = $1)"
    ),
};
/// Columns of [`LAZY`]: the first of the body, the words, and the first of the details.
const LAZY_BODY_COLUMN: usize = 4;
const LAZY_WORDS_COLUMN: usize = 10;
const LAZY_DETAILS_COLUMN: usize = 11;

/// The body of a selector's transcript, with the details of its video; nulls if it is in another form. A withdrawn
/// video has no row.
///
/// A response from the archive needs no more, and each further row costs a seek.
pub(crate) const BODY: Statement = sql! {
    sqlite: concat!(
        "SELECT ",
        body_columns!(),
        sqlite_details!(),
        " FROM wishes w LEFT JOIN bodies b ON b.transcript = w.transcript LEFT JOIN details m ON m.video = $1
        WHERE w.video = $1 AND w.wish = $2 AND NOT EXISTS (SELECT 1 FROM withdrawals WHERE video = $1)"
    ),
    postgres: concat!(
        "SELECT ",
        body_columns!(),
        postgres_details!(),
        " FROM wishes w LEFT JOIN bodies b ON b.video = w.video AND b.transcript = w.transcript
        WHERE w.video = $1 AND w.wish = $2 AND NOT EXISTS (SELECT 1 FROM withdrawals WHERE video = $1)"
    ),
};
/// The first column of the details in [`BODY`].
const BODY_DETAILS_COLUMN: usize = 6;

/// The language of a selector's transcript.
const LANGUAGE: &str = "SELECT k.language
    FROM wishes w
    JOIN transcripts t ON t.video = w.video AND t.id = w.transcript
    JOIN tracks k ON k.video = t.video AND k.id = t.track
    WHERE w.video = $1 AND w.wish = $2";

/// Names a transcript that cannot be read, and what to do, in the error.
#[cold]
pub(super) fn name_unreadable(video: &VideoId, language: &str, error: &Error) -> Error {
    let message = format!(
        "the archived transcript of {video} ({language}) cannot be read: {error}; repair it with `verbatim archive \
         verify --repair refetch`, `verbatim archive refresh`, `verbatim import` or `verbatim archive delete`"
    );
    Error::new(error.kind(), error.retry(), message)
}

/// As [`name_unreadable`], with the language of the selector's transcript.
async fn named<D: Database, T>(
    database: &D,
    video: &VideoId,
    selector: &TrackSelector,
    found: Result<T>,
) -> Result<T> {
    match found {
        Err(error) if error.is_unreadable() => {
            let keys = values![video.to_string(), selector.as_str()];
            let language = database.find_first(LANGUAGE, &keys, |row| row.take::<String>(0)).await;
            let language = language.ok().flatten();
            Err(name_unreadable(video, language.as_deref().unwrap_or(selector.as_str()), &error))
        }
        found => found,
    }
}

/// Finds what is stored about a selector; see [`transcript_core::archive::Archive::find`].
pub(crate) async fn find<D: Database>(
    database: &D,
    video: &VideoId,
    selector: &TrackSelector,
    now: Timestamp,
) -> Result<FindOutcome> {
    let keys = values![video.to_string(), selector.as_str(), now.as_millis()];
    let found = database.find_first(FIND, &keys, |row| decode_find(video, selector, row)).await;
    let found = named(database, video, selector, found).await?;
    found.ok_or_else(|| Error::unexpected("the database returned no row for a selector"))
}

fn decode_find(video: &VideoId, selector: &TrackSelector, row: &mut Row) -> DbResult<FindOutcome> {
    if row.take(0)? {
        return Ok(FindOutcome::Withdrawn);
    }
    if let Some(stored) = decode_stored(video, row)? {
        return Ok(FindOutcome::Transcript(stored));
    }
    let Some(reason) = row.take(ABSENCE_COLUMN)? else {
        return Ok(FindOutcome::NotFound);
    };
    Ok(FindOutcome::Absence(Absence {
        video: video.clone(),
        selector: selector.clone(),
        reason,
        message: row.take(ABSENCE_COLUMN + 1)?,
        suppliers_tried: row.take(ABSENCE_COLUMN + 2)?,
        until: Timestamp::from_millis(row.take(ABSENCE_COLUMN + 3)?),
    }))
}

/// Decodes the version in a row of [`FIND`]; `None` if the selector is not stored.
///
/// # Errors
/// [`transcript_core::ErrorKind::Corrupt`] if it is stored, but its transcript is missing: a fetch would be charged,
/// although the text may be stored.
fn find_version(row: &mut Row) -> DbResult<Option<TranscriptVersion>> {
    let version = TranscriptVersion::decode(row, VERSION_COLUMN)?;
    if version.is_none() && row.take(IS_STORED_COLUMN)? {
        return Err(corrupt("the stored selector has no transcript").into());
    }
    Ok(version)
}

/// Decodes the transcript in a row of [`FIND`].
pub(crate) fn decode_stored(video: &VideoId, row: &mut Row) -> DbResult<Option<StoredTranscript>> {
    let Some(version) = find_version(row)? else {
        return Ok(None);
    };
    let (content_sha256, words): (Vec<u8>, Option<Vec<u8>>) = (row.take(5)?, row.take(WORDS_COLUMN)?);
    let transcript = if let Some(segments) = row.take::<Option<Vec<u8>>>(14)? {
        let (length, source, about) = (row.take(6)?, row.take(12)?, row.take(13)?);
        let content_sha256 = content_sha256.clone();
        EncodedBody { content_sha256, source, length, about, segments: segments.into(), words }.unpack()?
    } else if let Some(compact) = row.take::<Option<Vec<u8>>>(8)? {
        cold::unpack(&compact, words.as_deref(), &content_sha256)?
    } else {
        let bytes = row.take::<Option<Vec<u8>>>(7)?.ok_or_else(damaged)?;
        BodyV1 { content_sha256: content_sha256.clone(), length: row.take(6)?, bytes }.unpack()?
    };
    // The digest covers the video, but not the row in which it is stored.
    if transcript.video != *video {
        return Err(misplaced().into());
    }
    Ok(Some(StoredTranscript {
        transcript: Arc::new(transcript),
        revision: version.revision,
        content_sha256,
        parser_version: version.parser_version,
        stored_at: version.stored_at,
        details: EncodedDetails::take(row, DETAILS_COLUMN)?.decode(),
    }))
}

/// Finds the transcript of a selector; see [`transcript_core::archive::Archive::find_lazy`].
pub(crate) async fn find_lazy<D: Database>(
    database: &D,
    video: &VideoId,
    selector: &TrackSelector,
) -> Result<Option<Arc<dyn LazyTranscript>>> {
    let found = find_undecoded(database, video, selector).await;
    named(database, video, selector, found).await
}

async fn find_undecoded<D: Database>(
    database: &D,
    video: &VideoId,
    selector: &TrackSelector,
) -> Result<Option<Arc<dyn LazyTranscript>>> {
    let keys = values![video.to_string(), selector.as_str()];
    match database.find_first(LAZY, &keys, |row| decode_lazy(video, row)).await? {
        Some(None) => find_any_form(database, video, selector).await,
        found => Ok(found.flatten().map(|(version, body, details)| {
            let (video, selector) = (video.clone(), selector.clone());
            Arc::new(LazyRow { video, selector, version, body, details }) as _
        })),
    }
}

/// As [`find_undecoded`], of a transcript that was cold, or of an old form, when [`LAZY`] found it.
async fn find_any_form<D: Database>(
    database: &D,
    video: &VideoId,
    selector: &TrackSelector,
) -> Result<Option<Arc<dyn LazyTranscript>>> {
    // No absence is valid that long.
    let keys = values![video.to_string(), selector.as_str(), i64::MAX];
    let found = database.find_first(FIND, &keys, |row| LazyForm::decode(video, row)).await?;
    let Some((version, form, details)) = found.flatten() else {
        return Ok(None);
    };
    let body = match form {
        LazyForm::Body(body) => body,
        LazyForm::Cold { content_sha256, compact, words } => {
            let runtime = database.runtime();
            let body = cold::rebuild_body(video.clone(), content_sha256, compact, words, runtime).await?;
            CheckedBody { checksum: body.checksum(video), body }
        }
    };
    Ok(Some(Arc::new(LazyRow { video: video.clone(), selector: selector.clone(), version, body, details })))
}

/// Reads the body of a selector's transcript; see [`transcript_core::archive::Archive::stored_body`].
pub(crate) async fn stored_body<D: Database>(
    database: &D,
    video: &VideoId,
    selector: &TrackSelector,
) -> Result<Option<StoredBody>> {
    let keys = values![video.to_string(), selector.as_str()];
    let found = database.find_first(BODY, &keys, |row| {
        // A header of an earlier version is checked by decoding the transcript, for which this row lacks the words.
        let body = decode_body(video, row, 0)?.filter(|body| body.body.is_header_checked());
        let stored = |body: CheckedBody| -> DbResult<StoredBody> {
            Ok(body.body.stored(body.checksum, EncodedDetails::take(row, BODY_DETAILS_COLUMN)?.decode())?)
        };
        body.map(stored).transpose()
    });
    match named(database, video, selector, found.await).await? {
        Some(Some(body)) => Ok(Some(body)),
        Some(None) => {
            let found = find_any_form(database, video, selector).await;
            let found = named(database, video, selector, found).await?;
            found.map(|found| found.body()).transpose()
        }
        None => Ok(None),
    }
}

/// The version of a transcript, and the change counter when it was read.
#[derive(Clone, Copy, Debug)]
struct TranscriptVersion {
    changes: u64,
    revision: u32,
    parser_version: u32,
    stored_at: Timestamp,
}

impl TranscriptVersion {
    /// Decodes the columns of a version, of which this is the first. `None` if a row has no transcript.
    fn decode(row: &mut Row, first: usize) -> DbResult<Option<Self>> {
        let Some(revision) = row.take(first + 1)? else {
            return Ok(None);
        };
        let (changes, parser_version) = (row.take(first)?, row.take(first + 2)?);
        let stored_at = Timestamp::from_millis(row.take(first + 3)?);
        Ok(Some(Self { changes, revision, parser_version, stored_at }))
    }
}

/// A found form that can stay undecoded.
enum LazyForm {
    Body(CheckedBody),
    Cold { content_sha256: Vec<u8>, compact: Vec<u8>, words: Option<Vec<u8>> },
}

/// A body with a valid checksum.
#[derive(Debug)]
pub(super) struct CheckedBody {
    pub(super) body: EncodedBody,
    checksum: u32,
}

/// Decodes a row of [`LAZY`]; `None` if the transcript is in another form.
fn decode_lazy(
    video: &VideoId,
    row: &mut Row,
) -> DbResult<Option<(TranscriptVersion, CheckedBody, EncodedDetails)>> {
    let version = TranscriptVersion::decode(row, 0)?;
    let (Some(version), Some(mut body)) = (version, decode_body(video, row, LAZY_BODY_COLUMN)?) else {
        return Ok(None);
    };
    body.body.words = row.take(LAZY_WORDS_COLUMN)?;
    Ok(Some((version, body, EncodedDetails::take(row, LAZY_DETAILS_COLUMN)?)))
}

impl LazyForm {
    /// Decodes a row of [`FIND`].
    fn decode(video: &VideoId, row: &mut Row) -> DbResult<Option<(TranscriptVersion, Self, EncodedDetails)>> {
        let Some(version) = find_version(row)? else {
            return Ok(None);
        };
        let (words, details) = (row.take(WORDS_COLUMN)?, EncodedDetails::take(row, DETAILS_COLUMN)?);
        if let Some(mut body) = decode_body(video, row, FIND_BODY_COLUMN)? {
            body.body.words = words;
            return Ok(Some((version, Self::Body(body), details)));
        }
        let (content_sha256, compact) = (row.take(5)?, row.take::<Option<Vec<u8>>>(8)?);
        Ok(compact.map(|compact| (version, Self::Cold { content_sha256, compact, words }, details)))
    }
}

/// Decodes the columns of a body, of which this is the first, and checks the checksum. `None` if they are null.
///
/// The words are in another table.
pub(super) fn decode_body(video: &VideoId, row: &mut Row, first: usize) -> DbResult<Option<CheckedBody>> {
    let Some(content_sha256) = row.take(first)? else {
        return Ok(None);
    };
    let body = EncodedBody {
        content_sha256,
        length: row.take(first + 1)?,
        source: row.take(first + 3)?,
        about: row.take(first + 4)?,
        segments: row.take::<Vec<u8>>(first + 5)?.into(),
        words: None,
    };
    let checksum = body.checksum(video);
    if checksum != row.take::<u32>(first + 2)? {
        return Err(damaged().into());
    }
    Ok(Some(CheckedBody { body, checksum }))
}

/// The row of a transcript with its body.
#[derive(Debug)]
struct LazyRow {
    video: VideoId,
    selector: TrackSelector,
    version: TranscriptVersion,
    body: CheckedBody,
    details: EncodedDetails,
}

impl LazyRow {
    fn named(&self, error: &Error) -> Error {
        name_unreadable(&self.video, self.selector.as_str(), error)
    }

    /// Checks the header. One without a valid checksum, as in rows of earlier versions, is checked by decoding all.
    fn check_header(&self) -> Result<()> {
        if self.body.body.is_header_checked() { Ok(()) } else { self.load().map(drop) }
    }
}

impl LazyTranscript for LazyRow {
    fn revision(&self) -> u32 {
        self.version.revision
    }

    fn change_counter(&self) -> u64 {
        self.version.changes
    }

    fn memory_bytes(&self) -> u64 {
        self.body.body.bytes() + ROW_BYTES + self.details.memory_bytes()
    }

    fn track_kind(&self) -> Result<TrackKind> {
        self.check_header()?;
        Ok(self.body.body.header()?.track.kind)
    }

    fn body(&self) -> Result<StoredBody> {
        self.check_header()?;
        self.body.body.stored(self.body.checksum, self.details.decode())
    }

    fn load(&self) -> Result<StoredTranscript> {
        // The digest covers the video, but not the row in which it is stored.
        let unpacked = match self.body.body.unpack() {
            Ok(transcript) if transcript.video != self.video => Err(misplaced()),
            unpacked => unpacked,
        };
        let transcript = unpacked.map_err(|error| self.named(&error))?;
        Ok(StoredTranscript {
            transcript: Arc::new(transcript),
            revision: self.version.revision,
            content_sha256: self.body.body.content_sha256.clone(),
            parser_version: self.version.parser_version,
            stored_at: self.version.stored_at,
            details: self.details.decode(),
        })
    }
}
