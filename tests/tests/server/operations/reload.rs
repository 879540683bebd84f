//! Signals of a running server: SIGHUP reloads its settings, SIGUSR1 and SIGUSR2 do not end it.

use std::{
    ops::Range,
    path::PathBuf,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use http::{Method, StatusCode};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::Semaphore,
    task::JoinSet,
};
use verbatim_tests::replay::ReplayProxy;

use super::ObservedServer;
use crate::server::{
    harness::{
        ServerFixture, ServerReply, audit_ledger, create_keys, send_once_with, send_signal, wait_until,
    },
    platform::{fetch_count, gated_platform, start_platform},
    v1::mail_client::{MailClient, create_account, remaining_credits},
};

const VIDEO: &str = "dyke-walk-0";
const ORIGIN: &str = "https://app.example.org";
/// Memory that the allocator may add without a leak. A router alone has hundreds of kilobytes.
const GROWTH_MAX: f64 = 8.0 * 1024.0 * 1024.0;

/// A server whose settings are in a file.
struct ReloadFixture {
    observed: ObservedServer,
    data: TempDir,
    config: PathBuf,
    /// Settings that all reloads have in common.
    common: String,
}

impl ReloadFixture {
    /// Starts a server with these settings, as TOML with dotted names, besides those of the platform.
    async fn start(proxy: Option<&ReplayProxy>, settings: &str) -> Result<Self> {
        let data = TempDir::new()?;
        let mut common = "metrics.listen = \"127.0.0.1:0\"\n".to_owned();
        if let Some(proxy) = proxy {
            let ca_file = proxy.ca_file().display().to_string();
            common.push_str(&format!(
                "upstream.proxy = [\"{}\"]\nupstream.ca_file = \"{ca_file}\"\n",
                proxy.url()
            ));
        }
        let config = data.path().join("verbatim.toml");
        std::fs::write(&config, format!("{common}{settings}"))?;
        let observed = ObservedServer::start_with_config(&data, &config).await?;
        Ok(Self { observed, data, config, common })
    }

    fn server(&self) -> &ServerFixture {
        &self.observed.server
    }

    fn signal(&self, name: &str) -> Result<()> {
        send_signal(self.server().pid(), name)
    }

    /// Reloads with these settings, and waits until the server has done so.
    async fn reload(&self, settings: &str) -> Result<()> {
        std::fs::write(&self.config, format!("{}{settings}", self.common))?;
        self.reload_file().await
    }

    async fn reload_file(&self) -> Result<()> {
        let before = self.figure("verbatim_config_reloads_total").await?;
        self.signal("HUP")?;
        wait_until("the server did not reload", async || {
            Ok(self.figure("verbatim_config_reloads_total").await? > before + 0.5)
        })
        .await
    }

    async fn figure(&self, name: &str) -> Result<f64> {
        self.observed.figure(name).await
    }

    /// Toggles the log level, and waits for the line of this toggle: the `count`th with this level.
    async fn toggle_log_level(&self, level: &str, count: usize) -> Result<()> {
        self.signal("USR1")?;
        let line = format!("log level changed by a signal level={level}");
        wait_until(&line, async || Ok(self.observed.log()?.matches(&line).count() >= count)).await
    }

    /// Waits until a request is logged. The log then has all earlier lines too.
    async fn wait_until_logged(&self, path: &str) -> Result<String> {
        self.server().get(path).await?;
        self.observed.wait_for_log(&format!(" {path} ")).await
    }

    /// Reloads once for each number. Returns the median of the resident memory, in bytes: one figure is up to
    /// a tenth above or below the next, because the allocator decides when it returns memory.
    async fn reload_and_measure(&self, numbers: Range<u64>) -> Result<f64> {
        let mut figures = Vec::new();
        for number in numbers {
            self.reload(&format!("plans.free.credits = {number}\n")).await?;
            ensure!(self.server().get("/openapi.json").await?.status == 200);
            figures.push(self.figure("process_resident_memory_bytes").await?);
        }
        figures.sort_by(f64::total_cmp);
        figures.get(figures.len() / 2).copied().context("no reload")
    }

