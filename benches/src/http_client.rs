//! An HTTP client for requests that wrk does not measure.

use anyhow::Result;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{Client as HyperClient, connect::HttpConnector},
    rt::TokioExecutor,
};

/// A client that keeps its connections.
#[derive(Clone, Debug)]
pub(crate) struct HttpClient(HyperClient<HttpConnector, Empty<Bytes>>);

impl HttpClient {
    pub(crate) fn new() -> Self {
        Self(HyperClient::builder(TokioExecutor::new()).build_http())
    }
}

/// Sends a GET of a path at an address.
pub(crate) async fn get(
    client: &HttpClient,
    address: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> Result<Response<Incoming>> {
    let mut request = Request::get(format!("http://{address}{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Ok(client.0.request(request.body(Empty::new())?).await?)
}

/// Sends a GET and returns the whole body as text.
pub(crate) async fn text(
    client: &HttpClient,
    address: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> Result<String> {
    let body = get(client, address, path, headers).await?.into_body();
    Ok(String::from_utf8_lossy(&body.collect().await?.to_bytes()).into_owned())
}
