//! `Accept`: the media type of a response (RFC 9110, 12.5.1).

use http::{HeaderMap, header::ACCEPT};

use super::sse::EVENTS;

/// Whether the caller prefers HTML to JSON. HTML must be named: `*/*` is sent by programs.
pub(crate) fn wants_page(headers: &HeaderMap) -> bool {
    let (mut page, mut data) = (0, 0);
    for (kind, weight) in media_ranges(headers) {
        let is = |known: &str| kind.eq_ignore_ascii_case(known);
        if is("text/html") || is("application/xhtml+xml") {
            page = page.max(weight);
        } else if is("application/json") {
            data = data.max(weight);
        }
    }
    page > data
}

/// Whether the caller accepts JSON: its most specific media range decides. Without the header it does.
#[cfg(feature = "mcp")]
pub(crate) fn accepts_json(headers: &HeaderMap) -> bool {
    let weight_of = |known: &str| {
        let ranges = media_ranges(headers).filter(|(kind, _)| kind.eq_ignore_ascii_case(known));
        ranges.map(|(_, weight)| weight).max()
    };
    let weight = ["application/json", "application/*", "*/*"].into_iter().find_map(weight_of);
    weight.map_or(!headers.contains_key(ACCEPT), |weight| weight > 0)
}

/// Whether the caller accepts events by name.
pub(crate) fn wants_events(headers: &HeaderMap) -> bool {
    media_ranges(headers).any(|(kind, weight)| kind.eq_ignore_ascii_case(EVENTS) && weight > 0)
}

/// Whether the caller accepts lines of JSON by name.
pub(crate) fn wants_json_lines(headers: &HeaderMap) -> bool {
    let is = |kind: &str| {
        ["application/x-ndjson", "application/jsonl"].iter().any(|known| kind.eq_ignore_ascii_case(known))
    };
    media_ranges(headers).any(|(kind, weight)| is(kind) && weight > 0)
}

/// Media ranges of the request with their weights in thousandths. An unreadable header is ignored.
fn media_ranges(headers: &HeaderMap) -> impl Iterator<Item = (&str, u32)> {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(|range| {
        let (kind, parameters) = range.split_once(';').unwrap_or((range, ""));
        (kind.trim(), weight(parameters))
    })
}

/// The `q` of a media range in thousandths; 0 if invalid.
fn weight(parameters: &str) -> u32 {
    let q = parameters.split(';').find_map(|one| {
        let (name, value) = one.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then_some(value.trim())
    });
    match q.map(str::parse::<f32>) {
        None => 1_000,
        Some(Ok(q)) if (0.0..=1.0).contains(&q) => (q * 1_000.0) as u32,
        Some(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wants_page_html_preferred_over_json_is_true() {
        for (accept, expect) in [
            (&[][..], false),
            (&["*/*"], false),
            (&["application/json"], false),
            (&["application/json, text/plain, */*"], false),
            (&["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"], true),
            (&["Text/HTML; q=0.5"], true),
            (&["text/html;q=0"], false),
            (&["text/html;q=0.5, application/json"], false),
            (&["text/html, application/json"], false),
            (&["application/json;q=0.2", "text/html"], true),
            (&["text/html;q=nonsense"], false),
            (&["text/html;level=1;q=0.7, application/json;q=0.6"], true),
        ] {
            let mut headers = HeaderMap::new();
            for value in accept {
                headers.append(ACCEPT, value.parse().unwrap());
            }
            assert_eq!(wants_page(&headers), expect, "{accept:?}");
        }
    }

    #[cfg(feature = "mcp")]
    #[test]
    fn accepts_json_most_specific_range_decides() {
        assert!(accepts_json(&HeaderMap::new()));
        for (accept, expect) in [
            ("Application/JSON, text/event-stream", true),
            ("text/html, application/*;q=0.5", true),
            ("*/*", true),
            ("application/json;q=0.1, */*;q=0", true),
            ("application/json;q=0", false),
            ("application/json; q=0, */*", false),
            ("application/*;q=0, */*", false),
            ("text/event-stream", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            assert_eq!(accepts_json(&headers), expect, "{accept}");
        }
    }

    #[test]
    fn wants_events_named_media_type_is_true() {
        for (accept, expect) in [
            ("text/event-stream", true),
            ("application/json, Text/Event-Stream;q=0.5", true),
            ("text/event-stream; q=0", false),
            ("*/*", false),
            ("text/*", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            assert_eq!(wants_events(&headers), expect, "{accept}");
        }
        assert!(!wants_events(&HeaderMap::new()));
    }
}
