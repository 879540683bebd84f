//! Tests of the Markdown output with a Markdown parser.

use comrak::{
    Arena, Options,
    nodes::{Node, NodeValue},
    parse_document,
};
use proptest::prelude::*;

use super::{
    Segment, Transcript, format_timestamp, markdown, markdown_escape::WORD_JOINER,
    paragraph::tests::any_segments, paragraphs, test_transcript,
};
use crate::video::{Platform, VideoId};

/// GitHub's dialect and all other extensions that affect inline text.
fn dialect() -> Options<'static> {
    let mut options = Options::default();
    let extension = &mut options.extension;
    extension.strikethrough = true;
    extension.table = true;
    extension.autolink = true;
    extension.tasklist = true;
    extension.superscript = true;
    extension.subscript = true;
    extension.footnotes = true;
    extension.inline_footnotes = true;
    extension.description_lists = true;
    extension.multiline_block_quotes = true;
    extension.alerts = true;
    extension.math_dollars = true;
    extension.math_code = true;
    extension.wikilinks_title_after_pipe = true;
    extension.underline = true;
    extension.spoiler = true;
    extension.cjk_friendly_emphasis = true;
    options.parse.relaxed_autolinks = true;
    options.parse.relaxed_tasklist_matching = true;
    options
}

/// Document as rendered: its text, and the markup that the Markdown writer adds.
#[derive(Debug, Default, PartialEq, Eq)]
struct RenderedMarkdown {
    heading: Option<String>,
    paragraphs: Vec<String>,
    links: Vec<(String, String)>,
}

/// The text in a node, or the name of unexpected markup in it.
fn text_of<'a>(node: Node<'a>, links: &mut Vec<(String, String)>) -> Result<String, String> {
    let mut text = String::new();
    for child in node.children() {
        let inner = match &child.data.borrow().value {
            NodeValue::Text(literal) => literal.to_string(),
            NodeValue::Link(link) => {
                let label = text_of(child, &mut Vec::new())?;
                links.push((label.clone(), link.url.clone()));
                label
            }
            other => return Err(format!("{other:?}")),
        };
        text.push_str(&inner);
    }
    Ok(text)
}

fn render(document: &str, options: &Options<'_>) -> Result<RenderedMarkdown, String> {
    let arena = Arena::new();
    let mut rendered = RenderedMarkdown::default();
    for block in parse_document(&arena, document, options).children() {
        let text = text_of(block, &mut rendered.links)?;
        match &block.data.borrow().value {
            NodeValue::Heading(_) if rendered.heading.is_none() => rendered.heading = Some(text),
            NodeValue::Paragraph => rendered.paragraphs.push(text),
            other => return Err(format!("{other:?}")),
        }
    }
    Ok(rendered)
}

fn transcript(title: &str, author: &str, segments: Vec<Segment>) -> Transcript {
    Transcript { title: Some(title.to_owned()), author: Some(author.to_owned()), ..test_transcript(segments) }
}

/// Expected rendering: the words unchanged, and one link per paragraph.
fn expected(transcript: &Transcript) -> RenderedMarkdown {
    let line = |text: &Option<String>| {
        let words: Vec<_> = text.as_deref().unwrap_or("").split_whitespace().collect();
        Some(words.join(" ").replace('\0', "\u{FFFD}")).filter(|line| !line.is_empty())
    };
    let mut rendered = RenderedMarkdown { heading: line(&transcript.title), ..RenderedMarkdown::default() };
    rendered.paragraphs.extend(line(&transcript.author).map(|author| format!("by {author}")));
    for paragraph in paragraphs(&transcript.segments) {
        let seconds = paragraph.start_ms / 1_000;
        let text = paragraph.text.replace('\0', "\u{FFFD}");
        rendered.paragraphs.push(format!("{} {text}", format_timestamp(seconds)));
        rendered.links.push((format_timestamp(seconds), transcript.video.address_at(seconds)));
    }
    rendered
}

/// The rendering without the one character that escaping adds.
fn without_word_joiners(mut rendered: RenderedMarkdown) -> RenderedMarkdown {
    let texts = rendered.heading.iter_mut().chain(&mut rendered.paragraphs);
    texts.for_each(|text| text.retain(|c| c != WORD_JOINER));
    rendered
}

