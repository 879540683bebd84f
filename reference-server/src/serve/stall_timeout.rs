//! Connection stream with timeouts for peers that stall.
//!
//! hyper has one timeout for a request head, which also runs while the connection is idle. Connections of proxies are
//! idle for a minute, but a head that takes a minute is an attack. This stream therefore distinguishes both. It also
//! closes connections whose peer does not read the response, or reads it too slowly: a response that waits to be sent
//! takes memory.

use std::{
    future::Future,
    io,
    mem::MaybeUninit,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep},
};

/// Timeouts of stalled connections.
#[derive(Clone, Copy, Debug, smart_default::SmartDefault)]
pub(crate) struct StallTimeouts {
    /// Idle time before and between requests.
    ///
    /// The connection ends after one to two times this duration.
    // Longer than the minute for which common proxies keep idle connections.
    #[default(Duration::from_secs(75))]
    pub(crate) idle: Duration,
    /// From the first to the last byte of a request head.
    #[default(Duration::from_secs(10))]
    pub(crate) head: Duration,
    /// Until the peer reads more, and how long it may be behind the minimum rate.
    #[default(Duration::from_secs(30))]
    pub(crate) write: Duration,
    /// Minimum rate at which the peer reads a response that waits for it, in bytes per second.
    #[default(4 * 1024)]
    pub(crate) bytes_per_second: u64,
    /// After the last response, until the peer stops sending.
    #[default(Duration::from_secs(2))]
    pub(crate) leave: Duration,
}

impl StallTimeouts {
    /// Returns the time by which more must be read, after this many bytes were.
    pub(super) fn extended(&self, by: Instant, bytes: usize, now: Instant) -> Instant {
        let nanos = (bytes as u64).saturating_mul(1_000_000_000) / self.bytes_per_second.max(1);
        (by + Duration::from_nanos(nanos)).min(now + self.write)
    }
}

/// How many bytes from a refused peer are read and discarded.
const LEFTOVER_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Whether a request is being processed, during which no bytes are expected.
#[derive(Clone, Debug, Default)]
pub(crate) struct BusyFlag(Arc<AtomicBool>);

impl BusyFlag {
    /// Marks a request as being processed until the guard is dropped.
    pub(crate) fn begin(&self) -> BusyGuard {
        self.0.store(true, Ordering::Relaxed);
        BusyGuard(self.clone())
    }
}

/// A request is being processed while this guard exists.
#[derive(Debug)]
pub(crate) struct BusyGuard(BusyFlag);

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Relaxed);
    }
}

/// The stream. Timeouts are checked whenever hyper reads or writes.
#[derive(Debug)]
pub(crate) struct StallTimeoutStream<S> {
    stream: S,
    timeouts: StallTimeouts,
    busy: BusyFlag,
    /// When the expected bytes are overdue.
    read_by: Instant,
    /// Whether the idle time restarted since the alarm was set.
    ///
    /// It is then counted from the next alarm, because reading the clock for every request would cost more.
    idle_restarted: bool,
    /// Fires at `read_by` or earlier: a spurious alarm costs less than setting it for every request.
    alarm: Pin<Box<Sleep>>,
    /// Whether a part of a head has arrived.
    in_head: bool,
    was_busy: bool,
    /// When the peer must have read more; `None` while everything is sent at once.
    ///
    /// Each byte that it reads moves this time by the duration of a byte at the minimum rate.
    write_by: Option<Pin<Box<Sleep>>>,
    /// State after the local end was closed.
    closing: Option<DisconnectGuard>,
}

/// A stream whose local end is closed.
#[derive(Debug)]
struct DisconnectGuard {
    /// End of the wait for the peer.
    by: Pin<Box<Sleep>>,
    /// How many more bytes are discarded.
    bytes: usize,
}

