//! Keeping a transcript: what is known before decides whether it is stored, and for which wishes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sqlx::{Row as _, SqliteConnection};
use transcript_core::{
    Error, Result, Timestamp,
    archive::{Keep, StoredTranscript, Wish},
    transcript::{TrackInfo, Transcript},
    video::VideoId,
};

use super::{FIND, listed, stored};
use crate::{
    body::Body,
    codec::{self, small},
    error::{Work, conflict},
    sqlite::{lookups::Row, writer::Change},
};

/// What keeping a transcript must know: the withdrawal, what the wishes have, the newest transcript of
/// the same content, and the known tracks.
const BEFORE_KEEP: &str = "SELECT
    EXISTS (SELECT 1 FROM withdrawals WHERE video = ?1),
    (SELECT json_group_array(json_object('wish', wish, 'revision', revision,
            'same', json(CASE WHEN content_sha256 = ?2 THEN 'true' ELSE 'false' END)))
        FROM wishes JOIN transcripts ON transcripts.id = wishes.transcript WHERE wishes.video = ?1),
    (SELECT max(id) FROM transcripts WHERE video = ?1 AND content_sha256 = ?2),
    (SELECT json_group_array(json_object('id', id, 'language', language, 'kind', kind, 'name', name,
            'original', original)) FROM tracks WHERE video = ?1)";

/// Learns tracks and clears absences; its one document is a [`Learn`].
const LEARN: &str = "
UPDATE tracks SET original = 1 WHERE id IN (SELECT value FROM json_each(?1, '$.originals'));
INSERT INTO tracks (video, language, kind, name, original)
    SELECT ?1 ->> '$.video', value ->> 'language', value ->> 'kind', value ->> 'name', value ->> 'original'
    FROM json_each(?1, '$.tracks') ORDER BY key;
DELETE FROM absences
    WHERE video = ?1 ->> '$.video' AND wish IN (SELECT value FROM json_each(?1, '$.wishes'))";

const ADD: &str = "
INSERT INTO transcripts
    (video, track, revision, parser_version, stored_at, content_sha256, body_length, body_bytes, body)
    VALUES (?1, (SELECT id FROM tracks WHERE video = ?1 AND language = ?2 AND kind = ?3 AND name IS ?4),
        ?5, ?6, ?7, ?8, ?9, ?10, x'');
INSERT INTO bodies (transcript, content_sha256, source, length, checksum, about, segments)
    VALUES (last_insert_rowid(), ?8, ?11, ?9, ?12, ?13, ?14)";

/// Lets wishes mean a transcript, also those that mean another, or only those that mean none.
const ANSWER: &str = "INSERT INTO wishes (video, wish, transcript)
    SELECT ?1, value, ?3 FROM json_each(?2) WHERE true
    ON CONFLICT (video, wish) DO UPDATE SET transcript = excluded.transcript WHERE ?4";

/// What a wish has now, but its words.
const KEPT: &str = "SELECT t.revision, t.parser_version, t.stored_at, t.content_sha256
    FROM wishes w JOIN transcripts t ON t.id = w.transcript WHERE w.video = ?1 AND w.wish = ?2";

/// What must not grow with the archive, for the test of the plans.
#[cfg(test)]
pub(in crate::sqlite) const HOT: [&str; 5] = [BEFORE_KEEP, LEARN, ADD, ANSWER, KEPT];

/// A transcript to keep, with its body; otherwise a [`Keep`].
pub(super) struct Shelve {
    video: VideoId,
    wishes: Vec<Wish>,
    transcript: Arc<Transcript>,
    body: Body,
    known_tracks: Vec<TrackInfo>,
    parser_version: u32,
    replace: bool,
    now: Timestamp,
}

impl Shelve {
    /// Packs what is to be kept; see [`Body::pack`].
    pub(super) fn pack(keep: Keep) -> Result<Self> {
        let Keep { video, wishes, transcript, known_tracks, parser_version, replace, now } = keep;
        let body = Body::pack(&transcript)?;
        Ok(Self { video, wishes, transcript, body, known_tracks, parser_version, replace, now })
    }
}

/// What a wish has before a transcript is kept for it.
#[derive(Deserialize)]
struct Answered {
    wish: String,
    revision: u32,
    /// Whether it is of the same content.
    same: bool,
}

#[derive(Deserialize)]
struct KnownTrack {
    id: i64,
    language: String,
    kind: String,
    name: Option<String>,
    original: i64,
}

impl KnownTrack {
    fn is(&self, track: &TrackInfo) -> bool {
        self.language == track.language.as_str()
            && self.kind == track.kind.as_str()
            && self.name == track.name
    }
}

