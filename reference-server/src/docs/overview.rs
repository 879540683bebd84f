//! `/docs`: overview, authentication and the list of operations.

use maud::{Markup, html};
use serde_json::Value;

use super::{
    object, operations, shell, string, tags,
    text::{inline, prose},
};

/// Renders the overview page.
pub(crate) fn overview(document: &Value) -> Markup {
    let info = &document["info"];
    let base_url = string(&document["servers"][0]["url"]);
    let all = operations(document);
    let body = html! {
        h1 { (string(&info["title"])) }
        p.lead { (string(&info["summary"])) }
        p.about {
            "Version " (string(&info["version"])) " · address " code { (base_url) } " · "
            a href="openapi.json" { "OpenAPI 3.1 document" } " · " a href="llms.txt" { "llms.txt" }
        }
        (prose(string(&info["description"])))
        h2 id="authentication" { "Authentication" }
        dl.schemes {
            @for (name, scheme) in object(&document["components"]["securitySchemes"]) {
                dt { (name) }
                dd { (inline(string(&scheme["description"]))) }
            }
        }
        pre { code { "Authorization: Bearer <API_KEY>" } }
        h2 id="assistants" { "Assistants" }
        p {
            "AI assistants use the same service through the Model Context Protocol, at " code { (base_url) "/mcp" }
            ", with a key in the same header. The tools are "
            code { "get_transcript" } ", " code { "search_transcript" } ", " code { "list_languages" } " and "
            code { "ask_video" } "."
        }
        @for tag in tags(document) {
            @let name = string(&tag["name"]);
            h2 id=(name) { (name) }
            p { (inline(string(&tag["description"]))) }
            ul.operations {
                @for operation in all.iter().filter(|operation| operation.tag == name) {
                    li {
                        a href={ "docs/" (operation.id) } { (operation.summary) }
                        span.call { span.method { (operation.method) } " " code { (operation.path) } }
                    }
                }
            }
        }
    };
    shell::page(document, &format!("{} – documentation", string(&info["title"])), None, "", body)
}
