//! How large a request's head may be.
//!
//! hyper refuses a head that it cannot read, or that outgrows its buffer, with a status and no body, and nothing can
//! be put there: 400 for what is no HTTP, 431 for more than [`READ_BYTES_MAX`] bytes or more than 100 headers. So
//! that whoever sends a little too much is told in words, it reads more than is answered.

use http::{Request, StatusCode};

use super::Refusal;

/// The largest head that is answered, in bytes.
pub(crate) const HEAD_BYTES_MAX: usize = 32 * 1024;
/// The largest head that is read at all, in bytes.
pub(crate) const READ_BYTES_MAX: usize = 60 * 1024;

/// What the lines of a head have beside names and values: `: ` and the line's end.
const LINE_BYTES: usize = 4;

/// The refusal of a request whose head is too large.
pub(crate) fn too_large<B>(request: &Request<B>) -> Option<Refusal> {
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
