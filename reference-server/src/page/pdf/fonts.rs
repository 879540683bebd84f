//! Fonts of a PDF file: those of the program, and those of the system for the other letters.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Read as _,
    sync::{Arc, LazyLock},
};

use flate2::read::ZlibDecoder;
use icu_properties::{CodePointSetData, props::DefaultIgnorableCodePoint};
use krilla::text::Font;
use parley::{
    FontContext, FontFamily, FontFamilyName, Run,
    fontique::{Blob, Collection, CollectionOptions, SourceCache},
};
use skrifa::{FontRef, MetadataProvider as _};
use unicode_segmentation::UnicodeSegmentation as _;

use super::{
    PdfError,
    system::{SystemFont, system_fonts},
};

/// Fonts of the system in one file at most; each is in memory while the file is written.
const SYSTEM_FONTS_MAX: usize = 16;
/// Characters of a letter with its marks at most, because parley counts its bytes in a byte. Further ones follow it.
const LETTER_CHARS_MAX: usize = 16;
const ZERO_WIDTH_SPACE: char = '\u{200b}';
const ZERO_WIDTH_JOINER: char = '\u{200d}';
/// Letters without a font that an error names.
const NAMED_LETTERS: usize = 10;

/// The fonts of the program: letters, and emoji. Compressed they take 0.7 MB of it in place of 1.2 MB.
static PROGRAM_FONTS: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| {
    let letters: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/letters.zlib"));
    let emoji: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/emoji.zlib"));
    [letters, emoji].map(decompress)
});

/// The fonts of one file.
pub(super) struct FontSet {
    pub(super) context: FontContext,
    pub(super) family: FontFamily<'static>,
    /// Symbols without a font, which are written as their code point.
    symbols: BTreeSet<char>,
    /// Letters that only the font of emoji has.
    emoji: BTreeSet<char>,
    /// The fonts as the writer reads them.
    written: BTreeMap<(u64, u32), Option<Font>>,
}

impl FontSet {
    /// Selects fonts that have all these letters.
    ///
    /// # Errors
    /// No font has one of the letters.
    pub(super) fn select(letters: &BTreeSet<char>, language: Option<&str>) -> Result<Self, PdfError> {
        let options = CollectionOptions { shared: false, system_fonts: false };
        let collection = Collection::new(options);
        let mut context = FontContext { collection, source_cache: SourceCache::default() };
        let [words, emoji] = PROGRAM_FONTS.each_ref().map(Vec::as_slice);
        let mut missing: BTreeSet<char> = letters.iter().copied().filter(|c| needs_glyph(*c)).collect();
        let all = missing.len();
        take_letters(&mut missing, words);
        let emoji_letters = take_letters(&mut missing, emoji);
        let mut families = Vec::new();
        for font in [words, emoji] {
            families.extend(register(&mut context.collection, Blob::new(Arc::new(font)), 0));
        }
        let is_mostly_other = missing.len() * 2 > all;
        let mut others = Vec::new();
        while others.len() < SYSTEM_FONTS_MAX
            && let Some(font) = best_font(&missing, language)
        {
            // A file that is gone would be selected again.
            let Ok(bytes) = fs::read(&font.path) else { break };
            others.extend(register(&mut context.collection, Blob::new(Arc::new(bytes)), font.index));
            missing.retain(|letter| !font.has_letter(*letter));
        }
        let words: Vec<char> = missing.iter().copied().filter(|c| c.is_alphanumeric()).collect();
        if !words.is_empty() {
            return Err(PdfError::NoFont { letters: words.iter().take(NAMED_LETTERS).collect() });
        }
        // Signs that both fonts have, such as quotation marks, are to look like the letters around them.
        let at = if is_mostly_other { 0 } else { families.len() };
        families.splice(at..at, others);
        let families: Vec<_> = families.into_iter().map(|name| FontFamilyName::Named(name.into())).collect();
        let family = FontFamily::List(families.into());
        Ok(Self { context, family, symbols: missing, emoji: emoji_letters, written: BTreeMap::new() })
    }

