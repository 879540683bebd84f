//! The client's address and cookies behind the proxies of `deploy`.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use http::Method;
use tempfile::TempDir;

use super::{ProxyFixture, balancing, example, free_port, shared_caches};
use crate::{
    server::harness::{ServerFixture, run_ok, wait_until},
    service::fake::{FakeReply, FakeService},
};

/// A server receives the method, the address of the proxy's peer, and the cookie, but no address that the client names.
async fn check_forwarding(start: impl AsyncFnOnce(u16, &str) -> Result<ProxyFixture>) -> Result<()> {
    let server = FakeService::start(|_, _| FakeReply::new(200, "cache-control: no-store\r\n", "")).await?;
    let proxy = start(free_port()?, server.url.trim_start_matches("http://")).await?;
    let headers =
        [("forwarded", "for=192.0.2.9"), ("x-forwarded-for", "192.0.2.9"), ("cookie", "verbatim_visitor=a")];
    // nginx has a separate location for events. A HEAD request with a key must fetch nothing.
    for (method, path) in [
        (Method::GET, "/watch/video_site/a"),
        (Method::POST, "/api/v1/chat"),
        (Method::HEAD, "/api/transcript"),
    ] {
        let key = (method == Method::HEAD).then_some(("authorization", "Bearer vbk_x"));
        let headers: Vec<_> = headers.into_iter().chain(key).collect();
        let reply = proxy.send(method.clone(), path, &headers).await?;
        ensure!(reply.status == 200, "{path}: {reply:?}");
        let requests = server.requests();
        let request = requests.iter().find(|request| request.head.contains(path)).context("no request")?;
        assert!(request.head.starts_with(&method.as_str().to_lowercase()), "{}", request.head);
        assert_eq!(request.header("forwarded"), None, "{path}");
        let forwarded = request.header("x-forwarded-for").unwrap_or_default();
        assert_eq!(forwarded.rsplit(", ").next(), Some("127.0.0.1"), "{path}: {forwarded}");
        assert_eq!(request.header("cookie"), Some("verbatim_visitor=a"), "{path}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn haproxy_forwards_peer_and_no_address_of_client() -> Result<()> {
    check_forwarding(async |port: u16, server: &str| balancing::haproxy(port, [server, server]).await).await
}

#[tokio::test(flavor = "multi_thread")]
async fn caddy_forwards_peer_and_no_address_of_client() -> Result<()> {
    // Caddy repeats a refused connection on the other server.
    let other = format!("127.0.0.1:{}", free_port()?);
    check_forwarding(async |port: u16, server: &str| balancing::caddy(port, [server, &other]).await).await
}

#[tokio::test(flavor = "multi_thread")]
async fn nginx_forwards_peer_and_no_address_of_client() -> Result<()> {
    check_forwarding(shared_caches::nginx).await
}

#[tokio::test(flavor = "multi_thread")]
async fn nginx_log_has_no_query() -> Result<()> {
    let server = FakeService::start(|_, _| FakeReply::new(200, "cache-control: no-store\r\n", "")).await?;
    let proxy = shared_caches::nginx(free_port()?, server.url.trim_start_matches("http://")).await?;
    proxy.get("/sign-in/confirm?token=TOKEN-OF-LINK").await?;
    // On the same connection, so the first request has been logged.
    proxy.get("/healthz").await?;
    let log = fs::read_to_string(proxy.folder.path().join("access"))?;
    assert!(!log.contains("TOKEN-OF-LINK"), "{log}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn varnish_forwards_peer_and_no_address_of_client() -> Result<()> {
    check_forwarding(shared_caches::varnish).await
}

/// `HAProxy` with the changes that `compose.yaml` makes to the example.
async fn compose_haproxy(port: u16, server: &str) -> Result<ProxyFixture> {
    let compose = example("compose.yaml", &[("$$", "$")])?;
    let mut sed = Command::new("sed");
    for rest in compose.split("-e '").skip(1) {
        sed.arg("-e").args(rest.split('\'').next());
    }
    sed.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/haproxy.cfg"));
    let mut configuration = run_ok(sed, b"")?;
    for (old, new) in [
        ("bind :8080\n", &*format!("bind 127.0.0.1:{port}\n")),
        ("server-a:8080", server),
        ("server-b:8080", server),
        // Names are those of Docker's network.
        (" init-addr libc,none resolvers docker", ""),
    ] {
        ensure!(configuration.contains(old), "no {old:?} in {configuration}");
        configuration = configuration.replace(old, new);
    }
    ProxyFixture::haproxy(port, &configuration).await
}

#[tokio::test(flavor = "multi_thread")]
async fn compose_proxy_keeps_clients_of_tls_proxy_apart() -> Result<()> {
    let data = TempDir::new()?;
    let settings = [
        ("VERBATIM_LIMITS__MINT_PER_NETWORK_PER_DAY", "1"),
        ("VERBATIM_SERVER__TRUSTED_PROXIES", "127.0.0.1/32"),
    ];
    let server = ServerFixture::start(&data, &settings)?;
    let proxy = compose_haproxy(free_port()?, server.address()).await?;
    // This test is the proxy with TLS.
    proxy.get("/sign-in/confirm?token=TOKEN-OF-LINK").await?;
    for (client, status) in [("192.0.2.1", 201), ("192.0.2.2", 201), ("192.0.2.1", 429)] {
        let headers = [("x-forwarded-for", client), ("forwarded", "for=192.0.2.9")];
        let reply = proxy.send(Method::POST, "/api/keys", &headers).await?;
        assert_eq!(reply.status.as_u16(), status, "{client}: {}", reply.text());
    }
    wait_until("the log has no request", async || Ok(proxy.log().contains(" GET /sign-in/confirm HTTP")))
        .await?;
    assert!(!proxy.log().contains("TOKEN-OF-LINK"), "{}", proxy.log());
    Ok(())
}
