//! Servers that are slow, oversized, broken, redirected or unreachable.

use std::time::Duration;

use anyhow::Result;
use transcript_core::{
    accounts::TranscriptParams,
    ids::JobId,
    page::PageRequest,
    service::{Caller, Service as _, ServiceErrorKind, ServiceLookup, TextFormat, TextResponse},
    wire::{lookup::KeyRequest, v1::RegisterRequest},
};
use upstream_reqwest::service::{ServiceClient, ServiceOptions};

use super::{
    fake::{FakeReply, FakeService},
    fixture::{VIDEO, link},
};

const KEY: &str = "vba_hushhushhush";
const FAULT: &str = r#"{"error":"Something went wrong on our side.","code":500}"#;

fn options(fake: &FakeService) -> ServiceOptions {
    ServiceOptions::new(&fake.url).with_key(KEY)
}

/// A caller whose key is that of the client.
fn caller() -> Caller {
    Caller::default()
}

fn client(fake: &FakeService) -> Result<ServiceClient> {
    Ok(ServiceClient::new(&options(fake))?)
}

fn transcript_params() -> TranscriptParams {
    TranscriptParams { video_id: Some(VIDEO.to_owned()), ..TranscriptParams::default() }
}

fn transcript() -> FakeReply {
    let body =
        r#"{"video_id":"dyke-walk-0","title":"","language":"en","is_generated":true,"segments":[],"new":1}"#;
    FakeReply::new(200, "x-cache: MISS\r\nx-credits-remaining: 7\r\n", body)
}

