//! Checks of a request head: its size, its host and the encoding of its body.
//!
//! hyper refuses an unreadable head, or one that exceeds its buffer, with a status and without a body: 400 for what is
//! not HTTP, 431 for more than [`READ_BYTES_MAX`] bytes or more than 100 headers. More is read than accepted, so that
//! slightly larger requests get a problem document.

use http::{
    HeaderValue, Request, StatusCode, Version,
    header::{HOST, TRANSFER_ENCODING},
};

use super::ProblemResponse;

/// Largest accepted head, in bytes.
pub(crate) const HEAD_BYTES_MAX: usize = 32 * 1024;
/// Largest head that is read, in bytes.
pub(crate) const READ_BYTES_MAX: usize = 60 * 1024;

/// Bytes of a header line besides name and value: `: ` and the line end.
const LINE_BYTES: usize = 4;

/// Returns the error for an invalid head.
pub(crate) fn check_head<B>(request: &Request<B>) -> Option<ProblemResponse> {
    too_large(request).or_else(|| without_host(request)).or_else(|| encoded(request))
}

/// hyper reads a body whose last encoding is chunked, and leaves the others to the handler, of which none decodes them.
/// It refuses a body without chunked as the last one: its end cannot be found (RFC 9112, 6.3).
fn encoded<B>(request: &Request<B>) -> Option<ProblemResponse> {
    let mut encodings = request.headers().get_all(TRANSFER_ENCODING).iter();
    let is_chunked =
        |encoding: &HeaderValue| encoding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked");
    let is_known = encodings.next().is_none_or(is_chunked) && encodings.next().is_none();
    (!is_known).then(|| {
        let detail = "Transfer-Encoding: this server reads chunked bodies only.";
        ProblemResponse::new(StatusCode::NOT_IMPLEMENTED, detail)
    })
}

/// HTTP/1.1 requires exactly one host (RFC 9112, 3.2); HTTP/2 may send it as `:authority` instead.
///
/// Its value is used for [`super::AllowedHosts`] only: links begin with the configured address.
fn without_host<B>(request: &Request<B>) -> Option<ProblemResponse> {
    let hosts = request.headers().get_all(HOST).iter().count();
    let is_missing = hosts == 0
        && match request.version() {
            Version::HTTP_09 | Version::HTTP_10 => false,
            Version::HTTP_11 => true,
            _ => request.uri().authority().is_none(),
        };
    (is_missing || hosts > 1).then(|| ProblemResponse::bad("Host", "the header is required exactly once"))
}

fn too_large<B>(request: &Request<B>) -> Option<ProblemResponse> {
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    let lines = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + LINE_BYTES);
    let bytes = target + lines.sum::<usize>();
    (bytes > HEAD_BYTES_MAX).then(|| {
        let kib = HEAD_BYTES_MAX / 1024;
        let what = if target > bytes / 2 { "address is" } else { "headers are" };
        let detail = format!("The request's {what} too large: its head may have {kib} KiB altogether.");
        ProblemResponse::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, detail)
    })
}
