//! `verbatim health`: requests the state of the server on this machine, for supervisors and images without an HTTP
//! client.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use bytes::Bytes;
use clap::Args;
use http::{Request, StatusCode};
use http_body_util::Empty;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{CommandError, print};
use crate::config::ListenAddress;

/// Longest wait for the response: supervisors usually allow more.
const WAIT: Duration = Duration::from_secs(5);

/// Arguments of `verbatim health`.
#[derive(Args, Debug)]
#[command(after_help = "Example, as the health check of a container:
  HEALTHCHECK CMD [\"verbatim\", \"health\"]

It exits with status 1 if the server does not answer within five seconds.")]
pub(super) struct HealthArgs {
    /// Also require that its stores work and it is not stopping, as /readyz does
    #[arg(long)]
    ready: bool,
}

/// Succeeds if the server at `listen` answers `GET /healthz`, or with `--ready` `GET /readyz`, with 200.
pub(super) async fn run(listen: &ListenAddress, args: &HealthArgs) -> Result<(), CommandError> {
    let path = if args.ready { "/readyz" } else { "/healthz" };
    let status = tokio::time::timeout(WAIT, status(listen, path))
        .await
        .unwrap_or_else(|_| Err(format!("no response within {} seconds", WAIT.as_secs())))
        .map_err(|text| CommandError::Fault(format!("the server at {listen} does not answer: {text}")))?;
    if status.is_success() {
        print(&format!("the server at {listen} answers\n"))
    } else {
        Err(CommandError::Fault(format!("the server at {listen} answers with {status}")))
    }
}

async fn status(listen: &ListenAddress, path: &str) -> Result<StatusCode, String> {
    match listen {
        ListenAddress::Tcp(address) => {
            let stream = tokio::net::TcpStream::connect(reachable(*address)).await.map_err(text)?;
            request(stream, path).await
        }
        #[cfg(unix)]
        ListenAddress::Unix(socket) => {
            request(tokio::net::UnixStream::connect(socket).await.map_err(text)?, path).await
        }
        #[cfg(not(unix))]
        ListenAddress::Unix(_) => Err("this system has no unix sockets".to_owned()),
    }
}

/// The loopback address of a server that listens on all addresses.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

async fn request(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    path: &str,
) -> Result<StatusCode, String> {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(text)?;
    tokio::spawn(connection);
    // Every server answers for this address, whatever its server.allowed_hosts are.
    let request = Request::get(path).header("host", "127.0.0.1").body(Empty::<Bytes>::new()).map_err(text)?;
    Ok(sender.send_request(request).await.map_err(text)?.status())
}

fn text(error: impl fmt::Display) -> String {
    error.to_string()
}
