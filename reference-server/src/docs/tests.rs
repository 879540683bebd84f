use serde_json::json;
use transcript_core::{accounts::AccountsOptions, lookup::LookupOptions};

use super::*;

fn document() -> Value {
    crate::openapi::document(&LookupOptions::default(), &AccountsOptions::default())
}

#[test]
fn docs_operation_pages_are_complete() {
    let document = document();
    let all = operations(&document);
    assert!(all.len() >= 20, "{all:?}");
    let first = overview(&document).into_string();
    for one in &all {
        assert!(first.contains(&format!("href=\"docs/{}\"", one.id)), "{one:?}");
        let page = operation(&document, one.id).unwrap().into_string();
        for parameter in list(&one.value["parameters"]) {
            let name = string(&parameter["name"]);
            assert!(page.contains(&format!("<code>{name}</code>")), "{}: {name}", one.id);
        }
        for (status, _) in object(&one.value["responses"]) {
            assert!(page.contains(&format!("id=\"status-{status}\"")), "{}: {status}", one.id);
        }
        let samples = list(&one.value["x-codeSamples"]);
        assert_eq!(samples.len(), 3, "{}", one.id);
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
    assert!(operation(&document, "getNothing").is_none());
}

/// Returns the field names of a schema.
fn field_rows<'a>(document: &'a Value, schema: &'a Value) -> Vec<(usize, &'a str)> {
    let schema = schema::resolve(document, schema);
    object(&schema["properties"]).map(|(name, _)| name.as_str()).enumerate().collect()
}

#[test]
fn docs_pages_have_no_scripts_or_foreign_content() {
    let document = document();
    let pages = operations(&document).into_iter().filter_map(|one| operation(&document, one.id));
    for page in pages.chain([overview(&document)]) {
        let page = page.into_string();
        let head = page.split("<main").next().unwrap();
        for foreign in ["<script", " src=", "@import", "url("] {
            assert!(!head.contains(foreign), "{foreign}");
        }
        assert!(!page.contains("<script") && !page.contains(" src=\""), "{page}");
        for link in page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(!link.contains("//"), "{link}");
        }
        assert!(page.len() < 100_000, "{}", page.len());
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
    let pages = [overview(&document), operation(&document, "a").unwrap()].map(maud::PreEscaped::into_string);
    for page in pages {
        assert!(!page.contains("<script") && !page.contains("<b>"), "{page}");
    }
}

#[test]
fn docs_policy_hash_matches_style_sheet() {
    let page = overview(&document()).into_string();
    let sheet = page.split("<style>").nth(1).unwrap().split("</style>").next().unwrap();
    assert_eq!(sheet, shell::SHEET);
    assert!(
        content_security_policy().to_str().unwrap().starts_with("default-src 'none'; style-src 'sha256-")
    );
}

#[test]
fn llms_txt_lists_every_operation() {
    let document = document();
    let text = llms_txt(&document);
    assert!(text.starts_with("# Verbatim: video transcripts\n\n> "), "{text}");
    for one in operations(&document) {
        assert!(text.contains(&format!("/docs/{}): `{} {}`", one.id, one.method, one.path)), "{one:?}");
    }
    assert!(text.contains("/mcp"), "{text}");
}
