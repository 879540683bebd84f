//! Requests to the server: both APIs, the pages, and messages of the Model Context Protocol.

use std::cell::RefCell;

use reference_server::fuzzing::{FuzzRequest, FuzzResponse, FuzzService};

use crate::{runtime, seeds};

/// After this many requests the service starts again: its stores grow, and its rate limits fill.
const REQUESTS_MAX: u32 = 50;

thread_local! {
    static SERVICE: RefCell<Option<(FuzzService, u32)>> = const { RefCell::new(None) };
}

/// Method and target, lines of headers, an empty line, and the body.
pub(crate) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (head, body) = text.split_once("\n\n").unwrap_or((&text, ""));
    let mut lines = head.lines();
    let Some((method, target)) = lines.next().and_then(|line| line.split_once(' ')) else { return };
    let headers: Vec<_> = lines.filter_map(|line| line.split_once(": ")).collect();
    check(FuzzRequest { method, target, headers: &headers, body: body.as_bytes() });
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    seeds::texts(&[
        "GET /api/transcript?v=dQw4w9WgXcQ&format=json&lang=en&src=mcp_other\nauthorization: Bearer @lookup\n",
        "GET /api/transcript?url=https%3A%2F%2Fyoutu.be%2FdQw4w9WgXcQ%3Ft%3D4&format=vtt\naccept-encoding: gzip, \
         zstd;q=0.5",
        "GET /api/transcript?v=aaaaaaaaaaa\nx-api-key: @lookup\nprefer: wait=3\nif-none-match: \"x\", W/\"y\"",
        "GET /api/transcript?v=sssssssssss&format=md\nauthorization: Bearer @lookup",
        "POST /api/keys\norigin: https://app.example\n\n",
        "GET /api/keys/me\nauthorization: Bearer @lookup",
        "GET /watch/video_site/dQw4w9WgXcQ?lang=de&src=x#t=1\naccept: text/html\naccept-language: de;q=0.9, *",
        "GET /watch/video_site/aaaaaaaaaaa/challenge",
        "POST /watch/video_site/aaaaaaaaaaa/transcribe\ncontent-type: \
         application/x-www-form-urlencoded\n\naltcha=eyJhIjoxfQ%3D%3D&lang=en",
        "GET /?url=https%3A%2F%2Fyoutu.be%2FdQw4w9WgXcQ",
        "GET /checkout/ord_1\n",
        "POST /checkout/ord_1/sandbox\ncontent-type: application/x-www-form-urlencoded\n\ndeed=pay",
        "POST /api/v1/register\ncontent-type: application/json\n\n{\"email\":\"bob@example.com\"}",
        "GET /api/v1/verify?token=vbt_x&confirmed=1",
        "GET /api/v1/me\nauthorization: Bearer @account",
        "POST /api/v1/rotate-key\nauthorization: Bearer @account\nidempotency-key: k",
        "GET /api/v1/transcript?url=dQw4w9WgXcQ&lang=en\nauthorization: Bearer @account",
        "POST /api/v1/transcript\nauthorization: Bearer @account\ncontent-type: \
         application/json\nidempotency-key: \"k1\"\n\n\
         {\"url\":\"https://youtu.be/dQw4w9WgXcQ\",\"language\":\"en\"}",
        "POST /api/v1/chat\nauthorization: Bearer @account\ncontent-type: application/json\naccept: \
         text/event-stream\n\n\
         {\"url\":\"dQw4w9WgXcQ\",\"message\":\"What?\",\
         \"history\":[{\"role\":\"user\",\"content\":\"a\"}],\"stream\":true}",
        "POST /api/v1/subscribe\nauthorization: Bearer @account\ncontent-type: \
         application/json\n\n{\"plan\":\"starter\"}",
        "POST /api/v1/buy-credits\nauthorization: Bearer @account\ncontent-type: \
         application/json\n\n{\"credits\":1000}",
        "POST /api/v1/webhooks/stripe\nstripe-signature: t=1,v1=00\n\n{\"type\":\"invoice.paid\"}",
        "GET /openapi.json\naccept-encoding: br",
        "OPTIONS /api/v1/me\norigin: https://app.example\naccess-control-request-method: GET\n",
        "GET /docs/get-transcript\nforwarded: for=\"[2001:db8::1]:80\";proto=https\nx-forwarded-for: 10.0.0.1, \
         1.2.3.4",
        "HEAD /health\nx-request-id: abc\nx-verbatim-hop: 1",
    ])
}

/// A message: the body of a request to `/mcp`. The first byte selects the caller's key.
pub(crate) fn mcp(input: &[u8]) {
    let Some((&caller, body)) = input.split_first() else { return };
    let bearer = match caller {
        b'a' => "Bearer @account",
        b'k' => "Bearer @lookup",
        _ => "",
    };
    let mut headers = vec![
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    headers.extend(Some(("authorization", bearer)).filter(|(_, bearer)| !bearer.is_empty()));
    check(FuzzRequest { method: "POST", target: "/mcp", headers: &headers, body });
}

pub(crate) fn mcp_seeds() -> Vec<Vec<u8>> {
    let call = |caller: &str, tool: &str, arguments: &str| {
        let message = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"TOOL",
            "arguments":ARGUMENTS}}"#;
        format!("{caller}{}", message.replace("TOOL", tool).replace("ARGUMENTS", arguments)).into_bytes()
    };
    let mut seeds = seeds::texts(&[
        r#"-{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"2025-11-25",
            "capabilities":{},
            "clientInfo":{"name":"x","version":"1"}}}"#,
        r#"-{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"-{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"x"}}"#,
        r#"-{"jsonrpc":"2.0","id":2,"method":"ping"}"#,
        r#"-{"jsonrpc":"2.0","id":2,"result":{}}"#,
    ]);
    seeds.extend([
        call("-", "get_transcript", r#"{"video":"dQw4w9WgXcQ","timestamps":false,"lang":"en-GB"}"#),
        call("k", "get_transcript", r#"{"video":"https://youtu.be/aaaaaaaaaaa","cursor":"0123abcd-0-7"}"#),
        call("a", "list_languages", r#"{"video":"dQw4w9WgXcQ"}"#),
        call("a", "search_transcript", r#"{"video":"dQw4w9WgXcQ","query":"quiet","limit":3}"#),
        call("a", "ask_video", r#"{"video":"dQw4w9WgXcQ","question":"What is quiet?"}"#),
    ]);
    seeds
}

/// Sends a request: the service never fails, and its JSON is JSON.
fn check(request: FuzzRequest<'_>) {
    let Some(response) = send(request) else { return };
    let FuzzResponse { status, content_type, is_encoded, body } = response;
    assert_ne!(status, 500, "{}", String::from_utf8_lossy(&body));
    let is_json = content_type.as_deref().is_some_and(|kind| kind.contains("json"));
    if is_json && !is_encoded && !body.is_empty() {
        let parsed = serde_json::from_slice::<serde_json::Value>(&body);
        assert!(parsed.is_ok(), "{}", String::from_utf8_lossy(&body));
    }
}

fn send(request: FuzzRequest<'_>) -> Option<FuzzResponse> {
    SERVICE.with_borrow_mut(|service| {
        let is_used_up = service.as_ref().is_none_or(|(_, count)| *count >= REQUESTS_MAX);
        if is_used_up {
            *service = None;
            *service = Some((runtime::block_on(FuzzService::start()), 0));
        }
        let (service, count) = service.as_mut()?;
        *count += 1;
        runtime::block_on(service.send(request))
    })
}