    /// The text, with the code points of symbols that no font has: `[U+1F9FF]`. Emoji lose their colour of skin.
    pub(super) fn spell_symbols(&self, text: &str) -> String {
        let mut spelled = String::with_capacity(text.len());
        for letter in text.graphemes(true) {
            let mut rest = letter;
            while let Some((end, _)) = rest.char_indices().nth(LETTER_CHARS_MAX) {
                let (part, after) = rest.split_at(end);
                self.spell(part, &mut spelled);
                spelled.push(ZERO_WIDTH_SPACE);
                rest = after;
            }
            self.spell(rest, &mut spelled);
        }
        spelled
    }

    /// Appends a letter with its marks.
    fn spell(&self, letter: &str, spelled: &mut String) {
        // parley takes the font that has the most of a letter, and of equals the first, which lacks the emoji. So an
        // emoji has no mark, and no joiner that joins nothing.
        let is_emoji = |c: &char| self.emoji.contains(c);
        let has_emoji = letter.starts_with(|c| is_emoji(&c));
        let mut chars = letter.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                // Variants of a form and the regions of flags: with them parley takes a font that lacks the emoji.
                '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e0fff}' => {}
                '\u{1f3fb}'..='\u{1f3ff}' if self.symbols.contains(&c) => {}
                ZERO_WIDTH_JOINER if has_emoji && !chars.peek().is_some_and(is_emoji) => {}
                c if self.symbols.contains(&c) => spelled.push_str(&format!("[U+{:04X}]", u32::from(c))),
                c => {
                    if has_emoji && c != ZERO_WIDTH_JOINER && !is_emoji(&c) {
                        spelled.push(ZERO_WIDTH_SPACE);
                    }
                    spelled.push(c);
                }
            }
        }
    }

    /// The font of a run for the writer; `None` if it cannot be read.
    pub(super) fn written(&mut self, run: &Run<'_, bool>) -> Option<Font> {
        let font = run.font();
        let open = || {
            let axes = run.synthesis();
            let axes: Vec<_> = axes
                .variation_settings()
                .iter()
                .map(|(tag, value)| (krilla::text::Tag::new(&tag.to_be_bytes()), *value))
                .collect();
            Font::new_variable(font.data.clone().into_raw_parts().0.into(), font.index, &axes)
        };
        self.written.entry((font.data.id(), font.index)).or_insert_with(open).clone()
    }
}

/// The font of the system that has the most of these letters; `None` if none has any.
fn best_font(missing: &BTreeSet<char>, language: Option<&str>) -> Option<&'static SystemFont> {
    if missing.is_empty() {
        return None;
    }
    let count = |font: &&SystemFont| missing.iter().filter(|letter| font.has_letter(**letter)).count();
    let rated = system_fonts().iter().map(|font| (count(&font), font.fitness(language), font));
    // The first of equals: the fonts are sorted.
    let best = rated.rev().max_by_key(|(count, fitness, _)| (*count, *fitness));
    best.filter(|(count, ..)| *count > 0).map(|(.., font)| font)
}

/// Decompresses a font of the program.
fn decompress(compressed: &[u8]) -> Vec<u8> {
    let mut font = Vec::new();
    if let Err(error) = ZlibDecoder::new(compressed).read_to_end(&mut font) {
        tracing::error!(%error, "font of the program not decompressed");
    }
    font
}

/// Adds a font, and returns its family.
fn register(collection: &mut Collection, data: Blob<u8>, index: u32) -> Option<String> {
    let families = collection.register_fonts(data, None);
    let has_index = |fonts: &[parley::fontique::FontInfo]| fonts.iter().any(|font| font.index() == index);
    let (family, _) = families.iter().find(|(_, fonts)| has_index(fonts))?;
    collection.family_name(*family).map(str::to_owned)
}

/// Removes the letters of a font, and returns them.
fn take_letters(letters: &mut BTreeSet<char>, font: &[u8]) -> BTreeSet<char> {
    let Ok(font) = FontRef::new(font) else { return BTreeSet::new() };
    let charmap = font.charmap();
    letters.extract_if(.., |letter| charmap.map(*letter).is_some()).collect()
}

/// Whether a character is visible, so that a font must have it.
fn needs_glyph(c: char) -> bool {
    !CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c) && !c.is_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_fonts_are_those_of_packages() {
        let packaged = [dejavu::sans::regular(), epaint_default_fonts::NOTO_EMOJI_REGULAR];
        for (font, expected) in PROGRAM_FONTS.iter().zip(packaged) {
            assert!(font == expected, "{} bytes instead of {}", font.len(), expected.len());
        }
    }
}
