//! Responses of other services: speech-to-text, chat models, Stripe, and other Verbatim servers.

use transcript_core::{
    supplier::SupplyRequest,
    time::Timestamp,
    transcript::{Segment, TrackSelector, Word, remove_unfit_words},
    video::{Platform, VideoId},
};
use upstream_reqwest::fuzzing;

use crate::{runtime, seeds};

/// Length of the transcribed chunk in milliseconds.
const CHUNK_MS: u64 = 600_000;

/// A transcription, or an error of a speech-to-text service.
pub(crate) fn speech(input: &[u8]) {
    if let Some(segments) = fuzzing::speech::transcription(input, CHUNK_MS) {
        assert!(segments.windows(2).all(|pair| pair[0].end_ms() <= pair[1].start_ms), "{segments:?}");
        let is_valid = |segment: &Segment| segment.end_ms() <= CHUNK_MS && !segment.text.trim().is_empty();
        assert!(segments.iter().all(is_valid), "{segments:?}");
        for segment in &segments {
            let words = &segment.words;
            assert!(words.is_sorted_by_key(|word| word.start_ms), "{segment:?}");
            let is_inside =
                |word: &Word| segment.start_ms <= word.start_ms && word.end_ms() <= segment.end_ms();
            assert!(words.iter().all(is_inside), "{segment:?}");
        }
        let mut fitting = segments.clone();
        remove_unfit_words(&mut fitting);
        assert_eq!(fitting, segments, "words are in the text");
    }
    for status in [400, 429, 503] {
        fuzzing::speech::error_response(status, input);
    }
}

pub(crate) fn speech_seeds() -> Vec<Vec<u8>> {
    seeds::texts(&[
        r#"{"task":"transcribe","language":"english","duration":9.15,"text":" a b","segments":[{"id":0,"seek":0,
            "start":0,"end":3.12,"text":" a","tokens":[50364],"temperature":0.0,"avg_logprob":-0.28,
            "compression_ratio":1.2,"no_speech_prob":0.01},{"start":3.12,"end":null,"text":" b"}],"words":null,
            "usage":{"type":"duration","seconds":10}}"#,
        r#"{"text":"a b"}"#,
        r#"{"text":"a b","segments":[{"text":" a,","start":0,"end":2},{"text":" b","start":2}],"words":[{"word":"a",
            "start":0.1,"end":1},{"word":"b","start":2}]}"#,
        r#"{"text":"a b. c","words":[{"word":"a","start":0.1,"end":1},{"word":"b","start":2,"end":2.5},
            {"word":"c","start":3}]}"#,
        r#"{"segments":[{"text":" a b","start":0,"words":[{"word":" a","start":0},{"word":" b","start":1}]}]}"#,
        r#"{"text":"a b","segments":[],"detected_language":"de"}"#,
        r#"{"segments":[{"text":"x","start":1.5,"end":2},{"text":"x","start":2,"end":2.5},{"text":"x","start":2.5},
            {"text":"x","start":3},{"text":"x","start":4},{"text":"x","start":5}]}"#,
        r#"{"error":{"param":"response_format","code":"unsupported_value"}}"#,
        r#"{"error":{"code":"insufficient_quota"}}"#,
    ])
}

/// An answer of a chat model, or an error of its service.
pub(crate) fn chat_model(input: &[u8]) {
    let [streamed, complete] = runtime::block_on(fuzzing::chat::answer(input));
    for text in [streamed, complete].into_iter().flatten() {
        // U+FFFD, of three bytes, is in place of a byte that is no UTF-8.
        assert!(text.len() <= 3 * input.len(), "a text is part of its answer");
    }
    let events = fuzzing::chat::events(input, usize::MAX);
    for step in [1, 7] {
        let in_pieces = fuzzing::chat::events(input, step);
        assert_eq!(in_pieces, events, "pieces of {step} bytes");
    }
    for status in [400, 429, 503] {
        fuzzing::chat::error_response(status, input);
    }
}

pub(crate) fn chat_model_seeds() -> Vec<Vec<u8>> {
    seeds::texts(&[
        "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"<think>no</think>\"}}]}\r\n\r\n\
         data: {\"choices\":[{\"delta\":{\"content\":\"The pier [s1].\"},\"finish_reason\":null}]}\n\n\
         : comment\nevent: x\nid: 1\nretry: 5\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\
         \"completion_tokens\":2}}\n\ndata: [DONE]\n\n",
        "{\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":\" <think>\\n</think> The \\u00e4 [s1].\"}}],\
         \"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}",
        "{\"error\":{\"message\":\"context_length_exceeded\"}}",
        "Unsupported parameter: 'max_tokens', use 'max_completion_tokens'; temperature; stream_options; stream",
        "data: {\"error\":{}}",
    ])
}

