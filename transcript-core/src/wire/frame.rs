//! A compressed body with more in front of it and behind it, without decompressing it: one zstd frame
//! (RFC 8878) put around the blocks of another.
//!
//! What a transcript is stored as can be sent, but an answer says more than the segments, and not the same
//! to everybody. Content is a run of blocks, and a block may be raw: so the answer's head and tail go
//! before and behind the stored blocks as raw blocks. Distances in compressed blocks count backwards, and
//! raw blocks leave the tables and repeated distances of a decoder as they are, so the blocks between mean
//! what they meant. Two frames in a row would say the same, but many decoders stop after the first.

use std::fmt;

/// The first bytes of a frame.
const MAGIC: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();
/// The length of a block's header.
const BLOCK_HEADER: usize = 3;
/// No block has more content, whatever the window.
const BLOCK_MAX: u64 = 128 << 10;
/// The smallest window that a frame can name.
const WINDOW_MIN: u64 = 1 << 10;
/// What a receiver over HTTP need have at most (RFC 9659).
const WINDOW_MAX: u64 = 8 << 20;
/// In a block's header: no block comes after it.
const LAST: u8 = 1;

/// One zstd frame whose structure was looked at; what its blocks say was not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The blocks, with their headers.
    blocks: &'a [u8],
    /// Where among them the header of the last one is.
    last: usize,
    window: u64,
    length: Option<u64>,
}

/// Why bytes are no frame that can be built upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadFrame(&'static str);

impl fmt::Display for BadFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for BadFrame {}

const CUT: BadFrame = BadFrame("the frame is cut off");

impl<'a> Frame<'a> {
    /// Looks at the structure of exactly one frame.
    ///
    /// # Errors
    /// [`BadFrame`]: these bytes are no zstd frame, more than one, or need a dictionary or a window of more
    /// than 8 MiB.
    pub fn read(bytes: &'a [u8]) -> Result<Self, BadFrame> {
        let rest = bytes.strip_prefix(&MAGIC).ok_or(BadFrame("this is no zstd frame"))?;
        let (&descriptor, mut rest) = rest.split_first().ok_or(CUT)?;
        let is_single = descriptor & 0b10_0000 != 0;
        if descriptor & 0b1011 != 0 {
            return Err(BadFrame("the frame needs a dictionary, or is of a later version of the format"));
        }
        let mut window = None;
        if !is_single {
            let (&code, after) = rest.split_first().ok_or(CUT)?;
            (window, rest) = (Some(window_of(code)), after);
        }
        let (count, more) = match (descriptor >> 6, is_single) {
            (0, false) => (0, 0),
            (0, true) => (1, 0),
            (1, _) => (2, 256),
            (2, _) => (4, 0),
            _ => (8, 0),
        };
        let (length, blocks) = little(rest, count)?;
        let length = (0 < count).then_some(length.saturating_add(more));
        // A frame in a single segment says its length in every case.
        let window = window.or(length).ok_or(CUT)?.max(WINDOW_MIN);
        if window > WINDOW_MAX {
            return Err(BadFrame("the frame needs too large a window"));
        }
        let (last, end) = walk(blocks)?;
        let checksum = if descriptor & 0b100 == 0 { 0 } else { 4 };
        match blocks.len() - end {
            rest if rest == checksum => {}
            rest if rest < checksum => return Err(CUT),
            _ => return Err(BadFrame("something comes after the frame")),
        }
        Ok(Self { blocks: blocks.get(..end).ok_or(CUT)?, last, window, length })
    }

    /// How many bytes the frame says that it has when it is decompressed.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// One frame of this content with other bytes before and behind it. It has no checksum; it says its
    /// length where this one does.
    pub fn between(&self, before: &[u8], after: &[u8]) -> Vec<u8> {
        let added = before.len() + after.len();
        let mut frame = Vec::with_capacity(64 + added + self.blocks.len() + added / 300);
        let length = self.length.and_then(|length| u32::try_from(length + added as u64).ok());
        let code = begin(&mut frame, self.window, length);
        let block_max = usize::try_from(window_of(code).min(BLOCK_MAX)).unwrap_or(usize::MAX);
        before.chunks(block_max).for_each(|chunk| raw_block(&mut frame, chunk, false));
        let last = frame.len() + self.last;
        frame.extend_from_slice(self.blocks);
        if !after.is_empty() {
            if let Some(header) = frame.get_mut(last) {
                *header &= !LAST;
            }
            let end = after.len().div_ceil(block_max);
            after
                .chunks(block_max)
                .zip(1..)
                .for_each(|(chunk, number)| raw_block(&mut frame, chunk, number == end));
        }
        frame
    }
}