    async fn check_figure(&self, name: &str, expect: f64) -> Result<()> {
        let found = self.figure(name).await?;
        ensure!((found - expect).abs() < 1e-9, "{name} is {found}, not {expect}");
        Ok(())
    }

    /// Number of lookups without a key until the first one is refused by a limit.
    async fn misses_until_limit(&self, most: usize) -> Result<usize> {
        for count in 0..most {
            let reply = self.server().get(&format!("/api/transcript?v=missing-{count:03}")).await?;
            let body = reply.json();
            match body["failureReason"].as_str() {
                Some("needs_verification") => {}
                Some("fair_use") => return Ok(count),
                _ => anyhow::bail!("{body}"),
            }
        }
        Ok(most)
    }
}

/// The status of a request for this host, over a new connection.
async fn status_for_host(address: &str, path: &str, host: &str) -> Result<u16> {
    let reply = send_once_with(address, Method::GET, path, &[("host", host)], "").await?;
    Ok(reply.status.as_u16())
}

/// Clients of one server, each with requests one after the other.
#[derive(Debug, Default)]
struct ClientLoad {
    is_over: AtomicBool,
    answered: AtomicU64,
}

impl ClientLoad {
    /// Sends requests over one connection until the load is over. The connection must never be closed.
    async fn send_requests(self: Arc<Self>, address: String, lines: String) -> Result<()> {
        let mut stream = TcpStream::connect(&address).await?;
        let mut bytes = Vec::new();
        while !self.is_over.load(Relaxed) {
            stream.write_all(lines.as_bytes()).await?;
            bytes.clear();
            let status = loop {
                let count = stream.read_buf(&mut bytes).await?;
                ensure!(count > 0, "the server closed a connection: {}", String::from_utf8_lossy(&bytes));
                if let Some(status) = complete_status(&bytes)? {
                    break status;
                }
            };
            ensure!(status == 200, "{}", String::from_utf8_lossy(&bytes));
            self.answered.fetch_add(1, Relaxed);
        }
        Ok(())
    }
}

/// The status of a response, once all of it was read.
fn complete_status(bytes: &[u8]) -> Result<Option<u16>> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let head = std::str::from_utf8(&bytes[..end])?.to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1).context("no length")?;
    let length: usize = length.split("\r\n").next().context("no length")?.parse()?;
    let status = head.split(' ').nth(1).context("no status")?.parse()?;
    Ok((bytes.len() >= end + 4 + length).then_some(status))
}

#[tokio::test(flavor = "multi_thread")]
async fn reload_under_load_fails_no_request_and_closes_no_connection() -> Result<()> {
    let proxy = start_platform(&[VIDEO], Duration::ZERO)?;
    let fixture = ReloadFixture::start(Some(&proxy), "plans.free.requests_per_minute = 100000\n").await?;
    let server = fixture.server();
    let account = create_account(server, &mut MailClient::new(&fixture.data), "ann@example.org").await?;
    let key = create_keys(&fixture.data, 1)?.remove(0);
    let first = server.get_as(&key, &format!("/api/transcript?v={VIDEO}")).await?;
    ensure!(first.json()["available"] == true, "{}", first.text());

    let load = Arc::new(ClientLoad::default());
    let mut clients = JoinSet::new();
    let bearer = format!("authorization: Bearer {account}\r\n");
    for (path, header) in [
        (format!("/api/transcript?v={VIDEO}"), ""),
        (format!("/api/transcript?v={VIDEO}&format=md"), ""),
        ("/api/v1/me".to_owned(), bearer.as_str()),
        (format!("/watch/video_site/{VIDEO}"), ""),
        ("/openapi.json".to_owned(), ""),
        ("/readyz".to_owned(), ""),
    ] {
        let lines = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{header}\r\n");
        clients.spawn(Arc::clone(&load).send_requests(server.address().to_owned(), lines));
    }
    for number in 0..40 {
        let before = load.answered.load(Relaxed);
        let settings = format!(
            "plans.free.requests_per_minute = 100000\nplans.free.credits = {}\nserver.allowed_hosts = [\"h{number}.example\"]\n",
            1_000 + number
        );
        fixture.reload(&settings).await?;
        wait_until("too few responses", async || Ok(load.answered.load(Relaxed) > before + 6)).await?;
        ensure!(clients.try_join_next().is_none(), "a client ended");
    }
    load.is_over.store(true, Relaxed);
    while let Some(client) = clients.join_next().await {
        client??;
    }
    assert_eq!(remaining_credits(server, &account).await?, 1_039);
    fixture.check_figure("verbatim_config_reloads_total{result=\"done\"}", 40.0).await
}

