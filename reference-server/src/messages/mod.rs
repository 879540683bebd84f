//! The text of the pages: one file of messages for each language.
//!
//! A message is a sentence with named placeholders in braces. A message that a language does not have is shown in
//! English.

use std::{
    collections::{BTreeSet, HashMap},
    fmt::{self, Write as _},
    path::{Path, PathBuf},
};

use maud::{Markup, html};
use transcript_core::accounts::NumberFormat;

/// The languages of the pages; the first one is the default.
const SOURCES: [&str; 6] = [
    include_str!("en.toml"),
    include_str!("de.toml"),
    include_str!("es.toml"),
    include_str!("fr.toml"),
    include_str!("ja.toml"),
    include_str!("ar.toml"),
];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct PageLanguage {
    /// Index in the languages of the site.
    pub(crate) index: usize,
    /// Whether the address names the language. Then the links of the page name it, too.
    pub(crate) is_explicit: bool,
}

impl fmt::Display for PageLanguage {
    /// Writes a short text that differs for each language.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.index, if self.is_explicit { "!" } else { "" })
    }
}

/// The messages of one language.
#[derive(Clone, Debug)]
pub(crate) struct Messages {
    /// Language tag.
    pub(crate) tag: String,
    /// Name of the language, in itself.
    pub(crate) name: String,
    /// Whether the language is written from right to left.
    pub(crate) is_right_to_left: bool,
    texts: HashMap<String, String>,
}

impl Messages {
    /// The languages that are part of the program. English is the first.
    pub(crate) fn built_in() -> Vec<Self> {
        // A test reads each file.
        SOURCES.iter().filter_map(|source| Self::parse(source).ok()).collect()
    }

    /// Reads a file of messages.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the file.
    pub(crate) fn parse(source: &str) -> Result<Self, String> {
        let table: toml::Table =
            source.parse().map_err(|error: toml::de::Error| error.message().to_owned())?;
        let mut texts = HashMap::new();
        for (section, messages) in &table {
            let messages = messages.as_table().ok_or_else(|| format!("{section} is not a section"))?;
            for (name, text) in messages {
                let text = text.as_str().ok_or_else(|| format!("{section}.{name} is not text"))?;
                texts.insert(format!("{section}.{name}"), text.to_owned());
            }
        }
        let mut take = |name: &str| {
            texts.remove(&format!("language.{name}")).ok_or_else(|| format!("language.{name} is missing"))
        };
        let (tag, name, direction) = (take("tag")?, take("name")?, take("direction")?);
        Ok(Self { tag, name, is_right_to_left: direction == "rtl", texts })
    }

    /// Reads the languages in a folder of message files, each checked against the English messages.
    ///
    /// # Errors
    /// A sentence that says what is wrong, with the name of the file.
    pub(crate) fn read_folder(folder: &Path) -> Result<Vec<Self>, String> {
        let english = Self::built_in().into_iter().next();
        let entries = folder.read_dir().map_err(|error| format!("it cannot be read: {error}"))?;
        let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
        paths.sort();
        let read = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let in_file = |why: String| format!("{name}: {why}");
            let text = std::fs::read_to_string(path).map_err(|error| in_file(error.to_string()))?;
            let messages = Self::parse(&text).map_err(in_file)?;
            english.as_ref().map_or(Ok(()), |english| messages.check(english)).map_err(in_file)?;
            Ok(messages)
        };
        paths.iter().map(read).collect()
    }

    /// Checks that every message is known and has the placeholders of the English one.
    fn check(&self, english: &Self) -> Result<(), String> {
        for (key, text) in &self.texts {
            let expected = english.find(key).ok_or_else(|| format!("{key} is no message"))?;
            if placeholders(text) != placeholders(expected) {
                return Err(format!("{key} has other placeholders than in English: {expected:?}"));
            }
        }
        Ok(())
    }

    /// Adds languages, and replaces messages of a known language.
    pub(crate) fn extend(languages: &mut Vec<Self>, others: &[Self]) {
        for other in others {
            match languages.iter_mut().find(|known| known.tag.eq_ignore_ascii_case(&other.tag)) {
                Some(known) => known.texts.extend(other.texts.clone()),
                None => languages.push(other.clone()),
            }
        }
    }

    /// The text of a message; `None` if this language does not have it.
    pub(crate) fn find(&self, key: &str) -> Option<&str> {
        self.texts.get(key).map(String::as_str)
    }

    /// Names of all messages.
    #[cfg(test)]
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.texts.keys().map(String::as_str)
    }
}

/// How a language writes numbers and amounts of money. `find` returns a message.
pub(crate) fn number_format(find: impl Fn(&'static str) -> String) -> NumberFormat {
    let format = NumberFormat {
        thousands: find("frame.thousands"),
        decimal: find("frame.decimal"),
        dollars: find("frame.dollars"),
    };
    // A file of the operator may have one separator, and English the other.
    match format.decimal.is_empty() || format.decimal == format.thousands {
        true => NumberFormat::default(),
        false => format,
    }
}

#[derive(Debug, PartialEq, Eq)]
enum MessagePart<'a> {
    Text(&'a str),
    Placeholder(&'a str),
}

/// Splits a message at its placeholders. A brace without its counterpart is text.
fn parts(message: &str) -> Vec<MessagePart<'_>> {
    let mut parts = Vec::new();
    let mut rest = message;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, tail)) = after.split_once('}') else { break };
        parts.extend([MessagePart::Text(before), MessagePart::Placeholder(name)]);
        rest = tail;
    }
    parts.push(MessagePart::Text(rest));
    parts
}

fn placeholders(message: &str) -> BTreeSet<&str> {
    let name = |part| match part {
        MessagePart::Placeholder(name) => Some(name),
        MessagePart::Text(_) => None,
    };
    parts(message).into_iter().filter_map(name).collect()
}

/// Replaces the placeholders of a message by text. One without a value stays as it is.
pub(crate) fn fill(message: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(message.len());
    for part in parts(message) {
        match part {
            MessagePart::Text(text) => filled.push_str(text),
            MessagePart::Placeholder(name) => match values.iter().find(|(known, _)| *known == name) {
                Some((_, value)) => filled.push_str(value),
                // Writing to a string does not fail.
                None => drop(write!(filled, "{{{name}}}")),
            },
        }
    }
    filled
}

/// Replaces the placeholders of a message by markup. The text is escaped.
pub(crate) fn fill_markup(message: &str, values: &[(&str, Markup)]) -> Markup {
    let value = |name: &str| values.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
    html! {
        @for part in parts(message) {
            @match part {
                MessagePart::Text(text) => (text),
                MessagePart::Placeholder(name) => @match value(name) {
                    Some(value) => (value),
                    None => { "{" (name) "}" }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
