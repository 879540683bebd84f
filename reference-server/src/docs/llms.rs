//! `/llms.txt`: summary of the service for language models, with links.

use std::fmt::Write as _;

use serde_json::Value;

use super::{guides, public_operations, string, tags};

/// Renders the text as Markdown. `tools` are the names of the tools for assistants, with that of the search last; empty
/// without tools.
pub(crate) fn llms_txt(document: &Value, tools: &[String]) -> String {
    let info = &document["info"];
    let base_url = string(&document["servers"][0]["url"]);
    let mut text = format!("# {}\n\n> {}\n\n", string(&info["title"]), string(&info["summary"]));
    let _ = writeln!(text, "{}\n", string(&info["description"]));
    if !tools.is_empty() {
        let _ = writeln!(
            text,
            "- Assistants: `POST {base_url}/mcp` speaks the Model Context Protocol (streamable HTTP). Its tools: {} \
             (the last one only if the server has a search).",
            tools.join(", ")
        );
    }
    let _ = writeln!(
        text,
        "- A key goes into the header `Authorization: Bearer <API_KEY>` only, never into a link.\n\
         - The shortest lookup: `GET {base_url}/api/transcript?url=LINK&format=text`.\n\
         - If there is no transcript, return the `watchUrl` to the user unchanged and do not invent text.\n"
    );
    let all = public_operations(document);
    text.push_str("## Guides\n\n");
    for guide in guides::all() {
        let _ =
            writeln!(text, "- [{}]({base_url}/docs/guides/{}): {}", guide.title(), guide.name, guide.summary);
    }
    text.push('\n');
    for tag in tags(document) {
        let name = string(&tag["name"]);
        let _ = writeln!(text, "## {}\n", capital(name));
        for operation in all.iter().filter(|operation| operation.tag == name) {
            let _ = writeln!(
                text,
                "- [{}]({base_url}/docs/{}): `{} {}`",
                operation.summary, operation.id, operation.method, operation.path
            );
        }
        text.push('\n');
    }
    let _ = writeln!(
        text,
        "## Optional\n\n- [OpenAPI 3.1 document]({base_url}/openapi.json): every operation with schemas, errors and \
         examples\n- [Documentation]({base_url}/docs): the same as web pages"
    );
    text
}

/// Capitalizes the first letter.
fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
