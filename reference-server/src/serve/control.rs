//! Signals that control a running server.

/// What a signal requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ControlSignal {
    /// SIGHUP: read the settings again.
    Reload,
    /// SIGUSR1: log more, or as much as before.
    ToggleDebugLog,
}

/// Receives SIGHUP and SIGUSR1. From its creation on neither of them, nor SIGUSR2, ends the process.
#[cfg(unix)]
#[derive(Debug)]
pub(crate) struct ControlSignals {
    hangup: tokio::signal::unix::Signal,
    user1: tokio::signal::unix::Signal,
    user2: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl ControlSignals {
    pub(crate) fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            user1: signal(SignalKind::user_defined1())?,
            user2: signal(SignalKind::user_defined2())?,
        })
    }

    /// Returns the next signal. Equal signals that arrive before it is awaited count once.
    pub(crate) async fn next(&mut self) -> ControlSignal {
        loop {
            tokio::select! {
                Some(()) = self.hangup.recv() => return ControlSignal::Reload,
                Some(()) = self.user1.recv() => return ControlSignal::ToggleDebugLog,
                Some(()) = self.user2.recv() => {}
                else => std::future::pending::<()>().await,
            }
        }
    }
}

/// Receives nothing: there are no such signals.
#[cfg(not(unix))]
#[derive(Debug)]
pub(crate) struct ControlSignals;

#[cfg(not(unix))]
impl ControlSignals {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    pub(crate) async fn next(&mut self) -> ControlSignal {
        std::future::pending().await
    }
}
