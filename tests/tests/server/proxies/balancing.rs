//! Load balancers with the configurations of `deploy`: a rolling restart fails no request.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use anyhow::{Result, ensure};
use http::Method;
use tempfile::TempDir;
use tokio::task::JoinSet;
use verbatim_tests_postgres::Cluster;

use super::{ProxyFixture, example, free_port};
use crate::server::{
    harness::{ServerFixture, borrow_settings, create_keys_with, verbatim_with, wait_until},
    platform::{platform_settings, start_platform},
};

const VIDEOS: [&str; 3] = ["dyke-walk-0", "dyke-walk-1", "dyke-walk-2"];
const CLIENTS: usize = 4;

/// Requests through the balancer until the test is over.
#[derive(Debug, Default)]
struct BalancedLoad {
    over: AtomicBool,
    answered: AtomicU64,
    failed: AtomicU64,
}

impl BalancedLoad {
    async fn run(self: Arc<Self>, proxy: Arc<ProxyFixture>, key: String, client: usize) {
        let credentials = format!("Bearer {key}");
        let mut number = client;
        while !self.over.load(Relaxed) {
            number += 1;
            let video = VIDEOS[number % VIDEOS.len()];
            let lookup = format!("/api/transcript?v={video}");
            let keyed: &[_] = &[("authorization", &*credentials)];
            let (method, path, headers) = match number % 4 {
                0 => (Method::GET, lookup, keyed),
                1 => (Method::HEAD, lookup, &[] as &[_]),
                2 => (Method::GET, format!("/watch/video_site/{video}"), &[] as &[_]),
                _ => (Method::GET, lookup, &[] as &[_]),
            };
            match proxy.send(method, &path, headers).await {
                Ok(reply) if reply.status == 200 => self.answered.fetch_add(1, Relaxed),
                failed => {
                    eprintln!("failed: {path} {failed:?}");
                    self.failed.fetch_add(1, Relaxed)
                }
            };
        }
    }

    async fn answer_more(&self) -> Result<()> {
        let before = self.answered.load(Relaxed);
        wait_until("too few responses", async || Ok(self.answered.load(Relaxed) > before + 50)).await
    }
}

/// Restarts two servers one after the other; the listening addresses stay the same.
async fn check_rolling_restart(
    listen: [&str; 2],
    start_proxy: impl AsyncFnOnce() -> Result<ProxyFixture>,
) -> Result<()> {
    let platform = start_platform(&VIDEOS, Duration::ZERO)?;
    let database = Cluster::shared().database()?;
    let data = TempDir::new()?;
    let mut settings = platform_settings(&platform);
    for (name, value) in [
        ("VERBATIM_STORAGE__URL", &*database.url),
        // As the examples say: longer than the checks of the balancers.
        ("VERBATIM_SERVER__STOP_DELAY", "5s"),
        ("VERBATIM_LOG__LEVEL", "info"),
        ("VERBATIM_SERVER__BASE_URL", "http://localhost"),
        ("VERBATIM_SERVER__TRUSTED_PROXIES", "127.0.0.1"),
    ] {
        settings.push((name.to_owned(), value.to_owned()));
    }
    let settings = borrow_settings(&settings);
    let logs = [data.path().join("log-0"), data.path().join("log-1")];
    let start = |index: usize| {
        let command = verbatim_with(data.path(), &settings, &["serve", "--listen", listen[index]]);
        ServerFixture::start_command(command, &logs[index])
    };
    let mut servers = [start(0)?, start(1)?];
    let key = create_keys_with(&data, 1, &settings)?.remove(0);
    let proxy = Arc::new(start_proxy().await?);
    for video in VIDEOS {
        let credentials = format!("Bearer {key}");
        let path = format!("/api/transcript?v={video}");
        let reply = proxy.send(Method::GET, &path, &[("authorization", &credentials)]).await?;
        ensure!(reply.json()["available"] == true, "{}", reply.text());
    }
    let load = Arc::new(BalancedLoad::default());
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        clients.spawn(Arc::clone(&load).run(Arc::clone(&proxy), key.clone(), client));
    }
    for (index, server) in servers.iter_mut().enumerate() {
        load.answer_more().await?;
        let ended = tokio::task::block_in_place(|| server.stop())?;
        assert!(ended.success(), "{ended}");
        load.answer_more().await?;
        *server = start(index)?;
        // Health checks are not logged.
        wait_until("the balancer does not use the server", async || {
            Ok(fs::read_to_string(&logs[index])?.contains(" /api/transcript "))
        })
        .await?;
    }
    load.answer_more().await?;
    load.over.store(true, Relaxed);
    clients.join_all().await;
    let (answered, failed) = (load.answered.load(Relaxed), load.failed.load(Relaxed));
    eprintln!("{answered} requests answered, {failed} failed");
    assert_eq!(failed, 0, "{}", proxy.log());
    Ok(())
}

