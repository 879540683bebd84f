//! The baseline of charges in the store: the same rows in a plain transaction of sqlx, a statement for each step.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use sqlx::{
    ConnectOptions as _, Connection as _, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};
use transcript_core::time::Clock as _;
use verbatim::SystemClock;

use crate::{
    charged::{CREDITS, TIME},
    commits::{BUCKET, Payer, hold_id, scattered},
};

const OWNER: &str = "SELECT a.version FROM keys k JOIN accounts a ON a.id = k.account
    WHERE k.digest = ? AND k.revoked_at IS NULL AND a.id = ? AND a.erased_at IS NULL";

const TAKE: &str = "INSERT INTO limits (bucket, ends_at, taken) VALUES (?, ?, ?)
    ON CONFLICT (bucket) DO UPDATE SET taken = excluded.taken";

const SPEND: &str =
    "INSERT INTO ledger_pools (wallet, bucket, cap, spent, held, granted) VALUES (?, ?, ?, 1, 0, 0)
    ON CONFLICT (wallet, bucket) DO UPDATE SET spent = spent + 1 WHERE spent + held < excluded.cap";

const HOLD: &str =
    "INSERT INTO ledger_holds (id, state, expires_at, memo, legs) VALUES (?, 'closed', ?, ?, ?)";

const ENTRY: &str =
    "INSERT INTO ledger_entries (at, wallet, bucket, cap, kind, amount, shortfall, cause, memo)
    VALUES (?, ?, ?, ?, ?, 1, 0, ?, 'transcript youtube/bench-00000')";

/// A connection that charges with plain transactions.
#[derive(Debug)]
pub(crate) struct Plain {
    db: SqliteConnection,
    clock: SystemClock,
}

impl Plain {
    pub(crate) async fn open(file: &Path) -> Result<Self> {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(5))
            .disable_statement_logging();
        Ok(Self { db: options.connect().await?, clock: SystemClock::default() })
    }

    pub(crate) fn close(self) -> SqliteConnection {
        self.db
    }

    /// Charges one after the other; returns how many were charged a second.
    pub(crate) async fn load(&mut self, payers: &[Payer], count: &Arc<AtomicU64>) -> Result<f64> {
        let (began, mut charged) = (Instant::now(), 0_u32);
        while began.elapsed() < TIME {
            let number = count.fetch_add(1, Relaxed);
            let payer = &payers[(scattered(number) % payers.len() as u64) as usize];
            self.charge(payer, number).await?;
            charged += 1;
        }
        Ok(f64::from(charged) / began.elapsed().as_secs_f64())
    }

    async fn charge(&mut self, payer: &Payer, number: u64) -> Result<()> {
        let (account, wallet) = (payer.account.id.as_str(), payer.account.wallet.as_str());
        let now = self.clock.now();
        let (id, at, cap) = (hold_id(now, number), now.as_millis(), i64::try_from(CREDITS)?);
        let mut transaction = self.db.begin_with("BEGIN IMMEDIATE").await?;
        let owner = sqlx::query_as::<_, (i64,)>(OWNER).bind(&payer.digest).bind(account);
        let (version,) = owner.fetch_one(&mut *transaction).await?;
        ensure!(u64::try_from(version)? == payer.account.version, "the account has changed");
        let take =
            sqlx::query(TAKE).bind(format!("plain/{account}")).bind(at + 3_600_000).bind(at.to_string());
        take.execute(&mut *transaction).await?;
        let spent = sqlx::query(SPEND).bind(wallet).bind(BUCKET).bind(cap).execute(&mut *transaction).await?;
        ensure!(spent.rows_affected() == 1, "the credits do not suffice");
        let legs = format!(
            r#"[{{"wallet":"{wallet}","amount":1,"spent":1,"shares":[{{"bucket":"{BUCKET}","cap":{cap},"amount":1}}]}}]"#
        );
        let hold =
            sqlx::query(HOLD).bind(&id).bind(at + 60_000).bind("transcript youtube/bench-00000").bind(legs);
        hold.execute(&mut *transaction).await?;
        for kind in ["held", "spent"] {
            let entry = sqlx::query(ENTRY).bind(at).bind(wallet).bind(BUCKET).bind(cap).bind(kind).bind(&id);
            entry.execute(&mut *transaction).await?;
        }
        Ok(transaction.commit().await?)
    }
}
