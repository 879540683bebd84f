//! The archive.

mod changes;
pub(crate) mod compaction;
pub(crate) mod details;
pub(crate) mod find;
pub(crate) mod put;
mod scan;
mod selectors;
mod tracks;
pub(crate) mod vectors;
pub(crate) mod verification;

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{
    Error, Page, PageRequest, Result, Timestamp,
    archive::{
        Absence, Archive, ArchiveStats, ArchivedTrack, ChangedVideo, CompactOutcome, CompactRequest,
        FetchLease, FindOutcome, LazyTranscript, LeaseOutcome, PutRequest, StoredBody, StoredTranscript,
        TrackSelector, VectorsKey, VerifyArchiveOutcome, VerifyArchiveRequest, check_known_tracks,
    },
    ids::{Cursor, Holder},
    transcript::TrackInfo,
    video::{ShortLink, VideoId},
};

use self::changes::{INCREMENT_CHANGES, RECORD_CHANGED_VIDEO, RECORD_UNINDEXED_VIDEO, count_changed_details};
use super::{delete_expired, random_below};
use crate::{
    codec,
    error::{DbResult, corrupt},
    sql::{Database, Session, Statement, WriteTx, sql, values},
};

const PUT_ABSENCE: &str = "INSERT INTO absences (video, wish, reason, message, asked, until)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (video, wish) DO UPDATE SET reason = excluded.reason, message = excluded.message,
        asked = excluded.asked, until = excluded.until";

/// The lease of a fetch, for all processes. It expires on its own, and no session is bound to it.
const ACQUIRE_LEASE: &str = "INSERT INTO leases (video, wish, holder, until) VALUES ($1, $2, $3, $5)
    ON CONFLICT (video, wish) DO UPDATE SET holder = excluded.holder,
        until = CASE WHEN leases.holder = excluded.holder AND leases.until > excluded.until
            THEN leases.until ELSE excluded.until END
    WHERE leases.holder = excluded.holder OR leases.until <= $4";
const LEASE_EXPIRY: &str = "SELECT until FROM leases WHERE video = $1 AND wish = $2";
/// Shortens a lease that has not been renewed since it was read.
const SHORTEN_LEASE: &str = "UPDATE leases SET until = $3 WHERE video = $1 AND wish = $2 AND until = $4";
const RELEASE_LEASE: &str = "DELETE FROM leases WHERE video = $1 AND wish = $2 AND holder = $3";
/// Deletes a few leases that ended long ago.
const DELETE_EXPIRED_LEASES: Statement = sql! {
    sqlite: "DELETE FROM leases WHERE (video, wish) IN (
            SELECT video, wish FROM leases WHERE until < $1 ORDER BY until LIMIT 16
        )",
    postgres: "DELETE FROM leases WHERE (video, wish) IN (
            SELECT video, wish FROM leases WHERE until < $1 ORDER BY until LIMIT 128
        ) AND until < $1",
};
/// Deletes a few absences that ended long ago.
///
/// A fetch acquires a lease before it stores an absence, so no more rows are added than deleted.
const DELETE_EXPIRED_ABSENCES: Statement = sql! {
    sqlite: "DELETE FROM absences WHERE (video, wish) IN (
            SELECT video, wish FROM absences WHERE until < $1 ORDER BY until LIMIT 16
        )",
    postgres: "DELETE FROM absences WHERE (video, wish) IN (
            SELECT video, wish FROM absences WHERE until < $1 ORDER BY until LIMIT 128
        ) AND until < $1",
};

/// How long expired rows are kept: a clock may step back to a time before their end.
const RETENTION_MS: i64 = 3_600_000;
/// One in this many leases deletes expired rows on a server.
const DELETE_INTERVAL: u64 = 8;
/// Transcripts with more text than this, in bytes, are packed on a blocking thread.
///
/// An hour of speech has some 60 KB. Packing them takes no longer than parsing the captions on the same thread did.
const PACK_INLINE_MAX: usize = 128 << 10;
/// Most attempts for a lease that others acquire and release at the same time.
const LEASE_ATTEMPTS: u32 = 8;

