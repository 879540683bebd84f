//! Tests of connections over loopback, with short timeouts.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, routing::get};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::{Notify, oneshot},
    task::JoinHandle,
    time::{Instant, timeout},
};

use super::{ConnectionLimits, CurrentService, HttpService, Listener, serve, stall_timeout::StallTimeouts};
use crate::{
    config::LogFormat,
    log::{LogGuard, LogQueue},
};

async fn defect() {
    if true {
        panic!("a defect")
    }
}

struct RunningServer {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    server: JoinHandle<()>,
    /// Notified of each request for `/slow`.
    slow_requested: Arc<Notify>,
    _log: LogGuard,
}

impl RunningServer {
    async fn start(bounds: ConnectionLimits) -> Self {
        let slow_requested = Arc::new(Notify::new());
        let requested = Arc::clone(&slow_requested);
        let router = Router::new()
            .route("/", get(|| async { "hello" }))
            .route(
                "/slow",
                get(|| async move {
                    requested.notify_one();
                    tokio::time::sleep(Duration::from_millis(800)).await;
                    "done"
                }),
            )
            .route("/large", get(|| async { "x".repeat(64 << 20) }))
            .route("/panic", get(defect))
            .route("/api/v1/panic", get(defect));
        let (log, guard) = LogQueue::start(std::io::sink(), LogFormat::Text, tracing::Level::INFO);
        let (listener, address) = Listener::bind_tcp(([127, 0, 0, 1], 0).into()).await.unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let front = CurrentService::new(HttpService::new(router, Vec::new(), log));
        let server = tokio::spawn(serve(listener, front, bounds, async move {
            let _ = stopped.await;
        }));
        Self { address, stop: Some(stop), server, slow_requested, _log: guard }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    fn stop(&mut self) {
        drop(self.stop.take());
    }
}

fn short_timeouts() -> ConnectionLimits {
    let millis = Duration::from_millis;
    let stall_timeouts = StallTimeouts {
        idle: millis(1_000),
        head: millis(500),
        write: millis(500),
        bytes_per_second: 64 << 20,
        leave: millis(500),
    };
    ConnectionLimits { stall_timeouts, grace: Duration::from_secs(60), ..ConnectionLimits::default() }
}

/// Sends bytes and reads until the server closes.
async fn exchange(running: &RunningServer, bytes: &str) -> String {
    let mut stream = running.connect().await;
    // The server may refuse and close before everything is sent.
    let _ = stream.write_all(bytes.as_bytes()).await;
    read_all(&mut stream).await
}

async fn read_all(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = timeout(Duration::from_secs(20), stream.read_to_end(&mut bytes)).await;
    // A reset after the response also counts as a close.
    let _ = read.expect("the server did not close the connection");
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn connection_serves_requests_in_sequence() {
    let running = RunningServer::start(short_timeouts()).await;
    let one = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";
    let text = exchange(
        &running,
        &format!("{one}{one}GET /nowhere HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"),
    )
    .await;
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 2, "{text}");
    assert_eq!(text.matches("HTTP/1.1 404").count(), 1, "{text}");
}

#[tokio::test]
async fn head_too_large_is_refused() {
    let running = RunningServer::start(short_timeouts()).await;
    let long =
        |bytes| format!("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx: {}\r\n\r\n", "y".repeat(bytes));
    assert!(exchange(&running, &long(30_000)).await.starts_with("HTTP/1.1 200 "));
    let refused = exchange(&running, &long(40_000)).await;
    assert!(
        refused.starts_with("HTTP/1.1 431 ") && refused.contains("application/problem+json"),
        "{refused}"
    );
    assert!(exchange(&running, &long(58_000)).await.contains("application/problem+json"));
    // Larger than what is read: hyper's own response, without a body.
    let bare_refused = exchange(&running, &long(70_000)).await;
    assert!(
        bare_refused.starts_with("HTTP/1.1 431 ") && bare_refused.contains("content-length: 0\r\n"),
        "{bare_refused}"
    );
    let many = format!("GET / HTTP/1.1\r\nhost: x\r\n{}\r\n", "x: y\r\n".repeat(200));
    assert!(exchange(&running, &many).await.starts_with("HTTP/1.1 431 "));
    let target = format!("GET /?{} HTTP/1.1\r\nhost: x\r\n\r\n", "y".repeat(40_000));
    let refused = exchange(&running, &target).await;
    assert!(refused.starts_with("HTTP/1.1 431 ") || refused.starts_with("HTTP/1.1 414 "), "{refused}");
    assert!(exchange(&running, "no http at all\r\n\r\n").await.starts_with("HTTP/1.1 400 "));
}

#[tokio::test]
async fn head_refused_while_sending_response_is_delivered() {
    let running = RunningServer::start(short_timeouts()).await;
    let mut stream = running.connect().await;
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nx: ").await.unwrap();
    for _ in 0..100 {
        stream.write_all(&[b'y'; 10_000]).await.expect("no reset while sending");
    }
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("an end of stream, not a reset");
    assert!(answer.starts_with(b"HTTP/1.1 431 "));
}

#[tokio::test]
async fn head_too_slow_closes_connection() {
    let running = RunningServer::start(short_timeouts()).await;
    let started = Instant::now();
    let mut stream = running.connect().await;
    let trickle = async {
        loop {
            if stream.write_all(b"G").await.is_err() || stream.read_u8().await.is_err() {
                break;
            }
        }
    };
    timeout(Duration::from_secs(10), trickle).await.expect("the server did not close the connection");
    assert!(started.elapsed() >= Duration::from_millis(450), "{:?}", started.elapsed());
}

#[tokio::test]
async fn connection_idle_is_closed_and_busy_kept() {
    let running = RunningServer::start(short_timeouts()).await;
    let started = Instant::now();
    let mut idle = running.connect().await;
    assert_eq!(read_all(&mut idle).await, "");
    assert!(started.elapsed() >= Duration::from_millis(900), "{:?}", started.elapsed());
    // The response takes longer than the head timeout, but the client is waiting, not stalling.
    let text = exchange(&running, "GET /slow HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(text.ends_with("done"), "{text}");
}

#[tokio::test]
async fn connection_peer_not_reading_is_closed() {
    let mut running = RunningServer::start(short_timeouts()).await;
    let mut stream = running.connect().await;
    stream.write_all(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    stream.readable().await.unwrap();
    // The server stops as soon as no connection is left, long before the end of the grace period.
    running.stop();
    timeout(Duration::from_secs(30), &mut running.server).await.expect("the connection was kept").unwrap();
    drop(stream);
}

/// The peer reads without a pause, but far below the minimum rate.
#[tokio::test]
async fn connection_peer_reading_slowly_is_closed() {
    let mut running = RunningServer::start(short_timeouts()).await;
    let mut stream = running.connect().await;
    stream.write_all(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut bytes = vec![0; 64 << 10];
    stream.read_exact(&mut bytes).await.unwrap();
    running.stop();
    let mut read = bytes.len();
    let slow = async {
        while let Ok(count @ 1..) = stream.read(&mut bytes).await {
            read += count;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(20), slow).await.expect("the connection was kept");
    assert!(read < 64 << 20, "{read}");
}

/// Half of the minimum rate is too slow after twice the allowed delay; the rate itself never is.
#[test]
fn stall_deadline_moves_with_bytes_read() {
    let timeouts = StallTimeouts { bytes_per_second: 1_000, ..StallTimeouts::default() };
    let start = Instant::now();
    for (bytes_per_second, expect) in [(0, Some(30)), (500, Some(59)), (1_000, None), (1_000_000, None)] {
        let second = |n: u64| start + Duration::from_secs(n);
        let mut by = second(30);
        let overdue = (1..1_000).find(|n| {
            let is_overdue = by <= second(*n);
            by = timeouts.extended(by, bytes_per_second, second(*n));
            is_overdue
        });
        assert_eq!(overdue, expect, "{bytes_per_second}");
    }
}

#[tokio::test]
async fn panic_returns_500_and_keeps_connection() {
    let running = RunningServer::start(short_timeouts()).await;
    let text = exchange(
        &running,
        "GET /panic HTTP/1.1\r\nhost: x\r\n\r\nGET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
    )
    .await;
    assert!(text.starts_with("HTTP/1.1 500 ") && text.contains("application/problem+json"), "{text}");
    assert!(!text.contains("a defect") && text.ends_with("hello"), "{text}");
    // Before the router, too, an error has the form of the API.
    let text = exchange(&running, "GET /api/v1/panic HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    assert!(text.starts_with("HTTP/1.1 500 ") && text.ends_with(",\"code\":500}"), "{text}");
}

#[tokio::test]
async fn stop_finishes_requests_and_stops_accepting() {
    let mut running = RunningServer::start(short_timeouts()).await;
    let mut waiting = running.connect().await;
    let mut idle = running.connect().await;
    waiting.write_all(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    running.slow_requested.notified().await;
    running.stop();
    let text = read_all(&mut waiting).await;
    assert!(text.starts_with("HTTP/1.1 200 ") && text.ends_with("done"), "{text}");
    assert_eq!(read_all(&mut idle).await, "");
    timeout(Duration::from_secs(30), &mut running.server).await.expect("the server did not stop").unwrap();
    assert!(TcpStream::connect(running.address).await.is_err());
}

#[tokio::test]
async fn connections_above_limit_wait() {
    let running =
        RunningServer::start(ConnectionLimits { connections: 1, ..ConnectionLimits::default() }).await;
    let first = running.connect().await;
    let mut second = running.connect().await;
    second.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut byte = [0; 1];
    assert!(timeout(Duration::from_millis(200), second.read_exact(&mut byte)).await.is_err());
    drop(first);
    assert!(read_all(&mut second).await.starts_with("HTTP/1.1 200 "));
}