#[tokio::test(flavor = "multi_thread")]
async fn reload_keeps_price_of_running_request() -> Result<()> {
    let gate = Arc::new(Semaphore::new(0));
    let proxy = gated_platform(&[VIDEO], &gate)?;
    let fixture = ReloadFixture::start(Some(&proxy), "credits.per_transcript = 2\n").await?;
    let server = fixture.server();
    let account = create_account(server, &mut MailClient::new(&fixture.data), "ann@example.org").await?;
    let path = format!("/api/v1/transcript?video_id={VIDEO}");
    let credits_left = |reply: &ServerReply| reply.header("x-credits-remaining").to_owned();

    let reload_and_open = async {
        wait_until("no request reached the platform", async || Ok(fetch_count(&proxy, VIDEO) == 1)).await?;
        fixture.reload("credits.per_transcript = 5\n").await?;
        gate.add_permits(1);
        anyhow::Ok(())
    };
    let (old_price, reloaded) = tokio::join!(server.get_as(&account, &path), reload_and_open);
    reloaded?;
    let old_price = old_price?;
    assert_eq!((old_price.status, credits_left(&old_price)), (StatusCode::OK, "198".to_owned()));
    let new_price = server.get_as(&account, &path).await?;
    assert_eq!((new_price.status, credits_left(&new_price)), (StatusCode::OK, "193".to_owned()));
    assert_eq!(remaining_credits(server, &account).await?, 193);
    audit_ledger(fixture.data.path(), &[])
}

