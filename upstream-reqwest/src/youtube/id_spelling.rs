//! Spellings of a video's id. No I/O.
//!
//! An id is 64 bits in 11 characters of base64, so of the last one only four bits count: YouTube accepts all four
//! spellings and returns its own.

use std::borrow::Cow;

#[cfg(feature = "ytdlp")]
use transcript_core::video::VideoId;

/// The characters of an id, by value.
const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// The bits of the last character that count.
const LAST_BITS: usize = 0b11_1100;

/// Whether two ids name the same video.
pub(crate) fn is_same(actual: &str, requested: &str) -> bool {
    own_spelling(actual) == own_spelling(requested)
}

/// The video with its id in YouTube's own spelling.
#[cfg(feature = "ytdlp")]
pub(crate) fn canonical(video: &VideoId) -> VideoId {
    VideoId::new(video.platform(), &own_spelling(video.id())).unwrap_or_else(|_| video.clone())
}

/// An id in YouTube's own spelling. Other text stays unchanged.
fn own_spelling(id: &str) -> Cow<'_, str> {
    let Some((front, last)) = id.char_indices().next_back() else { return Cow::Borrowed(id) };
    let own = ALPHABET.find(last).and_then(|value| ALPHABET.get(value & LAST_BITS..)?.chars().next());
    match (id.get(..front), own) {
        (Some(front), Some(own)) if own != last => Cow::Owned(format!("{front}{own}")),
        _ => Cow::Borrowed(id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_of_same_video_has_four_spellings() {
        for (actual, requested, expect) in [
            ("DJztXj2GPfk", "DJztXj2GPfk", true),
            ("DJztXj2GPfk", "DJztXj2GPfl", true),
            ("DJztXj2GPfk", "DJztXj2GPfn", true),
            ("DJztXj2GPf8", "DJztXj2GPf_", true),
            ("DJztXj2GPfk", "DJztXj2GPfo", false),
            ("DJztXj2GPfk", "EJztXj2GPfk", false),
            ("DJztXj2GPf", "DJztXj2GPfk", false),
            ("", "DJztXj2GPfk", false),
            ("DJztXj2GPfé", "DJztXj2GPfk", false),
        ] {
            assert_eq!(is_same(actual, requested), expect, "{actual} {requested}");
        }
        assert_eq!(own_spelling("DJztXj2GPfl"), "DJztXj2GPfk");
        assert_eq!(own_spelling("dQw4w9WgXcQ"), "dQw4w9WgXcQ");
    }
}
