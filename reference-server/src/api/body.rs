//! Bodies: requests are read within a size limit, a timeout and the memory budget.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header::CONTENT_ENCODING};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Body as _, Frame, SizeHint};

use super::{BudgetedBytes, ByteBudget, ProblemResponse, ReservedBytes};

/// Response body: cached bytes, or the body of a route.
pub(crate) type ResponseBody = Either<Full<Bytes>, Body>;

/// Request body that was read.
pub(crate) type RequestBody = BudgetedBytes<Vec<u8>>;

/// Limit of a JSON request body with a few short fields, in bytes.
pub(crate) const BODY_MAX: usize = 16 * 1024;
/// Timeout of a body. It is also the minimum rate of one: at most half a megabyte is read.
const TIME_MAX: Duration = Duration::from_secs(10);

/// Largest request body that is read without a reservation, in bytes.
const UNRESERVED_BYTES: usize = 16 * 1024;
/// Memory that a large request takes, as a multiple of its body: the bytes, and what is parsed from them.
const PARSED_FACTOR: usize = 2;

/// Sentence of a 415 for a compressed body.
pub(crate) const ENCODED_BODY: &str = "The body has a Content-Encoding, such as gzip: send it without one.";

/// Reads a whole body of at most `limit` bytes. A large one reserves memory until the returned value is dropped.
///
/// # Errors
/// 413 if it is larger, 408 after the timeout, 400 if it is incomplete, 415 if it is compressed, 503 if `budget` is
/// exhausted.
pub(crate) async fn read_body(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    budget: &ByteBudget,
) -> Result<RequestBody, ProblemResponse> {
    // A body that is announced as too large is not read.
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large(limit));
    }
    match tokio::time::timeout(TIME_MAX, read_within(body, limit, budget)).await {
        // A compressed body was read, so that the connection can take the next request.
        Ok(Ok(read)) if !read.is_empty() && !is_identity(headers) => {
            Err(ProblemResponse::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, ENCODED_BODY))
        }
        Ok(read) => read,
        Err(_) => Err(ProblemResponse::new(StatusCode::REQUEST_TIMEOUT, "The body took too long to arrive.")),
    }
}

/// Returns whether the body of a request has no content coding.
pub(crate) fn is_identity(headers: &HeaderMap) -> bool {
    let values = headers.get_all(CONTENT_ENCODING).iter();
    let codings = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    codings.map(<[u8]>::trim_ascii).all(|name| name.is_empty() || name.eq_ignore_ascii_case(b"identity"))
}

async fn read_within(
    mut body: Body,
    limit: usize,
    budget: &ByteBudget,
) -> Result<RequestBody, ProblemResponse> {
    let (mut bytes, mut reserved) = (Vec::new(), None::<ReservedBytes>);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| ProblemResponse::bad("body", "it is incomplete"))?;
        // Trailers are discarded.
        let Ok(data) = frame.into_data() else { continue };
        let length = bytes.len() + data.len();
        if length > limit {
            return Err(too_large(limit));
        }
        if length > UNRESERVED_BYTES && reserved.is_none() {
            // All at once, so that bodies that are read in parts never wait for each other.
            reserved = Some(budget.reserve(PARSED_FACTOR * limit).await?);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(RequestBody::new(bytes, reserved))
}

fn too_large(limit: usize) -> ProblemResponse {
    let detail = format!("The body is too large: at most {limit} bytes are read.");
    ProblemResponse::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
}

/// Marks a response whose bytes were counted where they were made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountedBody;

/// Returns a response whose bytes have their reservation, if they are large.
pub(crate) fn counted(response: Response<Full<Bytes>>) -> Response<Body> {
    let mut response = response.map(Body::new);
    response.extensions_mut().insert(CountedBody);
    response
}

/// Returns the body with this reservation, which ends when its last byte is sent or dropped.
pub(crate) fn budgeted(body: Body, reserved: ReservedBytes) -> Body {
    Body::new(BudgetedBody { body, reserved: Some(reserved) })
}

/// Body whose first frame takes the reservation along: a body of known length has one frame of data.
struct BudgetedBody {
    body: Body,
    reserved: Option<ReservedBytes>,
}

impl hyper::body::Body for BudgetedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Self { body, reserved } = self.get_mut();
        let frame = ready!(Pin::new(body).poll_frame(cx));
        let budgeted = |data| BudgetedBytes::new(data, reserved.take()).into_bytes();
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(budgeted))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;
    use bytes::Bytes;
    use futures_util::{StreamExt, stream};

    use super::*;

    async fn check(body: Body, expect: Result<usize, u16>) {
        let read = read_body(&HeaderMap::new(), body, 8, &ByteBudget::new(1)).await;
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

    #[tokio::test(start_paused = true)]
    async fn body_large_reserves_memory_until_dropped() {
        let budget = ByteBudget::new(100 * 1024);
        let headers = HeaderMap::new();
        let read =
            async |bytes: usize| read_body(&headers, Body::from(vec![0; bytes]), 50 * 1024, &budget).await;
        let large = read(UNRESERVED_BYTES + 1).await.unwrap();
        assert_eq!(read(UNRESERVED_BYTES).await.unwrap().len(), UNRESERVED_BYTES);
        assert_eq!(read(UNRESERVED_BYTES + 1).await.unwrap_err().status(), StatusCode::SERVICE_UNAVAILABLE);
        drop(large);
        assert!(read(UNRESERVED_BYTES + 1).await.is_ok());
    }
}
