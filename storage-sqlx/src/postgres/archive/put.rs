//! Stores transcripts: existing rows decide whether one is added, and for which selectors.

use std::sync::Arc;

use sqlx::{PgConnection, Row, postgres::PgRow};
use transcript_core::{
    Error, Result, Timestamp,
    archive::{PutRequest, StoredTranscript, TrackSelector},
    transcript::{TrackInfo, Transcript},
    video::VideoId,
};

use super::{
    count,
    read::{FIND, stored},
    stats::StatsDelta,
};
use crate::{
    body::EncodedBody,
    codec::{self, small},
    error::{DbResult, conflict},
    postgres::{
        database::{PgDatabase, WriteTx},
        text::{encode, encode_optional, read, read_optional},
    },
};

const IS_WITHDRAWN: &str = "SELECT EXISTS (SELECT 1 FROM withdrawals WHERE video = $1)";
/// The transcript of each selector of the video, and whether its content equals the new one.
const SELECTOR_STATES: &str = "SELECT w.wish, t.revision, t.content_sha256 = $2, t.id
    FROM wishes w JOIN transcripts t ON t.video = w.video AND t.id = w.transcript WHERE w.video = $1";
const SAME_CONTENT: &str = "SELECT max(id) FROM transcripts WHERE video = $1 AND content_sha256 = $2";
const STORED_TRACKS: &str =
    "SELECT id, language, kind, name, original FROM tracks WHERE video = $1 ORDER BY id";

const SET_ORIGINAL: &str = "UPDATE tracks SET original = TRUE WHERE video = $1 AND id = ANY ($2)";
const ADD_TRACKS: &str = "INSERT INTO tracks (video, id, language, kind, name, original)
    SELECT $1, t.id, t.language, t.kind, t.name, t.original
    FROM unnest($2::BIGINT[], $3::TEXT[], $4::TEXT[], $5::TEXT[], $6::BOOLEAN[])
        t (id, language, kind, name, original)";
const DELETE_ABSENCES: &str = "DELETE FROM absences WHERE video = $1 AND wish = ANY ($2)";

const ADD_TRANSCRIPT: &str = "INSERT INTO transcripts
    (video, id, track, revision, parser_version, stored_at, content_sha256, body_bytes)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
const ADD_BODY: &str = "INSERT INTO bodies
    (video, transcript, content_sha256, source, length, checksum, about, segments)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

const HAS_TRANSCRIPT: &str = "SELECT EXISTS (SELECT 1 FROM transcripts WHERE video = $1)";

/// Points selectors to a transcript: all of them, or only those without one.
const PUT_SELECTORS: &str = "INSERT INTO wishes (video, wish, transcript)
    SELECT DISTINCT $1, wish, $3::BIGINT FROM unnest($2::TEXT[]) wish
    ON CONFLICT (video, wish) DO UPDATE SET transcript = excluded.transcript WHERE $4";

/// A transcript to store, with its encoded body; otherwise as [`PutRequest`].
pub(super) struct PackedTranscript {
    video: VideoId,
    selectors: Vec<TrackSelector>,
    transcript: Arc<Transcript>,
    body: EncodedBody,
    known_tracks: Vec<TrackInfo>,
    parser_version: u32,
    replace: bool,
    now: Timestamp,
}

impl PackedTranscript {
    /// Encodes the transcript; see [`EncodedBody::pack`].
    pub(super) fn pack(request: PutRequest) -> Result<Self> {
        let PutRequest { video, selectors, transcript, known_tracks, parser_version, replace, now } = request;
        let body = EncodedBody::pack(&transcript)?;
        Ok(Self { video, selectors, transcript, body, known_tracks, parser_version, replace, now })
    }

    fn selector_names(&self) -> Vec<String> {
        self.selectors.iter().map(|selector| encode(selector.as_str())).collect()
    }
}

/// The transcript of a selector before the write.
struct SelectorState {
    selector: String,
    revision: u32,
    /// Whether it has the same content.
    is_same: bool,
    transcript: i64,
}

