//! Removes times and links from a model's text; only the service may write them.

use super::normalize::is_private;
use crate::transcript::is_unspaced;

/// Placeholder for a time that the model wrote, until the cited time of the sentence is known.
pub(super) const TIME_PLACEHOLDER: char = '\u{E000}';

/// Top-level domains that make a word a link without a scheme.
const TOP_LEVEL_DOMAINS: &[&str] = &[
    "com", "net", "org", "io", "co", "ai", "app", "dev", "info", "biz", "xyz", "ru", "cn", "de", "uk", "fr",
    "me", "ly", "tv", "gg", "example", "test", "site", "online", "shop", "click", "link", "top", "pl", "nl",
    "eu", "jp", "kr", "cc", "edu", "gov",
];
const LINK_PREFIXES: &[&str] =
    &["www.", "mailto:", "javascript:", "vbscript:", "data:", "tel:", "ftp:", "file:", "http:", "https:"];
/// Maximum of characters in an HTML tag, or in a link target with parentheses.
const TAG_CHARS_MAX: usize = 300;

/// Removes links and times from a model's text: [`remove_links`], then [`replace_times`].
pub(super) fn remove_links_and_times(text: &str, is_spoken: &dyn Fn(&str) -> bool) -> String {
    replace_times(&remove_links(text, is_spoken), &mut |time, _| is_spoken(time))
}

/// Removes links from a model's text; a host name that `is_spoken` finds in the cited passages stays.
///
/// Pass a whole sentence at once: two fragments that are clean alone may form a link or a time together.
pub(super) fn remove_links(text: &str, is_spoken: &dyn Fn(&str) -> bool) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|c| !ends_link(c)) {
        cleaned.push_str(rest.get(..start).unwrap_or_default());
        let from = rest.get(start..).unwrap_or_default();
        let end = from.find(ends_link).unwrap_or(from.len());
        let is_joined = cleaned.chars().next_back().is_some_and(char::is_alphanumeric);
        cleaned.push_str(&remove_link(from.get(..end).unwrap_or_default(), is_joined, is_spoken));
        rest = from.get(end..).unwrap_or_default();
    }
    cleaned.push_str(rest);
    remove_joiners(&cleaned)
}

/// Whether a character ends a link: white space, placeholders, letters of unspaced scripts.
fn ends_link(c: char) -> bool {
    c.is_whitespace() || is_private(c) || is_unspaced(c)
}

/// Removes joiners and combining marks inside times.
fn remove_joiners(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        let is_joiner = matches!(c, '\u{200C}' | '\u{200D}' | '\u{20E3}' | '\u{300}'..='\u{36F}'
            | '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}');
        if !is_joiner || !plain.ends_with(|c: char| c.is_numeric() || c.is_whitespace() || is_colon(c)) {
            plain.push(c);
        }
    }
    plain
}

/// Removes HTML tags; a `<` that starts no tag stays.
pub(super) fn remove_tags(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        cleaned.push_str(before);
        // `<` is certainly plain text only before white space, a digit, `=` or `-`.
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

/// Length of a link target that begins with a parenthesis. A target such as `(f(1))` has others inside.
pub(super) fn link_target_length(target: &[char]) -> usize {
    let mut depth = 0_usize;
    for (at, c) in target.iter().take(TAG_CHARS_MAX).take_while(|c| !c.is_whitespace()).enumerate() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return at + 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    target.iter().position(|c| *c == ')').map_or(target.len(), |close| close + 1)
}

/// Removes a word that is a link, and adds a space to a word that could be read as one.
///
/// `is_joined`: a letter stands directly before it.
fn remove_link(word: &str, is_joined: bool, is_spoken: &dyn Fn(&str) -> bool) -> String {
    let lower = word.to_lowercase();
    let begins = |scheme: &&str| {
        lower.split_once(*scheme).is_some_and(|(before, after)| {
            !before.ends_with(|c: char| c.is_alphanumeric()) && !after.is_empty()
        })
    };
    if lower.contains("//") || LINK_PREFIXES.iter().any(begins) || is_address(&lower) {
        return local_address(word).filter(|address| is_spoken(address)).unwrap_or_default();
    }
    let letters: Vec<char> = word.chars().collect();
    let has_target = letters.iter().enumerate().any(|(at, c)| match c {
        '/' | '@' => true,
        '?' | ':' | '#' => letters.get(at + 1).is_some_and(|c| c.is_alphanumeric()),
        _ => false,
    });
    let mut plain = String::with_capacity(word.len());
    for (at, c) in letters.iter().enumerate() {
        let top_level_domain =
            if *c == '.' { top_level_domain(&letters, at, is_joined) } else { String::new() };
        if top_level_domain.is_empty() {
            plain.push(*c);
            continue;
        }
        if is_spoken(word.trim_matches(|c: char| !c.is_alphanumeric())) {
            return word.to_owned();
        }
        if has_target || TOP_LEVEL_DOMAINS.contains(&top_level_domain.to_lowercase().as_str()) {
            return String::new();
        }
        // A sentence that starts without a space, or a name with a full stop in it.
        plain.push_str(if top_level_domain.starts_with(char::is_lowercase) { " " } else { ". " });
    }
    plain
}

/// An address on the reader's own machine without its scheme: `localhost:8000/docs`.
fn local_address(word: &str) -> Option<String> {
    let address = word.strip_prefix("http://").or_else(|| word.strip_prefix("https://"))?;
    let address = address.trim_end_matches(['.', ',', ';', '!', '?']);
    let after = address.strip_prefix("localhost")?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '/' | '.' | '-' | '_');
    let is_host = after.is_empty() || after.starts_with([':', '/']);
    (is_host && after.chars().all(is_part) && !after.contains("//")).then(|| address.to_owned())
}

