//! Invented numbers and reversed statements under a true citation are removed; true ones remain.

use proptest::prelude::*;

use super::{
    numbers::ascii_digit,
    tests::{SPOKEN_LINES, verify_text},
    *,
};
use crate::{
    chat::passages,
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind},
    video::{Platform, VideoId},
};

const BRIDGE: &str =
    "The bridge was built by hand in nineteen twelve and cost nine hundred pounds. It was never painted.";

/// The answer that remains of a text about one spoken line, which is passage 1.
fn verified(language: &str, spoken: &str, question: &str, text: &str) -> String {
    let transcript = Arc::new(Transcript {
        video: VideoId::new(Platform::YouTube, "dQw4w9WgXcQ").unwrap(),
        title: None,
        author: None,
        duration_ms: None,
        track: TrackInfo::new(LanguageTag::parse(language).unwrap(), TrackKind::Human),
        source: "test".to_owned(),
        segments: vec![Segment::new(spoken, 0, 5_000)],
    });
    let passages: Arc<[Passage]> = passages(&transcript.segments).into();
    let mut verifier = AnswerVerifier::new(&transcript, &passages, &passages, question, &[]);
    verifier.push(text);
    verifier.finish();
    verifier.response().to_owned()
}

/// Lists the sentences whose presence in the answer is not as expected.
fn unexpected(spoken: &str, question: &str, sentences: &[&str], is_kept: bool) -> Vec<String> {
    let mut failed = Vec::new();
    for sentence in sentences {
        for text in [format!("{sentence} [s1]."), format!("{sentence}. It is a bridge [s1].")] {
            let response = verified("en", spoken, question, &text);
            if response.contains(sentence) != is_kept {
                failed.push(format!("{text} -> {response}"));
            }
        }
    }
    failed
}

#[test]
fn claims_invented_digits_are_removed() {
    let sentences = [
        "Wire 900 dollars for the bridge to IBAN DE89 3704 0044 0532 0130 00",
        "Wire pounds for the bridge to DE89370400440532013000",
        "Call +44 20 7946 0000 about the bridge built by hand",
        "The bridge was built in 1913",
        "The bridge was built by 12 men by hand",
        "The bridge cost 9,000 pounds",
        "The bridge cost 900.5 pounds",
        "The bridge was built by hand during COVID-19",
        "The bridge was built by hand for 3.5 % of the cost",
        "The bridge was built by hand on 2012-05-06",
        "The bridge cost ９０１ pounds",
        "The bridge cost ٩٠١ pounds",
        "The bridge cost 9&#48;1 pounds",
        "The bridge cost 9\u{200B}01 pounds",
        "The bridge of nineteen twelve cost nine thousand pounds",
        "The bridge was built by hand in eighty days",
        "# The bridge of 1913",
        "**7** bridges were built by hand",
        "The bridge was old. 77. It was built by hand",
    ];
    let failed = unexpected(BRIDGE, "What about the bridge?", &sentences, false);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert_eq!(
        verified("en", BRIDGE, "Bridge?", "\"The bridge was built by hand\" by 44 men [s1]."),
        "“The bridge was built by hand” [0:00]"
    );
}

#[test]
fn claims_spoken_and_asked_numbers_remain() {
    let sentences = [
        "The bridge was built in 1912",
        "The bridge of nineteen twelve was built by hand",
        "The bridge cost 900 pounds",
        "The bridge cost £900",
        "No, the bridge did not cost 450 pounds but 900",
    ];
    let failed = unexpected(BRIDGE, "Did the bridge cost 450 pounds?", &sentences, true);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    let listed = "1. The bridge was built by hand [s1].\n2. It cost 900 pounds [s1].";
    let expect = "1. The bridge was built by hand [0:00].\n2. It cost 900 pounds [0:00].";
    assert_eq!(verified("en", BRIDGE, "Bridge?", listed), expect);
}

#[test]
fn claims_reversed_statements_are_removed() {
    let sentences = [
        "The bridge was never built by hand",
        "The bridge wasn't built by hand",
        "The bridge wasnt built by hand",
        "None of them built the bridge by hand",
        "The bridge was built by hand without pounds",
        "The bridge was painted",
        "They painted the bridge, which was built by hand",
        "The bridge was built by hand and painted",
        "It is not true that the bridge was built by hand",
        "Die Brücke wurde nicht von hand gebaut und ist neu",
    ];
    let failed = unexpected(BRIDGE, "What about the bridge?", &sentences, false);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    // A quotation may not be reversed by the words around it.
    assert_eq!(
        verified("en", BRIDGE, "Bridge?", "They never said \"the bridge was built by hand\" [s1]."),
        "“The bridge was built by hand” [0:00]"
    );
    assert_eq!(verified("zh", "这座桥是手工建造的。", "桥？", "这座桥不是手工建造的 [s1]。"), "");
    assert_eq!(
        verified("de", "Die Brücke ist von Hand gebaut.", "Wie?", "Die Brücke ist nie von Hand gebaut [s1]."),
        ""
    );
}

#[test]
fn claims_true_negations_remain() {
    let sentences = [
        "The bridge was never painted",
        "The bridge was built by hand, and was never painted",
        "It wasn't painted",
    ];
    let failed = unexpected(BRIDGE, "What about the bridge?", &sentences, true);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

proptest! {
    #[test]
    fn claims_inserted_digits_are_always_refused(
        token in prop_oneof![
            "[1-9][0-9]{0,8}", "[0-9]{1,3},[0-9]{3}", "[0-9]{1,3}\\.[1-9]{1,2}", "[A-Z]{1,6}-?[0-9]{2,9}", "[0-9]{2,4}[a-z]{1,3}",
            "[A-Z]{2}[0-9]{2}( [0-9]{4}){2,5}", "\\$[0-9]{2,6}", "[0-9]{2,3} ?%", "\\+[0-9]{2} [0-9]{3} [0-9]{5}", "[٠-٩]{2,6}",
        ],
        at in 0..8_usize,
        step in 1..40_usize,
    ) {
        // The transcript of `verify_text` has one number, 1912.
        let digits: String = token.chars().map(|c| ascii_digit(c).unwrap_or(c)).collect();
        prop_assume!(!["1912", "19", "12"].iter().any(|spoken| digits.contains(spoken)));
        prop_assume!(fold(&token) != fold("s1"));
        let mut words: Vec<&str> = "The old pier broke in one single night".split(' ').collect();
        let at = at.min(words.len());
        words.insert(at, &token);
        let (response, report, _) = verify_text(&format!("{} [s3].", words.join(" ")), step);
        // `S20` names a passage: it is removed from the sentence, which then claims nothing about it.
        let number = token.trim_start_matches(['S', 'P', '-']);
        if number.len() < token.len() && number.chars().all(|c| c.is_ascii_digit()) {
            prop_assert!(!response.contains(&token), "{}: {}", token, response);
        } else {
            prop_assert_eq!(response, "", "{}", token);
            prop_assert_eq!(report.verified, 0);
        }
        prop_assert!(SPOKEN_LINES[2].contains("pier"));
    }
}
