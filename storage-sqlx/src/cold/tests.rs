use std::path::Path;

use proptest::prelude::*;
use transcript_core::{
    ErrorKind,
    body::segments,
    captions::{parse, sniff},
    transcript::TIME_MAX_MS,
};

use super::*;
use crate::body::tests::transcript;

fn sample_transcript() -> Transcript {
    transcript((0..40).map(|n| Segment::new(format!("and so the word is {n}"), n * 900, 1_700)).collect())
}

/// Packs and unpacks: the transcript is equal, and so are the bytes that are sent.
#[track_caller]
fn assert_round_trip(transcript: &Transcript, dictionary: Dictionary) -> usize {
    let compact = Packer::new(dictionary).unwrap().pack(transcript).unwrap();
    let digest = content_digest(transcript);
    let words = words::pack(&transcript.segments).unwrap();
    let read = unpack(&compact, words.as_deref(), &digest).unwrap();
    assert_eq!(read, *transcript);
    let (before, after) = (EncodedBody::pack(transcript).unwrap(), EncodedBody::pack(&read).unwrap());
    assert_eq!(segments::write(&read.segments).unwrap(), before.json().unwrap());
    // The checksum covers all that is sent with the segments.
    assert_eq!(before.segments, after.segments);
    assert_eq!(before.checksum(&transcript.video), after.checksum(&transcript.video));
    compact.len()
}

fn any_transcript() -> impl Strategy<Value = Transcript> {
    let time = || prop_oneof![0_u64..10_000, 0..=TIME_MAX_MS];
    let segment = (any::<String>(), time(), time())
        .prop_map(|(text, start_ms, duration_ms)| Segment::new(text, start_ms, duration_ms));
    let names = (any::<Option<String>>(), any::<Option<String>>(), any::<Option<String>>());
    (names, any::<Option<u64>>(), any::<bool>(), proptest::collection::vec(segment, 0..20)).prop_map(
        |((title, author, name), duration_ms, original, segments)| {
            let track =
                TrackInfo { name, original, ..TrackInfo::new(LanguageTag::english(), TrackKind::Human) };
            Transcript { title, author, duration_ms, track, ..transcript(segments) }
        },
    )
}

proptest! {
    #[test]
    fn cold_packed_unpacks_to_equal_transcript(transcript in any_transcript()) {
        for dictionary in [Dictionary::None, Dictionary::Captions1] {
            assert_round_trip(&transcript, dictionary);
        }
    }

    #[test]
    fn cold_arbitrary_bytes_are_rejected(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for bytes in [bytes.clone(), [&[COLUMN_CODEC, 1], bytes.as_slice()].concat()] {
            prop_assert!(unpack(&bytes, None, &[0; 32]).is_err());
        }
    }
}

#[test]
fn cold_damaged_returns_corrupt() {
    let transcript = sample_transcript();
    let digest = content_digest(&transcript);
    for dictionary in [Dictionary::None, Dictionary::Captions1] {
        let whole = Packer::new(dictionary).unwrap().pack(&transcript).unwrap();
        for index in 2..whole.len() {
            for bit in [1, 0x10, 0x80] {
                let mut bytes = whole.clone();
                bytes[index] ^= bit;
                // Some bits of a zstd frame are unused: a frame that still decodes must have the same text.
                match unpack(&bytes, None, &digest) {
                    Ok(read) => assert!(read == transcript, "different text at byte {index}"),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt),
                }
            }
        }
        for cut in 0..whole.len() {
            assert_eq!(
                unpack(&whole[..cut], None, &digest).unwrap_err().kind(),
                ErrorKind::Corrupt,
                "cut at {cut}"
            );
        }
        let longer = [whole.as_slice(), &[0]].concat();
        assert_eq!(unpack(&longer, None, &digest).unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(unpack(&whole, None, &[7; 32]).unwrap_err().kind(), ErrorKind::Corrupt);
    }
}

#[test]
fn cold_newer_codec_or_dictionary_is_unsupported() {
    let (transcript, mut packer) = (sample_transcript(), Packer::new(Dictionary::NEWEST).unwrap());
    let (whole, digest) = (packer.pack(&transcript).unwrap(), content_digest(&transcript));
    for (index, number) in [(0, 2), (0, 0xFF), (1, 2), (1, 0xFF)] {
        let mut bytes = whole.clone();
        bytes[index] = number;
        assert_eq!(
            unpack(&bytes, None, &digest).unwrap_err().kind(),
            ErrorKind::Unsupported,
            "{index}: {number}"
        );
    }
    // A known dictionary, but a different one.
    let mut bytes = whole;
    bytes[1] = Dictionary::None.number();
    assert_eq!(unpack(&bytes, None, &digest).unwrap_err().kind(), ErrorKind::Corrupt);
}

