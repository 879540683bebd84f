use serde_json::json;
use transcript_core::{accounts::AccountsOptions, lookup::LookupOptions};

use super::*;
use crate::page::PageContext;

/// Context of the overview, or of an operation's page.
fn context(path: &str) -> PageContext {
    PageContext::for_test(path)
}

fn document() -> Value {
    crate::openapi::document(&LookupOptions::default(), &AccountsOptions::default())
}

#[test]
fn docs_operation_pages_are_complete() {
    let document = document();
    let all = operations(&document);
    assert!(all.len() >= 20, "{all:?}");
    let first = overview(&context("/docs"), &document).into_string();
    assert!(first.contains(&format!("API version {} ", string(&document["info"]["version"]))), "{first}");
    for one in &all {
        assert!(first.contains(&format!("href=\"docs/{}\"", one.id)), "{one:?}");
        let contents = first.split("</nav>").nth(1).unwrap();
        assert_ne!(contents.contains(&format!("href=\"docs/{}\"", one.id)), one.is_internal(), "{one:?}");
        let page = operation(&context("/docs/x"), &document, one.id).unwrap().into_string();
        for parameter in list(&one.value["parameters"]) {
            let name = string(&parameter["name"]);
            assert!(page.contains(&format!("<code>{name}</code>")), "{}: {name}", one.id);
        }
        for (status, _) in object(&one.value["responses"]) {
            assert!(page.contains(&format!("id=\"status-{status}\"")), "{}: {status}", one.id);
        }
        let samples = list(&one.value["x-codeSamples"]);
        assert_eq!(samples.len(), 4, "{}", one.id);
        for sample in samples {
            let escaped = maud::html! { (string(&sample["source"])) }.into_string();
            assert!(page.contains(&escaped), "{}: {sample}", one.id);
        }
        for (_, body) in object(&one.value["responses"]["200"]["content"]) {
            for (_, field) in field_rows(&document, &body["schema"]) {
                assert!(page.contains(&format!("<code>{field}</code>")), "{}: {field}", one.id);
            }
        }
    }
    assert!(operation(&context("/docs/x"), &document, "getNothing").is_none());
}

/// Returns the field names of a schema.
fn field_rows<'a>(document: &'a Value, schema: &'a Value) -> Vec<(usize, &'a str)> {
    let schema = schema::resolve(document, schema);
    object(&schema["properties"]).map(|(name, _)| name.as_str()).enumerate().collect()
}

fn guide_pages(document: &Value) -> impl Iterator<Item = (&'static str, String)> {
    let (lookup, accounts) = (LookupOptions::default(), AccountsOptions::default());
    guides::all().map(move |one| {
        let page = guide(&context("/docs/guides/x"), document, (&lookup, &accounts), one.name).unwrap();
        (one.name, page.into_string())
    })
}

#[test]
fn docs_pages_have_no_foreign_content() {
    let document = document();
    let pages =
        operations(&document).into_iter().filter_map(|one| operation(&context("/docs/x"), &document, one.id));
    let pages = pages.chain([overview(&context("/docs"), &document)]).map(maud::PreEscaped::into_string);
    for page in pages.chain(guide_pages(&document).map(|(_, page)| page)) {
        assert_eq!(page.matches("<script").count(), 1, "{page}");
        for foreign in ["<style", "@import", "url(", " style=", " onclick"] {
            assert!(!page.contains(foreign), "{foreign}");
        }
        for link in page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(!link.contains("//") || link.starts_with("https://keepachangelog.com/"), "{link}");
        }
        assert!(page.len() < 100_000, "{}", page.len());
    }
}

#[test]
fn docs_guides_fill_values_samples_and_links() {
    let document = document();
    let all = operations(&document);
    for (name, page) in guide_pages(&document) {
        if name == "changelog" {
            // The entries of no version are for developers.
            let article = page.split("<article>").nth(1).unwrap().split("</article>").next().unwrap();
            let next = article.split_once("[Unreleased]").unwrap().1.split("<h2").next().unwrap();
            assert!(!next.contains("<li>"), "{next}");
            continue;
        }
        let article = page.split("<article>").nth(1).unwrap();
        assert!(article.starts_with("<h1>"), "{name}");
        for value in ["{base_url}", "_per_", "_credits}", "_requests}", "{jobs}", "{job_items}"] {
            assert!(!article.contains(value), "{name}: {value}");
        }
        for link in page.split("href=\"../../docs/").skip(1).filter_map(|rest| rest.split('"').next()) {
            let exists = match link.strip_prefix("guides/") {
                Some(guide) => guides::all().any(|one| one.name == guide),
                None => all.iter().any(|one| one.id == link),
            };
            assert!(exists, "{name}: {link}");
        }
    }
}