const FIND_LINK: &str = "SELECT video FROM links WHERE address = $1";
const PUT_LINK: Statement = sql! {
    sqlite: "INSERT INTO links (address, video) VALUES ($1, $2) ON CONFLICT (address) DO NOTHING",
    postgres: "WITH kept AS (
            INSERT INTO links (address, video) VALUES ($1, $2) ON CONFLICT (address) DO NOTHING
            RETURNING address
        )
        UPDATE figures SET links = links + 1 WHERE part = $3 AND EXISTS (SELECT 1 FROM kept)",
};

const PUT_WITHDRAWAL: &str =
    "INSERT INTO withdrawals (video, at) VALUES ($1, $2) ON CONFLICT (video) DO NOTHING";
const DELETE_WITHDRAWAL: &str = "DELETE FROM withdrawals WHERE video = $1";
const LIST_WITHDRAWN: &str = "SELECT video FROM withdrawals WHERE video > $1 ORDER BY video LIMIT $2";

const DELETE_SELECTORS: &str = "DELETE FROM wishes WHERE video = $1";
/// Delete the rest of a video, in this order: without its details, no list of tracks is written for each deleted track.
/// Bodies, words, vectors and cold forms are deleted with their transcript.
const DELETE_VIDEO: [&str; 4] = [
    "DELETE FROM transcripts WHERE video = $1",
    "DELETE FROM details WHERE video = $1",
    "DELETE FROM tracks WHERE video = $1",
    "DELETE FROM absences WHERE video = $1",
];
/// Subtracts a video from the statistics of PostgreSQL.
const SUBTRACT_VIDEO: &str = "UPDATE figures SET videos = videos - least(o.transcripts, 1),
        transcripts = figures.transcripts - o.transcripts, bytes = figures.bytes - o.bytes,
        compact = figures.compact - o.compact
    FROM (SELECT count(*) AS transcripts, coalesce(sum(body_bytes), 0)::BIGINT AS bytes,
            (SELECT count(*) FROM cold WHERE video = $1) AS compact
        FROM transcripts WHERE video = $1) o
    WHERE part = $2";

/// The statistics, which are updated with each write: by triggers on SQLite, by the writes on PostgreSQL.
///
/// On PostgreSQL absences and withdrawals are counted: they are few, because they expire or are made by operators.
const STATS: Statement = sql! {
    sqlite: "SELECT videos, transcripts, absences, withdrawn, links, bytes, compact
        FROM figures WHERE only_row = 1",
    postgres: "SELECT sum(videos)::BIGINT, sum(transcripts)::BIGINT,
            (SELECT count(*) FROM absences), (SELECT count(*) FROM withdrawals),
            sum(links)::BIGINT, sum(bytes)::BIGINT, sum(compact)::BIGINT
        FROM figures",
};
/// Number of rows over which PostgreSQL spreads the statistics.
const STATS_PARTS: u64 = 64;

/// Statements that must not scan tables, for the test of the query plans.
#[cfg(all(test, feature = "sqlite"))]
pub(crate) const INDEXED_STATEMENTS: [&str; 25] = [
    find::FIND.sqlite,
    find::LAZY.sqlite,
    find::BODY.sqlite,
    PUT_ABSENCE,
    DELETE_EXPIRED_LEASES.sqlite,
    DELETE_EXPIRED_ABSENCES.sqlite,
    ACQUIRE_LEASE,
    LEASE_EXPIRY,
    SHORTEN_LEASE,
    RELEASE_LEASE,
    FIND_LINK,
    DELETE_SELECTORS,
    DELETE_VIDEO[0],
    DELETE_VIDEO[1],
    DELETE_VIDEO[2],
    DELETE_VIDEO[3],
    INCREMENT_CHANGES,
    RECORD_CHANGED_VIDEO,
    tracks::TRACKS.sqlite,
    STATS.sqlite,
    changes::CHANGED_VIDEOS,
    changes::DELETE_CHANGED_VIDEO,
    changes::UNINDEXED_VIDEOS,
    RECORD_UNINDEXED_VIDEO.sqlite,
    changes::DELETE_UNINDEXED_VIDEO,
];

/// The archive, in one database. Its forms are `SqliteArchive` and `PostgresArchive`.
#[derive(Debug)]
pub struct SqlArchive<D> {
    pub(crate) database: D,
}

