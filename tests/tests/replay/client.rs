//! A client of the proxy that exposes the wire: no retries, no redirects, no connection pool.

use std::{io::ErrorKind, sync::Arc};

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use verbatim_tests::replay::ReplayProxy;

/// The protocol of a client inside the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientProtocol {
    Http1,
    Http2,
}

/// The status of the proxy's response to a CONNECT, and the stream behind it.
pub(super) async fn connect(proxy: &ReplayProxy, host: &str) -> Result<(u16, TcpStream)> {
    let address = proxy.url().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(address).await?;
    let head = format!("CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let mut response = Vec::new();
    while !response.ends_with(b"\r\n\r\n") {
        response.push(stream.read_u8().await?);
    }
    let status = std::str::from_utf8(&response)?.split(' ').nth(1).context("a status line")?.parse()?;
    Ok((status, stream))
}

/// A TLS stream to this host through the proxy, trusting the authority of `trusted`.
pub(super) async fn tls(
    proxy: &ReplayProxy,
    trusted: &ReplayProxy,
    host: &str,
    protocol: ClientProtocol,
) -> Result<TlsStream<TcpStream>> {
    let (status, stream) = connect(proxy, host).await?;
    if status != 200 {
        bail!("the tunnel was refused with {status}");
    }
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(trusted.ca_file())?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![match protocol {
        ClientProtocol::Http1 => b"http/1.1".to_vec(),
        ClientProtocol::Http2 => b"h2".to_vec(),
    }];
    let name = ServerName::try_from(host.to_owned())?;
    Ok(TlsConnector::from(Arc::new(config)).connect(name, stream).await?)
}

/// Sends one request on its own connection; returns the response as soon as its head has arrived.
pub(super) async fn send(
    proxy: &ReplayProxy,
    protocol: ClientProtocol,
    request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>> {
    let host = request.uri().host().context("a request with a host")?.to_owned();
    let io = TokioIo::new(tls(proxy, proxy, &host, protocol).await?);
    Ok(match protocol {
        ClientProtocol::Http1 => {
            let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await?;
            tokio::spawn(connection);
            let (mut head, body) = request.into_parts();
            head.headers.insert("host", host.parse()?);
            head.uri = head.uri.path_and_query().context("a path")?.as_str().parse()?;
            sender.send_request(Request::from_parts(head, body)).await?
        }
        ClientProtocol::Http2 => {
            let (mut sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await?;
            tokio::spawn(connection);
            sender.send_request(request).await?
        }
    })
}

/// The status and the whole body of a GET of this address.
pub(super) async fn get(
    proxy: &ReplayProxy,
    protocol: ClientProtocol,
    address: &str,
) -> Result<(u16, Bytes)> {
    let request = Request::get(address).body(Full::default())?;
    let response = send(proxy, protocol, request).await?;
    let status = response.status().as_u16();
    Ok((status, response.into_body().collect().await?.to_bytes()))
}

/// Whether this connection was closed without a byte.
pub(super) async fn is_closed(stream: &mut TcpStream) -> bool {
    match stream.read_u8().await {
        Ok(_) => false,
        Err(error) => matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset),
    }
}