/// Content as a frame of raw blocks, for those who have no compressor.
pub fn uncompressed(content: &[u8]) -> Vec<u8> {
    let block_max = usize::try_from(BLOCK_MAX).unwrap_or(usize::MAX);
    let count = content.len().div_ceil(block_max).max(1);
    let mut frame = Vec::with_capacity(16 + content.len() + count * BLOCK_HEADER);
    begin(&mut frame, BLOCK_MAX, u32::try_from(content.len()).ok());
    if content.is_empty() {
        raw_block(&mut frame, content, true);
    }
    for (chunk, number) in content.chunks(block_max).zip(1..) {
        raw_block(&mut frame, chunk, number == count);
    }
    frame
}

/// Begins a frame with a window of at least this size; returns the window's code.
fn begin(frame: &mut Vec<u8>, window: u64, length: Option<u32>) -> u8 {
    let code = code_of(window);
    frame.extend_from_slice(&MAGIC);
    frame.push(if length.is_some() { 2 << 6 } else { 0 });
    frame.push(code);
    if let Some(length) = length {
        frame.extend_from_slice(&length.to_le_bytes());
    }
    code
}

/// Adds a block of at most [`BLOCK_MAX`] bytes as they are.
fn raw_block(frame: &mut Vec<u8>, content: &[u8], is_last: bool) {
    // 21 bits hold the length.
    let header = (content.len() as u32) << 3 | u32::from(is_last);
    frame.extend_from_slice(&header.to_le_bytes()[..BLOCK_HEADER]);
    frame.extend_from_slice(content);
}

/// The size of the window that a code names.
fn window_of(code: u8) -> u64 {
    let base = WINDOW_MIN << (code >> 3);
    base + base / 8 * u64::from(code & 7)
}

/// The code of the smallest window that is at least this large, up to [`WINDOW_MAX`].
fn code_of(window: u64) -> u8 {
    (0..=u8::MAX).find(|code| window_of(*code) >= window.min(WINDOW_MAX)).unwrap_or(u8::MAX)
}

/// A number of at most 8 bytes, the lowest first, and what comes after it.
fn little(bytes: &[u8], count: usize) -> Result<(u64, &[u8]), BadFrame> {
    let (number, rest) = bytes.split_at_checked(count).ok_or(CUT)?;
    Ok((number.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)), rest))
}

