//! An HTTP client for requests that wrk does not measure.

use anyhow::Result;
use bytes::Bytes;
use http::{Request, Response, request::Builder};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{Client as HyperClient, connect::HttpConnector},
    rt::TokioExecutor,
};

/// A client that keeps its connections.
#[derive(Clone, Debug)]
pub(crate) struct HttpClient(HyperClient<HttpConnector, Full<Bytes>>);

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
    send(client, Request::get(format!("http://{address}{path}")), headers, Bytes::new()).await
}

/// Sends a POST with a JSON body, and returns the whole body of the response as text.
pub(crate) async fn post(
    client: &HttpClient,
    address: &str,
    path: &str,
    headers: &[(&str, &str)],
    json: String,
) -> Result<String> {
    let request = Request::post(format!("http://{address}{path}")).header("content-type", "application/json");
    read(send(client, request, headers, json.into()).await?).await
}

/// Sends a GET and returns the whole body as text.
pub(crate) async fn text(
    client: &HttpClient,
    address: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> Result<String> {
    read(get(client, address, path, headers).await?).await
}

async fn send(
    client: &HttpClient,
    mut request: Builder,
    headers: &[(&str, &str)],
    body: Bytes,
) -> Result<Response<Incoming>> {
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Ok(client.0.request(request.body(Full::new(body))?).await?)
}

async fn read(response: Response<Incoming>) -> Result<String> {
    let body = response.into_body().collect().await?.to_bytes();
    Ok(String::from_utf8_lossy(&body).into_owned())
}
