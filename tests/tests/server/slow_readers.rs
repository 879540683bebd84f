//! Clients that request large responses and read one byte a second: they are disconnected, and others are served.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    io::AsyncReadExt,
    net::TcpStream,
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    bounds::{LOOKUP, VIDEO, import_large_transcript, memory_mib, request_unread},
    harness::{ServerFixture, import_example, wait_until},
    operations::{ObservedServer, ScrapedFigures},
    v1::mail_client::{MailClient, create_account},
};

const READERS: usize = 60;
/// 30 seconds behind the minimum rate, and time for a busy machine.
const DISCONNECT_MAX: Duration = Duration::from_secs(90);
const BUDGET_MIB: u64 = 32;

/// Requests the large transcript over a connection with a small receive buffer; returns it and the length of the
/// body, or `None` if the server has no memory for it.
async fn request_large(address: &str, key: &str) -> Result<Option<(TcpStream, usize)>> {
    let (stream, head) = request_unread(address, LOOKUP, &format!("Authorization: Bearer {key}\r\n")).await?;
    let head = head.to_ascii_lowercase();
    if head.starts_with("http/1.1 503 ") {
        ensure!(head.contains("\r\nretry-after: "), "{head}");
        return Ok(None);
    }
    ensure!(head.starts_with("http/1.1 200 "), "{head}");
    let length = head.split_once("\r\ncontent-length: ").context("no length")?.1;
    Ok(Some((stream, length.split("\r\n").next().context("no length")?.parse()?)))
}

/// Reads one byte a second for as long as the server serves the connection, then the rest; returns the number of bytes.
async fn read_slowly(mut stream: TcpStream, is_served: tokio::sync::watch::Receiver<bool>) -> usize {
    let mut read = 0;
    while *is_served.borrow() && stream.read_u8().await.is_ok() {
        read += 1;
        sleep(Duration::from_secs(1)).await;
    }
    // What the kernels have buffered still arrives.
    let mut rest = vec![0; 64 * 1024];
    while let Ok(Ok(count @ 1..)) = timeout(Duration::from_secs(20), stream.read(&mut rest)).await {
        read += count;
    }
    read
}

/// The reserved memory in bytes, which is never above the budget.
fn body_memory(figures: &ScrapedFigures) -> Result<u64> {
    let [used, limit] = ["verbatim_body_memory_bytes", "verbatim_body_memory_limit_bytes"]
        .map(|name| figures.sum(name, &[]) as u64);
    ensure!(limit == BUDGET_MIB << 20 && used <= limit, "{used} of {limit} bytes");
    Ok(used)
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_of_one_byte_per_second_are_disconnected() -> Result<()> {
    let data = TempDir::new()?;
    import_large_transcript(&data)?;
    let budget = format!("{BUDGET_MIB}MiB");
    // The first indexing of the transcript takes memory too; this test measures responses.
    let settings = [("VERBATIM_SERVER__BODY_MEMORY", budget.as_str()), ("VERBATIM_SEARCH__ACCESS", "off")];
    let observed = ObservedServer::start(&data, &settings).await?;
    let server = &observed.server;
    // A response with the usage of a key is not shared.
    let key = server.send(Method::POST, "/api/keys", &[], "").await?;
    let key = key.json()["key"].as_str().context("no key")?.to_owned();
    let (before, _) = memory_mib(server)?;
    let (served, is_served) = tokio::sync::watch::channel(true);
    let (mut readers, mut lengths, mut refused) = (JoinSet::new(), 0, 0);
    for _ in 0..READERS {
        match request_large(server.address(), &key).await? {
            Some((stream, length)) => {
                lengths += length;
                readers.spawn(read_slowly(stream, is_served.clone()));
            }
            None => refused += 1,
        }
    }
    let count = readers.len();
    ensure!(count > 0 && refused > 0, "{count} served, {refused} refused");
    let start = Instant::now();
    let most = body_memory(&observed.scrape().await?)?;
    ensure!(most > 0, "the responses are not counted");
    loop {
        // Another caller is served at any time.
        for path in ["/health", "/api/transcript?v=dyke-walk-0"] {
            let reply = timeout(Duration::from_secs(30), server.get(path)).await.context(path)??;
            ensure!(reply.status == 200, "{path}: {}", reply.text());
        }
        if body_memory(&observed.scrape().await?)? == 0 {
            break;
        }
        ensure!(start.elapsed() < DISCONNECT_MAX, "a slow reader is still connected");
        sleep(Duration::from_secs(1)).await;
    }
    let (_, peak) = memory_mib(server)?;
    eprintln!(
        "{count} slow readers, {refused} got 503: {} KiB buffered, disconnected after {:.0} s; {before} MiB before, \
         {peak} MiB peak",
        most / 1024,
        start.elapsed().as_secs_f64()
    );
    ensure!(peak < before + 100, "{before} MiB before, {peak} MiB at the peak");
    served.send(false)?;
    let read: usize = readers.join_all().await.into_iter().sum();
    ensure!(read < lengths, "every response was delivered: {read} bytes");
    Ok(())
}

/// Opens connections that take all memory of requests outside the v1 API, and do not read.
async fn exhaust_memory(server: &ServerFixture, key: &str) -> Result<Vec<TcpStream>> {
    let mut streams = Vec::new();
    while let Some((stream, _)) = request_large(server.address(), key).await? {
        streams.push(stream);
    }
    Ok(streams)
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_are_served_while_others_use_all_their_memory() -> Result<()> {
    const OTHER: &str = "dyke-walk-1";
    let data = TempDir::new()?;
    import_large_transcript(&data)?;
    import_example(&data, OTHER)?;
    let budget = format!("{BUDGET_MIB}MiB");
    let settings = [
        ("VERBATIM_SERVER__BODY_MEMORY", budget.as_str()),
        ("VERBATIM_SEARCH__ACCESS", "off"),
        ("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "100000"),
    ];
    let server = ServerFixture::start(&data, &settings)?;
    let account = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let job = server.post_as(&account, "/api/v1/jobs", json!({ "urls": [VIDEO] }).to_string()).await?;
    ensure!(job.status == 202, "{}", job.text());
    let job = format!("/api/v1/jobs/{}", job.json()["job_id"].as_str().context("no job_id")?);
    wait_until("the job is not completed", async || {
        Ok(server.get_as(&account, &job).await?.json()["status"] == "completed")
    })
    .await?;
    // The first request caches what the query selects.
    let transcript = format!("/api/v1/transcript?video_id={VIDEO}");
    ensure!(server.get_as(&account, &transcript).await?.status == 200);
    let key = server.send(Method::POST, "/api/keys", &[], "").await?;
    let key = key.json()["key"].as_str().context("no key")?.to_owned();

    let streams = exhaust_memory(&server, &key).await?;
    for encoding in ["gzip", "identity"] {
        let headers = [("accept-encoding", encoding)];
        let reply = server.send_as(&account, Method::GET, &transcript, &headers, "").await?;
        ensure!(reply.status == 200 && reply.body.len() > 1_000_000, "{encoding}: {}", reply.status);
    }
    let turn = json!({ "role": "user", "content": "a".repeat(2_000) });
    let question =
        json!({ "video_id": OTHER, "message": "Where is it?", "conversation_history": vec![turn; 10] });
    let reply = server.post_as(&account, "/api/v1/chat", question.to_string()).await?;
    ensure!(reply.status == 200, "{}", reply.text());
    let files = server.get_as(&account, &format!("{job}/results?format=text")).await?;
    ensure!(files.status == 200 && files.body.len() > 1_000_000, "{}", files.status);
    drop(streams);
    Ok(())
}
