//! Markdown of the guides as HTML.
//!
//! The text is the program's own. Besides paragraphs, lists, links and tables it has: `{name}` for a value of this
//! server, links `guide:name`, `operation:id` and `page:path`, and code blocks `sample NAME` (a call in all languages),
//! `example OPERATION` (the response of an operation) and `console` (the form that tries a lookup).

use std::collections::HashMap;

use maud::{Markup, PreEscaped, html};
use pulldown_cmark::{
    CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, TextMergeStream,
    html::push_html,
};
use serde_json::Value;

use super::{console::console, example_text, list, object, operations, samples::samples};
use crate::page::PageContext;

/// What a guide is rendered with.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkdownContext<'a> {
    pub(super) page: &'a PageContext,
    pub(super) document: &'a Value,
    /// Values of this server by name.
    pub(super) values: &'a [(&'static str, String)],
}

/// Renders a text.
pub(super) fn markdown(context: MarkdownContext<'_>, text: &str) -> Markup {
    let parser = TextMergeStream::new(Parser::new_ext(text, Options::ENABLE_TABLES));
    let mut events = Vec::new();
    let mut block: Option<(String, String)> = None;
    let mut is_file_link = false;
    // The text of the last heading, which names the tables below it.
    let mut heading: Option<String> = None;
    let mut is_heading = false;
    let mut tables = HashMap::new();
    for event in parser {
        match &event {
            Event::Start(Tag::Heading { .. }) => (is_heading, heading) = (true, None),
            Event::End(TagEnd::Heading(_)) => is_heading = false,
            Event::Text(text) if is_heading => heading.get_or_insert_default().push_str(text),
            _ => {}
        }
        match (event, &mut block) {
            // Files of the repository are not served.
            (Event::Start(Tag::Link { dest_url, .. }), _) if !dest_url.contains(':') => is_file_link = true,
            (Event::End(TagEnd::Link), _) if is_file_link => is_file_link = false,
            (Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(name))), _) => {
                block = Some((name.into_string(), String::new()));
            }
            (Event::End(TagEnd::CodeBlock), Some((name, code))) => {
                events.push(Event::Html(context.code_block(name, code).into_string().into()));
                block = None;
            }
            (Event::Text(text), Some((_, code))) => code.push_str(&text),
            (Event::Start(Tag::Table(alignments)), _) => {
                let name = table_name(heading.as_deref().unwrap_or("Table"), &mut tables);
                let open = "<div class=\"wide prose\" tabindex=\"0\" role=\"region\" aria-label=\"";
                events.push(Event::Html(format!("{open}{name}\">").into()));
                events.push(Event::Start(Tag::Table(alignments)));
            }
            (Event::End(TagEnd::Table), _) => {
                events.extend([Event::End(TagEnd::Table), Event::Html("</div>".into())]);
            }
            (event, _) => events.push(context.filled(event)),
        }
    }
    name_headings(&mut events);
    let mut rendered = String::new();
    push_html(&mut rendered, events.into_iter());
    PreEscaped(rendered)
}

/// The name of a table, escaped. Headings repeat, names do not: `tables` counts the tables of each heading.
fn table_name(heading: &str, tables: &mut HashMap<String, usize>) -> String {
    let count = tables.entry(heading.to_owned()).or_insert(0);
    *count += 1;
    match count {
        1 => html! { (heading) },
        count => html! { (heading) " " (count) },
    }
    .into_string()
}