#[test]
fn docs_limit_guide_shows_header_as_it_is_sent() {
    let mut accounts = AccountsOptions::default();
    accounts.plans.free.requests_per_minute = 100_000;
    let options = (&LookupOptions::default(), &accounts);
    let page = guide(&context("/docs/guides/x"), &document(), options, "limits").unwrap().into_string();
    assert!(page.contains("q=100000;w=60") && page.contains("<td>100,000 a minute</td>"), "{page}");
}

#[test]
fn docs_error_guide_has_every_failure_reason() {
    let (_, page) = guide_pages(&document()).find(|(name, _)| *name == "errors").unwrap();
    for reason in transcript_core::lookup::FailureReason::ALL {
        assert!(page.contains(&format!("<td><code>{}</code></td>", reason.as_str())), "{reason:?}");
    }
}

/// The guides agree with `CostNote::ChargedWhenReady` and with refused questions.
#[test]
fn docs_guides_state_charge_of_failures() {
    let source = |name: &str| guides::all().find(|one| one.name == name).unwrap().source;
    let row = |status: &str| {
        let start = format!("| `{status}` |");
        source("errors").lines().find(|line| line.starts_with(&start)).unwrap().split('|').nth(3).unwrap()
    };
    assert!(
        row("500").contains("charged when it is done")
            && row("500").contains("next request for its transcript")
    );
    assert!(row("400").contains("fetched for a refused question"));
    assert_eq!([row("503").trim(), row("404").trim()], ["no"; 2]);
    assert!(source("long-videos").contains("charged when it is archived"));
}

#[test]
fn docs_assistant_guide_lists_every_tool() {
    let guide = guides::all().find(|one| one.name == "assistants").unwrap().source;
    let listed = guide.split_once("The tools are").unwrap().1.split_once("\n\n").unwrap().0;
    let mut listed: Vec<&str> = listed.split('`').skip(1).step_by(2).collect();
    let mut tools = crate::mcp::tool_names();
    listed.sort_unstable();
    tools.sort_unstable();
    assert_eq!(listed, tools);
    assert!(guide.contains("`verbatim mcp` offers these tools, except those for jobs"));
}

#[test]
fn docs_guides_name_samples_and_examples_that_exist() {
    let document = document();
    for one in guides::all() {
        let page = guide_pages(&document).find(|(name, _)| *name == one.name).unwrap().1;
        let blocks = one.source.lines().filter_map(|line| line.strip_prefix("```"));
        let count = |kind: &str| blocks.clone().filter(|name| name.starts_with(kind)).count();
        assert_eq!(page.matches("<div class=\"samples\">").count(), count("sample "), "{}", one.name);
        let code = blocks.clone().filter(|name| !name.is_empty() && *name != "console").count();
        let shown = page.matches("<pre").count() - 3 * count("sample ") - count("console");
        assert_eq!(shown, code, "{}", one.name);
    }
}

#[test]
fn docs_document_text_is_escaped() {
    let hostile = "<script>alert(1)</script>";
    let document = json!({
        "info": { "title": hostile, "description": hostile, "summary": hostile },
        "tags": [{ "name": "t", "description": hostile }],
        "paths": { "/<b>": { "get": {
            "operationId": "a", "tags": ["t"], "summary": hostile,
            "x-codeSamples": [{ "label": hostile, "source": hostile }],
            "parameters": [{ "name": hostile, "in": "query", "description": hostile, "examples": { "e": { "value": hostile } } }],
            "responses": { "200": { "description": hostile, "content": { "text/html": {
                "schema": { "type": "object", "properties": { hostile: { "enum": [hostile] } } },
                "examples": { "e": { "value": hostile } }
            } } } }
        } } }
    });
    let pages =
        [overview(&context("/docs"), &document), operation(&context("/docs/x"), &document, "a").unwrap()]
            .map(maud::PreEscaped::into_string);
    for page in pages {
        assert!(!page.contains("<script>") && !page.contains("<b>"), "{page}");
    }
}

#[test]
fn llms_txt_lists_every_operation() {
    let document = document();
    let text = llms_txt(&document, &crate::mcp::tool_names());
    assert!(text.starts_with("# Verbatim: video transcripts\n\n> "), "{text}");
    for one in public_operations(&document) {
        assert!(text.contains(&format!("/docs/{}): `{} {}`", one.id, one.method, one.path)), "{one:?}");
    }
    assert!(text.contains("/mcp"), "{text}");
    for tool in ["get_transcript, ", "list_videos, ", "start_job, ", "job_status, ", "job_results, "] {
        assert!(text.contains(tool), "{tool}: {text}");
    }
}
