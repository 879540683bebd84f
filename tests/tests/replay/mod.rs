//! The replay proxy itself: a test that leans on it must know that it does what its script says.

mod client;

use std::time::{Duration, Instant};

use anyhow::Result;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::json;
use tokio::time::timeout;
use verbatim_tests::replay::{Answer, ReplayProxy, Rule, Script, Tunnel, UNEXPECTED};

use self::client::{Speech, connect, get, is_closed, send, tls};

const HOST: &str = "www.youtube.com";
const BOTH: [Speech; 2] = [Speech::Http1, Speech::Http2];

fn page(answer: Answer) -> Script {
    Script::new().rule(Rule::get(HOST, "/page").answer(answer))
}

/// What a GET of the page gives within a short while; none when nothing comes.
async fn page_within(proxy: &ReplayProxy, speech: Speech, wait: Duration) -> Option<Result<(u16, Bytes)>> {
    timeout(wait, get(proxy, speech, "https://www.youtube.com/page")).await.ok()
}

#[tokio::test]
async fn it_answers_for_a_real_host_in_both_protocols() -> Result<()> {
    let proxy = ReplayProxy::start(page(Answer::text("words").with_status(203).header("x-a", "b")))?;
    for speech in BOTH {
        let request = Request::get("https://www.youtube.com/page?v=a%20b&v=c").body(Full::default())?;
        let response = send(&proxy, speech, request).await?;
        assert_eq!(response.status(), 203);
        assert_eq!(response.headers().get("x-a").map(|value| value.as_bytes()), Some(&b"b"[..]));
        assert_eq!(response.into_body().collect().await?.to_bytes(), "words");
    }
    let seen = proxy.requests();
    assert_eq!(seen.len(), 2);
    for request in &seen {
        assert_eq!((request.scheme, request.host.as_str(), request.method.as_str()), ("https", HOST, "GET"));
        assert_eq!((request.path.as_str(), request.parameter("v")), ("/page", Some("a b")));
        assert!(request.expected);
    }
    assert!(seen.is_sorted_by_key(|request| request.at));
    assert_eq!(proxy.count(|request| request.path == "/page"), 2);
    assert!(proxy.tunnels().iter().all(|tunnel| tunnel.granted && tunnel.port == 443));
    Ok(())
}

#[tokio::test]
async fn the_first_rule_that_matches_answers() -> Result<()> {
    let player = |client: &str, answer: &str| {
        Rule::post(HOST, "/player").json("/client/name", client).answer(Answer::text(answer))
    };
    let script = Script::new()
        .rule(player("VISIONOS", "first"))
        .rule(player("ANDROID", "second"))
        .rule(
            Rule::get(HOST, "/captions")
                .query("lang", "en")
                .without_query("tlang")
                .answer(Answer::text("en")),
        )
        .rule(Rule::get(HOST, "/captions").header("x-wish", "fr").answer(Answer::text("fr")))
        .rule(Rule::get(HOST, "/static/*").answer(Answer::text("static")));
    let proxy = ReplayProxy::start(script)?;
    for (client, expect) in [("VISIONOS", "first"), ("ANDROID", "second")] {
        let body = json!({ "client": { "name": client } }).to_string();
        let request = Request::post("https://www.youtube.com/player").body(Full::from(body))?;
        let response = send(&proxy, Speech::Http1, request).await?;
        assert_eq!(response.into_body().collect().await?.to_bytes(), expect);
    }
    for (address, expect) in [
        ("https://www.youtube.com/captions?lang=en", 200),
        ("https://www.youtube.com/captions?lang=en&tlang=de", UNEXPECTED),
        ("https://www.youtube.com/captions", UNEXPECTED),
        ("https://www.youtube.com/static/a/b.js", 200),
        ("https://www.youtube.com/player", UNEXPECTED),
    ] {
        assert_eq!(get(&proxy, Speech::Http1, address).await?.0, expect, "{address}");
    }
    assert_eq!(proxy.unexpected().len(), 3);
    assert_eq!(proxy.requests()[0].json("/client/name"), Some(json!("VISIONOS")));
    Ok(())
}

#[tokio::test]
async fn answers_come_in_turn_and_the_last_one_repeats() -> Result<()> {
    let rule = Rule::get(HOST, "/page")
        .answer(Answer::status(429).header("retry-after", "1"))
        .answer(Answer::status(503))
        .answer(Answer::text("at last"));
    let proxy = ReplayProxy::start(Script::new().rule(rule))?;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(get(&proxy, Speech::Http1, "https://www.youtube.com/page").await?.0);
    }
    assert_eq!(statuses, [429, 503, 200, 200]);
    Ok(())
}

