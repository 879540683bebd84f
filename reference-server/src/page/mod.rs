//! The pages that people see: plain HTML, one style sheet inside, no script.
//!
//! Everything that comes from outside is escaped by the template; texts of a transcript carry their
//! language, and their direction is found from themselves.

pub(crate) mod checkout;
mod style;
pub(crate) mod verify;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use transcript_core::{
    transcript::{LanguageTag, TrackKind, Transcript, moment},
    video::{ShortLink, VideoId},
};

pub(crate) use style::content_security_policy;

/// The page of an archived transcript.
pub(crate) fn transcript(transcript: &Transcript, base_url: &str) -> Markup {
    let video = &transcript.video;
    let language = language(transcript);
    let heading = heading(transcript);
    // Elsewhere a moment has no address of its own, and every time would lead to the same place.
    let has_moments = video.address_at(1) != video.address();
    let body = html! {
        header {
            h1 lang=[language] dir="auto" { (heading) }
            p.about {
                @if let Some(author) = &transcript.author { bdi { (author) } " · " }
                a href=(video.address()) { "Watch on " (video.platform().name()) }
            }
            p.about { (kind(transcript)) }
        }
        ol.segments lang=[language] {
            @for segment in &transcript.segments {
                @let seconds = segment.start_ms / 1000;
                li {
                    @if has_moments {
                        a.time href=(video.address_at(seconds)) { (moment(seconds)) }
                    } @else {
                        span.time { (moment(seconds)) }
                    }
                    p dir="auto" { (segment.text) }
                }
            }
        }
        footer {
            p {
                "This transcript as "
                a href=(api_address(base_url, video, "text")) { "text" } ", "
                a href=(api_address(base_url, video, "md")) { "Markdown" } " or "
                a href=(api_address(base_url, video, "json")) { "JSON" } "."
            }
        }
    };
    document(&format!("{heading} – transcript"), body)
}

/// The page of a video without a transcript, and why there is none.
pub(crate) fn missing(video: &VideoId, why: &str) -> Markup {
    document(
        &format!("{} video {} – no transcript", video.platform().name(), video.id()),
        html! {
            h1 { "No transcript" }
            p { (why) }
            p { a href=(video.address()) { "Watch the video on " (video.platform().name()) } }
        },
    )
}

/// The page for when the archive cannot be read.
pub(crate) fn away(video: &VideoId) -> Markup {
    missing(video, "The archive cannot be read right now: please try again in a moment.")
}

/// The page of a short link that was not followed: it leads to the platform, and nowhere else.
pub(crate) fn short(link: &ShortLink) -> Markup {
    let platform = link.platform().name();
    of_short(
        link,
        html! {
            "This is the page of a short link, and which video of " (platform) " it means is not known here: it was \
             not followed yet, or could not be."
        },
    )
}

/// The page of a short link for when it cannot be looked up.
pub(crate) fn short_away(link: &ShortLink) -> Markup {
    of_short(link, html! { "The archive cannot be read right now: please try again in a moment." })
}

fn of_short(link: &ShortLink, why: Markup) -> Markup {
    let platform = link.platform().name();
    document(
        &format!("{platform} short link {} – no transcript", link.code()),
        html! {
            h1 { "No transcript" }
            p { (why) }
            p { a href=(link.address()) { "Open " (link.address()) " on " (platform) } }
            p { "There, copy the link of the video itself: its transcript is found by that one, too." }
        },
    )
}

/// The page of an address that names no video.
pub(crate) fn unknown() -> Markup {
    document(
        "No such video",
        html! {
            h1 { "No such video" }
            p { "This address names no video: check that it was copied whole." }
        },
    )
}

fn document(title: &str, body: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="robots" content="noindex";
                title { (title) }
                style { (PreEscaped(style::SHEET)) }
            }
            body { main { (body) } }
        }
    }
}

fn heading(transcript: &Transcript) -> String {
    let title = transcript.title.as_deref().map(str::trim).filter(|title| !title.is_empty());
    let video = &transcript.video;
    title.map_or_else(|| format!("{} video {}", video.platform().name(), video.id()), str::to_owned)
}

/// The transcript's language as an attribute; none when nobody knows it.
fn language(transcript: &Transcript) -> Option<&str> {
    let language = &transcript.track.language;
    (*language != LanguageTag::unknown()).then_some(language.as_str())
}

/// How the words came to be, and in which language they are.
fn kind(transcript: &Transcript) -> String {
    let how = match transcript.track.kind {
        TrackKind::Human => "Captions",
        TrackKind::Generated => "Captions recognised by a machine",
        TrackKind::Translated => "Captions translated by a machine",
    };
    let language = language(transcript).map_or(String::new(), |language| format!(", language: {language}"));
    format!("{how}{language}, from {}", transcript.source)
}

fn api_address(base_url: &str, video: &VideoId, format: &str) -> String {
    let url = utf8_percent_encode(&video.address(), NON_ALPHANUMERIC).to_string();
    format!("{base_url}/api/transcript?url={url}&format={format}")
}

#[cfg(test)]
mod tests;
