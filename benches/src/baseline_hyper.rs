//! The least work of a server: hyper alone, with one response to everything.

use std::{convert::Infallible, path::Path};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use http_body_util::Full;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// Writes the response of a baseline server to a file.
pub(crate) fn write(file: &Path, headers: &HeaderMap, body: &[u8]) -> Result<()> {
    let mut bytes = Vec::new();
    for (name, value) in headers {
        // hyper adds these two itself.
        if name != http::header::DATE && name != http::header::CONTENT_LENGTH {
            bytes.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\n"].concat());
        }
    }
    bytes.push(b'\n');
    bytes.extend(body);
    Ok(std::fs::write(file, bytes)?)
}

fn read(file: &Path) -> Result<(Vec<(HeaderName, HeaderValue)>, Bytes)> {
    let mut rest = Bytes::from(std::fs::read(file)?);
    let mut headers = Vec::new();
    loop {
        let end =
            rest.iter().position(|byte| *byte == b'\n').context("the head of the response has no end")?;
        let line = rest.split_to(end);
        let _ = rest.split_to(1);
        let Some(colon) = line.windows(2).position(|pair| pair == b": ") else { break };
        headers.push((line[..colon].try_into()?, HeaderValue::from_bytes(&line[colon + 2..])?));
    }
    Ok((headers, rest))
}

/// Serves the response in a file until the process is killed.
pub(crate) async fn serve(file: &Path) -> Result<()> {
    let (headers, body) = read(file)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("bare listening on http://{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (headers, body) = (headers.clone(), body.clone());
        tokio::spawn(async move {
            let service = service_fn(move |_| {
                let mut response = Response::new(Full::new(body.clone()));
                let response_headers = response.headers_mut();
                response_headers.reserve(headers.len());
                headers
                    .iter()
                    .for_each(|(name, value)| drop(response_headers.insert(name.clone(), value.clone())));
                async { Ok::<_, Infallible>(response) }
            });
            // A client that disconnects is not an error.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
