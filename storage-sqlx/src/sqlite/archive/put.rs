//! Stores transcripts: existing rows decide whether one is added, and for which selectors.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sqlx::{Row as _, SqliteConnection};
use transcript_core::{
    Error, Result, Timestamp,
    archive::{PutRequest, StoredTranscript, TrackSelector},
    transcript::{TrackInfo, Transcript},
    video::VideoId,
};

use super::{FIND, listed, stored};
use crate::{
    body::EncodedBody,
    codec::{self, small},
    error::{DbResult, conflict},
    sqlite::{point_reads::PointRow, writer::WriteTx},
};

/// The state before a transcript is stored.
///
/// The columns: the withdrawal, the revisions of the selectors, the newest transcript of the same content, and the
/// known tracks.
const LOAD_BEFORE_PUT: &str = "SELECT
    EXISTS (SELECT 1 FROM withdrawals WHERE video = ?1),
    (SELECT json_group_array(json_object('wish', wish, 'revision', revision,
            'same', json(CASE WHEN content_sha256 = ?2 THEN 'true' ELSE 'false' END)))
        FROM wishes JOIN transcripts ON transcripts.id = wishes.transcript WHERE wishes.video = ?1),
    (SELECT max(id) FROM transcripts WHERE video = ?1 AND content_sha256 = ?2),
    (SELECT json_group_array(json_object('id', id, 'language', language, 'kind', kind, 'name', name,
            'original', original)) FROM tracks WHERE video = ?1)";

/// Stores tracks and deletes absences; its one document is a [`TrackUpdate`].
const UPDATE_TRACKS: &str = "
UPDATE tracks SET original = 1 WHERE id IN (SELECT value FROM json_each(?1, '$.originals'));
INSERT INTO tracks (video, language, kind, name, original)
    SELECT ?1 ->> '$.video', value ->> 'language', value ->> 'kind', value ->> 'name', value ->> 'original'
    FROM json_each(?1, '$.tracks') ORDER BY key;
DELETE FROM absences
    WHERE video = ?1 ->> '$.video' AND wish IN (SELECT value FROM json_each(?1, '$.wishes'))";

const ADD_TRANSCRIPT: &str = "
INSERT INTO transcripts
    (video, track, revision, parser_version, stored_at, content_sha256, body_length, body_bytes, body)
    VALUES (?1, (SELECT id FROM tracks WHERE video = ?1 AND language = ?2 AND kind = ?3 AND name IS ?4),
        ?5, ?6, ?7, ?8, ?9, ?10, x'');
INSERT INTO bodies (transcript, content_sha256, source, length, checksum, about, segments)
    VALUES (last_insert_rowid(), ?8, ?11, ?9, ?12, ?13, ?14)";

/// Points selectors to a transcript: all of them, or only those without one.
const PUT_SELECTORS: &str = "INSERT INTO wishes (video, wish, transcript)
    SELECT ?1, value, ?3 FROM json_each(?2) WHERE true
    ON CONFLICT (video, wish) DO UPDATE SET transcript = excluded.transcript WHERE ?4";

/// The transcript of a selector, without its text.
const STORED_TRANSCRIPT: &str = "SELECT t.revision, t.parser_version, t.stored_at, t.content_sha256
    FROM wishes w JOIN transcripts t ON t.id = w.transcript WHERE w.video = ?1 AND w.wish = ?2";

/// Statements that must not scan tables, for the test of the query plans.
#[cfg(test)]
pub(in crate::sqlite) const INDEXED_STATEMENTS: [&str; 5] =
    [LOAD_BEFORE_PUT, UPDATE_TRACKS, ADD_TRANSCRIPT, PUT_SELECTORS, STORED_TRANSCRIPT];

/// A transcript to store, with its encoded body; otherwise as [`PutRequest`].
pub(super) struct PutTranscriptTx {
    video: VideoId,
    selectors: Vec<TrackSelector>,
    transcript: Arc<Transcript>,
    body: EncodedBody,
    known_tracks: Vec<TrackInfo>,
    parser_version: u32,
    replace: bool,
    now: Timestamp,
}

impl PutTranscriptTx {
    /// Encodes the transcript; see [`EncodedBody::pack`].
    pub(super) fn pack(request: PutRequest) -> Result<Self> {
        let PutRequest { video, selectors, transcript, known_tracks, parser_version, replace, now } = request;
        let body = EncodedBody::pack(&transcript)?;
        Ok(Self { video, selectors, transcript, body, known_tracks, parser_version, replace, now })
    }
}

/// The transcript of a selector before the write.
#[derive(Deserialize)]
struct SelectorState {
    #[serde(rename = "wish")]
    selector: String,
    revision: u32,
    /// Whether it has the same content.
    same: bool,
}

#[derive(Deserialize)]
struct StoredTrack {
    id: i64,
    language: String,
    kind: String,
    name: Option<String>,
    original: i64,
}

impl StoredTrack {
    fn matches(&self, track: &TrackInfo) -> bool {
        self.language == track.language.as_str()
            && self.kind == track.kind.as_str()
            && self.name == track.name
    }
}

#[derive(Serialize)]
struct TrackUpdate<'a> {
    video: String,
    #[serde(rename = "wishes")]
    selectors: Vec<&'a str>,
    /// Tracks now known to be in the spoken language.
    originals: Vec<i64>,
    tracks: Vec<NewTrack<'a>>,
}

