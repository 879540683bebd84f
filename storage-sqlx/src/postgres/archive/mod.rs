//! The archive in PostgreSQL.

mod cold;
mod figures;
mod keep;
mod read;

use async_trait::async_trait;
use sqlx::{PgConnection, Row};
use transcript_core::{
    Error, Page, PageRequest, Result, Timestamp,
    archive::{
        Absence, Archive, ArchivedTrack, Claim, Compact, Compacted, Found, Keep, Lease, Stats, StoredBody,
        StoredTranscript, Wish,
    },
    ids::{Cursor, Holder},
    video::{ShortLink, VideoId},
};

use super::{
    PostgresArchive,
    database::{Change, Read, chance},
    text::own,
};
use crate::{
    codec::{self, number},
    error::{Work, corrupt},
};
use figures::{Difference, OF_VIDEO, STATS, part, stats};
use read::{BODY, FIND, PAGE, TRACKS, archived, read_cursor, sent, what_is_known};

const KEEP_ABSENCE: &str = "INSERT INTO absences (video, wish, reason, message, asked, until)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (video, wish) DO UPDATE SET reason = excluded.reason, message = excluded.message,
        asked = excluded.asked, until = excluded.until";

/// One row for all servers: whoever holds it asks upstream. It runs out by itself, and no session is bound to it.
const CLAIM: &str = "INSERT INTO leases (video, wish, holder, until) VALUES ($1, $2, $3, $5)
    ON CONFLICT (video, wish) DO UPDATE SET holder = excluded.holder,
        until = CASE WHEN leases.holder = excluded.holder THEN greatest(leases.until, excluded.until)
            ELSE excluded.until END
    WHERE leases.holder = excluded.holder OR leases.until <= $4";
const HELD: &str = "SELECT until FROM leases WHERE video = $1 AND wish = $2";
const UNCLAIM: &str = "DELETE FROM leases WHERE video = $1 AND wish = $2 AND holder = $3";
const FORGET_LEASES: &str = "DELETE FROM leases WHERE (video, wish) IN (
        SELECT video, wish FROM leases WHERE until < $1 ORDER BY until LIMIT 128
    ) AND until < $1";
const FORGET_ABSENCES: &str = "DELETE FROM absences WHERE (video, wish) IN (
        SELECT video, wish FROM absences WHERE until < $1 ORDER BY until LIMIT 128
    ) AND until < $1";

/// How long what has ended is remembered: while a clock may still step back to a moment before its end.
const REMEMBERED_MS: i64 = 3_600_000;
/// One of so many claims forgets what has ended.
const FORGET_EVERY: u64 = 8;

const LINK: &str = "SELECT video FROM links WHERE address = $1";
const KEEP_LINK: &str = "WITH kept AS (
        INSERT INTO links (address, video) VALUES ($1, $2) ON CONFLICT (address) DO NOTHING RETURNING address
    )
    UPDATE figures SET links = links + 1 WHERE part = $3 AND EXISTS (SELECT 1 FROM kept)";

const COUNT: &str = "UPDATE changes SET count = count + $1";
const CHANGES: &str = "SELECT count FROM changes";
const WITHDRAW: &str = "INSERT INTO withdrawals (video, at) VALUES ($1, $2) ON CONFLICT (video) DO NOTHING";
const PUT_BACK: &str = "DELETE FROM withdrawals WHERE video = $1";
const WITHDRAWN: &str = "SELECT video FROM withdrawals WHERE video > $1 ORDER BY video LIMIT $2";

const FORGET: [&str; 5] = [
    "DELETE FROM wishes WHERE video = $1",
    "DELETE FROM bodies WHERE video = $1",
    "DELETE FROM transcripts WHERE video = $1",
    "DELETE FROM tracks WHERE video = $1",
    "DELETE FROM absences WHERE video = $1",
];

impl Change for Absence {
    type Outcome = ();
    const IS_STEP: bool = true;

