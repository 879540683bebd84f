//! Escaping that preserves text in Markdown.

/// Character that keeps an email address from becoming a link.
///
/// GitHub's dialect looks for addresses after all escapes are resolved, so only another character helps. This
/// one is invisible and allows no line break.
pub(super) const WORD_JOINER: char = '\u{2060}';

/// Maximum length of an entity name or an emoji code, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Whether a character may need an escape; all others are copied.
fn is_watched(c: char) -> bool {
    is_always_markup(c) || matches!(c, '&' | ':' | '.' | '@' | '\0')
}

fn is_always_markup(c: char) -> bool {
    matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '{' | '}' | '~' | '|' | '$' | '^' | '#')
}

/// Escapes one line of text. The result renders as this text anywhere but at the beginning of a line.
///
/// A backslash is put before every character that `CommonMark`, GitHub's dialect (links without brackets,
/// strike-through, tables, footnotes, formulas) or an emoji code could take for markup, and before no other:
/// hyphens, full stops, quotation marks and round brackets have no meaning inside a line.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + text.len() / 16);
    let mut rest = text;
    while let Some(index) = rest.find(is_watched) {
        let (plain, from) = rest.split_at_checked(index).unwrap_or((rest, ""));
        escaped.push_str(plain);
        let mut chars = from.chars();
        let Some(c) = chars.next() else { break };
        let after = chars.as_str();
        let before = text.get(..text.len() - from.len()).unwrap_or("");
        let is_markup = match c {
            '&' => begins_with_name(after.strip_prefix('#').unwrap_or(after), ';'),
            // Schemes (`https://`), and codes that GitHub shows as an emoji (`:tada:`).
            ':' => after.starts_with("//") || begins_with_name(after, ':'),
            '.' => ends_with(before, "www"),
            _ => is_always_markup(c),
        };
        match c {
            // No document can contain a zero byte.
            '\0' => escaped.push(char::REPLACEMENT_CHARACTER),
            _ if is_markup => escaped.extend(['\\', c]),
            _ => escaped.push(c),
        }
        if c == '@' && is_in_address(before, after) {
            escaped.push(WORD_JOINER);
        }
        rest = after;
    }
    escaped.push_str(rest);
    escaped
}

/// Whether a text begins with a name that is followed by this character.
fn begins_with_name(text: &str, end: char) -> bool {
    let name = text.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '+' | '-'));
    name.is_some_and(|length| {
        (1..=NAME_BYTES_MAX).contains(&length) && text.get(length..).is_some_and(|rest| rest.starts_with(end))
    })
}

/// Whether a text ends with this ASCII name, ignoring case.
fn ends_with(text: &str, name: &str) -> bool {
    let start = text.len().saturating_sub(name.len());
    text.get(start..).is_some_and(|end| end.eq_ignore_ascii_case(name))
}

/// Whether an at sign between these texts may be part of an email address.
///
/// After the scheme of an address it needs no name.
fn is_in_address(before: &str, after: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-' | '_');
    let is_named = before.ends_with(is_part) || ends_with(before, "mailto:") || ends_with(before, "xmpp:");
    is_named && after.starts_with(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_changes_only_possible_markup() {
        for (text, expect) in [
            (
                "Plain words, (really) - at 10:30. \"Yes!\" > 3 + 4 = 7",
                "Plain words, (really) - at 10:30. \"Yes!\" > 3 + 4 = 7",
            ),
            ("<b>*x*</b>", "\\<b>\\*x\\*\\</b>"),
            ("[x](javascript:y)", "\\[x\\](javascript:y)"),
            ("AT&T &amp; &#39; &", "AT&T \\&amp; \\&\\#39; &"),
            ("https://a.b www.a.b WWW.a", "https\\://a.b www\\.a.b WWW\\.a"),
            (":tada: 1:2", "\\:tada: 1:2"),
            ("me@a.b @me a @b", "me@\u{2060}a.b @me a @b"),
            ("Mailto:@a.b at:@b", "Mailto:@\u{2060}a.b at:@b"),
            ("C:\\x\0", "C:\\\\x\u{FFFD}"),
        ] {
            assert_eq!(escape(text), expect, "{text:?}");
        }
    }
}
