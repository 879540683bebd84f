//! Cross-origin rules: any origin on lookups, configured origins on keys.

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
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ALLOW, ORIGIN, VARY,
    },
};

/// Rule of one route.
#[derive(Clone, Debug)]
pub(crate) struct CorsRule {
    /// The methods, as `Allow` lists them.
    pub(crate) methods: &'static str,
    origins: CorsOrigins,
}

/// Allowed origins.
#[derive(Clone, Debug)]
enum CorsOrigins {
    Any,
    Listed(Arc<[HeaderValue]>),
    /// No other origin.
    Own,
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

    /// Allows no other origin: for pages and operator endpoints.
    pub(crate) fn own(methods: &'static str) -> Self {
        Self { methods, origins: CorsOrigins::Own }
    }

    /// Adds the headers of this rule to a response.
    pub(crate) fn apply(&self, origin: Option<&HeaderValue>, preflight: bool, headers: &mut HeaderMap) {
        let allowed = match (&self.origins, origin) {
            (CorsOrigins::Any, _) => Some(HeaderValue::from_static("*")),
            (CorsOrigins::Listed(origins), Some(origin)) => origins.contains(origin).then(|| origin.clone()),
            (CorsOrigins::Listed(_), None) | (CorsOrigins::Own, _) => None,
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
            let allowed_headers = "authorization, content-type, mcp-method, mcp-name, mcp-protocol-version, \
                         x-verbatim-entitlement, x-request-id";
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, fixed(allowed_headers));
            headers.insert(ACCESS_CONTROL_MAX_AGE, fixed("86400"));
        } else {
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, fixed("retry-after, x-request-id"));
        }
    }
}

/// Adds the headers of the route's rule to responses and answers OPTIONS with `Allow`.
pub(crate) async fn cors(State(rule): State<CorsRule>, request: Request, next: Next) -> Response {
    let origin = request.headers().get(ORIGIN).cloned();
    let options = request.method() == Method::OPTIONS;
    let mut response = if options {
        let mut response = Response::new(axum::body::Body::empty());
        *response.status_mut() = http::StatusCode::NO_CONTENT;
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(rule.methods));
        response
    } else {
        next.run(request).await
    };
    rule.apply(origin.as_ref(), options, response.headers_mut());
    response
}