impl SelectorState {
    fn read(row: &PgRow) -> DbResult<Self> {
        let (selector, revision) = (read(row, 0)?, small(row.try_get(1)?)?);
        Ok(Self { selector, revision, is_same: row.try_get(2)?, transcript: row.try_get(3)? })
    }
}

/// A track, stored or to add.
struct PutTrack {
    id: i64,
    language: String,
    kind: String,
    name: Option<String>,
    original: bool,
}

impl PutTrack {
    fn matches(&self, track: &TrackInfo) -> bool {
        self.language == track.language.as_str()
            && self.kind == track.kind.as_str()
            && self.name == track.name
    }

    fn read(row: &PgRow) -> DbResult<Self> {
        Ok(Self {
            id: row.try_get(0)?,
            language: read(row, 1)?,
            kind: read(row, 2)?,
            name: read_optional(row, 3)?,
            original: row.try_get(4)?,
        })
    }
}

/// Stores a transcript, in one transaction.
pub(super) struct PutTranscriptTx {
    pub(super) transcript: PackedTranscript,
    pub(super) numbers: PgDatabase,
}

impl PutTranscriptTx {
    fn number(&self) -> i64 {
        self.numbers.numbers(self.transcript.now.as_millis(), 1)
    }

    /// Adds new tracks to the stored ones; returns the number of the transcript's own track.
    async fn add_tracks(&self, db: &mut PgConnection, video: &str) -> DbResult<i64> {
        let rows = sqlx::query(STORED_TRACKS).bind(video.to_owned()).fetch_all(&mut *db).await?;
        let known = rows.iter().map(PutTrack::read).collect::<DbResult<Vec<_>>>()?;
        let (mut originals, mut new_tracks): (Vec<i64>, Vec<PutTrack>) = (Vec::new(), Vec::new());
        let mut own_track = 0;
        for track in self.transcript.known_tracks.iter().chain([&self.transcript.transcript.track]) {
            if let Some(known) = known.iter().find(|known| known.matches(track)) {
                originals.extend((track.original && !known.original).then_some(known.id));
                own_track = known.id;
                continue;
            }
            if let Some(new) = new_tracks.iter_mut().find(|new| new.matches(track)) {
                new.original |= track.original;
                own_track = new.id;
                continue;
            }
            own_track = self.number();
            new_tracks.push(PutTrack {
                id: own_track,
                language: track.language.as_str().to_owned(),
                kind: track.kind.as_str().to_owned(),
                name: track.name.clone(),
                original: track.original,
            });
        }
        if !originals.is_empty() {
            sqlx::query(SET_ORIGINAL).bind(video.to_owned()).bind(originals).execute(&mut *db).await?;
        }
        if !new_tracks.is_empty() {
            let add_tracks = sqlx::query(ADD_TRACKS)
                .bind(video.to_owned())
                .bind(new_tracks.iter().map(|track| track.id).collect::<Vec<_>>())
                .bind(new_tracks.iter().map(|track| encode(&track.language)).collect::<Vec<_>>())
                .bind(new_tracks.iter().map(|track| encode(&track.kind)).collect::<Vec<_>>())
                .bind(
                    new_tracks.iter().map(|track| encode_optional(track.name.as_deref())).collect::<Vec<_>>(),
                )
                .bind(new_tracks.iter().map(|track| track.original).collect::<Vec<_>>());
            add_tracks.execute(db).await?;
        }
        // The transcript's own track came last.
        Ok(own_track)
    }

