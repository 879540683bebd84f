//! The replay proxy: tests rely on it to follow its script exactly.

mod client;

use std::time::{Duration, Instant};

use anyhow::Result;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::json;
use tokio::time::timeout;
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Rule, Script, Tunnel, UNEXPECTED};

use self::client::{ClientProtocol, connect, get, is_closed, send, tls};

const HOST: &str = "www.youtube.com";
const BOTH: [ClientProtocol; 2] = [ClientProtocol::Http1, ClientProtocol::Http2];

fn page(response: ReplayResponse) -> Script {
    Script::new().rule(Rule::get(HOST, "/page").respond(response))
}

/// The response to a GET of the page; `None` if it does not arrive within `wait`.
async fn page_within(
    proxy: &ReplayProxy,
    protocol: ClientProtocol,
    wait: Duration,
) -> Option<Result<(u16, Bytes)>> {
    timeout(wait, get(proxy, protocol, "https://www.youtube.com/page")).await.ok()
}

#[tokio::test]
async fn replay_real_host_is_served_over_both_protocols() -> Result<()> {
    let proxy = ReplayProxy::start(page(ReplayResponse::text("words").with_status(203).header("x-a", "b")))?;
    for protocol in BOTH {
        let request = Request::get("https://www.youtube.com/page?v=a%20b&v=c").body(Full::default())?;
        let response = send(&proxy, protocol, request).await?;
        assert_eq!(response.status(), 203);
        assert_eq!(response.headers().get("x-a").map(|value| value.as_bytes()), Some(&b"b"[..]));
        assert_eq!(response.into_body().collect().await?.to_bytes(), "words");
    }
    let requests = proxy.requests();
    assert_eq!(requests.len(), 2);
    for request in &requests {
        assert_eq!((request.scheme, request.host.as_str(), request.method.as_str()), ("https", HOST, "GET"));
        assert_eq!((request.path.as_str(), request.parameter("v")), ("/page", Some("a b")));
        assert!(request.expected);
    }
    assert!(requests.is_sorted_by_key(|request| request.at));
    assert_eq!(proxy.count(|request| request.path == "/page"), 2);
    assert!(proxy.tunnels().iter().all(|tunnel| tunnel.granted && tunnel.port == 443));
    Ok(())
}

#[tokio::test]
async fn replay_first_matching_rule_responds() -> Result<()> {
    let player = |client: &str, response: &str| {
        Rule::post(HOST, "/player").json("/client/name", client).respond(ReplayResponse::text(response))
    };
    let script = Script::new()
        .rule(player("VISIONOS", "first"))
        .rule(player("ANDROID", "second"))
        .rule(
            Rule::get(HOST, "/captions")
                .query("lang", "en")
                .without_query("tlang")
                .respond(ReplayResponse::text("en")),
        )
        .rule(Rule::get(HOST, "/captions").header("x-language", "fr").respond(ReplayResponse::text("fr")))
        .rule(Rule::get(HOST, "/static/*").respond(ReplayResponse::text("static")));
    let proxy = ReplayProxy::start(script)?;
    for (client, expect) in [("VISIONOS", "first"), ("ANDROID", "second")] {
        let body = json!({ "client": { "name": client } }).to_string();
        let request = Request::post("https://www.youtube.com/player").body(Full::from(body))?;
        let response = send(&proxy, ClientProtocol::Http1, request).await?;
        assert_eq!(response.into_body().collect().await?.to_bytes(), expect);
    }
    for (address, expect) in [
        ("https://www.youtube.com/captions?lang=en", 200),
        ("https://www.youtube.com/captions?lang=en&tlang=de", UNEXPECTED),
        ("https://www.youtube.com/captions", UNEXPECTED),
        ("https://www.youtube.com/static/a/b.js", 200),
        ("https://www.youtube.com/player", UNEXPECTED),
    ] {
        assert_eq!(get(&proxy, ClientProtocol::Http1, address).await?.0, expect, "{address}");
    }
    assert_eq!(proxy.unexpected().len(), 3);
    assert_eq!(proxy.requests()[0].json("/client/name"), Some(json!("VISIONOS")));
    Ok(())
}

#[tokio::test]
async fn replay_responses_follow_order_and_last_repeats() -> Result<()> {
    let rule = Rule::get(HOST, "/page")
        .respond(ReplayResponse::status(429).header("retry-after", "1"))
        .respond(ReplayResponse::status(503))
        .respond(ReplayResponse::text("at last"));
    let proxy = ReplayProxy::start(Script::new().rule(rule))?;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(get(&proxy, ClientProtocol::Http1, "https://www.youtube.com/page").await?.0);
    }
    assert_eq!(statuses, [429, 503, 200, 200]);
    Ok(())
}

#[tokio::test]
async fn replay_broken_response_fails_client() -> Result<()> {
    for response in [ReplayResponse::text("0123456789").cut_after(4), ReplayResponse::closed()] {
        let proxy = ReplayProxy::start(page(response.clone()))?;
        for protocol in BOTH {
            let got = page_within(&proxy, protocol, Duration::from_secs(5)).await;
            assert!(matches!(got, Some(Err(_))), "{response:?} over {protocol:?} gave {got:?}");
        }
        assert_eq!(proxy.count(|request| request.expected), 2);
    }
    Ok(())
}

