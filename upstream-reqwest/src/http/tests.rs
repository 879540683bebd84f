//! The transport against a platform on the loopback.

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
    Http, HttpFault, HttpOptions, Request,
    testing::{Platform, Step, answer},
};

const HOSTS: &[&str] = &["www.youtube.com", "localhost"];

fn get(url: &str) -> Request {
    Request {
        method: Method::GET,
        url: Url::parse(url).unwrap(),
        hosts: HOSTS,
        headers: HeaderMap::new(),
        body: Bytes::new(),
        answer_max: 1_000,
        throttled_apart: false,
    }
}

fn page() -> Request {
    get("https://www.youtube.com/page?signature=secret")
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn options(platform: &Platform) -> HttpOptions {
    HttpOptions { retries: 0, ..platform.options() }
}

async fn send(options: HttpOptions, request: &Request) -> Result<super::Answer, HttpFault> {
    Arc::new(Http::new(options).unwrap()).visit().send(request, soon()).await
}

#[tokio::test]
async fn an_answer_comes_back_through_the_proxy() {
    let platform = Platform::start(|_, _| answer(404, "location: /elsewhere\r\n", "hello")).await;
    let got = platform.http().visit().send(&page(), soon()).await.unwrap();
    assert_eq!((got.status.as_u16(), &got.body[..]), (404, &b"hello"[..]));
    assert_eq!(got.location.unwrap().as_str(), "https://www.youtube.com/elsewhere");
    let seen = platform.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].host, "www.youtube.com:443");
    assert_eq!(seen[0].line, "GET /page?signature=secret");
    assert!(!seen[0].headers.contains_key("referer"));
    assert_eq!(seen[0].headers["accept-encoding"], "gzip");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let platform = Platform::start(|_, _| answer(302, "location: https://evil.example/\r\n", "")).await;
    let got = send(options(&platform), &page()).await.unwrap();
    assert_eq!(got.location.unwrap().as_str(), "https://evil.example/");
    assert_eq!(platform.seen().len(), 1);
}

#[tokio::test]
async fn the_address_of_a_redirect_may_be_relative_and_of_any_language() {
    for (location, expect) in [
        ("/there?a=1", "https://www.youtube.com/there?a=1"),
        ("//youtu.be/x", "https://youtu.be/x"),
        ("https://example.org/Straße", "https://example.org/Stra%C3%9Fe"),
        ("https://[", ""),
    ] {
        let header = format!("location: {location}\r\n");
        let platform = Platform::start(move |_, _| answer(302, &header, "")).await;
        let got = send(options(&platform), &page()).await.unwrap();
        assert_eq!(got.location.as_ref().map_or("", Url::as_str), expect, "{location}");
    }
}

#[tokio::test]
async fn a_body_may_be_left_unread() {
    let platform = Platform::start(|_, _| {
        let head = b"HTTP/1.1 302 X\r\ncontent-encoding: gzip\r\ncontent-length: 99999999\r\n\r\n".to_vec();
        // Nothing follows: whoever reads the body waits for ever.
        vec![Step::Write(head), Step::Wait(Duration::from_secs(60))]
    })
    .await;
    let request = Request { answer_max: 0, ..page() };
    let got = timeout(Duration::from_secs(5), send(options(&platform), &request)).await.unwrap().unwrap();
    assert_eq!((got.status.as_u16(), got.body.len()), (302, 0));
}

#[tokio::test]
async fn foreign_addresses_never_reach_the_proxy() {
    let platform = Platform::start(|_, _| answer(200, "", "")).await;
    for url in ["https://evil.example/", "http://www.youtube.com/", "https://www.youtube.com:444/"] {
        assert_eq!(
            send(options(&platform), &get(url)).await.unwrap_err(),
            HttpFault::ForeignAddress,
            "{url}"
        );
    }
    assert!(platform.seen().is_empty());
}

#[tokio::test]
async fn private_addresses_are_refused_where_we_resolve() {
    let request = get("https://localhost/");
    assert_eq!(send(HttpOptions::default(), &request).await.unwrap_err(), HttpFault::PrivateAddress);
}

