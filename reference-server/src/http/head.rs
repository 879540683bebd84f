//! What a request's head must be like: how large it may be, and that it names one host.
//!
//! hyper refuses a head that it cannot read, or that outgrows its buffer, with a status and no body, and nothing can
//! be put there: 400 for what is no HTTP, 431 for more than [`READ_BYTES_MAX`] bytes or more than 100 headers. So
//! that whoever sends a little too much is told in words, it reads more than is answered.

use http::{Request, StatusCode, Version, header::HOST};

use super::Refusal;

/// The largest head that is answered, in bytes.
pub(crate) const HEAD_BYTES_MAX: usize = 32 * 1024;
/// The largest head that is read at all, in bytes.
pub(crate) const READ_BYTES_MAX: usize = 60 * 1024;

/// What the lines of a head have beside names and values: `: ` and the line's end.
const LINE_BYTES: usize = 4;

/// The refusal of a request with such a head, if it is to be refused.
pub(crate) fn refused<B>(request: &Request<B>) -> Option<Refusal> {
    too_large(request).or_else(|| without_host(request))
}

/// HTTP/1.1 wants the host once (RFC 9112, 3.2). Which one it is makes no difference here: no link of ours comes
/// from it.
fn without_host<B>(request: &Request<B>) -> Option<Refusal> {
    let hosts = request.headers().get_all(HOST).iter().count();
    let is_missing = hosts == 0 && request.version() >= Version::HTTP_11;
    (is_missing || hosts > 1).then(|| Refusal::bad("Host", "the header must be there, and once"))
}

fn too_large<B>(request: &Request<B>) -> Option<Refusal> {
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    let lines = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + LINE_BYTES);
    let bytes = target + lines.sum::<usize>();
    (bytes > HEAD_BYTES_MAX).then(|| {
        let kib = HEAD_BYTES_MAX / 1024;
        let what = if target > bytes / 2 { "address is" } else { "headers are" };
        let detail = format!("The request's {what} too large: its head may have {kib} KiB altogether.");
        Refusal::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, detail)
    })
}
