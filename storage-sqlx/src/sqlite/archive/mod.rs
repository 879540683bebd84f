//! The archive in SQLite.

mod bodies;
pub(super) mod cold;
mod lazy;
pub(super) mod put;

use bodies::BodyRead;
use cold::compact;

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{
    Error, ErrorKind, Page, PageRequest, Result, Retry, Timestamp,
    archive::{
        Absence, Archive, ArchiveStats, ArchivedTrack, CompactOutcome, CompactRequest, FetchLease,
        FindOutcome, LazyTranscript, LeaseOutcome, PutRequest, StoredBody, StoredTranscript, TrackSelector,
    },
    ids::{Cursor, Holder},
    transcript::{LanguageTag, TrackInfo, TrackKind},
    video::{ShortLink, VideoId},
};

use super::SqliteArchive;
use crate::{
    body::{EncodedBody, misplaced},
    body_v1::BodyV1,
    codec::{self, number, small},
    error::{DbResult, corrupt},
    sql::{Row, Session, Value, WriteTx, values},
};

/// Everything stored about a selector, in one row.
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

const PUT_ABSENCE: &str = "INSERT INTO absences (video, wish, reason, message, asked, until)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT (video, wish) DO UPDATE SET reason = excluded.reason, message = excluded.message,
        asked = excluded.asked, until = excluded.until";

/// Deletes a few leases that ended long ago.
const DELETE_EXPIRED_LEASES: &str = "DELETE FROM leases WHERE (video, wish) IN (
    SELECT video, wish FROM leases WHERE until < ?1 ORDER BY until LIMIT 16
)";
/// Deletes a few absences that ended long ago.
///
/// A fetch acquires a lease before it stores an absence, so no more rows are added than deleted.
const DELETE_EXPIRED_ABSENCES: &str = "DELETE FROM absences WHERE (video, wish) IN (
    SELECT video, wish FROM absences WHERE until < ?1 ORDER BY until LIMIT 16
)";
/// Acquires a lease; without a row it is held.
const ACQUIRE_LEASE: &str = "INSERT INTO leases (video, wish, holder, until) VALUES (?1, ?2, ?3, ?5)
    ON CONFLICT (video, wish) DO UPDATE SET holder = excluded.holder,
        until = iif(leases.holder = excluded.holder, max(leases.until, excluded.until), excluded.until)
    WHERE leases.holder = excluded.holder OR leases.until <= ?4
    RETURNING until";
const LEASE_EXPIRY: &str = "SELECT until FROM leases WHERE video = ?1 AND wish = ?2";
const RELEASE_LEASE: &str = "DELETE FROM leases WHERE video = ?1 AND wish = ?2 AND holder = ?3";

/// How long expired rows are kept: a clock may step back to a time before their end.
const RETENTION_MS: i64 = 3_600_000;

const FIND_LINK: &str = "SELECT video FROM links WHERE address = ?1";
const PUT_LINK: &str = "INSERT INTO links (address, video) VALUES (?1, ?2) ON CONFLICT (address) DO NOTHING";

const PUT_WITHDRAWAL: &str =
    "INSERT INTO withdrawals (video, at) VALUES (?1, ?2) ON CONFLICT (video) DO NOTHING";
const DELETE_WITHDRAWAL: &str = "DELETE FROM withdrawals WHERE video = ?1";

/// Delete a video, in this order.
const DELETE_VIDEO: [&str; 4] = [
    "DELETE FROM wishes WHERE video = ?1",
    "DELETE FROM transcripts WHERE video = ?1",
    "DELETE FROM tracks WHERE video = ?1",
    "DELETE FROM absences WHERE video = ?1",
];

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

const LIST_WITHDRAWN: &str = "SELECT video FROM withdrawals WHERE video > ?1 ORDER BY video LIMIT ?2";

const STATS: &str =
    "SELECT videos, transcripts, absences, withdrawn, links, bytes, compact FROM figures WHERE only_row = 1";

