//! Varnish and nginx as shared caches: what they store, for whom, and how it leaves them.

use std::{
    io::Read as _,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use http::Method;
use storage_sqlx::{SqliteArchive, SqliteOptions};
use tempfile::TempDir;
use tokio::task::JoinSet;
use transcript_core::archive::Archive;

use super::{ProxyFixture, example, free_port};
use crate::server::{
    caching::put_request_for,
    harness::{ServerReply, create_keys, run_ok, verbatim, wait_until},
    operations::ObservedServer,
};

const VIDEOS: [&str; 3] = ["dyke-walk-0", "dyke-walk-1", "dyke-walk-2"];
const SECRET: &str = "purge-secret-of-the-test";
/// One for each address and encoding, and some that reach a worker before the other has stored the response.
const NGINX_REQUESTS_MAX: f64 = 60.0;

/// The public addresses of a video.
fn paths(video: &str) -> Vec<String> {
    let forms = ["", "&format=text", "&format=md", "&format=srt", "&format=vtt"];
    let lookups = forms.iter().map(|form| format!("/api/transcript?v={video}{form}"));
    lookups.chain([format!("/watch/video_site/{video}")]).collect()
}

/// A server with archived videos, behind a shared cache.
struct SharedCacheFixture {
    proxy: ProxyFixture,
    server: ObservedServer,
    data: TempDir,
}

impl SharedCacheFixture {
    /// Starts both; the second function starts the proxy in front of this port of the server.
    async fn start(
        max_age: &str,
        start: impl AsyncFnOnce(u16, &str) -> Result<ProxyFixture>,
    ) -> Result<Self> {
        let data = TempDir::new()?;
        let archive = SqliteArchive::open(SqliteOptions::new(data.path().join("archive.db"))).await?;
        for video in VIDEOS {
            archive.put(put_request_for(video, "The sheep keep the grass short.", false)?).await?;
        }
        archive.close().await;
        let port = free_port()?;
        let settings = [
            ("VERBATIM_CDN__MAX_AGE", max_age),
            ("VERBATIM_CDN__PURGE_URL", &*format!("http://127.0.0.1:{port}/purge")),
            ("VERBATIM_CDN__PURGE_SECRET", SECRET),
        ];
        let server = ObservedServer::start(&data, &settings).await?;
        let proxy = start(port, server.server.address()).await?;
        Ok(Self { proxy, server, data })
    }

    /// The number of requests that reached the server on these routes.
    async fn requests(&self) -> Result<f64> {
        let figures = self.server.scrape().await?;
        let of = |route| figures.sum("verbatim_http_requests_total", &[("route", route)]);
        Ok(of("/api/transcript") + of("/watch/{platform}/{id}"))
    }

    /// Runs an operator's command.
    fn operate(&self, arguments: &[&str]) -> Result<()> {
        run_ok(verbatim(self.data.path(), arguments), b"").map(drop)
    }
}

pub(super) async fn varnish(port: u16, server: &str) -> Result<ProxyFixture> {
    let server_port = server.rsplit_once(':').context("no port")?.1;
    let vcl = example("varnish.vcl", &[("8080", server_port), ("CHANGE-ME", SECRET)])?;
    ProxyFixture::varnish(port, &vcl).await
}

/// The cache of the example, in front of one server.
pub(super) async fn nginx(port: u16, server: &str) -> Result<ProxyFixture> {
    let replaced = [
        (
            "server unix:/run/verbatim-a/server.sock max_fails=1 fail_timeout=1s;",
            &*format!("server {server};"),
        ),
        ("server unix:/run/verbatim-b/server.sock max_fails=1 fail_timeout=1s;", ""),
        ("/var/cache/nginx-verbatim", "cache"),
        ("listen 80;", &*format!("listen 127.0.0.1:{port};")),
    ];
    ProxyFixture::nginx(port, &example("nginx.conf", &replaced)?).await
}

/// The text of a body that was sent in this encoding.
fn decoded(reply: &ServerReply) -> Result<Vec<u8>> {
    Ok(match reply.header("content-encoding") {
        "" => reply.body.to_vec(),
        "zstd" => zstd::decode_all(&reply.body[..])?,
        "gzip" => {
            let mut bytes = Vec::new();
            flate2::read::GzDecoder::new(&reply.body[..]).read_to_end(&mut bytes)?;
            bytes
        }
        other => anyhow::bail!("unexpected encoding {other}"),
    })
}

/// Every client gets an encoding that it accepts, and the server is requested once for each.
async fn check_hits(fixture: &SharedCacheFixture, requests_max: f64) -> Result<()> {
    let before = fixture.requests().await?;
    let mut sent = 0;
    for video in VIDEOS {
        for path in paths(video) {
            let mut texts = Vec::new();
            for round in 0..30 {
                let accepted = ["", "gzip", "zstd"][round % 3];
                // No stored response depends on the cookie of a visitor.
                let visitor = format!("verbatim_visitor={round}");
                let mut headers = vec![("cookie", &*visitor)];
                if !accepted.is_empty() {
                    headers.push(("accept-encoding", accepted));
                }
                let reply = fixture.proxy.send(Method::GET, &path, &headers).await?;
                let encoding = reply.header("content-encoding");
                assert!(reply.status == 200 && (encoding.is_empty() || encoding == accepted), "{reply:?}");
                assert!(reply.header("x-request-id").is_empty(), "{reply:?}");
                texts.push(decoded(&reply)?);
                sent += 1;
            }
            texts.dedup();
            assert_eq!(texts.len(), 1, "{path}");
        }
    }
    let requests = fixture.requests().await? - before;
    eprintln!("{requests} of {sent} requests reached the server");
    assert!(requests <= requests_max, "{requests}");
    Ok(())
}

/// No response to a key is sent to another caller, nor a shared one to a key.
async fn check_keys(fixture: &SharedCacheFixture) -> Result<()> {
    let keys = create_keys(&fixture.data, 2)?;
    for video in VIDEOS {
        let path = format!("/api/transcript?v={video}");
        for round in 0..6 {
            let credentials = format!("Bearer {}", keys[round % 2]);
            let keyed = fixture.proxy.send(Method::GET, &path, &[("authorization", &credentials)]).await?;
            assert!(
                keyed.json()["key"].is_object() && keyed.header("cache-control") == "no-store",
                "{keyed:?}"
            );
            let shared = fixture.proxy.get(&path).await?;
            assert!(shared.json()["available"] == true && shared.json()["key"].is_null(), "{shared:?}");
            let text = format!("{path}&format=text");
            let keyed = fixture.proxy.send(Method::GET, &text, &[("authorization", &credentials)]).await?;
            assert!(
                keyed.header("cache-control") == "no-store" && !keyed.header("x-request-id").is_empty(),
                "{keyed:?}"
            );
        }
    }
    // A failure is not stored.
    let before = fixture.requests().await?;
    for _ in 0..3 {
        let missing = fixture.proxy.get("/api/transcript?v=dyke-walk-9").await?;
        assert_eq!(missing.json()["failureReason"], "needs_verification");
    }
    assert_eq!(fixture.requests().await? - before, 3.0);
    let health = fixture.proxy.get("/version").await?;
    assert_eq!((health.status.as_u16(), health.header("cache-control")), (200, "no-store"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn varnish_serves_hits_and_shares_no_keyed_response() -> Result<()> {
    let fixture = SharedCacheFixture::start("1h", varnish).await?;
    // Varnish requests gzip only, and decompresses it for other clients.
    check_hits(&fixture, 18.0).await?;
    check_keys(&fixture).await
}

#[tokio::test(flavor = "multi_thread")]
async fn nginx_serves_hits_and_shares_no_keyed_response() -> Result<()> {
    let fixture = SharedCacheFixture::start("1h", nginx).await?;
    check_hits(&fixture, NGINX_REQUESTS_MAX).await?;
    check_keys(&fixture).await
}

/// Concurrent requests for an address whose responses are not stored do not run one after the other.
#[tokio::test(flavor = "multi_thread")]
async fn nginx_delays_no_concurrent_request() -> Result<()> {
    let SharedCacheFixture { proxy, server: _server, data: _data } =
        SharedCacheFixture::start("0s", nginx).await?;
    let proxy = Arc::new(proxy);
    for path in ["/".to_owned(), format!("/api/transcript?v={}", VIDEOS[0])] {
        let mut fastest = Duration::MAX;
        for _ in 0..3 {
            let started = Instant::now();
            let mut requests = JoinSet::new();
            for _ in 0..20 {
                let (proxy, path) = (Arc::clone(&proxy), path.clone());
                requests.spawn(async move { proxy.get(&path).await });
            }
            for reply in requests.join_all().await {
                assert_eq!(reply?.status, 200, "{path}");
            }
            fastest = fastest.min(started.elapsed());
        }
        // One after the other, they took half a second each, up to five.
        assert!(fastest < Duration::from_secs(3), "{path}: {fastest:?}");
    }
    Ok(())
}

/// `Vary` alone protects keyed responses, without a rule of the proxy.
#[tokio::test(flavor = "multi_thread")]
async fn cache_without_rule_for_keys_shares_no_keyed_response() -> Result<()> {
    let start = async |port: u16, server: &str| {
        let site = format!(
            "proxy_cache_path plain keys_zone=plain:1m;\nserver {{ listen 127.0.0.1:{port};\nlocation / {{\n\
             proxy_pass http://{server};\nproxy_cache plain; }} }}\n"
        );
        ProxyFixture::nginx(port, &site).await
    };
    let fixture = SharedCacheFixture::start("1h", start).await?;
    check_hits(&fixture, NGINX_REQUESTS_MAX).await?;
    check_keys(&fixture).await
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_videos_leave_varnish_after_purge() -> Result<()> {
    let fixture = SharedCacheFixture::start("1h", varnish).await?;
    check_hits(&fixture, 18.0).await?;
    let gone = async |path: &str| {
        let reply = fixture.proxy.get(path).await?;
        Ok::<_, anyhow::Error>(!reply.text().contains("The sheep keep the grass short."))
    };
    for (arguments, video) in [(["archive", "withdraw"], VIDEOS[0]), (["archive", "delete"], VIDEOS[1])] {
        let mut arguments = arguments.to_vec();
        arguments.push(video);
        if arguments[1] == "delete" {
            arguments.push("--yes");
        }
        fixture.operate(&arguments)?;
        let started = Instant::now();
        for path in paths(video) {
            wait_until("a changed video is still sent", async || gone(&path).await).await?;
        }
        eprintln!("{}: gone after {:?}", arguments.join(" "), started.elapsed());
    }
    // The other video stays in the cache.
    let before = fixture.requests().await?;
    for path in paths(VIDEOS[2]) {
        assert!(!gone(&path).await?, "{path}");
    }
    assert_eq!(fixture.requests().await?, before);
    // A purge needs the secret.
    let refused =
        fixture.proxy.send(Method::POST, "/purge", &[("surrogate-key", "video_site-dyke-walk-2")]).await?;
    assert_eq!(refused.status, 403);

    // The rows are deleted after the second purge.
    let archive = SqliteArchive::open(SqliteOptions::new(fixture.data.path().join("archive.db"))).await?;
    wait_until("the second purge is missing", async || Ok(archive.changed_videos(10).await?.is_empty()))
        .await?;
    let figures = fixture.server.scrape().await?;
    assert_eq!(figures.sum("verbatim_cache_purges_total", &[("result", "done")]), 4.0);
    archive.put(put_request_for(VIDEOS[2], "The cows do.", true)?).await?;
    for path in paths(VIDEOS[2]) {
        wait_until("a replaced transcript is still sent", async || gone(&path).await).await?;
    }
    archive.close().await;
    Ok(())
}
