//! Names of the files: a template, filled with what is known of a video.
//!
//! A name is valid on Linux, macOS and Windows, and no title leads out of the folder.

use std::path::PathBuf;

use transcript_core::{archive::StoredTranscript, text::one_line, transcript::Transcript};

use super::super::{CommandError, terminal::is_hidden};

/// Longest value in a name, in bytes.
const VALUE_BYTES_MAX: usize = 96;
/// Longest part of a path without suffix and extension, in bytes: systems permit 255.
const PART_BYTES_MAX: usize = 200;
/// Characters that Windows does not permit, or that separate folders.
const FORBIDDEN: [char; 9] = ['<', '>', ':', '"', '/', '\\', '|', '?', '*'];
/// Names of devices on Windows, with any extension.
const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];
/// Devices on Windows that a digit follows.
const NUMBERED_DEVICES: [&str; 2] = ["COM", "LPT"];

/// Template of file names: folders, then the name, without extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NameTemplate(Vec<Vec<NamePart>>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum NamePart {
    Text(String),
    Placeholder(Placeholder),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placeholder {
    Id,
    Title,
    Channel,
    Date,
    Language,
    Index,
    Platform,
}

const PLACEHOLDERS: [(&str, Placeholder); 7] = [
    ("id", Placeholder::Id),
    ("title", Placeholder::Title),
    ("channel", Placeholder::Channel),
    ("date", Placeholder::Date),
    ("language", Placeholder::Language),
    ("index", Placeholder::Index),
    ("platform", Placeholder::Platform),
];

impl NameTemplate {
    /// Parses a template. An extension in it, that of the format, is not repeated.
    pub(super) fn parse(text: &str, extension: &str) -> Result<Self, CommandError> {
        let wrong = |why: String| CommandError::Wrong(format!("--name {text}: {why}"));
        let stem = text.strip_suffix(&format!(".{extension}")).unwrap_or(text);
        if stem.contains('\\') {
            return Err(wrong("use / between folders".to_owned()));
        }
        let mut parts = Vec::new();
        for part in stem.split('/') {
            if part.is_empty() || part.chars().all(|c| c == '.') {
                return Err(wrong("it names no file below the folder of --to".to_owned()));
            }
            parts.push(parse_part(part).map_err(wrong)?);
        }
        Ok(Self(parts))
    }

    /// Whether videos have different names, except those of different platforms.
    pub(super) fn has_id(&self) -> bool {
        self.0.last().is_some_and(|name| name.contains(&NamePart::Placeholder(Placeholder::Id)))
    }

    /// The path of a transcript below the folder, without extension. `index` is the position in its list, from 1.
    pub(super) fn fill(&self, stored: &StoredTranscript, index: usize) -> PathBuf {
        self.0.iter().map(|part| safe_part(&fill_part(part, stored, index))).collect()
    }
}

fn parse_part(text: &str) -> Result<Vec<NamePart>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').ok_or("a { has no }")?;
        let found = PLACEHOLDERS.iter().find(|(known, _)| *known == name);
        let (_, placeholder) = found.ok_or_else(|| {
            let known: Vec<_> = PLACEHOLDERS.iter().map(|(name, _)| format!("{{{name}}}")).collect();
            format!("there is no {{{name}}}; placeholders are {}", known.join(", "))
        })?;
        if !before.is_empty() {
            parts.push(NamePart::Text(before.to_owned()));
        }
        parts.push(NamePart::Placeholder(*placeholder));
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(NamePart::Text(rest.to_owned()));
    }
    Ok(parts)
}

fn fill_part(parts: &[NamePart], stored: &StoredTranscript, index: usize) -> String {
    let Transcript { video, title, author, track, .. } = &*stored.transcript;
    let published = || stored.details.metadata.published_at.map(|time| time.to_string());
    parts
        .iter()
        .map(|part| match part {
            NamePart::Text(text) => text.clone(),
            NamePart::Placeholder(Placeholder::Id) => video.id().to_owned(),
            NamePart::Placeholder(Placeholder::Title) => value(title.as_deref().unwrap_or(video.id())),
            NamePart::Placeholder(Placeholder::Channel) => value(author.as_deref().unwrap_or("unknown")),
            NamePart::Placeholder(Placeholder::Date) => {
                published().map_or_else(|| "undated".to_owned(), |time| time.chars().take(10).collect())
            }
            NamePart::Placeholder(Placeholder::Language) => value(track.language.as_str()),
            NamePart::Placeholder(Placeholder::Index) => format!("{index:04}"),
            NamePart::Placeholder(Placeholder::Platform) => video.platform().as_str().to_owned(),
        })
        .collect()
}

/// A text from outside as part of a name, with single spaces.
fn value(text: &str) -> String {
    let text: String = text.chars().map(|c| if is_hidden(c) { ' ' } else { c }).collect();
    let text = one_line(&text);
    text[..text.floor_char_boundary(VALUE_BYTES_MAX)].trim_end().to_owned()
}

