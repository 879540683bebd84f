//! Parameters of the lookup API and the service pages.

use serde_json::{Value, json};
use transcript_core::{
    archive::view::PAGE_CHARS_MAX,
    headers,
    lookup::AttributionTag,
    transcript::LanguageTag,
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

/// `lang`: a language.
pub(crate) fn lang() -> Value {
    let what = "Extension: the language tag (BCP 47). Without it the transcript is in English if there is English, \
                else in the spoken language. A tag matches by language and likely script: `de` also returns `de-AT`, \
                `zh-Hans` never returns `zh-Hant`. `language` is that of the transcript. No other language is returned \
                instead.";
    language(what, language_tag())
}

/// `lang` with this description and schema.
pub(crate) fn language(description: &str, schema: Value) -> Value {
    json!({
        "name": "lang",
        "in": "query",
        "description": description,
        "schema": schema,
        "examples": {
            "french": { "value": "fr" },
            "brazil": { "value": "pt-BR" },
            "traditionalChinese": { "value": "zh-Hant" }
        }
    })
}

/// Schema of a language tag.
pub(crate) fn language_tag() -> Value {
    json!({ "type": "string", "maxLength": LanguageTag::LENGTH_MAX, "pattern": LanguageTag::PATTERN })
}

/// `translated`: whether a machine translation is accepted.
pub(crate) fn translated() -> Value {
    let what = "Extension: whether a machine translation into `lang` is returned if the video has no other transcript \
                in it. Then `kind` of its language is `translated`.";
    flag("translated", what)
}

/// `words`: times of words.
pub(crate) fn words() -> Value {
    flag(
        "words",
        "Extension: adds the times of words, where the source has them: as `words` of each segment, and as \
                   timestamps within the cues of `format=vtt`.",
    )
}

/// `description`: the description of the video.
pub(crate) fn description() -> Value {
    flag("description", "Extension: adds `description` to `metadata`, where it is known. Only in JSON.")
}

/// `frontmatter`: what is known of the video, before the words.
pub(crate) fn frontmatter() -> Value {
    let description = "Extension: the text begins with what is known of the video: as YAML (`format=md`), as lines \
                       (`text`) or as a comment (`vtt`).";
    flag("frontmatter", description)
}

fn flag(name: &str, what: &str) -> Value {
    json!({
        "name": name,
        "in": "query",
        "description": what,
        "schema": { "type": "boolean", "default": false },
        "examples": { "yes": { "value": true } }
    })
}

pub(crate) fn search_cursor() -> Value {
    json!({
        "name": "cursor",
        "in": "query",
        "description": "The start of the page: `nextCursor` of the previous page, with the same `q`, `lang`, \
                        `platform` and `sort`.",
        "schema": { "type": "string", "maxLength": 64 },
        "examples": { "next": { "value": "s1f2e3d4c1" } }
    })
}

/// `chunk`: the size of chunks.
pub(crate) fn chunk() -> Value {
    json!({
        "name": "chunk",
        "in": "query",
        "description": "Extension: adds `chunks`: segments joined to texts that begin less than this many seconds \
                        after their first segment (`60s`), or to texts of at most this many estimated tokens \
                        (`200t`). A chunk never splits a segment nor reaches into another chapter, and rather ends at \
                        a pause.",
        "schema": {
            "type": "string",
            // At most 86,400 seconds or 100,000 tokens.
            "pattern": "^(?:(?:[1-9][0-9]{0,3}|[1-7][0-9]{4}|8[0-5][0-9]{3}|86[0-3][0-9]{2}|86400)s|\
                        (?:[1-9][0-9]{0,4}|100000)t)$"
        },
        "examples": { "minute": { "value": "60s" }, "tokens": { "value": "200t" } }
    })
}

/// Regular expression of the cursors of pages.
pub(crate) const CURSOR_PATTERN: &str = "^[0-9a-f]{8}-(0|[1-9][0-9]{0,9})$";

/// `cursor`: the start of a page.
pub(crate) fn cursor() -> Value {
    json!({
        "name": "cursor",
        "in": "query",
        "description": "Extension: the start of a page of segments: the cursor of the next page from the response \
                        with the page before. It is valid for one revision of one transcript. Nothing is transcribed \
                        for it.",
        "schema": { "type": "string", "pattern": CURSOR_PATTERN },
        "examples": { "next": { "value": "1f0c33ab-210" } }
    })
}

/// The size of a page, whose name differs between the APIs.
pub(crate) fn max_chars(name: &str) -> Value {
    json!({
        "name": name,
        "in": "query",
        "description": "Extension: the size of a page of segments, in characters of their texts. A longer segment is \
                        the only one of its page. With `cursor` the default is 20,000; without both, all segments are returned.",
        "schema": { "type": "integer", "minimum": 1, "maximum": PAGE_CHARS_MAX },
        "examples": { "page": { "value": 20_000 } }
    })
}

/// `x-verbatim-entitlement` of a new key: the proof of a paid plan.
pub(crate) fn entitlement() -> Value {
    proof(
        "The proof of an active paid plan, a JSON Web Token. With a valid proof the key is `plus`, otherwise free.",
    )
}

/// `x-verbatim-entitlement` with a key: the proof that renews it.
pub(crate) fn renewal() -> Value {
    proof(
        "Extension: the proof of an active paid plan, a JSON Web Token. A valid proof of the same subject renews a \
         `plus` key; any other has no effect.",
    )
}

fn proof(what: &str) -> Value {
    json!({
        "name": headers::X_VERBATIM_ENTITLEMENT,
        "in": "header",
        "description": what,
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

/// `t`: a moment of the video.
pub(crate) fn moment() -> Value {
    json!({
        "name": "t",
        "in": "query",
        "description": "A moment, in seconds or in units.",
        "schema": { "type": "string", "minLength": 1 },
        "examples": { "seconds": { "value": "61" }, "units": { "value": "1m1s" }, "clock": { "value": "1:01" } }
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

pub(crate) fn guide() -> Value {
    json!({
        "name": "guide",
        "in": "path",
        "required": true,
        "description": "The name of a guide.",
        "schema": { "type": "string", "minLength": 1 },
        "examples": { "start": { "value": "quick-start" } }
    })
}
