//! The limits of bodies are those that the specification states (8.3).

use crate::testing::{ARCHIVED, NEW, ServiceFixture, request};

const SPECIFICATION: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/specification.md"));

/// The number of bytes that the row states after these words.
fn stated(row: &str, words: &str) -> usize {
    let (_, rest) = row.split_once(words).unwrap_or_else(|| panic!("{words} is not in: {row}"));
    let number = rest.split([' ', ';']).next().unwrap_or_default();
    number.replace(',', "").parse().unwrap_or_else(|_| panic!("no number after {words}: {row}"))
}

#[tokio::test]
async fn body_limits_are_those_of_specification() {
    let row = SPECIFICATION.lines().find(|line| line.starts_with("| body |")).unwrap();
    let service = ServiceFixture::start().await;
    let bearer = format!("Bearer {}", service.account("ann@example.org").await);
    let (question, check) =
        (format!("/watch/video_site/{ARCHIVED}/ask"), format!("/watch/video_site/{NEW}/transcribe"));
    let (json, form) = ("application/json", "application/x-www-form-urlencoded");
    for (words, path, kind) in [
        ("| body | ", "/api/keys", json),
        ("| body | ", "/api/v1/register", json),
        ("; chat ", "/api/v1/chat", json),
        ("; jobs ", "/api/v1/jobs", json),
        ("; `/mcp` ", "/mcp", json),
        ("; transcribe ", &check, json),
        ("; question ", &question, json),
        (", as a form ", &question, form),
        ("; forms of accounts ", "/sign-in", form),
        ("; webhook ", "/api/v1/webhooks/stripe", json),
    ] {
        let limit = stated(row, words);
        for (length, is_too_large) in [(limit, false), (limit + 1, true)] {
            let headers = [
                ("content-type", kind),
                ("authorization", bearer.as_str()),
                ("sec-fetch-site", "same-origin"),
            ];
            let reply = service.send(request("POST", path, &headers, &" ".repeat(length))).await;
            assert_eq!(reply.status == 413, is_too_large, "{length} at {path}: {reply:?}");
        }
    }
}