/// A part of a path that every system permits.
fn safe_part(text: &str) -> String {
    let text = &text[..text.floor_char_boundary(PART_BYTES_MAX)];
    let is_forbidden = |c: char| FORBIDDEN.contains(&c) || is_hidden(c);
    let safe: String = text.chars().map(|c| if is_forbidden(c) { '_' } else { c }).collect();
    // Windows removes dots and spaces at the end; a dot at the start hides a file.
    let safe = safe.trim().trim_end_matches(['.', ' ']);
    match safe.strip_prefix('.') {
        Some(rest) => format!("_{rest}"),
        None if safe.is_empty() || is_device(safe) => format!("_{safe}"),
        None => safe.to_owned(),
    }
}

fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).trim_end().to_ascii_uppercase();
    let is_numbered = |device: &str| {
        let mut rest = stem.strip_prefix(device).into_iter().flat_map(str::chars);
        rest.next().is_some_and(|c| c.is_ascii_digit() || "¹²³".contains(c)) && rest.next().is_none()
    };
    DEVICES.contains(&stem.as_str()) || NUMBERED_DEVICES.into_iter().any(is_numbered)
}

#[cfg(test)]
mod tests {
    use std::path::{Component, Path};

    use proptest::prelude::*;
    use transcript_core::{
        service::unarchived,
        transcript::{LanguageTag, TrackInfo, TrackKind},
        video::{Platform, VideoId},
    };

    use super::*;

    fn stored(title: Option<&str>, author: Option<&str>) -> StoredTranscript {
        unarchived(Transcript {
            video: VideoId::new(Platform::YouTube, "dQw4w9WgXcQ").unwrap(),
            title: title.map(str::to_owned),
            author: author.map(str::to_owned),
            duration_ms: None,
            track: TrackInfo::new(LanguageTag::english(), TrackKind::Human),
            source: "youtube-captions".to_owned(),
            segments: Vec::new(),
        })
    }

    fn fill(template: &str, title: &str) -> String {
        let template = NameTemplate::parse(template, "txt").unwrap();
        template.fill(&stored(Some(title), None), 7).to_str().unwrap().to_owned()
    }

    #[test]
    fn name_is_valid_on_every_system() {
        for (template, title, expect) in [
            ("{title} [{id}].{language}", "A talk", "A talk [dQw4w9WgXcQ].en"),
            ("{title}", "AC/DC: what? <\"live\">|*\\", "AC_DC_ what_ __live_____"),
            ("{title}", "../../etc/passwd", "_._.._etc_passwd"),
            ("{title}", "..", "_"),
            ("{title}", "", "_"),
            ("{title}/{id}", "..", "_/dQw4w9WgXcQ"),
            ("{title}", "a\u{1b}[2J\r\n b\u{202e}c", "a [2J b c"),
            ("{title}", "The end... ", "The end"),
            ("{title}", "con", "_con"),
            ("{title}.{language}", "LPT1", "_LPT1.en"),
            ("{title}", "COM10", "COM10"),
            ("{index} {channel} {date} {platform}.txt", "x", "0007 unknown undated video_site"),
            ("a{title}{language}b", "-", "a-enb"),
        ] {
            assert_eq!(fill(template, title), expect, "{template} {title:?}");
        }
        let template = NameTemplate::parse("{title}", "txt").unwrap();
        assert_eq!(template.fill(&stored(None, None), 1), Path::new("dQw4w9WgXcQ"));
    }

    #[test]
    fn template_leads_nowhere_else() {
        for (template, why) in [
            ("/etc/{id}", "below the folder"),
            ("../{id}", "below the folder"),
            ("a/../{id}", "below the folder"),
            ("{id}/", "below the folder"),
            ("", "below the folder"),
            ("a\\{id}", "use /"),
            ("{uploader}", "placeholders are {id}, {title}"),
            ("{id", "has no }"),
        ] {
            let error = NameTemplate::parse(template, "txt").unwrap_err().to_string();
            assert!(error.contains(why), "{template}: {error}");
        }
        assert!(NameTemplate::parse("{id}", "txt").unwrap().has_id());
        assert!(!NameTemplate::parse("{id}/{title}", "txt").unwrap().has_id());
    }

    proptest! {
        #[test]
        fn any_title_is_one_bounded_part(title in any::<String>(), author in any::<String>()) {
            let template = NameTemplate::parse("{channel} {title}/{title}{channel}{title}", "txt").unwrap();
            let path = template.fill(&stored(Some(&title), Some(&author)), 1);
            let parts: Vec<_> = path.components().collect();
            prop_assert_eq!(parts.len(), 2);
            for part in parts {
                let Component::Normal(name) = part else { return Err(TestCaseError::fail(format!("{part:?}"))) };
                let name = name.to_str().unwrap();
                prop_assert!(name.len() <= PART_BYTES_MAX + 1);
                prop_assert!(!name.contains(FORBIDDEN) && !name.contains(char::is_control));
                prop_assert!(!name.ends_with(['.', ' ']) && !name.starts_with(['.', ' ']));
            }
        }
    }
}
