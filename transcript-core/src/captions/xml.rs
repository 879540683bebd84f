//! XML bodies as a flat run of opened elements, closed elements and text.
//!
//! Entities that a document defines for itself are never expanded and nothing outside is ever read: an
//! unknown reference stays in the text as it is written.

use std::borrow::Cow;

use html_escape::decode_html_entities;
use quick_xml::{
    Reader,
    events::{BytesStart, Event},
};

use super::{CaptionError, DEPTH_MAX};

/// One step through a document.
#[derive(Debug)]
pub(super) enum Node<'a> {
    /// An element begins.
    Open(Element<'a>),
    /// The element that was opened last and not closed yet ends.
    Close,
    /// Text, decoded once.
    Text(Cow<'a, str>),
}

/// An element's name and attributes.
#[derive(Debug)]
pub(super) struct Element<'a> {
    start: BytesStart<'a>,
}

impl Element<'_> {
    /// The name without its prefix.
    pub(super) fn name(&self) -> &str {
        self.start.local_name().into_inner()
    }

    /// The value of the attribute with this name, whatever its prefix. Values are taken as written: those
    /// that matter here are numbers and keywords.
    pub(super) fn attribute(&self, name: &str) -> Option<Cow<'_, str>> {
        let mut attributes = self.start.html_attributes();
        attributes
            .with_checks(false)
            .flatten()
            .find(|attribute| attribute.key.local_name().into_inner() == name)
            .map(|attribute| attribute.value)
    }
}

/// A document that is being read.
pub(super) struct Document<'a> {
    reader: Reader<&'a [u8]>,
    depth: usize,
    ended: bool,
}

impl<'a> Document<'a> {
    /// Opens a document whose root element has this name, and steps into the root.
    pub(super) fn open(text: &'a str, root: &str) -> Result<(Self, Element<'a>), CaptionError> {
        let mut reader = Reader::from_str(text.trim_start());
        let config = reader.config_mut();
        config.expand_empty_elements = true;
        // "AT&T" without an escape is common in captions, and what it means is clear.
        config.allow_dangling_amp = true;
        let mut document = Self { reader, depth: 0, ended: false };
        while let Some(node) = document.next()? {
            if let Node::Open(element) = node {
                return if element.name() == root {
                    Ok((document, element))
                } else {
                    Err(CaptionError::not_captions(format!("The document is not in the {root} format.")))
                };
            }
        }
        Err(CaptionError::not_captions(format!("There is no {root} element in the answer.")))
    }

    /// The next step; none after the root has been closed, whatever follows it.
    pub(super) fn next(&mut self) -> Result<Option<Node<'a>>, CaptionError> {
        while !self.ended {
            let event = self.reader.read_event().map_err(|_| {
                CaptionError::malformed("The captions are cut off or no well-formed XML: ask for them again.")
            })?;
            let node = match event {
                Event::Start(start) => {
                    self.depth += 1;
                    if self.depth > DEPTH_MAX {
                        return Err(CaptionError::malformed("The captions nest elements too deeply."));
                    }
                    Node::Open(Element { start })
                }
                Event::End(_) => {
                    self.depth = self.depth.saturating_sub(1);
                    self.ended = self.depth == 0;
                    Node::Close
                }
                Event::Text(text) => Node::Text(text.xml10_content()),
                Event::CData(text) => Node::Text(text.xml10_content()),
                Event::GeneralRef(reference) => Node::Text(Cow::Owned(resolve(&reference))),
                Event::Eof if self.depth > 0 => {
                    return Err(CaptionError::malformed("The captions are cut off: ask for them again."));
                }
                Event::Eof => {
                    self.ended = true;
                    break;
                }
                // Empty elements come as a start and an end; the rest carries no words.
                Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {
                    continue;
                }
            };
            return Ok(Some(node));
        }
        Ok(None)
    }

    /// The text inside the element that was just opened, up to its end. Elements inside leave their text;
    /// `br` leaves a line break.
    pub(super) fn text_of_element(&mut self) -> Result<String, CaptionError> {
        let mut words = String::new();
        let mut depth = 1;
        while depth > 0
            && let Some(node) = self.next()?
        {
            match node {
                Node::Text(text) => words.push_str(&text),
                Node::Open(element) => {
                    depth += 1;
                    if element.name() == "br" {
                        words.push('\n');
                    }
                }
                Node::Close => depth -= 1,
            }
        }
        Ok(words)
    }
}

/// What a reference stands for: a character, one of HTML's named ones, or itself.
fn resolve(reference: &str) -> String {
    let written = format!("&{reference};");
    decode_html_entities(&written).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::captions::CaptionErrorKind;

    fn flat(text: &str) -> Result<String, CaptionErrorKind> {
        let read = || {
            let (mut document, _) = Document::open(text, "r")?;
            let mut out = String::new();
            while let Some(node) = document.next()? {
                match node {
                    Node::Open(element) => {
                        out.push('<');
                        out.push_str(element.name());
                        if let Some(value) = element.attribute("k") {
                            out.push('=');
                            out.push_str(&value);
                        }
                        out.push('>');
                    }
                    Node::Close => out.push_str("</>"),
                    Node::Text(text) => out.push_str(&text),
                }
            }
            Ok(out)
        };
        read().map_err(|error: CaptionError| error.kind())
    }

    #[test]
    fn documents_are_read_step_by_step() {
        for (text, expect) in [
            ("<r>a<b/>c</r>", "a<b></>c</>"),
            ("<?xml version=\"1.0\"?> <!-- c --><r><x:b k=\"1\">t</x:b></r>", "<b=1>t</></>"),
            ("<r><b y:k=1 k=2></b></r>", "<b=1></></>"),
            (
                "<r>1 &lt; 2 &amp;amp; &#39;&#x4e2d;&nbsp;&bogus; AT&T &</r>",
                "1 < 2 &amp; '中\u{A0}&bogus; AT&T &</>",
            ),
            ("<r><![CDATA[<i>&amp;]]></r>", "<i>&amp;</>"),
            ("<r>a\r\nb\rc</r>", "a\nb\nc</>"),
            ("<r>a</r>\0 rubbish <", "a</>"),
            ("<!DOCTYPE r [<!ENTITY e \"boom\">]><r>&e;&e;</r>", "&e;&e;</>"),
        ] {
            assert_eq!(flat(text).as_deref(), Ok(expect), "{text:?}");
        }
    }

    #[test]
    fn broken_documents_are_told_apart_from_other_ones() {
        let deep = "<r>".repeat(DEPTH_MAX + 1) + &"</r>".repeat(DEPTH_MAX + 1);
        for (text, expect) in [
            ("<r>a", CaptionErrorKind::Malformed),
            ("<r>a</", CaptionErrorKind::Malformed),
            ("<r><b>a</r>", CaptionErrorKind::Malformed),
            ("<r", CaptionErrorKind::Malformed),
            (&deep, CaptionErrorKind::Malformed),
            ("<q></q>", CaptionErrorKind::NotCaptions),
            ("just words", CaptionErrorKind::NotCaptions),
        ] {
            assert_eq!(flat(text), Err(expect), "{text:?}");
        }
        let fits = "<r>".repeat(DEPTH_MAX) + &"</r>".repeat(DEPTH_MAX);
        assert!(flat(&fits).is_ok());
    }
}
