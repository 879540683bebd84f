//! Bounds of memory and connections: many bodies, slow readers, one network, and the file limit.

use std::{
    fmt::Write as _,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use futures_util::future::try_join_all;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    time::timeout,
};

use super::{
    harness::{ServerFixture, binary, run_ok, verbatim, wait_until},
    operations::ObservedServer,
    v1::mail_client::{MailClient, create_account},
};

/// Video of the large transcript.
pub(crate) const VIDEO: &str = "L1ghth0use1";
pub(crate) const LOOKUP: &str = "/api/transcript?url=https://youtu.be/L1ghth0use1";
/// Time until a response that the server sends at once.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

/// Resident memory of a process, in MiB: now, and the peak.
pub(crate) fn memory_mib(server: &ServerFixture) -> Result<(u64, u64)> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid()))?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).context("no such field")?;
        anyhow::Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? / 1024)
    };
    Ok((field("VmRSS:")?, field("VmHWM:")?))
}

/// Archives a transcript of [`LOOKUP`] whose response has several megabytes and compresses by half at most.
pub(crate) fn import_large_transcript(data: &TempDir) -> Result<()> {
    let mut srt = String::new();
    let mut word = 1_u32;
    for second in 0..30_000 {
        let time = |s: u32| format!("{:02}:{:02}:{:02},000", s / 3600, s / 60 % 60, s % 60);
        write!(srt, "{}\n{} --> {}\n", second + 1, time(second), time(second + 1))?;
        for _ in 0..12 {
            word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            write!(srt, "{word:08x} ")?;
        }
        srt.push_str("\n\n");
    }
    let import = ["import", "-", "--video", VIDEO, "--lang", "en"];
    run_ok(verbatim(data.path(), &import), srt.as_bytes()).map(drop)
}

/// Reads the head of a response.
async fn head(stream: &mut TcpStream) -> Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let byte = timeout(RESPONSE_TIMEOUT, stream.read_u8()).await.context("no response")??;
        head.push(byte);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// Sends a GET request with these header lines over a connection with a small receive buffer; returns the connection
/// and the head of the response, whose body is not read.
pub(crate) async fn request_unread(address: &str, path: &str, headers: &str) -> Result<(TcpStream, String)> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(4 * 1024)?;
    let mut stream = socket.connect(address.parse()?).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await?;
    let head = head(&mut stream).await?;
    Ok((stream, head))
}

fn count(texts: &[String], start: &str) -> usize {
    texts.iter().filter(|text| text.starts_with(start)).count()
}

/// The head is enough for a 401: a body that never ends is not waited for, and takes no memory.
#[tokio::test(flavor = "multi_thread")]
async fn v1_without_valid_key_is_refused_before_body() -> Result<()> {
    let data = TempDir::new()?;
    let server = ServerFixture::start(&data, &[])?;
    for path in ["/api/v1/chat", "/api/v1/subscribe", "/api/v1/buy-credits"] {
        for authorization in ["", "Authorization: Bearer vba_0\r\n"] {
            let mut stream = TcpStream::connect(server.address()).await?;
            let request = format!(
                "POST {path} HTTP/1.1\r\nHost: localhost\r\n{authorization}Content-Length: 9000\r\n\r\n{{"
            );
            stream.write_all(request.as_bytes()).await?;
            let head = head(&mut stream).await.context(path)?;
            ensure!(head.starts_with("HTTP/1.1 401 "), "{path}: {head}");
            ensure!(head.to_ascii_lowercase().contains("\r\nconnection: close\r\n"), "{path}: {head}");
        }
    }
    Ok(())
}

/// 600 connections send a quarter of a megabyte each, and never the last byte.
///
/// Prints the memory; see decision 0053.
#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_many_connections_take_bounded_memory() -> Result<()> {
    const CONNECTIONS: usize = 600;
    let data = TempDir::new()?;
    let settings =
        [("VERBATIM_SERVER__BODY_MEMORY", "8MiB"), ("VERBATIM_SERVER__CONNECTIONS_PER_NETWORK", "1000")];
    let server = ServerFixture::start(&data, &settings)?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let (before, _) = memory_mib(&server)?;
    let body = "a".repeat(250 * 1024);
    for authorization in [String::new(), format!("Authorization: Bearer {key}\r\n")] {
        let head = format!(
            "POST /api/v1/chat HTTP/1.1\r\nHost: localhost\r\n{authorization}Content-Length: {}\r\n\r\n",
            body.len() + 1
        );
        let mut streams = Vec::new();
        for _ in 0..CONNECTIONS {
            let mut stream = TcpStream::connect(server.address()).await?;
            stream.write_all(head.as_bytes()).await?;
            // The server may refuse before everything is sent.
            let _ = timeout(Duration::from_millis(200), stream.write_all(body.as_bytes())).await;
            streams.push(stream);
        }
        let mut heads = Vec::new();
        for stream in &mut streams {
            let mut start = [0; 12];
            let read = timeout(RESPONSE_TIMEOUT, stream.read_exact(&mut start)).await;
            ensure!(read.is_ok(), "a request without a response");
            heads.push(String::from_utf8_lossy(&start).into_owned());
        }
        let (now, peak) = memory_mib(&server)?;
        let limited = count(&heads, "HTTP/1.1 503");
        eprintln!(
            "{CONNECTIONS} bodies: {before} MiB before, {now} MiB now, {peak} MiB peak; {limited} got 503"
        );
        ensure!(peak < before + 150, "{before} MiB before, {peak} MiB at the peak");
        match authorization.is_empty() {
            true => ensure!(count(&heads, "HTTP/1.1 401") == CONNECTIONS, "{heads:?}"),
            false => ensure!(limited > 0, "{heads:?}"),
        }
    }
    ensure!(server.get("/health").await?.status == 200);
    Ok(())
}

