//! Fonts of the system: which letters each of them has.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use skrifa::{FontRef, MetadataProvider as _, Tag, attribute::Style, string::StringId};

/// Folders with fonts on Linux, macOS and Windows.
const FOLDERS: [&str; 5] = [
    "/usr/share/fonts",
    "/usr/local/share/fonts",
    "/Library/Fonts",
    "/System/Library/Fonts",
    "C:\\Windows\\Fonts",
];
/// Nested folders that are read.
const DEPTH_MAX: usize = 8;
/// Files that are read.
const FILES_MAX: usize = 4_000;
/// Largest file that is read, in bytes: the largest of Noto has 30 MB.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Parts of file names of variants. Their letters are those of the regular file, which is read instead.
const VARIANTS: [&str; 10] =
    ["bold", "black", "condensed", "extra", "italic", "light", "medium", "mono", "oblique", "thin"];
/// Tables of pictures in place of outlines.
const PICTURES: [&[u8; 4]; 4] = [b"CBDT", b"COLR", b"SVG ", b"sbix"];

#[derive(Debug)]
pub(super) struct SystemFont {
    pub(super) path: PathBuf,
    /// Index in a file of several fonts.
    pub(super) index: u32,
    name: String,
    /// First and last code points of the letters, in order.
    letters: Vec<(u32, u32)>,
}

impl SystemFont {
    pub(super) fn has_letter(&self, letter: char) -> bool {
        let letter = u32::from(letter);
        let after = self.letters.partition_point(|(first, _)| *first <= letter);
        after.checked_sub(1).and_then(|at| self.letters.get(at)).is_some_and(|(_, last)| letter <= *last)
    }

    /// Fitness for a language: fonts with its forms of Chinese characters, then those without serifs.
    ///
    /// The names of fonts with such forms contain a code: `Noto Sans CJK JP`.
    pub(super) fn fitness(&self, language: Option<&str>) -> (bool, bool) {
        let code = match language.unwrap_or_default() {
            tag if tag.starts_with("ja") => "JP",
            tag if tag.starts_with("ko") => "KR",
            tag if ["zh-Hant", "zh-TW", "zh-HK", "yue"].iter().any(|start| tag.starts_with(start)) => "TC",
            _ => "SC",
        };
        (self.name.split(' ').any(|word| word == code), !self.name.contains("Serif"))
    }
}

/// The fonts of this machine, sorted by path. The first call reads their files.
pub(super) fn system_fonts() -> &'static [SystemFont] {
    static FONTS: OnceLock<Vec<SystemFont>> = OnceLock::new();
    FONTS.get_or_init(|| {
        let mut files = Vec::new();
        for folder in FOLDERS {
            list(Path::new(folder), 0, &mut files);
        }
        files.sort();
        files.iter().flat_map(|file| read(file)).collect()
    })
}

/// Adds the font files of a folder. Links to folders are not followed.
fn list(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if depth < DEPTH_MAX {
                list(&path, depth + 1, files);
            }
        } else if files.len() < FILES_MAX && is_regular_font(&path) {
            files.push(path);
        }
    }
}

fn is_regular_font(path: &Path) -> bool {
    let part = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().to_lowercase();
    let (name, ending) = (part(path.file_stem()), part(path.extension()));
    ["ttf", "otf", "ttc", "otc"].contains(&ending.as_str())
        && !VARIANTS.iter().any(|variant| name.contains(variant))
}

/// The fonts of a file; none if it is damaged.
fn read(path: &Path) -> Vec<SystemFont> {
    let is_small = fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= FILE_BYTES_MAX);
    let bytes = if is_small { fs::read(path).unwrap_or_default() } else { Vec::new() };
    let fonts = FontRef::fonts(&bytes).zip(0..).filter_map(|(font, index)| Some((font.ok()?, index)));
    let name = |font: &FontRef<'_>| {
        font.localized_strings(StringId::FAMILY_NAME).english_or_first().map(|name| name.to_string())
    };
    let named = fonts.filter(|(font, _)| is_usable(font)).map(|(font, index)| SystemFont {
        path: path.to_owned(),
        index,
        name: name(&font).unwrap_or_default(),
        letters: letters(&font),
    });
    named.collect()
}

/// Whether a font has upright outlines.
fn is_usable(font: &FontRef<'_>) -> bool {
    let has_pictures = PICTURES.iter().any(|table| font.table_data(Tag::new(table)).is_some());
    !has_pictures && font.outline_glyphs().format().is_some() && font.attributes().style == Style::Normal
}

fn letters(font: &FontRef<'_>) -> Vec<(u32, u32)> {
    let mut codes: Vec<u32> = font.charmap().mappings().map(|(code, _)| code).collect();
    codes.sort_unstable();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for code in codes {
        match ranges.last_mut() {
            Some((_, last)) if code <= last.saturating_add(1) => *last = code,
            _ => ranges.push((code, code)),
        }
    }
    ranges
}
