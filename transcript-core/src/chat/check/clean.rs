//! What a model writes of its own, without what only the service may write: times and links.

use super::plain::is_private;
use crate::transcript::is_unspaced;

/// Stands for a time that the model wrote, until it is known which moment the sentence cites.
pub(super) const MOMENT: char = '\u{E000}';

/// Ends of host names that are taken for a link without anything around them.
const ENDINGS: &[&str] = &[
    "com", "net", "org", "io", "co", "ai", "app", "dev", "info", "biz", "xyz", "ru", "cn", "de", "uk", "fr",
    "me", "ly", "tv", "gg", "example", "test", "site", "online", "shop", "click", "link", "top", "pl", "nl",
    "eu", "jp", "kr", "cc", "edu", "gov",
];
/// What a link may begin with.
const SCHEMES: &[&str] =
    &["www.", "mailto:", "javascript:", "vbscript:", "data:", "tel:", "ftp:", "file:", "http:", "https:"];
/// The longest tag, in characters.
const TAG_CHARS_MAX: usize = 300;

/// A model's words without links and times. `said` tells whether something was said in the passages that
/// the sentence cites: such a time or name of a site stays. Other times become [`MOMENT`].
///
/// To be called once for a whole sentence: what is cleaned apart may be a link or a time together.
pub(super) fn clean(text: &str, said: &dyn Fn(&str) -> bool) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|c| !parts_words(c)) {
        cleaned.push_str(rest.get(..start).unwrap_or_default());
        let from = rest.get(start..).unwrap_or_default();
        let end = from.find(parts_words).unwrap_or(from.len());
        let is_joined = cleaned.chars().next_back().is_some_and(char::is_alphanumeric);
        cleaned.push_str(&unlinked(from.get(..end).unwrap_or_default(), is_joined, said));
        rest = from.get(end..).unwrap_or_default();
    }
    cleaned.push_str(rest);
    without_times(&without_joiners(&cleaned), said)
}

/// Whether a character ends what may be a link: scripts without spaces do, and what stands for something else.
fn parts_words(c: char) -> bool {
    c.is_whitespace() || is_private(c) || is_unspaced(c)
}

/// A text without the characters that only join or dress others, where they stand within a time.
fn without_joiners(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        let joins = matches!(c, '\u{200C}' | '\u{200D}' | '\u{20E3}' | '\u{300}'..='\u{36F}'
            | '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}');
        if !joins || !plain.ends_with(|c: char| c.is_numeric() || c.is_whitespace() || is_colon(c)) {
            plain.push(c);
        }
    }
    plain
}

/// A text without the tags of HTML; a sign that begins none stays.
pub(super) fn without_tags(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        cleaned.push_str(before);
        // Nothing but white space, a digit or a sign behind it makes it a sign for sure.
        let is_tag =
            !after.starts_with(|c: char| c.is_whitespace() || c.is_ascii_digit() || matches!(c, '=' | '-'));
        let end = after.char_indices().take(TAG_CHARS_MAX).find(|(_, c)| *c == '>').filter(|_| is_tag);
        rest = match end {
            Some((end, _)) => after.get(end + 1..).unwrap_or_default(),
            None => after,
        };
        if !is_tag {
            cleaned.push('<');
        }
    }
    cleaned.push_str(rest);
    cleaned
}