/// Connections request a large response each and do not read it.
///
/// Prints the memory; see decision 0053.
#[tokio::test(flavor = "multi_thread")]
async fn large_responses_that_are_not_read_take_bounded_memory() -> Result<()> {
    const READERS: usize = 40;
    let data = TempDir::new()?;
    import_large_transcript(&data)?;
    // The first indexing of the transcript takes memory too; this test measures responses.
    let settings = [("VERBATIM_SERVER__BODY_MEMORY", "32MiB"), ("VERBATIM_SEARCH__ACCESS", "off")];
    let server = ServerFixture::start(&data, &settings)?;
    // A response with the usage of a key is not shared.
    let reply = server.send(http::Method::POST, "/api/keys", &[], "").await?;
    let key = reply.json()["key"].as_str().context("no key")?.to_owned();
    let (before, _) = memory_mib(&server)?;
    let (mut streams, mut heads) = (Vec::new(), Vec::new());
    let authorization = format!("Authorization: Bearer {key}\r\n");
    for _ in 0..READERS {
        let (stream, head) = request_unread(server.address(), LOOKUP, &authorization).await?;
        heads.push(head);
        streams.push(stream);
    }
    let (now, peak) = memory_mib(&server)?;
    let (sent, refused) = (count(&heads, "HTTP/1.1 200"), count(&heads, "HTTP/1.1 503"));
    eprintln!(
        "{READERS} readers: {before} MiB before, {now} MiB now, {peak} MiB peak; {sent} served, {refused} got 503"
    );
    ensure!(sent > 0 && sent + refused == READERS, "{sent} served, {refused} refused");
    ensure!(refused > 0 && peak < before + 100, "{before} MiB before, {peak} MiB at the peak");
    let busy = heads.iter().find(|head| head.starts_with("HTTP/1.1 503")).context("no 503")?;
    let busy = busy.to_ascii_lowercase();
    for header in ["\r\nretry-after: ", "\r\naccess-control-allow-origin: *"] {
        ensure!(busy.contains(header), "{busy}");
    }
    // Small responses take nothing from the budget, and the memory returns with the connections.
    ensure!(server.get("/api/transcript?v=dyke-walk-0").await?.status == 200);
    drop(streams);
    wait_until("the memory is not returned", async || Ok(server.get(LOOKUP).await?.status == 200)).await
}

/// Requests for parts of a long transcript, each another one: few of them hold the decoded transcript at a time.
///
/// Prints the memory; see decision 0053.
#[tokio::test(flavor = "multi_thread")]
async fn views_of_long_transcript_take_bounded_memory() -> Result<()> {
    const REQUESTS: usize = 200;
    let data = TempDir::new()?;
    import_large_transcript(&data)?;
    // Indexing the transcript takes memory too; this test measures responses.
    let server = ServerFixture::start(&data, &[("VERBATIM_SEARCH__ACCESS", "off")])?;
    let page = |length: usize| format!("{LOOKUP}&maxChars={length}");
    ensure!(server.get(&page(1_000)).await?.status == 200);
    let (before, _) = memory_mib(&server)?;
    let views = (1..=REQUESTS).map(|n| page(1_000 + n));
    let statuses = try_join_all(views.map(async |view| anyhow::Ok(server.get(&view).await?.status))).await?;
    let (_, peak) = memory_mib(&server)?;
    eprintln!("{REQUESTS} views: {before} MiB before, {peak} MiB peak");
    // On a busy machine some wait too long for a place.
    let served = statuses.iter().filter(|status| **status == 200).count();
    let refused = statuses.iter().filter(|status| **status == 503).count();
    ensure!(served > 0 && served + refused == REQUESTS, "{statuses:?}");
    // Sixteen at a time take about 8 MiB each. All of them took a gigabyte.
    ensure!(peak < before + 200, "{before} MiB before, {peak} MiB at the peak");
    Ok(())
}