#[tokio::test]
async fn long_answers_are_cut_whether_announced_or_not() {
    let full = |length: usize| vec![b'x'; length];
    let platform = Platform::start(move |seen, _| match seen.line.as_str() {
        "GET /fits" => answer(200, "", full(1_000)),
        "GET /announced" => {
            let head = b"HTTP/1.1 200 X\r\ncontent-length: 1001\r\n\r\n".to_vec();
            // Nothing follows: only the announcement can tell.
            vec![Step::Write(head), Step::Wait(Duration::from_secs(60))]
        }
        "GET /silent" => {
            let head = b"HTTP/1.1 200 X\r\nconnection: close\r\n\r\n".to_vec();
            vec![Step::Write(head), Step::Write(full(1_001)), Step::Wait(Duration::from_secs(60))]
        }
        // 100 kB of zeros in gzip's dress.
        _ => answer(200, "content-encoding: gzip\r\n", zeros_gzipped()),
    })
    .await;
    let ask = async |path: &str| {
        let request = get(&format!("https://www.youtube.com{path}"));
        timeout(Duration::from_secs(5), send(options(&platform), &request)).await.unwrap()
    };
    assert_eq!(ask("/fits").await.unwrap().body.len(), 1_000);
    for path in ["/announced", "/silent", "/bomb"] {
        assert_eq!(ask(path).await.unwrap_err(), HttpFault::TooLarge, "{path}");
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
async fn slow_answers_end_at_their_limits() {
    let head = b"HTTP/1.1 200 X\r\ncontent-length: 100\r\n\r\n".to_vec();
    let drip = move || {
        let mut steps = vec![Step::Write(head.clone())];
        for _ in 0..40 {
            steps.extend([Step::Write(b"x".to_vec()), Step::Wait(Duration::from_millis(50))]);
        }
        steps
    };
    let platform = Platform::start(move |seen, _| match seen.line.as_str() {
        "GET /drips" => drip(),
        _ => vec![Step::Wait(Duration::from_secs(60))],
    })
    .await;
    let (ms, started) = (Duration::from_millis, Instant::now());
    let total = HttpOptions { timeout: ms(600), ..options(&platform) };
    let drips = get("https://www.youtube.com/drips");
    assert_eq!(send(total, &drips).await.unwrap_err(), HttpFault::Timeout, "the whole is too long");
    let silence = HttpOptions { read_timeout: ms(600), ..options(&platform) };
    assert_eq!(send(silence, &page()).await.unwrap_err(), HttpFault::Timeout, "the silence is too long");
    let http = platform.http();
    let fault = http.visit().send(&page(), Instant::now() + ms(600)).await.unwrap_err();
    assert_eq!(fault, HttpFault::Timeout, "the deadline has come");
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn passing_faults_are_tried_again_and_others_are_not() {
    for (status, expect_requests) in [(200, 1), (400, 1), (403, 1), (500, 3), (503, 3), (408, 3)] {
        let platform = Platform::start(move |_, _| answer(status, "", "")).await;
        let result = platform.http().visit().send(&page(), soon()).await;
        assert_eq!(platform.seen().len(), expect_requests, "{status}");
        assert_eq!(result.is_err(), expect_requests > 1, "{status}");
    }
    let platform = Platform::start(|_, before| match before {
        0 => answer(502, "", ""),
        1 => vec![Step::Write(b"HTTP/1.1 200 X\r\ncontent-length: 100\r\n\r\ncut".to_vec())],
        _ => answer(200, "", "whole"),
    })
    .await;
    assert_eq!(&platform.http().visit().send(&page(), soon()).await.unwrap().body[..], b"whole");
}

#[tokio::test]
async fn a_named_wait_is_kept_where_it_fits() {
    let platform = Platform::start(|_, before| match before {
        0 => answer(429, "retry-after: 1\r\n", ""),
        _ => answer(200, "", ""),
    })
    .await;
    let started = Instant::now();
    platform.http().visit().send(&page(), soon()).await.unwrap();
    assert!(started.elapsed() >= Duration::from_secs(1));

    for (named, deadline) in [("3600", soon()), ("5", Instant::now() + Duration::from_secs(3))] {
        let headers = format!("retry-after: {named}\r\n");
        let platform = Platform::start(move |_, _| answer(429, &headers, "")).await;
        let fault = platform.http().visit().send(&page(), deadline).await.unwrap_err();
        let HttpFault::Throttled(Some(wait)) = fault else { panic!("{fault:?}") };
        assert_eq!(wait.as_secs().to_string(), named);
        assert_eq!(platform.seen().len(), 1, "{named}: asked again in vain");
    }
}

#[tokio::test]
async fn a_blocked_proxy_rests_and_the_next_one_answers() {
    let throttled = Platform::start(|_, _| answer(429, "", "")).await;
    let good = Platform::start(|_, _| answer(200, "", "")).await;
    let dead = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    // Each platform has an authority of its own; the good one's is the one that must be trusted. A proxy
    // whose certificate is not trusted counts as one that leads nowhere.
    let merged = tempfile::NamedTempFile::new().unwrap();
    let pem = |platform: &Platform| std::fs::read(platform.options().ca_file.unwrap()).unwrap();
    std::fs::write(merged.path(), [pem(&throttled), pem(&good)].concat()).unwrap();
    let options = HttpOptions {
        proxies: vec![throttled.proxy(), dead, good.proxy()],
        ca_file: Some(merged.path().to_owned()),
        ..HttpOptions::default()
    };
    let http = Arc::new(Http::new(options).unwrap());
    for _ in 0..3 {
        http.visit().send(&page(), soon()).await.unwrap();
    }
    assert_eq!((throttled.seen().len(), good.seen().len()), (1, 3));
    let mut visit = http.visit();
    visit.send(&page(), soon()).await.unwrap();
    let exit = visit.exit();
    assert!(!visit.distrusted(exit), "no fresh proxy is left");
}

#[tokio::test]
async fn a_platform_that_throttles_the_only_exit_is_left_alone() {
    let platform = Platform::start(|_, _| answer(429, "retry-after: 3600\r\n", "")).await;
    let http = platform.http();
    // What is throttled apart says nothing of the rest, and is not tried again.
    let apart = Request { throttled_apart: true, ..page() };
    http.visit().send(&apart, soon()).await.unwrap_err();
    assert_eq!(platform.seen().len(), 1);
    http.visit().send(&page(), soon()).await.unwrap_err();
    for request in [page(), apart] {
        let fault = http.visit().send(&request, soon()).await.unwrap_err();
        let HttpFault::Resting { left, .. } = fault else { panic!("{fault:?}") };
        assert!((280..=300).contains(&left.as_secs()), "{left:?}");
    }
    assert_eq!(platform.seen().len(), 2);
    let elsewhere = Request { hosts: &["localhost", "www.youtube.com"], ..page() };
    let fault = http.visit().send(&elsewhere, soon()).await.unwrap_err();
    assert!(matches!(fault, HttpFault::Throttled(_)), "another platform is asked: {fault:?}");
}

#[tokio::test]
async fn a_visit_sends_as_much_as_it_may() {
    let platform = Platform::start(|_, _| answer(500, "", "")).await;
    let mut visit = platform.http().visit().at_most(4);
    assert_eq!(visit.send_once(&page(), soon()).await.unwrap_err(), HttpFault::Status(500, None));
    assert_eq!(platform.seen().len(), 1);
    for expect in [HttpFault::Status(500, None), HttpFault::Spent] {
        assert_eq!(visit.send(&page(), soon()).await.unwrap_err(), expect);
    }
    assert_eq!(platform.seen().len(), 4);
}

#[tokio::test]
async fn requests_under_way_are_counted() {
    let platform = Platform::start(|_, _| {
        let mut steps = vec![Step::Wait(Duration::from_millis(300))];
        steps.extend(answer(200, "", ""));
        steps
    })
    .await;
    let http = Arc::new(Http::new(HttpOptions { concurrency: 1, ..options(&platform) }).unwrap());
    let started = Instant::now();
    let (mut first, mut second) = (http.visit(), http.visit());
    let request = page();
    let (one, two) = tokio::join!(first.send(&request, soon()), second.send(&request, soon()));
    assert!(one.is_ok() && two.is_ok());
    assert!(started.elapsed() >= Duration::from_millis(600));
}

#[tokio::test]
async fn faults_say_what_helps_and_never_where() {
    let refused = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let platform = Platform::start(|_, _| answer(200, "", "")).await;
    let proxied = |proxy: String| HttpOptions { proxies: vec![proxy], retries: 0, ..HttpOptions::default() };
    let unreachable = send(proxied(format!("http://me:secret@{refused}")), &page()).await.unwrap_err();
    let untrusted = send(proxied(platform.proxy()), &page()).await.unwrap_err();
    for (fault, reason, word) in [
        (unreachable, SupplyReason::Unreachable, "no connection"),
        (untrusted, SupplyReason::Unreachable, "upstream.ca_file"),
        (HttpFault::Timeout, SupplyReason::Timeout, "too long"),
        (HttpFault::Throttled(None), SupplyReason::Throttled(None), "upstream.proxy"),
        (HttpFault::Status(503, None), SupplyReason::PlatformFault, "503"),
        (HttpFault::TooLarge, SupplyReason::Unreadable, "larger"),
        (HttpFault::Encoded, SupplyReason::Unreadable, "compressed"),
        (HttpFault::ProxyCredentials, SupplyReason::Misconfigured, "upstream.proxy"),
    ] {
        let error = fault.supply_error(video::Platform::VideoSite);
        assert_eq!(*error.reason(), reason, "{fault:?}");
        let message = error.message();
        assert!(message.contains(word) && message.ends_with('.'), "{message}");
        assert!(!message.contains("secret") && !message.contains("http"), "{message}");
    }
}

/// A proxy that hears what is said to it and answers with `replies`, one after the other.
async fn blunt_proxy(scheme: &str, replies: &'static [&'static [u8]]) -> (String, JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("{scheme}://me:s%40crt@{}", listener.local_addr().unwrap());
    let heard = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (mut heard, mut buffer) = (Vec::new(), [0; 1_000]);
        for reply in replies {
            let count = stream.read(&mut buffer).await.unwrap();
            heard.extend_from_slice(&buffer[..count]);
            stream.write_all(reply).await.unwrap();
        }
        heard
    });
    (address, heard)
}

