//! Reads of the archive in PostgreSQL, each one statement.

use std::sync::Arc;

use sqlx::{Row, postgres::PgRow};
use transcript_core::{
    Error, ErrorKind, Result, Retry, Timestamp,
    archive::{Absence, ArchivedTrack, FindOutcome, StoredBody, StoredTranscript, TrackSelector},
    ids::Cursor,
    transcript::{LanguageTag, TrackInfo, TrackKind},
    video::VideoId,
};

use crate::{
    body::{self, EncodedBody, damaged, misplaced},
    codec::{self, number, small},
    cold,
    error::{DbResult, corrupt},
    postgres::text::{decode, read, read_list, read_optional},
};

/// Everything stored about a selector, in one row.
pub(super) const FIND: &str = "SELECT d.video IS NOT NULL, t.revision, t.parser_version, t.stored_at,
        t.content_sha256, b.length, b.source, b.about, b.segments, a.reason, a.message, a.asked, a.until, c.body
    FROM (SELECT 1) one
    LEFT JOIN withdrawals d ON d.video = $1
    LEFT JOIN wishes w ON w.video = $1 AND w.wish = $2 AND d.video IS NULL
    LEFT JOIN transcripts t ON t.video = $1 AND t.id = w.transcript
    LEFT JOIN bodies b ON b.video = $1 AND b.transcript = w.transcript
    LEFT JOIN cold c ON c.video = $1 AND c.transcript = w.transcript AND b.video IS NULL
    LEFT JOIN absences a ON a.video = $1 AND a.wish = $2 AND w.wish IS NULL AND a.until > $3";

/// The body of a selector, or its cold form.
///
/// A transcript has one of them, so if the first is found, the second is not read.
pub(super) const BODY: &str = "SELECT b.content_sha256, b.source, b.length, b.checksum, b.segments, FALSE
    FROM wishes w JOIN bodies b ON b.video = w.video AND b.transcript = w.transcript
    WHERE w.video = $1 AND w.wish = $2 AND NOT EXISTS (SELECT 1 FROM withdrawals WHERE video = $1)
    UNION ALL
    SELECT t.content_sha256, '', 0, 0, c.body, TRUE
    FROM wishes w JOIN cold c ON c.video = w.video AND c.transcript = w.transcript
    JOIN transcripts t ON t.video = w.video AND t.id = w.transcript
    WHERE w.video = $1 AND w.wish = $2 AND NOT EXISTS (SELECT 1 FROM withdrawals WHERE video = $1)
    LIMIT 1";

/// A row of [`BODY`].
pub(super) enum StoredForm {
    /// A body with a valid checksum.
    Body(StoredBody),
    /// A cold transcript.
    Compact { content_sha256: Vec<u8>, compact: Vec<u8> },
}

macro_rules! tracks {
    ($rest:literal) => {
        concat!(
            "SELECT t.video, t.id, t.language, t.kind, t.name, t.original,
                ARRAY(SELECT w.wish FROM wishes w
                    JOIN transcripts s ON s.video = w.video AND s.id = w.transcript
                    WHERE w.video = t.video AND s.track = t.id ORDER BY w.wish <> 'default', w.wish),
                newest.revision, newest.stored_at
            FROM tracks t LEFT JOIN LATERAL (
                SELECT revision, stored_at FROM transcripts s WHERE s.video = t.video AND s.track = t.id
                ORDER BY revision DESC, id DESC LIMIT 1
            ) newest ON TRUE ",
            $rest
        )
    };
}

pub(super) const TRACKS: &str =
    tracks!("WHERE t.video = $1 AND NOT EXISTS (SELECT 1 FROM withdrawals WHERE video = $1) ORDER BY t.id");
pub(super) const PAGE: &str = tracks!(
    "WHERE (t.video, t.id) > ($1, $2) AND newest.revision IS NOT NULL ORDER BY t.video, t.id LIMIT $3"
);

