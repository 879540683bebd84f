//! Removes text that a model invents for silence: thanks for watching, subtitle credits, repetitions.
//!
//! No I/O.

use transcript_core::transcript::Segment;

use super::response::TranscribedSpan;

/// Whisper's own rule for silence: high no-speech probability and low confidence in the text.
const NO_SPEECH_MIN: f64 = 0.6;
const CONFIDENCE_MIN: f64 = -1.0;
/// Whisper decodes a window again whose text compresses better than this.
///
/// It is a hint only: the number is that of bytes in UTF-8, and of a whole window. Ordinary speech in Hindi, Tamil,
/// Thai or Burmese has 2.4 to 3.3.
const COMPRESSION_MAX: f64 = 2.4;
/// Maximum number of equal texts in a row.
const REPEATS_MAX: usize = 3;
/// Fewest letters of a loop: people repeat a word a few times, a model repeats it until its window is full.
const LOOP_LETTERS_MIN: usize = 40;
/// Number of letters of a text that are searched for a loop: a window of Whisper has fewer.
const LOOP_LETTERS_MAX: usize = 1_000;

/// The spans that the model did not invent.
pub(super) fn remove_invented(spans: &[TranscribedSpan]) -> Vec<TranscribedSpan> {
    // The spans of one window have its ratio.
    let windows = spans.chunk_by(|one, next| one.compression_ratio == next.compression_ratio);
    let spoken = windows.filter(|window| {
        let texts: Vec<&str> = window.iter().map(|span| span.text.as_str()).collect();
        !(window.first().is_some_and(is_compressible) && is_loop(&texts.join(" ")))
    });
    spoken.flatten().filter(|span| !is_low_confidence(span)).cloned().collect()
}

/// Whether the model's confidence values mark a span as invented. A span without these values is kept.
fn is_low_confidence(span: &TranscribedSpan) -> bool {
    let is_silence = span.no_speech_prob.is_some_and(|prob| prob > NO_SPEECH_MIN)
        && span.avg_logprob.is_some_and(|trust| trust < CONFIDENCE_MIN);
    is_silence || (is_compressible(span) && is_loop(&span.text))
}

fn is_compressible(span: &TranscribedSpan) -> bool {
    span.compression_ratio.is_some_and(|ratio| ratio > COMPRESSION_MAX)
}

/// Whether at least three quarters of a text repeat one word or sentence more than `REPEATS_MAX` times.
///
/// Only letters are compared, so it is the same for all languages.
fn is_loop(text: &str) -> bool {
    let letters: Vec<char> = letters(text).take(LOOP_LETTERS_MAX).collect();
    let longest_period = letters.len() / (REPEATS_MAX + 1);
    (1..=longest_period).any(|period| {
        let (mut run, mut longest) = (0, 0);
        for (one, next) in letters.iter().zip(letters.iter().skip(period)) {
            run = if one == next { run + 1 } else { 0 };
            longest = longest.max(run);
        }
        let repeated = longest + period;
        repeated >= (period * (REPEATS_MAX + 1)).max(LOOP_LETTERS_MIN) && repeated * 4 >= letters.len() * 3
    })
}

/// Whether a text contains words.
///
/// Notes and remarks in brackets, such as `♪` or `[Music]`, do not count. A bracket that is not closed is none: models
/// split sentences within brackets.
pub(super) fn has_words(text: &str) -> bool {
    // Whether there are words outside brackets, and after each bracket that is open.
    let mut found = vec![false];
    for c in text.chars() {
        match c {
            '[' | '(' | '【' | '（' => found.push(false),
            ']' | ')' | '】' | '）' if found.len() > 1 => found.truncate(found.len() - 1),
            c if c.is_alphanumeric() => found.last_mut().into_iter().for_each(|last| *last = true),
            _ => {}
        }
    }
    found.contains(&true)
}

/// Reduces runs of more than three equal texts to the first one.
pub(super) fn remove_repetition(segments: Vec<Segment>) -> Vec<Segment> {
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
    letters(one).eq(letters(other))
}

