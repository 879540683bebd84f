//! `/docs`: the guides, authentication and the list of operations.

use maud::{Markup, html};
use serde_json::Value;

use super::{
    DocsOperation, guides, object, operations, public_operations, shell, string, tags,
    text::{inline, prose},
};
use crate::page::PageContext;

/// Renders the overview page.
pub(crate) fn overview(context: &PageContext, document: &Value) -> Markup {
    let info = &document["info"];
    let base_url = string(&document["servers"][0]["url"]);
    let all = public_operations(document);
    let body = html! {
        h1 { (string(&info["title"])) }
        p.lead { (string(&info["summary"])) }
        p.about {
            "API version " (string(&info["version"])) " · address " code { (base_url) } " · "
            a href="openapi.json" { "OpenAPI 3.1 document" } " · " a href="llms.txt" { "llms.txt" }
        }
        p { a.button href=(context.href("docs/guides/quick-start")) { "Quick start" } }
        h2 id="guides" { "Guides" }
        ul.operations {
            @for guide in guides::all() {
                li {
                    a href=(context.href(&format!("docs/guides/{}", guide.name))) { (guide.title()) }
                    span.about { (guide.summary) }
                }
            }
        }
        h2 id="how" { "How it works" }
        (prose(string(&info["description"])))
        h2 id="authentication" { "Authentication" }
        dl.schemes {
            @for (name, scheme) in object(&document["components"]["securitySchemes"]) {
                dt { (name) }
                dd { (inline(string(&scheme["description"]))) }
            }
        }
        pre tabindex="0" { code { "Authorization: Bearer <API_KEY>" } }
        @for tag in tags(document) {
            @let name = string(&tag["name"]);
            h2 id=(name) { (name) }
            p { (inline(string(&tag["description"]))) }
            ul.operations { @for operation in all.iter().filter(|operation| operation.tag == name) { (item(context, operation)) } }
        }
        details.internal {
            summary { "Addresses that the pages, payment providers and tools of this service use" }
            ul.operations { @for operation in operations(document).iter().filter(|one| one.is_internal()) { (item(context, operation)) } }
        }
    };
    let title = format!("{} – documentation", string(&info["title"]));
    shell::page(context, document, (&title, string(&info["summary"])), "", body)
}

fn item(context: &PageContext, operation: &DocsOperation<'_>) -> Markup {
    html! {
        li {
            a href=(context.href(&format!("docs/{}", operation.id))) { (operation.summary) }
            span.call { span.method { (operation.method) } " " code { (operation.path) } }
        }
    }
}