/// A word that is no link: without it where it is one, and with a space where it may be taken for one. `is_joined`:
/// a letter stands right before it.
fn unlinked(word: &str, is_joined: bool, said: &dyn Fn(&str) -> bool) -> String {
    let lower = word.to_lowercase();
    let begins = |scheme: &&str| {
        lower.split_once(*scheme).is_some_and(|(before, after)| {
            !before.ends_with(|c: char| c.is_alphanumeric()) && !after.is_empty()
        })
    };
    if lower.contains("//") || SCHEMES.iter().any(begins) || is_address(&lower) {
        return String::new();
    }
    let letters: Vec<char> = word.chars().collect();
    let has_target = letters.iter().enumerate().any(|(at, c)| match c {
        '/' | '@' => true,
        '?' | ':' | '#' => letters.get(at + 1).is_some_and(|c| c.is_alphanumeric()),
        _ => false,
    });
    let mut plain = String::with_capacity(word.len());
    for (at, c) in letters.iter().enumerate() {
        let ending = if *c == '.' { ending(&letters, at, is_joined) } else { String::new() };
        if ending.is_empty() {
            plain.push(*c);
            continue;
        }
        if said(word.trim_matches(|c: char| !c.is_alphanumeric())) {
            return word.to_owned();
        }
        if has_target || ENDINGS.contains(&ending.to_lowercase().as_str()) {
            return String::new();
        }
        // A sentence that begins without a space, or a name with a point in it.
        plain.push_str(if ending.starts_with(char::is_lowercase) { " " } else { ". " });
    }
    plain
}