/// Where the header of the last block is, and where that block ends.
fn walk(blocks: &[u8]) -> Result<(usize, usize), BadFrame> {
    let mut at = 0;
    loop {
        let (header, _) = little(blocks.get(at..).ok_or(CUT)?, BLOCK_HEADER)?;
        let length = header >> 3;
        if length > BLOCK_MAX {
            return Err(BadFrame("a block is too long"));
        }
        let stored = match header >> 1 & 0b11 {
            0 | 2 => usize::try_from(length).map_err(|_| CUT)?,
            1 => 1,
            _ => return Err(BadFrame("a block is of no known kind")),
        };
        let end = at + BLOCK_HEADER + stored;
        if end > blocks.len() {
            return Err(CUT);
        }
        if header as u8 & LAST != 0 {
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

    /// Some bytes: as repetitive as speech, or not at all.
    fn content(length: usize, is_noise: bool) -> Vec<u8> {
        let mut state = 7_u32;
        let next = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if is_noise { (state >> 24) as u8 } else { b"the quick brown fox "[(state >> 29) as usize] }
        };
        (0..length).map(next).collect()
    }

    /// A frame of every form that the library writes.
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
            let read = Frame::read(&frame).unwrap();
            let built = read.between(before, after);
            assert!(zstd::bulk::decompress(&built, expect.len() + 1).unwrap() == expect);
            // As a client reads it, piece by piece, with no more window than clients of HTTP must have.
            let mut stream = zstd::Decoder::new(built.as_slice()).unwrap().single_frame();
            stream.window_log_max(23).unwrap();
            let mut streamed = Vec::new();
            std::io::copy(&mut stream, &mut streamed).unwrap();
            assert!(streamed == expect);
            // It is a frame as any other.
            let again = Frame::read(&built).unwrap();
            assert_eq!(again.length(), read.length().map(|_| expect.len() as u64));
            let twice = again.between(b"<", b">");
            let twice = zstd::bulk::decompress(&twice, expect.len() + 3).unwrap();
            assert!(twice == [b"<", expect.as_slice(), b">"].concat());
        }
    }

    #[test]
    fn what_is_put_around_a_frame_stands_around_its_content() {
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
    fn a_window_is_named_by_the_smallest_code_that_has_it() {
        for code in 0..=u8::MAX {
            let size = window_of(code);
            if size <= WINDOW_MAX {
                assert_eq!((code_of(size), code_of(size - 1)), (code, code));
            }
        }
        assert_eq!((window_of(0), code_of(WINDOW_MAX)), (1_024, 13 << 3));
    }

    #[test]
    fn what_cannot_be_built_upon_is_refused() {
        let whole = zstd::bulk::compress(&content(1_000, false), 3).unwrap();
        let bad = |bytes: &[u8], says: &str| {
            let error = Frame::read(bytes).unwrap_err();
            assert!(error.to_string().contains(says), "{error}, not {says}");
        };
        for length in 4..whole.len() {
            bad(&whole[..length], "cut off");
        }
        bad(b"", "no zstd frame");
        bad(b"PK\x03\x04", "no zstd frame");
        // A frame that decoders skip.
        bad(&[0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0], "no zstd frame");
        bad(&[whole.as_slice(), &whole].concat(), "after the frame");
        bad(&[&MAGIC[..], &[0x80, 15 << 3, 0, 0, 0, 0, 1, 0, 0]].concat(), "too large a window");
        bad(&[&MAGIC[..], &[0x81, 0, 0, 0, 0, 0, 0, 1, 0, 0]].concat(), "dictionary");
        bad(&[&MAGIC[..], &[0x88, 0, 0, 0, 0, 0, 1, 0, 0]].concat(), "later version");
        bad(&[&MAGIC[..], &[0x00, 0, 7, 0, 0]].concat(), "no known kind");
        bad(&[&MAGIC[..], &[0x00, 0, 1, 0, 0x11]].concat(), "too long");
        let mut large = zstd::Encoder::new(Vec::new(), 3).unwrap();
        large.window_log(24).unwrap();
        large.write_all(&content(1_000, false)).unwrap();
        bad(&large.finish().unwrap(), "too large a window");
    }

    proptest! {
        #[test]
        fn whatever_the_bytes_what_still_decodes_stands_in_the_middle(
            length in 0_usize..3_000,
            is_noise in any::<bool>(),
            form in 0_usize..7,
            damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            cut in any::<prop::sample::Index>(),
            is_cut in any::<bool>(),
        ) {
            let mut bytes = frames(&content(length, is_noise)).swap_remove(form);
            for (place, byte) in damage {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            if is_cut {
                bytes.truncate(cut.index(bytes.len()));
            }
            if let Ok(frame) = Frame::read(&bytes) {
                let built = frame.between(b"before", b"after");
                if let Ok(content) = zstd::bulk::decompress(&bytes, 1 << 20) {
                    let decoded = zstd::bulk::decompress(&built, 2 << 20).unwrap();
                    prop_assert!(decoded == [b"before", content.as_slice(), b"after"].concat());
                }
            }
        }

        #[test]
        fn any_bytes_are_a_frame_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let bytes = [&MAGIC[..], &bytes].concat();
            if let Ok(frame) = Frame::read(&bytes) {
                prop_assert!(frame.between(b"", b"").len() <= bytes.len() + 16);
            }
        }
    }
}
