//! Tests of the transport against a local platform.

mod bodies;
mod rebinding;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinHandle,
    time::{Instant, timeout},
};
use transcript_core::{ErrorKind, supplier::SupplyReason, video};
use url::Url;

use super::{
    HttpError, HttpOptions, HttpRequest, HttpTransport,
    testing::{FakePlatform, ScriptStep, reply},
};

const HOSTS: &[&str] = &["www.youtube.com", "localhost"];

fn get(url: &str) -> HttpRequest {
    HttpRequest {
        method: Method::GET,
        url: Url::parse(url).unwrap(),
        hosts: HOSTS,
        headers: HeaderMap::new(),
        body: Bytes::new(),
        response_max: 1_000,
        has_own_rate_limit: false,
    }
}

fn page() -> HttpRequest {
    get("https://www.youtube.com/page?signature=secret")
}

fn test_deadline() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn options(platform: &FakePlatform) -> HttpOptions {
    HttpOptions { retries: 0, ..platform.options() }
}

async fn send(options: HttpOptions, request: &HttpRequest) -> Result<super::HttpResponse, HttpError> {
    Arc::new(HttpTransport::new(options).unwrap()).session().send(request, test_deadline()).await
}

#[tokio::test]
async fn response_through_proxy_is_returned() {
    let platform = FakePlatform::start(|_, _| reply(404, "location: /elsewhere\r\n", "hello")).await;
    let got = platform.http().session().send(&page(), test_deadline()).await.unwrap();
    assert_eq!((got.status.as_u16(), &got.body[..]), (404, &b"hello"[..]));
    assert_eq!(got.location.unwrap().as_str(), "https://www.youtube.com/elsewhere");
    let requests = platform.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].host, "www.youtube.com:443");
    assert_eq!(requests[0].line, "GET /page?signature=secret");
    assert!(!requests[0].headers.contains_key("referer"));
    assert_eq!(requests[0].headers["accept-encoding"], "gzip");
}

#[tokio::test]
async fn redirect_is_not_followed() {
    let platform = FakePlatform::start(|_, _| reply(302, "location: https://evil.example/\r\n", "")).await;
    let got = send(options(&platform), &page()).await.unwrap();
    assert_eq!(got.location.unwrap().as_str(), "https://evil.example/");
    assert_eq!(platform.requests().len(), 1);
}

#[tokio::test]
async fn redirect_relative_or_unicode_target_is_resolved() {
    for (location, expect) in [
        ("/there?a=1", "https://www.youtube.com/there?a=1"),
        ("//youtu.be/x", "https://youtu.be/x"),
        ("https://example.org/Straße", "https://example.org/Stra%C3%9Fe"),
        ("https://[", ""),
    ] {
        let header = format!("location: {location}\r\n");
        let platform = FakePlatform::start(move |_, _| reply(302, &header, "")).await;
        let got = send(options(&platform), &page()).await.unwrap();
        assert_eq!(got.location.as_ref().map_or("", Url::as_str), expect, "{location}");
    }
}

#[tokio::test]
async fn body_with_zero_limit_is_not_read() {
    let platform = FakePlatform::start(|_, _| {
        let head = b"HTTP/1.1 302 X\r\ncontent-encoding: gzip\r\ncontent-length: 99999999\r\n\r\n".to_vec();
        // Nothing follows: reading the body would block.
        vec![ScriptStep::Write(head), ScriptStep::Wait(Duration::from_secs(60))]
    })
    .await;
    let request = HttpRequest { response_max: 0, ..page() };
    let got = timeout(Duration::from_secs(30), send(options(&platform), &request)).await.unwrap().unwrap();
    assert_eq!((got.status.as_u16(), got.body.len()), (302, 0));
}

#[tokio::test]
async fn foreign_url_does_not_reach_proxy() {
    let platform = FakePlatform::start(|_, _| reply(200, "", "")).await;
    for url in ["https://evil.example/", "http://www.youtube.com/", "https://www.youtube.com:444/"] {
        assert_eq!(
            send(options(&platform), &get(url)).await.unwrap_err(),
            HttpError::DisallowedHost,
            "{url}"
        );
    }
    assert!(platform.requests().is_empty());
}

#[tokio::test]
async fn private_address_without_proxy_is_refused() {
    let request = get("https://localhost/");
    assert_eq!(send(HttpOptions::default(), &request).await.unwrap_err(), HttpError::PrivateAddress);
}