/// The letters and digits of a text, in lower case.
fn letters(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_confidence_span_is_detected() {
        let span = |no_speech_prob, avg_logprob, compression_ratio| {
            is_low_confidence(&TranscribedSpan {
                no_speech_prob,
                avg_logprob,
                compression_ratio,
                ..TranscribedSpan::new("Thank you.", 0.0)
            })
        };
        assert!(span(Some(0.9), Some(-1.2), None));
        assert!(!span(None, None, Some(9.0)));
        assert!(!span(Some(0.9), Some(-0.3), Some(1.4)));
        assert!(!span(Some(0.9), None, None));
        assert!(!span(None, None, None));
    }

    #[test]
    fn loop_over_spans_of_one_window_is_removed() {
        let window = |texts: &[&str], compression_ratio| -> Vec<TranscribedSpan> {
            let spans = texts.iter().map(|text| TranscribedSpan::new(*text, 0.0));
            spans.map(|span| TranscribedSpan { compression_ratio: Some(compression_ratio), ..span }).collect()
        };
        let invented = window(&["Thank you.", "Thanks for watching."].repeat(10), 9.0);
        assert_eq!(remove_invented(&invented), []);
        let spoken = window(
            &["सभी मनुष्यों को गौरव और", "अधिकारों के मामले में", "जन्मजात स्वतन्त्रता और समानता", "प्राप्त है।"],
            2.8,
        );
        assert_eq!(remove_invented(&spoken), spoken);
        assert_eq!(remove_invented(&[invented, spoken.clone()].concat()), spoken);
    }

    #[test]
    fn loop_is_low_confidence_in_any_language() {
        let is_dropped = |text: &str, compression_ratio| {
            let compression_ratio = Some(compression_ratio);
            is_low_confidence(&TranscribedSpan { compression_ratio, ..TranscribedSpan::new(text, 0.0) })
        };
        for text in [
            "Thank you. ",
            "ご視聴ありがとうございました。",
            "धन्यवाद, ",
            "a",
            "We like it, we like it a lot. ",
        ] {
            let text = text.repeat(60);
            assert!(is_dropped(&text, 9.0), "{text}");
            assert!(is_dropped(&format!("And that is all. {text}"), 9.0), "{text}");
            assert!(!is_dropped(&text, 1.4), "{text}");
        }
        for text in [
            "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है। उन्हें बुद्धि और अन्तरात्मा की \
             देन प्राप्त है और परस्पर उन्हें भाईचारे के भाव से बर्ताव करना चाहिए।",
            "மனிதப் பிறிவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர்; அவர்கள் மதிப்பிலும், உரிமைகளிலும் சமமானவர்கள்.",
            "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม และควรปฏิบัติต่อกัน\
             ด้วยเจตนารมณ์แห่งภราดรภาพ",
            "No, no, no, no, no, no!",
            "हाँ हाँ हाँ हाँ हाँ",
            "",
        ] {
            assert!(!is_dropped(text, 2.9), "{text}");
        }
    }

    #[test]
    fn remarks_in_brackets_are_not_words() {
        for text in ["♪", "[Music]", "(applause) ♪♪", "([Music] (loud))", "...", "【音楽】", "(", ""]
        {
            assert!(!has_words(text), "{text}");
        }
        for text in [
            "[Music] Hello",
            "7",
            "(he) said",
            "ありがとう",
            "] odd",
            "(which is what we",
            "found last year) and",
        ] {
            assert!(has_words(text), "{text}");
        }
    }

    #[test]
    fn repetition_over_three_is_reduced_to_one() {
        let kept = |texts: &[&str]| {
            let segments = texts.iter().map(|text| Segment::new(*text, 0, 1)).collect();
            remove_repetition(segments).into_iter().map(|segment| segment.text).collect::<Vec<_>>()
        };
        assert_eq!(kept(&["No.", "no!", "No", "Yes."]), ["No.", "no!", "No", "Yes."]);
        assert_eq!(kept(&["a", "You.", "you", "You!", "You.", "b"]), ["a", "You.", "b"]);
        assert!(kept(&[]).is_empty());
    }
}
