//! Quotation marks of many scripts: which mark closes which.

use super::normalize::is_single_mark;

/// The marks that may close an opening mark, likeliest first; `None` if the character opens nothing.
pub(super) fn closing_marks(open: char) -> Option<&'static [char]> {
    Some(match open {
        '"' => &['"', '”', '“'],
        '“' => &['”', '"', '“'],
        '”' => &['”', '"'],
        '„' => &['“', '”', '"'],
        '«' => &['»'],
        '»' => &['«', '»'],
        '‹' => &['›'],
        '›' => &['‹'],
        '「' => &['」'],
        '『' => &['』'],
        '《' => &['》'],
        '〈' => &['〉'],
        '\'' | '‘' | '’' => &['\'', '’'],
        '‚' => &['‘', '’', '\''],
        '」' | '』' | '》' | '〉' => &[],
        _ => return None,
    })
}

/// Whether a character is a quotation mark other than an apostrophe.
pub(super) fn is_quotation_mark(c: char) -> bool {
    !is_single_mark(c) && closing_marks(c).is_some()
}
