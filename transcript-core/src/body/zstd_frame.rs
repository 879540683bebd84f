//! Extends compressed content without decompressing it.
//!
//! The result is one zstd frame (RFC 8878) around the blocks of another.
//!
//! The stored form of a transcript can be sent as it is, but a response contains more than the segments, and not the
//! same for every caller. Content is a sequence of blocks, and a block may be raw: the head and the tail of the
//! response go before and after the stored blocks as raw blocks. Distances in compressed blocks count backwards, and
//! raw blocks leave a decoder's tables and repeated distances unchanged, so the blocks between them decode as before.
//! Two frames in sequence would mean the same, but many decoders stop after the first.

/// First bytes of a frame.
const MAGIC: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();
/// Length of a block's header, in bytes.
const BLOCK_HEADER: usize = 3;
/// Maximum content of a block in bytes, for any window.
const BLOCK_MAX: u64 = 128 << 10;
/// Smallest window that a frame can declare.
const WINDOW_MIN: u64 = 1 << 10;
/// Largest window that HTTP receivers must support (RFC 9659).
const WINDOW_MAX: u64 = 8 << 20;
/// Flag in a block's header: the last block.
const LAST_BLOCK_FLAG: u8 = 1;

/// One zstd frame with checked structure; the content of its blocks is not checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZstdFrame<'a> {
    /// The blocks, with their headers.
    blocks: &'a [u8],
    /// Position of the last block's header in `blocks`.
    last: usize,
    window: u64,
    length: Option<u64>,
}

/// Reason why bytes cannot be used as a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZstdFrameError(&'static str);

crate::display::display!(ZstdFrameError, |this| this.0);

impl std::error::Error for ZstdFrameError {}

const TRUNCATED: ZstdFrameError = ZstdFrameError("the frame is cut off");

impl<'a> ZstdFrame<'a> {
    /// Parses the structure of exactly one frame.
    ///
    /// # Errors
    /// [`ZstdFrameError`]: the bytes are not a zstd frame, more than one, or need a dictionary or a window of more
    /// than 8 MiB.
    pub fn read(bytes: &'a [u8]) -> Result<Self, ZstdFrameError> {
        let rest = bytes.strip_prefix(&MAGIC).ok_or(ZstdFrameError("this is not a zstd frame"))?;
        let (&descriptor, mut rest) = rest.split_first().ok_or(TRUNCATED)?;
        let is_single = descriptor & 0b10_0000 != 0;
        if descriptor & 0b1011 != 0 {
            return Err(ZstdFrameError(
                "the frame needs a dictionary, or is of a later version of the format",
            ));
        }
        let mut window = None;
        if !is_single {
            let (&code, after) = rest.split_first().ok_or(TRUNCATED)?;
            (window, rest) = (Some(window_size(code)), after);
        }
        let (count, more) = match (descriptor >> 6, is_single) {
            (0, false) => (0, 0),
            (0, true) => (1, 0),
            (1, _) => (2, 256),
            (2, _) => (4, 0),
            _ => (8, 0),
        };
        let (length, blocks) = read_little_endian(rest, count)?;
        let length = (0 < count).then_some(length.saturating_add(more));
        // A frame with a single segment always declares its length.
        let window = window.or(length).ok_or(TRUNCATED)?.max(WINDOW_MIN);
        if window > WINDOW_MAX {
            return Err(ZstdFrameError("the frame needs too large a window"));
        }
        let (last, end) = find_last_block(blocks)?;
        let checksum = if descriptor & 0b100 == 0 { 0 } else { 4 };
        match blocks.len() - end {
            rest if rest == checksum => {}
            rest if rest < checksum => return Err(TRUNCATED),
            _ => return Err(ZstdFrameError("data follows the frame")),
        }
        Ok(Self { blocks: blocks.get(..end).ok_or(TRUNCATED)?, last, window, length })
    }

    /// Decompressed length in bytes, if the frame declares it.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// Builds one frame of this content with other bytes before and after it.
    ///
    /// It has no checksum, and declares its length if this frame does.
    pub fn wrap_between(&self, before: &[u8], after: &[u8]) -> Vec<u8> {
        let added = before.len() + after.len();
        let mut frame = Vec::with_capacity(64 + added + self.blocks.len() + added / 300);
        let length = self.length.and_then(|length| u32::try_from(length + added as u64).ok());
        let code = begin(&mut frame, self.window, length);
        let block_max = usize::try_from(window_size(code).min(BLOCK_MAX)).unwrap_or(usize::MAX);
        before.chunks(block_max).for_each(|chunk| push_raw_block(&mut frame, chunk, false));
        let last = frame.len() + self.last;
        frame.extend_from_slice(self.blocks);
        if !after.is_empty() {
            if let Some(header) = frame.get_mut(last) {
                *header &= !LAST_BLOCK_FLAG;
            }
            let end = after.len().div_ceil(block_max);
            after
                .chunks(block_max)
                .zip(1..)
                .for_each(|(chunk, number)| push_raw_block(&mut frame, chunk, number == end));
        }
        frame
    }
}

