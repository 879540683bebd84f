//! The archive in SQLite.

mod bodies;
pub(super) mod cold;
pub(super) mod keep;
mod unread;

use bodies::Read;
use cold::compact;

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::types::Value;
use sqlx::{Row as _, SqliteConnection, sqlite::SqliteRow};
use transcript_core::{
    Error, ErrorKind, Page, PageRequest, Result, Retry, Timestamp,
    archive::{
        Absence, Archive, ArchivedTrack, Claim, Compact, Compacted, Found, Keep, Lease, Stats, StoredBody,
        StoredTranscript, Unread, Wish,
    },
    ids::{Cursor, Holder},
    transcript::{LanguageTag, TrackInfo, TrackKind},
    video::{ShortLink, VideoId},
};

use super::{SqliteArchive, lookups::Row, writer::Change};
use crate::{
    body::{Body, misplaced},
    codec::{self, number, small},
    columns::Columns,
    error::{Work, corrupt},
};

/// All that is known about a wish, in one row.
const FIND: &str = concat!(
    "SELECT d.video IS NOT NULL, t.revision, t.parser_version, t.stored_at, t.content_sha256,
        t.body_length, t.body, b.source, b.about, b.segments, a.reason, a.message, a.asked, a.until, ",
    compact!(),
    " FROM (SELECT 1)
    LEFT JOIN withdrawals d ON d.video = ?1
    LEFT JOIN wishes w ON w.video = ?1 AND w.wish = ?2 AND d.video IS NULL
    LEFT JOIN transcripts t ON t.id = w.transcript
    LEFT JOIN bodies b ON b.transcript = t.id
    LEFT JOIN absences a ON a.video = ?1 AND a.wish = ?2 AND w.wish IS NULL AND a.until > ?3"
);

const KEEP_ABSENCE: &str = "INSERT INTO absences (video, wish, reason, message, asked, until)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT (video, wish) DO UPDATE SET reason = excluded.reason, message = excluded.message,
        asked = excluded.asked, until = excluded.until";

/// Claims a lease, which then is its one row; and before that forgets a few leases and absences that ended long
/// ago. A fetch claims before it keeps an absence, so no more come in than go.
const CLAIM: &str = "
DELETE FROM leases WHERE (video, wish) IN (
    SELECT video, wish FROM leases WHERE until < ?1 ORDER BY until LIMIT 16
);
DELETE FROM absences WHERE (video, wish) IN (
    SELECT video, wish FROM absences WHERE until < ?1 ORDER BY until LIMIT 16
);
INSERT INTO leases (video, wish, holder, until) VALUES (?2, ?3, ?4, ?6)
    ON CONFLICT (video, wish) DO UPDATE SET holder = excluded.holder,
        until = iif(leases.holder = excluded.holder, max(leases.until, excluded.until), excluded.until)
    WHERE leases.holder = excluded.holder OR leases.until <= ?5
    RETURNING until";
const HELD: &str = "SELECT until FROM leases WHERE video = ?1 AND wish = ?2";
const UNCLAIM: &str = "DELETE FROM leases WHERE video = ?1 AND wish = ?2 AND holder = ?3";

/// How long what has ended is remembered: while a clock may still step back to a moment before its end.
const REMEMBERED_MS: i64 = 3_600_000;

const LINK: &str = "SELECT video FROM links WHERE address = ?1";
const KEEP_LINK: &str = "INSERT INTO links (address, video) VALUES (?1, ?2) ON CONFLICT (address) DO NOTHING";

const WITHDRAW: &str = "INSERT INTO withdrawals (video, at) VALUES (?1, ?2) ON CONFLICT (video) DO NOTHING";
const PUT_BACK: &str = "DELETE FROM withdrawals WHERE video = ?1";

const FORGET: &str = "DELETE FROM wishes WHERE video = ?1;
    DELETE FROM transcripts WHERE video = ?1;
    DELETE FROM tracks WHERE video = ?1;
    DELETE FROM absences WHERE video = ?1";