/// Decodes a row of [`FIND`].
pub(super) fn decode_find(video: &VideoId, selector: &TrackSelector, row: &PgRow) -> DbResult<FindOutcome> {
    if row.try_get(0)? {
        return Ok(FindOutcome::Withdrawn);
    }
    if let Some(stored) = stored(row)? {
        // The digest covers the video, but not the row in which it is stored.
        return if stored.transcript.video == *video {
            Ok(FindOutcome::Transcript(stored))
        } else {
            Err(misplaced().into())
        };
    }
    let Some(reason) = read_optional(row, 9)? else {
        return Ok(FindOutcome::NotFound);
    };
    Ok(FindOutcome::Absence(Absence {
        video: video.clone(),
        selector: selector.clone(),
        reason,
        message: read(row, 10)?,
        suppliers_tried: read_list(row.try_get(11)?)?,
        until: Timestamp::from_millis(row.try_get(12)?),
    }))
}

/// Decodes the transcript in a row of [`FIND`].
pub(super) fn stored(row: &PgRow) -> DbResult<Option<StoredTranscript>> {
    let Some(revision) = row.try_get::<Option<i64>, _>(1)? else {
        return Ok(None);
    };
    let content_sha256: Vec<u8> = row.try_get(4)?;
    let length: Option<i64> = row.try_get(5)?;
    let transcript = match (length, row.try_get::<Option<&[u8]>, _>(13)?) {
        (Some(length), _) => {
            let (source, about) = (read(row, 6)?, row.try_get(7)?);
            let (content_sha256, length) = (content_sha256.clone(), number(length)?);
            EncodedBody { content_sha256, source, length, about, segments: row.try_get(8)? }.unpack()?
        }
        (None, Some(compact)) => cold::unpack(compact, &content_sha256)?,
        (None, None) => return Err(damaged().into()),
    };
    Ok(Some(StoredTranscript {
        transcript: Arc::new(transcript),
        revision: small(revision)?,
        content_sha256,
        parser_version: small(row.try_get(2)?)?,
        stored_at: Timestamp::from_millis(row.try_get(3)?),
    }))
}

/// Decodes a row of [`BODY`].
pub(super) fn decode_body(video: &VideoId, row: &PgRow) -> DbResult<StoredForm> {
    let (content_sha256, source): (Vec<u8>, String) = (row.try_get(0)?, read(row, 1)?);
    if row.try_get(5)? {
        return Ok(StoredForm::Compact { content_sha256, compact: row.try_get(4)? });
    }
    let (length, stored) = (number(row.try_get(2)?)?, number(row.try_get(3)?)?);
    Ok(StoredForm::Body(body::check_stored(video, source, content_sha256, length, row.try_get(4)?, stored)?))
}

/// Decodes a row of [`TRACKS`] or [`PAGE`]: the track and its number.
pub(super) fn archived(row: &PgRow) -> DbResult<(i64, ArchivedTrack)> {
    let kind = TrackKind::from_name(row.try_get(3)?);
    let names: Vec<String> = row.try_get(6)?;
    let track = ArchivedTrack {
        video: codec::video(&read(row, 0)?)?,
        track: TrackInfo {
            language: LanguageTag::from_canonical(read(row, 2)?),
            kind: kind.ok_or_else(|| corrupt("a stored track has an unknown kind"))?,
            name: read_optional(row, 4)?,
            original: row.try_get(5)?,
        },
        selectors: names.into_iter().map(|name| TrackSelector::from_name(&decode(name))).collect(),
        revision: row.try_get::<Option<i64>, _>(7)?.map(small).transpose()?,
        stored_at: row.try_get::<Option<i64>, _>(8)?.map(Timestamp::from_millis),
    };
    Ok((row.try_get(1)?, track))
}

/// Video and number of the last track before a page.
pub(super) fn read_cursor(cursor: &Cursor) -> Result<(String, i64)> {
    let parts = cursor.as_str().rsplit_once('/');
    parts
        .and_then(|(video, id)| Some((video.to_owned(), id.parse().ok()?)))
        .ok_or_else(|| Error::new(ErrorKind::Invalid, Retry::Never, "the cursor is not from this store"))
}
