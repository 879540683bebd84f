//! An answer around a transcript that the archive stores as it is sent.

use std::{cell::RefCell, io};

use sha2::{Digest, Sha256};
use transcript_core::{
    lookup::StoredAnswer,
    wire::{
        frame::Frame,
        lookup::{AFTER_SEGMENTS, TranscriptResult},
    },
};
use zstd::bulk::Decompressor;

use super::{Encoding, ReadyBody, body::compressed};
use crate::routes::JSON;

/// A longer body is not decompressed where others wait: this takes a tenth of a millisecond.
const CHEAP_MAX: u64 = 128 << 10;
/// The longest body that is decompressed, in bytes: no archive takes a longer one.
const LENGTH_MAX: u64 = 64 << 20;

/// Whether making the body takes no longer than handing it to another thread.
pub(super) fn is_cheap(answer: &StoredAnswer, encoding: Encoding) -> bool {
    match encoding {
        Encoding::Zstd => true,
        Encoding::Identity => answer.body.length <= CHEAP_MAX,
        Encoding::Gzip | Encoding::Brotli => false,
    }
}

/// The body of the answer.
///
/// Its tag tells the bytes from all others without their digest: the content, the stored bytes, what is put
/// around them, and the encoding.
///
/// # Errors
/// The decompressor's; also when what is stored is no zstd frame that can be built upon, or longer than it
/// says.
pub(super) fn around(answer: &StoredAnswer, encoding: Encoding) -> io::Result<ReadyBody> {
    let before = TranscriptResult::from(answer).before_segments().map_err(io::Error::other)?;
    let name = Sha256::new()
        .chain_update(&answer.body.content_sha256)
        .chain_update(answer.body.checksum.to_be_bytes())
        .chain_update([encoding as u8])
        .chain_update(&before)
        .finalize();
    let bytes = match encoding {
        Encoding::Zstd => {
            let frame = Frame::read(&answer.body.segments).map_err(io::Error::other)?;
            frame.between(&before, AFTER_SEGMENTS)
        }
        _ => compressed(decompressed(answer, before)?, encoding)?,
    };
    ReadyBody::named(JSON, bytes, encoding, &name)
}

/// The answer as it is.
fn decompressed(answer: &StoredAnswer, before: Vec<u8>) -> io::Result<Vec<u8>> {
    thread_local! {
        // To make one takes a fifth of the time that it then works.
        static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
    }
    let too_long = || io::Error::other("a stored body is longer than any that is archived");
    let length = Some(answer.body.length).filter(|length| *length <= LENGTH_MAX);
    let length = length.and_then(|length| usize::try_from(length).ok()).ok_or_else(too_long)?;
    let mut bytes = before;
    bytes.reserve_exact(length + AFTER_SEGMENTS.len());
    let read = DECOMPRESSOR.with_borrow_mut(|kept| {
        let decompressor = match kept {
            Some(decompressor) => decompressor,
            none => none.insert(Decompressor::new()?),
        };
        let mut into = io::Cursor::new(&mut bytes);
        into.set_position(into.get_ref().len() as u64);
        decompressor.decompress_to_buffer(&answer.body.segments, &mut into)
    })?;
    if read != length {
        return Err(io::Error::other("a stored body is not as long as it says"));
    }
    bytes.extend_from_slice(AFTER_SEGMENTS);
    Ok(bytes)
}