#[tokio::test]
async fn proxies_are_told_our_credentials_and_believed() {
    const WRONG_CREDENTIALS: &[&[u8]] = &[b"HTTP/1.1 407 X\r\ncontent-length: 0\r\n\r\n"];
    const NO_WAY: &[&[u8]] = &[b"HTTP/1.1 502 X\r\ncontent-length: 0\r\n\r\n"];
    for (reply, expect) in [
        (WRONG_CREDENTIALS, HttpFault::ProxyCredentials),
        (NO_WAY, HttpFault::Unreachable("no connection came about")),
    ] {
        let (address, heard) = blunt_proxy("http", reply).await;
        let options = HttpOptions { proxies: vec![address], retries: 0, ..HttpOptions::default() };
        assert_eq!(send(options, &page()).await.unwrap_err(), expect);
        let heard = String::from_utf8(heard.await.unwrap()).unwrap().to_lowercase();
        assert!(heard.starts_with("connect www.youtube.com:443 "), "{heard}");
        assert!(heard.contains("proxy-authorization: basic bwu6c0bjcnq="), "{heard}");
    }
}

#[tokio::test]
async fn a_socks_proxy_is_given_the_name_and_not_an_address() {
    // Take a user's password; take it as right; then no way to the host.
    let (address, heard) = blunt_proxy("socks5", &[&[5, 2], &[1, 0], &[5, 4, 0, 1, 0, 0, 0, 0, 0, 0]]).await;
    let options = HttpOptions { proxies: vec![address], retries: 0, ..HttpOptions::default() };
    let fault = send(options, &page()).await.unwrap_err();
    assert!(matches!(fault, HttpFault::Unreachable(_)), "{fault:?}");
    let heard = heard.await.unwrap();
    let heard = String::from_utf8_lossy(&heard);
    assert!(heard.contains("me\u{5}s@crt") && heard.contains("www.youtube.com"), "{heard:?}");
}

#[tokio::test]
async fn wrong_certificate_files_are_named() {
    let empty = tempfile::NamedTempFile::new().unwrap();
    for path in [empty.path().to_owned(), "/nowhere/at/all.pem".into()] {
        let options = HttpOptions { ca_file: Some(path.clone()), ..HttpOptions::default() };
        let error = Http::new(options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().contains("upstream.ca_file"), "{error}");
    }
}
