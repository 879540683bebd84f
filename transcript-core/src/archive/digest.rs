//! Content digest of a transcript.

use sha2::{Digest, Sha256};

use crate::transcript::Transcript;

/// Returns the SHA-256 of all reader-visible content of a transcript: 32 bytes.
///
/// Each part is preceded by its length, so different transcripts never hash the same bytes. The digest is
/// stable across versions: the ETag of every format is derived from it.
pub fn content_digest(transcript: &Transcript) -> Vec<u8> {
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    };
    part(transcript.video.to_string().as_bytes());
    for text in [&transcript.title, &transcript.author, &transcript.track.name] {
        part(&[u8::from(text.is_some())]);
        text.iter().for_each(|text| part(text.as_bytes()));
    }
    part(&transcript.duration_ms.map_or(Vec::new(), |ms| ms.to_be_bytes().to_vec()));
    part(transcript.track.language.as_str().as_bytes());
    part(transcript.track.kind.as_str().as_bytes());
    part(&[u8::from(transcript.track.original)]);
    part(transcript.source.as_bytes());
    for segment in &transcript.segments {
        part(segment.text.as_bytes());
        part(&segment.start_ms.to_be_bytes());
        part(&segment.duration_ms.to_be_bytes());
        for word in &segment.words {
            part(word.text.as_bytes());
            part(&[word.start_ms.to_be_bytes(), word.duration_ms.to_be_bytes()].concat());
        }
    }
    hash.finalize().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Word, test_transcript},
        video::{Platform, VideoId},
    };

    fn transcript() -> Transcript {
        Transcript {
            source: "source".to_owned(),
            ..test_transcript(vec![Segment::new("ab", 0, 1), Segment::new("c", 1, 0)])
        }
    }

    #[test]
    fn digest_differs_for_any_visible_change() {
        let reel = VideoId::new(Platform::Instagram, "dQw4w9WgXcQ").unwrap();
        let track = || transcript().track;
        let text = |text: &str| Some(text.to_owned());
        let with = |segments: &[Segment]| Transcript { segments: segments.to_vec(), ..transcript() };
        let all = [
            transcript(),
            Transcript { video: reel, ..transcript() },
            Transcript { title: text(""), ..transcript() },
            Transcript { title: text("\0"), ..transcript() },
            Transcript { author: text(""), ..transcript() },
            Transcript { duration_ms: Some(0), ..transcript() },
            Transcript { duration_ms: Some(1), ..transcript() },
            Transcript { track: TrackInfo { name: text(""), ..track() }, ..transcript() },
            Transcript { track: TrackInfo { original: true, ..track() }, ..transcript() },
            Transcript { track: TrackInfo { kind: TrackKind::Generated, ..track() }, ..transcript() },
            Transcript { track: TrackInfo { language: LanguageTag::unknown(), ..track() }, ..transcript() },
            Transcript { source: String::new(), ..transcript() },
            with(&[]),
            with(&[Segment::new("ab", 0, 1)]),
            with(&[Segment::new("a", 0, 1), Segment::new("bc", 1, 0)]),
            with(&[Segment::new("ab", 1, 0), Segment::new("c", 1, 0)]),
            with(&[Segment::new("c", 1, 0), Segment::new("ab", 0, 1)]),
            with(&[Segment { words: vec![Word::new("ab", 0, 1)], ..Segment::new("ab", 0, 1) }]),
            with(&[Segment { words: vec![Word::new("ab", 1, 0)], ..Segment::new("ab", 0, 1) }]),
        ];
        for (index, one) in all.iter().enumerate() {
            assert_eq!(content_digest(one).len(), 32);
            assert_eq!(content_digest(one), content_digest(&one.clone()));
            for other in &all[..index] {
                assert_ne!(content_digest(one), content_digest(other), "{one:?} and {other:?}");
            }
        }
    }

    #[test]
    fn digest_is_stable_across_versions() {
        let hex = crate::hex::encode(&content_digest(&transcript()));
        assert_eq!(hex, "ff9ee92385adcc43fc15f0d45256d26582e629fe0056bd38331242ca9d92d01a");
    }
}
