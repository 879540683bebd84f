//! Charges of clients that disconnect during an answer, also when the model fails.

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

use super::{EVENTS, event, stream_end, stream_start};
use crate::{
    server::{
        harness::{ServerFixture, import_example, run_ok, verbatim},
        v1::mail_client::{MailClient, create_account, remaining_credits},
    },
    service::fake::{FakeReply, FakeService},
};

const ADDRESS: &str = "ann@example.org";
/// The header line that selects a stream.
const EVENT_STREAM: &str = "accept: text/event-stream\r\n";
/// Upper bound of every wait.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A server with an account, configured for a chat service.
struct DisconnectFixture {
    data: TempDir,
    server: ServerFixture,
    key: String,
}

impl DisconnectFixture {
    async fn start(service: &FakeService) -> Result<Self> {
        let data = TempDir::new()?;
        import_example(&data, "https://youtu.be/L1ghth0use1")?;
        let settings = [
            ("VERBATIM_CHAT__BASE_URL", service.base_url.as_str()),
            ("VERBATIM_CHAT__MODEL", "small"),
            ("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "1000"),
        ];
        let server = ServerFixture::start(&data, &settings)?;
        let key = create_account(&server, &mut MailClient::new(&data), ADDRESS).await?;
        Ok(Self { data, server, key })
    }

    /// Sends a chat request for a stream with these further header lines.
    async fn send_chat(&self, header_lines: &str) -> Result<TcpStream> {
        self.send_request(&format!("{EVENT_STREAM}{header_lines}")).await
    }

    /// Sends a chat request with these further header lines.
    async fn send_request(&self, header_lines: &str) -> Result<TcpStream> {
        let mut stream = TcpStream::connect(self.server.address()).await?;
        let body = json!({ "video_id": "L1ghth0use1", "message": "How long?" }).to_string();
        let head = format!(
            "POST /api/v1/chat HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
             connection: close\r\n{header_lines}content-length: {}\r\n\r\n",
            self.key,
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).await?;
        Ok(stream)
    }

    /// The kinds of the account's ledger entries, oldest first.
    fn entry_kinds(&self) -> Result<Vec<String>> {
        let exported = run_ok(verbatim(self.data.path(), &["accounts", "export", ADDRESS]), b"")?;
        let received: Value = serde_json::from_str(&exported)?;
        let entry_kinds = received["statement"].as_array().cloned().unwrap_or_default();
        Ok(entry_kinds.iter().filter_map(|step| step["step"].as_str().map(str::to_owned)).collect())
    }

    /// Waits until a hold has ended; returns the kind of its end and the remaining credits.
    async fn wait_for_hold_end(&self) -> Result<(String, u64)> {
        let deadline = Instant::now() + TIMEOUT;
        while Instant::now() < deadline {
            if let Some(end) =
                self.entry_kinds()?.into_iter().find(|kind| kind == "spent" || kind == "returned")
            {
                return Ok((end, remaining_credits(&self.server, &self.key).await?));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        bail!("the hold did not end")
    }
}

/// Reads until the text `wanted` was received; returns everything received.
async fn read_until(stream: &mut TcpStream, wanted: &str) -> Result<String> {
    let mut bytes = Vec::new();
    let reading = async {
        while !String::from_utf8_lossy(&bytes).contains(wanted) {
            ensure!(
                stream.read_buf(&mut bytes).await? > 0,
                "stream ended: {}",
                String::from_utf8_lossy(&bytes)
            );
        }
        Ok(())
    };
    tokio::time::timeout(TIMEOUT, reading).await??;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

const FIRST: &[&str] = &["It took nine winters [s1]. ", "The lamp"];

#[tokio::test(flavor = "multi_thread")]
async fn disconnect_after_sentence_is_charged() -> Result<()> {
    let never = Arc::new(Semaphore::new(0));
    let service = FakeService::start(move |_, _| {
        FakeReply::Partial(EVENTS, stream_start(FIRST), Arc::clone(&never), None)
    })
    .await?;
    let fixture = DisconnectFixture::start(&service).await?;
    let mut stream = fixture.send_chat("").await?;
    let received = read_until(&mut stream, "event: sentence\ndata: ").await?;
    assert!(received.starts_with("HTTP/1.1 200 "), "{received}");
    drop(stream);
    assert_eq!(fixture.wait_for_hold_end().await?, ("spent".to_owned(), 199));
    Ok(())
}

/// A model that sends the beginning of an answer, and the rest once the semaphore has a permit.
async fn start_gated_service() -> Result<(FakeService, Arc<Semaphore>)> {
    let go_on = Arc::new(Semaphore::new(0));
    let gate = Arc::clone(&go_on);
    let rest = || {
        event(&json!({ "choices": [{ "index": 0, "delta": { "content": " was lit [s1]." } }] }))
            + &stream_end()
    };
    let service = FakeService::start(move |_, _| {
        FakeReply::Partial(EVENTS, stream_start(FIRST), Arc::clone(&gate), Some(rest()))
    })
    .await?;
    Ok((service, go_on))
}

/// Waits until the service has received a request.
async fn wait_for_model_call(service: &FakeService) -> Result<()> {
    let deadline = Instant::now() + TIMEOUT;
    while service.requests().is_empty() {
        ensure!(Instant::now() < deadline, "the service received no request");
        tokio::task::yield_now().await;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn disconnect_after_model_call_is_charged() -> Result<()> {
    for accept in [EVENT_STREAM, ""] {
        // The model has begun a sentence, which is verified only when it is complete.
        let never = Arc::new(Semaphore::new(0));
        let begins = move |_: &_, _| {
            FakeReply::Partial(EVENTS, stream_start(&["It took nine"]), Arc::clone(&never), None)
        };
        let service = FakeService::start(begins).await?;
        let fixture = DisconnectFixture::start(&service).await?;
        let stream = fixture.send_request(accept).await?;
        wait_for_model_call(&service).await?;
        drop(stream);
        assert_eq!(fixture.wait_for_hold_end().await?, ("spent".to_owned(), 199));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn model_failure_during_answer_is_free() -> Result<()> {
    // The model fails after the first sentence has arrived: at the same time both results would be right.
    let arrived = Arc::new(Semaphore::new(0));
    let breaks_off = Arc::clone(&arrived);
    let service = FakeService::start(move |_, before| match before {
        0 => FakeReply::Partial(EVENTS, stream_start(FIRST), Arc::clone(&breaks_off), None),
        _ => FakeReply::new(401, "", ""),
    })
    .await?;
    let fixture = DisconnectFixture::start(&service).await?;
    let mut stream = fixture.send_chat("").await?;
    let mut received = read_until(&mut stream, "event: sentence\ndata: ").await?;
    arrived.add_permits(1);
    received += &read_until(&mut stream, "event: error\ndata: ").await?;
    assert!(
        received.contains("It took nine winters [0:01].") && !received.contains("event: answer"),
        "{received}"
    );
    assert_eq!(fixture.wait_for_hold_end().await?, ("returned".to_owned(), 200));
    // Before the first sentence a failure is a plain response.
    let received = read_until(&mut fixture.send_chat("").await?, "Nothing was charged").await?;
    assert!(received.starts_with("HTTP/1.1 500 ") && received.contains("application/json"), "{received}");
    assert_eq!(remaining_credits(&fixture.server, &fixture.key).await?, 200);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn answer_after_disconnect_is_replayed() -> Result<()> {
    let (service, go_on) = start_gated_service().await?;
    let fixture = DisconnectFixture::start(&service).await?;
    let named = "idempotency-key: once\r\n";
    read_until(&mut fixture.send_chat(named).await?, "event: sentence\ndata: ").await?;
    go_on.add_permits(1);
    assert_eq!(fixture.wait_for_hold_end().await?, ("spent".to_owned(), 199));
    let received = read_until(&mut fixture.send_chat(named).await?, "was lit [0:01].").await?;
    assert!(
        received.contains("idempotent-replayed: true") && received.contains("nine winters [0:01]."),
        "{received}"
    );
    assert_eq!((remaining_credits(&fixture.server, &fixture.key).await?, service.requests().len()), (199, 1));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn json_answer_after_disconnect_is_replayed() -> Result<()> {
    let (service, go_on) = start_gated_service().await?;
    let fixture = DisconnectFixture::start(&service).await?;
    let named = "idempotency-key: once\r\n";
    let stream = fixture.send_request(named).await?;
    wait_for_model_call(&service).await?;
    drop(stream);
    go_on.add_permits(1);
    assert_eq!(fixture.wait_for_hold_end().await?, ("spent".to_owned(), 199));
    let received = read_until(&mut fixture.send_request(named).await?, "was lit [0:01].").await?;
    assert!(received.contains("idempotent-replayed: true"), "{received}");
    assert_eq!((remaining_credits(&fixture.server, &fixture.key).await?, service.requests().len()), (199, 1));
    Ok(())
}