macro_rules! tracks {
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

const TRACKS: &str =
    tracks!("WHERE t.video = ?1 AND NOT EXISTS (SELECT 1 FROM withdrawals WHERE video = ?1) ORDER BY t.id");
const PAGE: &str = tracks!(
    "WHERE (t.video, t.id) > (?1, ?2)
        AND EXISTS (SELECT 1 FROM transcripts s WHERE s.video = t.video AND s.track = t.id)
    ORDER BY t.video, t.id LIMIT ?3"
);

const WITHDRAWN: &str = "SELECT video FROM withdrawals WHERE video > ?1 ORDER BY video LIMIT ?2";

const STATS: &str =
    "SELECT videos, transcripts, absences, withdrawn, links, bytes, compact FROM figures WHERE only_row = 1";

/// What must not grow with the archive, for the test of the plans.
#[cfg(test)]
pub(super) const HOT: [&str; 11] =
    [FIND, bodies::BODY, unread::UNREAD, KEEP_ABSENCE, CLAIM, HELD, UNCLAIM, LINK, FORGET, TRACKS, STATS];
const CHANGES: &str = "SELECT count FROM changes";

impl Change for Absence {
    type Outcome = ();

    async fn make(&self, db: &mut SqliteConnection) -> Work<()> {
        let absence = sqlx::query(KEEP_ABSENCE).bind(self.video.to_string()).bind(self.wish.to_string());
        let absence = absence.bind(self.reason.clone()).bind(self.message.clone());
        absence.bind(codec::json(&self.asked)?).bind(self.until.as_millis()).execute(db).await?;
        Ok(())
    }
}

impl Change for Lease {
    type Outcome = Claim;

    async fn make(&self, db: &mut SqliteConnection) -> Work<Claim> {
        let (video, wish) = (self.video.to_string(), self.wish.to_string());
        let now = self.now.as_millis();
        // In this order: a statement that skips a parameter has sqlx run out of them.
        let claim = sqlx::query(CLAIM).bind(now.saturating_sub(REMEMBERED_MS));
        let claim = claim.bind(video.clone()).bind(wish.clone()).bind(self.holder.as_str().to_owned());
        let claim = claim.bind(now).bind(self.until.as_millis());
        if claim.fetch_optional(&mut *db).await?.is_some() {
            return Ok(Claim::Claimed);
        }
        let held = sqlx::query(HELD).bind(video).bind(wish).fetch_one(db).await?;
        Ok(Claim::Busy { until: Timestamp::from_millis(held.try_get(0)?) })
    }
}

struct Unclaim {
    video: VideoId,
    wish: Wish,
    holder: Holder,
}

impl Change for Unclaim {
    type Outcome = ();

    async fn make(&self, db: &mut SqliteConnection) -> Work<()> {
        let unclaim = sqlx::query(UNCLAIM).bind(self.video.to_string()).bind(self.wish.to_string());
        unclaim.bind(self.holder.as_str().to_owned()).execute(db).await?;
        Ok(())
    }
}

struct KeepLink {
    address: String,
    video: VideoId,
}

impl Change for KeepLink {
    type Outcome = ();

    async fn make(&self, db: &mut SqliteConnection) -> Work<()> {
        sqlx::query(KEEP_LINK).bind(self.address.clone()).bind(self.video.to_string()).execute(db).await?;
        Ok(())
    }
}

struct Withdraw {
    video: VideoId,
    withdrawn: bool,
    now: Timestamp,
}

impl Change for Withdraw {
    type Outcome = ();

    async fn make(&self, db: &mut SqliteConnection) -> Work<()> {
        let statement = if self.withdrawn { sqlx::query(WITHDRAW) } else { sqlx::query(PUT_BACK) };
        let statement = statement.bind(self.video.to_string());
        let statement = if self.withdrawn { statement.bind(self.now.as_millis()) } else { statement };
        statement.execute(db).await?;
        Ok(())
    }
}

struct Forget(VideoId);

impl Change for Forget {
    type Outcome = ();

    async fn make(&self, db: &mut SqliteConnection) -> Work<()> {
        sqlx::query(FORGET).bind(self.0.to_string()).execute(db).await?;
        Ok(())
    }
}

#[async_trait]
impl Archive for SqliteArchive {
    async fn find(&self, video: &VideoId, wish: &Wish, now: Timestamp) -> Result<Found> {
        let [video_name, wish_name] = names(video, wish);
        let bound = [video_name, wish_name, Value::Integer(now.as_millis())];
        let found = self.look_up(FIND, &bound, |row| what_is_known(video, wish, row)).await?;
        found.ok_or_else(|| Error::unexpected("a wish was asked for and no row came"))
    }

    async fn body(&self, video: &VideoId, wish: &Wish) -> Result<Option<StoredBody>> {
        match self.read_body(video, wish).await? {
            Read::Body(body) => Ok(Some(body)),
            Read::Elsewhere => self.thawed(video, wish).await,
            Read::Nothing => Ok(None),
        }
    }

    async fn unread(&self, video: &VideoId, wish: &Wish) -> Result<Option<Arc<dyn Unread>>> {
        self.find_unread(video, wish).await
    }

    async fn tracks(&self, video: &VideoId) -> Result<Vec<ArchivedTrack>> {
        let found = self.database.find(|| sqlx::query(TRACKS).bind(video.to_string()), archived);
        Ok(found.await?.into_iter().map(|(_, track)| track).collect())
    }

    async fn keep(&self, keep: Keep) -> Result<StoredTranscript> {
        keep.check()?;
        // Packing takes a while, in which no other task should wait.
        let packing = self.database.runtime.spawn_blocking(|| keep::Shelve::pack(keep)).await;
        let packed =
            packing.map_err(|error| Error::unexpected(format!("packing a transcript failed: {error}")));
        self.database.make(packed.flatten()?).await
    }

    async fn keep_absence(&self, absence: Absence) -> Result<()> {
        self.database.make(absence).await
    }

    async fn claim(&self, lease: Lease) -> Result<Claim> {
        self.database.make(lease).await
    }

    async fn unclaim(&self, video: &VideoId, wish: &Wish, holder: &Holder) -> Result<()> {
        let (video, wish, holder) = (video.clone(), wish.clone(), holder.clone());
        self.database.make(Unclaim { video, wish, holder }).await
    }

    async fn link(&self, link: &ShortLink) -> Result<Option<VideoId>> {
        let bound = [Value::Text(link.address().to_owned())];
        self.look_up(LINK, &bound, |mut row| Ok(codec::video(&row.take::<String>(0)?)?)).await
    }

    async fn keep_link(&self, link: &ShortLink, video: &VideoId) -> Result<()> {
        let address = link.address().to_owned();
        self.database.make(KeepLink { address, video: video.clone() }).await
    }

    async fn withdraw(&self, video: &VideoId, withdrawn: bool, now: Timestamp) -> Result<()> {
        self.database.make(Withdraw { video: video.clone(), withdrawn, now }).await
    }

    async fn forget(&self, video: &VideoId) -> Result<()> {
        self.database.make(Forget(video.clone())).await
    }

    async fn changes(&self) -> Result<u64> {
        let found = self.look_up(CHANGES, &[], |mut row| Ok(number(row.take(0)?)?)).await?;
        found.ok_or_else(|| corrupt("the count of changes is missing"))
    }

    async fn page(&self, page: PageRequest) -> Result<Page<ArchivedTrack>> {
        let (video, id) = page.after.as_ref().map_or(Ok((String::new(), 0)), read_cursor)?;
        let ask = || sqlx::query(PAGE).bind(video.clone()).bind(id).bind(codec::one_more(&page));
        let found = self.database.find(ask, archived).await?;
        let found = codec::page_of(found, &page, |(id, track)| format!("{}/{id}", track.video));
        Ok(Page { items: found.items.into_iter().map(|(_, track)| track).collect(), next: found.next })
    }

    async fn withdrawn(&self, page: PageRequest) -> Result<Page<VideoId>> {
        let after = page.after.as_ref().map_or("", Cursor::as_str).to_owned();
        let ask = || sqlx::query(WITHDRAWN).bind(after.clone()).bind(codec::one_more(&page));
        let found = self.database.find(ask, |row| Ok(codec::video(row.try_get(0)?)?)).await?;
        Ok(codec::page_of(found, &page, VideoId::to_string))
    }

    async fn stats(&self) -> Result<Stats> {
        let found = self.database.find_first(
            || sqlx::query(STATS),
            |row| {
                Ok(Stats {
                    videos: number(row.try_get(0)?)?,
                    transcripts: number(row.try_get(1)?)?,
                    absences: number(row.try_get(2)?)?,
                    withdrawn: number(row.try_get(3)?)?,
                    links: number(row.try_get(4)?)?,
                    bytes: number(row.try_get(5)?)?,
                    compact: number(row.try_get(6)?)?,
                })
            },
        );
        Ok(found.await?.unwrap_or_default())
    }

    async fn compact(&self, ask: Compact) -> Result<Compacted> {
        self.compact_some(&ask).await
    }
}

/// The names of a video and a wish, as statements take them.
fn names(video: &VideoId, wish: &Wish) -> [Value; 2] {
    [Value::Text(video.to_string()), Value::Text(wish.to_string())]
}

fn what_is_known(video: &VideoId, wish: &Wish, mut row: Row) -> Work<Found> {
    if row.take::<i64>(0)? != 0 {
        return Ok(Found::Withdrawn);
    }
    if let Some(stored) = stored(&mut row)? {
        // The digest covers the video, but not where it lies.
        return if stored.transcript.video == *video {
            Ok(Found::Transcript(stored))
        } else {
            Err(misplaced().into())
        };
    }
    let Some(reason) = row.take(10)? else {
        return Ok(Found::Nothing);
    };
    Ok(Found::Absent(Absence {
        video: video.clone(),
        wish: wish.clone(),
        reason,
        message: row.take(11)?,
        asked: listed(&row.take::<String>(12)?)?,
        until: Timestamp::from_millis(row.take(13)?),
    }))
}

/// The transcript in a row of [`FIND`].
fn stored(row: &mut Row) -> Work<Option<StoredTranscript>> {
    let Some(revision) = row.take::<Option<i64>>(1)? else {
        return Ok(None);
    };
    let (content_sha256, length): (Vec<u8>, _) = (row.take(4)?, number(row.take(5)?)?);
    let transcript = match row.take::<Option<Vec<u8>>>(9)? {
        Some(segments) => {
            let (source, about) = (row.take(7)?, row.take(8)?);
            Body { content_sha256: content_sha256.clone(), source, length, about, segments }.unpack()?
        }
        None => match row.take::<Option<Vec<u8>>>(14)? {
            Some(compact) => crate::cold::unpack(&compact, &content_sha256)?,
            None => {
                Columns { content_sha256: content_sha256.clone(), length, bytes: row.take(6)? }.unpack()?
            }
        },
    };
    Ok(Some(StoredTranscript {
        transcript: Arc::new(transcript),
        revision: small(revision)?,
        content_sha256,
        parser_version: small(row.take(2)?)?,
        stored_at: Timestamp::from_millis(row.take(3)?),
    }))
}

/// A track of a row of [`TRACKS`] or [`PAGE`], with its number.
fn archived(row: &SqliteRow) -> Work<(i64, ArchivedTrack)> {
    let kind = TrackKind::from_name(row.try_get(3)?);
    let wishes: Vec<String> = listed(row.try_get(6)?)?;
    let track = ArchivedTrack {
        video: codec::video(row.try_get(0)?)?,
        track: TrackInfo {
            language: LanguageTag::from_canonical(row.try_get::<String, _>(2)?),
            kind: kind.ok_or_else(|| corrupt("a stored track is of no known kind"))?,
            name: row.try_get(4)?,
            original: row.try_get(5)?,
        },
        wishes: wishes.iter().map(|wish| Wish::from_name(wish)).collect(),
        revision: row.try_get::<Option<i64>, _>(7)?.map(small).transpose()?,
        stored_at: row.try_get::<Option<i64>, _>(8)?.map(Timestamp::from_millis),
    };
    Ok((row.try_get(1)?, track))
}

fn listed<T: serde::de::DeserializeOwned>(json: &str) -> Result<Vec<T>> {
    serde_json::from_str(json).map_err(|_| corrupt("a stored list is damaged"))
}

fn read_cursor(cursor: &Cursor) -> Result<(String, i64)> {
    let parts = cursor.as_str().rsplit_once('/');
    parts
        .and_then(|(video, id)| Some((video.to_owned(), id.parse().ok()?)))
        .ok_or_else(|| Error::new(ErrorKind::Invalid, Retry::Never, "this is no cursor of this store"))
}
