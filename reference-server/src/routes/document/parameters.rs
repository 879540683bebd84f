//! Parameters of the lookup API and the service pages.

use serde_json::{Value, json};
use transcript_core::{
    lookup::AttributionTag,
    video::{Platform, VideoLink},
};

use super::examples::VIDEO;
use crate::api::ResponseFormat;

/// `url`: a link.
pub(crate) fn url() -> Value {
    json!({
        "name": "url",
        "in": "query",
        "description": "The percent-encoded link of a video: a watch page, short link or short of YouTube, a video \
                        or short link of TikTok, a reel of Instagram, or a post of X. Send either `url` or \
                        `v`.",
        "schema": { "type": "string", "minLength": 1, "maxLength": VideoLink::LENGTH_MAX },
        "examples": {
            "watchPage": { "value": format!("https://www.youtube.com/watch?v={VIDEO}") },
            "shortLink": { "value": format!("https://youtu.be/{VIDEO}?t=43") },
            "short": { "value": format!("https://www.youtube.com/shorts/{VIDEO}") },
            "shortVideo": { "value": "https://www.tiktok.com/@scout2015/video/6718335390845095173" },
            "shortVideoShortLink": { "value": "https://vm.tiktok.com/ZMh3kTxyz/" },
            "reel": { "value": "https://www.instagram.com/reel/C1abcdefghi/" },
            "statusPost": { "value": "https://x.com/someone/status/1453746193042456576" }
        }
    })
}

/// `v`: the id of a YouTube video.
pub(crate) fn v() -> Value {
    json!({
        "name": "v",
        "in": "query",
        "description": "The 11-character id of a YouTube video. Send either `url` or `v`.",
        "schema": { "type": "string", "minLength": 11, "maxLength": 11, "pattern": "^[A-Za-z0-9_-]{11}$" },
        "examples": { "id": { "value": VIDEO } }
    })
}

/// `format`: the form of the response.
pub(crate) fn format() -> Value {
    json!({
        "name": "format",
        "in": "query",
        "description": "The form of the response: JSON by default, `text` for prose, `md` for Markdown with \
                        timestamps. `srt` and `vtt` for subtitles are an extension.",
        "schema": { "type": "string", "enum": ResponseFormat::names().collect::<Vec<_>>() },
        "examples": { "prose": { "value": "text" }, "markdown": { "value": "md" }, "subtitles": { "value": "vtt" } }
    })
}

/// `src`: the attribution tag.
pub(crate) fn src() -> Value {
    json!({
        "name": "src",
        "in": "query",
        "description": "The origin of the request; it is added to `watchUrl`.",
        "schema": { "type": "string", "enum": AttributionTag::ALL.map(AttributionTag::as_str) },
        "examples": { "otherTool": { "value": AttributionTag::McpOther.as_str() } }
    })
}

/// `x-verbatim-entitlement`: the proof of a paid plan.
pub(crate) fn entitlement() -> Value {
    json!({
        "name": "x-verbatim-entitlement",
        "in": "header",
        "description": "The proof of an active paid plan, a JSON Web Token. With a valid proof the key is `plus`, \
                        otherwise free.",
        "schema": { "type": "string" },
        "examples": { "token": { "value": "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl" } }
    })
}

/// `platform` in the path of a watch page.
pub(crate) fn platform() -> Value {
    json!({
        "name": "platform",
        "in": "path",
        "required": true,
        "description": "The platform of the video.",
        "schema": { "type": "string", "enum": Platform::ALL.map(Platform::as_str) },
        "examples": { "videoSite": { "value": Platform::YouTube.as_str() } }
    })
}

/// `id` in the path of a watch page.
pub(crate) fn id() -> Value {
    json!({
        "name": "id",
        "in": "path",
        "required": true,
        "description": "The id of the video on its platform; for an unresolved short link its form and code, \
                        separated by a colon.",
        "schema": { "type": "string", "pattern": "^([a-z.-]{1,10}:)?[A-Za-z0-9_-]{1,32}$" },
        "examples": { "id": { "value": VIDEO }, "shortLink": { "value": "vm:ZMh3kTxyz" } }
    })
}

/// `operation`: an operation of the document.
pub(crate) fn operation() -> Value {
    json!({
        "name": "operation",
        "in": "path",
        "required": true,
        "description": "The `operationId` of an operation.",
        "schema": { "type": "string", "minLength": 1 },
        "examples": { "lookUp": { "value": "getTranscript" } }
    })
}