#[derive(Serialize)]
struct NewTrack<'a> {
    language: &'a str,
    kind: &'static str,
    name: Option<&'a str>,
    original: i64,
}

impl<'a> TrackUpdate<'a> {
    fn new(put: &'a PutTranscriptTx, known: &[StoredTrack]) -> Self {
        let mut update = Self {
            video: put.video.to_string(),
            selectors: put.selectors.iter().map(TrackSelector::as_str).collect(),
            originals: Vec::new(),
            tracks: Vec::new(),
        };
        for track in put.known_tracks.iter().chain([&put.transcript.track]) {
            let original = i64::from(track.original);
            if let Some(known) = known.iter().find(|known| known.matches(track)) {
                update.originals.extend((known.original < original).then_some(known.id));
                continue;
            }
            let (language, kind, name) =
                (track.language.as_str(), track.kind.as_str(), track.name.as_deref());
            match update
                .tracks
                .iter_mut()
                .find(|new| (new.language, new.kind, new.name) == (language, kind, name))
            {
                Some(new) => new.original = new.original.max(original),
                None => update.tracks.push(NewTrack { language, kind, name, original }),
            }
        }
        update
    }
}

impl PutTranscriptTx {
    async fn add_transcript(&self, db: &mut SqliteConnection, revision: u32) -> DbResult<i64> {
        let (track, body) = (&self.transcript.track, &self.body);
        let added = sqlx::query(ADD_TRANSCRIPT)
            .bind(self.video.to_string())
            .bind(track.language.as_str().to_owned())
            .bind(track.kind.as_str())
            .bind(track.name.clone())
            .bind(revision)
            .bind(self.parser_version)
            .bind(self.now.as_millis())
            .bind(body.content_sha256.clone())
            .bind(codec::column(body.length)?)
            .bind(codec::column(body.bytes())?)
            .bind(body.source.clone())
            .bind(body.checksum(&self.video))
            .bind(body.about.clone())
            .bind(body.segments.clone())
            .execute(db)
            .await?;
        // A body has the id of its transcript.
        Ok(added.last_insert_rowid())
    }

    /// The transcript of the first selector after the write, as stored.
    ///
    /// If its digest equals that of the written transcript, the text is not read again; otherwise it is read.
    async fn stored_result(&self, db: &mut SqliteConnection) -> DbResult<StoredTranscript> {
        let video = self.video.to_string();
        let first = self.selectors.first().map_or("", TrackSelector::as_str).to_owned();
        let row = sqlx::query(STORED_TRANSCRIPT)
            .bind(video.clone())
            .bind(first.clone())
            .fetch_one(&mut *db)
            .await?;
        let content_sha256: Vec<u8> = row.try_get(3)?;
        if content_sha256 == self.body.content_sha256 {
            return Ok(StoredTranscript {
                transcript: Arc::clone(&self.transcript),
                revision: small(row.try_get(0)?)?,
                content_sha256,
                parser_version: small(row.try_get(1)?)?,
                stored_at: Timestamp::from_millis(row.try_get(2)?),
            });
        }
        let now = self.now.as_millis();
        let row = sqlx::query(FIND).bind(video).bind(first).bind(now).fetch_one(db).await?;
        let missing = || Error::unexpected("a selector has no transcript after one was stored for it");
        Ok(stored(&mut PointRow::from_sqlx(&row)?)?.ok_or_else(missing)?)
    }
}

impl WriteTx for PutTranscriptTx {
    type Outcome = StoredTranscript;

    async fn run(&self, db: &mut SqliteConnection) -> DbResult<StoredTranscript> {
        let video = self.video.to_string();
        let before = sqlx::query(LOAD_BEFORE_PUT)
            .bind(video.clone())
            .bind(self.body.content_sha256.clone())
            .fetch_one(&mut *db)
            .await?;
        if before.try_get(0)? {
            return Err(conflict("the video is withdrawn").into());
        }
        let mut states: Vec<SelectorState> = listed(before.try_get(1)?)?;
        states.retain(|stored| self.selectors.iter().any(|selector| selector.as_str() == stored.selector));
        let known: Vec<StoredTrack> = listed(before.try_get(3)?)?;
        sqlx::query(UPDATE_TRACKS)
            .bind(codec::json(&TrackUpdate::new(self, &known))?)
            .execute(&mut *db)
            .await?;

        let replaces = self.replace && states.iter().any(|stored| !stored.same);
        let has_missing = self
            .selectors
            .iter()
            .any(|selector| states.iter().all(|stored| stored.selector != selector.as_str()));
        let transcript = if replaces {
            let highest = states.iter().map(|stored| stored.revision).max().unwrap_or(0);
            Some(self.add_transcript(db, highest.saturating_add(1)).await?)
        } else if has_missing {
            match before.try_get::<Option<i64>, _>(2)? {
                Some(same) => Some(same),
                None => Some(self.add_transcript(db, 1).await?),
            }
        } else {
            None
        };
        if let Some(transcript) = transcript {
            let selectors: Vec<&str> = self.selectors.iter().map(TrackSelector::as_str).collect();
            let answer = sqlx::query(PUT_SELECTORS).bind(video.clone()).bind(codec::json(&selectors)?);
            answer.bind(transcript).bind(replaces).execute(&mut *db).await?;
        }
        self.stored_result(db).await
    }
}