/// Statements that must not scan tables, for the test of the query plans.
#[cfg(test)]
pub(super) const INDEXED_STATEMENTS: [&str; 16] = [
    FIND,
    bodies::BODY,
    lazy::UNREAD,
    PUT_ABSENCE,
    DELETE_EXPIRED_LEASES,
    DELETE_EXPIRED_ABSENCES,
    ACQUIRE_LEASE,
    LEASE_EXPIRY,
    RELEASE_LEASE,
    FIND_LINK,
    DELETE_VIDEO[0],
    DELETE_VIDEO[1],
    DELETE_VIDEO[2],
    DELETE_VIDEO[3],
    TRACKS,
    STATS,
];
const CHANGES: &str = "SELECT count FROM changes";

impl WriteTx for Absence {
    type Outcome = ();

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<()> {
        let (video, suppliers) = (self.video.to_string(), codec::json(&self.suppliers_tried)?);
        let (selector, until) = (self.selector.as_str(), self.until.as_millis());
        let absence = values![video, selector, &self.reason, &self.message, suppliers, until];
        db.execute(PUT_ABSENCE, &absence).await?;
        Ok(())
    }
}

impl WriteTx for FetchLease {
    type Outcome = LeaseOutcome;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<LeaseOutcome> {
        let (video, selector) = (self.video.to_string(), self.selector.as_str());
        let now = self.now.as_millis();
        let forgotten = now.saturating_sub(RETENTION_MS);
        db.execute(DELETE_EXPIRED_LEASES, &values![forgotten]).await?;
        db.execute(DELETE_EXPIRED_ABSENCES, &values![forgotten]).await?;
        let lease = values![&video, selector, self.holder.as_str(), now, self.until.as_millis()];
        if db.row(ACQUIRE_LEASE, &lease).await?.is_some() {
            return Ok(LeaseOutcome::Acquired);
        }
        let held = db.only_row(LEASE_EXPIRY, &values![&video, selector]).await?;
        Ok(LeaseOutcome::Busy { until: Timestamp::from_millis(held.get(0)?) })
    }
}

struct ReleaseLeaseTx {
    video: VideoId,
    selector: TrackSelector,
    holder: Holder,
}

impl WriteTx for ReleaseLeaseTx {
    type Outcome = ();

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<()> {
        let lease = values![self.video.to_string(), self.selector.as_str(), self.holder.as_str()];
        db.execute(RELEASE_LEASE, &lease).await?;
        Ok(())
    }
}

struct PutShortLinkTx {
    address: String,
    video: VideoId,
}

impl WriteTx for PutShortLinkTx {
    type Outcome = ();

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<()> {
        db.execute(PUT_LINK, &values![&self.address, self.video.to_string()]).await?;
        Ok(())
    }
}

struct WithdrawTx {
    video: VideoId,
    withdrawn: bool,
    now: Timestamp,
}

impl WriteTx for WithdrawTx {
    type Outcome = ();

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<()> {
        let video = self.video.to_string();
        if self.withdrawn {
            db.execute(PUT_WITHDRAWAL, &values![video, self.now.as_millis()]).await?;
        } else {
            db.execute(DELETE_WITHDRAWAL, &values![video]).await?;
        }
        Ok(())
    }
}

struct DeleteVideoTx(VideoId);