    async fn make(&self, db: &mut PgConnection) -> Work<()> {
        let absence =
            sqlx::query(KEEP_ABSENCE).bind(own(&self.video.to_string())).bind(own(self.wish.as_str()));
        let absence = absence.bind(own(&self.reason)).bind(own(&self.message));
        absence.bind(codec::json(&self.asked)?).bind(self.until.as_millis()).execute(db).await?;
        Ok(())
    }
}

/// One statement that claims; whose it is, is read only where it does not.
struct Claiming(Lease);

impl Change for Claiming {
    /// None when it was given back between the two statements.
    type Outcome = Option<Claim>;
    const IS_STEP: bool = true;

    async fn make(&self, db: &mut PgConnection) -> Work<Option<Claim>> {
        let Lease { video, wish, holder, now, until } = &self.0;
        let (video, wish, now) = (own(&video.to_string()), own(wish.as_str()), now.as_millis());
        let claim = sqlx::query(CLAIM).bind(video.clone()).bind(wish.clone()).bind(own(holder.as_str()));
        let claim = claim.bind(now).bind(until.as_millis());
        if claim.execute(&mut *db).await?.rows_affected() > 0 {
            if chance(FORGET_EVERY) == 0 {
                let ended = now.saturating_sub(REMEMBERED_MS);
                sqlx::query(FORGET_LEASES).bind(ended).execute(&mut *db).await?;
                sqlx::query(FORGET_ABSENCES).bind(ended).execute(db).await?;
            }
            return Ok(Some(Claim::Claimed));
        }
        let held = sqlx::query(HELD).bind(video).bind(wish).fetch_optional(db).await?;
        let until = held.map(|held| held.try_get(0)).transpose()?;
        Ok(until.map(|until| Claim::Busy { until: Timestamp::from_millis(until) }))
    }
}

struct Unclaim {
    video: VideoId,
    wish: Wish,
    holder: Holder,
}

impl Change for Unclaim {
    type Outcome = ();
    const IS_STEP: bool = true;

    async fn make(&self, db: &mut PgConnection) -> Work<()> {
        let unclaim = sqlx::query(UNCLAIM).bind(own(&self.video.to_string())).bind(own(self.wish.as_str()));
        unclaim.bind(own(self.holder.as_str())).execute(db).await?;
        Ok(())
    }
}

struct KeepLink {
    address: String,
    video: VideoId,
}

impl Change for KeepLink {
    type Outcome = ();
    const IS_STEP: bool = true;

    async fn make(&self, db: &mut PgConnection) -> Work<()> {
        let keep = sqlx::query(KEEP_LINK).bind(own(&self.address)).bind(own(&self.video.to_string()));
        keep.bind(part()).execute(db).await?;
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

    async fn make(&self, db: &mut PgConnection) -> Work<()> {
        let video = own(&self.video.to_string());
        let statement = if self.withdrawn {
            sqlx::query(WITHDRAW).bind(video).bind(self.now.as_millis())
        } else {
            sqlx::query(PUT_BACK).bind(video)
        };
        let changed = statement.execute(&mut *db).await?.rows_affected();
        count(db, changed).await
    }
}

struct Forget(VideoId);

impl Change for Forget {
    type Outcome = ();

    async fn make(&self, db: &mut PgConnection) -> Work<()> {
        let video = own(&self.0.to_string());
        let held = sqlx::query(OF_VIDEO).bind(video.clone()).fetch_one(&mut *db).await?;
        Difference::without(&held)?.add(db).await?;
        let mut changed = 0;
        for (place, statement) in FORGET.into_iter().enumerate() {
            let gone = sqlx::query(statement).bind(video.clone()).execute(&mut *db).await?.rows_affected();
            changed = if place == 0 { gone } else { changed };
        }
        count(db, changed).await
    }
}

/// Counts changes that make untrue what was found before.
async fn count(db: &mut PgConnection, changes: u64) -> Work<()> {
    if changes > 0 {
        sqlx::query(COUNT).bind(codec::column(changes)?).execute(db).await?;
    }
    Ok(())
}

#[async_trait]
impl Archive for PostgresArchive {
    async fn find(&self, video: &VideoId, wish: &Wish, now: Timestamp) -> Result<Found> {
        let ask = Read::new(FIND).text(&video.to_string()).text(wish.as_str()).number(now.as_millis());
        let found = self.database.find_first(ask, |row| what_is_known(video, wish, row)).await?;
        found.ok_or_else(|| Error::unexpected("a wish was asked for and no row came"))
    }

