//! Titles of posts without one: their first words. No I/O.

/// Maximum length of a title in characters.
const TITLE_MAX: usize = 72;

/// The first words of a text, without the short links that X inserts for media and URLs.
pub(crate) fn title(text: &str) -> Option<String> {
    let is_link = |word: &&str| word.starts_with("https://t.co/") || word.starts_with("http://t.co/");
    let mut title = String::new();
    for word in text.split_whitespace().filter(|word| !is_link(word)) {
        let length = title.chars().count() + word.chars().count();
        if !title.is_empty() && length >= TITLE_MAX {
            title.push('…');
            break;
        }
        if !title.is_empty() {
            title.push(' ');
        }
        title.extend(word.chars().take(TITLE_MAX));
    }
    (!title.is_empty()).then_some(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn title_has_first_words_without_short_links() {
        assert_eq!(title("a  b\nhttps://t.co/x c").as_deref(), Some("a b c"));
        assert_eq!(title("https://t.co/x"), None);
        let long = title(&"word ".repeat(50)).unwrap();
        assert!(long.ends_with("word…") && long.chars().count() <= TITLE_MAX + 1, "{long}");
        assert_eq!(title(&"ö".repeat(500)).unwrap().chars().count(), TITLE_MAX);
    }
}
