//! A connection's stream that gives up on peers that keep it open for nothing.
//!
//! hyper has one timeout for a request's head, which runs while the connection idles too. Peers behind a
//! proxy idle for a minute, and a head that trickles in for a minute is an attack: so the two are told
//! apart here, where the bytes pass. A peer that does not read its answer is given up as well.

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

/// How long a peer may keep a connection open for nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Between two requests, and before the first; at least, and at most twice as long.
    pub(crate) idle: Duration,
    /// From the first byte of a request's head to its last.
    pub(crate) head: Duration,
    /// Until the peer reads on.
    pub(crate) write: Duration,
    /// After the last answer, for the peer to stop sending.
    pub(crate) leave: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            // Longer than the minute for which common proxies keep their connections.
            idle: Duration::from_secs(75),
            head: Duration::from_secs(10),
            write: Duration::from_secs(30),
            leave: Duration::from_secs(2),
        }
    }
}

/// How much of what a refused peer goes on sending is read and thrown away, in bytes.
const LEFTOVER_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Whether a request is being answered: then nothing need arrive.
#[derive(Clone, Debug, Default)]
pub(crate) struct Busy(Arc<AtomicBool>);

impl Busy {
    /// Marks a request as being answered until the guard is dropped.
    pub(crate) fn begin(&self) -> BusyGuard {
        self.0.store(true, Ordering::Relaxed);
        BusyGuard(self.clone())
    }
}

/// A request is being answered while this lives.
#[derive(Debug)]
pub(crate) struct BusyGuard(Busy);

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Relaxed);
    }
}

/// The stream. Times are checked whenever hyper asks for bytes or gives some.
#[derive(Debug)]
pub(crate) struct Guarded<S> {
    stream: S,
    patience: Patience,
    busy: Busy,
    /// When the bytes that are waited for are overdue.
    read_by: Instant,
    /// Whether the idle time began anew since the alarm was set. Then it is counted from the alarm's next
    /// ring: to look at the clock for every request would cost more.
    has_rested: bool,
    /// Rings then, or earlier: setting it for every request would cost more than to let it ring in vain.
    alarm: Pin<Box<Sleep>>,
    /// Whether a part of a head has arrived.
    in_head: bool,
    was_busy: bool,
    /// When the peer must have read on; none while it reads.
    write_by: Option<Pin<Box<Sleep>>>,
    /// What the peer sent after our end was closed, once it is.
    leaving: Option<Leaving>,
}

/// A stream whose own end is closed.
#[derive(Debug)]
struct Leaving {
    /// When the peer's end is no longer waited for.
    by: Pin<Box<Sleep>>,
    /// How many bytes may still come.
    bytes: usize,
}

impl<S> Guarded<S> {
    /// A guarded stream; `busy` is shared with whoever answers.
    pub(crate) fn new(stream: S, patience: Patience, busy: Busy) -> Self {
        let read_by = Instant::now() + patience.idle;
        let alarm = Box::pin(tokio::time::sleep_until(read_by));
        Self {
            stream,
            patience,
            busy,
            read_by,
            has_rested: false,
            alarm,
            in_head: false,
            was_busy: false,
            write_by: None,
            leaving: None,
        }
    }

    fn rest(&mut self) {
        self.in_head = false;
        self.has_rested = true;
    }

    /// Whether the bytes are overdue; if not, the task is woken when they will be.
    fn is_overdue(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.has_rested && self.alarm.deadline() > self.read_by {
            self.alarm.as_mut().reset(self.read_by);
        }
        while self.alarm.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            if std::mem::take(&mut self.has_rested) {
                self.read_by = now + self.patience.idle;
            } else if now >= self.read_by {
                return true;
            }
            self.alarm.as_mut().reset(self.read_by);
        }
        false
    }
}

fn overdue() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the peer took too long")
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = into.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(cx, into);
        if this.busy.0.load(Ordering::Relaxed) {
            // Bodies have a limit of their own, and whoever waits for an answer may be silent.
            this.was_busy = true;
            return read;
        }
        if std::mem::take(&mut this.was_busy) {
            this.rest();
        }
        match read {
            Poll::Ready(_) if into.filled().len() > before && !this.in_head => {
                this.in_head = true;
                this.has_rested = false;
                this.read_by = Instant::now() + this.patience.head;
                read
            }
            Poll::Pending if this.is_overdue(cx) => Poll::Ready(Err(overdue())),
            read => read,
        }
    }
}

impl<S: AsyncWrite + Unpin> Guarded<S> {
    /// Passes a write's result on, unless the peer has not read for too long.
    fn written<T>(&mut self, cx: &mut Context<'_>, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.write_by = None;
            self.rest();
            // hyper need not read again until the socket has something: the timer itself must wake it.
            let _ = self.is_overdue(cx);
            return result;
        }
        let by = self.patience.write;
        let sleep = self.write_by.get_or_insert_with(|| Box::pin(tokio::time::sleep(by)));
        if sleep.as_mut().poll(cx).is_ready() { Poll::Ready(Err(overdue())) } else { Poll::Pending }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
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
        // A socket's flush is always ready: whether the peer reads shows in the writes.
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    /// Closes our end, then reads and throws away what still comes, within bounds. A socket that is closed with
    /// bytes unread resets the connection, and the peer loses the answer that it was just sent: a refusal of a head
    /// or a body that it was still sending.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let leaving = match &mut this.leaving {
            Some(leaving) => leaving,
            none => {
                ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
                let by = Box::pin(tokio::time::sleep(this.patience.leave));
                none.insert(Leaving { by, bytes: LEFTOVER_BYTES_MAX })
            }
        };
        let mut leftover = [MaybeUninit::uninit(); 4 * 1024];
        while leaving.bytes > 0 && leaving.by.as_mut().poll(cx).is_pending() {
            let mut into = ReadBuf::uninit(&mut leftover);
            let read = ready!(Pin::new(&mut this.stream).poll_read(cx, &mut into));
            // A peer that went away without a word is gone as well.
            if read.is_err() || into.filled().is_empty() {
                break;
            }
            leaving.bytes = leaving.bytes.saturating_sub(into.filled().len());
        }
        Poll::Ready(Ok(()))
    }
}