    async fn add_transcript(
        &self,
        db: &mut PgConnection,
        video: &str,
        track: i64,
        revision: u32,
    ) -> DbResult<i64> {
        let (id, body) = (self.number(), &self.transcript.body);
        let has_others: bool =
            sqlx::query(HAS_TRANSCRIPT).bind(video.to_owned()).fetch_one(&mut *db).await?.try_get(0)?;
        let add = sqlx::query(ADD_TRANSCRIPT)
            .bind(video.to_owned())
            .bind(id)
            .bind(track)
            .bind(i64::from(revision))
            .bind(i64::from(self.transcript.parser_version))
            .bind(self.transcript.now.as_millis())
            .bind(body.content_sha256.clone())
            .bind(codec::column(body.bytes())?);
        add.execute(&mut *db).await?;
        let add = sqlx::query(ADD_BODY)
            .bind(video.to_owned())
            .bind(id)
            .bind(body.content_sha256.clone())
            .bind(encode(&body.source))
            .bind(codec::column(body.length)?)
            .bind(i64::from(body.checksum(&self.transcript.video)))
            .bind(body.about.clone())
            .bind(body.segments.clone());
        add.execute(&mut *db).await?;
        let (videos, bytes) = (i64::from(!has_others), codec::column(body.bytes())?);
        StatsDelta { videos, transcripts: 1, bytes, compact: 0 }.add(db).await?;
        Ok(id)
    }

    /// Points the selectors to this transcript, and counts the invalidated results ([`super::CHANGES`]).
    async fn put_selectors(
        &self,
        db: &mut PgConnection,
        video: &str,
        transcript: i64,
        replaces: bool,
        states: &[SelectorState],
    ) -> DbResult<()> {
        let put_selectors =
            sqlx::query(PUT_SELECTORS).bind(video.to_owned()).bind(self.transcript.selector_names());
        put_selectors.bind(transcript).bind(replaces).execute(&mut *db).await?;
        let has_another = states.iter().any(|stored| stored.transcript != transcript);
        count(db, u64::from(has_another)).await
    }
}

impl WriteTx for PutTranscriptTx {
    type Outcome = StoredTranscript;

    async fn run(&self, db: &mut PgConnection) -> DbResult<StoredTranscript> {
        let packed = &self.transcript;
        let (video, digest) = (encode(&packed.video.to_string()), packed.body.content_sha256.clone());
        if sqlx::query(IS_WITHDRAWN).bind(video.clone()).fetch_one(&mut *db).await?.try_get(0)? {
            return Err(conflict("the video is withdrawn").into());
        }
        let rows =
            sqlx::query(SELECTOR_STATES).bind(video.clone()).bind(digest.clone()).fetch_all(&mut *db).await?;
        let states = rows.iter().map(SelectorState::read).collect::<DbResult<Vec<_>>>()?;
        let track = self.add_tracks(db, &video).await?;
        sqlx::query(DELETE_ABSENCES)
            .bind(video.clone())
            .bind(packed.selector_names())
            .execute(&mut *db)
            .await?;

        let is_requested = |stored: &&SelectorState| {
            packed.selectors.iter().any(|selector| selector.as_str() == stored.selector)
        };
        let replaces = packed.replace && states.iter().filter(is_requested).any(|stored| !stored.is_same);
        let has_missing = packed
            .selectors
            .iter()
            .any(|selector| states.iter().all(|stored| stored.selector != selector.as_str()));
        if replaces {
            let highest = states.iter().filter(is_requested).map(|stored| stored.revision).max().unwrap_or(0);
            let transcript = self.add_transcript(db, &video, track, highest.saturating_add(1)).await?;
            self.put_selectors(db, &video, transcript, true, &states).await?;
        } else if has_missing {
            let same = sqlx::query(SAME_CONTENT).bind(video.clone()).bind(digest).fetch_one(&mut *db).await?;
            let transcript = match same.try_get::<Option<i64>, _>(0)? {
                Some(same) => same,
                None => self.add_transcript(db, &video, track, 1).await?,
            };
            self.put_selectors(db, &video, transcript, false, &states).await?;
        }
        // Another writer may have stored a transcript first: return the stored one.
        let first = encode(packed.selectors.first().map_or("", TrackSelector::as_str));
        let now = packed.now.as_millis();
        let row = sqlx::query(FIND).bind(video).bind(first).bind(now).fetch_one(db).await?;
        let missing = || Error::unexpected("a selector has no transcript after one was stored for it");
        Ok(stored(&row)?.ok_or_else(missing)?)
    }
}
