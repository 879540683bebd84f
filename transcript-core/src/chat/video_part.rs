//! Questions about a part of a video: its halves, its beginning, its end.

use std::ops::Range;

use super::{
    Passage,
    search_index::{QueryWord, SearchIndex, query_words},
    whole_video::{asks_for_summary, has_phrase, has_unspaced_words, other_words},
};

/// Phrases for a part, in lower case, and the part in hundredths of the time that is spoken.
const PARTS: [(Range<u64>, &str); 4] = [
    (
        0..50,
        "first half|erste hälfte|ersten hälfte|première moitié|primera mitad|primeira metade|prima metà|eerste helft|\
         первая половина|первой половине|первую половину|ilk yarısı|النصف الأول|पहले आधे|前半|上半|전반",
    ),
    (
        50..100,
        "second half|zweite hälfte|zweiten hälfte|deuxième moitié|seconde moitié|segunda mitad|segunda metade|\
         seconda metà|tweede helft|вторая половина|второй половине|вторую половину|ikinci yarısı|النصف الثاني|\
         दूसरे आधे|後半|下半|后半|후반",
    ),
    (
        0..20,
        "at the beginning|at the start|zu beginn|am anfang|au début|al principio|al comienzo|no início|no começo|\
         all'inizio|aan het begin|в начале|başında|في البداية|शुरुआत में|開頭|开头|冒頭|시작 부분",
    ),
    (
        80..100,
        "at the end|am ende|am schluss|zum schluss|à la fin|al final|no final do vídeo|no fim do vídeo|alla fine|aan het einde|в конце|\
         sonunda|في النهاية|अंत में|結尾|结尾|끝에",
    ),
];

/// Most n-grams of other words in an unspaced question for a part.
const OTHER_NGRAMS_MAX: usize = 6;

/// The passages of the part of the video that a message in lower case asks for.
///
/// `None` if it has another word of a subject: "at the end of the war" is about the war. Halves of something that
/// is spoken of, such as a match, are not those of the video.
pub(super) fn asked_part(message: &str, passages: &[Passage], index: &SearchIndex) -> Option<Range<usize>> {
    let found = |(part, phrases): &(Range<u64>, &'static str)| {
        let phrase = phrases.split('|').find(|phrase| has_phrase(message, phrase))?;
        Some((part.clone(), phrase))
    };
    let (part, phrase) = PARTS.iter().find_map(found)?;
    let is_half = part.end - part.start == 50;
    let is_spoken = || passages.iter().any(|passage| passage.text.to_lowercase().contains(phrase));
    if names_other(message, phrase, index) || (is_half && is_spoken()) {
        return None;
    }
    let (first, last) = (passages.first()?.start_ms, passages.last()?.end_ms);
    let time_ms = |hundredths: u64| first + last.saturating_sub(first) / 100 * hundredths;
    let index_at = |at_ms: u64| passages.partition_point(|passage| passage.start_ms < at_ms);
    let start = index_at(time_ms(part.start));
    let end = if part.end == 100 { passages.len() } else { index_at(time_ms(part.end)).max(start + 1) };
    // A passage that begins before the part may be all that is spoken in it.
    let start = start.min(end.saturating_sub(1));
    (start < end).then_some(start..end)
}

/// Whether a message has a word of a subject beside a phrase: one that is spoken, or several.
fn names_other(message: &str, phrase: &str, index: &SearchIndex) -> bool {
    let is_spoken = |word: &QueryWord| word.folded.chars().count() > 1 && !index.forms(word).is_empty();
    let names = |words: &[QueryWord], most: usize| {
        let others = || words.iter().filter(|word| index.is_of_subject(word));
        others().count() > most || others().any(is_spoken)
    };
    if has_unspaced_words(message) {
        let words = query_words(&message.replacen(phrase, " ", 1), index.common_words(message));
        return names(&words, OTHER_NGRAMS_MAX);
    }
    let others = |text: &str| other_words(text, index, asks_for_summary);
    // A verb may precede the phrase. What follows it is what it is a part of: "at the end of Hamlet".
    let (before, after) = message.split_once(phrase).unwrap_or((message, ""));
    names(&others(before), 1) || names(&others(after), 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{chat::passages, transcript::Segment};

    #[test]
    fn video_part_is_asked_for_without_other_spoken_words() {
        let spoken = "the war and the harbour were what they saw when it was in the town";
        let segments: Vec<_> = (0..10).map(|n| Segment::new(spoken, n * 60_000, 40_000)).collect();
        let all = passages(&segments);
        let index = SearchIndex::new(&all);
        for (message, expect) in [
            ("what happens in the second half of the video?", Some(5..10)),
            ("what happens in the first half?", Some(0..5)),
            ("what does she say at the end?", Some(8..10)),
            ("was passiert am anfang?", Some(0..2)),
            ("后半部分讲了什么？", Some(5..10)),
            ("summarise the first half", Some(0..5)),
            ("what happened at the end of the war?", None),
            ("what happened at the end of the roman empire?", None),
            ("what happens at the end of hamlet?", None),
            ("what about the war at the start?", None),
            ("why is there no final?", None),
            ("最初に食べたのは何ですか？", None),
            ("what did they see?", None),
        ] {
            assert_eq!(asked_part(message, &all, &index), expect, "{message}");
        }
        let match_talk = passages(&[Segment::new("we lost it in the second half of the match", 0, 5_000)]);
        let index = SearchIndex::new(&match_talk);
        assert_eq!(asked_part("what happened in the second half?", &match_talk, &index), None);
    }
}
