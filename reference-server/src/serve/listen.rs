//! The accept loop of the server.

use std::{future::Future, io, net::IpAddr, sync::Arc, time::Duration};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::Semaphore,
};
use transcript_core::log_failure;

use super::{
    CurrentService, Listener,
    listener::Accepted,
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

/// How long connections are accepted after the stop that were established before it.
const BACKLOG_TIMEOUT: Duration = Duration::from_millis(20);

/// Serves connections until `stop` resolves, then waits for running requests.
pub(crate) async fn serve(
    mut listener: Listener,
    service: CurrentService,
    limits: ConnectionLimits,
    stop: impl Future<Output = ()>,
) {
    let connections = Connections::new(service, limits);
    let mut stop = std::pin::pin!(stop);
    loop {
        tokio::select! {
            () = connections.accept(&listener) => {}
            () = &mut stop => break,
        }
    }
    listener.refuse();
    let accept_backlog = async {
        loop {
            connections.accept(&listener).await;
        }
    };
    // It ends with the timeout. Closing the listener would reset these connections.
    let _ = tokio::time::timeout(BACKLOG_TIMEOUT, accept_backlog).await;
    drop(listener);
    if tokio::time::timeout(limits.grace, connections.graceful.shutdown()).await.is_err() {
        tracing::warn!("requests interrupted at the end of the grace period");
    }
}

/// The connections of a listener.
struct Connections {
    service: CurrentService,
    limits: ConnectionLimits,
    open: Arc<Semaphore>,
    networks: Arc<NetworkLimit>,
    graceful: GracefulShutdown,
}

impl Connections {
    fn new(service: CurrentService, limits: ConnectionLimits) -> Self {
        let trusted_proxies = service.load().trusted_proxies().to_vec();
        Self {
            open: Arc::new(Semaphore::new(limits.connections)),
            networks: NetworkLimit::new(limits.connections_per_network, trusted_proxies),
            graceful: GracefulShutdown::new(),
            service,
            limits,
        }
    }

    /// Accepts one connection and serves it in its own task.
    async fn accept(&self, listener: &Listener) {
        // The semaphore is never closed, so a permit is always returned.
        let permit = Arc::clone(&self.open).acquire_owned().await;
        match listener.accept().await {
            Ok(Accepted::Tcp(stream, peer)) => {
                // Responses are written whole, so buffering would only delay them.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "TCP_NODELAY failed");
                }
                match self.networks.acquire(peer) {
                    Some(counted_by_network) => self.spawn(stream, peer, (permit, counted_by_network)),
                    None => tracing::debug!("connection above the limit of its network closed"),
                }
            }
            // A proxy, which is never limited.
            #[cfg(unix)]
            Ok(Accepted::Unix(stream, peer)) => self.spawn(stream, peer, permit),
            Err(error) if is_connection_error(&error) => {}
            Err(error) => {
                log_failure!(warn, [%error], "accept failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }

    /// Serves a connection; the guards are dropped at its end.
    fn spawn<S>(&self, stream: S, peer: IpAddr, guards: impl Send + 'static)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let watched = self.graceful.watch(connection(stream, peer, self.service.clone(), &self.limits));
        let counted = self.service.load().connection();
        tokio::spawn(async move {
            let _guards = (guards, counted);
            // A connection that its peer ends is not an error of the server.
            if let Err(error) = watched.await {
                tracing::debug!(%error, "connection ended early");
            }
        });
    }
}

fn connection<S>(
    stream: S,
    peer: IpAddr,
    service: CurrentService,
    limits: &ConnectionLimits,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> + Send + 'static
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let busy = BusyFlag::default();
    let stream = StallTimeoutStream::new(stream, limits.stall_timeouts, busy.clone());
    let service = service_fn(move |request| {
        let (front, guard) = (service.load(), busy.begin());
        async move {
            let response = front.serve(request, peer).await;
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
