//! The archive in PostgreSQL.

mod cold;
mod put;
mod read;
mod stats;

use async_trait::async_trait;
use sqlx::{PgConnection, Row};
use transcript_core::{
    Error, Page, PageRequest, Result, Timestamp,
    archive::{
        Absence, Archive, ArchiveStats, ArchivedTrack, CompactOutcome, CompactRequest, FetchLease,
        FindOutcome, LeaseOutcome, PutRequest, StoredBody, StoredTranscript, TrackSelector,
    },
    ids::{Cursor, Holder},
    video::{ShortLink, VideoId},
};

use super::{
    PostgresArchive,
    database::{ReadQuery, WriteTx, random_below},
    text::encode,
};
use crate::{
    codec::{self, number},
    error::{DbResult, corrupt},
};
use read::{BODY, FIND, PAGE, TRACKS, archived, decode_body, decode_find, read_cursor};
use stats::{OF_VIDEO, STATS, StatsDelta, part, stats};

const PUT_ABSENCE: &str = "INSERT INTO absences (video, wish, reason, message, asked, until)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (video, wish) DO UPDATE SET reason = excluded.reason, message = excluded.message,
        asked = excluded.asked, until = excluded.until";

/// The lease of a fetch, for all servers. It expires on its own, and no session is bound to it.
const ACQUIRE_LEASE: &str = "INSERT INTO leases (video, wish, holder, until) VALUES ($1, $2, $3, $5)
    ON CONFLICT (video, wish) DO UPDATE SET holder = excluded.holder,
        until = CASE WHEN leases.holder = excluded.holder THEN greatest(leases.until, excluded.until)
            ELSE excluded.until END
    WHERE leases.holder = excluded.holder OR leases.until <= $4";
const LEASE_EXPIRY: &str = "SELECT until FROM leases WHERE video = $1 AND wish = $2";
const RELEASE_LEASE: &str = "DELETE FROM leases WHERE video = $1 AND wish = $2 AND holder = $3";
const DELETE_EXPIRED_LEASES: &str = "DELETE FROM leases WHERE (video, wish) IN (
        SELECT video, wish FROM leases WHERE until < $1 ORDER BY until LIMIT 128
    ) AND until < $1";
const DELETE_EXPIRED_ABSENCES: &str = "DELETE FROM absences WHERE (video, wish) IN (
        SELECT video, wish FROM absences WHERE until < $1 ORDER BY until LIMIT 128
    ) AND until < $1";

/// How long expired rows are kept: a clock may step back to a time before their end.
const RETENTION_MS: i64 = 3_600_000;
/// One in this many leases deletes expired rows.
const DELETE_EVERY: u64 = 8;

const FIND_LINK: &str = "SELECT video FROM links WHERE address = $1";
const PUT_LINK: &str = "WITH kept AS (
        INSERT INTO links (address, video) VALUES ($1, $2) ON CONFLICT (address) DO NOTHING RETURNING address
    )
    UPDATE figures SET links = links + 1 WHERE part = $3 AND EXISTS (SELECT 1 FROM kept)";

const INCREMENT_CHANGES: &str = "UPDATE changes SET count = count + $1";
const CHANGES: &str = "SELECT count FROM changes";
const PUT_WITHDRAWAL: &str =
    "INSERT INTO withdrawals (video, at) VALUES ($1, $2) ON CONFLICT (video) DO NOTHING";
const DELETE_WITHDRAWAL: &str = "DELETE FROM withdrawals WHERE video = $1";
const LIST_WITHDRAWN: &str = "SELECT video FROM withdrawals WHERE video > $1 ORDER BY video LIMIT $2";

const DELETE_VIDEO: [&str; 5] = [
    "DELETE FROM wishes WHERE video = $1",
    "DELETE FROM bodies WHERE video = $1",
    "DELETE FROM transcripts WHERE video = $1",
    "DELETE FROM tracks WHERE video = $1",
    "DELETE FROM absences WHERE video = $1",
];

impl WriteTx for Absence {
    type Outcome = ();
    const IS_SINGLE_STATEMENT: bool = true;

    async fn run(&self, db: &mut PgConnection) -> DbResult<()> {
        let absence = sqlx::query(PUT_ABSENCE)
            .bind(encode(&self.video.to_string()))
            .bind(encode(self.selector.as_str()));
        let absence = absence.bind(encode(&self.reason)).bind(encode(&self.message));
        absence.bind(codec::json(&self.suppliers_tried)?).bind(self.until.as_millis()).execute(db).await?;
        Ok(())
    }
}

