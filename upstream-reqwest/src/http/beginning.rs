//! Reading the beginning of an answer, up to what it is asked for.

use std::io::Write as _;

use bytes::Bytes;
use flate2::write::GzDecoder;
use reqwest::Response;

use super::{HttpFault, body::is_gzip};

/// How many bytes are read beyond the text that is looked for: what it introduces.
pub(super) const BEYOND: usize = 256;
/// How many bytes are decompressed at a time. Damage on purpose makes a thousand times as many of them, no more.
const PIECE: usize = 4 << 10;
/// How much of the rest is taken from the connection, as it was sent, so that this can be used again.
const REST_MAX: usize = 1 << 20;

/// The body up to `text` and [`BEYOND`] bytes more; all of it where that is not in it. What follows is neither
/// decompressed nor kept, and whether it comes does not matter.
pub(super) async fn read(mut response: Response, max: usize, text: &[u8]) -> Result<Bytes, HttpFault> {
    let mut beginning = Beginning::new(is_gzip(response.headers())?, max, text);
    while !beginning.is_enough() {
        match response.chunk().await.map_err(|error| HttpFault::of(&error))? {
            Some(chunk) => beginning.add(&chunk)?,
            None => return beginning.whole(),
        }
    }
    let mut rest = 0;
    while let Ok(Some(chunk)) = response.chunk().await {
        rest += chunk.len();
        if rest > REST_MAX {
            break;
        }
    }
    Ok(beginning.so_far())
}

/// Decompresses some more. The last of it is only there when more was added, or all was.
fn unpack(decoder: &mut GzDecoder<Vec<u8>>, mut packed: &[u8]) -> Result<(), HttpFault> {
    while !packed.is_empty() {
        match decoder.write(packed) {
            // What follows the end is nobody's.
            Ok(0) => break,
            Ok(length) => packed = packed.get(length..).unwrap_or_default(),
            Err(_) => return Err(HttpFault::CutOff),
        }
    }
    Ok(())
}

/// What came until now.
struct Beginning<'a> {
    body: Body,
    max: usize,
    text: &'a [u8],
    /// Up to where there is no text.
    searched: usize,
    /// Where the text is over, once it was found.
    end: Option<usize>,
}

enum Body {
    Plain(Vec<u8>),
    Packed { decoder: Box<GzDecoder<Vec<u8>>>, is_empty: bool },
}

impl Body {
    fn bytes(&self) -> &Vec<u8> {
        match self {
            Self::Plain(body) => body,
            Self::Packed { decoder, .. } => decoder.get_ref(),
        }
    }
}

impl<'a> Beginning<'a> {
    fn new(is_packed: bool, max: usize, text: &'a [u8]) -> Self {
        let body = match is_packed {
            true => Body::Packed { decoder: Box::new(GzDecoder::new(Vec::new())), is_empty: true },
            false => Body::Plain(Vec::new()),
        };
        Self { body, max, text, searched: 0, end: None }
    }

    fn is_enough(&self) -> bool {
        self.end.is_some_and(|end| self.body.bytes().len() >= end + BEYOND)
    }