/// Cold transcripts must stay readable in every version: these are the bytes of the first one.
#[test]
fn cold_first_codec_stays_readable() {
    let transcript = sample_transcript();
    for (dictionary, hex) in
        [(Dictionary::None, WITHOUT_DICTIONARY), (Dictionary::Captions1, WITH_CAPTIONS_1)]
    {
        let bytes: Vec<u8> =
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
        assert_eq!(unpack(&bytes, None, &content_digest(&transcript)).unwrap(), transcript, "{dictionary:?}");
        assert_eq!(bytes[1], dictionary.number());
    }
}

const WITHOUT_DICTIONARY: &str = concat!(
    "010028b52ffd207a95000048280000880ec81a00000200c04332d4690128b52ffd602903a50700020e2e21a0bb018ffaffff",
    "31a886dfeff7d5679adbf75e7f0f34c12ef3daf6df5f8208e0e0c8618d4a0b620e057258a3d2829803811cd6a8b420e6440e",
    "6b545a1073002e0d3c16d7801c75805fc0b3f1e8fd556127c80dd631be3916c6af9719b3fafd096f0d698bbffcbf9f29bc5f",
    "fe933bb6f2ced0df7fb6965e7edf580922eeef670863d0c6d3cb3a8d592b32d8c20e945a83d263debf286673ddb1853d2fff",
    "034371c0965f1620f9fb79eababf7c2ce4ae2fe63ecf8fcebe0b2da81100533461c2c2d2ba3503a017b4703110012238c22b",
    "f5036d6fff0c12fe65c80dac96595b340692a4b8b019ff86ea437cdfc486bf7e1f",
);
const WITH_CAPTIONS_1: &str = concat!(
    "010128b52ffd207a95000048280000880ec81a00000200c04332d4690128b52ffd6029030506008286171dc0ebffff5f7b9f",
    "d80bb25c373ad142de654122654a2925194c91fe5a02f0bd37afd3b6f0bd37afd3e6e07b6f5ea70adf7bf33a6d8d3c04c488",
    "0e67320f0b90e9400353e4022db21012a9d5b51bb6df6fccefcc8faaac6b46162340c82938a881d4db4276e64025c828282c",
    "68e11170882146408880088a10d40f870fae8eac72379d369fa35a29bffd3618c76c1fb4b8615176f5106cf57332586a9e7f",
    "a0a3d6629424c74e58746cb7fa7bedd62a9b239b025beb0f437929c6229f0c",
);

#[test]
fn cold_oversized_transcript_is_rejected() {
    let late = transcript(vec![Segment::new("", TIME_MAX_MS + 1, 0)]);
    let large = transcript(vec![Segment::new("x".repeat(LENGTH_MAX), 0, 0)]);
    for transcript in [late, large] {
        let error = Packer::new(Dictionary::None).unwrap().pack(&transcript).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
}

/// The recorded captions are in the folder `VERBATIM_RECORDINGS`; without it the test checks nothing.
#[test]
fn cold_recorded_captions_unpack_equal() {
    let Some(folder) = std::env::var_os("VERBATIM_RECORDINGS") else {
        eprintln!("VERBATIM_RECORDINGS is not set: no recorded captions are checked");
        return;
    };
    let (mut folders, mut checked) = (vec![Path::new(&folder).to_owned()], 0);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            if sniff(&bytes).is_none() {
                continue;
            }
            let Ok(segments) = parse(&bytes) else { continue };
            let recorded = transcript(segments);
            let (json, [without, with]) = (
                segments::write(&recorded.segments).unwrap().len(),
                [Dictionary::None, Dictionary::Captions1]
                    .map(|dictionary| assert_round_trip(&recorded, dictionary)),
            );
            checked += 1;
            // Automatic captions of 50 minutes.
            if path.ends_with("asr_50min_acAsrConf.json3") {
                assert!(with * 100 <= json * 18 && with < without, "{with} and {without} of {json}");
            }
        }
    }
    assert!(checked >= 16, "only {checked} recordings are captions");
}