/// Acquires with one statement; reads the holder only if that fails.
struct AcquireLeaseTx(FetchLease);

impl WriteTx for AcquireLeaseTx {
    /// `None` if the lease was released between the two statements.
    type Outcome = Option<LeaseOutcome>;
    const IS_SINGLE_STATEMENT: bool = true;

    async fn run(&self, db: &mut PgConnection) -> DbResult<Option<LeaseOutcome>> {
        let FetchLease { video, selector, holder, now, until } = &self.0;
        let (video, selector, now) = (encode(&video.to_string()), encode(selector.as_str()), now.as_millis());
        let acquire = sqlx::query(ACQUIRE_LEASE)
            .bind(video.clone())
            .bind(selector.clone())
            .bind(encode(holder.as_str()));
        let acquire = acquire.bind(now).bind(until.as_millis());
        if acquire.execute(&mut *db).await?.rows_affected() > 0 {
            if random_below(DELETE_EVERY) == 0 {
                let delete_before = now.saturating_sub(RETENTION_MS);
                sqlx::query(DELETE_EXPIRED_LEASES).bind(delete_before).execute(&mut *db).await?;
                sqlx::query(DELETE_EXPIRED_ABSENCES).bind(delete_before).execute(db).await?;
            }
            return Ok(Some(LeaseOutcome::Acquired));
        }
        let held = sqlx::query(LEASE_EXPIRY).bind(video).bind(selector).fetch_optional(db).await?;
        let until = held.map(|held| held.try_get(0)).transpose()?;
        Ok(until.map(|until| LeaseOutcome::Busy { until: Timestamp::from_millis(until) }))
    }
}

struct ReleaseLeaseTx {
    video: VideoId,
    selector: TrackSelector,
    holder: Holder,
}

impl WriteTx for ReleaseLeaseTx {
    type Outcome = ();
    const IS_SINGLE_STATEMENT: bool = true;

    async fn run(&self, db: &mut PgConnection) -> DbResult<()> {
        let release = sqlx::query(RELEASE_LEASE)
            .bind(encode(&self.video.to_string()))
            .bind(encode(self.selector.as_str()));
        release.bind(encode(self.holder.as_str())).execute(db).await?;
        Ok(())
    }
}

struct PutShortLinkTx {
    address: String,
    video: VideoId,
}

impl WriteTx for PutShortLinkTx {
    type Outcome = ();
    const IS_SINGLE_STATEMENT: bool = true;

    async fn run(&self, db: &mut PgConnection) -> DbResult<()> {
        let put = sqlx::query(PUT_LINK).bind(encode(&self.address)).bind(encode(&self.video.to_string()));
        put.bind(part()).execute(db).await?;
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

    async fn run(&self, db: &mut PgConnection) -> DbResult<()> {
        let video = encode(&self.video.to_string());
        let statement = if self.withdrawn {
            sqlx::query(PUT_WITHDRAWAL).bind(video).bind(self.now.as_millis())
        } else {
            sqlx::query(DELETE_WITHDRAWAL).bind(video)
        };
        let changed = statement.execute(&mut *db).await?.rows_affected();
        count(db, changed).await
    }
}

struct DeleteVideoTx(VideoId);

impl WriteTx for DeleteVideoTx {
    type Outcome = ();

    async fn run(&self, db: &mut PgConnection) -> DbResult<()> {
        let video = encode(&self.0.to_string());
        let held = sqlx::query(OF_VIDEO).bind(video.clone()).fetch_one(&mut *db).await?;
        StatsDelta::for_deletion(&held)?.add(db).await?;
        let mut changed = 0;
        for (index, statement) in DELETE_VIDEO.into_iter().enumerate() {
            let deleted = sqlx::query(statement).bind(video.clone()).execute(&mut *db).await?.rows_affected();
            changed = if index == 0 { deleted } else { changed };
        }
        count(db, changed).await
    }
}

/// Counts changes that invalidate earlier results.
async fn count(db: &mut PgConnection, changes: u64) -> DbResult<()> {
    if changes > 0 {
        sqlx::query(INCREMENT_CHANGES).bind(codec::column(changes)?).execute(db).await?;
    }
    Ok(())
}

#[async_trait]
impl Archive for PostgresArchive {
    async fn find(&self, video: &VideoId, selector: &TrackSelector, now: Timestamp) -> Result<FindOutcome> {
        let query =
            ReadQuery::new(FIND).text(&video.to_string()).text(selector.as_str()).number(now.as_millis());
        let found = self.database.find_first(query, |row| decode_find(video, selector, row)).await?;
        found.ok_or_else(|| Error::unexpected("the database returned no row for a selector"))
    }

