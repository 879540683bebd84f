//! The accept loop: connections in, within bounds, until it is told to stop.

use std::{future::Future, io, net::SocketAddr, sync::Arc, time::Duration};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};

use super::{
    Front,
    head::READ_BYTES_MAX,
    stall::{Busy, Guarded, Patience},
};

/// The bounds of the server's connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// How many connections are open at once; more wait to be accepted.
    pub(crate) connections: usize,
    /// The largest head of a request that is read, in bytes; a larger one gets 431 without a body.
    pub(crate) head_bytes: usize,
    /// How long a connection may be kept open for nothing.
    pub(crate) patience: Patience,
    /// How long running requests may take once the server stops.
    pub(crate) grace: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 10_000,
            head_bytes: READ_BYTES_MAX,
            patience: Patience::default(),
            grace: Duration::from_secs(30),
        }
    }
}

/// How long the loop rests when the system has no connection to give (too many open files).
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// Serves connections until `stop` is ready, then lets the running requests finish.
pub(crate) async fn serve(
    listener: TcpListener,
    front: Front,
    bounds: Bounds,
    stop: impl Future<Output = ()>,
) {
    let front = Arc::new(front);
    let open = Arc::new(Semaphore::new(bounds.connections));
    let graceful = GracefulShutdown::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = async {
            // The semaphore is never closed, so a permit always comes.
            let permit = Arc::clone(&open).acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            accepted = accepted => accepted,
            () = &mut stop => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let connection = connection(stream, peer, Arc::clone(&front), &bounds);
                let watched = graceful.watch(connection);
                let counted = front.connection();
                tokio::spawn(async move {
                    let _kept = (permit, counted);
                    // What a peer does to its own connection is no event of ours.
                    if let Err(error) = watched.await {
                        tracing::debug!(%error, "a connection ended early");
                    }
                });
            }
            Err(error) if is_about_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "no connection can be accepted for now");
                tokio::time::sleep(ACCEPT_REST).await;
            }
        }
    }
    drop(listener);
    if tokio::time::timeout(bounds.grace, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not finish within the grace and were cut off");
    }
}

fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    front: Arc<Front>,
    bounds: &Bounds,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> + Send + 'static {
    // Answers are written whole: waiting for more to send would only delay them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection cannot be set to send at once");
    }
    let busy = Busy::default();
    let stream = Guarded::new(stream, bounds.patience, busy.clone());
    let service = service_fn(move |request| {
        let (front, guard) = (Arc::clone(&front), busy.begin());
        async move {
            let response = front.serve(request, peer.ip()).await;
            drop(guard);
            response
        }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        // Of headers hyper takes 100 by itself; to be told so costs it a hundredth of a ready answer.
        .max_header_size(bounds.head_bytes)
        // Room for a few bytes of what follows, so that a head of the largest size fits whole.
        .max_buf_size(bounds.head_bytes + 4 * 1024)
        .serve_connection(TokioIo::new(stream), service)
}

fn is_about_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
