//! What an answer costs whoever leaves while it is told, and what a model's failure does then.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::Semaphore,
};

use super::{EVENTS, begun, ended, event};
use crate::{
    server::{
        harness::{Server, run, verbatim},
        v1::post::{Outbox, account, credits},
    },
    speech::service::{Reply, Service},
};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/lighthouse.vtt");
const ADDRESS: &str = "ann@example.org";
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server with an account, before a chat service.
struct Stage {
    data: TempDir,
    server: Server,
    key: String,
}

impl Stage {
    async fn before(service: &Service) -> Result<Self> {
        let data = TempDir::new()?;
        let import = ["import", EXAMPLE, "--video", "https://youtu.be/L1ghth0use1", "--lang", "en"];
        ensure!(run(verbatim(data.path(), &import), b"")?.status.success(), "the example is imported");
        let mut outbox = Outbox::of(&data);
        let settings = [
            ("VERBATIM_CHAT__BASE_URL", service.base_url.as_str()),
            ("VERBATIM_CHAT__MODEL", "small"),
            ("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "1000"),
        ];
        let server = Server::start(&data, &settings)?;
        let key = account(&server, &mut outbox, ADDRESS).await?;
        Ok(Self { data, server, key })
    }

    /// Asks, with these further lines in the request's head.
    async fn ask(&self, lines: &str) -> Result<TcpStream> {
        let mut stream = TcpStream::connect(self.server.address()).await?;
        let body = json!({ "video_id": "L1ghth0use1", "message": "How long?" }).to_string();
        let head = format!(
            "POST /api/v1/chat HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
             accept: text/event-stream\r\nconnection: close\r\n{lines}content-length: {}\r\n\r\n",
            self.key,
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).await?;
        Ok(stream)
    }

    /// What became of the account's credits: the kinds of its steps, oldest first, without the plan's own.
    fn steps(&self) -> Result<Vec<String>> {
        let output = run(verbatim(self.data.path(), &["accounts", "export", ADDRESS]), b"")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let told: Value = serde_json::from_slice(&output.stdout)?;
        let steps = told["statement"].as_array().cloned().unwrap_or_default();
        Ok(steps.iter().filter_map(|step| step["step"].as_str().map(str::to_owned)).collect())
    }

    /// Waits until a hold came to its end; returns how, and what is left.
    async fn end_of_hold(&self) -> Result<(String, u64)> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(end) = self.steps()?.into_iter().find(|kind| kind == "spent" || kind == "returned") {
                return Ok((end, credits(&self.server, &self.key).await?));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        bail!("nothing became of the hold")
    }
}

/// Reads until a text was there; returns all that was.
async fn read_until(stream: &mut TcpStream, wanted: &str) -> Result<String> {
    let mut bytes = Vec::new();
    let reading = async {
        while !String::from_utf8_lossy(&bytes).contains(wanted) {
            ensure!(stream.read_buf(&mut bytes).await? > 0, "it ended: {}", String::from_utf8_lossy(&bytes));
        }
        Ok(())
    };
    tokio::time::timeout(PATIENCE, reading).await??;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

const FIRST: &[&str] = &["It took nine winters [s1]. ", "The lamp"];

#[tokio::test(flavor = "multi_thread")]
async fn whoever_leaves_after_a_sentence_has_paid() -> Result<()> {
    let never = Arc::new(Semaphore::new(0));
    let service =
        Service::start(move |_, _| Reply::Begun(EVENTS, begun(FIRST), Arc::clone(&never), None)).await?;
    let stage = Stage::before(&service).await?;
    let mut stream = stage.ask("").await?;
    let told = read_until(&mut stream, "event: sentence\ndata: ").await?;
    assert!(told.starts_with("HTTP/1.1 200 "), "{told}");
    drop(stream);
    assert_eq!(stage.end_of_hold().await?, ("spent".to_owned(), 199));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_leaves_before_the_first_sentence_pays_nothing() -> Result<()> {
    // It has begun a sentence, which is verified when it has ended.
    let never = Arc::new(Semaphore::new(0));
    let begins = move |_: &_, _| Reply::Begun(EVENTS, begun(&["It took nine"]), Arc::clone(&never), None);
    let service = Service::start(begins).await?;
    let stage = Stage::before(&service).await?;
    let stream = stage.ask("").await?;
    let until = Instant::now() + PATIENCE;
    while service.seen().is_empty() {
        ensure!(Instant::now() < until, "the service is asked");
        tokio::task::yield_now().await;
    }
    drop(stream);
    assert_eq!(stage.end_of_hold().await?, ("returned".to_owned(), 200));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_breaks_off_costs_nothing() -> Result<()> {
    // It breaks off once the first sentence has arrived: at the same moment either would be a right answer.
    let arrived = Arc::new(Semaphore::new(0));
    let breaks_off = Arc::clone(&arrived);
    let service = Service::start(move |_, before| match before {
        0 => Reply::Begun(EVENTS, begun(FIRST), Arc::clone(&breaks_off), None),
        _ => Reply::Answer(401, "", String::new()),
    })
    .await?;
    let stage = Stage::before(&service).await?;
    let mut stream = stage.ask("").await?;
    let mut told = read_until(&mut stream, "event: sentence\ndata: ").await?;
    arrived.add_permits(1);
    told += &read_until(&mut stream, "event: error\ndata: ").await?;
    assert!(told.contains("It took nine winters [0:01].") && !told.contains("event: answer"), "{told}");
    assert_eq!(stage.end_of_hold().await?, ("returned".to_owned(), 200));
    // Before the first sentence a failure is an answer of its own.
    let told = read_until(&mut stage.ask("").await?, "nothing was charged").await?;
    assert!(told.starts_with("HTTP/1.1 500 ") && told.contains("application/json"), "{told}");
    assert_eq!(credits(&stage.server, &stage.key).await?, 200);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_left_is_there_for_a_repeat() -> Result<()> {
    let go_on = Arc::new(Semaphore::new(0));
    let gate = Arc::clone(&go_on);
    let rest = || {
        event(&json!({ "choices": [{ "index": 0, "delta": { "content": " was lit [s1]." } }] })) + &ended()
    };
    let service =
        Service::start(move |_, _| Reply::Begun(EVENTS, begun(FIRST), Arc::clone(&gate), Some(rest())))
            .await?;
    let stage = Stage::before(&service).await?;
    let named = "idempotency-key: once\r\n";
    read_until(&mut stage.ask(named).await?, "event: sentence\ndata: ").await?;
    go_on.add_permits(1);
    assert_eq!(stage.end_of_hold().await?, ("spent".to_owned(), 199));
    let told = read_until(&mut stage.ask(named).await?, "was lit [0:01].").await?;
    assert!(told.contains("idempotent-replayed: true") && told.contains("nine winters [0:01]."), "{told}");
    assert_eq!((credits(&stage.server, &stage.key).await?, service.seen().len()), (199, 1));
    Ok(())
}