    async fn stored_body(&self, video: &VideoId, selector: &TrackSelector) -> Result<Option<StoredBody>> {
        let query = ReadQuery::new(BODY).text(&video.to_string()).text(selector.as_str());
        match self.database.find_first(query, |row| decode_body(video, row)).await? {
            Some(sent) => self.build_stored_body(video, sent).await.map(Some),
            None => Ok(None),
        }
    }

    async fn tracks(&self, video: &VideoId) -> Result<Vec<ArchivedTrack>> {
        let found = self.database.find(ReadQuery::new(TRACKS).text(&video.to_string()), archived);
        Ok(found.await?.into_iter().map(|(_, track)| track).collect())
    }

    async fn put(&self, request: PutRequest) -> Result<StoredTranscript> {
        request.check()?;
        // Packing takes a while and would block other tasks.
        let packing = self.database.runtime().spawn_blocking(|| put::PackedTranscript::pack(request)).await;
        let packed =
            packing.map_err(|error| Error::unexpected(format!("packing a transcript failed: {error}")));
        self.database
            .run(put::PutTranscriptTx { transcript: packed.flatten()?, numbers: self.database.clone() })
            .await
    }

    async fn put_absence(&self, absence: Absence) -> Result<()> {
        self.database.run(absence).await
    }

    async fn acquire_lease(&self, lease: FetchLease) -> Result<LeaseOutcome> {
        for _ in 0..8 {
            if let Some(acquire) = self.database.run(AcquireLeaseTx(lease.clone())).await? {
                return Ok(acquire);
            }
        }
        Err(Error::unavailable("too many servers acquire and release the same lease: retry in a few seconds"))
    }

    async fn release_lease(&self, video: &VideoId, selector: &TrackSelector, holder: &Holder) -> Result<()> {
        let (video, selector, holder) = (video.clone(), selector.clone(), holder.clone());
        self.database.run(ReleaseLeaseTx { video, selector, holder }).await
    }

    async fn short_link(&self, link: &ShortLink) -> Result<Option<VideoId>> {
        self.database
            .find_first(ReadQuery::new(FIND_LINK).text(link.address()), |row| {
                Ok(codec::video(&super::text::read(row, 0)?)?)
            })
            .await
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
        let found = self.database.find_first(ReadQuery::new(CHANGES), |row| Ok(number(row.try_get(0)?)?));
        found.await?.ok_or_else(|| corrupt("the change counter is missing"))
    }

    async fn list_tracks(&self, page: PageRequest) -> Result<Page<ArchivedTrack>> {
        let (video, id) = page.after.as_ref().map_or(Ok((String::new(), 0)), read_cursor)?;
        let query = ReadQuery::new(PAGE).text(&video).number(id).number(codec::one_more(&page));
        let found = self.database.find(query, archived).await?;
        let found = codec::page_of(found, &page, |(id, track)| format!("{}/{id}", track.video));
        Ok(Page { items: found.items.into_iter().map(|(_, track)| track).collect(), next: found.next })
    }

    async fn list_withdrawn(&self, page: PageRequest) -> Result<Page<VideoId>> {
        let after = page.after.as_ref().map_or("", Cursor::as_str);
        let query = ReadQuery::new(LIST_WITHDRAWN).text(after).number(codec::one_more(&page));
        let found = self.database.find(query, |row| Ok(codec::video(&super::text::read(row, 0)?)?)).await?;
        Ok(codec::page_of(found, &page, VideoId::to_string))
    }

    async fn stats(&self) -> Result<ArchiveStats> {
        Ok(self.database.find_first(ReadQuery::new(STATS), stats).await?.unwrap_or_default())
    }

    async fn compact(&self, request: CompactRequest) -> Result<CompactOutcome> {
        self.compact_page(&request).await
    }
}
