//! Servers on one database are replaced one after the other without a failed request.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use anyhow::{Result, ensure};
use http::Method;
use tempfile::TempDir;
use tokio::task::JoinSet;
use verbatim_tests_postgres::Cluster;

use crate::server::{
    harness::{ServerFixture, audit_ledger, borrow_settings, create_keys_with, send_once, wait_until},
    platform::{platform_settings, start_platform},
};

const VIDEOS: [&str; 4] = ["dyke-walk-0", "dyke-walk-1", "dyke-walk-2", "dyke-walk-3"];
/// Interval of the balancer's readiness checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Sends requests to servers that report ready.
#[derive(Debug, Default)]
struct LoadBalancer {
    servers: Mutex<Vec<(String, bool)>>,
    over: AtomicBool,
    answered: AtomicU64,
}

impl LoadBalancer {
    fn servers(&self) -> MutexGuard<'_, Vec<(String, bool)>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn watch_readiness(self: Arc<Self>) {
        while !self.over.load(Relaxed) {
            let addresses: Vec<String> = self.servers().iter().map(|(address, _)| address.clone()).collect();
            for address in addresses {
                let ready =
                    send_once(&address, Method::GET, "/readyz").await.is_ok_and(|reply| reply.status == 200);
                for one in self.servers().iter_mut().filter(|one| one.0 == address) {
                    one.1 = ready;
                }
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    fn choose(&self, number: usize) -> Option<String> {
        let servers = self.servers();
        let ready: Vec<&String> = servers.iter().filter(|one| one.1).map(|one| &one.0).collect();
        ready.get(number % ready.len().max(1)).map(|address| (*address).clone())
    }

    /// Sends requests until the test is over. The first failure ends it.
    async fn send_requests(self: Arc<Self>, client: usize) -> Result<()> {
        let mut number = client;
        while !self.over.load(Relaxed) {
            number += 1;
            let Some(address) = self.choose(number) else {
                tokio::time::sleep(CHECK_INTERVAL).await;
                continue;
            };
            let path = format!("/api/transcript?v={}", VIDEOS[number % VIDEOS.len()]);
            let reply = send_once(&address, Method::GET, &path).await?;
            ensure!(reply.status == 200 && reply.json()["available"] == true, "{}", reply.text());
            self.answered.fetch_add(1, Relaxed);
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rolling_restart_fails_no_request() -> Result<()> {
    let proxy = start_platform(&VIDEOS, Duration::ZERO)?;
    let database = Cluster::shared().database()?;
    let data = TempDir::new()?;
    let mut settings = platform_settings(&proxy);
    settings.push(("VERBATIM_STORAGE__URL".to_owned(), database.url.clone()));
    settings.push(("VERBATIM_SERVER__STOP_DELAY".to_owned(), "2s".to_owned()));
    let settings = borrow_settings(&settings);
    let mut servers = [ServerFixture::start(&data, &settings)?, ServerFixture::start(&data, &settings)?];
    let key = create_keys_with(&data, 1, &settings)?.remove(0);
    for video in VIDEOS {
        let reply = servers[0].get_as(&key, &format!("/api/transcript?v={video}")).await?;
        ensure!(reply.json()["available"] == true, "{}", reply.text());
    }

    let balancer = Arc::new(LoadBalancer::default());
    *balancer.servers() = servers.iter().map(|one| (one.address().to_owned(), true)).collect();
    let mut clients = JoinSet::new();
    for client in 0..4 {
        clients.spawn(Arc::clone(&balancer).send_requests(client));
    }
    let readiness_watch = tokio::spawn(Arc::clone(&balancer).watch_readiness());
    for (index, server) in servers.iter_mut().enumerate() {
        let before = balancer.answered.load(Relaxed);
        wait_until("too few responses", async || Ok(balancer.answered.load(Relaxed) > before + 20)).await?;
        let ended = tokio::task::block_in_place(|| server.stop())?;
        assert!(ended.success(), "{ended}");
        *server = ServerFixture::start(&data, &settings)?;
        balancer.servers()[index] = (server.address().to_owned(), false);
        wait_until("the new server is not ready", async || Ok(balancer.servers()[index].1)).await?;
    }
    let before = balancer.answered.load(Relaxed);
    wait_until("too few responses", async || Ok(balancer.answered.load(Relaxed) > before + 20)).await?;
    balancer.over.store(true, Relaxed);
    while let Some(client) = clients.join_next().await {
        client??;
    }
    readiness_watch.await?;
    audit_ledger(data.path(), &settings)
}
