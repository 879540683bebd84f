//! What is known of a video besides its texts: metadata and tracks.

use std::sync::Arc;

use transcript_core::{
    Error, Result, Timestamp,
    archive::PutRequest,
    transcript::{LanguageTag, TrackInfo, TrackKind, VideoDetails, VideoMetadata},
    video::VideoId,
};

use super::{count_changed_details, tracks::decode_info};
use crate::{
    codec,
    error::{DbResult, corrupt},
    sql::{FromValue, Row, Session, Statement, Value, WriteTx, sql, values},
};

/// The columns of the metadata and of the tracks of the video $1, in order of discovery. Its row of `details` is `m`.
///
/// A track is one text, because both databases read a list of texts: language, kind and 0 or 1 for the original, with
/// spaces between, then its name after another space, if it has one. Triggers write this list into `details`; only a
/// row of an earlier version lacks it. The order is that of a subquery, because an aggregate with `ORDER BY` opens a
/// table in memory for each row, which takes as long as all else.
#[cfg(feature = "sqlite")]
macro_rules! sqlite_details {
    () => {
        "m.metadata, coalesce(m.tracks, (SELECT json_group_array(track) FROM (
            SELECT track FROM track_texts WHERE video = $1 ORDER BY id)))"
    };
}
#[cfg(feature = "sqlite")]
pub(super) use sqlite_details;

/// As [`sqlite_details`], from the rows of the tracks.
#[cfg(feature = "postgres")]
macro_rules! postgres_details {
    () => {
        "(SELECT metadata FROM details WHERE video = $1),
            ARRAY(SELECT language || ' ' || kind || ' ' || original::INT || coalesce(' ' || name, '')
                FROM tracks WHERE video = $1 ORDER BY id)"
    };
}
#[cfg(feature = "postgres")]
pub(super) use postgres_details;

pub(super) const STORED_TRACKS: &str =
    "SELECT id, language, kind, name, original FROM tracks WHERE video = $1 ORDER BY id";

const MARK_ORIGINALS: Statement = sql! {
    sqlite: "UPDATE tracks SET original = 1 WHERE id IN (SELECT value FROM json_each($2))",
    postgres: "UPDATE tracks SET original = TRUE WHERE video = $1 AND id = ANY ($2)",
};
const ADD_TRACK: &str = "INSERT INTO tracks (video, language, kind, name, original)
    VALUES ($1, $2, $3, $4, $5) RETURNING id";
/// Adds all tracks in one round trip to PostgreSQL.
const ADD_TRACKS: &str = "INSERT INTO tracks (video, id, language, kind, name, original)
    SELECT $1, t.id, t.language, t.kind, CASE WHEN t.named = 1 THEN t.name END, t.original = 1
    FROM unnest($2::BIGINT[], $3::TEXT[], $4::TEXT[], $5::TEXT[], $6::BIGINT[], $7::BIGINT[])
        t (id, language, kind, name, named, original)";

/// Deletes a damaged list of tracks of a file: the next reader takes them from their rows.
const DELETE_DAMAGED_LIST: &str = "UPDATE details SET tracks = NULL WHERE video = $1
    AND tracks <> (SELECT json_group_array(track) FROM (
        SELECT track FROM track_texts WHERE video = $1 ORDER BY id))";

const HAS_TRANSCRIPTS: &str = "SELECT EXISTS (SELECT 1 FROM wishes WHERE video = $1)";

const PUT_METADATA: &str = "INSERT INTO details (video, metadata) VALUES ($1, $2)
    ON CONFLICT (video) DO UPDATE SET metadata = excluded.metadata";

/// Statements that must not scan tables, for the test of the query plans.
#[cfg(all(test, feature = "sqlite"))]
pub(crate) const INDEXED_STATEMENTS: [&str; 6] =
    [STORED_TRACKS, MARK_ORIGINALS.sqlite, ADD_TRACK, DELETE_DAMAGED_LIST, HAS_TRANSCRIPTS, PUT_METADATA];

/// The columns of [`sqlite_details`] as they were read. They are decoded on use: a transcript that is only found needs
/// none of them.
#[derive(Debug)]
pub(super) struct EncodedDetails {
    metadata: Value<'static>,
    tracks: Value<'static>,
}