/// Connects from another address of the loopback network.
async fn connect_from(server: &ServerFixture, source: u8) -> Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, source)), 0))?;
    Ok(socket.connect(server.address().parse()?).await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_of_one_network_are_limited() -> Result<()> {
    let data = TempDir::new()?;
    let settings = [
        ("VERBATIM_SERVER__CONNECTIONS_PER_NETWORK", "3"),
        ("VERBATIM_SERVER__TRUSTED_PROXIES", "127.0.0.9"),
    ];
    let server = ServerFixture::start(&data, &settings)?;
    let health = async |stream: &mut TcpStream| {
        stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").await?;
        head(stream).await
    };
    let mut open = Vec::new();
    for _ in 0..3 {
        let mut stream = connect_from(&server, 1).await?;
        ensure!(health(&mut stream).await?.starts_with("HTTP/1.1 200 "));
        open.push(stream);
    }
    let mut refused = connect_from(&server, 1).await?;
    ensure!(health(&mut refused).await.is_err(), "a fourth connection was served");
    // Neither another network nor a trusted proxy is affected.
    ensure!(health(&mut connect_from(&server, 2).await?).await?.starts_with("HTTP/1.1 200 "));
    for _ in 0..6 {
        let mut stream = connect_from(&server, 9).await?;
        ensure!(health(&mut stream).await?.starts_with("HTTP/1.1 200 "));
        open.push(stream);
    }
    open.remove(0);
    wait_until("a closed connection is still counted", async || {
        let mut stream = connect_from(&server, 1).await?;
        Ok(health(&mut stream).await.is_ok())
    })
    .await
}

/// The first line of a server's log that contains a text.
async fn log_line(limits: &str, settings: &[(&str, &str)], text: &str) -> Result<String> {
    let data = TempDir::new()?;
    let mut command = Command::new("sh");
    let script = format!("{limits} && exec \"$0\" serve --listen 127.0.0.1:0 --data \"$1\"");
    command.args(["-c", &script]).arg(binary()).arg(data.path()).envs(settings.iter().copied());
    let log = data.path().join("log");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(std::fs::File::create(&log)?);
    let mut child = command.spawn()?;
    let mut found = None;
    let waited = wait_until(text, async || {
        let lines = std::fs::read_to_string(&log)?;
        found = lines.lines().find(|line| line.contains(text)).map(str::to_owned);
        Ok(found.is_some())
    })
    .await;
    child.kill()?;
    child.wait()?;
    waited?;
    found.context("no line")
}

#[tokio::test(flavor = "multi_thread")]
async fn file_limit_is_raised_and_bounds_connections() -> Result<()> {
    let line = log_line("ulimit -Sn 300 && ulimit -Hn 2000", &[], "server.connections reduced").await?;
    for field in ["file_limit=2000", "connections=1744", "WARN"] {
        ensure!(line.contains(field), "{line}");
    }
    let fits = [("VERBATIM_SERVER__CONNECTIONS", "1000")];
    let line = log_line("ulimit -Sn 300 && ulimit -Hn 2000", &fits, "connection limit").await?;
    for field in ["file_limit=2000", "connections=1000", "INFO"] {
        ensure!(line.contains(field), "{line}");
    }
    Ok(())
}

/// Raises the soft limit of open files of the tests; returns the limit.
fn raise_file_limit() -> Result<usize> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    Ok(limit.maximum.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX)))
}

/// 10,000 idle connections, or as many as the hard limit of open files allows. Prints the memory.
#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_take_bounded_memory() -> Result<()> {
    const KIB_PER_CONNECTION: usize = 32;
    // The server keeps 256 files for itself. This process also has the files of other tests.
    let connections = raise_file_limit()?.saturating_sub(1_000).min(10_000);
    ensure!(connections >= 500, "the hard limit of open files is too low: {connections}");
    let data = TempDir::new()?;
    let settings = [
        ("VERBATIM_SERVER__CONNECTIONS_PER_NETWORK", "1000000"),
        ("VERBATIM_SERVER__CONNECTIONS", "1000000"),
    ];
    let observed = ObservedServer::start(&data, &settings).await?;
    let server = &observed.server;
    let (before, _) = memory_mib(server)?;
    let mut streams = Vec::new();
    for index in 0..connections {
        let mut stream = connect_from(server, 1 + u8::try_from(index % 200)?).await?;
        stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").await?;
        ensure!(head(&mut stream).await?.starts_with("HTTP/1.1 200 "));
        streams.push(stream);
    }
    let (now, _) = memory_mib(server)?;
    let open = observed.scrape().await?.sum("verbatim_http_connections", &[]);
    eprintln!("{open} idle connections: {before} MiB before, {now} MiB now");
    ensure!(open >= connections as f64, "{open} of {connections} connections are open");
    let most = before + (connections * KIB_PER_CONNECTION / 1024) as u64 + 16;
    ensure!(now <= most, "{before} MiB, {now} MiB");
    // Another caller is served, and so is each of them.
    for path in ["/healthz", "/readyz", "/api/transcript?v=dyke-walk-0"] {
        ensure!(server.get(path).await?.status == 200, "{path}");
    }
    let last = streams.last_mut().context("no connection")?;
    last.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await?;
    timeout(RESPONSE_TIMEOUT, last.readable()).await??;
    Ok(())
}
