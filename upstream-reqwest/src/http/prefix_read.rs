//! Reads a response body up to a search text.

use bytes::Bytes;
use reqwest::Response;

use super::{
    HttpError,
    body::{BodyBuffer, is_gzip},
};

/// How many bytes are read after the search text.
pub(super) const TAIL_BYTES: usize = 256;
/// Maximum of remaining body bytes (as sent) that are drained so that the connection can be reused.
const REST_MAX: usize = 1 << 20;
/// Received bytes between two searches.
const STEP_BYTES: usize = 4 << 10;

/// Reads the body up to `text` and [`TAIL_BYTES`] bytes more, or all of it without a match.
///
/// The remainder is neither decompressed nor stored, and an error in it is ignored.
pub(super) async fn read(mut response: Response, max: usize, text: &[u8]) -> Result<Bytes, HttpError> {
    let mut prefix = PrefixRead::new(is_gzip(response.headers())?, max, text);
    while !prefix.is_enough() {
        match response.chunk().await.map_err(|error| HttpError::from_reqwest(&error))? {
            Some(chunk) => prefix.add(&chunk)?,
            None => return prefix.into_body(),
        }
    }
    let mut rest = 0;
    while let Ok(Some(chunk)) = response.chunk().await {
        rest += chunk.len();
        if rest > REST_MAX {
            break;
        }
    }
    Ok(prefix.into_prefix())
}

/// Body received so far.
struct PrefixRead<'a> {
    body: BodyBuffer,
    text: &'a [u8],
    /// Offset below which `text` does not occur.
    searched: usize,
    /// Offset after `text`, once found.
    end: Option<usize>,
}

impl<'a> PrefixRead<'a> {
    fn new(is_packed: bool, max: usize, text: &'a [u8]) -> Self {
        Self { body: BodyBuffer::new(is_packed, max, None), text, searched: 0, end: None }
    }

    fn is_enough(&self) -> bool {
        self.end.is_some_and(|end| self.body.bytes().len() >= end + TAIL_BYTES)
    }

    fn add(&mut self, chunk: &[u8]) -> Result<(), HttpError> {
        for step in chunk.chunks(STEP_BYTES) {
            self.body.add(step)?;
            self.search();
            if self.is_enough() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn search(&mut self) {
        if self.end.is_some() || self.text.is_empty() {
            return;
        }
        let body = self.body.bytes();
        let from = self.searched;
        let found = body.get(from..).and_then(|rest| memchr::memmem::find(rest, self.text));
        self.end = found.map(|offset| from + offset + self.text.len());
        // The text may begin at the end of the current data.
        self.searched = (body.len() + 1).saturating_sub(self.text.len()).max(from);
    }

    fn into_prefix(self) -> Bytes {
        let end = self.end.map(|end| end + TAIL_BYTES);
        let body = self.body.bytes();
        Bytes::copy_from_slice(end.and_then(|end| body.get(..end)).unwrap_or(body))
    }

    /// The whole body, after the last byte arrived.
    fn into_body(self) -> Result<Bytes, HttpError> {
        self.body.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    const TEXT: &[u8] = b"the key";

    fn gzipped(body: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(body).unwrap();
        encoder.finish().unwrap()
    }

    /// Bytes that compress poorly, with the text at this offset.
    fn page(length: usize, offset: usize) -> Vec<u8> {
        let mut state = 7_u32;
        let mut page: Vec<u8> = (0..length)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                b'a' + (state >> 28) as u8
            })
            .collect();
        page.splice(offset..offset + TEXT.len(), TEXT.iter().copied());
        page
    }

    /// Reads a body that arrives in pieces of this size; returns it and the number of pieces read.
    fn read(is_packed: bool, sent: &[u8], piece: usize, max: usize) -> Result<(Bytes, usize), HttpError> {
        let mut prefix = PrefixRead::new(is_packed, max, TEXT);
        for (taken, chunk) in sent.chunks(piece).enumerate() {
            if prefix.is_enough() {
                return Ok((prefix.into_prefix(), taken));
            }
            prefix.add(chunk)?;
        }
        match prefix.is_enough() {
            true => Ok((prefix.into_prefix(), sent.len().div_ceil(piece))),
            false => Ok((prefix.into_body()?, sent.len().div_ceil(piece))),
        }
    }

    #[test]
    fn prefix_read_after_text_stops_for_any_chunk_size() {
        let page = page(400_000, 52_000);
        let end = 52_000 + TEXT.len() + TAIL_BYTES;
        for (is_packed, sent) in [(false, page.clone()), (true, gzipped(&page))] {
            for piece in [1, 7, 1_000, 16_384, 1 << 20] {
                let (read, taken) = read(is_packed, &sent, piece, 1 << 20).unwrap();
                assert!(read == page[..end], "{is_packed} {piece}");
                assert!(piece > 16_384 || taken * piece < sent.len() / 3, "{taken} pieces of {piece}");
            }
        }
    }

    #[test]
    fn prefix_read_missing_text_returns_whole_body() {
        for body in [page(300_000, 299_000), b"the ke".to_vec(), Vec::new()] {
            let whole = body.get(..299_000).unwrap_or(&body);
            for piece in [1, 999, 1 << 20] {
                assert_eq!(read(false, whole, piece, 1 << 20).unwrap().0, whole);
                assert_eq!(read(true, &gzipped(whole), piece, 1 << 20).unwrap().0, whole);
            }
        }
        assert_eq!(read(true, b"", 9, 9).unwrap().0, "");
        // With little data after the text, the result is the whole body.
        let near = page(300_000, 299_950);
        assert_eq!(read(true, &gzipped(&near), 4_096, 1 << 20).unwrap().0, near);
    }

    /// However the data expands, nothing is decompressed above the limit.
    #[test]
    fn prefix_read_bomb_is_decompressed_to_limit_only() {
        let bomb = gzipped(&vec![0; 64 << 20]);
        for (piece, max) in [(1_000, 100_000), (1 << 20, 100_000), (1 << 20, 0)] {
            let mut prefix = PrefixRead::new(true, max, TEXT);
            let error = bomb.chunks(piece).find_map(|chunk| prefix.add(chunk).err());
            assert_eq!(error, Some(HttpError::TooLarge));
            let decompressed = prefix.body.bytes().len();
            assert!(decompressed <= max, "{decompressed}");
        }
    }

    #[test]
    fn prefix_read_large_or_damaged_data_fails_if_reached() {
        let body = page(300_000, 250_000);
        let packed = gzipped(&body);
        assert_eq!(read(false, &body, 5_000, 100_000), Err(HttpError::TooLarge));
        assert_eq!(read(true, &packed, 5_000, 100_000), Err(HttpError::TooLarge));
        assert_eq!(read(true, &packed[..packed.len() / 2], 5_000, 1 << 20), Err(HttpError::CutOff));
        assert_eq!(read(true, b"no gzip", 5_000, 1 << 20), Err(HttpError::CutOff));
        // Damage after the end of the prefix is ignored.
        assert_eq!(read(true, &packed[..packed.len() - 4], 5_000, 1 << 20).unwrap().0.len(), 250_263);
    }
}