/// Acquires with one statement; reads the holder only if that fails.
struct AcquireLeaseTx {
    lease: FetchLease,
    /// Rows that expired before this time, in milliseconds, are deleted.
    delete_before: i64,
}

impl WriteTx for AcquireLeaseTx {
    /// `None` if the lease was released between the two statements.
    type Outcome = Option<LeaseOutcome>;
    const NEEDS_TRANSACTION: bool = false;

    /// A crash of the machine ends every process that a lease of this file keeps away.
    #[cfg(feature = "sqlite")]
    fn needs_sync(&self, _: &Self::Outcome) -> bool {
        false
    }

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<Option<LeaseOutcome>> {
        if !S::IS_REMOTE {
            db.execute(DELETE_EXPIRED_LEASES, &values![self.delete_before]).await?;
            db.execute(DELETE_EXPIRED_ABSENCES, &values![self.delete_before]).await?;
        }
        let FetchLease { video, selector, holder, now, until } = &self.lease;
        let video = video.to_string();
        let row = values![&video, selector.as_str(), holder.as_str(), now.as_millis(), until.as_millis()];
        if db.execute(ACQUIRE_LEASE, &row).await? > 0 {
            return Ok(Some(LeaseOutcome::Acquired));
        }
        let held = db.row(LEASE_EXPIRY, &values![&video, selector.as_str()]).await?;
        let Some(held) = held.map(|held| held.get(0)).transpose()? else { return Ok(None) };
        let held = Timestamp::from_millis(held);
        let until = self.lease.end_of_other(held);
        if until < held {
            let ends = values![&video, selector.as_str(), until.as_millis(), held.as_millis()];
            db.execute(SHORTEN_LEASE, &ends).await?;
        }
        Ok(Some(LeaseOutcome::Busy { until }))
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
        let changed = if self.withdrawn {
            db.execute(PUT_WITHDRAWAL, &values![&video, self.now.as_millis()]).await?
        } else {
            db.execute(DELETE_WITHDRAWAL, &values![&video]).await?
        };
        record_changes(db, &video, changed).await
    }
}

struct DeleteVideoTx(VideoId);

impl WriteTx for DeleteVideoTx {
    type Outcome = ();

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<()> {
        let video = self.0.to_string();
        if S::IS_REMOTE {
            db.execute(SUBTRACT_VIDEO, &values![&video, stats_part()]).await?;
        }
        let changed = db.execute(DELETE_SELECTORS, &values![&video]).await?;
        for statement in DELETE_VIDEO {
            db.execute(statement, &values![&video]).await?;
        }
        record_changes(db, &video, changed).await
    }
}

/// Counts changes that invalidate earlier results. On SQLite triggers count them.
async fn count_changes<S: Session>(db: &mut S, changes: u64) -> DbResult<()> {
    if S::IS_REMOTE && changes > 0 {
        db.execute(INCREMENT_CHANGES, &values![codec::column(changes)?]).await?;
    }
    Ok(())
}

/// As [`count_changes`], and records the video for the search index and the caches.
async fn record_changes<S: Session>(db: &mut S, video: &str, changes: u64) -> DbResult<()> {
    count_changes(db, changes).await?;
    if S::IS_REMOTE && changes > 0 {
        db.execute(RECORD_UNINDEXED_VIDEO, &values![video]).await?;
        db.execute(RECORD_CHANGED_VIDEO, &values![video]).await?;
    }
    Ok(())
}

/// A random row of PostgreSQL's statistics.
fn stats_part() -> i64 {
    i64::try_from(random_below(STATS_PARTS)).unwrap_or_default()
}

/// Stores a transcript; with a holder, also releases its lease of the first selector.
async fn put_transcript<D: Database>(
    database: &D,
    request: PutRequest,
    lease_holder: Option<Holder>,
) -> Result<StoredTranscript> {
    request.check()?;
    let text_bytes: usize = request.transcript.segments.iter().map(|segment| segment.text.len()).sum();
    let pack = || put::PutTranscriptTx::pack(request, lease_holder);
    let write = if text_bytes <= PACK_INLINE_MAX {
        pack()?
    } else {
        let packing = database.runtime().spawn_blocking(pack).await;
        let failed = |error| Error::unexpected(format!("packing a transcript failed: {error}"));
        packing.map_err(failed)??
    };
    database.run(write).await
}