    async fn body(&self, video: &VideoId, wish: &Wish) -> Result<Option<StoredBody>> {
        let ask = Read::new(BODY).text(&video.to_string()).text(wish.as_str());
        match self.database.find_first(ask, |row| sent(video, row)).await? {
            Some(sent) => self.ready(video, sent).await.map(Some),
            None => Ok(None),
        }
    }

    async fn tracks(&self, video: &VideoId) -> Result<Vec<ArchivedTrack>> {
        let found = self.database.find(Read::new(TRACKS).text(&video.to_string()), archived);
        Ok(found.await?.into_iter().map(|(_, track)| track).collect())
    }

    async fn keep(&self, keep: Keep) -> Result<StoredTranscript> {
        keep.check()?;
        // Packing takes a while, in which no other task should wait.
        let packing = self.database.runtime().spawn_blocking(|| keep::Packed::pack(keep)).await;
        let packed =
            packing.map_err(|error| Error::unexpected(format!("packing a transcript failed: {error}")));
        self.database.make(keep::Shelve { keep: packed.flatten()?, numbers: self.database.clone() }).await
    }

    async fn keep_absence(&self, absence: Absence) -> Result<()> {
        self.database.make(absence).await
    }

    async fn claim(&self, lease: Lease) -> Result<Claim> {
        for _ in 0..8 {
            if let Some(claim) = self.database.make(Claiming(lease.clone())).await? {
                return Ok(claim);
            }
        }
        Err(Error::unavailable("others claim and give back the same lease: try again in a moment"))
    }

    async fn unclaim(&self, video: &VideoId, wish: &Wish, holder: &Holder) -> Result<()> {
        let (video, wish, holder) = (video.clone(), wish.clone(), holder.clone());
        self.database.make(Unclaim { video, wish, holder }).await
    }

    async fn link(&self, link: &ShortLink) -> Result<Option<VideoId>> {
        self.database
            .find_first(Read::new(LINK).text(link.address()), |row| {
                Ok(codec::video(&super::text::read(row, 0)?)?)
            })
            .await
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
        let found = self.database.find_first(Read::new(CHANGES), |row| Ok(number(row.try_get(0)?)?));
        found.await?.ok_or_else(|| corrupt("the count of changes is missing"))
    }

    async fn page(&self, page: PageRequest) -> Result<Page<ArchivedTrack>> {
        let (video, id) = page.after.as_ref().map_or(Ok((String::new(), 0)), read_cursor)?;
        let ask = Read::new(PAGE).text(&video).number(id).number(codec::one_more(&page));
        let found = self.database.find(ask, archived).await?;
        let found = codec::page_of(found, &page, |(id, track)| format!("{}/{id}", track.video));
        Ok(Page { items: found.items.into_iter().map(|(_, track)| track).collect(), next: found.next })
    }

    async fn withdrawn(&self, page: PageRequest) -> Result<Page<VideoId>> {
        let after = page.after.as_ref().map_or("", Cursor::as_str);
        let ask = Read::new(WITHDRAWN).text(after).number(codec::one_more(&page));
        let found = self.database.find(ask, |row| Ok(codec::video(&super::text::read(row, 0)?)?)).await?;
        Ok(codec::page_of(found, &page, VideoId::to_string))
    }

    async fn stats(&self) -> Result<Stats> {
        Ok(self.database.find_first(Read::new(STATS), stats).await?.unwrap_or_default())
    }

    async fn compact(&self, ask: Compact) -> Result<Compacted> {
        self.compact_some(&ask).await
    }
}
