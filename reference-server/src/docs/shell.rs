//! Documentation pages: the guides and operations beside the content.

use maud::{Markup, html};
use serde_json::Value;

use super::{guides, public_operations, string, tags};
use crate::{
    config::PageIndex,
    page::{
        Frame, PageContext, PagePolicy, PageWidth, Section,
        assets::{DOCS_SCRIPT, DOCS_STYLE},
    },
};

/// Content security policy of the documentation.
pub(crate) const POLICY: PagePolicy = PagePolicy::Script;

/// Renders a page with the list of all guides and operations.
///
/// `here` is the path of the page below `docs/`; empty for the overview. The summary is for search engines.
pub(super) fn page(
    context: &PageContext,
    document: &Value,
    (title, summary): (&str, &str),
    here: &str,
    body: Markup,
) -> Markup {
    let body = html! {
        div.frame {
            nav aria-label="Documentation" { (contents(context, document, here)) }
            article { (body) }
        }
    };
    let path = if here.is_empty() { "docs".to_owned() } else { format!("docs/{here}") };
    let frame = Frame::new(context, title).described(&path, summary).section(Section::Api);
    let frame = frame.width(PageWidth::Docs).with_style(&DOCS_STYLE).with_script(&DOCS_SCRIPT);
    frame.content_language("en").indexed_with(PageIndex::Site).render(body)
}

/// Lists all guides, and the operations by tag; folded on small screens.
fn contents(context: &PageContext, document: &Value, here: &str) -> Markup {
    let all = public_operations(document);
    let link = |path: &str, text: &str| {
        let current = (here == path).then_some("page");
        html! { li { a href=(context.href(&format!("docs/{path}"))) aria-current=[current] { (text) } } }
    };
    let lists = html! {
        p.tag { "Guides" }
        ul { @for guide in guides::all() { (link(&format!("guides/{}", guide.name), guide.title())) } }
        @for tag in tags(document) {
            @let name = string(&tag["name"]);
            p.tag { (name) }
            ul {
                @for operation in all.iter().filter(|operation| operation.tag == name) {
                    (link(operation.id, operation.summary))
                }
            }
        }
    };
    html! {
        p.home {
            a href=(context.href("docs")) aria-current=[here.is_empty().then_some("page")] { "Verbatim API" }
        }
        details.folded { summary { "Guides and operations" } (lists) }
        div.unfolded { (lists) }
    }
}
