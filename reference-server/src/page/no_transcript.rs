//! Watch pages of videos without a transcript: the reason, and the transcribe button.

use maud::{Markup, html};
use transcript_core::{
    transcript::TrackInfo,
    video::{ShortLink, VideoId},
};

use super::{
    HtmlPage, PagePolicy,
    assets::{WIDGET, WORKER},
    document,
    transcript::languages,
};

/// Relative path from a watch page to the root of the service.
const ROOT: &str = "../../";

/// Content security policy of such a page: only the button needs the script.
pub(crate) fn policy(offer: Option<&TranscribeOffer>) -> PagePolicy {
    if offer.is_some() { PagePolicy::Script } else { PagePolicy::Static }
}

/// Transcription that a visitor can request.
#[derive(Clone, Debug)]
pub(crate) struct TranscribeOffer {
    /// Last segment of the page's path, percent-encoded, as the base of the button's paths.
    pub(crate) base: String,
    /// Query of these paths: empty, or `?src=…`.
    pub(crate) query: String,
    /// New transcripts per visitor and day.
    pub(crate) per_day: u64,
}

/// Page of a video without a transcript. Without an offer there is no button, only the reason.
pub(crate) fn video(video: &VideoId, why: &str, offer: Option<&TranscribeOffer>) -> Markup {
    let below = html! { @if let Some(offer) = offer { (button(offer)) } };
    video_page(video, "No transcript yet", why, offer, &below)
}

/// Page of a video that cannot be transcribed, or whose state is unknown.
pub(crate) fn closed(video: &VideoId, kicker: &str, why: &str) -> Markup {
    video_page(video, kicker, why, None, &html! {})
}

fn video_page(
    video: &VideoId,
    kicker: &str,
    why: &str,
    offer: Option<&TranscribeOffer>,
    below: &Markup,
) -> Markup {
    let platform = video.platform().name();
    let title = format!("{platform} video {}", video.id());
    page(
        &title,
        offer,
        html! {
            p.kicker { (kicker) }
            h1 { (title) }
            p { (why) }
            (below)
            p.about { a href=(video.address()) rel="noreferrer" { "Watch it on " (platform) } }
        },
    )
}

/// Page of a video that has no transcript in the requested language, with links to the others.
pub(crate) fn other_languages(video: &VideoId, why: &str, tracks: &[TrackInfo]) -> Markup {
    video_page(video, "Not in this language", why, None, &languages(tracks, None))
}

/// Page for an unavailable archive.
pub(crate) fn unavailable(video: &VideoId) -> Markup {
    closed(video, "Unavailable", "The archive is unavailable. Reload this page in a few seconds.")
}

/// Page of an unresolved short link. It links to the platform.
pub(crate) fn short_link(link: &ShortLink, offer: Option<&TranscribeOffer>) -> Markup {
    let platform = link.platform().name();
    short_link_page(
        link,
        offer,
        html! {
            "This is the page of a short link. Its video on " (platform) " is unknown: the link was not resolved \
             yet, or could not be resolved."
        },
    )
}

/// Page of a short link for an unavailable archive.
pub(crate) fn short_link_unavailable(link: &ShortLink) -> Markup {
    short_link_page(link, None, html! { "The archive is unavailable. Reload this page in a few seconds." })
}

fn short_link_page(link: &ShortLink, offer: Option<&TranscribeOffer>, why: Markup) -> Markup {
    let platform = link.platform().name();
    let title = format!("{platform} short link {}", link.code());
    page(
        &title,
        offer,
        html! {
            p.kicker { "No transcript yet" }
            h1 { (title) }
            p { (why) }
            @match offer {
                Some(offer) => { (button(offer)) }
                None => p { "Copy the link of the video itself from " (platform) " and paste it on the front page." }
            }
            p.about { a href=(link.address()) rel="noreferrer" { "Open " (link.address()) " on " (platform) } }
        },
    )
}

/// Page of a path that names no video.
pub(crate) fn unknown(root: &str) -> Markup {
    document(
        HtmlPage::plain("No such video", root),
        html! {
            p.kicker { "Error 404" }
            h1 { "No such video" }
            p { "This address names no video. Check that it was copied completely." }
            p { a href=(root) { "Paste the video's link on the front page" } }
        },
    )
}

fn page(title: &str, offer: Option<&TranscribeOffer>, body: Markup) -> Markup {
    let title = format!("{title} – no transcript");
    document(HtmlPage { has_script: offer.is_some(), ..HtmlPage::plain(&title, ROOT) }, body)
}

/// The button and its data. The challenge is loaded only after a click.
fn button(offer: &TranscribeOffer) -> Markup {
    let TranscribeOffer { base, query, per_day } = offer;
    html! {
        section.transcribe
            data-transcribe={ (base) "/transcribe" (query) }
            data-challenge={ (base) "/challenge" }
            data-widget={ (ROOT) "assets/" (WIDGET.name) }
            data-worker={ (ROOT) "assets/" (WORKER.name) } {
            button #transcribe type="button" { "Transcribe this video" }
            div.work hidden {
                progress #progress aria-label="Progress" {}
                p #stage role="status" {}
            }
            p.error #failed role="alert" hidden {}
            p.hint {
                "Free, without an account: " (per_day) " new "
                (if *per_day == 1 { "transcript" } else { "transcripts" })
                " a day. Before that your browser solves a short challenge against bots; no data about you leaves this \
                 site."
            }
            noscript {
                p.note {
                    "Transcribing a video needs JavaScript, for a challenge against bots. Reading does not. \
                     With an API key, programs can request this video without it."
                }
            }
        }
    }
}
