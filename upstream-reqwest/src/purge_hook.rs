//! The operator's purge hook, which removes responses from the caches in front of the servers.

use std::{path::PathBuf, time::Duration};

use http::{
    HeaderValue,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use reqwest::Client;
use serde_json::json;
use transcript_core::{Error, Result, debug_fields, headers::SURROGATE_KEY};

use crate::http::{bearer, build_service_client};

/// Timeout of a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of a call.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Options of [`PurgeHook`].
#[derive(Clone, PartialEq, Eq)]
pub struct PurgeHookOptions {
    /// The address that is called.
    pub url: String,
    /// Sent as `Authorization: Bearer`, if there is one.
    pub secret: Option<String>,
    /// PEM file of further root certificates.
    pub ca_file: Option<PathBuf>,
}

debug_fields!(PurgeHookOptions { ca_file });

/// Calls an address of the operator with the surrogate keys of outdated responses.
#[derive(Clone)]
pub struct PurgeHook {
    client: Client,
    url: String,
    authorization: Option<HeaderValue>,
}

debug_fields!(PurgeHook { client });

impl PurgeHook {
    /// Creates the hook.
    ///
    /// # Errors
    /// The secret is no header value, the file cannot be read, or the client cannot be built.
    pub fn new(options: &PurgeHookOptions) -> Result<Self> {
        let authorization = options.secret.as_deref().map(bearer).transpose();
        let authorization = authorization
            .map_err(|_| Error::invalid("the secret of the purge hook is not a header value"))?;
        let client = build_service_client(options.ca_file.as_deref(), None, CONNECT_TIMEOUT, Some(TIMEOUT))?;
        Ok(Self { client, url: options.url.clone(), authorization })
    }

    /// Requests the removal of all responses with one of these keys: `POST` with the keys in the header
    /// `Surrogate-Key` and in the JSON body, as `tags`.
    ///
    /// # Errors
    /// No response with a status from 200 to 299. The message contains no address.
    pub async fn purge(&self, keys: &[String]) -> Result<()> {
        let mut request = self.client.post(&self.url).header(SURROGATE_KEY, keys.join(" "));
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        let body = json!({ "tags": keys }).to_string();
        let sent = request.header(CONTENT_TYPE, "application/json").body(body).send().await;
        // The address may contain a secret.
        let response = sent.map_err(|error| Error::unavailable(error.without_url().to_string()))?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => {
                Err(Error::unavailable(format!("the purge hook answered with status {}", status.as_u16())))
            }
        }
    }
}
