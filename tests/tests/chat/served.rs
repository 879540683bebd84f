//! Chat through the built server: charges of answers and of failures.

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::streamed;
use crate::{
    server::{
        harness::{ServerFixture, ServerReply as Answer, import_example},
        v1::mail_client::{MailClient, create_account, remaining_credits},
    },
    service::fake::{FakeReply, FakeService},
};

pub(super) async fn send_question(server: &ServerFixture, key: &str, message: &str) -> Result<Answer> {
    let body = json!({ "video_id": "L1ghth0use1", "message": message }).to_string();
    server.post_as(key, "/api/v1/chat", body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn answer_costs_credit_and_failure_is_free() -> Result<()> {
    let service = FakeService::start(|request, _| {
        let text = String::from_utf8_lossy(&request.body).into_owned();
        let is_question = |word: &str| text.contains(&format!("Question: {word}"));
        match () {
            () if is_question("html") => FakeReply::new(200, "content-type: text/html\r\n", "<html>"),
            () if is_question("garbage") => FakeReply::new(200, "", "\u{2}{"),
            () if is_question("large") => FakeReply::new(200, "", "a".repeat(10 << 20)),
            () if is_question("never") => FakeReply::Never,
            () if is_question("fault") => FakeReply::new(500, "", "hush"),
            () if is_question("filtered") => FakeReply::new(400, "", "hush"),
            () if is_question("nothing") => streamed(&[""]),
            () if is_question("invent") => {
                streamed(&["\"It took seven summers to build it\" [s1]. I made it up [2:34]."])
            }
            () => streamed(&["It took long: \"it took nine winters\" [s1]."]),
        }
    })
    .await?;
    let data = TempDir::new()?;
    import_example(&data, "https://youtu.be/L1ghth0use1")?;
    let settings = [
        ("VERBATIM_CHAT__BASE_URL", service.base_url.as_str()),
        ("VERBATIM_CHAT__MODEL", "small"),
        ("VERBATIM_CHAT__TIMEOUT", "3s"),
        ("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "1000"),
    ];
    let server = ServerFixture::start(&data, &settings)?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;

    let answer = send_question(&server, &key, "How long?").await?;
    ensure!(answer.status == 200, "{}", answer.text());
    let received = answer.json();
    assert_eq!(received["response"], "It took long: “It took nine winters” [0:04].");
    assert_eq!(received["credits"], json!({ "used": 1, "limit": 200, "remaining": 199 }));
    assert_eq!(received["citations"][0]["url"], "https://www.youtube.com/watch?v=L1ghth0use1&t=4s");

    for fault in ["html", "garbage", "large", "never", "fault", "nothing"] {
        let answer = send_question(&server, &key, fault).await?;
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["code"]),
            (500, &json!(500)),
            "{fault}: {}",
            answer.text()
        );
        assert!(
            answer.text().contains("Nothing was charged") && !answer.text().contains("hush"),
            "{}",
            answer.text()
        );
        assert_eq!(remaining_credits(&server, &key).await?, 199, "{fault}");
    }
    let refused = send_question(&server, &key, "filtered").await?;
    let text = refused.text();
    assert_eq!(refused.status, 400, "{text}");
    assert!(text.contains("the chat model refused this question") && !text.contains("hush"), "{text}");
    assert_eq!(remaining_credits(&server, &key).await?, 199);
    // Unverified text is not sent; the answer then consists of passages.
    let answer = send_question(&server, &key, "invent a story of the lighthouse").await?;
    let response = answer.json()["response"].as_str().unwrap_or("").to_owned();
    assert!(response.starts_with('“') && response.contains("lighthouse"), "{response}");
    assert!(!response.contains("summers") && !response.contains("2:34"), "{response}");
    assert_eq!(remaining_credits(&server, &key).await?, 198);
    assert_eq!(answer.json()["citations"].as_array().map_or(0, Vec::len), markers(&response));
    Ok(())
}

/// Number of timestamps in a response.
fn markers(response: &str) -> usize {
    response.matches('[').count()
}

#[tokio::test(flavor = "multi_thread")]
async fn sentences_are_streamed_one_by_one() -> Result<()> {
    let service = FakeService::start(|_, _| {
        streamed(&["It took nine winters [s1]. ", "This was never said. ", "\nThe lamp was lit [s1]."])
    })
    .await?;
    let data = TempDir::new()?;
    import_example(&data, "https://youtu.be/L1ghth0use1")?;
    let settings =
        [("VERBATIM_CHAT__BASE_URL", service.base_url.as_str()), ("VERBATIM_CHAT__MODEL", "small")];
    let server = ServerFixture::start(&data, &settings)?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let headers = [("accept", "text/event-stream")];
    let body = json!({ "video_id": "L1ghth0use1", "message": "How long?" }).to_string();
    let received = server.send_as(&key, Method::POST, "/api/v1/chat", &headers, body).await?;
    ensure!(received.header("content-type") == "text/event-stream", "{}", received.text());
    let events: Vec<(String, Value)> = received
        .text()
        .split_terminator("\n\n")
        .filter_map(|event| event.split_once("\ndata: "))
        .map(|(name, data)| Ok((name.to_owned(), serde_json::from_str(data)?)))
        .collect::<Result<_>>()?;
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["event: sentence", "event: sentence", "event: answer"]);
    let spoken: String = events.iter().filter_map(|(_, data)| data["text"].as_str()).collect();
    assert_eq!(spoken, "It took nine winters [0:01].\nThe lamp was lit [0:01].");
    assert_eq!(events[2].1["response"], json!(spoken));
    assert_eq!(remaining_credits(&server, &key).await?, 199);
    Ok(())
}