/// Whether a word is the number of a host with something behind it, or the part of a link that says a moment.
fn is_address(word: &str) -> bool {
    let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
    let host = bare.split(['/', ':', '?', '#']).next().unwrap_or_default();
    let is_number =
        |part: &str| (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_host = host.split('.').count() == 4 && host.split('.').all(is_number) && host.len() < bare.len();
    let moment = word.split_once("t=").filter(|(before, _)| !before.ends_with(char::is_alphanumeric));
    is_host || moment.is_some_and(|(_, after)| after.starts_with(|c: char| c.is_ascii_digit()))
}

/// The letters behind a point that may be the end of a host's name; none where it is none.
fn ending(letters: &[char], point: usize, is_joined: bool) -> String {
    let is_free = match point.checked_sub(1) {
        Some(before) => !letters.get(before).is_some_and(|c| c.is_alphanumeric() || *c == '-'),
        None => !is_joined,
    };
    let ending: String = letters.iter().skip(point + 1).take_while(|c| c.is_alphabetic()).take(64).collect();
    if is_free || ending.chars().nth(1).is_none() { String::new() } else { ending }
}

fn without_times(text: &str, said: &dyn Fn(&str) -> bool) -> String {
    let letters: Vec<char> = text.chars().collect();
    let mut cleaned = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(c) = letters.get(at).copied() {
        let begins = c.is_numeric()
            && !at.checked_sub(1).and_then(|at| letters.get(at)).is_some_and(|c| c.is_numeric());
        match begins.then(|| clock(&letters, at).or_else(|| spoken(&letters, at))).flatten() {
            Some(end) => {
                let time: String = letters.get(at..end).unwrap_or_default().iter().collect();
                if said(&time) {
                    cleaned.push_str(&time)
                } else {
                    cleaned.push(MOMENT)
                }
                at = end;
            }
            None => {
                cleaned.push(c);
                at += 1;
            }
        }
    }
    cleaned
}

/// Whether a character is a colon, or is taken for one.
pub(super) fn is_colon(c: char) -> bool {
    matches!(c, ':' | '：' | '∶' | '﹕' | '꞉' | '︓' | '︰' | 'ː' | '˸' | '׃' | '։' | '፡')
}

/// Where a time such as `1:23`, `01:02:03`, `1 : 23` or `1:23.5` ends.
fn clock(letters: &[char], from: usize) -> Option<usize> {
    let (_, mut at) = digits(letters, from)?;
    let mut parts = 1;
    while let Some(colon) = spaced(letters, at).filter(|at| letters.get(*at).is_some_and(|c| is_colon(*c))) {
        let Some(start) = spaced(letters, colon + 1) else { break };
        let Some((2, end)) = digits(letters, start) else { break };
        at = end;
        parts += 1;
    }
    if parts < 2 {
        return None;
    }
    if letters.get(at) == Some(&'.')
        && let Some((..=3, end)) = digits(letters, at + 1)
    {
        at = end;
    }
    Some(at)
}

/// Whether a character is a space so narrow that what stands around it is read as one.
fn is_narrow(c: char) -> bool {
    matches!(c, '\u{2006}' | '\u{2009}' | '\u{200A}' | '\u{202F}')
}

/// Where something other than white space comes next.
fn spaced(letters: &[char], from: usize) -> Option<usize> {
    Some(from + letters.get(from..)?.iter().position(|c| !c.is_whitespace())?)
}

/// Where a time in words of units ends: `3m20s`, `1h 2m`, `3 minutes and 20 seconds`, `3分20秒`.
fn spoken(letters: &[char], from: usize) -> Option<usize> {
    const HOURS: &str = "h hr hrs hour hours std stunde stunden heure heures hora horas ora ore ч час часа часов \
        小时 小時 时 時 時間 시간";
    const MINUTES: &str = "m min mins minute minutes minuten minuto minutos minuti мин минута минуты минут \
        分 分钟 分鐘 분";
    const SECONDS: &str = "s sec secs second seconds sek sekunde sekunden seconde secondes segundo segundos secondo \
        secondi сек секунда секунды секунд 秒 秒钟 秒鐘 초";
    let (mut at, mut reached, mut units) = (from, None, 0);
    for names in [HOURS, MINUTES, SECONDS] {
        let Some(end) = unit(letters, at, names) else { continue };
        units += 1;
        reached = Some(end);
        at = joined(letters, end);
    }
    reached.filter(|_| units >= 2)
}

/// Where a number with one of these units ends.
fn unit(letters: &[char], from: usize, names: &str) -> Option<usize> {
    let (..=3, end) = digits(letters, from)? else { return None };
    let at = spaced(letters, end)?;
    let is_wide = letters.get(at).is_some_and(|c| is_unspaced(*c) || ('가'..='힣').contains(c));
    let word: String = letters.iter().skip(at).take(8).take_while(|c| c.is_alphabetic()).collect();
    let word = word.to_lowercase();
    let found = match is_wide {
        // More words may follow without a space.
        true => names.split(' ').filter(|name| word.starts_with(name)).max_by_key(|name| name.len()),
        false => names.split(' ').find(|name| *name == word),
    };
    let end = at + found?.chars().count();
    let next = spaced(letters, end + 1).and_then(|next| digits(letters, next));
    let is_shortened = !is_wide && letters.get(end) == Some(&'.') && matches!(next, Some((..=3, _)));
    Some(end + usize::from(is_shortened))
}

/// Where the next number begins, behind `and`, a comma or spaces.
fn joined(letters: &[char], from: usize) -> usize {
    let start = spaced(letters, from).unwrap_or(from);
    let word: String = letters.iter().skip(start).take(4).take_while(|c| !c.is_whitespace()).collect();
    let joins =
        matches!(word.as_str(), "and" | "und" | "et" | "y" | "e" | "и") && start > from || word == ",";
    let end = start + word.chars().count();
    if joins { spaced(letters, end).unwrap_or(end) } else { start }
}

/// How many digits there are in a row, and where they end.
fn digits(letters: &[char], from: usize) -> Option<(usize, usize)> {
    let (mut count, mut end) = (0, from);
    for (at, c) in letters.iter().enumerate().skip(from) {
        if c.is_numeric() {
            (count, end) = (count + 1, at + 1);
        } else if count == 0 || !is_narrow(*c) {
            break;
        }
    }
    (count > 0).then_some((count, end))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expect: &str) {
        let said = |text: &str| text.contains("10:30") || text.contains("said.com");
        assert_eq!(clean(text, &said).replace(MOMENT, "@"), expect, "{text}");
    }

    #[test]
    fn times_of_the_models_own_go() {
        check("At 2:15, then 01:02:03.5 and １：２３.", "At @, then @ and @.");
        check(
            "They meet at 10:30, in 16:9 and 3:1, a ratio.",
            "They meet at 10:30, in 16:9 and 3:1, a ratio.",
        );
        check("At 3m20s, at 1h 2m, at 3 minutes and 20 seconds.", "At @, at @, at @.");
        for time in [
            "12:34pm",
            "12:34:",
            "12:34:5",
            "12\u{200D}:34",
            "12 : 34",
            "12 \u{200D}:34",
            "12꞉34",
            "1\u{20E3}2:34",
            "12:3\u{200A}4",
            "1\u{202F}2:34",
            "3\u{A0}min\u{202F}20\u{A0}s",
            "3 min  20 s",
            "3 min 2\u{200A}0 s",
            "3 min and\u{A0} 20 s",
            "3 min, 20 s",
        ] {
            let cleaned = clean(time, &|_| false);
            assert!(cleaned.starts_with(MOMENT), "{time} {cleaned}");
        }
        check(
            "At 3分45秒说, 1小时2分钟后, 3분 45초에, um 3 Minuten und 20 Sekunden",
            "At @说, @后, @에, um @",
        );
        check("um 3 Min. 20 Sek. dort", "um @. dort");
        check("um 3 Min.  20 Sek. dort", "um @. dort");
        check("в 3 минуты и 20 секунд", "в @");
        check("3 min http://x.example 20 s", "@");
        check("It was 2:1 5 minutes before the end.", "It was 2:1 5 minutes before the end.");
        check("- 12:34: the pier", "- @: the pier");
        check("at12:34 在12:34，12:34に", "at@ 在@，@に");
        check("It takes 3 minutes, or 20 s", "It takes 3 minutes, or 20 s");
    }

    #[test]
    fn links_and_tags_go() {
        check("See https://evil.example/x?y=z, or www.evil.com now", "See  or  now");
        check("Go to evil.com/steal or said.com or javascript:alert(1)", "Go to  or said.com or ");
        check(
            "End.Next stays, as does 3.5 and e.g. this, z.B., 5 p.m. and wait...what",
            "End. Next stays, as does 3.5 and e.g. this, z.B., 5 p.m. and wait...what",
        );
        for link in [
            "1.2.3.4/x",
            "1.2.3.4:80/x",
            "?t=225s",
            "#t=225",
            "evil.com:8080/x",
            "evil.com?x",
            "pier,evil.com/x",
            "a@evil.com",
            "//evil.com?x",
            "(//evil)",
        ] {
            check(&format!("See {link} now"), "See  now");
        }
        check(
            "evil.rs and Node.js, 看http://evil.com/x。毁了 看evil.com吧",
            "evil rs and Node js, 看。毁了 看吧",
        );
        check("码头毁了.然后走了 and .com", "码头毁了.然后走了 and .com");
        assert_eq!(without_tags("<b>bold</b> <img src=x onerror=y> a < b <3"), "bold  a < b <3");
        assert_eq!(without_tags("<script <<!--x <<b>i>"), "i>");
    }

    proptest! {
        #[test]
        fn no_link_and_no_time_is_left(text in "[a0-9:꞉. <>/hwに\u{200A}\u{200D}]{0,40}") {
            let cleaned = clean(&text, &|_| false);
            prop_assert!(!cleaned.contains("//"));
            // A simple search of its own: a digit, a colon with or without spaces around it, and two digits. A
            // space that is seen parts digits: `2:1 5 minutes before` has no time in it.
            let (mut dense, mut is_apart) = (Vec::new(), false);
            for c in cleaned.chars() {
                match c {
                    ' ' => is_apart = true,
                    '\u{200A}' | '\u{200D}' => (),
                    c => {
                        let are_digits = c.is_ascii_digit() && dense.last().is_some_and(char::is_ascii_digit);
                        if std::mem::take(&mut is_apart) && are_digits {
                            dense.push(' ');
                        }
                        dense.push(c);
                    }
                }
            }
            let is = |at: usize, c: fn(char) -> bool| dense.get(at).is_some_and(|letter| c(*letter));
            let digit: fn(char) -> bool = |c| c.is_ascii_digit();
            for at in 0..dense.len() {
                let is_time = is(at, digit) && is(at + 1, is_colon) && is(at + 2, digit) && is(at + 3, digit);
                prop_assert!(!is_time || is(at + 4, digit), "{}", cleaned);
            }
        }
    }
}
