//! The same through the built server: what an answer costs, and what a failure does.

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::streamed;
use crate::{
    server::{
        harness::{Reply as Answer, Server, run, verbatim},
        v1::post::{Outbox, account, credits},
    },
    speech::service::{Reply, Service},
};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/lighthouse.vtt");

async fn ask(server: &Server, key: &str, message: &str) -> Result<Answer> {
    let body = json!({ "video_id": "L1ghth0use1", "message": message }).to_string();
    let bearer = format!("Bearer {key}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    server.send(Method::POST, "/api/v1/chat", &headers, body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_costs_a_credit_and_a_failure_none() -> Result<()> {
    let service = Service::start(|seen, _| {
        let asked = String::from_utf8_lossy(&seen.body).into_owned();
        let asks = |word: &str| asked.contains(&format!("Question: {word}"));
        match () {
            () if asks("html") => Reply::Answer(200, "content-type: text/html\r\n", "<html>".to_owned()),
            () if asks("garbage") => Reply::Answer(200, "", "\u{2}{".to_owned()),
            () if asks("large") => Reply::Answer(200, "", "a".repeat(10 << 20)),
            () if asks("never") => Reply::Never,
            () if asks("fault") => Reply::Answer(500, "", "hush".to_owned()),
            () if asks("nothing") => streamed(&[""]),
            () if asks("invent") => {
                streamed(&["\"It took seven summers to build it\" [s1]. I made it up [2:34]."])
            }
            () => streamed(&["It took long: \"it took nine winters\" [s1]."]),
        }
    })
    .await?;
    let data = TempDir::new()?;
    let import = ["import", EXAMPLE, "--video", "https://youtu.be/L1ghth0use1", "--lang", "en"];
    ensure!(run(verbatim(data.path(), &import), b"")?.status.success(), "the example is imported");
    let mut outbox = Outbox::of(&data);
    let settings = [
        ("VERBATIM_CHAT__BASE_URL", service.base_url.as_str()),
        ("VERBATIM_CHAT__MODEL", "small"),
        ("VERBATIM_CHAT__TIMEOUT", "3s"),
        ("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "1000"),
    ];
    let server = Server::start(&data, &settings)?;
    let key = account(&server, &mut outbox, "ann@example.org").await?;

    let answer = ask(&server, &key, "How long?").await?;
    ensure!(answer.status == 200, "{}", answer.text());
    let told = answer.json();
    assert_eq!(told["response"], "It took long: “It took nine winters” [0:04].");
    assert_eq!(told["credits"], json!({ "used": 1, "limit": 200, "remaining": 199 }));
    assert_eq!(told["citations"][0]["url"], "https://www.youtube.com/watch?v=L1ghth0use1&t=4s");

    for fault in ["html", "garbage", "large", "never", "fault", "nothing"] {
        let answer = ask(&server, &key, fault).await?;
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["code"]),
            (500, &json!(500)),
            "{fault}: {}",
            answer.text()
        );
        assert!(
            answer.text().contains("nothing was charged") && !answer.text().contains("hush"),
            "{}",
            answer.text()
        );
        assert_eq!(credits(&server, &key).await?, 199, "{fault}");
    }
    // What cannot be verified is not what leaves; an answer there is, from the transcript.
    let answer = ask(&server, &key, "invent a story of the lighthouse").await?;
    let response = answer.json()["response"].as_str().unwrap_or("").to_owned();
    assert!(response.starts_with('“') && response.contains("lighthouse"), "{response}");
    assert!(!response.contains("summers") && !response.contains("2:34"), "{response}");
    assert_eq!(credits(&server, &key).await?, 198);
    assert_eq!(answer.json()["citations"].as_array().map_or(0, Vec::len), markers(&response));
    Ok(())
}

/// How many moments a response names.
fn markers(response: &str) -> usize {
    response.matches('[').count()
}

#[tokio::test(flavor = "multi_thread")]
async fn sentences_leave_one_by_one() -> Result<()> {
    let service = Service::start(|_, _| {
        streamed(&["It took nine winters [s1]. ", "Nobody said this. ", "\nThe lamp was lit [s1]."])
    })
    .await?;
    let data = TempDir::new()?;
    let import = ["import", EXAMPLE, "--video", "https://youtu.be/L1ghth0use1", "--lang", "en"];
    ensure!(run(verbatim(data.path(), &import), b"")?.status.success(), "the example is imported");
    let mut outbox = Outbox::of(&data);
    let settings =
        [("VERBATIM_CHAT__BASE_URL", service.base_url.as_str()), ("VERBATIM_CHAT__MODEL", "small")];
    let server = Server::start(&data, &settings)?;
    let key = account(&server, &mut outbox, "ann@example.org").await?;
    let bearer = format!("Bearer {key}");
    let headers = [("authorization", bearer.as_str()), ("accept", "text/event-stream")];
    let body = json!({ "video_id": "L1ghth0use1", "message": "How long?" }).to_string();
    let told = server.send(Method::POST, "/api/v1/chat", &headers, body).await?;
    ensure!(told.header("content-type") == "text/event-stream", "{}", told.text());
    let events: Vec<(String, Value)> = told
        .text()
        .split_terminator("\n\n")
        .filter_map(|event| event.split_once("\ndata: "))
        .map(|(name, data)| Ok((name.to_owned(), serde_json::from_str(data)?)))
        .collect::<Result<_>>()?;
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["event: sentence", "event: sentence", "event: answer"]);
    let said: String = events.iter().filter_map(|(_, data)| data["text"].as_str()).collect();
    assert_eq!(said, "It took nine winters [0:01].\nThe lamp was lit [0:01].");
    assert_eq!(events[2].1["response"], json!(said));
    assert_eq!(credits(&server, &key).await?, 199);
    Ok(())
}