impl EncodedDetails {
    /// Takes the columns, of which this is the first.
    pub(super) fn take(row: &mut Row, first: usize) -> DbResult<Self> {
        Ok(Self { metadata: row.take(first)?, tracks: row.take(first + 1)? })
    }

    /// Decodes what is known of the video. What does not decode is left out: it never costs a transcript.
    pub(super) fn decode(&self) -> Arc<VideoDetails> {
        let metadata = decode_metadata(&self.metadata).unwrap_or_default();
        Arc::new(VideoDetails { metadata, tracks: self.decode_tracks().into_iter().flatten().collect() })
    }

    /// Checks that all of it decodes.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Corrupt`] if some of it does not.
    pub(super) fn check(&self) -> Result<()> {
        let is_sound =
            decode_metadata(&self.metadata).is_some() && self.decode_tracks().iter().all(Option::is_some);
        if is_sound { Ok(()) } else { Err(corrupt("the metadata or the tracks of the video are damaged")) }
    }

    /// The tracks, `None` for each that does not decode.
    fn decode_tracks(&self) -> Vec<Option<TrackInfo>> {
        let texts: Option<Vec<String>> = FromValue::from_value(self.tracks.clone());
        texts.map_or_else(|| vec![None], |texts| texts.iter().map(|text| decode_track(text)).collect())
    }

    /// Size in memory.
    pub(super) fn memory_bytes(&self) -> u64 {
        let bytes = |column: &Value<'_>| match column {
            Value::Text(json) => json.len(),
            Value::Texts(texts) => texts.iter().map(|text| text.len() + size_of::<String>()).sum(),
            _ => 0,
        };
        (bytes(&self.metadata) + bytes(&self.tracks)) as u64
    }
}

fn decode_track(text: &str) -> Option<TrackInfo> {
    let mut parts = text.splitn(4, ' ');
    let (language, kind, original) = (parts.next()?, parts.next()?, parts.next()?);
    Some(TrackInfo {
        language: LanguageTag::from_canonical(language),
        kind: TrackKind::from_name(kind)?,
        name: parts.next().map(str::to_owned),
        original: original == "1",
    })
}

/// `None` if it does not decode. It is unknown then, and the next put replaces it.
fn decode_metadata(column: &Value<'_>) -> Option<VideoMetadata> {
    let metadata = match column {
        Value::Null => return Some(VideoMetadata::default()),
        Value::Text(json) => serde_json::from_str(json).ok(),
        // No UTF-8.
        _ => None,
    };
    if metadata.is_none() {
        tracing::warn!("stored metadata does not decode, treated as unknown");
    }
    metadata
}

/// What a put knows of its video after it.
pub(super) struct UpdatedDetails {
    /// The number of the transcript's own track.
    pub(super) track: i64,
    pub(super) details: Arc<VideoDetails>,
    /// Whether they differ from those before.
    pub(super) is_changed: bool,
}

/// Merges the tracks and the metadata of a request into those known before.
pub(super) async fn update<S: Session>(
    db: &mut S,
    video: &str,
    request: &PutRequest,
    metadata_before: &Value<'_>,
) -> DbResult<UpdatedDetails> {
    // The tracks first: in a file, a new row of the details then lists them at once.
    let (track, tracks, are_new_tracks) = update_tracks(db, video, request).await?;
    let stored = decode_metadata(metadata_before);
    let is_damaged = stored.is_none();
    let before = stored.unwrap_or_default();
    let metadata = request.metadata.clone().or(&before);
    let is_new_metadata = is_damaged || metadata != before;
    // A file has a row for each video, because it lists the tracks.
    if is_new_metadata || (!S::IS_REMOTE && *metadata_before == Value::Null) {
        db.execute(PUT_METADATA, &values![video, codec::json(&metadata)?]).await?;
    }
    let is_repaired =
        !S::IS_REMOTE && request.replace && db.execute(DELETE_DAMAGED_LIST, &values![video]).await? > 0;
    let details = Arc::new(VideoDetails { metadata, tracks });
    let is_changed = is_new_metadata || are_new_tracks || is_repaired;
    Ok(UpdatedDetails { track, details, is_changed })
}