/// Stripe: the first line is the signature header, the rest the body of a webhook or of a response.
pub(crate) fn stripe(input: &[u8]) {
    let now = Timestamp::from_millis(1_795_132_800_000);
    let end = input.iter().position(|&byte| byte == b'\n').unwrap_or(input.len());
    let (header, body) = (&input[..end], input.get(end + 1..).unwrap_or_default());
    // The secret is not in a seed, so no input has a valid signature.
    let header = String::from_utf8_lossy(header);
    assert!(!fuzzing::stripe::is_signed(&header, body, "whsec_unknown", now), "{header}");
    fuzzing::stripe::event(body);
    fuzzing::stripe::objects(body);
}

pub(crate) fn stripe_seeds() -> Vec<Vec<u8>> {
    let header = format!("t=1795132800,v1={0},v0={0},v1={0}\n", "0123456789abcdef".repeat(4));
    let bodies = [
        r#"{"object":"event","type":"checkout.session.completed","data":{"object":{"object":"checkout.session",
            "id":"cs_1","customer":"cus_1","amount_total":5}}}"#,
        r#"{"type":"charge.refunded","data":{"object":{"object":"charge","payment_intent":{"id":"pi_1"},
            "customer":null}}}"#,
        r#"{"type":"customer.subscription.deleted","data":{"object":{"object":"subscription","id":"sub_1"}}}"#,
        r#"{"id":"cs_1","status":"complete","payment_status":"paid","mode":"payment","url":"https://c.example",
            "amount_total":5,
            "currency":"usd","customer":"cus_1","payment_intent":{"id":"pi_1"},"subscription":null,"invoice":null,
            "metadata":{"verbatim_order":"a"},"created":1,"expires_at":2}"#,
        r#"{"id":"sub_1","status":"active","customer":"cus_1","items":{"data":[{"price":{"id":"price_1",
            "product":"p"},
            "current_period_end":1}],"has_more":false},"metadata":{},"latest_invoice":{"id":"in_1"},"created":1}"#,
        r#"{"id":"in_1","status":"paid","amount_paid":5,"currency":"usd","customer":{"id":"cus_1"},"parent":{
            "subscription_details":{"subscription":"sub_1","metadata":{}}},"lines":{"data":[{"period":{"start":1,
            "end":2},
            "pricing":{"price_details":{"price":"price_1","product":"p"}},"amount":5}],"has_more":false}}"#,
        r#"{"data":[{"id":"dp_1","status":"lost","amount":5,"payment_intent":"pi_1"}],"has_more":false}"#,
    ];
    bodies.iter().map(|body| format!("{header}{body}").into_bytes()).collect()
}

/// A response of another Verbatim server: its status, lines with headers, an empty line, and its body.
pub(crate) fn peers(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (head, body) = text.split_once("\n\n").unwrap_or((&text, ""));
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.parse().ok()).unwrap_or(200);
    let headers: Vec<_> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let now = Timestamp::from_millis(1_795_132_800_000);
    let request = SupplyRequest {
        video: VideoId::new(Platform::YouTube, "dQw4w9WgXcQ").expect("a valid id"),
        selector: TrackSelector::Default,
        deadline: now,
    };
    fuzzing::service::response(status, &headers, body.as_bytes(), &request, now);
}

pub(crate) fn peer_seeds() -> Vec<Vec<u8>> {
    seeds::texts(&[
        "200\ncontent-language: en\nx-is-generated: true\nx-request-id: r\nx-cache: hit\nratelimit: \"a\";r=3;t=41\n\
         ratelimit-policy: \"a\";q=10;w=60\n\n{\"videoId\":\"dQw4w9WgXcQ\",\"platform\":\"video_site\",\
         \"available\":true,\"transcript\":[{\"text\":\"a\",\"start\":1.5,\"duration\":2}],\"source\":\"x\"}",
        "404\nretry-after: 7\nx-failure-detail: \
         still_working\n\n{\"videoId\":\"dQw4w9WgXcQ\",\"platform\":\"video_site\",\
         \"available\":false,\"failureReason\":\"no_captions\",\"message\":\"There are none.\",\"watchUrl\":\
         \"https://a.example/watch/video_site/x\"}",
        "404\n\nThere are no captions.\nhttps://a.example/watch/video_site/x?src=mcp_other\n",
        "402\nx-credits-remaining: 0\n\n{\"error\":\"No credits left.\",\"code\":402}",
        "429\nretry-after: Wed, 21 Oct 2026 07:28:00 GMT\n\n{\"type\":\"about:blank\",\"title\":\"T\",\"status\":429,\
         \"detail\":\"Wait.\",\"failureReason\":\"x\"}",
    ])
}
