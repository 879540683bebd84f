//! Responses built around stored transcript bodies.

use std::{cell::RefCell, io};

use sha2::{Digest, Sha256};
use transcript_core::{archive::StoredBody, body::zstd_frame::ZstdFrame, wire::AFTER_SEGMENTS};
use zstd::bulk::Decompressor;

use super::{CachedBody, body::compress};
use crate::api::{ContentEncoding, JSON};

/// Longest body decompressed on a serving thread, in bytes: this takes 0.1 ms.
const CHEAP_MAX: u64 = 128 << 10;
/// Longest body that is decompressed, in bytes. No archive stores a longer one.
const LENGTH_MAX: u64 = 64 << 20;

/// Whether building the body takes no longer than a handover to another thread.
pub(super) fn is_cheap(stored: &StoredBody, encoding: ContentEncoding) -> bool {
    match encoding {
        ContentEncoding::Zstd => true,
        ContentEncoding::Identity => stored.length <= CHEAP_MAX,
        ContentEncoding::Gzip | ContentEncoding::Brotli => false,
    }
}

/// Memory of the body while it is built and sent, in bytes: nothing is longer than the body before compression.
pub(super) fn length(before: &[u8], stored: &StoredBody, encoding: ContentEncoding) -> usize {
    let segments = match encoding {
        ContentEncoding::Zstd => stored.segments.len(),
        _ => usize::try_from(stored.length).unwrap_or(usize::MAX),
    };
    segments.saturating_add(before.len() + AFTER_SEGMENTS.len())
}

/// Builds a body: `before`, the stored segments, and the end of the JSON.
///
/// The tag is derived from the content digest, the stored bytes' checksum, the bytes before the segments and the
/// encoding, without hashing the body.
///
/// # Errors
/// The decompressor failed, the stored bytes are not a zstd frame that can be extended, or their length differs
/// from the recorded one.
pub(super) fn wrap(before: &[u8], stored: &StoredBody, encoding: ContentEncoding) -> io::Result<CachedBody> {
    let name = Sha256::new()
        .chain_update(&stored.content_sha256)
        .chain_update(stored.checksum.to_be_bytes())
        .chain_update([encoding as u8])
        .chain_update(before)
        .finalize();
    let bytes = match encoding {
        ContentEncoding::Zstd => {
            let frame = ZstdFrame::read(&stored.segments).map_err(io::Error::other)?;
            frame.wrap_between(before, AFTER_SEGMENTS)
        }
        _ => compress(decompress(before, stored)?, encoding)?,
    };
    CachedBody::with_digest(JSON, bytes, encoding, &name)
}

/// Returns the uncompressed response.
fn decompress(before: &[u8], stored: &StoredBody) -> io::Result<Vec<u8>> {
    thread_local! {
        // Creating a decompressor takes a fifth of the time of one decompression.
        static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
    }
    let too_long = || io::Error::other("stored body exceeds the maximum length");
    let length = Some(stored.length).filter(|length| *length <= LENGTH_MAX);
    let length = length.and_then(|length| usize::try_from(length).ok()).ok_or_else(too_long)?;
    let mut bytes = Vec::with_capacity(before.len() + length + AFTER_SEGMENTS.len());
    bytes.extend_from_slice(before);
    let read = DECOMPRESSOR.with_borrow_mut(|cell| {
        let decompressor = match cell {
            Some(decompressor) => decompressor,
            none => none.insert(Decompressor::new()?),
        };
        let mut into = io::Cursor::new(&mut bytes);
        into.set_position(into.get_ref().len() as u64);
        decompressor.decompress_to_buffer(&stored.segments, &mut into)
    })?;
    if read != length {
        return Err(io::Error::other("stored body has an unexpected length"));
    }
    bytes.extend_from_slice(AFTER_SEGMENTS);
    Ok(bytes)
}
