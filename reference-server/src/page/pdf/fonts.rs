//! Fonts of a PDF file: those of the program, and those of the system for the other letters.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::Arc,
};

use krilla::text::Font;
use parley::{
    FontContext, FontFamily, FontFamilyName, Run,
    fontique::{Blob, Collection, CollectionOptions, SourceCache},
};
use skrifa::{FontRef, MetadataProvider as _};

use super::{
    PdfError,
    system::{SystemFont, system_fonts},
};

/// Fonts of the system in one file at most; each is in memory while the file is written.
const SYSTEM_FONTS_MAX: usize = 16;
/// Marks on one letter at most, because parley counts the parts of a letter in a byte. Further ones follow it.
const MARKS_MAX: usize = 16;
const ZERO_WIDTH_SPACE: char = '\u{200b}';
/// Letters without a font that an error names.
const NAMED_LETTERS: usize = 10;

/// The fonts of one file.
pub(super) struct FontSet {
    pub(super) context: FontContext,
    pub(super) family: FontFamily<'static>,
    /// Symbols without a font, which are written as their code point.
    symbols: BTreeSet<char>,
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
        let built_in = [dejavu::sans::regular(), epaint_default_fonts::NOTO_EMOJI_REGULAR];
        let mut missing: BTreeSet<char> = letters.iter().copied().filter(|c| needs_glyph(*c)).collect();
        let all = missing.len();
        missing.retain(|letter| !built_in.iter().any(|font| has_letter(font, *letter)));
        let mut families = Vec::new();
        for font in built_in {
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
        Ok(Self { context, family, symbols: missing, written: BTreeMap::new() })
    }

    /// The text, with the code points of symbols that no font has: `[U+1F9FF]`. Emoji lose their colour of skin.
    pub(super) fn spell_symbols(&self, text: String) -> String {
        let mut spelled = String::with_capacity(text.len());
        let mut marks = 0;
        for c in text.chars() {
            marks = if is_mark(c) { marks + 1 } else { 0 };
            if marks > MARKS_MAX {
                spelled.push(ZERO_WIDTH_SPACE);
                marks = 1;
            }
            match c {
                '\u{1f3fb}'..='\u{1f3ff}' if self.symbols.contains(&c) => {}
                c if self.symbols.contains(&c) => spelled.push_str(&format!("[U+{:04X}]", u32::from(c))),
                c => spelled.push(c),
            }
        }
        spelled
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

/// Adds a font, and returns its family.
fn register(collection: &mut Collection, data: Blob<u8>, index: u32) -> Option<String> {
    let families = collection.register_fonts(data, None);
    let has_index = |fonts: &[parley::fontique::FontInfo]| fonts.iter().any(|font| font.index() == index);
    let (family, _) = families.iter().find(|(_, fonts)| has_index(fonts))?;
    collection.family_name(*family).map(str::to_owned)
}

fn has_letter(font: &[u8], letter: char) -> bool {
    FontRef::new(font).is_ok_and(|font| font.charmap().map(letter).is_some())
}

/// Whether a character is written on the one before it. The standard library escapes such characters.
fn is_mark(c: char) -> bool {
    !c.is_ascii() && c.escape_debug().len() > 1
}

/// Whether a character is visible, so that a font must have it.
fn needs_glyph(c: char) -> bool {
    let is_ignorable = matches!(u32::from(c),
        0xAD | 0x34F | 0x61C | 0x115F..=0x1160 | 0x17B4..=0x17B5 | 0x180B..=0x180F | 0x200B..=0x200F
        | 0x2028..=0x202E | 0x2060..=0x206F | 0x3164 | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0 | 0xFFF0..=0xFFF8
        | 0x1_D173..=0x1_D17A | 0xE_0000..=0xE_0FFF);
    !is_ignorable && !c.is_whitespace()
}
