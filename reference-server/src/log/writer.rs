//! The queue of lines, and the thread that writes them.

use std::{
    borrow::Cow,
    io::{self, BufWriter, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, TryRecvError, sync_channel},
    },
    thread::JoinHandle,
    time::{Duration, SystemTime},
};

use http::Uri;
use transcript_core::Timestamp;

use super::AccessLine;
use crate::{bodies, config::LogFormat};

/// How many lines may wait to be written; further ones are dropped and counted.
const QUEUE: usize = 8_192;
/// How long the thread rests when no line waits.
const REST: Duration = Duration::from_millis(5);
/// How much is written at once while lines wait, in bytes.
const BUFFER: usize = 64 * 1024;

enum Line {
    Request(AccessLine),
    Ready(Vec<u8>),
    End,
}

/// The log. A clone is a handle to the same one.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    queue: SyncSender<Line>,
    /// How many were dropped since that was written last, and since the start.
    dropped: Arc<AtomicU64>,
    dropped_ever: Arc<AtomicU64>,
    requests: bool,
}

/// Keeps the log's thread: dropping it writes what still waits.
#[derive(Debug)]
pub(crate) struct LogGuard {
    log: Log,
    thread: Option<JoinHandle<()>>,
}

impl Log {
    /// Starts a log that writes to `to`; without `requests` it has no line per request.
    pub(crate) fn start(
        to: impl Write + Send + 'static,
        format: LogFormat,
        requests: bool,
    ) -> (Self, LogGuard) {
        let (queue, lines) = sync_channel(QUEUE);
        let log = Self { queue, dropped: Arc::default(), dropped_ever: Arc::default(), requests };
        let dropped = Arc::clone(&log.dropped);
        let thread = std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write_all(&lines, &dropped, format, BufWriter::with_capacity(BUFFER, to)))
            .inspect_err(|error| eprintln!("there is no log, for want of a thread: {error}"))
            .ok();
        let guard = LogGuard { log: log.clone(), thread };
        (log, guard)
    }

    /// The same log, without a line for each request.
    pub(crate) fn without_requests(&self) -> Self {
        Self { requests: false, ..self.clone() }
    }

    /// How many lines there was no room for since the start.
    pub(crate) fn lines_dropped(&self) -> u64 {
        self.dropped_ever.load(Ordering::Relaxed)
    }

    /// The path for a request's line, where requests have lines.
    pub(crate) fn path(&self, uri: &Uri) -> Option<Cow<'static, str>> {
        self.requests.then(|| match uri.path() {
            bodies::PATH => Cow::Borrowed(bodies::PATH),
            path => Cow::Owned(path.to_owned()),
        })
    }

    /// Writes a request's line, some time soon.
    pub(crate) fn access(&self, line: AccessLine) {
        if self.requests {
            self.put(Line::Request(line));
        }
    }

    /// A writer of ready lines, one for each.
    pub(super) fn line_writer(&self) -> LineWriter {
        LineWriter { log: self.clone(), line: Vec::new() }
    }

    fn put(&self, line: Line) {
        if self.queue.try_send(line).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            self.dropped_ever.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl LogGuard {
    /// The log.
    pub(crate) fn log(&self) -> Log {
        self.log.clone()
    }
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            // Unlike other lines this one waits for room: behind it there are no more.
            let _ = self.log.queue.send(Line::End);
            let _ = thread.join();
        }
    }
}

/// Gathers one line and hands it on when it is dropped.
#[derive(Debug)]
pub(crate) struct LineWriter {
    log: Log,
    line: Vec<u8>,
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
            self.log.put(Line::Ready(std::mem::take(&mut self.line)));
        }
    }
}

/// The thread: writes line after line, and flushes whenever none waits.
fn write_all(lines: &Receiver<Line>, dropped: &AtomicU64, format: LogFormat, mut to: BufWriter<impl Write>) {
    let mut clock = Clock::default();
    let mut text = Vec::new();
    loop {
        let line = match lines.try_recv() {
            Ok(line) => Some(line),
            Err(TryRecvError::Empty) => {
                // Where the log cannot be written there is nobody left to tell.
                let _ = to.flush();
                // Waking a thread costs its waker more than a line does: under load there are soon many.
                std::thread::sleep(REST);
                lines.try_recv().ok().or_else(|| lines.recv().ok())
            }
            Err(TryRecvError::Disconnected) => None,
        };
        let _ = match line {
            Some(Line::Request(line)) => {
                text.clear();
                line.write(clock.now(), format, &mut text).and_then(|()| to.write_all(&text))
            }
            Some(Line::Ready(line)) => to.write_all(&line),
            Some(Line::End) | None => break,
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

/// The time as text, which is the same for all lines of a millisecond.
#[derive(Default)]
struct Clock {
    at: Option<Timestamp>,
    text: String,
}

impl Clock {
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

    use super::*;

    /// A place to write to that blocks until it is let go.
    struct Slow {
        text: Arc<Mutex<Vec<u8>>>,
        go: Receiver<()>,
    }

    impl Write for Slow {
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
    fn a_slow_disk_never_makes_anyone_wait() {
        let text: Arc<Mutex<Vec<u8>>> = Arc::default();
        let (release, go) = mpsc::channel();
        let (log, guard) = Log::start(Slow { text: Arc::clone(&text), go }, LogFormat::Text, true);
        for number in 0..3 * QUEUE {
            writeln!(log.line_writer(), "line {number}").unwrap();
        }
        drop(release);
        drop(guard);
        let text = String::from_utf8(text.lock().unwrap().clone()).unwrap();
        assert!(text.starts_with("line 0\n"), "{}", &text[..40]);
        let dropped = text.lines().find(|line| line.ends_with("log lines were dropped")).unwrap();
        assert!(dropped.contains("WARN"), "{dropped}");
        assert!(log.lines_dropped() >= QUEUE as u64, "{}", log.lines_dropped());
    }
}