/// The example in front of these servers.
pub(super) async fn haproxy(port: u16, listen: [&str; 2]) -> Result<ProxyFixture> {
    // Only root can change its user.
    let user = "    user haproxy\n    group haproxy\n";
    let kept = if rustix::process::getuid().is_root() { user } else { "" };
    let replaced = [
        (user, kept),
        ("bind :80\n", &*format!("bind 127.0.0.1:{port}\n")),
        ("127.0.0.1:8081\n", &*format!("{}\n", listen[0])),
        ("127.0.0.1:8082\n", &*format!("{}\n", listen[1])),
    ];
    let proxy = ProxyFixture::haproxy(port, &example("haproxy.cfg", &replaced)?).await?;
    let status = fs::read_to_string(format!("/proc/{}/status", proxy.child.id()))?;
    ensure!(!status.contains("\nUid:\t0\t"), "HAProxy runs as root");
    Ok(proxy)
}

/// The example in front of these servers.
pub(super) async fn caddy(port: u16, listen: [&str; 2]) -> Result<ProxyFixture> {
    let replaced = [
        ("transcripts.example.org {", &*format!("http://:{port} {{\n\tbind 127.0.0.1")),
        ("127.0.0.1:8081 127.0.0.1:8082", &*listen.join(" ")),
    ];
    ProxyFixture::caddy(port, &example("Caddyfile", &replaced)?).await
}

#[tokio::test(flavor = "multi_thread")]
async fn nginx_rolling_restart_over_unix_sockets_fails_no_request() -> Result<()> {
    let sockets = TempDir::new()?;
    let path = |name: &str| sockets.path().join(name).display().to_string();
    let (one, other) = (format!("unix:{}", path("a.sock")), format!("unix:{}", path("b.sock")));
    check_rolling_restart([&one, &other], async || {
        let port = free_port()?;
        let replaced = [
            ("/run/verbatim-a/server.sock", &*path("a.sock")),
            ("/run/verbatim-b/server.sock", &*path("b.sock")),
            ("/var/cache/nginx-verbatim", "cache"),
            ("listen 80;", &*format!("listen 127.0.0.1:{port};")),
        ];
        ProxyFixture::nginx(port, &example("nginx.conf", &replaced)?).await
    })
    .await?;
    // The servers have ended, so their sockets are removed or dead; both names are free.
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn haproxy_rolling_restart_fails_no_request() -> Result<()> {
    let (one, other) = (format!("127.0.0.1:{}", free_port()?), format!("127.0.0.1:{}", free_port()?));
    check_rolling_restart([&one, &other], async || haproxy(free_port()?, [&one, &other]).await).await
}

#[tokio::test(flavor = "multi_thread")]
async fn caddy_rolling_restart_fails_no_request() -> Result<()> {
    let (one, other) = (format!("127.0.0.1:{}", free_port()?), format!("127.0.0.1:{}", free_port()?));
    check_rolling_restart([&one, &other], async || caddy(free_port()?, [&one, &other]).await).await
}