#[tokio::test]
async fn long_response_announced_or_not_is_too_large() {
    let full = |length: usize| vec![b'x'; length];
    let platform = FakePlatform::start(move |request, _| match request.line.as_str() {
        "GET /fits" => reply(200, "", full(1_000)),
        "GET /announced" => {
            let head = b"HTTP/1.1 200 X\r\ncontent-length: 1001\r\n\r\n".to_vec();
            // Nothing follows: only the announced length can fail.
            vec![ScriptStep::Write(head), ScriptStep::Wait(Duration::from_secs(60))]
        }
        "GET /silent" => {
            let head = b"HTTP/1.1 200 X\r\nconnection: close\r\n\r\n".to_vec();
            vec![
                ScriptStep::Write(head),
                ScriptStep::Write(full(1_001)),
                ScriptStep::Wait(Duration::from_secs(60)),
            ]
        }
        // 100 kB of zeros, gzipped.
        _ => reply(200, "content-encoding: gzip\r\n", zeros_gzipped()),
    })
    .await;
    let fetch = async |path: &str| {
        let request = get(&format!("https://www.youtube.com{path}"));
        timeout(Duration::from_secs(30), send(options(&platform), &request)).await.unwrap()
    };
    assert_eq!(fetch("/fits").await.unwrap().body.len(), 1_000);
    for path in ["/announced", "/silent", "/bomb"] {
        assert_eq!(fetch(path).await.unwrap_err(), HttpError::TooLarge, "{path}");
    }
}

/// 100,000 zero bytes, compressed.
fn zeros_gzipped() -> Vec<u8> {
    let head = [
        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3, 0xed, 0xc1, 0x31, 1, 0, 0, 0, 0xc2, 0xa0, 0xf5, 0x4f, 0x6d, 0x0d,
        0x0f, 0xa0,
    ];
    let tail = [0x80, 0x57, 0x03, 0x7d, 0x95, 0x11, 0xd4, 0xa0, 0x86, 0x01, 0];
    [&head[..], &[0; 96], &tail].concat()
}

