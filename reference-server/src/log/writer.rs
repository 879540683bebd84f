//! The line queue and the writer thread.

use std::{
    borrow::Cow,
    io::{self, BufWriter, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, TryRecvError, sync_channel},
    },
    thread::JoinHandle,
    time::{Duration, SystemTime},
};

use http::{Method, Uri};
use tracing::Level;
use transcript_core::Timestamp;

use super::{AccessLine, escape::escape_line};
use crate::{api::TRANSCRIPT_PATH, config::LogFormat};

/// Capacity of the queue, in lines; further lines are dropped and counted.
const QUEUE: usize = 8_192;
/// Longest path and method in the queue, in bytes. Lines show fewer, and so no key that begins after them.
const TEXT_BYTES_MAX: usize = 1024;
/// Pause of the thread while the queue is empty.
const PAUSE: Duration = Duration::from_millis(5);
/// Write buffer, in bytes.
const BUFFER: usize = 64 * 1024;

enum LogLine {
    Request(AccessLine),
    Ready(Vec<u8>),
    End,
}

/// Handle of the log.
#[derive(Clone, Debug)]
pub(crate) struct LogQueue {
    queue: SyncSender<LogLine>,
    /// Number of dropped lines since the last report, and since the start.
    dropped: Arc<AtomicU64>,
    dropped_ever: Arc<AtomicU64>,
    /// Whether requests are logged.
    requests: Arc<AtomicBool>,
    /// Whether passed health checks are logged too.
    health_checks: Arc<AtomicBool>,
}

/// Owner of the log's thread: drop writes all queued lines.
#[derive(Debug)]
pub(crate) struct LogGuard {
    log: LogQueue,
    thread: Option<JoinHandle<()>>,
}

impl LogQueue {
    /// Starts a log that writes to `to`; `level` is the lowest level of request lines.
    pub(crate) fn start(
        to: impl Write + Send + 'static,
        format: LogFormat,
        level: Level,
    ) -> (Self, LogGuard) {
        let (queue, lines) = sync_channel(QUEUE);
        let log = Self { queue, ..Self::silent() };
        log.set_level(level);
        let dropped = Arc::clone(&log.dropped);
        let thread = std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write_all(&lines, &dropped, format, BufWriter::with_capacity(BUFFER, to)))
            .inspect_err(|error| eprintln!("cannot start the log thread: {error}"))
            .ok();
        let guard = LogGuard { log: log.clone(), thread };
        (log, guard)
    }

    /// A log that writes nothing.
    pub(crate) fn silent() -> Self {
        let (queue, _) = sync_channel(1);
        Self {
            queue,
            dropped: Arc::default(),
            dropped_ever: Arc::default(),
            requests: Arc::default(),
            health_checks: Arc::default(),
        }
    }

    /// Returns the same log without request lines.
    pub(crate) fn without_requests(&self) -> Self {
        Self { requests: Arc::default(), ..self.clone() }
    }

    /// Sets the lowest level of request lines, also on clones.
    pub(super) fn set_level(&self, level: Level) {
        self.requests.store(level >= Level::INFO, Ordering::Relaxed);
        self.health_checks.store(level >= Level::DEBUG, Ordering::Relaxed);
    }

    /// Number of lines dropped since the start.
    pub(crate) fn lines_dropped(&self) -> u64 {
        self.dropped_ever.load(Ordering::Relaxed)
    }

    /// Returns the beginning of the path for a request line, if requests are logged.
    pub(crate) fn path(&self, uri: &Uri) -> Option<Cow<'static, str>> {
        self.requests.load(Ordering::Relaxed).then(|| match uri.path() {
            TRANSCRIPT_PATH => Cow::Borrowed(TRANSCRIPT_PATH),
            path => {
                let end = path.floor_char_boundary(TEXT_BYTES_MAX);
                Cow::Owned(path.get(..end).unwrap_or_default().to_owned())
            }
        })
    }

    /// Queues a request line, whose path is that of [`Self::path`].
    pub(crate) fn access(&self, mut line: AccessLine) {
        if line.is_passed_health_check() && !self.health_checks.load(Ordering::Relaxed) {
            return;
        }
        // A client may name a method of any length.
        if let Some(start) = line.method.as_str().as_bytes().get(..TEXT_BYTES_MAX)
            && let Ok(method) = Method::from_bytes(start)
        {
            line.method = method;
        }
        self.put(LogLine::Request(line));
    }

    /// Creates a writer of one formatted line; `has_colours` if its format uses escape sequences.
    pub(super) fn line_writer(&self, has_colours: bool) -> LineWriter {
        LineWriter { log: self.clone(), line: Vec::new(), has_colours }
    }

    fn put(&self, line: LogLine) {
        if self.queue.try_send(line).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            self.dropped_ever.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl LogGuard {
    /// Returns a handle of the log.
    pub(crate) fn log(&self) -> LogQueue {
        self.log.clone()
    }
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            // Blocks until there is space, unlike other lines: it is the last one.
            let _ = self.log.queue.send(LogLine::End);
            let _ = thread.join();
        }
    }
}

/// Collects one line and queues it on drop.
#[derive(Debug)]
pub(crate) struct LineWriter {
    log: LogQueue,
    line: Vec<u8>,
    has_colours: bool,
}

impl Write for LineWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for LineWriter {
    fn drop(&mut self) {
        if !self.line.is_empty() {
            let line = escape_line(std::mem::take(&mut self.line), self.has_colours);
            self.log.put(LogLine::Ready(line));
        }
    }
}

