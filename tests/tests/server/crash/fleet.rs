//! The servers of a test, which are killed and restarted one after the other.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};

use super::{ServerAddresses, clock, store::CrashStore};
use crate::server::harness::{ServerFixture, borrow_settings};

/// The address of each server; `None` while it restarts.
#[derive(Debug, Default)]
pub(super) struct FleetLog(Mutex<Vec<Option<String>>>);

impl FleetLog {
    /// The address of a server, or of the next one that has an address, once there is one.
    pub(super) async fn wait_for_address(&self, index: usize) -> String {
        loop {
            match self.address(index) {
                Some(address) => return address,
                None => tokio::time::sleep(Duration::from_millis(2)).await,
            }
        }
    }

    fn address(&self, index: usize) -> Option<String> {
        let addresses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (0..addresses.len()).find_map(|step| addresses[(index + step) % addresses.len()].clone())
    }

    /// Whether a server listens there.
    pub(super) fn has(&self, address: &str) -> bool {
        let addresses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        addresses.iter().flatten().any(|known| known == address)
    }

    fn set(&self, index: usize, address: Option<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)[index] = address;
    }
}

/// All servers of a test.
#[derive(Debug)]
pub(super) struct ServerFleet {
    data: std::path::PathBuf,
    /// The settings of each server.
    settings: Vec<Vec<(String, String)>>,
    servers: Vec<Option<ServerFixture>>,
    log: ServerAddresses,
}

impl ServerFleet {
    /// Starts one server per clock, each of which is ahead by this many seconds.
    pub(super) async fn start(
        store: &CrashStore,
        settings: &[(String, String)],
        clocks: &[i64],
    ) -> Result<Self> {
        let count = clocks.len();
        let settings_of = |ahead: &i64| Ok([settings, &clock::settings(*ahead, store.data.path())?].concat());
        let settings = clocks.iter().map(settings_of).collect::<Result<_>>()?;
        let addresses = Arc::new(FleetLog(Mutex::new(vec![None; count])));
        let servers = (0..count).map(|_| None).collect();
        let mut fleet = Self { data: store.data.path().to_owned(), settings, servers, log: addresses };
        for index in 0..count {
            fleet.start_one(index).await?;
        }
        Ok(fleet)
    }

    pub(super) fn log(&self) -> ServerAddresses {
        Arc::clone(&self.log)
    }

    async fn start_one(&mut self, index: usize) -> Result<()> {
        let (data, settings) = (self.data.clone(), self.settings[index].clone());
        let start = tokio::task::spawn_blocking(move || {
            let settings = borrow_settings(&settings);
            ServerFixture::start_in(&data, &settings)
        });
        let server = start.await??;
        self.log.set(index, Some(server.address().to_owned()));
        self.servers[index] = Some(server);
        Ok(())
    }

    /// Kills a server at any point of its work and starts another one at its index.
    pub(super) async fn kill_and_start(&mut self, index: usize) -> Result<()> {
        let server = self.servers[index].take().context("no server to kill")?;
        let kill = std::process::Command::new("kill").args(["-KILL", &server.pid().to_string()]).status()?;
        ensure!(kill.success(), "the server had ended before the kill");
        // Requests to the killed server are interrupted or refused.
        drop(server);
        self.log.set(index, None);
        self.start_one(index).await
    }

    /// Stops all servers in order.
    pub(super) fn stop(&mut self) -> Result<()> {
        for server in self.servers.iter_mut().flatten() {
            ensure!(server.stop()?.success(), "a server ended badly");
        }
        Ok(())
    }
}
