//! Bodies: requests are read within a size limit and a timeout.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt, Either, Full, LengthLimitError, Limited};
use hyper::body::Body as _;

use super::ProblemResponse;

/// Response body: cached bytes, or the body of a route.
pub(crate) type ResponseBody = Either<Full<Bytes>, Body>;

/// Timeout of a body.
const TIME_MAX: Duration = Duration::from_secs(10);

/// Reads a whole body of at most `limit` bytes.
///
/// # Errors
/// 413 if it is larger, 408 after the timeout, 400 if it is incomplete.
pub(crate) async fn read_body(body: Body, limit: usize) -> Result<Vec<u8>, ProblemResponse> {
    let too_large = || {
        let detail = format!("The body is too large: at most {limit} bytes are read.");
        Err(ProblemResponse::new(StatusCode::PAYLOAD_TOO_LARGE, detail))
    };
    // A body that is announced as too large is not read.
    if body.size_hint().lower() > limit as u64 {
        return too_large();
    }
    match tokio::time::timeout(TIME_MAX, Limited::new(body, limit).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes().to_vec()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => too_large(),
        Ok(Err(_)) => Err(ProblemResponse::bad("body", "it is incomplete")),
        Err(_) => Err(ProblemResponse::new(StatusCode::REQUEST_TIMEOUT, "The body took too long to arrive.")),
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;
    use bytes::Bytes;
    use futures_util::{StreamExt, stream};

    use super::*;

    async fn check(body: Body, expect: Result<usize, u16>) {
        let read = read_body(body, 8).await;
        let read = read.map(|bytes| bytes.len()).map_err(|refusal| refusal.into_response().status().as_u16());
        assert_eq!(read, expect);
    }

    #[tokio::test(start_paused = true)]
    async fn body_limits_size_and_time() {
        let some = || stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"1234"))]);
        check(Body::empty(), Ok(0)).await;
        check(Body::from("12345678"), Ok(8)).await;
        check(Body::from("123456789"), Err(413)).await;
        check(Body::from_stream(stream::iter([0; 3]).flat_map(move |_| some())), Err(413)).await;
        check(Body::from_stream(some().chain(stream::pending())), Err(408)).await;
        let broken = stream::iter([Err(std::io::Error::other("gone"))]);
        check(Body::from_stream(some().chain(broken)), Err(400)).await;
    }
}
