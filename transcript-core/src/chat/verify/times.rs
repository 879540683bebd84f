//! Times of a sentence: whether the passages have them, and which may be timestamps of the model.

use super::{
    super::{
        common_words::{is_common_ngram, is_common_word},
        fold::fold,
    },
    amounts::Amounts,
    number_words::NumberWords,
    numbers::ascii_digit,
    sanitize::is_colon,
    transcript_index::SpokenContext,
};

/// Maximum of neighbouring numbers that are one time: "ten oh five".
const SPOKEN_PARTS_MAX: usize = 3;

/// Whether passages or their neighbours contain a text without an adjacent digit or colon.
///
/// With one, the text would be part of a longer time.
pub(super) fn is_written_in(text: &str, spoken: &SpokenContext) -> bool {
    let joins = |c: char| c.is_numeric() || is_colon(c);
    let has = |words: &str| {
        words.match_indices(text).any(|(at, found)| {
            let before = words.get(..at).and_then(|words| words.chars().next_back());
            let after = words.get(at + found.len()..).and_then(|words| words.chars().next());
            !before.is_some_and(joins) && !after.is_some_and(joins)
        })
    };
    !text.is_empty() && (has(&spoken.own) || has(&spoken.neighbours))
}

/// Whether one of these texts has the numbers of a time in another form.
///
/// The numbers of a clock time stand beside each other; those of a time with units are compared as other numbers are.
pub(super) fn has_numbers(time: &str, spoken: &[&Amounts], words: &NumberWords) -> bool {
    // A digit of a script that is not compared equals no other.
    let digit = |c: char| ascii_digit(c).unwrap_or(if c.is_numeric() { '?' } else { ' ' });
    let numbers: String = time.chars().map(digit).collect();
    if numbers.contains('?') {
        return false;
    }
    if !time.contains(is_colon) {
        return Amounts::new(&numbers, words).are_in(spoken);
    }
    let parts: Vec<&str> = numbers.split_whitespace().collect();
    spoken.iter().any(|amounts| has_clock_time(&parts, amounts))
}

/// Whether a text has these parts of a clock time.
///
/// Forms are "ten thirty", "ten oh five", `10.30`, `10h30`, "ten hours and thirty minutes", 十点三十分, and "ten" for
/// `10:00`. Other words between the numbers make them two.
fn has_clock_time(parts: &[&str], spoken: &Amounts) -> bool {
    let value = |part: &str| match part.trim_start_matches('0') {
        "" => "0".to_owned(),
        value => value.to_owned(),
    };
    let values: Vec<String> = parts.iter().map(|part| value(part)).collect();
    let are_equal = |forms: &[String]| forms.iter().map(|form| value(form)).eq(values.iter().cloned());
    if !values.is_empty() && spoken.clocks.iter().any(|clock| clock.windows(values.len()).any(are_equal)) {
        return true;
    }
    let [hour, minutes] = parts else { return false };
    let hour = value(hour);
    let decimals = minutes.trim_end_matches('0');
    let decimal = if decimals.is_empty() { hour.clone() } else { format!("{hour}.{decimals}") };
    let written = [format!("{hour}{minutes}"), decimal];
    let is_written = |forms: &[String]| written.contains(&forms.concat());
    let has = |clock: &Vec<String>| (1..=SPOKEN_PARTS_MAX).any(|count| clock.windows(count).any(is_written));
    spoken.clocks.iter().any(has)
}

/// Whether a time may be the model's timestamp of a sentence, because it opens the sentence or a bracket.
///
/// `before` is the text before it. A common word may precede a clock time: "At 12:34 the pier broke".
pub(super) fn may_be_timestamp(time: &str, before: &str) -> bool {
    if before.trim_end_matches(['*', '_', ' ']).ends_with(['(', '（', '{', '〔', '〖', '⟦', '❲', '⦗'])
    {
        return true;
    }
    let mut words = before.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let is_common = |word: &str| is_common_word(&fold(word)) || is_common_ngram(word);
    match (words.next(), words.next()) {
        (None, _) => true,
        (Some(word), None) => time.contains(is_colon) && is_common(word),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_compared_by_their_numbers() {
        for (time, spoken, language, expect) in [
            ("10:30", "they open at ten thirty", "en", true),
            ("10:30", "sie öffnen um 10.30 Uhr", "de", true),
            ("10:30", "ils ouvrent à 10h30", "fr", true),
            ("10:30", "sie öffnen um 10 Uhr 30", "de", true),
            ("10:05", "at ten oh five", "en", true),
            ("15:30", "at fifteen thirty", "en", true),
            ("10:00", "at ten o'clock", "en", true),
            ("10:30", "ten hours and thirty minutes", "en", true),
            ("10:30", "dix heures trente", "fr", true),
            ("1:05:09", "at 1:05:09", "en", true),
            ("10:30", "thirty boats and ten men", "en", false),
            ("19:45", "in 1945", "en", false),
            ("10:30", "1030 boats", "en", false),
            ("10:30", "ten boats and thirty men", "en", false),
            ("10:30", "at ten. Thirty boats", "en", false),
            ("10:30", "ten, thirty or more", "en", false),
            ("10:50", "ten point five", "en", false),
            ("10:30", "at ten", "en", false),
            ("1:05:09", "one hour, five minutes and nine seconds", "en", true),
            ("3 minutes 43 seconds", "three minutes and forty-three seconds", "en", true),
            ("3m43s", "three minutes and forty-three seconds", "en", true),
            ("2 minutes 5 seconds", "three minutes and forty-three seconds", "en", false),
            ("3分45秒", "三分四十五秒", "zh", true),
            ("10:30", "十点三十分", "zh", true),
            ("3:45", "三時四十五分", "ja", true),
            ("10:05", "十点五分", "zh", true),
            ("10:05", "十点零五分", "zh", true),
            ("10:00", "他们十点开门", "zh", true),
            ("10:30", "三十条船和十个人", "zh", false),
        ] {
            let words = NumberWords::new(language);
            let amounts = Amounts::new(spoken, &words);
            assert_eq!(has_numbers(time, &[&amounts], &words), expect, "{time} <- {spoken}");
        }
    }

    #[test]
    fn times_at_start_may_be_timestamps() {
        for (time, before, expect) in [
            ("9:59", "At ", true),
            ("9:59", "- **", true),
            ("9:59", "The old pier (", true),
            ("9:59", "Opens ", false),
            ("9:59", "They open at ", false),
            ("2 minutes 5 seconds", "", true),
            ("2 minutes 5 seconds", "In ", false),
        ] {
            assert_eq!(may_be_timestamp(time, before), expect, "{before}{time}");
        }
    }
}