/// Builds a frame of raw blocks, for callers without a compressor.
pub fn uncompressed(content: &[u8]) -> Vec<u8> {
    let block_max = usize::try_from(BLOCK_MAX).unwrap_or(usize::MAX);
    let count = content.len().div_ceil(block_max).max(1);
    let mut frame = Vec::with_capacity(16 + content.len() + count * BLOCK_HEADER);
    begin(&mut frame, BLOCK_MAX, u32::try_from(content.len()).ok());
    if content.is_empty() {
        push_raw_block(&mut frame, content, true);
    }
    for (chunk, number) in content.chunks(block_max).zip(1..) {
        push_raw_block(&mut frame, chunk, number == count);
    }
    frame
}

/// Writes the header of a frame with a window of at least this size; returns the window's code.
fn begin(frame: &mut Vec<u8>, window: u64, length: Option<u32>) -> u8 {
    let code = window_code(window);
    frame.extend_from_slice(&MAGIC);
    frame.push(if length.is_some() { 2 << 6 } else { 0 });
    frame.push(code);
    if let Some(length) = length {
        frame.extend_from_slice(&length.to_le_bytes());
    }
    code
}

/// Appends a raw block of at most [`BLOCK_MAX`] bytes.
fn push_raw_block(frame: &mut Vec<u8>, content: &[u8], is_last: bool) {
    // The length has 21 bits.
    let header = (content.len() as u32) << 3 | u32::from(is_last);
    frame.extend_from_slice(&header.to_le_bytes()[..BLOCK_HEADER]);
    frame.extend_from_slice(content);
}

fn window_size(code: u8) -> u64 {
    let base = WINDOW_MIN << (code >> 3);
    base + base / 8 * u64::from(code & 7)
}

/// Code of the smallest window of at least this size, up to [`WINDOW_MAX`].
fn window_code(window: u64) -> u8 {
    (0..=u8::MAX).find(|code| window_size(*code) >= window.min(WINDOW_MAX)).unwrap_or(u8::MAX)
}

/// Reads a little-endian number of at most 8 bytes; returns it and the bytes after it.
fn read_little_endian(bytes: &[u8], count: usize) -> Result<(u64, &[u8]), ZstdFrameError> {
    let (number, rest) = bytes.split_at_checked(count).ok_or(TRUNCATED)?;
    Ok((number.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)), rest))
}