#[tokio::test]
async fn replay_cut_body_is_sent_up_to_cut() -> Result<()> {
    let proxy = ReplayProxy::start(page(ReplayResponse::text("0123456789").cut_after(4)))?;
    let request = Request::get("https://www.youtube.com/page").body(Full::default())?;
    let mut body = send(&proxy, ClientProtocol::Http1, request).await?;
    assert_eq!(body.headers().get("content-length").map(|value| value.as_bytes()), Some(&b"10"[..]));
    let first = body.frame().await.transpose()?.and_then(|frame| frame.into_data().ok());
    assert_eq!(first.as_deref(), Some(&b"0123"[..]));
    assert!(matches!(body.frame().await, Some(Err(_))));
    Ok(())
}

#[tokio::test]
async fn replay_response_can_be_late_slow_absent_or_endless() -> Result<()> {
    let late = ReplayProxy::start(page(ReplayResponse::text("late").after(Duration::from_millis(60))))?;
    let distant = ReplayProxy::start(page(ReplayResponse::text("far")).latency(Duration::from_millis(60)))?;
    let slow =
        ReplayProxy::start(page(ReplayResponse::text("0123456789").slowly(4, Duration::from_millis(20))))?;
    for proxy in [&late, &distant, &slow] {
        let begin = Instant::now();
        assert!(matches!(
            page_within(proxy, ClientProtocol::Http1, Duration::from_secs(60)).await,
            Some(Ok(_))
        ));
        assert!(begin.elapsed() >= Duration::from_millis(60));
    }
    let never = ReplayProxy::start(page(ReplayResponse::never()))?;
    let endless = ReplayProxy::start(page(ReplayResponse::text("again ").endlessly()))?;
    for protocol in BOTH {
        assert!(page_within(&never, protocol, Duration::from_millis(100)).await.is_none());
        assert!(page_within(&endless, protocol, Duration::from_millis(100)).await.is_none());
    }
    Ok(())
}

#[tokio::test]
async fn replay_tunnel_opens_only_for_scripted_hosts() -> Result<()> {
    let proxy = ReplayProxy::start(page(ReplayResponse::text("words")))?;
    assert_eq!(connect(&proxy, HOST).await?.0, 200);
    for host in ["evil.example", "127.0.0.1", "youtube.com"] {
        assert_eq!(connect(&proxy, host).await?.0, 403);
    }
    let granted: Vec<_> = proxy.tunnels().into_iter().map(|tunnel| (tunnel.host, tunnel.granted)).collect();
    assert_eq!(granted.iter().filter(|(_, granted)| *granted).count(), 1);
    assert_eq!(granted[1], ("evil.example".to_owned(), false));
    Ok(())
}

#[tokio::test]
async fn replay_tunnels_follow_script_order() -> Result<()> {
    let outcomes = [Tunnel::Refuse(407), Tunnel::Refuse(502), Tunnel::Open];
    let proxy = ReplayProxy::start(page(ReplayResponse::text("words")).tunnels(HOST, outcomes))?;
    for expect in [407, 502, 200, 200] {
        assert_eq!(connect(&proxy, HOST).await?.0, expect);
    }
    let closing = ReplayProxy::start(Script::new().all_tunnels([Tunnel::Close]))?;
    assert!(connect(&closing, HOST).await.is_err());
    let silent = ReplayProxy::start(Script::new().all_tunnels([Tunnel::Never]))?;
    assert!(timeout(Duration::from_millis(50), connect(&silent, HOST)).await.is_err());
    Ok(())
}

#[tokio::test]
async fn replay_certificate_needs_own_authority() -> Result<()> {
    let (proxy, other) =
        (ReplayProxy::start(page(ReplayResponse::status(200)))?, ReplayProxy::start(Script::new())?);
    assert!(tls(&proxy, &proxy, HOST, ClientProtocol::Http1).await.is_ok());
    assert!(tls(&proxy, &other, HOST, ClientProtocol::Http1).await.is_err());
    let wrong = Tunnel::OtherCertificate("www.example.com".to_owned());
    let misnamed = ReplayProxy::start(page(ReplayResponse::status(200)).tunnels(HOST, [wrong]))?;
    assert!(tls(&misnamed, &misnamed, HOST, ClientProtocol::Http1).await.is_err());
    Ok(())
}

#[tokio::test]
async fn replay_plaintext_request_is_unexpected() -> Result<()> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let proxy = ReplayProxy::start(page(ReplayResponse::text("words")))?;
    let mut stream = tokio::net::TcpStream::connect(proxy.url().trim_start_matches("http://")).await?;
    let head =
        "GET http://www.youtube.com/page HTTP/1.1\r\nHost: www.youtube.com\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    assert!(response.starts_with(&format!("HTTP/1.1 {UNEXPECTED}")), "{response}");
    assert_eq!(proxy.unexpected()[0].scheme, "http");
    Ok(())
}

#[tokio::test]
async fn replay_drop_closes_connections_and_removes_certificate() -> Result<()> {
    let proxy = ReplayProxy::start(page(ReplayResponse::never()))?;
    let (_, mut tunnel) = connect(&proxy, HOST).await?;
    let file = proxy.ca_file().to_owned();
    let address = proxy.url().trim_start_matches("http://").to_owned();
    drop(proxy);
    assert!(is_closed(&mut tunnel).await);
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
    assert!(!file.exists());
    Ok(())
}
