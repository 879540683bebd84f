//! Keeping a transcript: what is known before decides whether it is stored, and for which wishes.

use std::sync::Arc;

use sqlx::{PgConnection, Row, postgres::PgRow};
use transcript_core::{
    Error, Result, Timestamp,
    archive::{Keep, StoredTranscript, Wish},
    transcript::{TrackInfo, Transcript},
    video::VideoId,
};

use super::{
    count,
    figures::Difference,
    read::{FIND, stored},
};
use crate::{
    body::Body,
    codec::{self, small},
    error::{Work, conflict},
    postgres::{
        database::{Change, Database},
        text::{own, perhaps, read, read_perhaps},
    },
};

const IS_WITHDRAWN: &str = "SELECT EXISTS (SELECT 1 FROM withdrawals WHERE video = $1)";
/// What the video's wishes have, and whether that is of the same content.
const ANSWERED: &str = "SELECT w.wish, t.revision, t.content_sha256 = $2, t.id
    FROM wishes w JOIN transcripts t ON t.video = w.video AND t.id = w.transcript WHERE w.video = $1";
const SAME: &str = "SELECT max(id) FROM transcripts WHERE video = $1 AND content_sha256 = $2";
const KNOWN: &str = "SELECT id, language, kind, name, original FROM tracks WHERE video = $1 ORDER BY id";

const IS_ORIGINAL: &str = "UPDATE tracks SET original = TRUE WHERE video = $1 AND id = ANY ($2)";
const LEARN: &str = "INSERT INTO tracks (video, id, language, kind, name, original)
    SELECT $1, t.id, t.language, t.kind, t.name, t.original
    FROM unnest($2::BIGINT[], $3::TEXT[], $4::TEXT[], $5::TEXT[], $6::BOOLEAN[])
        t (id, language, kind, name, original)";
const CLEAR_ABSENCES: &str = "DELETE FROM absences WHERE video = $1 AND wish = ANY ($2)";

const ADD: &str = "INSERT INTO transcripts
    (video, id, track, revision, parser_version, stored_at, content_sha256, body_bytes)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
const ADD_BODY: &str = "INSERT INTO bodies
    (video, transcript, content_sha256, source, length, checksum, about, segments)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

const HAS_TRANSCRIPT: &str = "SELECT EXISTS (SELECT 1 FROM transcripts WHERE video = $1)";

/// Lets wishes mean a transcript, also those that mean another, or only those that mean none.
const ANSWER: &str = "INSERT INTO wishes (video, wish, transcript)
    SELECT DISTINCT $1, wish, $3::BIGINT FROM unnest($2::TEXT[]) wish
    ON CONFLICT (video, wish) DO UPDATE SET transcript = excluded.transcript WHERE $4";

/// A transcript to keep, with its body; otherwise a [`Keep`].
pub(super) struct Packed {
    video: VideoId,
    wishes: Vec<Wish>,
    transcript: Arc<Transcript>,
    body: Body,
    known_tracks: Vec<TrackInfo>,
    parser_version: u32,
    replace: bool,
    now: Timestamp,
}

impl Packed {
    /// Packs what is to be kept; see [`Body::pack`].
    pub(super) fn pack(keep: Keep) -> Result<Self> {
        let Keep { video, wishes, transcript, known_tracks, parser_version, replace, now } = keep;
        let body = Body::pack(&transcript)?;
        Ok(Self { video, wishes, transcript, body, known_tracks, parser_version, replace, now })
    }

    fn names(&self) -> Vec<String> {
        self.wishes.iter().map(|wish| own(wish.as_str())).collect()
    }
}

/// What a wish has before a transcript is kept for it.
struct Answered {
    wish: String,
    revision: u32,
    /// Whether it is of the same content.
    is_same: bool,
    transcript: i64,
}

impl Answered {
    fn read(row: &PgRow) -> Work<Self> {
        let (wish, revision) = (read(row, 0)?, small(row.try_get(1)?)?);
        Ok(Self { wish, revision, is_same: row.try_get(2)?, transcript: row.try_get(3)? })
    }
}

/// A track that is known, or becomes known now.
struct Track {
    id: i64,
    language: String,
    kind: String,
    name: Option<String>,
    original: bool,
}

impl Track {
    fn is(&self, track: &TrackInfo) -> bool {
        self.language == track.language.as_str()
            && self.kind == track.kind.as_str()
            && self.name == track.name
    }

    fn read(row: &PgRow) -> Work<Self> {
        Ok(Self {
            id: row.try_get(0)?,
            language: read(row, 1)?,
            kind: read(row, 2)?,
            name: read_perhaps(row, 3)?,
            original: row.try_get(4)?,
        })
    }
}

/// Keeps a transcript, in one transaction.
pub(super) struct Shelve {
    pub(super) keep: Packed,
    pub(super) numbers: Database,
}

impl Shelve {
    fn number(&self) -> i64 {
        self.numbers.numbers(self.keep.now.as_millis(), 1)
    }

