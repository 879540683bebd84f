//! `/docs/{operation}`: reference of one operation.

use maud::{Markup, html};
use serde_json::Value;

use super::{
    DocsOperation,
    console::console,
    example_text, list, object, operations, public_operations, samples,
    schema::{kind, limits, table},
    shell, string,
    text::{inline, prose},
    value_text,
};
use crate::page::{PageContext, transcript::summary};

/// Longest example that is not folded, in bytes.
const UNFOLDED_MAX: usize = 600;
/// Operation that the page can try: it needs no key and changes nothing.
const TRIED: &str = "getTranscript";

/// Renders the page of an operation; `None` if it does not exist.
pub(crate) fn operation(context: &PageContext, document: &Value, id: &str) -> Option<Markup> {
    let all = operations(document);
    let operation = all.iter().find(|operation| operation.id == id)?;
    let public = public_operations(document);
    let at = public.iter().position(|one| one.id == id);
    let adjacent = (at.and_then(|at| public.get(at.checked_sub(1)?)), at.and_then(|at| public.get(at + 1)));
    let value = operation.value;
    let body = html! {
        h1 { (operation.summary) }
        p.call.large { span.method { (operation.method) } " " code { (operation.path) } }
        (prose(string(&value["description"])))
        p.about { (authentication(document, value)) " Operation " code { (operation.id) } "." }
        (example(context, value))
        (parameters(document, value))
        (request_body(document, value))
        (responses(document, value))
        (adjacent_links(context, adjacent))
    };
    let title = format!("{} – {}", operation.summary, string(&document["info"]["title"]));
    // The first paragraph, without its marks of code.
    let about = string(&value["description"]).split("\n\n").next().unwrap_or_default().replace('`', "");
    Some(shell::page(context, document, (&title, &summary(&about)), id, body))
}

/// Describes the authentication.
fn authentication(document: &Value, operation: &Value) -> Markup {
    let schemes = list(&operation["security"]);
    let is_optional = schemes.iter().any(|scheme| scheme.as_object().is_some_and(serde_json::Map::is_empty));
    let scheme = schemes.iter().filter_map(Value::as_object).flat_map(serde_json::Map::keys).next();
    html! {
        @match scheme {
            None => { "No API key is required." },
            Some(name) => {
                @if is_optional { "An API key is optional. " } @else { "An API key is required. " }
                (inline(string(&document["components"]["securitySchemes"][name]["description"])))
            },
        }
    }
}

/// Renders code samples, and the form that tries a lookup.
fn example(context: &PageContext, operation: &Value) -> Markup {
    let samples = list(&operation["x-codeSamples"]);
    html! {
        @if !samples.is_empty() {
            h2 id="examples" { "Example" }
            (samples::samples(samples))
        }
        @if operation["operationId"] == TRIED {
            h2 id="try" { "Try it" }
            (console(context))
        }
    }
}

fn parameters(document: &Value, operation: &Value) -> Markup {
    let parameters = list(&operation["parameters"]);
    html! {
        @if !parameters.is_empty() {
            h2 id="parameters" { "Parameters" }
            div.wide tabindex="0" role="region" aria-label="Parameters" {
                table {
                    thead { tr { th scope="col" { "Name" } th scope="col" { "In" } th scope="col" { "Meaning" } } }
                    tbody {
                        @for parameter in parameters {
                            tr {
                                th scope="row" {
                                    code { (string(&parameter["name"])) }
                                    @if parameter["required"] == true { " " small.required { "required" } }
                                }
                                td { (string(&parameter["in"])) }
                                td {
                                    (inline(string(&parameter["description"])))
                                    p.limits { (kind(document, &parameter["schema"])) }
                                    (limits(&parameter["schema"]))
                                    (parameter_examples(&parameter["examples"]))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn request_body(document: &Value, operation: &Value) -> Markup {
    let body = &operation["requestBody"];
    html! {
        @if body.is_object() {
            h2 id="body" { "Body" }
            p {
                @if body["required"] == true { "Required. " } @else { "Optional. " }
                (inline(string(&body["description"])))
            }
            (content(document, &body["content"]))
        }
    }
}

fn responses(document: &Value, operation: &Value) -> Markup {
    html! {
        h2 id="answers" { "Responses" }
        @for (status, response) in object(&operation["responses"]) {
            @let is_good = status.starts_with('2');
            details.answer id={ "status-" (status) } open[is_good] {
                summary {
                    span.status.good[is_good] { (status) } " " span { (inline(string(&response["description"]))) }
                }
                (content(document, &response["content"]))
                (headers(document, &response["headers"]))
            }
        }
    }
}

fn headers(document: &Value, headers: &Value) -> Markup {
    html! {
        @if object(headers).next().is_some() {
            details.headers {
                summary { "Headers" }
                dl {
                    @for (name, header) in object(headers) {
                        dt {
                            code { (name) } " "
                            small {
                                (kind(document, &header["schema"]))
                                @if header["required"] != true { ", optional" }
                            }
                        }
                        dd { (inline(string(&header["description"]))) (limits(&header["schema"])) }
                    }
                }
            }
        }
    }
}

/// Renders a body in all media types. Media types with the same schema share one table.
fn content(document: &Value, content: &Value) -> Markup {
    let forms: Vec<(&String, &Value)> = object(content).collect();
    html! {
        @for (index, (media, body)) in forms.iter().enumerate() {
            h3 { code { (media) } }
            @if !forms.iter().take(index).any(|(_, before)| before["schema"] == body["schema"]) {
                (table(document, &body["schema"]))
            }
            @for (_, example) in object(&body["examples"]) { (shown(example)) }
        }
    }
}

/// Renders an example; a long one is folded.
fn shown(example: &Value) -> Markup {
    let text = example_text(example);
    let summary = example["summary"].as_str().unwrap_or("Example");
    html! {
        details.example open[text.len() <= UNFOLDED_MAX] {
            summary { (summary) }
            pre tabindex="0" { code { (text) } }
        }
    }
}

/// Renders the examples of a parameter.
fn parameter_examples(examples: &Value) -> Markup {
    html! {
        @if object(examples).next().is_some() {
            p.limits {
                "Such as "
                @for (index, (_, example)) in object(examples).enumerate() {
                    @if index > 0 { ", " }
                    code { (value_text(&example["value"])) }
                }
            }
        }
    }
}

fn adjacent_links(
    context: &PageContext,
    (before, after): (Option<&DocsOperation<'_>>, Option<&DocsOperation<'_>>),
) -> Markup {
    let address = |operation: &DocsOperation<'_>| context.href(&format!("docs/{}", operation.id));
    html! {
        footer {
            @if let Some(before) = before { a rel="prev" href=(address(before)) { "← " (before.summary) } }
            @if let Some(after) = after { a.next rel="next" href=(address(after)) { (after.summary) " →" } }
        }
    }
}