#[tokio::test]
async fn slow_response_fails_at_timeout() {
    let head = b"HTTP/1.1 200 X\r\ncontent-length: 100\r\n\r\n".to_vec();
    let drip = move || {
        let mut steps = vec![ScriptStep::Write(head.clone())];
        for _ in 0..40 {
            steps.extend([ScriptStep::Write(b"x".to_vec()), ScriptStep::Wait(Duration::from_millis(50))]);
        }
        steps
    };
    let platform = FakePlatform::start(move |request, _| match request.line.as_str() {
        "GET /drips" => drip(),
        _ => vec![ScriptStep::Wait(Duration::from_secs(60))],
    })
    .await;
    let (ms, started) = (Duration::from_millis, Instant::now());
    let total = HttpOptions { timeout: ms(600), ..options(&platform) };
    let drips = get("https://www.youtube.com/drips");
    assert_eq!(send(total, &drips).await.unwrap_err(), HttpError::Timeout, "timeout of one attempt");
    let silence = HttpOptions { read_timeout: ms(600), ..options(&platform) };
    assert_eq!(send(silence, &page()).await.unwrap_err(), HttpError::Timeout, "read timeout");
    let http = platform.http();
    let fault = http.session().send(&page(), Instant::now() + ms(600)).await.unwrap_err();
    assert_eq!(fault, HttpError::Timeout, "deadline");
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn only_transient_error_is_retried() {
    for (status, expect_requests) in [(200, 1), (400, 1), (403, 1), (500, 3), (503, 3), (408, 3)] {
        let platform = FakePlatform::start(move |_, _| reply(status, "", "")).await;
        let result = platform.http().session().send(&page(), test_deadline()).await;
        assert_eq!(platform.requests().len(), expect_requests, "{status}");
        assert_eq!(result.is_err(), expect_requests > 1, "{status}");
    }
    let platform = FakePlatform::start(|_, before| match before {
        0 => reply(502, "", ""),
        1 => vec![ScriptStep::Write(b"HTTP/1.1 200 X\r\ncontent-length: 100\r\n\r\ncut".to_vec())],
        _ => reply(200, "", "whole"),
    })
    .await;
    assert_eq!(&platform.http().session().send(&page(), test_deadline()).await.unwrap().body[..], b"whole");
}

#[tokio::test]
async fn retry_after_within_deadline_is_waited_for() {
    let platform = FakePlatform::start(|_, before| match before {
        0 => reply(429, "retry-after: 1\r\n", ""),
        _ => reply(200, "", ""),
    })
    .await;
    let started = Instant::now();
    platform.http().session().send(&page(), test_deadline()).await.unwrap();
    assert!(started.elapsed() >= Duration::from_secs(1));

    for (named, deadline) in [("3600", test_deadline()), ("5", Instant::now() + Duration::from_secs(3))] {
        let headers = format!("retry-after: {named}\r\n");
        let platform = FakePlatform::start(move |_, _| reply(429, &headers, "")).await;
        let fault = platform.http().session().send(&page(), deadline).await.unwrap_err();
        let HttpError::Throttled(Some(wait)) = fault else { panic!("{fault:?}") };
        assert_eq!(wait.as_secs().to_string(), named);
        assert_eq!(platform.requests().len(), 1, "{named}: must not retry");
    }
}

#[tokio::test]
async fn blocked_proxy_cools_down_and_next_responds() {
    let throttled = FakePlatform::start(|_, _| reply(429, "", "")).await;
    let good = FakePlatform::start(|_, _| reply(200, "", "")).await;
    let dead = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    // Each platform has its own authority; the good one's must be trusted. A proxy whose certificate is
    // not trusted counts as unreachable.
    let merged = tempfile::NamedTempFile::new().unwrap();
    let pem = |platform: &FakePlatform| std::fs::read(platform.options().ca_file.unwrap()).unwrap();
    std::fs::write(merged.path(), [pem(&throttled), pem(&good)].concat()).unwrap();
    let options = HttpOptions {
        proxies: vec![throttled.proxy(), dead, good.proxy()],
        ca_file: Some(merged.path().to_owned()),
        ..HttpOptions::default()
    };
    let http = Arc::new(HttpTransport::new(options).unwrap());
    for _ in 0..3 {
        http.session().send(&page(), test_deadline()).await.unwrap();
    }
    assert_eq!((throttled.requests().len(), good.requests().len()), (1, 3));
    let mut session = http.session();
    session.send(&page(), test_deadline()).await.unwrap();
    let route = session.route();
    assert!(!session.leave_route(route, None), "no proxy is available");
}

#[tokio::test]
async fn platform_throttling_only_route_is_paused() {
    let platform = FakePlatform::start(|_, _| reply(429, "retry-after: 3600\r\n", "")).await;
    let http = platform.http();
    // A separately throttled request does not affect others and is not retried.
    let apart = HttpRequest { has_own_rate_limit: true, ..page() };
    http.session().send(&apart, test_deadline()).await.unwrap_err();
    assert_eq!(platform.requests().len(), 1);
    http.session().send(&page(), test_deadline()).await.unwrap_err();
    for request in [page(), apart] {
        let fault = http.session().send(&request, test_deadline()).await.unwrap_err();
        let HttpError::CoolingDown { left, .. } = fault else { panic!("{fault:?}") };
        assert!((280..=300).contains(&left.as_secs()), "{left:?}");
    }
    assert_eq!(platform.requests().len(), 2);
    let other_platform = HttpRequest { hosts: &["localhost", "www.youtube.com"], ..page() };
    let fault = http.session().send(&other_platform, test_deadline()).await.unwrap_err();
    assert!(matches!(fault, HttpError::Throttled(_)), "another platform is not paused: {fault:?}");
}

#[tokio::test]
async fn session_request_limit_is_enforced() {
    let platform = FakePlatform::start(|_, _| reply(500, "", "")).await;
    let mut session = platform.http().session().with_request_limit(4);
    assert_eq!(session.send_once(&page(), test_deadline()).await.unwrap_err(), HttpError::Status(500, None));
    assert_eq!(platform.requests().len(), 1);
    for expect in [HttpError::Status(500, None), HttpError::BudgetExhausted] {
        assert_eq!(session.send(&page(), test_deadline()).await.unwrap_err(), expect);
    }
    assert_eq!(platform.requests().len(), 4);
}

#[tokio::test]
async fn concurrency_limit_delays_second_request() {
    let platform = FakePlatform::start(|_, _| {
        let mut steps = vec![ScriptStep::Wait(Duration::from_millis(300))];
        steps.extend(reply(200, "", ""));
        steps
    })
    .await;
    let http = Arc::new(HttpTransport::new(HttpOptions { concurrency: 1, ..options(&platform) }).unwrap());
    let started = Instant::now();
    let (mut first, mut second) = (http.session(), http.session());
    let request = page();
    let (one, two) =
        tokio::join!(first.send(&request, test_deadline()), second.send(&request, test_deadline()));
    assert!(one.is_ok() && two.is_ok());
    assert!(started.elapsed() >= Duration::from_millis(600));
}

const SECONDS_120: Duration = Duration::from_secs(120);

#[tokio::test]
async fn error_message_names_remedy_and_hides_url() {
    let refused = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let platform = FakePlatform::start(|_, _| reply(200, "", "")).await;
    let proxied = |proxy: String| HttpOptions { proxies: vec![proxy], retries: 0, ..HttpOptions::default() };
    let unreachable = send(proxied(format!("http://me:secret@{refused}")), &page()).await.unwrap_err();
    let no_socks = send(proxied(format!("socks5://me:secret@{refused}")), &page()).await.unwrap_err();
    // A label longer than 63 characters is not sent to a name server.
    let no_name = send(proxied(format!("http://me:secret@{}:1", "a".repeat(64))), &page()).await.unwrap_err();
    let untrusted = send(proxied(platform.proxy()), &page()).await.unwrap_err();
    for (fault, reason, word) in [
        (unreachable, SupplyReason::Unreachable, "connection to the proxy failed"),
        (no_socks, SupplyReason::Unreachable, "connection to the proxy failed"),
        (no_name, SupplyReason::Unreachable, "host name of the proxy"),
        (untrusted, SupplyReason::Unreachable, "upstream.ca_file"),
        (HttpError::Timeout, SupplyReason::Timeout, "too long"),
        (HttpError::Throttled(None), SupplyReason::Throttled(None), "upstream.proxy"),
        (HttpError::Status(503, None), SupplyReason::PlatformFault, "503"),
        (HttpError::Status(503, Some(SECONDS_120)), SupplyReason::Throttled(Some(SECONDS_120)), "in 120 s"),
        (HttpError::Busy, SupplyReason::Timeout, "too many large responses"),
        (HttpError::TooLarge, SupplyReason::Unreadable, "too large"),
        (HttpError::Encoded, SupplyReason::Unreadable, "compressed"),
        (HttpError::ProxyCredentials, SupplyReason::Misconfigured, "upstream.proxy"),
    ] {
        let error = fault.supply_error(video::Platform::YouTube);
        assert_eq!(*error.reason(), reason, "{fault:?}");
        let message = error.message();
        assert!(message.contains(word) && message.ends_with('.'), "{message}");
        assert!(!message.contains("secret") && !message.contains("http"), "{message}");
    }
}

/// A proxy that records received bytes and sends `replies`, one after the other.
async fn scripted_proxy(scheme: &str, replies: &'static [&'static [u8]]) -> (String, JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("{scheme}://me:s%40crt@{}", listener.local_addr().unwrap());
    let received = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (mut received, mut buffer) = (Vec::new(), [0; 1_000]);
        for reply in replies {
            let count = stream.read(&mut buffer).await.unwrap();
            received.extend_from_slice(&buffer[..count]);
            stream.write_all(reply).await.unwrap();
        }
        received
    });
    (address, received)
}