fn check_renders_as_text(transcript: &Transcript) {
    let document = markdown(transcript);
    for options in [Options::default(), dialect()] {
        let rendered = render(&document, &options).unwrap_or_else(|found| panic!("{found} in {document:?}"));
        assert_eq!(
            without_word_joiners(rendered),
            without_word_joiners(expected(transcript)),
            "{document:?}"
        );
    }
}

#[test]
fn markdown_text_never_becomes_markup() {
    for text in [
        "<script>alert(1)</script>",
        "</p><img src=x onerror=y> <!-- c --> <?php ?> <![CDATA[x]]> <!DOCTYPE a>",
        "[x](javascript:alert(1)) ![y](z) [r][s] [t] [^1] ^[note] [[wiki|link]] [r]: http://a.b",
        "https://a.example/b?c=d http://a.example ftp://a.example www.a.example WWW.a.example/x \
         wWw.a.example",
        "<https://a.example> <me@a.example> me@a.example a.b+c_d-e@a-b.example mailto:me@a.example \
         xmpp:me@a.example/x",
        "mailto:@.www. XMPP:@a.example",
        "me@@a.example (me@a.example) x@y@a.example any://scheme.example",
        "# heading ## more #",
        "- item",
        "+ item",
        "* item",
        "1. item",
        "2) item",
        "> quote",
        ">>> quote",
        "| a | b |\n|---|---|\n| c | d |",
        "===",
        "---",
        "***",
        "```",
        "~~~ x",
        "    code",
        "\tcode",
        "term\n: details",
        "- [ ] task",
        "[ ] task",
        "`code` ``more`` $x$ $$y$$ $`z`$",
        "_a_ *b* **c** __d__ ***e*** ~f~ ~~g~~ ||h|| ^i^ =j= 中**文**字",
        "&lt;i&gt; &#39; &#x41; &copy; &copy &nbsp; AT&T",
        "back\\slash \\* \\\\ end\\",
        "two spaces  \nhard break\\\nsoft break",
        "{#id .class} {{ liquid }} {% tag %} text{.class}",
        ":tada: 10:30:15",
        "\0 zero",
        "\u{2028}\u{85}line \u{B}\u{C} ends",
        "a\u{2060}b",
    ] {
        check_renders_as_text(&transcript(text, text, vec![Segment::new(text, 3_725_000, 1_000)]));
    }
}

#[test]
fn markdown_unknown_fields_are_omitted() {
    let unknown =
        Transcript { title: None, author: Some(" \n".to_owned()), ..transcript("", "", Vec::new()) };
    assert_eq!(markdown(&unknown), "");
    let post = VideoId::new(Platform::X, "20").unwrap();
    let segments = vec![Segment::new("a", 65_000, 1), Segment::new("b", 90_000, 1)];
    assert_eq!(
        markdown(&Transcript { video: post, segments, ..unknown }),
        "[1:05](https://x.com/i/status/20) a\n\n[1:30](https://x.com/i/status/20) b\n"
    );
}

proptest! {
    #[test]
    fn markdown_any_text_renders_unchanged(title in ".{0,30}", author in "\\PC{0,30}", segments in any_segments()) {
        check_renders_as_text(&transcript(&title, &author, segments));
    }

    #[test]
    fn markdown_any_markup_renders_unchanged(
        texts in proptest::collection::vec(
            "(<|>|a|b|\\[|\\]|\\(|\\)|!|\\*|_|~|`|#|-|\\+|=|\\||&|;|:|/|//|@|\\.|www\\.|http|mailto:|\\$|\
             \\^|\\{|\\}|\\\\|\"|'| |\n|1|é|中|\u{200B}|%){0,24}",
            1..4,
        ),
    ) {
        let segments =
            texts.iter().zip(0..).map(|(text, n)| Segment::new(text.as_str(), n * 9_000, 10)).collect();
        let title = texts.first().map_or("", String::as_str);
        check_renders_as_text(&transcript(title, title, segments));
    }
}