/// Finds the start of the last block's header, and the end of that block.
fn find_last_block(blocks: &[u8]) -> Result<(usize, usize), ZstdFrameError> {
    let mut at = 0;
    loop {
        let (header, _) = read_little_endian(blocks.get(at..).ok_or(TRUNCATED)?, BLOCK_HEADER)?;
        let length = header >> 3;
        if length > BLOCK_MAX {
            return Err(ZstdFrameError("a block is too long"));
        }
        let stored = match header >> 1 & 0b11 {
            0 | 2 => usize::try_from(length).map_err(|_| TRUNCATED)?,
            1 => 1,
            _ => return Err(ZstdFrameError("a block has an unknown type")),
        };
        let end = at + BLOCK_HEADER + stored;
        if end > blocks.len() {
            return Err(TRUNCATED);
        }
        if header as u8 & LAST_BLOCK_FLAG != 0 {
            return Ok((at, end));
        }
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    /// Some bytes: as repetitive as speech, or random.
    fn content(length: usize, is_noise: bool) -> Vec<u8> {
        let mut state = 7_u32;
        let next = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if is_noise { (state >> 24) as u8 } else { b"the quick brown fox "[(state >> 29) as usize] }
        };
        (0..length).map(next).collect()
    }

    /// A frame of each form that the library writes.
    fn frames(content: &[u8]) -> Vec<Vec<u8>> {
        let mut frames: Vec<_> =
            [-5, 1, 3, 9].map(|level| zstd::bulk::compress(content, level).unwrap()).into();
        for checksum in [false, true] {
            // A stream does not know its length.
            let mut stream = zstd::Encoder::new(Vec::new(), 3).unwrap();
            stream.include_checksum(checksum).unwrap();
            stream.write_all(content).unwrap();
            frames.push(stream.finish().unwrap());
        }
        frames.push(uncompressed(content));
        frames
    }

    fn check(content: &[u8], before: &[u8], after: &[u8]) {
        let expect = [before, content, after].concat();
        for frame in frames(content) {
            let read = ZstdFrame::read(&frame).unwrap();
            let built = read.wrap_between(before, after);
            assert!(zstd::bulk::decompress(&built, expect.len() + 1).unwrap() == expect);
            // Like a client: in pieces, with the largest window that HTTP clients must support.
            let mut stream = zstd::Decoder::new(built.as_slice()).unwrap().single_frame();
            stream.window_log_max(23).unwrap();
            let mut streamed = Vec::new();
            std::io::copy(&mut stream, &mut streamed).unwrap();
            assert!(streamed == expect);
            // The result is a valid frame itself.
            let reparsed = ZstdFrame::read(&built).unwrap();
            assert_eq!(reparsed.length(), read.length().map(|_| expect.len() as u64));
            let wrapped_twice = reparsed.wrap_between(b"<", b">");
            let wrapped_twice = zstd::bulk::decompress(&wrapped_twice, expect.len() + 3).unwrap();
            assert!(wrapped_twice == [b"<", expect.as_slice(), b">"].concat());
        }
    }

    #[test]
    fn zstd_frame_wrap_between_keeps_content() {
        for length in [0, 1, 2, 255, 256, 1_023, 1_024, 1_025, 65_791, 65_792, 131_072, 131_073, 3_000_000] {
            for is_noise in [false, true] {
                let content = content(length, is_noise);
                check(&content, br#"{"transcript":"#, b"}");
            }
        }
        for (before, after) in [(0, 0), (0, 1), (1, 0), (3_000, 2_000), (131_073, 131_072), (300_000, 5)] {
            let (before, after) = (content(before, true), content(after, false));
            check(&content(60_000, false), &before, &after);
            check(b"", &before, &after);
            check(b"small", &before, &after);
        }
    }

    #[test]
    fn zstd_frame_window_code_is_smallest_fit() {
        for code in 0..=u8::MAX {
            let size = window_size(code);
            if size <= WINDOW_MAX {
                assert_eq!((window_code(size), window_code(size - 1)), (code, code));
            }
        }
        assert_eq!((window_size(0), window_code(WINDOW_MAX)), (1_024, 13 << 3));
    }

    #[test]
    fn zstd_frame_unusable_bytes_are_rejected() {
        let whole = zstd::bulk::compress(&content(1_000, false), 3).unwrap();
        let check_rejected = |bytes: &[u8], message: &str| {
            let error = ZstdFrame::read(bytes).unwrap_err();
            assert!(error.to_string().contains(message), "{error}, not {message}");
        };
        for length in 4..whole.len() {
            check_rejected(&whole[..length], "cut off");
        }
        check_rejected(b"", "not a zstd frame");
        check_rejected(b"PK\x03\x04", "not a zstd frame");
        // A skippable frame.
        check_rejected(&[0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0], "not a zstd frame");
        check_rejected(&[whole.as_slice(), &whole].concat(), "follows the frame");
        check_rejected(&[&MAGIC[..], &[0x80, 15 << 3, 0, 0, 0, 0, 1, 0, 0]].concat(), "too large a window");
        check_rejected(&[&MAGIC[..], &[0x81, 0, 0, 0, 0, 0, 0, 1, 0, 0]].concat(), "dictionary");
        check_rejected(&[&MAGIC[..], &[0x88, 0, 0, 0, 0, 0, 1, 0, 0]].concat(), "later version");
        check_rejected(&[&MAGIC[..], &[0x00, 0, 7, 0, 0]].concat(), "unknown type");
        check_rejected(&[&MAGIC[..], &[0x00, 0, 1, 0, 0x11]].concat(), "too long");
        let mut large = zstd::Encoder::new(Vec::new(), 3).unwrap();
        large.window_log(24).unwrap();
        large.write_all(&content(1_000, false)).unwrap();
        check_rejected(&large.finish().unwrap(), "too large a window");
    }

    proptest! {
        #[test]
        fn zstd_frame_damaged_but_decodable_stays_in_middle(
            length in 0_usize..3_000,
            is_noise in any::<bool>(),
            form in 0_usize..7,
            damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            cut in any::<prop::sample::Index>(),
            is_cut in any::<bool>(),
        ) {
            let mut bytes = frames(&content(length, is_noise)).swap_remove(form);
            for (position, byte) in damage {
                let position = position.index(bytes.len());
                bytes[position] = byte;
            }
            if is_cut {
                bytes.truncate(cut.index(bytes.len()));
            }
            if let Ok(frame) = ZstdFrame::read(&bytes) {
                let built = frame.wrap_between(b"before", b"after");
                if let Ok(content) = zstd::bulk::decompress(&bytes, 1 << 20) {
                    let decoded = zstd::bulk::decompress(&built, 2 << 20).unwrap();
                    prop_assert!(decoded == [b"before", content.as_slice(), b"after"].concat());
                }
            }
        }

        #[test]
        fn zstd_frame_any_bytes_are_parsed_or_rejected(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let bytes = [&MAGIC[..], &bytes].concat();
            if let Ok(frame) = ZstdFrame::read(&bytes) {
                prop_assert!(frame.wrap_between(b"", b"").len() <= bytes.len() + 16);
            }
        }
    }
}