impl<S> StallTimeoutStream<S> {
    /// Wraps a stream; `busy` is shared with the request handler.
    pub(crate) fn new(stream: S, timeouts: StallTimeouts, busy: BusyFlag) -> Self {
        let read_by = Instant::now() + timeouts.idle;
        let alarm = Box::pin(tokio::time::sleep_until(read_by));
        Self {
            stream,
            timeouts,
            busy,
            read_by,
            idle_restarted: false,
            alarm,
            in_head: false,
            was_busy: false,
            write_by: None,
            closing: None,
        }
    }

    fn restart_idle(&mut self) {
        self.in_head = false;
        self.idle_restarted = true;
    }

    /// Whether the bytes are overdue; otherwise the task is woken when they are.
    fn is_overdue(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.idle_restarted && self.alarm.deadline() > self.read_by {
            self.alarm.as_mut().reset(self.read_by);
        }
        while self.alarm.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            if std::mem::take(&mut self.idle_restarted) {
                self.read_by = now + self.timeouts.idle;
            } else if now >= self.read_by {
                return true;
            }
            self.alarm.as_mut().reset(self.read_by);
        }
        false
    }
}

fn stalled() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the peer stalled")
}

impl<S: AsyncRead + Unpin> AsyncRead for StallTimeoutStream<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = into.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(cx, into);
        if this.busy.0.load(Ordering::Relaxed) {
            // Bodies have their own timeout, and a client that waits for a response may be silent.
            this.was_busy = true;
            return read;
        }
        if std::mem::take(&mut this.was_busy) {
            this.restart_idle();
        }
        match read {
            Poll::Ready(_) if into.filled().len() > before && !this.in_head => {
                this.in_head = true;
                this.idle_restarted = false;
                this.read_by = Instant::now() + this.timeouts.head;
                read
            }
            Poll::Pending if this.is_overdue(cx) => Poll::Ready(Err(stalled())),
            read => read,
        }
    }
}

impl<S: AsyncWrite + Unpin> StallTimeoutStream<S> {
    /// Returns a write's result, or an error if the peer has read nothing, or too little, for too long.
    fn written(&mut self, cx: &mut Context<'_>, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = &result {
            if let (Some(by), Ok(bytes)) = (&mut self.write_by, written) {
                let extended = self.timeouts.extended(by.deadline(), *bytes, Instant::now());
                by.as_mut().reset(extended);
            }
            self.restart_idle();
            // hyper may not read again before the socket is ready, so the timer must wake the task.
            let _ = self.is_overdue(cx);
            return result;
        }
        let by = self.timeouts.write;
        let sleep = self.write_by.get_or_insert_with(|| Box::pin(tokio::time::sleep(by)));
        if sleep.as_mut().poll(cx).is_ready() { Poll::Ready(Err(stalled())) } else { Poll::Pending }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for StallTimeoutStream<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.written(cx, result)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.stream).poll_write_vectored(cx, slices);
        this.written(cx, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A socket's flush is always ready; whether the peer reads shows in the writes. hyper flushes when nothing
        // waits to be sent: an idle event stream is not slow.
        let this = self.get_mut();
        this.write_by = None;
        Pin::new(&mut this.stream).poll_flush(cx)
    }

    /// Closes the local end, then discards what the peer still sends, within bounds.
    ///
    /// Closing a socket with unread bytes resets the connection, and the peer would lose the response, such as the
    /// refusal of a head or body that it is still sending.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let closing = match &mut this.closing {
            Some(closing) => closing,
            none => {
                ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
                let by = Box::pin(tokio::time::sleep(this.timeouts.leave));
                none.insert(DisconnectGuard { by, bytes: LEFTOVER_BYTES_MAX })
            }
        };
        let mut leftover = [MaybeUninit::uninit(); 4 * 1024];
        while closing.bytes > 0 && closing.by.as_mut().poll(cx).is_pending() {
            let mut into = ReadBuf::uninit(&mut leftover);
            let read = ready!(Pin::new(&mut this.stream).poll_read(cx, &mut into));
            // A peer that disconnected is done, too.
            if read.is_err() || into.filled().is_empty() {
                break;
            }
            closing.bytes = closing.bytes.saturating_sub(into.filled().len());
        }
        Poll::Ready(Ok(()))
    }
}
