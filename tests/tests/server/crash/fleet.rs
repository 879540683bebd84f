//! The servers, of which one after the other is killed and started anew.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};

use super::{Addresses, clock, store::Store};
use crate::server::harness::{Server, borrowed};

/// Where each server listens; nowhere while it is being started anew.
#[derive(Debug, Default)]
pub(super) struct Book(Mutex<Vec<Option<String>>>);

impl Book {
    /// The address of a server, or of the next one that has any.
    pub(super) fn address(&self, place: usize) -> Option<String> {
        let book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (0..book.len()).find_map(|step| book[(place + step) % book.len()].clone())
    }

    /// Whether a server listens there.
    pub(super) fn has(&self, address: &str) -> bool {
        let book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        book.iter().flatten().any(|known| known == address)
    }

    fn set(&self, place: usize, address: Option<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)[place] = address;
    }
}

/// All servers of a test.
#[derive(Debug)]
pub(super) struct Fleet {
    data: std::path::PathBuf,
    /// Of each server.
    settings: Vec<Vec<(String, String)>>,
    servers: Vec<Option<Server>>,
    book: Addresses,
}

impl Fleet {
    /// As many servers as there are clocks, each of which is so many seconds ahead.
    pub(super) async fn start(store: &Store, settings: &[(String, String)], clocks: &[i64]) -> Result<Self> {
        let count = clocks.len();
        let of = |ahead: &i64| Ok([settings, &clock::settings(*ahead, store.data.path())?].concat());
        let settings = clocks.iter().map(of).collect::<Result<_>>()?;
        let book = Arc::new(Book(Mutex::new(vec![None; count])));
        let servers = (0..count).map(|_| None).collect();
        let mut fleet = Self { data: store.data.path().to_owned(), settings, servers, book };
        for place in 0..count {
            fleet.start_one(place).await?;
        }
        Ok(fleet)
    }

    pub(super) fn book(&self) -> Addresses {
        Arc::clone(&self.book)
    }

    async fn start_one(&mut self, place: usize) -> Result<()> {
        let (data, settings) = (self.data.clone(), self.settings[place].clone());
        let starting = tokio::task::spawn_blocking(move || {
            let settings = borrowed(&settings);
            Server::start_in(&data, &settings)
        });
        let server = starting.await??;
        self.book.set(place, Some(server.address().to_owned()));
        self.servers[place] = Some(server);
        Ok(())
    }

    /// Kills a server, whatever it is doing, and starts another one in its place.
    pub(super) async fn kill_and_start(&mut self, place: usize) -> Result<()> {
        let server = self.servers[place].take().context("no server to kill")?;
        let kill = std::process::Command::new("kill").args(["-KILL", &server.pid().to_string()]).status()?;
        ensure!(kill.success(), "the server had ended by itself");
        // Whoever asks while it dies is cut off, or refused.
        drop(server);
        self.book.set(place, None);
        self.start_one(place).await
    }

    /// Stops all in order.
    pub(super) fn stop(&mut self) -> Result<()> {
        for server in self.servers.iter_mut().flatten() {
            ensure!(server.stop()?.success(), "a server ended badly");
        }
        Ok(())
    }
}
