//! Pages of a PDF file.

use std::{mem::take, ops::Range, sync::Arc};

use krilla::{
    Document,
    action::{Action, LinkAction},
    annotation::{Annotation, LinkAnnotation, Target},
    color::rgb,
    geom::{Point, Rect},
    metadata::Metadata,
    num::NormalizedF32,
    page::{Page, PageSettings},
    paint::Fill,
    surface::Surface,
    tagging::{Artifact, ArtifactType, ContentTag, Identifier, Node, SpanTag, Tag, TagGroup, TagTree},
    text::{Font, GlyphId, KrillaGlyph},
};
use parley::{
    Alignment, AlignmentOptions, Glyph, Layout, LayoutContext, Line, LineHeight, OverflowWrap, Run,
    StyleProperty,
};

use super::{Block, BlockKind, PdfError, fonts::FontSet};

/// Width and height of a page: A4, in points.
const PAGE: (f32, f32) = (595.0, 842.0);
/// Space around the text.
const MARGIN: f32 = 64.0;
/// Top of the page number.
const NUMBER_TOP: f32 = PAGE.1 - MARGIN / 2.0 - 8.0;
/// Height of a line in heights of its fonts.
const LINE_HEIGHT: f32 = 1.2;
/// The colour of links, as in the pages.
const LINK_COLOR: (u8, u8, u8) = (0x1f, 0x5c, 0x57);
/// Makes a paragraph run from right to left, whatever letter it begins with.
const RIGHT_TO_LEFT_MARK: &str = "\u{200f}";

/// Letters of one font and colour in a line.
struct PlacedRun {
    start: Point,
    font: Font,
    size: f32,
    is_link: bool,
    /// The area and target of a link.
    link: Option<(Rect, String)>,
    glyphs: Vec<KrillaGlyph>,
    text: Arc<str>,
    /// Index of its paragraph; none for the number of a page.
    paragraph: Option<usize>,
}

impl PlacedRun {
    /// Where its letters begin in the text.
    fn text_start(&self) -> usize {
        self.glyphs.iter().map(|glyph| glyph.text_range.start).min().unwrap_or_default()
    }
}

/// The paragraph of a line.
struct Paragraph {
    text: Arc<str>,
    layout: Layout<bool>,
    /// Target of the letters that are a link.
    target: Option<String>,
    /// Index among the paragraphs; none for the number of a page.
    index: Option<usize>,
}

/// Writes paragraphs to pages. Only the page that is being filled is in memory uncompressed.
pub(super) struct PdfWriter<'a> {
    fonts: &'a mut FontSet,
    shaper: LayoutContext<bool>,
    document: Document,
    is_right_to_left: bool,
    pages_max: usize,
    pages: usize,
    /// Position of the next line.
    y: f32,
    runs: Vec<PlacedRun>,
    /// The paragraphs with their content, for screen readers.
    paragraphs: Vec<TagGroup>,
}

impl<'a> PdfWriter<'a> {
    pub(super) fn new(fonts: &'a mut FontSet, is_right_to_left: bool, pages_max: usize) -> Self {
        Self {
            fonts,
            shaper: LayoutContext::new(),
            document: Document::new(),
            is_right_to_left,
            pages_max,
            pages: 0,
            y: MARGIN,
            runs: Vec::new(),
            paragraphs: Vec::new(),
        }
    }

    /// Appends a paragraph.
    ///
    /// # Errors
    /// The file has too many pages, or a font lacks a letter.
    pub(super) fn write(&mut self, block: Block) -> Result<(), PdfError> {
        self.y += if self.y > MARGIN { block.space } else { 0.0 };
        let tag = TagGroup::new(block.kind.tag());
        let paragraph =
            Paragraph { index: Some(self.paragraphs.len()), ..self.shape(block, Alignment::Start) };
        self.paragraphs.push(tag);
        for line in paragraph.layout.lines() {
            let height = line.metrics().line_height;
            if self.y + height > PAGE.1 - MARGIN {
                self.end_page()?;
            }
            self.place(&paragraph, &line, self.y)?;
            self.y += height;
        }
        Ok(())
    }

