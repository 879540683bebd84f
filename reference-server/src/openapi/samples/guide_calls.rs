//! Sample calls of the guides: one step or one option each.

use transcript_core::headers::IDEMPOTENCY_KEY;

use super::calls::{
    ACCOUNT_KEY, KEY, SampleBody, SampleCall,
    SampleParameter::{List, Text},
    VIDEO, plain,
};

const LINK: &str = "https://youtu.be/dQw4w9WgXcQ";

/// All sample calls of the guides, by name.
pub(super) const GUIDE_CALLS: &[(&str, SampleCall)] = &[
    ("keyless", SampleCall { query: &[("url", Text(LINK))], ..plain("getTranscript") }),
    (
        "account-transcript",
        SampleCall { query: &[("url", Text(LINK))], key: ACCOUNT_KEY, ..plain("getVideoTranscript") },
    ),
    (
        "text",
        SampleCall {
            query: &[("url", Text(LINK)), ("format", Text("text"))],
            is_json: false,
            ..plain("getTranscript")
        },
    ),
    ("key", SampleCall { query: &[("url", Text(LINK))], key: KEY, ..plain("getTranscript") }),
    (
        "language",
        SampleCall { query: &[("url", Text(LINK)), ("lang", Text("en"))], ..plain("getTranscript") },
    ),
    (
        "page",
        SampleCall { query: &[("url", Text(LINK)), ("maxChars", Text("20000"))], ..plain("getTranscript") },
    ),
    (
        "chunks",
        SampleCall { query: &[("url", Text(LINK)), ("chunk", Text("60s"))], ..plain("getTranscript") },
    ),
    (
        "stream",
        SampleCall {
            key: ACCOUNT_KEY,
            headers: &[("Accept", Text("text/event-stream"))],
            body: SampleBody::Json(&[("video_id", Text(VIDEO)), ("message", Text("What is it about?"))]),
            is_json: false,
            ..plain("askAboutVideo")
        },
    ),
    (
        "idempotent",
        SampleCall {
            query: &[("video_id", Text(VIDEO))],
            key: ACCOUNT_KEY,
            headers: &[(IDEMPOTENCY_KEY, Text("2f1c9a60-import-0001"))],
            ..plain("getVideoTranscript")
        },
    ),
    (
        "job",
        SampleCall {
            key: ACCOUNT_KEY,
            headers: &[(IDEMPOTENCY_KEY, Text("course-2026"))],
            body: SampleBody::Json(&[("urls", List(&[LINK, "jNQXAC9IVRw"]))]),
            ..plain("startJob")
        },
    ),
];