#[tokio::test]
async fn proxy_receives_credentials_and_its_error_is_reported() {
    const WRONG_CREDENTIALS: &[&[u8]] = &[b"HTTP/1.1 407 X\r\ncontent-length: 0\r\n\r\n"];
    const BAD_GATEWAY: &[&[u8]] = &[b"HTTP/1.1 502 X\r\ncontent-length: 0\r\n\r\n"];
    for (reply, expect) in [
        (WRONG_CREDENTIALS, HttpError::ProxyCredentials),
        (BAD_GATEWAY, HttpError::Unreachable("the connection failed")),
    ] {
        let (address, received) = scripted_proxy("http", reply).await;
        let options = HttpOptions { proxies: vec![address], retries: 0, ..HttpOptions::default() };
        assert_eq!(send(options, &page()).await.unwrap_err(), expect);
        let received = String::from_utf8(received.await.unwrap()).unwrap().to_lowercase();
        assert!(received.starts_with("connect www.youtube.com:443 "), "{received}");
        assert!(received.contains("proxy-authorization: basic bwu6c0bjcnq="), "{received}");
    }
}

#[tokio::test]
async fn socks_proxy_receives_host_name() {
    // Request a password, accept it, then report an unreachable host.
    let (address, received) =
        scripted_proxy("socks5", &[&[5, 2], &[1, 0], &[5, 4, 0, 1, 0, 0, 0, 0, 0, 0]]).await;
    let options = HttpOptions { proxies: vec![address], retries: 0, ..HttpOptions::default() };
    let fault = send(options, &page()).await.unwrap_err();
    assert!(matches!(fault, HttpError::Unreachable(_)), "{fault:?}");
    let received = received.await.unwrap();
    let received = String::from_utf8_lossy(&received);
    assert!(received.contains("me\u{5}s@crt") && received.contains("www.youtube.com"), "{received:?}");
}

#[tokio::test]
async fn certificate_file_invalid_is_named() {
    let empty = tempfile::NamedTempFile::new().unwrap();
    for path in [empty.path().to_owned(), "/nowhere/at/all.pem".into()] {
        let options = HttpOptions { ca_file: Some(path.clone()), ..HttpOptions::default() };
        let error = HttpTransport::new(options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().contains("upstream.ca_file"), "{error}");
    }
}