    /// Returns the file.
    ///
    /// # Errors
    /// As for [`PdfWriter::write`], or a font cannot be written.
    pub(super) fn finish(mut self, metadata: Metadata) -> Result<Vec<u8>, PdfError> {
        self.end_page()?;
        self.document.set_metadata(metadata);
        let mut structure = TagTree::new();
        self.paragraphs.into_iter().for_each(|paragraph| structure.push(paragraph));
        self.document.set_tag_tree(structure);
        self.document.finish().map_err(PdfError::Writer)
    }

    /// Shapes a paragraph and breaks it into lines.
    fn shape(&mut self, mut block: Block, alignment: Alignment) -> Paragraph {
        let start = block.link.as_ref().map_or(0, |(range, _)| range.start);
        let rest = block.text.split_off(start);
        let mut text = self.fonts.spell_symbols(&block.text);
        if self.is_right_to_left {
            text.insert_str(0, RIGHT_TO_LEFT_MARK);
        }
        if let Some((range, _)) = &mut block.link {
            *range = text.len()..text.len() + range.len();
        }
        text.push_str(&self.fonts.spell_symbols(&rest));
        let mut builder = self.shaper.ranged_builder(&mut self.fonts.context, &text, 1.0, false);
        builder.push_default(StyleProperty::FontFamily(self.fonts.family.clone()));
        builder.push_default(StyleProperty::FontSize(block.kind.measures().0));
        builder.push_default(StyleProperty::LineHeight(LineHeight::MetricsRelative(LINE_HEIGHT)));
        builder.push_default(StyleProperty::OverflowWrap(OverflowWrap::Anywhere));
        let (range, target) = block.link.unzip();
        if let Some(range) = range {
            builder.push(StyleProperty::Brush(true), range);
        }
        let mut layout = builder.build(&text);
        layout.break_all_lines(Some(PAGE.0 - 2.0 * MARGIN));
        layout.align(alignment, AlignmentOptions::default());
        Paragraph { text: text.into(), layout, target, index: None }
    }

    /// Places a line on the current page.
    fn place(&mut self, paragraph: &Paragraph, line: &Line<'_, bool>, top: f32) -> Result<(), PdfError> {
        let metrics = line.metrics();
        let baseline = top + metrics.baseline - metrics.block_min_coord;
        let mut x = MARGIN + metrics.offset;
        let first = self.runs.len();
        for run in line.runs() {
            let font = self.fonts.written(&run).ok_or_else(|| no_font(&paragraph.text))?;
            let mut placed: Option<PlacedRun> = None;
            for (range, glyphs) in clusters(&run, &paragraph.text) {
                if paragraph.text[range.clone()] == *RIGHT_TO_LEFT_MARK {
                    continue;
                }
                for glyph in glyphs {
                    if glyph.id == 0 {
                        return Err(no_font(&paragraph.text[range]));
                    }
                    let is_link = paragraph.layout.styles()[glyph.style_index()].brush;
                    if placed.as_ref().is_some_and(|placed| placed.is_link != is_link) {
                        self.add(placed.take(), x, metrics.line_height, top, paragraph);
                    }
                    let placed = placed.get_or_insert_with(|| PlacedRun {
                        start: Point::from_xy(x, baseline),
                        font: font.clone(),
                        size: run.font_size(),
                        is_link,
                        link: None,
                        glyphs: Vec::new(),
                        text: Arc::clone(&paragraph.text),
                        paragraph: paragraph.index,
                    });
                    placed.glyphs.push(written(&glyph, placed.size, range.clone()));
                    x += glyph.advance;
                }
            }
            self.add(placed, x, metrics.line_height, top, paragraph);
        }
        // They were placed from left to right, and are read in the order of the text.
        self.runs[first..].sort_by_key(PlacedRun::text_start);
        Ok(())
    }

