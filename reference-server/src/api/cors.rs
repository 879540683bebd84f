//! Cross-origin rules: any origin on lookups, configured origins on keys, registrations and searches.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use http::{
    HeaderMap, HeaderValue, Method,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ORIGIN, VARY,
    },
};

/// Rule of one route.
#[derive(Clone, Debug)]
pub(crate) struct CorsRule {
    /// The methods, as `Allow` lists them.
    methods: &'static str,
    origins: CorsOrigins,
}

/// Allowed origins.
#[derive(Clone, Debug)]
enum CorsOrigins {
    Any,
    Listed(Arc<[HeaderValue]>),
}

impl CorsRule {
    /// Allows any origin. Credentials are never allowed: a page sends its key in a header.
    pub(crate) fn open(methods: &'static str) -> Self {
        Self { methods, origins: CorsOrigins::Any }
    }

    /// Allows these origins.
    pub(crate) fn listed(methods: &'static str, origins: Arc<[HeaderValue]>) -> Self {
        Self { methods, origins: CorsOrigins::Listed(origins) }
    }

    /// Adds the headers of this rule to a response.
    pub(crate) fn apply(&self, origin: Option<&HeaderValue>, preflight: bool, headers: &mut HeaderMap) {
        let allowed = match (&self.origins, origin) {
            (CorsOrigins::Any, _) => Some(HeaderValue::from_static("*")),
            (CorsOrigins::Listed(origins), Some(origin)) => origins.contains(origin).then(|| origin.clone()),
            (CorsOrigins::Listed(_), None) => None,
        };
        if matches!(self.origins, CorsOrigins::Listed(_)) {
            headers.append(VARY, HeaderValue::from_static("origin"));
        }
        let Some(allowed) = allowed else { return };
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
        let fixed = HeaderValue::from_static;
        if preflight {
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, fixed(self.methods));
            // The headers of the Model Context Protocol are used by one route only and are harmless on others.
            let allowed_headers = "authorization, content-type, idempotency-key, mcp-method, mcp-name, \
                         mcp-protocol-version, x-verbatim-entitlement, x-request-id";
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, fixed(allowed_headers));
            headers.insert(ACCESS_CONTROL_MAX_AGE, fixed("86400"));
        } else {
            headers.insert(
                ACCESS_CONTROL_EXPOSE_HEADERS,
                fixed("etag, retry-after, x-failure-detail, x-is-generated, x-next-cursor, x-request-id"),
            );
        }
    }
}

/// Adds the headers of the route's rule to responses.
pub(crate) async fn cors(State(rule): State<CorsRule>, request: Request, next: Next) -> Response {
    let origin = request.headers().get(ORIGIN).cloned();
    let preflight = request.method() == Method::OPTIONS;
    let mut response = next.run(request).await;
    rule.apply(origin.as_ref(), preflight, response.headers_mut());
    response
}
