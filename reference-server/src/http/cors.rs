//! Which web pages may call: anybody's on look-ups, the operator's own on keys.

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

/// What one route allows.
#[derive(Clone, Debug)]
pub(crate) struct CorsRule {
    /// The methods, as `Allow` lists them.
    pub(crate) methods: &'static str,
    origins: Origins,
}

/// Whose pages may call.
#[derive(Clone, Debug)]
enum Origins {
    Any,
    Listed(Arc<[HeaderValue]>),
    /// No page has a reason to.
    Own,
}

impl CorsRule {
    /// Any origin. Never with credentials: a page sends its key itself, in a header.
    pub(crate) fn open(methods: &'static str) -> Self {
        Self { methods, origins: Origins::Any }
    }

    /// Only these origins.
    pub(crate) fn listed(methods: &'static str, origins: Arc<[HeaderValue]>) -> Self {
        Self { methods, origins: Origins::Listed(origins) }
    }

    /// No other origin: a page for people, or something for operators.
    pub(crate) fn own(methods: &'static str) -> Self {
        Self { methods, origins: Origins::Own }
    }

    /// Adds the headers of this rule to an answer.
    pub(crate) fn apply(&self, origin: Option<&HeaderValue>, preflight: bool, headers: &mut HeaderMap) {
        let allowed = match (&self.origins, origin) {
            (Origins::Any, _) => Some(HeaderValue::from_static("*")),
            (Origins::Listed(origins), Some(origin)) => origins.contains(origin).then(|| origin.clone()),
            (Origins::Listed(_), None) | (Origins::Own, _) => None,
        };
        if matches!(self.origins, Origins::Listed(_)) {
            headers.append(VARY, HeaderValue::from_static("origin"));
        }
        let Some(allowed) = allowed else { return };
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
        let fixed = HeaderValue::from_static;
        if preflight {
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, fixed(self.methods));
            // Those of the Model Context Protocol are asked for on one route only, and mean nothing elsewhere.
            let asked = "authorization, content-type, mcp-method, mcp-name, mcp-protocol-version, \
                         x-verbatim-entitlement, x-request-id";
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, fixed(asked));
            headers.insert(ACCESS_CONTROL_MAX_AGE, fixed("86400"));
        } else {
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, fixed("retry-after, x-request-id"));
        }
    }
}

/// Adds the headers of the route's rule to its answers; answers OPTIONS with `Allow`.
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