#[async_trait]
impl<D: Database> Archive for SqlArchive<D> {
    async fn find(&self, video: &VideoId, selector: &TrackSelector, now: Timestamp) -> Result<FindOutcome> {
        find::find(&self.database, video, selector, now).await
    }

    async fn find_lazy(
        &self,
        video: &VideoId,
        selector: &TrackSelector,
    ) -> Result<Option<Arc<dyn LazyTranscript>>> {
        find::find_lazy(&self.database, video, selector).await
    }

    async fn stored_body(&self, video: &VideoId, selector: &TrackSelector) -> Result<Option<StoredBody>> {
        find::stored_body(&self.database, video, selector).await
    }

    async fn tracks(&self, video: &VideoId) -> Result<Vec<ArchivedTrack>> {
        let found = self.database.find(tracks::TRACKS, &values![video.to_string()], tracks::decode).await?;
        tracks::restore(&self.database, found, false).await
    }

    async fn put(&self, request: PutRequest) -> Result<StoredTranscript> {
        put_transcript(&self.database, request, None).await
    }

    async fn put_and_release(&self, request: PutRequest, holder: &Holder) -> Result<StoredTranscript> {
        put_transcript(&self.database, request, Some(holder.clone())).await
    }

    async fn put_absence(&self, absence: Absence) -> Result<()> {
        let (video, suppliers) = (absence.video.to_string(), codec::json(&absence.suppliers_tried)?);
        let (selector, until) = (absence.selector.as_str(), absence.until.as_millis());
        let row = values![video, selector, &absence.reason, &absence.message, suppliers, until];
        self.database.execute(PUT_ABSENCE, &row).await?;
        Ok(())
    }

    async fn add_known_tracks(&self, video: &VideoId, tracks: &[TrackInfo], now: Timestamp) -> Result<()> {
        check_known_tracks(tracks)?;
        let add = details::AddTracksTx { video: video.clone(), tracks: tracks.to_vec(), now };
        self.database.run(add).await
    }

    async fn vectors(&self, key: &VectorsKey) -> Result<Option<Vec<u8>>> {
        vectors::find(&self.database, key).await
    }

    async fn put_vectors(&self, key: &VectorsKey, vectors: Vec<u8>) -> Result<()> {
        vectors::put(&self.database, key, vectors).await
    }

    async fn acquire_lease(&self, lease: FetchLease) -> Result<LeaseOutcome> {
        let delete_before = lease.now.as_millis().saturating_sub(RETENTION_MS);
        for _ in 0..LEASE_ATTEMPTS {
            let acquire = AcquireLeaseTx { lease: lease.clone(), delete_before };
            let Some(outcome) = self.database.run(acquire).await? else { continue };
            if outcome == LeaseOutcome::Acquired {
                for statement in [DELETE_EXPIRED_LEASES, DELETE_EXPIRED_ABSENCES] {
                    delete_expired(&self.database, DELETE_INTERVAL, statement, delete_before).await;
                }
            }
            return Ok(outcome);
        }
        Err(Error::unavailable("too many servers acquire and release the same lease: retry in a few seconds"))
    }

    async fn release_lease(&self, video: &VideoId, selector: &TrackSelector, holder: &Holder) -> Result<()> {
        let lease = values![video.to_string(), selector.as_str(), holder.as_str()];
        self.database.execute(RELEASE_LEASE, &lease).await?;
        Ok(())
    }

    async fn short_link(&self, link: &ShortLink) -> Result<Option<VideoId>> {
        let keys = values![link.address()];
        self.database.find_first(FIND_LINK, &keys, |row| Ok(codec::video(row.get(0)?)?)).await
    }

    async fn put_short_link(&self, link: &ShortLink, video: &VideoId) -> Result<()> {
        let row = values![link.address(), video.to_string(), stats_part()];
        self.database.execute(PUT_LINK, &row).await?;
        Ok(())
    }

    async fn withdraw(&self, video: &VideoId, withdrawn: bool, now: Timestamp) -> Result<()> {
        self.database.run(WithdrawTx { video: video.clone(), withdrawn, now }).await
    }

