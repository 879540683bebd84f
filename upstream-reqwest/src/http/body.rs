//! Reading an answer, up to its limit.

use bytes::{Bytes, BytesMut};
use reqwest::Response;

use super::HttpFault;

/// The whole body, decompressed; [`HttpFault::TooLarge`] as soon as it is known to be longer than `max`.
pub(crate) async fn read(mut response: Response, max: usize) -> Result<Bytes, HttpFault> {
    // What is announced is looked at first, so that nothing is read in vain; what comes is counted anyway,
    // since compression hides the size and an announcement may be wrong.
    let announced = response.content_length().unwrap_or(0);
    if announced > max as u64 {
        return Err(HttpFault::TooLarge);
    }
    let mut body = BytesMut::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() > max => return Err(HttpFault::TooLarge),
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Ok(body.freeze()),
            Err(error) => return Err(HttpFault::of(&error)),
        }
    }
}