#[tokio::test(flavor = "multi_thread")]
async fn reload_changes_limits_and_keeps_counts() -> Result<()> {
    let fixture = ReloadFixture::start(None, "limits.misses_per_network_per_minute = 3\n").await?;
    assert_eq!(fixture.misses_until_limit(10).await?, 3);
    fixture.reload("limits.misses_per_network_per_minute = 5\n").await?;
    assert_eq!(fixture.misses_until_limit(10).await?, 2);
    fixture.reload("limits.misses_per_network_per_minute = 4\n").await?;
    assert_eq!(fixture.misses_until_limit(10).await?, 0);

    let server = fixture.server();
    let account = create_account(server, &mut MailClient::new(&fixture.data), "ann@example.org").await?;
    assert_eq!(remaining_credits(server, &account).await?, 200);
    fixture.reload("plans.free.credits = 7\nplans.free.requests_per_minute = 3\n").await?;
    assert_eq!(remaining_credits(server, &account).await?, 7);
    // The requests before the reload count.
    assert_eq!(server.get_as(&account, "/api/v1/me").await?.status, 200);
    assert_eq!(server.get_as(&account, "/api/v1/me").await?.status, 429);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn reload_changes_origins_hosts_and_entitlements() -> Result<()> {
    let fixture = ReloadFixture::start(None, "").await?;
    let server = fixture.server();
    let allowed_origin = async || -> Result<String> {
        let reply = server.send(Method::OPTIONS, "/api/keys", &[("origin", ORIGIN)], "").await?;
        Ok(reply.header("access-control-allow-origin").to_owned())
    };
    let host = "transcripts.example.org";
    let statuses = async || -> Result<(u16, u16)> {
        let main = status_for_host(server.address(), "/health", host).await?;
        Ok((main, status_for_host(&fixture.observed.metrics_address, "/healthz", host).await?))
    };
    assert_eq!((allowed_origin().await?.as_str(), statuses().await?), ("", (421, 421)));
    let settings = format!("[server]\ncors_origins = [\"{ORIGIN}\"]\nallowed_hosts = [\"{host}\"]\n");
    fixture.reload(&settings).await?;
    assert_eq!((allowed_origin().await?.as_str(), statuses().await?), (ORIGIN, (200, 200)));
    fixture.reload("").await?;
    assert_eq!((allowed_origin().await?.as_str(), statuses().await?), ("", (421, 421)));

    // A key set without a usable key is refused by the library, not by the table of settings.
    fixture
        .reload("entitlement.keys = '{\"keys\":[{\"kty\":\"none\"}]}'\nlimits.free_per_month = 1\n")
        .await?;
    fixture.observed.wait_for_log("settings were not reloaded: ").await?;
    fixture.check_figure("verbatim_config_last_reload_successful", 0.0).await?;
    fixture.reload("").await?;
    fixture.check_figure("verbatim_config_last_reload_successful", 1.0).await
}

#[tokio::test(flavor = "multi_thread")]
async fn reload_refuses_settings_that_need_restart() -> Result<()> {
    let service =
        |key: &str| format!("service.base_url = \"http://127.0.0.1:9\"\nservice.api_key = \"{key}\"\n");
    let fixture = ReloadFixture::start(None, &service("vbk_first")).await?;
    let changed = "limits.wait = \"1s\"\nlimits.misses_per_network_per_minute = 2\n";
    fixture.reload(&(service("vbk_second") + changed)).await?;
    for name in ["service.api_key", "limits.wait"] {
        let sentence = format!("{name} was changed, but needs a restart: its old value is still used");
        fixture.observed.wait_for_log(&sentence).await?;
    }
    let log = fixture.observed.wait_for_log("limits.misses_per_network_per_minute").await?;
    assert_eq!(log.matches("needs a restart").count(), 2, "{log}");
    assert!(!log.contains("vbk_"), "{log}");
    // The others took effect.
    assert_eq!(fixture.misses_until_limit(10).await?, 2);
    fixture.check_figure("verbatim_config_reloads_total{result=\"partial\"}", 1.0).await?;
    fixture.check_figure("verbatim_config_last_reload_successful", 1.0).await?;
    fixture.reload(&service("vbk_first")).await?;
    fixture.check_figure("verbatim_config_reloads_total{result=\"done\"}", 1.0).await
}

#[tokio::test(flavor = "multi_thread")]
async fn reload_of_invalid_file_changes_nothing() -> Result<()> {
    let fixture = ReloadFixture::start(None, "limits.misses_per_network_per_minute = 2\n").await?;
    // The settings of the fixture take the first line of the file.
    for (broken, sentence) in [
        ("limits.misses_per_network_per_minute = 9\n[server\n", "line 3: unclosed table"),
        (
            "limits.misses_per_network_per_minute = 9\nlimits.speling = 1\n",
            "\"limits.speling\" is not a setting",
        ),
        ("limits.misses_per_network_per_minute = 0\n", "it must be from 1 to"),
        (
            "limits.misses_per_network_per_minute = 9\nmail.smtp_url = \"smtp://mail.example\"\n",
            "mail.from: it is not set",
        ),
    ] {
        fixture.reload(broken).await?;
        fixture.observed.wait_for_log(sentence).await?;
        fixture.check_figure("verbatim_config_last_reload_successful", 0.0).await?;
    }
    std::fs::remove_file(&fixture.config)?;
    fixture.reload_file().await?;
    fixture.observed.wait_for_log("cannot be read").await?;
    ensure!(Command::new("mkfifo").arg(&fixture.config).status()?.success());
    fixture.reload_file().await?;
    fixture.observed.wait_for_log("is not a regular file").await?;
    fixture.check_figure("verbatim_config_reloads_total{result=\"failed\"}", 6.0).await?;
    assert_eq!(fixture.misses_until_limit(10).await?, 2);
    std::fs::remove_file(&fixture.config)?;
    fixture.reload("limits.misses_per_network_per_minute = 3\n").await?;
    fixture.check_figure("verbatim_config_last_reload_successful", 1.0).await?;
    assert_eq!(fixture.misses_until_limit(10).await?, 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn reload_refuses_what_next_start_refuses() -> Result<()> {
    let fixture = ReloadFixture::start(None, "").await?;
    // None of these is changed by a reload, and all are checked by the library.
    let refused = [
        ("youtube.clients = [\"tv\"]", "youtube.clients: unknown client"),
        ("youtube.web_version = \"x\"", "youtube.web_version must be"),
        ("x.features = [\"a b\"]", "x.features takes names"),
        ("ytdlp.program = \"/nonexistent/yt-dlp\"", "ytdlp.program: program /nonexistent/yt-dlp not found"),
        ("upstream.ca_file = \"/etc/passwd\"", "upstream.ca_file /etc/passwd: it holds no certificate"),
    ];
    for (setting, sentence) in refused {
        fixture.reload(&format!("{setting}\nlimits.misses_per_network_per_minute = 1\n")).await?;
        fixture.observed.wait_for_log(&format!("settings were not reloaded: {sentence}")).await?;
        fixture.check_figure("verbatim_config_last_reload_successful", 0.0).await?;
    }
    let log = fixture.observed.log()?;
    assert_eq!(log.matches("verbatim.toml, line 2)").count(), refused.len(), "{log}");
    assert!(!log.contains("settings reloaded"), "{log}");
    assert_eq!(fixture.misses_until_limit(3).await?, 3);
    fixture.reload("limits.misses_per_network_per_minute = 4\n").await?;
    fixture.check_figure("verbatim_config_last_reload_successful", 1.0).await?;
    assert_eq!(fixture.misses_until_limit(3).await?, 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn log_level_follows_reload_and_user_signal() -> Result<()> {
    let mut fixture = ReloadFixture::start(None, "").await?;
    fixture.wait_until_logged("/at-info").await?;
    fixture.reload("log.level = \"error\"\n").await?;
    fixture.server().get("/at-error").await?;
    // A refused setting is a warning, so it is not logged.
    fixture.reload("log.level = \"error\"\nlimits.wait = \"1s\"\n").await?;
    fixture.signal("USR2")?;
    fixture.toggle_log_level("DEBUG", 1).await?;
    let log = fixture.wait_until_logged("/at-debug").await?;
    assert!(!log.contains("/at-error") && !log.contains("needs a restart"), "{log}");
    fixture.reload("log.level = \"info\"\n").await?;
    // Health checks are logged at debug.
    fixture.server().get("/health").await?;
    let log = fixture.wait_until_logged("/at-info-again").await?;
    assert!(!log.contains(" /health "), "a reload leaves the level of the signal: {log}");
    fixture.toggle_log_level("DEBUG", 2).await?;
    fixture.wait_until_logged("/health").await?;
    fixture.toggle_log_level("INFO", 1).await?;
    fixture.server().get("/healthz").await?;
    let log = fixture.wait_until_logged("/after-signals").await?;
    assert!(!log.contains(" /healthz "), "the second signal leaves the level of the first one: {log}");
    // The second signal restores the level of the settings.
    fixture.reload("log.level = \"trace\"\n").await?;
    fixture.toggle_log_level("DEBUG", 3).await?;
    fixture.toggle_log_level("TRACE", 1).await?;
    fixture.reload("log.level = \"error\"\n").await?;
    fixture.server().get("/after-reload").await?;
    fixture.reload("log.level = \"info\"\n").await?;
    let log = fixture.wait_until_logged("/at-last").await?;
    assert!(!log.contains("/after-reload"), "{log}");
    assert!(fixture.observed.server.stop()?.success());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_before_first_request_do_not_end_server() -> Result<()> {
    let mut fixture = ReloadFixture::start(None, "").await?;
    for _ in 0..50 {
        for name in ["HUP", "USR1", "USR2"] {
            fixture.signal(name)?;
        }
    }
    assert_eq!(fixture.server().get("/health").await?.status, 200);
    assert!(fixture.observed.server.stop()?.success());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn reload_200_times_keeps_memory() -> Result<()> {
    let fixture = ReloadFixture::start(None, "").await?;
    fixture.reload_and_measure(0..100).await?;
    let first = fixture.reload_and_measure(100..150).await?;
    fixture.reload_and_measure(150..300).await?;
    let growth = fixture.reload_and_measure(300..350).await? - first;
    eprintln!("memory grew by {growth} bytes in 200 reloads");
    ensure!(first > 0.0 && growth < GROWTH_MAX, "memory grew by {growth} bytes from {first}");
    Ok(())
}