#[derive(Serialize)]
struct Learn<'a> {
    video: String,
    wishes: Vec<&'a str>,
    /// Tracks that are known by now to be in the spoken language.
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

impl<'a> Learn<'a> {
    fn of(keep: &'a Shelve, known: &[KnownTrack]) -> Self {
        let mut learn = Self {
            video: keep.video.to_string(),
            wishes: keep.wishes.iter().map(Wish::as_str).collect(),
            originals: Vec::new(),
            tracks: Vec::new(),
        };
        for track in keep.known_tracks.iter().chain([&keep.transcript.track]) {
            let original = i64::from(track.original);
            if let Some(known) = known.iter().find(|known| known.is(track)) {
                learn.originals.extend((known.original < original).then_some(known.id));
                continue;
            }
            let (language, kind, name) =
                (track.language.as_str(), track.kind.as_str(), track.name.as_deref());
            match learn
                .tracks
                .iter_mut()
                .find(|new| (new.language, new.kind, new.name) == (language, kind, name))
            {
                Some(new) => new.original = new.original.max(original),
                None => learn.tracks.push(NewTrack { language, kind, name, original }),
            }
        }
        learn
    }
}

impl Shelve {
    async fn add(&self, db: &mut SqliteConnection, revision: u32) -> Work<i64> {
        let (track, body) = (&self.transcript.track, &self.body);
        let added = sqlx::query(ADD)
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
        // A body has the number of its transcript.
        Ok(added.last_insert_rowid())
    }

    /// What the first wish has now: what is acknowledged is what the database says. Words with the digest of
    /// these are these, so they are not read back; another transcript's are.
    async fn kept(&self, db: &mut SqliteConnection) -> Work<StoredTranscript> {
        let video = self.video.to_string();
        let first = self.wishes.first().map_or("", Wish::as_str).to_owned();
        let kept = sqlx::query(KEPT).bind(video.clone()).bind(first.clone()).fetch_one(&mut *db).await?;
        let content_sha256: Vec<u8> = kept.try_get(3)?;
        if content_sha256 == self.body.content_sha256 {
            return Ok(StoredTranscript {
                transcript: Arc::clone(&self.transcript),
                revision: small(kept.try_get(0)?)?,
                content_sha256,
                parser_version: small(kept.try_get(1)?)?,
                stored_at: Timestamp::from_millis(kept.try_get(2)?),
            });
        }
        let now = self.now.as_millis();
        let row = sqlx::query(FIND).bind(video).bind(first).bind(now).fetch_one(db).await?;
        let missing = || Error::unexpected("a wish has no transcript after one was kept for it");
        Ok(stored(&mut Row::of_sqlx(&row)?)?.ok_or_else(missing)?)
    }
}

impl Change for Shelve {
    type Outcome = StoredTranscript;

    async fn make(&self, db: &mut SqliteConnection) -> Work<StoredTranscript> {
        let video = self.video.to_string();
        let before = sqlx::query(BEFORE_KEEP)
            .bind(video.clone())
            .bind(self.body.content_sha256.clone())
            .fetch_one(&mut *db)
            .await?;
        if before.try_get(0)? {
            return Err(conflict("the video is withdrawn").into());
        }
        let mut answered: Vec<Answered> = listed(before.try_get(1)?)?;
        answered.retain(|stored| self.wishes.iter().any(|wish| wish.as_str() == stored.wish));
        let known: Vec<KnownTrack> = listed(before.try_get(3)?)?;
        sqlx::query(LEARN).bind(codec::json(&Learn::of(self, &known))?).execute(&mut *db).await?;

        let replaces = self.replace && answered.iter().any(|stored| !stored.same);
        let wanting =
            self.wishes.iter().any(|wish| answered.iter().all(|stored| stored.wish != wish.as_str()));
        let transcript = if replaces {
            let highest = answered.iter().map(|stored| stored.revision).max().unwrap_or(0);
            Some(self.add(db, highest.saturating_add(1)).await?)
        } else if wanting {
            match before.try_get::<Option<i64>, _>(2)? {
                Some(same) => Some(same),
                None => Some(self.add(db, 1).await?),
            }
        } else {
            None
        };
        if let Some(transcript) = transcript {
            let wishes: Vec<&str> = self.wishes.iter().map(Wish::as_str).collect();
            let answer = sqlx::query(ANSWER).bind(video.clone()).bind(codec::json(&wishes)?);
            answer.bind(transcript).bind(replaces).execute(&mut *db).await?;
        }
        self.kept(db).await
    }
}