#[tokio::test(flavor = "multi_thread")]
async fn service_transient_failure_is_retried_with_same_key() -> Result<()> {
    let fake = FakeService::start(|_, before| match before {
        0 => FakeReply::new(500, "", FAULT),
        1 => FakeReply::new(
            409,
            "",
            r#"{"error":"A request with this Idempotency-Key is still running.","code":409}"#,
        ),
        _ => transcript(),
    })
    .await?;
    let response = client(&fake)?.transcript(&caller(), transcript_params()).await?;
    assert_eq!((response.meta.credits_remaining, response.meta.is_cached), (Some(7), Some(false)));
    let requests = fake.requests();
    let keys: Vec<_> = requests.iter().map(|request| request.header("idempotency-key")).collect();
    assert!(keys.len() == 3 && keys[0].is_some_and(|name| name.len() == 32), "{keys:?}");
    assert!(keys.iter().all(|name| *name == keys[0]), "{keys:?}");
    // The API key occurs only in its header.
    for request in &requests {
        assert_eq!(request.header("authorization"), Some(format!("bearer {KEY}").as_str()));
        assert_eq!(request.head.matches("hush").count(), 3, "{}", request.head);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn service_lost_request_is_awaited_with_its_key() -> Result<()> {
    let running = r#"{"error":"A request with this Idempotency-Key is still running.","code":409}"#;
    let fake = FakeService::start(move |_, before| match before {
        0 => FakeReply::Never,
        1..=3 => FakeReply::new(409, "", running),
        _ => transcript(),
    })
    .await?;
    let options = ServiceOptions { timeout: Duration::from_secs(3), ..options(&fake) };
    let response = ServiceClient::new(&options)?.transcript(&caller(), transcript_params()).await?;
    assert_eq!(response.meta.credits_remaining, Some(7));
    let requests = fake.requests();
    assert_eq!(requests.len(), 5);
    let keys: Vec<_> = requests.iter().map(|request| request.header("idempotency-key")).collect();
    assert!(keys[0].is_some() && keys.iter().all(|name| *name == keys[0]), "{keys:?}");
    // Without retries the caller gets the key.
    let fake = FakeService::start(|_, _| FakeReply::Never).await?;
    let options = ServiceOptions { retries: 0, base_url: fake.url.clone(), ..options };
    let error = ServiceClient::new(&options)?.transcript(&caller(), transcript_params()).await.unwrap_err();
    assert_eq!(error.kind, ServiceErrorKind::Timeout);
    assert!(error.idempotency_key.is_some_and(|key| key.len() == 32));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn service_unsafe_call_is_not_retried() -> Result<()> {
    let fake = FakeService::start(|_, _| FakeReply::new(500, "", FAULT)).await?;
    let client = client(&fake)?;
    let register = RegisterRequest { email: "ann@example.org".to_owned() };
    let error = client.register(&caller(), register).await.unwrap_err();
    assert_eq!(error.kind, ServiceErrorKind::ServerError);
    assert!(client.create_key(&caller(), KeyRequest::default()).await.is_err());
    for confirmed in [false, true] {
        assert!(client.verify(&caller(), "token".to_owned(), confirmed).await.is_err());
    }
    // No key is sent to endpoints that need none.
    assert!(fake.requests().iter().all(|request| request.header("authorization").is_none()));
    assert!(client.rotate_key(&caller()).await.is_err());
    assert_eq!(fake.requests().len(), 5);
    // A call without side effects is sent three times in total.
    assert!(client.me(&caller()).await.is_err());
    assert_eq!(fake.requests().len(), 8);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn service_short_retry_after_is_honored() -> Result<()> {
    let limited = |wait: &str| {
        FakeReply::new(
            429,
            &format!("retry-after: {wait}\r\n"),
            r#"{"error":"Too many requests.","code":429}"#,
        )
    };
    let fake =
        FakeService::start(move |_, before| if before == 0 { limited("1") } else { transcript() }).await?;
    let began = std::time::Instant::now();
    client(&fake)?.transcript(&caller(), transcript_params()).await?;
    assert!(began.elapsed() >= Duration::from_secs(1) && fake.requests().len() == 2);
    let fake = FakeService::start(move |_, _| limited("60")).await?;
    let error = client(&fake)?.transcript(&caller(), transcript_params()).await.unwrap_err();
    assert_eq!((error.retry_after(), fake.requests().len()), (Some(Duration::from_secs(60)), 1));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn service_redirect_is_not_followed() -> Result<()> {
    let elsewhere = FakeService::start(|_, _| transcript()).await?;
    let location = format!("location: {}/api/v1/me?email=ann\r\n", elsewhere.url);
    for status in [301, 302, 307, 308] {
        let location = location.clone();
        let fake = FakeService::start(move |_, _| FakeReply::new(status, &location, "")).await?;
        let error = client(&fake)?.me(&caller()).await.unwrap_err();
        assert_eq!(error.kind, ServiceErrorKind::Redirected, "{error}");
        let target = format!("redirects to {}/api/v1/me (HTTP {status})", elsewhere.url);
        assert!(error.message.contains(&target), "{error}");
        assert_eq!(fake.requests().len(), 1);
    }
    assert!(elsewhere.requests().is_empty());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn service_slow_server_fails_at_timeout() -> Result<()> {
    let fake = FakeService::start(|_, _| FakeReply::Never).await?;
    let options = ServiceOptions { timeout: Duration::from_secs(1), retries: 1, ..options(&fake) };
    assert_eq!(
        ServiceClient::new(&options)?.me(&caller()).await.unwrap_err().kind,
        ServiceErrorKind::Timeout
    );
    // The server may receive a request after the client's timeout.
    let both = async {
        while fake.requests().len() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), both).await?;
    // A body that ends before its content-length is cut off.
    let start = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{";
    let fake = FakeService::start(move |_, _| FakeReply::Raw(start.to_owned())).await?;
    let options = ServiceOptions { retries: 0, ..super::faults::options(&fake) };
    let error = ServiceClient::new(&options)?.me(&caller()).await.unwrap_err();
    assert_eq!(error.kind, ServiceErrorKind::CutOff);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn service_oversized_response_is_rejected() -> Result<()> {
    for head in ["content-length: 9999999999\r\n", ""] {
        let start = format!("HTTP/1.1 200 OK\r\n{head}connection: close\r\n\r\n\"");
        let fake = FakeService::start(move |_, _| FakeReply::Endless(start.clone())).await?;
        let client = client(&fake)?;
        for error in [
            client.me(&caller()).await.unwrap_err(),
            client.look_up(&caller(), ServiceLookup::url(link(VIDEO))).await.unwrap_err(),
        ] {
            assert_eq!(error.kind, ServiceErrorKind::Unreadable);
            assert_eq!(error.message, "The server's response is invalid: it is too large.");
        }
        assert_eq!(fake.requests().len(), 2);
    }
    // A rejection counts whatever the length of its body.
    let start = "HTTP/1.1 503 X\r\nconnection: close\r\n\r\n";
    let fake = FakeService::start(move |_, _| FakeReply::Endless(start.to_owned())).await?;
    let options = ServiceOptions { retries: 0, ..options(&fake) };
    let error = ServiceClient::new(&options)?.me(&caller()).await.unwrap_err();
    assert_eq!(error.status, Some(503));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn service_oversized_page_of_job_is_halved() -> Result<()> {
    let start = "HTTP/1.1 200 OK\r\ncontent-length: 9999999999\r\nconnection: close\r\n\r\n{";
    let item = r#"{"index":0,"url":"a","platform":null,"video_id":null,"status":"queued"}"#;
    let fake = FakeService::start(move |request, _| match request.head.contains("limit=1 ") {
        true => {
            FakeReply::new(200, "", format!(r#"{{"job_id":"job_1","next_cursor":"c","items":[{item}]}}"#))
        }
        false => FakeReply::Endless(start.to_owned()),
    })
    .await?;
    let page = PageRequest { after: None, limit: 4 };
    let found = client(&fake)?.job_results(&caller(), &JobId::new("job_1"), page).await?.body;
    assert_eq!((found.items.len(), found.next_cursor.as_deref()), (1, Some("c")));
    assert_eq!(fake.requests().len(), 3);
    // A login page is the same for every length of a page.
    let fake = FakeService::start(|_, _| FakeReply::new(200, "", "<html>Please log in</html>")).await?;
    let page = PageRequest { after: None, limit: 4 };
    let error = client(&fake)?.job_results(&caller(), &JobId::new("job_1"), page).await.unwrap_err();
    assert_eq!((error.kind, fake.requests().len()), (ServiceErrorKind::Unreadable, 1));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn service_invalid_body_is_unreadable() -> Result<()> {
    for body in ["", "<html>Please log in</html>", "[]", "{}", "{\"email\": 7}", "\u{0}", "null"] {
        let fake = FakeService::start(move |_, _| FakeReply::new(200, "", body)).await?;
        let error = client(&fake)?.me(&caller()).await.unwrap_err();
        assert_eq!(error.kind, ServiceErrorKind::Unreadable, "{body}: {error:?}");
        assert_eq!(fake.requests().len(), 1);
    }
    for body in ["Not Found", "<html></html>\n"] {
        let fake = FakeService::start(move |_, _| FakeReply::new(404, "", body)).await?;
        let error =
            client(&fake)?.text(&caller(), ServiceLookup::id(VIDEO), TextFormat::Text).await.unwrap_err();
        assert_eq!(error.kind, ServiceErrorKind::Unreadable, "{body}: {error:?}");
    }
    let fake = FakeService::start(|request, _| match request.head.contains("format=srt") {
        true => FakeReply::new(200, "content-type: application/x-subrip\r\n", "1\n"),
        false => FakeReply::new(200, "content-type: text/plain;charset=UTF-8\r\n", "Text."),
    })
    .await?;
    let readable = client(&fake)?;
    for (format, expected) in [(TextFormat::Srt, "1\n"), (TextFormat::Text, "Text.")] {
        let reply = readable.text(&caller(), ServiceLookup::id(VIDEO), format).await?;
        assert_eq!(reply.body, TextResponse::Text(expected.to_owned()));
    }
    // A page of another server or of a network is no transcript, and no body is none.
    for format in TextFormat::ALL {
        for (status, headers, body) in
            [(200, "content-type: text/html\r\n", "<html>Log in</html>"), (200, "", "Text."), (204, "", "")]
        {
            let fake = FakeService::start(move |_, _| FakeReply::new(status, headers, body)).await?;
            let error = client(&fake)?.text(&caller(), ServiceLookup::id(VIDEO), format).await.unwrap_err();
            assert_eq!(error.kind, ServiceErrorKind::Unreadable, "{format:?} {status} {headers}: {error:?}");
        }
    }
    // An error contains no key from the response.
    let fake = FakeService::start(|_, _| {
        FakeReply::new(200, "", format!("{{\"success\": true, \"api_key\": [\"{KEY}\"]}}"))
    })
    .await?;
    let error = client(&fake)?.rotate_key(&caller()).await.unwrap_err();
    assert!(!format!("{error:?} {error}").contains("hush"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn service_unreachable_server_and_invalid_key_fail() -> Result<()> {
    // A port that is bound, and has no listener.
    let taken = tokio::net::TcpSocket::new_v4()?;
    taken.bind(([127, 0, 0, 1], 0).into())?;
    let gone = format!("http://{}", taken.local_addr()?);
    let options = ServiceOptions { retries: 0, ..ServiceOptions::new(&gone) };
    let error = ServiceClient::new(&options)?.me(&caller()).await.unwrap_err();
    assert_eq!(error.kind, ServiceErrorKind::Unreachable, "{error:?}");
    for key in ["", "two words", "line\nbreak", "ключ"] {
        let error = ServiceClient::new(&options.clone().with_key(key)).unwrap_err();
        assert!(
            error.message().contains("service.api_key") && (key.is_empty() || !error.message().contains(key))
        );
    }
    Ok(())
}
