//! The tracks of videos.

use transcript_core::{
    Result, Timestamp,
    archive::{ArchivedTrack, FindOutcome, TrackSelector},
    ids::Cursor,
    page::no_cursor,
    transcript::{LanguageTag, TrackInfo, TrackKind},
    video::VideoId,
};

use super::find;
use crate::{
    codec,
    error::{DbResult, corrupt},
    sql::{Database, Row, Statement, sql},
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

/// A track in a row of [`TRACKS`] or [`PAGE`].
pub(super) struct TrackRow {
    track: ArchivedTrack,
    /// Whether its language, kind, name or origin does not decode: it is damaged, or of a newer version.
    is_damaged: bool,
}

/// Decodes a row of [`TRACKS`].
///
/// Its selectors must decode: without them, the track would look like one that is only known.
pub(super) fn decode(row: &mut Row) -> DbResult<TrackRow> {
    let video = codec::video(row.get(0)?)?;
    let (selectors, revision, stored_at) = (row.take(6)?, row.take(7)?, row.take(8)?);
    Ok(decode_track(row, video, Some(selectors), (revision, stored_at)))
}

/// Decodes a row of [`PAGE`]: the name of its video, its number, and its track. One damaged row must not end each list
/// of the whole archive.
///
/// The track is `None` if the name is malformed, or of a platform of a newer version. If its selectors are damaged, it
/// has none.
pub(super) fn decode_listed(row: &mut Row) -> DbResult<(String, i64, Option<TrackRow>)> {
    let (name, id) = (row.get::<&str>(0)?.to_owned(), row.get(1)?);
    let Some(video) = codec::listed_video(&name) else { return Ok((name, id, None)) };
    let selectors = row.take(6).ok();
    let newest = (row.take(7).unwrap_or_default(), row.take(8).unwrap_or_default());
    Ok((name, id, Some(decode_track(row, video, selectors, newest))))
}

/// Decodes the track of a row with these selectors, of which the newest revision is this one, stored at this time.
///
/// A damaged track is unknown. Without selectors nothing can restore it, so that it stays so.
fn decode_track(
    row: &mut Row,
    video: VideoId,
    selectors: Option<Vec<String>>,
    (revision, stored_at): (Option<u32>, Option<i64>),
) -> TrackRow {
    let info = decode_info(row, 1);
    if info.is_err() {
        tracing::warn!(%video, "stored track does not decode");
    }
    let is_damaged = info.is_err() && selectors.is_some();
    let track = info.map_or_else(
        |_| TrackInfo { original: row.take(5).unwrap_or_default(), ..TrackInfo::unreadable() },
        |(_, info)| info,
    );
    let selectors = selectors.unwrap_or_default();
    let track = ArchivedTrack {
        video,
        track,
        selectors: selectors.iter().map(|name| TrackSelector::from_name(name)).collect(),
        revision,
        stored_at: stored_at.map(Timestamp::from_millis),
    };
    TrackRow { track, is_damaged }
}

/// Returns the tracks of rows. That of a damaged row comes from its transcript, which has it too.
///
/// If the transcript cannot be read either, the track is of an unknown language: an export reports it. Left out are
/// damaged rows that no lookup needs, and the new row that a put added for the track of a damaged one. Another process
/// may delete or withdraw the video at the same time; only a list of the whole archive has withdrawn ones.
pub(super) async fn restore<D: Database>(
    database: &D,
    rows: Vec<TrackRow>,
    has_withdrawn: bool,
) -> Result<Vec<ArchivedTrack>> {
    let has_damage = rows.iter().any(|row| row.is_damaged);
    let mut tracks: Vec<ArchivedTrack> = Vec::with_capacity(rows.len());
    for TrackRow { mut track, is_damaged } in rows {
        let is_archived = !track.selectors.is_empty();
        if is_damaged {
            let Some(selector) = track.selectors.first() else { continue };
            // No absence is valid that long.
            let found = find::find(database, &track.video, selector, Timestamp::from_millis(i64::MAX)).await;
            match found {
                Ok(FindOutcome::Transcript(stored)) => {
                    let (original, own) = (track.track.original, stored.transcript.track.clone());
                    track.track = TrackInfo { original: own.original || original, ..own };
                }
                Ok(FindOutcome::Withdrawn) if has_withdrawn => {}
                Ok(FindOutcome::Absence(_) | FindOutcome::Withdrawn | FindOutcome::NotFound) => continue,
                Err(error) if error.is_unreadable() => {}
                Err(error) => return Err(error),
            }
        }
        let is_same = |other: &ArchivedTrack| other.video == track.video && other.track.is_same(&track.track);
        if !has_damage || is_archived || !tracks.iter().any(is_same) {
            tracks.push(track);
        }
    }
    Ok(tracks)
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