/// Body of the thread: writes line after line and flushes when the queue is empty.
fn write_all(
    lines: &Receiver<LogLine>,
    dropped: &AtomicU64,
    format: LogFormat,
    mut to: BufWriter<impl Write>,
) {
    let mut clock = LogClock::default();
    let mut text = Vec::new();
    loop {
        let line = match lines.try_recv() {
            Ok(line) => Some(line),
            Err(TryRecvError::Empty) => {
                // A log that cannot be written cannot be reported.
                let _ = to.flush();
                // Waking a thread costs more than queueing a line, and under load lines arrive soon.
                std::thread::sleep(PAUSE);
                lines.try_recv().ok().or_else(|| lines.recv().ok())
            }
            Err(TryRecvError::Disconnected) => None,
        };
        let _ = match line {
            Some(LogLine::Request(line)) => {
                text.clear();
                line.write(clock.now(), format, &mut text).and_then(|()| to.write_all(&text))
            }
            Some(LogLine::Ready(line)) => to.write_all(&line),
            Some(LogLine::End) | None => break,
        };
        let missed = dropped.swap(0, Ordering::Relaxed);
        if missed > 0 {
            let _ = match format {
                LogFormat::Text => writeln!(to, "{}  WARN {missed} log lines were dropped", clock.now()),
                LogFormat::Json => writeln!(
                    to,
                    "{{\"timestamp\":\"{}\",\"level\":\"WARN\",\"message\":\"log lines were dropped\",\"count\":{missed}}}",
                    clock.now()
                ),
            };
        }
    }
    let _ = to.flush();
}

/// Current time as text, cached for a millisecond.
#[derive(Default)]
struct LogClock {
    at: Option<Timestamp>,
    text: String,
}

impl LogClock {
    fn now(&mut self) -> &str {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let now = Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
        if self.at.replace(now) != Some(now) {
            self.text = now.to_string();
        }
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc};

    use http::StatusCode;

    use super::*;
    use crate::api::RequestId;

    /// A writer that blocks until it is released.
    struct SlowWriter {
        text: Arc<Mutex<Vec<u8>>>,
        go: Receiver<()>,
    }

    impl Write for SlowWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.go.recv();
            self.text.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn log_slow_disk_drops_lines_without_blocking() {
        let text: Arc<Mutex<Vec<u8>>> = Arc::default();
        let (release, go) = mpsc::channel();
        let writer = SlowWriter { text: Arc::clone(&text), go };
        let (log, guard) = LogQueue::start(writer, LogFormat::Text, Level::INFO);
        for number in 0..3 * QUEUE {
            writeln!(log.line_writer(false), "line {number}").unwrap();
        }
        drop(release);
        drop(guard);
        let text = String::from_utf8(text.lock().unwrap().clone()).unwrap();
        assert!(text.starts_with("line 0\n"), "{}", &text[..40]);
        let dropped = text.lines().find(|line| line.ends_with("log lines were dropped")).unwrap();
        assert!(dropped.contains("WARN"), "{dropped}");
        assert!(log.lines_dropped() >= QUEUE as u64, "{}", log.lines_dropped());
    }

    /// A log of requests, whose lines are received.
    fn request_log() -> (LogQueue, Receiver<LogLine>) {
        let (queue, lines) = sync_channel(1);
        let log = LogQueue { queue, ..LogQueue::silent() };
        log.set_level(Level::INFO);
        (log, lines)
    }

    #[test]
    fn log_has_passed_health_checks_at_debug_only() {
        let (log, lines) = request_log();
        let is_logged = |path: &str, status| {
            let path = log.path(&Uri::try_from(path).unwrap()).unwrap();
            let (method, took, id) = (Method::GET, Duration::ZERO, RequestId::Generated(1, 1));
            log.access(AccessLine { method, path, status, bytes: 0, took, id });
            lines.try_recv().is_ok()
        };
        for path in ["/readyz", "/healthz", "/health"] {
            assert!(!is_logged(path, StatusCode::OK), "{path}");
            assert!(is_logged(path, StatusCode::SERVICE_UNAVAILABLE), "{path}");
        }
        assert!(is_logged("/version", StatusCode::OK));
        log.set_level(Level::DEBUG);
        assert!(is_logged("/readyz", StatusCode::OK));
    }

    #[test]
    fn log_queued_request_is_short() {
        let (log, lines) = request_log();
        for (target, kept) in [
            ("/".to_owned(), 1),
            (format!("/{}", "a".repeat(60_000)), TEXT_BYTES_MAX),
            (format!("/{}", "\u{e9}".repeat(30_000)), TEXT_BYTES_MAX - 1),
        ] {
            let path = log.path(&Uri::try_from(target).unwrap()).unwrap();
            let method = Method::from_bytes("M".repeat(60_000).as_bytes()).unwrap();
            let (took, id) = (Duration::ZERO, RequestId::Generated(1, 1));
            log.access(AccessLine { method, path, status: StatusCode::OK, bytes: 0, took, id });
            let Ok(LogLine::Request(line)) = lines.try_recv() else { panic!("no line is queued") };
            assert_eq!((line.path.len(), line.method.as_str().len()), (kept, TEXT_BYTES_MAX));
            let mut text = Vec::new();
            line.write("now", LogFormat::Text, &mut text).unwrap();
            assert!(text.len() < 400, "{}", text.len());
        }
    }
}
