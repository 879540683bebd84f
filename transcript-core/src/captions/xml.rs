//! XML bodies as a flat sequence of opened elements, closed elements and text.
//!
//! Entities defined by a document are never expanded and external entities are never read: an unknown reference
//! stays in the text as written.

use std::borrow::Cow;

use quick_xml::{
    Reader,
    events::{BytesStart, Event},
};

use super::{CaptionError, DEPTH_MAX, markup::decode_references};

/// One step through a document.
#[derive(Debug)]
pub(super) enum XmlNode<'a> {
    /// Start of an element.
    Open(XmlElement<'a>),
    /// End of the innermost open element.
    Close,
    /// Text, decoded once.
    Text(Cow<'a, str>),
}

/// Name and attributes of an element.
#[derive(Debug)]
pub(super) struct XmlElement<'a> {
    start: BytesStart<'a>,
}

impl XmlElement<'_> {
    /// Name without its prefix.
    pub(super) fn name(&self) -> &str {
        self.start.local_name().into_inner()
    }

    /// Value of the attribute with this name, whatever its prefix.
    ///
    /// Values are returned as written: those needed here are numbers and keywords.
    pub(super) fn attribute(&self, name: &str) -> Option<Cow<'_, str>> {
        let mut attributes = self.start.html_attributes();
        attributes
            .with_checks(false)
            .flatten()
            .find(|attribute| attribute.key.local_name().into_inner() == name)
            .map(|attribute| attribute.value)
    }
}

/// Document that is being read.
pub(super) struct XmlDocument<'a> {
    reader: Reader<&'a [u8]>,
    depth: usize,
    ended: bool,
}

impl<'a> XmlDocument<'a> {
    /// Opens a document with this root element and steps into the root.
    pub(super) fn open(text: &'a str, root: &str) -> Result<(Self, XmlElement<'a>), CaptionError> {
        let mut reader = Reader::from_str(text.trim_start());
        let config = reader.config_mut();
        config.expand_empty_elements = true;
        // "AT&T" without an escape is common in captions, and its meaning is clear.
        config.allow_dangling_amp = true;
        let mut document = Self { reader, depth: 0, ended: false };
        while let Some(node) = document.next()? {
            if let XmlNode::Open(element) = node {
                return if element.name() == root {
                    Ok((document, element))
                } else {
                    Err(CaptionError::not_captions(format!("The document is not in the {root} format.")))
                };
            }
        }
        Err(CaptionError::not_captions(format!("The XML has no {root} element.")))
    }

    /// Returns the next step; `None` after the root is closed, whatever follows it.
    pub(super) fn next(&mut self) -> Result<Option<XmlNode<'a>>, CaptionError> {
        while !self.ended {
            let event = self.reader.read_event().map_err(|_| {
                CaptionError::malformed(
                    "The captions are truncated or not well-formed XML. Fetch them again.",
                )
            })?;
            let node = match event {
                Event::Start(start) => {
                    self.depth += 1;
                    if self.depth > DEPTH_MAX {
                        return Err(CaptionError::malformed("The captions nest elements too deeply."));
                    }
                    XmlNode::Open(XmlElement { start })
                }
                Event::End(_) => {
                    self.depth = self.depth.saturating_sub(1);
                    self.ended = self.depth == 0;
                    XmlNode::Close
                }
                Event::Text(text) => XmlNode::Text(text.xml10_content()),
                Event::CData(text) => XmlNode::Text(text.xml10_content()),
                Event::GeneralRef(reference) => XmlNode::Text(Cow::Owned(resolve(&reference))),
                Event::Eof if self.depth > 0 => {
                    return Err(CaptionError::malformed("The captions are truncated. Fetch them again."));
                }
                Event::Eof => {
                    self.ended = true;
                    break;
                }
                // Empty elements arrive as a start and an end; the other events have no text.
                Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {
                    continue;
                }
            };
            return Ok(Some(node));
        }
        Ok(None)
    }

    /// Reads the text of the element that was just opened, up to its end.
    ///
    /// Child elements contribute their text; `br` becomes a line break.
    pub(super) fn text_of_element(&mut self) -> Result<String, CaptionError> {
        let mut words = String::new();
        let mut depth = 1;
        while depth > 0
            && let Some(node) = self.next()?
        {
            match node {
                XmlNode::Text(text) => words.push_str(&text),
                XmlNode::Open(element) => {
                    depth += 1;
                    if element.name() == "br" {
                        words.push('\n');
                    }
                }
                XmlNode::Close => depth -= 1,
            }
        }
        Ok(words)
    }
}

/// Resolves a reference: to a character, to a named character of HTML, or to itself.
fn resolve(reference: &str) -> String {
    let mut resolved = String::new();
    decode_references(&format!("&{reference};"), &mut resolved);
    resolved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::captions::CaptionErrorKind;

    fn flatten(text: &str) -> Result<String, CaptionErrorKind> {
        let read = || {
            let (mut document, _) = XmlDocument::open(text, "r")?;
            let mut out = String::new();
            while let Some(node) = document.next()? {
                match node {
                    XmlNode::Open(element) => {
                        out.push('<');
                        out.push_str(element.name());
                        if let Some(value) = element.attribute("k") {
                            out.push('=');
                            out.push_str(&value);
                        }
                        out.push('>');
                    }
                    XmlNode::Close => out.push_str("</>"),
                    XmlNode::Text(text) => out.push_str(&text),
                }
            }
            Ok(out)
        };
        read().map_err(|error: CaptionError| error.kind())
    }

    #[test]
    fn xml_document_yields_nodes_in_order() {
        for (text, expect) in [
            ("<r>a<b/>c</r>", "a<b></>c</>"),
            ("<?xml version=\"1.0\"?> <!-- c --><r><x:b k=\"1\">t</x:b></r>", "<b=1>t</></>"),
            ("<r><b y:k=1 k=2></b></r>", "<b=1></></>"),
            (
                "<r>1 &lt; 2 &amp;amp; &#39;&#x4e2d;&#146;&nbsp;&bogus; AT&T &</r>",
                "1 < 2 &amp; '中’\u{A0}&bogus; AT&T &</>",
            ),
            ("<r><![CDATA[<i>&amp;]]></r>", "<i>&amp;</>"),
            ("<r>a\r\nb\rc</r>", "a\nb\nc</>"),
            ("<r>a</r>\0 rubbish <", "a</>"),
            ("<!DOCTYPE r [<!ENTITY e \"boom\">]><r>&e;&e;</r>", "&e;&e;</>"),
        ] {
            assert_eq!(flatten(text).as_deref(), Ok(expect), "{text:?}");
        }
    }

    #[test]
    fn xml_malformed_differs_from_other_document() {
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
            assert_eq!(flatten(text), Err(expect), "{text:?}");
        }
        let fits = "<r>".repeat(DEPTH_MAX) + &"</r>".repeat(DEPTH_MAX);
        assert!(flatten(&fits).is_ok());
    }
}