    /// Adds letters that end at `x` to the page, and their link.
    fn add(&mut self, placed: Option<PlacedRun>, x: f32, height: f32, top: f32, paragraph: &Paragraph) {
        let Some(mut placed) = placed else { return };
        if placed.is_link
            && let Some(target) = &paragraph.target
            && let Some(area) = Rect::from_ltrb(placed.start.x, top, x, top + height)
        {
            placed.link = Some((area, target.clone()));
        }
        self.runs.push(placed);
    }

    /// Writes the current page with its number, and begins the next one.
    fn end_page(&mut self) -> Result<(), PdfError> {
        if self.pages == self.pages_max {
            return Err(PdfError::TooLong);
        }
        self.pages += 1;
        let number = self.shape(Block::new(BlockKind::Facts, self.pages.to_string()), Alignment::Center);
        for line in number.layout.lines() {
            self.place(&number, &line, NUMBER_TOP)?;
        }
        self.y = MARGIN;
        // The size is constant.
        let Some(settings) = PageSettings::from_wh(PAGE.0, PAGE.1) else { return Err(PdfError::TooLong) };
        let mut page = self.document.start_page_with(settings);
        let mut surface = page.surface();
        let mut content = Vec::new();
        for run in take(&mut self.runs) {
            let tag = match run.paragraph {
                Some(_) => ContentTag::Span(SpanTag::empty()),
                None => ContentTag::Artifact(Artifact::with_kind(ArtifactType::PageNumber)),
            };
            let letters = surface.start_tagged(tag);
            draw(&mut surface, &run);
            surface.end_tagged();
            content.extend(run.paragraph.map(|paragraph| (paragraph, letters, run.link)));
        }
        surface.finish();
        for (paragraph, letters, link) in content {
            let node = match link {
                Some((area, target)) => linked(&mut page, letters, area, target),
                None => letters.into(),
            };
            self.paragraphs[paragraph].push(node);
        }
        page.finish();
        Ok(())
    }
}

fn draw(surface: &mut Surface<'_>, run: &PlacedRun) {
    let (red, green, blue) = if run.is_link { LINK_COLOR } else { (0, 0, 0) };
    let paint = rgb::Color::new(red, green, blue).into();
    surface.set_fill(Some(Fill {
        paint,
        opacity: NormalizedF32::ONE,
        rule: krilla::paint::FillRule::default(),
    }));
    surface.draw_glyphs(run.start, &run.glyphs, run.font.clone(), &run.text, run.size, false);
}

/// Makes letters of the page a link.
fn linked(page: &mut Page<'_>, letters: Identifier, area: Rect, target: String) -> Node {
    let link = LinkAnnotation::new(area, Target::Action(Action::Link(LinkAction::new(target.clone()))));
    let annotation = page.add_tagged_annotation(Annotation::new_link(link, Some(target)));
    TagGroup::with_children(Tag::Link, vec![letters.into(), annotation.into()]).into()
}

fn no_font(letters: &str) -> PdfError {
    PdfError::NoFont { letters: letters.to_owned() }
}

/// The letters of a run from left to right, with their text. The parts of a ligature are one cluster.
///
/// parley cuts some sequences of emoji and marks within a character, and the writer needs whole ones.
fn clusters(run: &Run<'_, bool>, text: &str) -> Vec<(Range<usize>, Vec<Glyph>)> {
    let mut clusters: Vec<(Range<usize>, Vec<Glyph>)> = Vec::new();
    for cluster in run.visual_clusters() {
        let found = cluster.text_range();
        let found = text.floor_char_boundary(found.start)..text.ceil_char_boundary(found.end);
        match clusters.last_mut() {
            // From right to left the parts come in reverse.
            Some((range, _)) if cluster.is_ligature_continuation() => {
                *range = range.start.min(found.start)..range.end.max(found.end);
            }
            _ => clusters.push((found, cluster.glyphs().collect())),
        }
    }
    clusters
}

/// The glyph in parts of the font size.
fn written(glyph: &Glyph, size: f32, range: Range<usize>) -> KrillaGlyph {
    let (advance, x, y) = (glyph.advance / size, glyph.x / size, glyph.y / size);
    KrillaGlyph::new(GlyphId::new(glyph.id), advance, x, y, 0.0, range, None)
}
