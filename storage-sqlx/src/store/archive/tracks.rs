//! The tracks of videos.

use transcript_core::{
    Result, Timestamp,
    archive::{ArchivedTrack, TrackSelector},
    ids::Cursor,
    page::no_cursor,
    transcript::{LanguageTag, TrackInfo, TrackKind},
};

use crate::{
    codec,
    error::{DbResult, corrupt},
    sql::{Row, Statement, sql},
};

#[cfg(feature = "sqlite")]
macro_rules! sqlite_tracks {
    ($rest:literal) => {
        concat!(
            "SELECT t.video, t.id, t.language, t.kind, t.name, t.original,
                (SELECT json_group_array(w.wish ORDER BY w.wish <> 'default', w.wish)
                    FROM wishes w JOIN transcripts s ON s.id = w.transcript
                    WHERE w.video = t.video AND s.track = t.id),
                (SELECT revision FROM transcripts s WHERE s.video = t.video AND s.track = t.id
                    ORDER BY revision DESC, id DESC LIMIT 1),
                (SELECT stored_at FROM transcripts s WHERE s.video = t.video AND s.track = t.id
                    ORDER BY revision DESC, id DESC LIMIT 1)
            FROM tracks t ",
            $rest
        )
    };
}

#[cfg(feature = "postgres")]
macro_rules! postgres_tracks {
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

pub(super) const TRACKS: Statement = sql! {
    sqlite: sqlite_tracks!(
        "WHERE t.video = $1 AND NOT EXISTS (SELECT 1 FROM withdrawals WHERE video = $1) ORDER BY t.id"
    ),
    postgres: postgres_tracks!(
        "WHERE t.video = $1 AND NOT EXISTS (SELECT 1 FROM withdrawals WHERE video = $1) ORDER BY t.id"
    ),
};
pub(super) const PAGE: Statement = sql! {
    sqlite: sqlite_tracks!(
        "WHERE (t.video, t.id) > ($1, $2)
            AND EXISTS (SELECT 1 FROM transcripts s WHERE s.video = t.video AND s.track = t.id)
        ORDER BY t.video, t.id LIMIT $3"
    ),
    postgres: postgres_tracks!(
        "WHERE (t.video, t.id) > ($1, $2) AND newest.revision IS NOT NULL ORDER BY t.video, t.id LIMIT $3"
    ),
};

/// Decodes a row of [`PAGE`]: its video, its number and its track; `None` if that does not decode. One damaged row, or
/// one of a newer version, must not end each list of the whole archive.
pub(super) fn decode_listed(row: &mut Row) -> DbResult<(String, i64, Option<ArchivedTrack>)> {
    let (video, id) = (row.get::<&str>(0)?.to_owned(), row.get(1)?);
    let track = decode(row).ok().map(|(_, track)| track);
    if track.is_none() {
        tracing::warn!(%video, "stored track does not decode, left out of the list");
    }
    Ok((video, id, track))
}

/// Decodes a row of [`TRACKS`] or [`PAGE`]: the track and its number.
pub(super) fn decode(row: &mut Row) -> DbResult<(i64, ArchivedTrack)> {
    let (id, track) = decode_info(row, 1)?;
    let selectors: Vec<String> = row.take(6)?;
    let track = ArchivedTrack {
        video: codec::video(row.get(0)?)?,
        track,
        selectors: selectors.iter().map(|name| TrackSelector::from_name(name)).collect(),
        revision: row.take(7)?,
        stored_at: row.take::<Option<i64>>(8)?.map(Timestamp::from_millis),
    };
    Ok((id, track))
}

/// Decodes the number of a track and the columns after it: language, kind, name and whether it is original.
pub(super) fn decode_info(row: &mut Row, first: usize) -> DbResult<(i64, TrackInfo)> {
    let kind = TrackKind::from_name(row.get(first + 2)?);
    let info = TrackInfo {
        language: LanguageTag::from_canonical(row.take::<String>(first + 1)?),
        kind: kind.ok_or_else(|| corrupt("a stored track has an unknown kind"))?,
        name: row.take(first + 3)?,
        original: row.take(first + 4)?,
    };
    Ok((row.take(first)?, info))
}

/// The video and number after which a page begins.
pub(super) fn read_cursor(after: Option<&Cursor>) -> Result<(String, i64)> {
    let Some(after) = after else {
        return Ok((String::new(), 0));
    };
    let parts = after.as_str().rsplit_once('/');
    parts.and_then(|(video, id)| Some((video.to_owned(), id.parse().ok()?))).ok_or_else(no_cursor)
}