#[tokio::test]
async fn a_broken_answer_is_an_error_for_the_client() -> Result<()> {
    for answer in [Answer::text("0123456789").cut_after(4), Answer::closed()] {
        let proxy = ReplayProxy::start(page(answer.clone()))?;
        for speech in BOTH {
            let got = page_within(&proxy, speech, Duration::from_secs(5)).await;
            assert!(matches!(got, Some(Err(_))), "{answer:?} over {speech:?} gave {got:?}");
        }
        assert_eq!(proxy.count(|request| request.expected), 2);
    }
    Ok(())
}

#[tokio::test]
async fn a_broken_off_body_is_sent_up_to_the_break() -> Result<()> {
    let proxy = ReplayProxy::start(page(Answer::text("0123456789").cut_after(4)))?;
    let request = Request::get("https://www.youtube.com/page").body(Full::default())?;
    let mut body = send(&proxy, Speech::Http1, request).await?;
    assert_eq!(body.headers().get("content-length").map(|value| value.as_bytes()), Some(&b"10"[..]));
    let first = body.frame().await.transpose()?.and_then(|frame| frame.into_data().ok());
    assert_eq!(first.as_deref(), Some(&b"0123"[..]));
    assert!(matches!(body.frame().await, Some(Err(_))));
    Ok(())
}

#[tokio::test]
async fn an_answer_can_be_late_slow_absent_or_endless() -> Result<()> {
    let late = ReplayProxy::start(page(Answer::text("late").after(Duration::from_millis(60))))?;
    let distant = ReplayProxy::start(page(Answer::text("far")).latency(Duration::from_millis(60)))?;
    let slow = ReplayProxy::start(page(Answer::text("0123456789").slowly(4, Duration::from_millis(20))))?;
    for proxy in [&late, &distant, &slow] {
        let begin = Instant::now();
        assert!(matches!(page_within(proxy, Speech::Http1, Duration::from_secs(5)).await, Some(Ok(_))));
        assert!(begin.elapsed() >= Duration::from_millis(60));
    }
    let never = ReplayProxy::start(page(Answer::never()))?;
    let endless = ReplayProxy::start(page(Answer::text("again ").endlessly()))?;
    for speech in BOTH {
        assert!(page_within(&never, speech, Duration::from_millis(100)).await.is_none());
        assert!(page_within(&endless, speech, Duration::from_millis(100)).await.is_none());
    }
    Ok(())
}

#[tokio::test]
async fn tunnels_open_only_for_hosts_of_the_script() -> Result<()> {
    let proxy = ReplayProxy::start(page(Answer::text("words")))?;
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
async fn tunnels_follow_their_script_in_turn() -> Result<()> {
    let turns = [Tunnel::Refuse(407), Tunnel::Refuse(502), Tunnel::Open];
    let proxy = ReplayProxy::start(page(Answer::text("words")).tunnels(HOST, turns))?;
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
async fn only_its_own_authority_is_good_for_its_certificates() -> Result<()> {
    let (proxy, other) = (ReplayProxy::start(page(Answer::status(200)))?, ReplayProxy::start(Script::new())?);
    assert!(tls(&proxy, &proxy, HOST, Speech::Http1).await.is_ok());
    assert!(tls(&proxy, &other, HOST, Speech::Http1).await.is_err());
    let wrong = Tunnel::OtherCertificate("www.example.com".to_owned());
    let misnamed = ReplayProxy::start(page(Answer::status(200)).tunnels(HOST, [wrong]))?;
    assert!(tls(&misnamed, &misnamed, HOST, Speech::Http1).await.is_err());
    Ok(())
}

#[tokio::test]
async fn a_request_in_the_clear_is_unexpected() -> Result<()> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let proxy = ReplayProxy::start(page(Answer::text("words")))?;
    let mut stream = tokio::net::TcpStream::connect(proxy.url().trim_start_matches("http://")).await?;
    let head =
        "GET http://www.youtube.com/page HTTP/1.1\r\nHost: www.youtube.com\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    assert!(answer.starts_with(&format!("HTTP/1.1 {UNEXPECTED}")), "{answer}");
    assert_eq!(proxy.unexpected()[0].scheme, "http");
    Ok(())
}

#[tokio::test]
async fn dropping_it_ends_every_connection_and_removes_the_certificate() -> Result<()> {
    let proxy = ReplayProxy::start(page(Answer::never()))?;
    let (_, mut tunnel) = connect(&proxy, HOST).await?;
    let file = proxy.ca_file().to_owned();
    let address = proxy.url().trim_start_matches("http://").to_owned();
    drop(proxy);
    assert!(is_closed(&mut tunnel).await);
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
    assert!(!file.exists());
    Ok(())
}
