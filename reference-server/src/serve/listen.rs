//! The accept loop of the server.

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
    CurrentService,
    network_limit::NetworkLimit,
    stall_timeout::{BusyFlag, StallTimeoutStream, StallTimeouts},
};
use crate::api::READ_BYTES_MAX;

/// Limits of the server's connections.
#[derive(Clone, Copy, Debug, smart_default::SmartDefault)]
pub(crate) struct ConnectionLimits {
    /// Maximum number of open connections; further ones wait to be accepted.
    #[default(10_000)]
    pub(crate) connections: usize,
    /// Maximum number of open connections of a network that is no trusted proxy; further ones are closed.
    #[default(u32::MAX)]
    pub(crate) connections_per_network: u32,
    /// Largest request head that is read, in bytes; a larger one gets 431 without a body.
    #[default(READ_BYTES_MAX)]
    pub(crate) head_bytes: usize,
    /// Timeouts of stalled connections.
    pub(crate) stall_timeouts: StallTimeouts,
    /// How long running requests may take after the stop.
    #[default(Duration::from_secs(30))]
    pub(crate) grace: Duration,
}

/// Pause after an accept error such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves connections until `stop` resolves, then waits for running requests.
pub(crate) async fn serve(
    listener: TcpListener,
    service: CurrentService,
    limits: ConnectionLimits,
    stop: impl Future<Output = ()>,
) {
    let front = service.load();
    let open = Arc::new(Semaphore::new(limits.connections));
    let networks = NetworkLimit::new(limits.connections_per_network, front.trusted_proxies().to_vec());
    let graceful = GracefulShutdown::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = async {
            // The semaphore is never closed, so a permit is always returned.
            let permit = Arc::clone(&open).acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            accepted = accepted => accepted,
            () = &mut stop => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let Some(counted_by_network) = networks.acquire(peer.ip()) else {
                    tracing::debug!("connection above the limit of its network closed");
                    continue;
                };
                let connection = connection(stream, peer, service.clone(), &limits);
                let watched = graceful.watch(connection);
                let counted = front.connection();
                tokio::spawn(async move {
                    let _guards = (permit, counted, counted_by_network);
                    // A connection that its peer ends is not an error of the server.
                    if let Err(error) = watched.await {
                        tracing::debug!(%error, "connection ended early");
                    }
                });
            }
            Err(error) if is_connection_error(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "accept failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    if tokio::time::timeout(limits.grace, graceful.shutdown()).await.is_err() {
        tracing::warn!("requests interrupted at the end of the grace period");
    }
}

fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    service: CurrentService,
    limits: &ConnectionLimits,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> + Send + 'static {
    // Responses are written whole, so buffering would only delay them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY failed");
    }
    let busy = BusyFlag::default();
    let stream = StallTimeoutStream::new(stream, limits.stall_timeouts, busy.clone());
    let service = service_fn(move |request| {
        let (front, guard) = (service.load(), busy.begin());
        async move {
            let response = front.serve(request, peer.ip()).await;
            drop(guard);
            response
        }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        // hyper's default is 100 headers; an explicit limit costs a hundredth of a cached response.
        .max_header_size(limits.head_bytes)
        // Spare bytes, so that a head of the maximum size fits.
        .max_buf_size(limits.head_bytes + 4 * 1024)
        .serve_connection(TokioIo::new(stream), service)
}

fn is_connection_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
