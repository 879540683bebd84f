//! Links of the command line and of a file of links.

use std::{io, path::Path};

use transcript_core::video::{LinkError, LinkErrorKind, VideoLink, VideoList};

use super::super::{CommandError, bounded_file, get_arguments::GetArgs};

/// Maximum size of a file of links: more than a hundred thousand.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A link, and where it was given.
#[derive(Debug)]
pub(super) struct GivenLink {
    /// The link, behind the file and the line if it is from a file.
    pub(super) label: String,
    /// What it names.
    pub(super) target: Result<LinkTarget, LinkError>,
}

/// What a link names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LinkTarget {
    /// A video, or a short link to one.
    Video(VideoLink),
    /// A playlist, a channel, a search or a profile.
    List(VideoList),
}

impl LinkTarget {
    /// Parses a link. Of a link to a video in a playlist, the video counts.
    pub(super) fn parse(text: &str) -> Result<Self, LinkError> {
        let error = match VideoLink::parse(text) {
            Ok(link) => return Ok(Self::Video(link)),
            Err(error) => error,
        };
        match VideoList::parse(text) {
            Ok(list) => Ok(Self::List(list)),
            Err(list) => Err(match list.problem() {
                LinkErrorKind::PersonalList | LinkErrorKind::EndlessList => list,
                LinkErrorKind::UnlistedPlatform if error.problem() == LinkErrorKind::NotAVideo => list,
                _ => error,
            }),
        }
    }
}

/// Returns the links of the command line, then its search and the links of the file.
pub(super) fn read_links(args: &GetArgs) -> Result<Vec<GivenLink>, CommandError> {
    let given = |link: &String| GivenLink { label: link.clone(), target: LinkTarget::parse(link) };
    let mut links: Vec<_> = args.links().map(given).collect();
    if let Some(option) = links.iter().find(|link| link.label.starts_with('-') && link.target.is_err()) {
        let message = format!("{} is neither an option nor a link: see `verbatim get --help`", option.label);
        return Err(CommandError::Wrong(message));
    }
    if let Some(words) = &args.search {
        let list = VideoList::search(words).map_err(|error| match words.trim().is_empty() {
            true => CommandError::Wrong("--search needs words".to_owned()),
            false => CommandError::Wrong(error.to_string()),
        })?;
        let target = Ok(LinkTarget::List(list));
        links.push(GivenLink { label: format!("search for '{words}'"), target });
    }
    if let Some(file) = &args.from {
        let text = read(file).map_err(|error| unreadable(file, &error))?;
        links.extend(links_of(&text, &bounded_file::name(file)));
        if links.is_empty() {
            return Err(CommandError::Wrong(format!("{} has no links", bounded_file::name(file))));
        }
    }
    Ok(links)
}

fn links_of(text: &str, file: &str) -> Vec<GivenLink> {
    let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim).zip(1..);
    lines
        .filter(|(line, _)| !line.is_empty() && !line.starts_with('#'))
        .map(|(line, number): (&str, u64)| {
            let target = LinkTarget::parse(line);
            // A valid link is found in the file without its number.
            let label = match target {
                Ok(_) => line.to_owned(),
                Err(_) => format!("{file}:{number}: {line}"),
            };
            GivenLink { label, target }
        })
        .collect()
}

fn read(file: &Path) -> io::Result<String> {
    let bytes = bounded_file::read(file, FILE_BYTES_MAX)?;
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err(io::Error::other("it is in UTF-16: save it as UTF-8"));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn unreadable(file: &Path, error: &io::Error) -> CommandError {
    CommandError::Wrong(format!("{} cannot be read: {error}", bounded_file::name(file)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_names_video_or_list() {
        for (link, expect) in [
            ("https://www.youtube.com/watch?v=dQw4w9WgXcQ&list=PL0123456789abcdef", "video"),
            ("dQw4w9WgXcQ", "video"),
            ("https://vm.tiktok.com/ZMabcdef/", "video"),
            ("https://www.youtube.com/playlist?list=PL0123456789abcdef", "list"),
            ("PL0123456789abcdef", "list"),
            ("@name", "list"),
            ("@name/streams", "list"),
            ("https://www.youtube.com/@name/streams", "list"),
            ("https://www.youtube.com/results?search_query=tide+mills", "list"),
            ("https://www.tiktok.com/@rope.walk", "list"),
            ("https://www.tiktok.com/@rope.walk/live", "NotAVideo"),
            ("https://www.instagram.com/rope.walk/", "UnlistedPlatform"),
            ("https://x.com/rope_walk", "UnlistedPlatform"),
            ("https://x.com/rope_walk/status/0", "MalformedId"),
            ("https://www.youtube.com/playlist?list=WL", "PersonalList"),
            ("https://www.youtube.com/playlist?list=RDdQw4w9WgXcQ", "EndlessList"),
            ("https://example.org/", "UnknownHost"),
            ("", "Empty"),
        ] {
            let found = match LinkTarget::parse(link) {
                Ok(LinkTarget::Video(_)) => "video".to_owned(),
                Ok(LinkTarget::List(_)) => "list".to_owned(),
                Err(error) => format!("{:?}", error.problem()),
            };
            assert_eq!(found, expect, "{link}");
        }
    }

    #[test]
    fn file_lines_are_links_or_named_errors() {
        let text = "\u{feff}# course\r\n\r\n dQw4w9WgXcQ \r\nnothing\nPL0123456789abcdef";
        let links = links_of(text, "links.txt");
        let labels: Vec<_> = links.iter().map(|link| (link.label.as_str(), link.target.is_ok())).collect();
        let expect = [("dQw4w9WgXcQ", true), ("links.txt:4: nothing", false), ("PL0123456789abcdef", true)];
        assert_eq!(labels, expect);
    }
}
