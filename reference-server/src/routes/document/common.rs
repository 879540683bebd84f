//! Responses that every operation may have, before or beside those of its handler.

use http::Method;
use serde_json::{Value, json};
use transcript_core::headers;

use super::{ResponseHeader, denial, header, refusal, seconds, vary};
use crate::{
    api::{BUSY, HEAD_BYTES_MAX, OTHER_HOST, READ_BYTES_MAX, V1_PREFIX},
    routes::page_origins::FOREIGN_PAGE,
};

/// Paths whose requests get a 503 also if those before them search or read the archive for too long.
const WAITING_PATHS: [&str; 3] = ["/api/transcript", "/api/search", "/watch/{platform}/{id}"];

/// Adds 421, 431 and 503, in the form of the operation's API.
pub(crate) fn add_common_responses(path: &str, method: &Method, operation: &mut Value) {
    let is_v1 = path.starts_with(V1_PREFIX);
    let own = operation["responses"]["503"].take();
    for (status, mut response) in
        [(421, other_host(is_v1)), (431, large_head(is_v1)), (503, busy(path, is_v1, &own))]
    {
        if *method == Method::HEAD
            && let Some(fields) = response.as_object_mut()
        {
            fields.remove("content");
        }
        operation["responses"][status.to_string()] = response;
    }
    // Where a body of another type counts toward the rate limit, a body without memory does, too.
    for name in [headers::RATE_LIMIT, headers::RATE_LIMIT_POLICY] {
        let field = operation["responses"]["415"]["headers"][name].clone();
        if field.is_object() {
            operation["responses"]["503"]["headers"][name] = field;
        }
    }
}

fn problem(
    is_v1: bool,
    (status, title): (u16, &str),
    description: &str,
    detail: (&str, &str),
    headers: Option<ResponseHeader>,
) -> Value {
    match is_v1 {
        true => denial(status, description, &[detail], headers),
        false => refusal((status, title), description, &[detail], headers),
    }
}

/// Response 403 to a page of another site.
pub(crate) fn foreign_page(is_v1: bool) -> Value {
    let what = "A browser sent it for a page of another site.";
    let vary = (!is_v1).then(|| vary("origin"));
    problem(is_v1, (403, "Forbidden"), what, ("page", FOREIGN_PAGE), vary)
}

fn other_host(is_v1: bool) -> Value {
    let what = "The request's host is not one of this server.";
    problem(is_v1, (421, "Misdirected Request"), what, ("host", OTHER_HOST), None)
}

fn large_head(is_v1: bool) -> Value {
    let kib = HEAD_BYTES_MAX / 1024;
    let what = format!(
        "The request head, its link included, is larger than {kib} KiB. The response has no body if the head is larger \
         than {} KiB or has more than 100 headers.",
        READ_BYTES_MAX / 1024
    );
    let detail = format!("The request's headers are too large: its head may have {kib} KiB altogether.");
    problem(is_v1, (431, "Request Header Fields Too Large"), &what, ("large", &detail), None)
}

/// Response 503; `own` is the page that the operation returns with this status, or null.
fn busy(path: &str, is_v1: bool, own: &Value) -> Value {
    let what = match WAITING_PATHS.contains(&path) {
        true => {
            "The server has no memory for another large body, or the request has to wait too long for others."
        }
        false => "The server has no memory for another large body.",
    };
    // The v1 API has it with a 429 only.
    let wait = (!is_v1).then(|| ("Retry-After", header("Seconds until a retry may succeed.", seconds(5))));
    let mut response = problem(is_v1, (503, "Service Unavailable"), what, ("busy", BUSY), wait);
    if let (Some(page), Some(description)) = (own["content"].get("text/html"), own["description"].as_str()) {
        response["description"] = format!("{description} Or: {what}").into();
        response["content"]["text/html"] = page.clone();
        response["headers"]["Cache-Control"]["schema"]["enum"] = json!(["no-cache", "no-store"]);
    }
    response
}