    fn add(&mut self, chunk: &[u8]) -> Result<(), HttpFault> {
        for piece in chunk.chunks(PIECE) {
            match &mut self.body {
                Body::Plain(body) => body.extend_from_slice(piece),
                Body::Packed { decoder, is_empty } => {
                    *is_empty = false;
                    unpack(decoder, piece)?;
                }
            }
            self.search();
            if self.is_enough() {
                return Ok(());
            }
            if self.body.bytes().len() > self.max {
                return Err(HttpFault::TooLarge);
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
        self.end = found.map(|place| from + place + self.text.len());
        // It may begin at the end of what is there.
        self.searched = (body.len() + 1).saturating_sub(self.text.len()).max(from);
    }

    fn so_far(self) -> Bytes {
        let end = self.end.map(|end| end + BEYOND);
        let mut body = match self.body {
            Body::Plain(body) => body,
            Body::Packed { mut decoder, .. } => std::mem::take(decoder.get_mut()),
        };
        body.truncate(end.unwrap_or(usize::MAX));
        body.into()
    }

    /// All of it, after the last byte has come.
    fn whole(self) -> Result<Bytes, HttpFault> {
        let body = match self.body {
            Body::Plain(body) => body,
            // Nothing is sent as it is, whatever its headers say.
            Body::Packed { is_empty: true, .. } => Vec::new(),
            Body::Packed { mut decoder, .. } => {
                decoder.try_finish().map_err(|_| HttpFault::CutOff)?;
                std::mem::take(decoder.get_mut())
            }
        };
        if body.len() > self.max { Err(HttpFault::TooLarge) } else { Ok(body.into()) }
    }
}

#[cfg(test)]
mod tests {
    use flate2::{Compression, write::GzEncoder};

    use super::*;

    const TEXT: &[u8] = b"the key";

    fn gzipped(body: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(body).unwrap();
        encoder.finish().unwrap()
    }

    /// Bytes that do not compress to nothing, with the text at this place.
    fn page(length: usize, place: usize) -> Vec<u8> {
        let mut state = 7_u32;
        let mut page: Vec<u8> = (0..length)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                b'a' + (state >> 28) as u8
            })
            .collect();
        page.splice(place..place + TEXT.len(), TEXT.iter().copied());
        page
    }

    /// What is read of a body that comes in pieces of this size, and of how many pieces.
    fn read(is_packed: bool, sent: &[u8], piece: usize, max: usize) -> Result<(Bytes, usize), HttpFault> {
        let mut beginning = Beginning::new(is_packed, max, TEXT);
        for (taken, chunk) in sent.chunks(piece).enumerate() {
            if beginning.is_enough() {
                return Ok((beginning.so_far(), taken));
            }
            beginning.add(chunk)?;
        }
        match beginning.is_enough() {
            true => Ok((beginning.so_far(), sent.len().div_ceil(piece))),
            false => Ok((beginning.whole()?, sent.len().div_ceil(piece))),
        }
    }

    #[test]
    fn it_ends_soon_after_the_text_however_it_comes() {
        let page = page(400_000, 52_000);
        let end = 52_000 + TEXT.len() + BEYOND;
        for (is_packed, sent) in [(false, page.clone()), (true, gzipped(&page))] {
            for piece in [1, 7, 1_000, 16_384, 1 << 20] {
                let (read, taken) = read(is_packed, &sent, piece, 1 << 20).unwrap();
                assert!(read == page[..end], "{is_packed} {piece}");
                assert!(piece > 16_384 || taken * piece < sent.len() / 3, "{taken} pieces of {piece}");
            }
        }
    }

    #[test]
    fn without_the_text_it_is_the_whole_body() {
        for body in [page(300_000, 299_000), b"the ke".to_vec(), Vec::new()] {
            let whole = body.get(..299_000).unwrap_or(&body);
            for piece in [1, 999, 1 << 20] {
                assert_eq!(read(false, whole, piece, 1 << 20).unwrap().0, whole);
                assert_eq!(read(true, &gzipped(whole), piece, 1 << 20).unwrap().0, whole);
            }
        }
        assert_eq!(read(true, b"", 9, 9).unwrap().0, "");
        // Where little follows the text, all of it is the beginning.
        let near = page(300_000, 299_950);
        assert_eq!(read(true, &gzipped(&near), 4_096, 1 << 20).unwrap().0, near);
    }

    #[test]
    fn too_much_and_damage_are_faults_where_they_are_reached() {
        let body = page(300_000, 250_000);
        let packed = gzipped(&body);
        assert_eq!(read(false, &body, 5_000, 100_000), Err(HttpFault::TooLarge));
        assert_eq!(read(true, &packed, 5_000, 100_000), Err(HttpFault::TooLarge));
        assert_eq!(read(true, &packed[..packed.len() / 2], 5_000, 1 << 20), Err(HttpFault::CutOff));
        assert_eq!(read(true, b"no gzip", 5_000, 1 << 20), Err(HttpFault::CutOff));
        // What is not reached does not matter.
        assert_eq!(read(true, &packed[..packed.len() - 4], 5_000, 1 << 20).unwrap().0.len(), 250_263);
    }
}
