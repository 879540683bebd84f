//! What servers on one database have in common: the time, and whose turn it is with what one of them at a time does.

use std::time::Duration;

use transcript_core::{Clock, Random, ids::Holder};

use crate::system::SystemClock;

/// The servers on one database, as one of them sees them. A server with storage of its own is alone.
#[derive(Clone, Debug)]
pub(crate) struct Servers {
    #[cfg(feature = "postgres")]
    store: Option<std::sync::Arc<storage_sqlx::PostgresStore>>,
    /// Whose time it is where they share an archive only.
    #[cfg(feature = "postgres")]
    archive: Option<std::sync::Arc<storage_sqlx::PostgresArchive>>,
    holder: Holder,
}

impl Servers {
    #[cfg(feature = "postgres")]
    pub(crate) fn new(
        store: Option<std::sync::Arc<storage_sqlx::PostgresStore>>,
        archive: Option<std::sync::Arc<storage_sqlx::PostgresArchive>>,
        random: &dyn Random,
    ) -> Self {
        Self { store, archive, holder: holder(random) }
    }

    #[cfg(not(feature = "postgres"))]
    pub(crate) fn new(random: &dyn Random) -> Self {
        Self { holder: holder(random) }
    }

    #[cfg(test)]
    pub(crate) fn alone(random: &dyn Random) -> Self {
        Self {
            #[cfg(feature = "postgres")]
            store: None,
            #[cfg(feature = "postgres")]
            archive: None,
            holder: holder(random),
        }
    }

    /// Sets the clock by the database, whose time all servers have: leases and holds end for all at the same moment,
    /// however wrong the clock of a machine is.
    ///
    /// # Errors
    /// The database is away.
    pub(crate) async fn set(&self, clock: &SystemClock) -> transcript_core::Result<()> {
        #[cfg(feature = "postgres")]
        {
            let begun = clock.passed();
            let theirs = match (&self.store, &self.archive) {
                (Some(store), _) => store.now().await?,
                (None, Some(archive)) => archive.now().await?,
                (None, None) => return Ok(()),
            };
            clock.set(theirs.as_millis(), begun, clock.passed());
        }
        #[cfg(not(feature = "postgres"))]
        let _ = clock;
        Ok(())
    }

    /// Whether it is this server's turn with something. It is nobody else's for this long, or until it is given back.
    pub(crate) async fn is_my_turn(&self, name: &'static str, clock: &dyn Clock, lasting: Duration) -> bool {
        #[cfg(feature = "postgres")]
        if let Some(store) = &self.store {
            let now = clock.now();
            let until = now.plus(lasting);
            return store.take_turn(name, &self.holder, now, until).await.unwrap_or_else(|error| {
                tracing::debug!(%error, name, "whose turn it is could not be asked");
                false
            });
        }
        let _ = (name, clock, lasting, &self.holder);
        true
    }

    /// Gives a turn back.
    pub(crate) async fn end_turn(&self, name: &'static str, clock: &dyn Clock) {
        #[cfg(feature = "postgres")]
        if let Some(store) = &self.store {
            let now = clock.now();
            if let Err(error) = store.take_turn(name, &self.holder, now, now).await {
                // It runs out by itself.
                tracing::debug!(%error, name, "a turn could not be given back");
            }
        }
        #[cfg(not(feature = "postgres"))]
        let _ = (name, clock);
    }
}

fn holder(random: &dyn Random) -> Holder {
    let name: String = random.bytes(16).iter().map(|byte| format!("{byte:02x}")).collect();
    Holder::new(format!("server-{name}"))
}