    /// Joins the tracks to those that are known; returns the number of the transcript's own.
    async fn learn(&self, db: &mut PgConnection, video: &str) -> Work<i64> {
        let rows = sqlx::query(KNOWN).bind(video.to_owned()).fetch_all(&mut *db).await?;
        let known = rows.iter().map(Track::read).collect::<Work<Vec<_>>>()?;
        let (mut originals, mut fresh): (Vec<i64>, Vec<Track>) = (Vec::new(), Vec::new());
        let mut mine = 0;
        for track in self.keep.known_tracks.iter().chain([&self.keep.transcript.track]) {
            if let Some(known) = known.iter().find(|known| known.is(track)) {
                originals.extend((track.original && !known.original).then_some(known.id));
                mine = known.id;
                continue;
            }
            if let Some(new) = fresh.iter_mut().find(|new| new.is(track)) {
                new.original |= track.original;
                mine = new.id;
                continue;
            }
            mine = self.number();
            fresh.push(Track {
                id: mine,
                language: track.language.as_str().to_owned(),
                kind: track.kind.as_str().to_owned(),
                name: track.name.clone(),
                original: track.original,
            });
        }
        if !originals.is_empty() {
            sqlx::query(IS_ORIGINAL).bind(video.to_owned()).bind(originals).execute(&mut *db).await?;
        }
        if !fresh.is_empty() {
            let learn = sqlx::query(LEARN)
                .bind(video.to_owned())
                .bind(fresh.iter().map(|track| track.id).collect::<Vec<_>>())
                .bind(fresh.iter().map(|track| own(&track.language)).collect::<Vec<_>>())
                .bind(fresh.iter().map(|track| own(&track.kind)).collect::<Vec<_>>())
                .bind(fresh.iter().map(|track| perhaps(track.name.as_deref())).collect::<Vec<_>>())
                .bind(fresh.iter().map(|track| track.original).collect::<Vec<_>>());
            learn.execute(db).await?;
        }
        // The transcript's own track came last.
        Ok(mine)
    }

    async fn add(&self, db: &mut PgConnection, video: &str, track: i64, revision: u32) -> Work<i64> {
        let (id, body) = (self.number(), &self.keep.body);
        let is_known: bool =
            sqlx::query(HAS_TRANSCRIPT).bind(video.to_owned()).fetch_one(&mut *db).await?.try_get(0)?;
        let add = sqlx::query(ADD)
            .bind(video.to_owned())
            .bind(id)
            .bind(track)
            .bind(i64::from(revision))
            .bind(i64::from(self.keep.parser_version))
            .bind(self.keep.now.as_millis())
            .bind(body.content_sha256.clone())
            .bind(codec::column(body.bytes())?);
        add.execute(&mut *db).await?;
        let add = sqlx::query(ADD_BODY)
            .bind(video.to_owned())
            .bind(id)
            .bind(body.content_sha256.clone())
            .bind(own(&body.source))
            .bind(codec::column(body.length)?)
            .bind(i64::from(body.checksum(&self.keep.video)))
            .bind(body.about.clone())
            .bind(body.segments.clone());
        add.execute(&mut *db).await?;
        let (videos, bytes) = (i64::from(!is_known), codec::column(body.bytes())?);
        Difference { videos, transcripts: 1, bytes, compact: 0 }.add(db).await?;
        Ok(id)
    }

    /// Lets the wishes mean this transcript, and counts what that makes untrue: as [`super::CHANGES`] says.
    async fn answer(
        &self,
        db: &mut PgConnection,
        video: &str,
        transcript: i64,
        replaces: bool,
        answered: &[Answered],
    ) -> Work<()> {
        let answer = sqlx::query(ANSWER).bind(video.to_owned()).bind(self.keep.names());
        answer.bind(transcript).bind(replaces).execute(&mut *db).await?;
        let has_another = answered.iter().any(|stored| stored.transcript != transcript);
        count(db, u64::from(has_another)).await
    }
}

impl Change for Shelve {
    type Outcome = StoredTranscript;

    async fn make(&self, db: &mut PgConnection) -> Work<StoredTranscript> {
        let keep = &self.keep;
        let (video, digest) = (own(&keep.video.to_string()), keep.body.content_sha256.clone());
        if sqlx::query(IS_WITHDRAWN).bind(video.clone()).fetch_one(&mut *db).await?.try_get(0)? {
            return Err(conflict("the video is withdrawn").into());
        }
        let rows = sqlx::query(ANSWERED).bind(video.clone()).bind(digest.clone()).fetch_all(&mut *db).await?;
        let all = rows.iter().map(Answered::read).collect::<Work<Vec<_>>>()?;
        let track = self.learn(db, &video).await?;
        sqlx::query(CLEAR_ABSENCES).bind(video.clone()).bind(keep.names()).execute(&mut *db).await?;

        let asked = |stored: &&Answered| keep.wishes.iter().any(|wish| wish.as_str() == stored.wish);
        let replaces = keep.replace && all.iter().filter(asked).any(|stored| !stored.is_same);
        let wanting = keep.wishes.iter().any(|wish| all.iter().all(|stored| stored.wish != wish.as_str()));
        if replaces {
            let highest = all.iter().filter(asked).map(|stored| stored.revision).max().unwrap_or(0);
            let transcript = self.add(db, &video, track, highest.saturating_add(1)).await?;
            self.answer(db, &video, transcript, true, &all).await?;
        } else if wanting {
            let same = sqlx::query(SAME).bind(video.clone()).bind(digest).fetch_one(&mut *db).await?;
            let transcript = match same.try_get::<Option<i64>, _>(0)? {
                Some(same) => same,
                None => self.add(db, &video, track, 1).await?,
            };
            self.answer(db, &video, transcript, false, &all).await?;
        }
        // What is acknowledged is what the database says.
        let first = own(keep.wishes.first().map_or("", Wish::as_str));
        let now = keep.now.as_millis();
        let row = sqlx::query(FIND).bind(video).bind(first).bind(now).fetch_one(db).await?;
        let missing = || Error::unexpected("a wish has no transcript after one was kept for it");
        Ok(stored(&row)?.ok_or_else(missing)?)
    }
}
