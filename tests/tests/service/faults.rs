//! Servers that are slow, huge, broken, elsewhere or not there.

use std::time::Duration;

use anyhow::{Context as _, Result};
use transcript_core::{
    accounts::TranscriptAsk,
    wire::{lookup::KeyRequest, v1::Register},
};
use upstream_reqwest::service::{
    LookupRequest, RefusalKind, ServiceClient, ServiceError, ServiceOptions, TextFormat,
};

use super::{
    fake::{Fake, Reply, header},
    stage::{VIDEO, link},
};

const KEY: &str = "vba_hushhushhush";
const FAULT: &str = r#"{"error":"Something went wrong on our side.","code":500}"#;

fn options(fake: &Fake) -> ServiceOptions {
    ServiceOptions::new(&fake.url).with_key(KEY)
}

fn client(fake: &Fake) -> Result<ServiceClient> {
    Ok(ServiceClient::new(&options(fake))?)
}

fn ask() -> TranscriptAsk {
    TranscriptAsk { video_id: Some(VIDEO.to_owned()), ..TranscriptAsk::default() }
}

fn transcript() -> Reply {
    let body =
        r#"{"video_id":"dyke-walk-0","title":"","language":"en","is_generated":true,"segments":[],"new":1}"#;
    Reply::of(200, "x-cache: MISS\r\nx-credits-remaining: 7\r\n", body)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_in_passing_is_asked_again_under_the_same_name() -> Result<()> {
    let fake = Fake::start(|before| match before {
        0 => Reply::of(500, "", FAULT),
        1 => Reply::of(
            409,
            "",
            r#"{"error":"Another request with this Idempotency-Key is under way.","code":409}"#,
        ),
        _ => transcript(),
    })
    .await?;
    let answer = client(&fake)?.transcript(&ask(), None).await?;
    assert_eq!((answer.facts.credits_remaining, answer.facts.is_cached), (Some(7), Some(false)));
    let seen = fake.seen();
    let names: Vec<_> = seen.iter().map(|head| header(head, "idempotency-key")).collect();
    assert!(names.len() == 3 && names[0].is_some_and(|name| name.len() == 32), "{names:?}");
    assert!(names.iter().all(|name| *name == names[0]), "{names:?}");
    // The key is in its header, and nowhere else.
    for head in &seen {
        assert_eq!(header(head, "authorization"), Some(format!("bearer {KEY}").as_str()));
        assert_eq!(head.matches("hush").count(), 3, "{head}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_have_been_done_is_not_asked_again() -> Result<()> {
    let fake = Fake::start(|_| Reply::of(500, "", FAULT)).await?;
    let client = client(&fake)?;
    let register = Register { email: "ann@example.org".to_owned() };
    assert_eq!(client.register(&register).await.unwrap_err().kind(), Some(RefusalKind::Fault));
    assert!(client.create_key(&KeyRequest::default(), None).await.is_err());
    assert!(client.verify("token").await.is_err() && client.verify_confirmed("token").await.is_err());
    // Neither was a key sent where none is wanted.
    assert!(fake.seen().iter().all(|head| header(head, "authorization").is_none()));
    assert!(client.rotate_key().await.is_err());
    assert_eq!(fake.seen().len(), 5);
    // What changes nothing is asked three times in all.
    assert!(client.me().await.is_err());
    assert_eq!(fake.seen().len(), 8);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_named_wait_is_kept_when_it_is_short() -> Result<()> {
    let limited = |wait: &str| {
        Reply::of(429, &format!("retry-after: {wait}\r\n"), r#"{"error":"Too many requests.","code":429}"#)
    };
    let fake = Fake::start(move |before| if before == 0 { limited("1") } else { transcript() }).await?;
    let began = std::time::Instant::now();
    client(&fake)?.transcript(&ask(), None).await?;
    assert!(began.elapsed() >= Duration::from_secs(1) && fake.seen().len() == 2);
    let fake = Fake::start(move |_| limited("60")).await?;
    let error = client(&fake)?.transcript(&ask(), None).await.unwrap_err();
    assert_eq!((error.retry_after(), fake.seen().len()), (Some(Duration::from_secs(60)), 1));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_followed_with_a_key() -> Result<()> {
    let elsewhere = Fake::start(|_| transcript()).await?;
    let location = format!("location: {}/api/v1/me\r\n", elsewhere.url);
    for status in [301, 302, 307, 308] {
        let location = location.clone();
        let fake = Fake::start(move |_| Reply::of(status, &location, "")).await?;
        let error = client(&fake)?.me().await.unwrap_err();
        assert_eq!(error.kind(), Some(RefusalKind::Redirected), "{error}");
        assert_eq!(fake.seen().len(), 1);
    }
    assert!(elsewhere.seen().is_empty());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_server_is_left_in_time() -> Result<()> {
    let fake = Fake::start(|_| Reply::Never).await?;
    let options = ServiceOptions { timeout: Duration::from_secs(1), retries: 1, ..options(&fake) };
    assert_eq!(ServiceClient::new(&options)?.me().await.unwrap_err(), ServiceError::Timeout);
    // It may see a request after its sender gave it up.
    let both = async {
        while fake.seen().len() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), both).await?;
    // A body that never ends within the bound of its size ends within that of its time.
    let start = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{";
    let fake = Fake::start(move |_| Reply::Raw(start.to_owned())).await?;
    let options = ServiceOptions { retries: 0, ..super::faults::options(&fake) };
    let error = ServiceClient::new(&options)?.me().await.unwrap_err();
    assert_eq!(error, ServiceError::CutOff);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_have_a_largest_size_whether_it_is_told_or_not() -> Result<()> {
    for head in ["content-length: 9999999999\r\n", ""] {
        let start = format!("HTTP/1.1 200 OK\r\n{head}connection: close\r\n\r\n\"");
        let fake = Fake::start(move |_| Reply::Endless(start.clone())).await?;
        let client = client(&fake)?;
        for error in [
            client.me().await.unwrap_err(),
            client.look_up(&LookupRequest::url(link(VIDEO))).await.unwrap_err(),
        ] {
            assert_eq!(error, ServiceError::Unreadable("it is larger than any that is read"));
        }
        assert_eq!(fake.seen().len(), 2);
    }
    // What refuses at any length refuses.
    let start = "HTTP/1.1 503 X\r\nconnection: close\r\n\r\n";
    let fake = Fake::start(move |_| Reply::Endless(start.to_owned())).await?;
    let options = ServiceOptions { retries: 0, ..options(&fake) };
    let error = ServiceClient::new(&options)?.me().await.unwrap_err();
    assert_eq!(error.refusal().context("no refusal")?.status, 503);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_answer_of_a_server_is_none() -> Result<()> {
    for body in ["", "<html>Please log in</html>", "[]", "{}", "{\"email\": 7}", "\u{0}", "null"] {
        let fake = Fake::start(move |_| Reply::of(200, "", body)).await?;
        let error = client(&fake)?.me().await.unwrap_err();
        assert!(matches!(error, ServiceError::Unreadable(_)), "{body}: {error:?}");
        assert_eq!(fake.seen().len(), 1);
    }
    for body in ["Not Found", "<html></html>\n"] {
        let fake = Fake::start(move |_| Reply::of(404, "", body)).await?;
        let error =
            client(&fake)?.look_up_text(&LookupRequest::id(VIDEO), TextFormat::Text).await.unwrap_err();
        assert!(matches!(error, ServiceError::Unreadable(_)), "{body}: {error:?}");
    }
    // A key that an answer repeats is in no error.
    let fake =
        Fake::start(|_| Reply::of(200, "", &format!("{{\"success\": true, \"api_key\": [\"{KEY}\"]}}")))
            .await?;
    let error = client(&fake)?.rotate_key().await.unwrap_err();
    assert!(!format!("{error:?} {error}").contains("hush"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_there_and_nonsense_for_a_key() -> Result<()> {
    // A port that is taken, and where nobody listens.
    let taken = tokio::net::TcpSocket::new_v4()?;
    taken.bind(([127, 0, 0, 1], 0).into())?;
    let gone = format!("http://{}", taken.local_addr()?);
    let options = ServiceOptions { retries: 0, ..ServiceOptions::new(&gone) };
    let error = ServiceClient::new(&options)?.me().await.unwrap_err();
    assert!(matches!(error, ServiceError::Unreachable(_)), "{error:?}");
    for key in ["", "two words", "line\nbreak", "ключ"] {
        let error = ServiceClient::new(&options.clone().with_key(key)).unwrap_err();
        assert!(
            error.message().contains("service.api_key") && (key.is_empty() || !error.message().contains(key))
        );
    }
    Ok(())
}
