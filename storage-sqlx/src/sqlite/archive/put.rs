//! Stores transcripts: existing rows decide whether one is added, and for which selectors.

use std::sync::Arc;

use serde::Deserialize;
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
    sql::{Session, WriteTx, values},
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

const MARK_ORIGINALS: &str = "UPDATE tracks SET original = 1 WHERE id IN (SELECT value FROM json_each(?1))";
const ADD_TRACK: &str =
    "INSERT INTO tracks (video, language, kind, name, original) VALUES (?1, ?2, ?3, ?4, ?5)";
const DELETE_ABSENCES: &str =
    "DELETE FROM absences WHERE video = ?1 AND wish IN (SELECT value FROM json_each(?2))";

const ADD_TRANSCRIPT: &str = "INSERT INTO transcripts
    (video, track, revision, parser_version, stored_at, content_sha256, body_length, body_bytes, body)
    VALUES (?1, (SELECT id FROM tracks WHERE video = ?1 AND language = ?2 AND kind = ?3 AND name IS ?4),
        ?5, ?6, ?7, ?8, ?9, ?10, x'')
    RETURNING id";
/// A body has the id of its transcript.
const ADD_BODY: &str = "INSERT INTO bodies
    (transcript, content_sha256, source, length, checksum, about, segments)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

/// Points selectors to a transcript: all of them, or only those without one.
const PUT_SELECTORS: &str = "INSERT INTO wishes (video, wish, transcript)
    SELECT ?1, value, ?3 FROM json_each(?2) WHERE true
    ON CONFLICT (video, wish) DO UPDATE SET transcript = excluded.transcript WHERE ?4";

/// The transcript of a selector, without its text.
const STORED_TRANSCRIPT: &str = "SELECT t.revision, t.parser_version, t.stored_at, t.content_sha256
    FROM wishes w JOIN transcripts t ON t.id = w.transcript WHERE w.video = ?1 AND w.wish = ?2";

/// Statements that must not scan tables, for the test of the query plans.
#[cfg(test)]
pub(in crate::sqlite) const INDEXED_STATEMENTS: [&str; 8] = [
    LOAD_BEFORE_PUT,
    MARK_ORIGINALS,
    ADD_TRACK,
    DELETE_ABSENCES,
    ADD_TRANSCRIPT,
    ADD_BODY,
    PUT_SELECTORS,
    STORED_TRANSCRIPT,
];

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

/// Tracks to add, and those now known to be in the spoken language.
#[derive(Default)]
struct TrackUpdate<'a> {
    originals: Vec<i64>,
    tracks: Vec<NewTrack<'a>>,
}

struct NewTrack<'a> {
    language: &'a str,
    kind: &'static str,
    name: Option<&'a str>,
    original: i64,
}

impl<'a> TrackUpdate<'a> {
    fn new(put: &'a PutTranscriptTx, known: &[StoredTrack]) -> Self {
        let mut update = Self::default();
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
    fn selector_names(&self) -> Vec<&str> {
        self.selectors.iter().map(TrackSelector::as_str).collect()
    }

    /// Stores the tracks and deletes the absences.
    async fn update_tracks<S: Session>(&self, db: &mut S, known: &[StoredTrack]) -> DbResult<()> {
        let TrackUpdate { originals, tracks } = TrackUpdate::new(self, known);
        let video = self.video.to_string();
        if !originals.is_empty() {
            db.execute(MARK_ORIGINALS, &values![originals]).await?;
        }
        for NewTrack { language, kind, name, original } in tracks {
            db.execute(ADD_TRACK, &values![&video, language, kind, name, original]).await?;
        }
        db.execute(DELETE_ABSENCES, &values![&video, self.selector_names()]).await?;
        Ok(())
    }

    async fn add_transcript<S: Session>(&self, db: &mut S, revision: u32) -> DbResult<i64> {
        let (track, body) = (&self.transcript.track, &self.body);
        let length = codec::column(body.length)?;
        let transcript = values![
            self.video.to_string(),
            track.language.as_str(),
            track.kind.as_str(),
            track.name.as_ref(),
            revision,
            self.parser_version,
            self.now.as_millis(),
            &body.content_sha256,
            length,
            codec::column(body.bytes())?,
        ];
        let id: i64 = db.only_row(ADD_TRANSCRIPT, &transcript).await?.take(0)?;
        let checksum = body.checksum(&self.video);
        let row =
            values![id, &body.content_sha256, &body.source, length, checksum, &body.about, &body.segments];
        db.execute(ADD_BODY, &row).await?;
        Ok(id)
    }

    /// The transcript of the first selector after the write, as stored.
    ///
    /// If its digest equals that of the written transcript, the text is not read again; otherwise it is read.
    async fn stored_result<S: Session>(&self, db: &mut S) -> DbResult<StoredTranscript> {
        let video = self.video.to_string();
        let first = self.selectors.first().map_or("", TrackSelector::as_str);
        let mut row = db.only_row(STORED_TRANSCRIPT, &values![&video, first]).await?;
        let content_sha256: Vec<u8> = row.take(3)?;
        if content_sha256 == self.body.content_sha256 {
            return Ok(StoredTranscript {
                transcript: Arc::clone(&self.transcript),
                revision: small(row.take(0)?)?,
                content_sha256,
                parser_version: small(row.take(1)?)?,
                stored_at: Timestamp::from_millis(row.take(2)?),
            });
        }
        let mut row = db.only_row(FIND, &values![&video, first, self.now.as_millis()]).await?;
        let missing = || Error::unexpected("a selector has no transcript after one was stored for it");
        Ok(stored(&mut row)?.ok_or_else(missing)?)
    }
}

impl WriteTx for PutTranscriptTx {
    type Outcome = StoredTranscript;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<StoredTranscript> {
        let video = self.video.to_string();
        let mut before = db.only_row(LOAD_BEFORE_PUT, &values![&video, &self.body.content_sha256]).await?;
        if before.take(0)? {
            return Err(conflict("the video is withdrawn").into());
        }
        let mut states: Vec<SelectorState> = listed(before.get(1)?)?;
        states.retain(|stored| self.selectors.iter().any(|selector| selector.as_str() == stored.selector));
        let known: Vec<StoredTrack> = listed(before.get(3)?)?;
        self.update_tracks(db, &known).await?;

        let replaces = self.replace && states.iter().any(|stored| !stored.same);
        let has_missing = self
            .selectors
            .iter()
            .any(|selector| states.iter().all(|stored| stored.selector != selector.as_str()));
        let transcript = if replaces {
            let highest = states.iter().map(|stored| stored.revision).max().unwrap_or(0);
            Some(self.add_transcript(db, highest.saturating_add(1)).await?)
        } else if has_missing {
            match before.take::<Option<i64>>(2)? {
                Some(same) => Some(same),
                None => Some(self.add_transcript(db, 1).await?),
            }
        } else {
            None
        };
        if let Some(transcript) = transcript {
            let row = values![&video, self.selector_names(), transcript, replaces];
            db.execute(PUT_SELECTORS, &row).await?;
        }
        self.stored_result(db).await
    }
}