impl MarkdownContext<'_> {
    /// The text with the values of this server. Code has other braces, which stay.
    fn fill(&self, text: &str) -> String {
        let put_in =
            |text: String, (name, value): &(&str, String)| text.replace(&format!("{{{name}}}"), value);
        self.values.iter().fold(text.to_owned(), put_in)
    }

    /// The event with the values of this server, which the renderer escapes, and with addresses of links.
    fn filled<'e>(&self, event: Event<'e>) -> Event<'e> {
        match event {
            Event::Text(text) => Event::Text(self.fill(&text).into()),
            Event::Code(text) => Event::Code(self.fill(&text).into()),
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                Event::Start(Tag::Link { link_type, dest_url: self.address(&dest_url).into(), title, id })
            }
            // Nothing but text, tables, lists and links is written in guides.
            Event::Html(_) | Event::InlineHtml(_) => Event::Text("".into()),
            event => event,
        }
    }

    fn address(&self, link: &str) -> String {
        match link.split_once(':') {
            Some(("guide", name)) => self.page.href(&format!("docs/guides/{name}")),
            Some(("operation", id)) => self.page.href(&format!("docs/{id}")),
            Some(("page", path)) => self.page.href(path),
            _ => link.to_owned(),
        }
    }

    fn code_block(&self, name: &str, code: &str) -> Markup {
        match name.split_once(' ') {
            Some(("sample", name)) => {
                let all = operations(self.document);
                let of_operation = || all.iter().find(|one| one.id == name);
                let own = self.document["x-guideSamples"].get(name);
                let found = own.or_else(|| of_operation()?.value.get("x-codeSamples"));
                html! { @if let Some(found) = found { (samples(list(found))) } }
            }
            Some(("example", id)) => {
                let all = operations(self.document);
                let text = all.iter().find(|one| one.id == id).and_then(|one| example(one.value));
                html! { @if let Some(text) = text { pre.response tabindex="0" { code { (text) } } } }
            }
            _ if name == "console" => console(self.page),
            _ => html! { pre tabindex="0" { code { (self.fill(code)) } } },
        }
    }
}

/// The first example of a successful response.
fn example(operation: &Value) -> Option<String> {
    let mut good = object(&operation["responses"]).filter(|(status, _)| status.starts_with('2'));
    let (_, content) = object(&good.next()?.1["content"]).next()?;
    let (_, example) = object(&content["examples"]).next()?;
    Some(example_text(example))
}

/// Gives each heading an id made of its text, which no other heading has. The title of the page is `h1`.
fn name_headings(events: &mut [Event<'_>]) {
    let mut text = String::new();
    let mut counts = HashMap::<String, usize>::new();
    for index in (0..events.len()).rev() {
        match events.get_mut(index) {
            Some(Event::End(TagEnd::Heading(_))) => text.clear(),
            Some(Event::Text(part) | Event::Code(part)) => text.insert_str(0, part),
            Some(Event::Start(Tag::Heading { level, id, .. })) if *level != HeadingLevel::H1 => {
                let name = heading_id(&text);
                let count = counts.entry(name.clone()).or_default();
                *count += 1;
                *id = Some(CowStr::from(if *count == 1 { name } else { format!("{name}-{count}") }));
            }
            _ => {}
        }
    }
}

fn heading_id(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_lowercase()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn markdown_values_are_escaped_and_links_resolved() {
        let page = PageContext::for_test("/docs/guides/x?hl=de");
        let values = [("base_url", "https://v.example/<b>".to_owned())];
        let context = MarkdownContext { page: &page, document: &json!({}), values: &values };
        let text = "# T\n\n## Two `words`\n\n[a](guide:errors) `{base_url}` {base_url} {other} <b>x</b>\n\n```sh\ncurl {base_url}\n```\n";
        let table = "\n## A & b\n\n|a|\n|-|\n|1|\n";
        let tables = markdown(context, &table.repeat(2)).into_string();
        for name in ["aria-label=\"A &amp; b\"", "aria-label=\"A &amp; b 2\""] {
            assert_eq!(tables.matches(name).count(), 1, "{tables}");
        }
        let html = markdown(context, text).into_string();
        for part in [
            "<h1>T</h1>",
            "<h2 id=\"two-words\">",
            "href=\"../../docs/guides/errors?hl=de\"",
            "<code>https://v.example/&lt;b&gt;</code> https://v.example/&lt;b&gt; {other}",
            "curl https://v.example/&lt;b&gt;",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(!html.contains("<script") && !html.contains("<b>"), "{html}");
    }
}
