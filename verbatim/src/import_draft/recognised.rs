//! Captions whose body shows that a machine recognised their speech.

use transcript_core::captions::{self, CaptionFormat};

/// Whether a body is YouTube's automatic captions; `kind` is the one that it names.
///
/// Their JSON and XML have the recognizer's confidence for each word, and their WebVTT a time and a plain class.
pub(super) fn is_recognised(body: &[u8], kind: Option<&str>) -> bool {
    let text = String::from_utf8_lossy(body);
    match captions::sniff(body) {
        Some(CaptionFormat::Json3) => text.contains("\"acAsrConf\""),
        Some(CaptionFormat::Srv3) => {
            let tags = text.split("<s ").skip(1).filter_map(|rest| rest.split('>').next());
            tags.flat_map(str::split_ascii_whitespace).any(|attribute| attribute.starts_with("ac=\""))
        }
        Some(CaptionFormat::WebVtt) if kind == Some("captions") => {
            let is_timed = |at: usize| {
                text.get(..at).is_some_and(|before| before.ends_with(|c: char| c.is_ascii_digit()))
            };
            text.match_indices("><c>").any(|(at, _)| is_timed(at))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::ImportDraft;

    #[test]
    fn captions_of_speech_recognition_are_detected() {
        let json3 = |seg: &str| {
            format!(r#"{{"wireMagic":"pb3","events":[{{"tStartMs":0,"dDurationMs":9,"segs":[{{{seg}}}]}}]}}"#)
        };
        let srv3 = |line: &str| {
            format!("<timedtext format=\"3\"><body><p t=\"0\" d=\"9\">{line}</p></body></timedtext>")
        };
        let vtt = |header: &str, line: &str| format!("WEBVTT\n{header}\n\n00:00.000 --> 00:02.000\n{line}\n");
        let youtube = "Kind: captions\nLanguage: en";
        for (body, expect) in [
            (json3(r#""utf8":"so","acAsrConf":248"#), true),
            (json3(r#""utf8":"\"acAsrConf\"""#), false),
            (srv3("<s ac=\"248\">so</s><s t=\"160\" ac=\"255\"> we</s>"), true),
            (srv3("<s p=\"1\">so ac=\"248\"</s>"), false),
            (vtt(youtube, "so<00:00:00.400><c> we</c>"), true),
            (vtt(youtube, "so <c>we</c> met<00:00:01.000><c.yellow> him</c>"), false),
            (vtt("", "so<00:00:00.400><c> we</c>"), false),
            (r#"[{"text":"so","start":0,"end":1,"avg_logprob":-0.2}]"#.to_owned(), true),
            (r#"{"segments":[{"text":"so","start":0,"end":1,"no_speech_prob":0.1}]}"#.to_owned(), true),
            (r#"{"segments":[{"text":"so","start":0,"end":1,"no_speech_prob":null}]}"#.to_owned(), false),
        ] {
            let utf16 = |bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
                format!("\u{FEFF}{body}").encode_utf16().flat_map(bytes).collect()
            };
            for encoded in [body.clone().into_bytes(), utf16(u16::to_le_bytes), utf16(u16::to_be_bytes)] {
                let draft = ImportDraft::read(&encoded).unwrap().remove(0);
                assert_eq!((draft.is_recognised, draft.kind), (expect, None), "{body}: {encoded:?}");
            }
        }
    }
}
