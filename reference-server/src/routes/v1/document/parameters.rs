//! Parameters of the v1 API.

use serde_json::{Value, json};
use transcript_core::{headers, video::VideoLink};

use crate::routes::document::{
    examples::VIDEO,
    parameters::{language, language_tag},
};

/// `video_id`: the id of a YouTube video.
pub(crate) fn video_id() -> Value {
    json!({
        "name": "video_id",
        "in": "query",
        "description": "The 11-character id of a YouTube video. Send either `video_id` or `url`.",
        "schema": { "type": "string", "minLength": 11, "maxLength": 11, "pattern": "^[A-Za-z0-9_-]{11}$" },
        "examples": { "id": { "value": VIDEO } }
    })
}

/// `url`: a YouTube link.
pub(crate) fn url() -> Value {
    json!({
        "name": "url",
        "in": "query",
        "description": "The full link of a YouTube video, percent-encoded. Send either `video_id` or `url`.",
        "schema": { "type": "string", "minLength": 1, "maxLength": VideoLink::LENGTH_MAX },
        "examples": {
            "watchPage": { "value": format!("https://www.youtube.com/watch?v={VIDEO}") },
            "shortLink": { "value": format!("https://youtu.be/{VIDEO}?t=43") }
        }
    })
}

/// `lang`: a language.
pub(crate) fn lang() -> Value {
    let mut schema = language_tag();
    schema["default"] = "en".into();
    let what = "The language tag (BCP 47); English by default. A tag matches by language and likely script: `zh-Hans` \
                never returns `zh-Hant`.";
    language(what, schema)
}

/// `Idempotency-Key`: identifies a request that may be repeated.
pub(crate) fn idempotency_key() -> Value {
    json!({
        "name": headers::IDEMPOTENCY_KEY,
        "in": "header",
        "description": "An id of this request, such as a UUID. A repeat of the same request with the same id returns \
                        the first successful response for 24 hours, at no cost; but 404 if the video was withdrawn \
                        since. Repeats have a separate rate limit (`repeats`), six times the account's \
                        limit.",
        "schema": { "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$" },
        "examples": { "uuid": { "value": "6f1e2d3c-0000-4000-8000-5a4b3c2d1e0f" } }
    })
}

/// `order` in the path of an order's pages.
pub(crate) fn order() -> Value {
    json!({
        "name": "order",
        "in": "path",
        "required": true,
        "description": "The id of the order.",
        "schema": { "type": "string", "pattern": "^[A-Za-z0-9_-]{1,128}$" },
        "examples": { "order": { "value": super::examples::order() } }
    })
}

/// `token` of an order's sandbox page.
pub(crate) fn page_token() -> Value {
    json!({
        "name": "token",
        "in": "query",
        "required": true,
        "description": "The secret of the page, as in `checkout_url`.",
        "schema": { "type": "string", "pattern": "^[0-9a-f]{64}$", "description": "The page's secret." },
        "examples": { "token": { "value": "0".repeat(64) } }
    })
}

/// `token` in the link of a mail.
pub(crate) fn token() -> Value {
    json!({
        "name": "token",
        "in": "query",
        "required": true,
        "description": "The verification token of the mail, valid once and for 24 hours.",
        "schema": token_schema(),
        "examples": { "token": { "value": "0".repeat(64) } }
    })
}

pub(crate) fn token_body() -> Value {
    json!({
        "schema": {
            "type": "object",
            "required": ["token"],
            "additionalProperties": false,
            "properties": { "token": token_schema() }
        },
        "examples": { "token": { "value": { "token": "0".repeat(64) } } }
    })
}

/// As [`token_body`], for the form of the page with the button.
pub(crate) fn token_form() -> Value {
    let mut body = token_body();
    body["schema"]["properties"]["form"] = json!({
        "type": "string",
        "description": "Random text of the page with the button. The same form again, within seconds, gets the same \
                        key."
    });
    body
}

fn token_schema() -> Value {
    json!({ "type": "string", "pattern": "^[0-9a-f]{64}$", "description": "The verification token." })
}
