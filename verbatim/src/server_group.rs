//! Common time and leader leases of the servers on one database.

#[cfg(feature = "postgres")]
use std::sync::Arc;
use std::time::Duration;

use transcript_core::{Clock, Random, hex, ids::Holder};

use crate::system::SystemClock;

/// Connections to PostgreSQL.
#[cfg(feature = "postgres")]
#[derive(Clone, Debug, Default)]
pub(crate) struct PostgresDatabases {
    pub(crate) main: Option<Arc<storage_sqlx::PostgresStore>>,
    pub(crate) archive: Option<Arc<storage_sqlx::PostgresArchive>>,
}

/// The servers on one database, as one of them sees them. A server with its own storage is alone.
#[derive(Clone, Debug)]
pub(crate) struct ServerGroup {
    /// The archive is the source of the time if the servers share nothing else.
    #[cfg(feature = "postgres")]
    databases: PostgresDatabases,
    holder: Holder,
}

impl ServerGroup {
    /// A server with its own storage.
    pub(crate) fn single_server(random: &dyn Random) -> Self {
        Self {
            #[cfg(feature = "postgres")]
            databases: PostgresDatabases::default(),
            holder: holder(random),
        }
    }

    /// The servers on these databases.
    #[cfg(feature = "postgres")]
    pub(crate) fn new(databases: PostgresDatabases, random: &dyn Random) -> Self {
        Self { databases, ..Self::single_server(random) }
    }

    /// Sets the clock to the database time, which all servers share.
    ///
    /// Leases and holds then end at the same time for all servers, even if the clock of a machine is wrong.
    ///
    /// # Errors
    /// The database is unavailable.
    pub(crate) async fn sync_clock(&self, clock: &SystemClock) -> transcript_core::Result<()> {
        #[cfg(feature = "postgres")]
        {
            let started = clock.elapsed_ms();
            let theirs = match (&self.databases.main, &self.databases.archive) {
                (Some(store), _) => store.now().await?,
                (None, Some(archive)) => archive.now().await?,
                (None, None) => return Ok(()),
            };
            clock.set(theirs.as_millis(), started, clock.elapsed_ms());
        }
        #[cfg(not(feature = "postgres"))]
        let _ = clock;
        Ok(())
    }

    /// Tries to lead a job; no other server leads it for `lasting`, or until the lead is released.
    pub(crate) async fn try_lead(&self, name: &'static str, clock: &dyn Clock, lasting: Duration) -> bool {
        self.request_lead(name, clock, lasting).await.unwrap_or_else(|error| {
            tracing::debug!(%error, name, "leader lease request failed");
            false
        })
    }

    /// As [`ServerGroup::try_lead`], for a job that runs although no lead can be stored.
    ///
    /// # Errors
    /// The database cannot be written: it is unknown whether another server leads.
    pub(crate) async fn request_lead(
        &self,
        name: &'static str,
        clock: &dyn Clock,
        lasting: Duration,
    ) -> transcript_core::Result<bool> {
        #[cfg(feature = "postgres")]
        if let Some(store) = &self.databases.main {
            let now = clock.now();
            let expires_at = now.plus(lasting);
            return store.try_lead(name, &self.holder, now, expires_at).await;
        }
        let _ = (name, clock, lasting, &self.holder);
        Ok(true)
    }

    /// Runs a round of a job if this server leads it, and then releases the lead; `None` if another server leads.
    ///
    /// The lead of a round that panics or is dropped expires.
    pub(crate) async fn run_as_leader<T>(
        &self,
        name: &'static str,
        clock: &dyn Clock,
        lasting: Duration,
        round: impl Future<Output = T>,
    ) -> Option<T> {
        if !self.try_lead(name, clock, lasting).await {
            return None;
        }
        let ended = round.await;
        self.release_lead(name, clock).await;
        Some(ended)
    }

    /// Releases the lead of a job.
    pub(crate) async fn release_lead(&self, name: &'static str, clock: &dyn Clock) {
        #[cfg(feature = "postgres")]
        if let Some(store) = &self.databases.main {
            let now = clock.now();
            if let Err(error) = store.try_lead(name, &self.holder, now, now).await {
                // The lease expires anyway.
                tracing::debug!(%error, name, "leader lease release failed");
            }
        }
        #[cfg(not(feature = "postgres"))]
        let _ = (name, clock);
    }
}

fn holder(random: &dyn Random) -> Holder {
    Holder::new(format!("server-{}", hex::encode(&random.bytes(16))))
}
