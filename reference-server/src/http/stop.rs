//! When the server is told to stop.

/// Waits for the first signal to stop (SIGTERM, or SIGINT from a keyboard). The next one ends the process
/// at once.
pub(crate) fn signalled() -> std::io::Result<impl Future<Output = ()>> {
    let mut signals = Signals::new()?;
    Ok(async move {
        signals.next().await;
        tracing::info!("stopping: running requests may finish; a second signal ends at once");
        tokio::spawn(async move {
            signals.next().await;
            std::process::exit(1);
        });
    })
}

#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        // Without a console there is nothing to wait for: the process is ended from outside.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