/// Whether a word is an IP address with a suffix, or the time parameter of a link.
fn is_address(word: &str) -> bool {
    let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
    let host = bare.split(['/', ':', '?', '#']).next().unwrap_or_default();
    let is_number =
        |part: &str| (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_host = host.split('.').count() == 4 && host.split('.').all(is_number) && host.len() < bare.len();
    let time_parameter = word.split_once("t=").filter(|(before, _)| !before.ends_with(char::is_alphanumeric));
    is_host || time_parameter.is_some_and(|(_, after)| after.starts_with(|c: char| c.is_ascii_digit()))
}

/// Letters after a full stop that may be a top-level domain; empty if there are none.
fn top_level_domain(letters: &[char], point: usize, is_joined: bool) -> String {
    let is_free = match point.checked_sub(1) {
        Some(before) => !letters.get(before).is_some_and(|c| c.is_alphanumeric() || *c == '-'),
        None => !is_joined,
    };
    let top_level_domain: String =
        letters.iter().skip(point + 1).take_while(|c| c.is_alphabetic()).take(64).collect();
    if is_free || top_level_domain.chars().nth(1).is_none() { String::new() } else { top_level_domain }
}

/// Replaces times by [`TIME_PLACEHOLDER`].
///
/// `is_kept` receives a time and the text before it, and returns whether the time stays.
pub(super) fn replace_times(text: &str, is_kept: &mut dyn FnMut(&str, &str) -> bool) -> String {
    let letters: Vec<char> = text.chars().collect();
    let mut cleaned = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(c) = letters.get(at).copied() {
        let begins = c.is_numeric()
            && !at.checked_sub(1).and_then(|at| letters.get(at)).is_some_and(|c| c.is_numeric());
        match begins.then(|| clock_end(&letters, at).or_else(|| units_end(&letters, at))).flatten() {
            Some(end) => {
                let time: String = letters.get(at..end).unwrap_or_default().iter().collect();
                if is_kept(&time, &cleaned) {
                    cleaned.push_str(&time)
                } else {
                    cleaned.push(TIME_PLACEHOLDER)
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

/// Whether a character is a colon, or looks like one.
pub(super) fn is_colon(c: char) -> bool {
    matches!(c, ':' | '：' | '∶' | '﹕' | '꞉' | '︓' | '︰' | 'ː' | '˸' | '׃' | '։' | '፡')
}

/// End of a time such as `1:23`, `01:02:03`, `1 : 23` or `1:23.5`; `None` if no time starts here.
fn clock_end(letters: &[char], from: usize) -> Option<usize> {
    let (_, mut at) = digits(letters, from)?;
    let mut parts = 1;
    while let Some(colon) =
        skip_spaces(letters, at).filter(|at| letters.get(*at).is_some_and(|c| is_colon(*c)))
    {
        let Some(start) = skip_spaces(letters, colon + 1) else { break };
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

/// Whether a character is a space so narrow that the characters around it read as one word.
fn is_narrow(c: char) -> bool {
    matches!(c, '\u{2006}' | '\u{2009}' | '\u{200A}' | '\u{202F}')
}

/// Index of the next character that is not white space.
fn skip_spaces(letters: &[char], from: usize) -> Option<usize> {
    Some(from + letters.get(from..)?.iter().position(|c| !c.is_whitespace())?)
}

/// End of a time with units; `None` if none starts here.
///
/// Examples: `3m20s`, `1h 2m`, `3 minutes and 20 seconds`, `3分20秒`.
fn units_end(letters: &[char], from: usize) -> Option<usize> {
    const HOURS: &str = "h hr hrs hour hours std stunde stunden heure heures hora horas ora ore ч час часа часов \
        小时 小時 时 時 時間 시간";
    const MINUTES: &str = "m min mins minute minutes minuten minuto minutos minuti мин минута минуты минут \
        分 分钟 分鐘 분";
    const SECONDS: &str = "s sec secs second seconds sek sekunde sekunden seconde secondes segundo segundos secondo \
        secondi сек секунда секунды секунд 秒 秒钟 秒鐘 초";
    let (mut at, mut reached, mut unit_count) = (from, None, 0);
    for units in [HOURS, MINUTES, SECONDS] {
        let Some(end) = unit_end(letters, at, units) else { continue };
        unit_count += 1;
        reached = Some(end);
        at = skip_joiner(letters, end);
    }
    reached.filter(|_| unit_count >= 2)
}

/// End of a number with one of these units.
fn unit_end(letters: &[char], from: usize, units: &str) -> Option<usize> {
    let (..=3, end) = digits(letters, from)? else { return None };
    let at = skip_spaces(letters, end)?;
    let is_wide = letters.get(at).is_some_and(|c| is_unspaced(*c) || ('가'..='힣').contains(c));
    let word: String = letters.iter().skip(at).take(8).take_while(|c| c.is_alphabetic()).collect();
    let word = word.to_lowercase();
    let found = match is_wide {
        // More words may follow without a space.
        true => units.split(' ').filter(|name| word.starts_with(name)).max_by_key(|name| name.len()),
        false => units.split(' ').find(|name| *name == word),
    };
    let end = at + found?.chars().count();
    let next = skip_spaces(letters, end + 1).and_then(|next| digits(letters, next));
    let is_shortened = !is_wide && letters.get(end) == Some(&'.') && matches!(next, Some((..=3, _)));
    Some(end + usize::from(is_shortened))
}

/// Start of the next number, after `and`, a comma or spaces.
fn skip_joiner(letters: &[char], from: usize) -> usize {
    let start = skip_spaces(letters, from).unwrap_or(from);
    let word: String = letters.iter().skip(start).take(4).take_while(|c| !c.is_whitespace()).collect();
    let is_joiner =
        matches!(word.as_str(), "and" | "und" | "et" | "y" | "e" | "и") && start > from || word == ",";
    let end = start + word.chars().count();
    if is_joiner { skip_spaces(letters, end).unwrap_or(end) } else { start }
}

/// Number of digits in a row, and their end.
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
        let is_spoken =
            |text: &str| ["10:30", "said.com", "localhost:8000"].iter().any(|said| text.contains(said));
        assert_eq!(remove_links_and_times(text, &is_spoken).replace(TIME_PLACEHOLDER, "@"), expect, "{text}");
    }

    #[test]
    fn sanitize_model_times_become_placeholders() {
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
            let cleaned = remove_links_and_times(time, &|_| false);
            assert!(cleaned.starts_with(TIME_PLACEHOLDER), "{time} {cleaned}");
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
    fn sanitize_links_and_tags_are_removed() {
        check("See https://evil.example/x?y=z, or www.evil.com now", "See  or  now");
        check("Open http://localhost:8000/docs in it", "Open localhost:8000/docs in it");
        for link in [
            "http://localhost:9/x",
            "http://localhost:8000@evil.com",
            "http://localhost.evil.com",
            "//localhost:8000",
        ] {
            check(&format!("See {link} now"), "See  now");
        }
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
        assert_eq!(remove_tags("<b>bold</b> <img src=x onerror=y> a < b <3"), "bold  a < b <3");
        assert_eq!(remove_tags("<script <<!--x <<b>i>"), "i>");
    }

    proptest! {
        #[test]
        fn sanitize_any_text_has_no_link_and_no_time(text in "[a0-9:꞉. <>/hwに\u{200A}\u{200D}]{0,40}") {
            let cleaned = remove_links_and_times(&text, &|_| false);
            prop_assert!(!cleaned.contains("//"));
            // Independent check: a digit, a colon with or without spaces around it, and two digits. A visible space
            // separates digits: `2:1 5 minutes before` contains no time.
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