    async fn delete(&self, video: &VideoId) -> Result<()> {
        self.database.run(DeleteVideoTx(video.clone())).await
    }

    async fn change_counter(&self) -> Result<u64> {
        let found = self.database.find_first(changes::COUNT, &[], |row| row.take(0)).await?;
        found.ok_or_else(|| corrupt("the change counter is missing"))
    }

    async fn check_writable(&self) -> Result<()> {
        super::check_writable(&self.database, "archive").await
    }

    async fn changed_videos(&self, limit: u32) -> Result<Vec<ChangedVideo>> {
        changes::list(&self.database, changes::CHANGED_VIDEOS, i64::MAX, limit).await
    }

    async fn delete_changed_videos(&self, videos: &[ChangedVideo]) -> Result<()> {
        let (videos, statement) = (videos.to_vec(), changes::DELETE_CHANGED_VIDEO);
        self.database.run(changes::DeleteListedVideosTx { videos, statement }).await
    }

    async fn unindexed_videos(&self, limit: u32) -> Result<Vec<ChangedVideo>> {
        changes::list(&self.database, changes::UNINDEXED_VIDEOS, i64::MIN, limit).await
    }

    async fn newest_change(&self) -> Result<Option<u64>> {
        // On a server the index is in the same database: a restore brings back both.
        if D::IS_REMOTE {
            return Ok(None);
        }
        let found = self.database.find_first(changes::NEWEST, &[], |row| row.take(0)).await?;
        Ok(Some(found.unwrap_or(0)))
    }

    async fn delete_unindexed_videos(&self, videos: &[ChangedVideo]) -> Result<()> {
        let (videos, statement) = (videos.to_vec(), changes::DELETE_UNINDEXED_VIDEO);
        self.database.run(changes::DeleteListedVideosTx { videos, statement }).await
    }

    async fn record_unindexed_video(&self, video: &VideoId) -> Result<()> {
        self.database.run(changes::RecordUnindexedVideoTx(video.to_string())).await
    }

    async fn list_tracks(&self, page: PageRequest) -> Result<Page<ArchivedTrack>> {
        let (video, id) = tracks::read_cursor(page.after.as_ref())?;
        let bounds = values![video, id, codec::one_more(&page)];
        let found = self.database.find(tracks::PAGE, &bounds, tracks::decode_listed).await?;
        let Page { items, next } = Page::cut(found, &page, |(video, id, _)| format!("{video}/{id}"));
        let rows = items.into_iter().filter_map(|(.., row)| row).collect();
        Ok(Page { items: tracks::restore(&self.database, rows, true).await?, next })
    }

    async fn list_withdrawn(&self, page: PageRequest) -> Result<Page<VideoId>> {
        let bounds = values![page.after.as_ref().map_or("", Cursor::as_str), codec::one_more(&page)];
        let found = self.database.find(LIST_WITHDRAWN, &bounds, |row| row.take::<String>(0)).await?;
        let Page { items, next } = Page::cut(found, &page, String::clone);
        Ok(Page { items: items.iter().filter_map(|name| codec::listed_video(name)).collect(), next })
    }

    async fn stats(&self) -> Result<ArchiveStats> {
        let found = self.database.find_first(STATS, &[], |row| {
            Ok(ArchiveStats {
                videos: row.take(0)?,
                transcripts: row.take(1)?,
                absences: row.take(2)?,
                withdrawn: row.take(3)?,
                links: row.take(4)?,
                bytes: row.take(5)?,
                compact: row.take(6)?,
            })
        });
        found
            .await?
            .ok_or_else(|| corrupt("the totals of the archive are missing: restore them from a backup"))
    }

    async fn compact(&self, request: CompactRequest) -> Result<CompactOutcome> {
        compaction::compact_page(&self.database, &request).await
    }

    async fn verify(&self, request: VerifyArchiveRequest) -> Result<VerifyArchiveOutcome> {
        verification::verify_page(&self.database, &request).await
    }

    async fn restore_selectors(&self, video: &VideoId) -> Result<bool> {
        self.database.run(selectors::RestoreSelectorsTx { video: video.clone(), restores_all: true }).await
    }
}
