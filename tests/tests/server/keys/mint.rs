//! Limit of new keys per network: an IPv4 address, an IPv6 /64, and its /48 with four times the limit.

use anyhow::Result;
use http::Method;
use tempfile::TempDir;

use crate::server::harness::{ServerFixture, ServerReply};

async fn mint(server: &ServerFixture, from: &str) -> Result<ServerReply> {
    server.send(Method::POST, "/api/keys", &[("x-forwarded-for", from)], "").await
}

#[tokio::test(flavor = "multi_thread")]
async fn key_creation_behind_trusted_proxy_is_limited_per_network() -> Result<()> {
    let data = TempDir::new()?;
    let limit = ("VERBATIM_LIMITS__MINT_PER_NETWORK_PER_DAY", "2");
    let server = ServerFixture::start(&data, &[limit, ("VERBATIM_SERVER__TRUSTED_PROXIES", "127.0.0.1/32")])?;
    for (from, status) in [
        ("192.0.2.1", 201),
        ("192.0.2.1", 201),
        ("192.0.2.1", 429),
        ("192.0.2.2", 201),
        // The same network, in another notation or with other addresses before the proxy's.
        ("::ffff:192.0.2.1", 429),
        ("198.51.100.9, 192.0.2.1", 429),
        // A /64 is one network.
        ("2001:db8:0:1::1", 201),
        ("2001:db8:0:1:ffff::2", 201),
        ("2001:db8:0:1:abcd::3", 429),
        // Its /48 has four times the limit.
        ("2001:db8:0:2::1", 201),
        ("2001:db8:0:2::1", 201),
        ("2001:db8:0:3::1", 201),
        ("2001:db8:0:3::1", 201),
        ("2001:db8:0:4::1", 201),
        ("2001:db8:0:4::1", 201),
        ("2001:db8:0:5::1", 429),
        ("2001:db8:1:5::1", 201),
    ] {
        let reply = mint(&server, from).await?;
        assert_eq!(reply.status.as_u16(), status, "{from}: {}", reply.text());
        if status == 429 {
            let wait: u64 = reply.header("retry-after").parse()?;
            assert!((1..=86_400).contains(&wait), "{from}: {wait}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn key_creation_without_trusted_proxy_is_limited_per_socket_address() -> Result<()> {
    let data = TempDir::new()?;
    let log = data.path().join("log.txt");
    let limit = ("VERBATIM_LIMITS__MINT_PER_NETWORK_PER_DAY", "2");
    let mut server = ServerFixture::start_with_log(&data, &[limit], &log)?;
    for (from, status) in [("192.0.2.1", 201), ("192.0.2.2", 201), ("192.0.2.3", 429), ("2001:db8::1", 429)] {
        assert_eq!(mint(&server, from).await?.status.as_u16(), status, "{from}");
    }
    // The peer has a loopback address, as a proxy may have. The log has none of its headers.
    server.stop()?;
    let written = std::fs::read_to_string(&log)?;
    assert_eq!(written.matches("ignored the forwarding header of a peer").count(), 1, "{written}");
    assert!(!written.contains("192.0.2."), "{written}");
    Ok(())
}