/// Returns the number of the transcript's own track, all tracks, and whether they changed.
async fn update_tracks<S: Session>(
    db: &mut S,
    video: &str,
    request: &PutRequest,
) -> DbResult<(i64, Vec<TrackInfo>, bool)> {
    let own = &request.transcript.track;
    let (tracks, is_changed) = merge_tracks(db, video, &request.known_tracks, Some(own), request.now).await?;
    let id = tracks.iter().find_map(|(id, track)| track.is_same(own).then_some(*id));
    let id = id.ok_or_else(|| Error::unexpected("the track of a stored transcript is missing"))?;
    Ok((id, tracks.into_iter().map(|(_, track)| track).collect(), is_changed))
}

/// Merges tracks, and that of a transcript, into the known ones of a video. Returns all of them with their numbers, and
/// whether they changed.
///
/// Left out is a track that was listed only in place of one that cannot be read.
async fn merge_tracks<S: Session>(
    db: &mut S,
    video: &str,
    known: &[TrackInfo],
    own: Option<&TrackInfo>,
    now: Timestamp,
) -> DbResult<(Vec<(i64, TrackInfo)>, bool)> {
    let mut rows = db.rows(STORED_TRACKS, &values![video]).await?;
    // A damaged row stays as it is: the transcript's own track gets another one.
    let mut tracks: Vec<_> = rows.iter_mut().filter_map(|row| decode_info(row, 0).ok()).collect();
    let (mut originals, mut new): (Vec<i64>, Vec<TrackInfo>) = (Vec::new(), Vec::new());
    for track in known.iter().filter(|track| !track.is_unreadable()).chain(own) {
        if let Some((id, stored)) = tracks.iter_mut().find(|(_, stored)| stored.is_same(track)) {
            originals.extend((track.original && !stored.original).then_some(*id));
            stored.original |= track.original;
        } else if let Some(new) = new.iter_mut().find(|new| new.is_same(track)) {
            new.original |= track.original;
        } else {
            new.push(track.clone());
        }
    }
    let is_changed = !originals.is_empty() || !new.is_empty();
    if !originals.is_empty() {
        db.execute(MARK_ORIGINALS, &values![video, originals]).await?;
    }
    let added = add_tracks(db, video, &new, now).await?;
    tracks.extend(added.into_iter().zip(new));
    Ok((tracks, is_changed))
}

/// Tracks that a video is known to have.
pub(super) struct AddTracksTx {
    pub(super) video: VideoId,
    pub(super) tracks: Vec<TrackInfo>,
    pub(super) now: Timestamp,
}

impl WriteTx for AddTracksTx {
    type Outcome = ();

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<()> {
        let video = self.video.to_string();
        let (_, is_changed) = merge_tracks(db, &video, &self.tracks, None, self.now).await?;
        let is_archived = is_changed && db.only_row(HAS_TRANSCRIPTS, &values![&video]).await?.take(0)?;
        count_changed_details(db, &video, is_archived).await
    }
}

/// Adds tracks; returns their numbers in the same order.
async fn add_tracks<S: Session>(
    db: &mut S,
    video: &str,
    tracks: &[TrackInfo],
    now: Timestamp,
) -> DbResult<Vec<i64>> {
    if !S::IS_REMOTE {
        let mut ids = Vec::with_capacity(tracks.len());
        for TrackInfo { language, kind, name, original } in tracks {
            let row = values![video, language.as_str(), kind.as_str(), name.as_ref(), *original];
            ids.push(db.only_row(ADD_TRACK, &row).await?.take(0)?);
        }
        return Ok(ids);
    }
    let ids: Vec<i64> = tracks.iter().filter_map(|_| db.next_number(now)).collect();
    if !tracks.is_empty() {
        let texts = |text: fn(&TrackInfo) -> &str| tracks.iter().map(text).collect::<Vec<_>>();
        let flags = |flag: fn(&TrackInfo) -> bool| tracks.iter().map(|track| flag(track).into()).collect();
        let (is_named, is_original): (Vec<i64>, Vec<i64>) =
            (flags(|track| track.name.is_some()), flags(|track| track.original));
        let rows = values![
            video,
            ids.clone(),
            texts(|track| track.language.as_str()),
            texts(|track| track.kind.as_str()),
            texts(|track| track.name.as_deref().unwrap_or_default()),
            is_named,
            is_original,
        ];
        db.execute(ADD_TRACKS, &rows).await?;
    }
    Ok(ids)
}
