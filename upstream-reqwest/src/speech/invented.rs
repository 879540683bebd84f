//! What a model makes up where nobody speaks: thanks for watching, the names of subtitlers, one line again and
//! again. Pure.

use transcript_core::transcript::Segment;

use super::answer::Piece;

/// Whisper's own rule for silence: it thinks that nobody speaks, and does not trust its words either.
const NO_SPEECH_MIN: f64 = 0.6;
const TRUST_MIN: f64 = -1.0;
/// Whisper's own rule for loops: a text that can be packed so tightly says the same again and again.
const PACKED_MAX: f64 = 2.4;
/// How often in a row the same text is believed.
const REPEATS_MAX: usize = 3;

/// Whether the model itself gives a piece away as made up. What a service does not tell counts for the piece.
pub(super) fn is_disowned(piece: &Piece) -> bool {
    let is_silence = piece.no_speech_prob.is_some_and(|prob| prob > NO_SPEECH_MIN)
        && piece.avg_logprob.is_some_and(|trust| trust < TRUST_MIN);
    is_silence || piece.compression_ratio.is_some_and(|ratio| ratio > PACKED_MAX)
}

/// Whether a text says anything: notes and remarks in brackets, such as `♪` or `[Music]`, do not.
pub(super) fn has_words(text: &str) -> bool {
    let mut depth = 0_usize;
    text.chars().any(|c| {
        match c {
            '[' | '(' | '【' | '（' => depth += 1,
            ']' | ')' | '】' | '）' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && c.is_alphanumeric()
    })
}

/// The segments without those that say the same more than three times in a row, but for the first of them.
pub(super) fn without_loops(segments: Vec<Segment>) -> Vec<Segment> {
    let mut kept: Vec<Segment> = Vec::with_capacity(segments.len());
    let mut run: Vec<Segment> = Vec::new();
    for segment in segments {
        if run.last().is_some_and(|last| !is_same(&last.text, &segment.text)) {
            end_run(&mut run, &mut kept);
        }
        run.push(segment);
    }
    end_run(&mut run, &mut kept);
    kept
}

fn end_run(run: &mut Vec<Segment>, kept: &mut Vec<Segment>) {
    let count = if run.len() > REPEATS_MAX { 1 } else { run.len() };
    kept.extend(run.drain(..).take(count));
}

fn is_same(one: &str, other: &str) -> bool {
    let letters = |text: &str| -> String {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    letters(one) == letters(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_gives_itself_away() {
        let piece = |no_speech_prob, avg_logprob, compression_ratio| {
            let text = "Thank you.".to_owned();
            is_disowned(&Piece {
                text,
                start: 0.0,
                end: None,
                no_speech_prob,
                avg_logprob,
                compression_ratio,
            })
        };
        assert!(piece(Some(0.9), Some(-1.2), None));
        assert!(piece(None, None, Some(9.0)));
        assert!(!piece(Some(0.9), Some(-0.3), Some(1.4)));
        assert!(!piece(Some(0.9), None, None));
        assert!(!piece(None, None, None));
    }

    #[test]
    fn notes_and_remarks_are_no_words() {
        for text in ["♪", "[Music]", "(applause) ♪♪", "...", "【音楽】", ""] {
            assert!(!has_words(text), "{text}");
        }
        for text in ["[Music] Hello", "7", "(he) said", "ありがとう", "] odd"] {
            assert!(has_words(text), "{text}");
        }
    }

    #[test]
    fn loops_are_cut_and_repeats_are_kept() {
        let kept = |texts: &[&str]| {
            let segments = texts.iter().map(|text| Segment::new(*text, 0, 1)).collect();
            without_loops(segments).into_iter().map(|segment| segment.text).collect::<Vec<_>>()
        };
        assert_eq!(kept(&["No.", "no!", "No", "Yes."]), ["No.", "no!", "No", "Yes."]);
        assert_eq!(kept(&["a", "You.", "you", "You!", "You.", "b"]), ["a", "You.", "b"]);
        assert!(kept(&[]).is_empty());
    }
}
