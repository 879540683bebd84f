//! Sends webhooks to the addresses that accounts choose.
//!
//! Such an address must not reach what only the server can reach: the connection goes to a public address only, which
//! is checked after the name is resolved, and no redirect is followed.

use std::{path::Path, time::Duration};

use async_trait::async_trait;
use http::header::CONTENT_TYPE;
use reqwest::Client;
use transcript_core::{
    Error, Result,
    accounts::webhooks::{WebhookClient, WebhookPost, check_callback_url},
    headers::VERBATIM_SIGNATURE,
};

use crate::http::{HttpError, build_webhook_client};

/// Timeout of a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of a call: receivers should store the event and respond.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Sends webhooks over HTTP.
#[derive(Debug)]
pub struct HttpWebhookClient {
    public: Client,
    /// For servers that allow private hosts.
    private: Client,
}

impl HttpWebhookClient {
    /// Creates a client that trusts the system's certificates and a PEM file; sends nothing.
    ///
    /// # Errors
    /// The file cannot be read, or the client cannot be built.
    pub fn new(ca_file: Option<&Path>) -> Result<Self> {
        let build = |allow_private| build_webhook_client(ca_file, allow_private, CONNECT_TIMEOUT, TIMEOUT);
        Ok(Self { public: build(false)?, private: build(true)? })
    }
}

#[async_trait]
impl WebhookClient for HttpWebhookClient {
    async fn post(&self, post: WebhookPost) -> Result<u16> {
        check_callback_url(&post.url, post.allow_private)
            .map_err(|wrong| Error::invalid(format!("the callback address is not allowed: {wrong}")))?;
        self.send(post).await
    }
}

impl HttpWebhookClient {
    async fn send(&self, post: WebhookPost) -> Result<u16> {
        let client = if post.allow_private { &self.private } else { &self.public };
        let request = client
            .post(&post.url)
            .header(CONTENT_TYPE, "application/json")
            .header(VERBATIM_SIGNATURE, post.signature)
            .body(post.body);
        // The body of the response is not read.
        match request.send().await {
            Ok(response) => Ok(response.status().as_u16()),
            Err(error) => Err(Error::unavailable(match HttpError::from_reqwest(&error) {
                HttpError::PrivateAddress => "the host has no public address",
                HttpError::Timeout => "the host did not respond in time",
                HttpError::Unreachable(how) => how,
                _ => "the host closed the connection",
            })),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn name_of_private_address_is_not_connected_to() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = HttpWebhookClient::new(None).unwrap();
        let post = |url: &str| WebhookPost {
            url: url.to_owned(),
            allow_private: false,
            signature: String::new(),
            body: Vec::new(),
        };
        // The name passes no check of its text: only its address decides.
        let sent = client.send(post(&format!("https://localhost:{port}/"))).await;
        assert_eq!(sent.unwrap_err().message(), "the host has no public address");
        for url in [format!("https://127.0.0.1:{port}/"), format!("http://example.org:{port}/")] {
            let refused = client.post(post(&url)).await.unwrap_err();
            assert!(refused.message().starts_with("the callback address is not allowed: "), "{refused}");
        }
        // A connection would wait in the queue of the listener.
        assert!(listener.into_std().unwrap().accept().is_err(), "a connection was made");
    }
}