impl WriteTx for DeleteVideoTx {
    type Outcome = ();

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<()> {
        let video = self.0.to_string();
        for statement in DELETE_VIDEO {
            db.execute(statement, &values![&video]).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl Archive for SqliteArchive {
    async fn find(&self, video: &VideoId, selector: &TrackSelector, now: Timestamp) -> Result<FindOutcome> {
        let keys = values![video.to_string(), selector.as_str(), now.as_millis()];
        let found = self.database.find_first(FIND, &keys, |row| decode_find(video, selector, row));
        found.await?.ok_or_else(|| Error::unexpected("the database returned no row for a selector"))
    }

    async fn stored_body(&self, video: &VideoId, selector: &TrackSelector) -> Result<Option<StoredBody>> {
        match self.read_body(video, selector).await? {
            BodyRead::Body(body) => Ok(Some(body)),
            BodyRead::OtherForm => self.rebuild_body(video, selector).await,
            BodyRead::Absent => Ok(None),
        }
    }

    async fn find_lazy(
        &self,
        video: &VideoId,
        selector: &TrackSelector,
    ) -> Result<Option<Arc<dyn LazyTranscript>>> {
        self.find_unread(video, selector).await
    }

    async fn tracks(&self, video: &VideoId) -> Result<Vec<ArchivedTrack>> {
        let found = self.database.find(TRACKS, &values![video.to_string()], archived).await?;
        Ok(found.into_iter().map(|(_, track)| track).collect())
    }

    async fn put(&self, request: PutRequest) -> Result<StoredTranscript> {
        request.check()?;
        // Packing takes a while and would block other tasks.
        let packing = self.database.runtime.spawn_blocking(|| put::PutTranscriptTx::pack(request)).await;
        let packed =
            packing.map_err(|error| Error::unexpected(format!("packing a transcript failed: {error}")));
        self.database.run(packed.flatten()?).await
    }

    async fn put_absence(&self, absence: Absence) -> Result<()> {
        self.database.run(absence).await
    }

    async fn acquire_lease(&self, lease: FetchLease) -> Result<LeaseOutcome> {
        self.database.run(lease).await
    }

    async fn release_lease(&self, video: &VideoId, selector: &TrackSelector, holder: &Holder) -> Result<()> {
        let (video, selector, holder) = (video.clone(), selector.clone(), holder.clone());
        self.database.run(ReleaseLeaseTx { video, selector, holder }).await
    }

    async fn short_link(&self, link: &ShortLink) -> Result<Option<VideoId>> {
        let keys = values![link.address()];
        self.database.find_first(FIND_LINK, &keys, |row| Ok(codec::video(row.get(0)?)?)).await
    }

    async fn put_short_link(&self, link: &ShortLink, video: &VideoId) -> Result<()> {
        let address = link.address().to_owned();
        self.database.run(PutShortLinkTx { address, video: video.clone() }).await
    }

    async fn withdraw(&self, video: &VideoId, withdrawn: bool, now: Timestamp) -> Result<()> {
        self.database.run(WithdrawTx { video: video.clone(), withdrawn, now }).await
    }

    async fn delete(&self, video: &VideoId) -> Result<()> {
        self.database.run(DeleteVideoTx(video.clone())).await
    }

    async fn change_counter(&self) -> Result<u64> {
        let found = self.database.find_first(CHANGES, &[], |row| Ok(number(row.take(0)?)?));
        found.await?.ok_or_else(|| corrupt("the change counter is missing"))
    }

    async fn list_tracks(&self, page: PageRequest) -> Result<Page<ArchivedTrack>> {
        let (video, id) = page.after.as_ref().map_or(Ok((String::new(), 0)), read_cursor)?;
        let bounds = values![video, id, codec::one_more(&page)];
        let found = self.database.find(PAGE, &bounds, archived).await?;
        let found = codec::page_of(found, &page, |(id, track)| format!("{}/{id}", track.video));
        Ok(Page { items: found.items.into_iter().map(|(_, track)| track).collect(), next: found.next })
    }

    async fn list_withdrawn(&self, page: PageRequest) -> Result<Page<VideoId>> {
        let bounds = values![page.after.as_ref().map_or("", Cursor::as_str), codec::one_more(&page)];
        let found = self.database.find(LIST_WITHDRAWN, &bounds, |row| Ok(codec::video(row.get(0)?)?)).await?;
        Ok(codec::page_of(found, &page, VideoId::to_string))
    }

    async fn stats(&self) -> Result<ArchiveStats> {
        let found = self.database.find_first(STATS, &[], |row| {
            Ok(ArchiveStats {
                videos: number(row.take(0)?)?,
                transcripts: number(row.take(1)?)?,
                absences: number(row.take(2)?)?,
                withdrawn: number(row.take(3)?)?,
                links: number(row.take(4)?)?,
                bytes: number(row.take(5)?)?,
                compact: number(row.take(6)?)?,
            })
        });
        Ok(found.await?.unwrap_or_default())
    }

    async fn compact(&self, request: CompactRequest) -> Result<CompactOutcome> {
        self.compact_page(&request).await
    }
}

/// A video and a selector as statement parameters.
fn names<'a>(video: &VideoId, selector: &'a TrackSelector) -> [Value<'a>; 2] {
    values![video.to_string(), selector.as_str()]
}

fn decode_find(video: &VideoId, selector: &TrackSelector, row: &mut Row) -> DbResult<FindOutcome> {
    if row.take::<i64>(0)? != 0 {
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
    let Some(reason) = row.take(10)? else {
        return Ok(FindOutcome::NotFound);
    };
    Ok(FindOutcome::Absence(Absence {
        video: video.clone(),
        selector: selector.clone(),
        reason,
        message: row.take(11)?,
        suppliers_tried: listed(row.get(12)?)?,
        until: Timestamp::from_millis(row.take(13)?),
    }))
}

/// Decodes the transcript in a row of [`FIND`].
fn stored(row: &mut Row) -> DbResult<Option<StoredTranscript>> {
    let Some(revision) = row.take::<Option<i64>>(1)? else {
        return Ok(None);
    };
    let (content_sha256, length): (Vec<u8>, _) = (row.take(4)?, number(row.take(5)?)?);
    let transcript = match row.take::<Option<Vec<u8>>>(9)? {
        Some(segments) => {
            let (source, about) = (row.take(7)?, row.take(8)?);
            EncodedBody { content_sha256: content_sha256.clone(), source, length, about, segments }
                .unpack()?
        }
        None => match row.take::<Option<Vec<u8>>>(14)? {
            Some(compact) => crate::cold::unpack(&compact, &content_sha256)?,
            None => {
                BodyV1 { content_sha256: content_sha256.clone(), length, bytes: row.take(6)? }.unpack()?
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

/// Decodes a row of [`TRACKS`] or [`PAGE`]: the track and its id.
fn archived(row: &mut Row) -> DbResult<(i64, ArchivedTrack)> {
    let kind = TrackKind::from_name(row.get(3)?);
    let names: Vec<String> = listed(row.get(6)?)?;
    let track = ArchivedTrack {
        video: codec::video(row.get(0)?)?,
        track: TrackInfo {
            language: LanguageTag::from_canonical(row.take::<String>(2)?),
            kind: kind.ok_or_else(|| corrupt("a stored track has an unknown kind"))?,
            name: row.take(4)?,
            original: row.take(5)?,
        },
        selectors: names.iter().map(|name| TrackSelector::from_name(name)).collect(),
        revision: row.take::<Option<i64>>(7)?.map(small).transpose()?,
        stored_at: row.take::<Option<i64>>(8)?.map(Timestamp::from_millis),
    };
    Ok((row.take(1)?, track))
}

fn listed<T: serde::de::DeserializeOwned>(json: &str) -> Result<Vec<T>> {
    serde_json::from_str(json).map_err(|_| corrupt("a stored list is damaged"))
}

fn read_cursor(cursor: &Cursor) -> Result<(String, i64)> {
    let parts = cursor.as_str().rsplit_once('/');
    parts
        .and_then(|(video, id)| Some((video.to_owned(), id.parse().ok()?)))
        .ok_or_else(|| Error::new(ErrorKind::Invalid, Retry::Never, "the cursor is not from this store"))
}
