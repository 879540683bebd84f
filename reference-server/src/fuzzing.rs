//! Entry points of the fuzz targets (feature `fuzzing`).

use std::{ffi::OsString, path::Path};

use axum::body::Body;
use http::{HeaderName, HeaderValue, Method, Request, Uri, header};
use http_body_util::BodyExt as _;

use crate::{
    config::{SettingSources, Settings},
    testing::ServiceFixture,
};

pub use crate::command::fuzzing::{import_info, import_name};

/// Reads settings. Returns their report and their debug output.
///
/// # Errors
/// The sentences about all errors.
pub fn load_settings(
    file: &Path,
    environment: Vec<(OsString, OsString)>,
) -> Result<(String, String), String> {
    let file = Some(file.to_owned());
    let sources = SettingSources { data: "/data".into(), file, environment, flags: Vec::new() };
    let settings = Settings::load(sources).map_err(|errors| errors.to_string())?;
    Ok((settings.report(), format!("{settings:?}")))
}

/// Both APIs, the pages and MCP over stores in memory, with one account and one key.
pub struct FuzzService {
    service: ServiceFixture,
    lookup_key: String,
    account_key: String,
}

/// Request; parts that HTTP cannot carry are left out.
#[derive(Clone, Copy, Debug)]
pub struct FuzzRequest<'a> {
    /// The method.
    pub method: &'a str,
    /// Path and query.
    pub target: &'a str,
    /// Header lines. `@lookup` and `@account` in a value become the keys of the service.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body.
    pub body: &'a [u8],
}

/// Response.
#[derive(Debug)]
pub struct FuzzResponse {
    /// The status.
    pub status: u16,
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// Whether the body is encoded.
    pub is_encoded: bool,
    /// The body.
    pub body: Vec<u8>,
}

transcript_core::debug_fields!(FuzzService {});

impl FuzzService {
    /// Starts the service on the current runtime.
    pub async fn start() -> Self {
        let service = ServiceFixture::start().await;
        let (lookup_key, account_key) = (service.key().await, service.account("ann@example.com").await);
        Self { service, lookup_key, account_key }
    }

    /// Sends a request; `None` if HTTP cannot carry it.
    pub async fn send(&self, request: FuzzRequest<'_>) -> Option<FuzzResponse> {
        let method = Method::from_bytes(request.method.as_bytes()).ok()?;
        let target: Uri = request.target.parse().ok()?;
        let mut sent = Request::builder().method(method).uri(target);
        for (name, value) in [("host", "v.example")].iter().chain(request.headers) {
            let value = value.replace("@lookup", &self.lookup_key).replace("@account", &self.account_key);
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(*name), HeaderValue::try_from(value)) {
                sent = sent.header(name, value);
            }
        }
        let sent = sent.body(Body::from(request.body.to_vec())).ok()?;
        let (head, body) = self.service.http.answer(sent, [192, 0, 2, 1].into()).await.into_parts();
        let content_type = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.map(str::to_owned);
        let is_encoded = head.headers.contains_key(header::CONTENT_ENCODING);
        let body = body.collect().await.ok()?.to_bytes().to_vec();
        Some(FuzzResponse { status: head.status.as_u16(), content_type, is_encoded, body })
    }
}
