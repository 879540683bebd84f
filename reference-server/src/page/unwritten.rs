//! The pages of videos that have no transcript: what each is, why, and what can be done.

use maud::{Markup, html};
use transcript_core::video::{ShortLink, VideoId};

use super::{
    May, Page,
    assets::{WIDGET, WORKER},
    document,
};

/// The way up from a watch page.
const ROOT: &str = "../../";

/// What such a page may do: only a button needs the script.
pub(crate) fn may(offer: Option<&Offer>) -> May {
    if offer.is_some() { May::Run } else { May::Show }
}

/// What a visitor can have here.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    /// The last part of the page's address, percent-encoded: addresses below the page begin with it.
    pub(crate) here: String,
    /// The query that is kept: empty, or `?src=…`.
    pub(crate) query: String,
    /// How many new transcripts a visitor has a day.
    pub(crate) per_day: u64,
}

/// The page of a video without a transcript. Without an offer there is no button, and `why` says all.
pub(crate) fn video(video: &VideoId, why: &str, offer: Option<&Offer>) -> Markup {
    let platform = video.platform().name();
    let title = format!("{platform} video {}", video.id());
    shown(
        &title,
        offer,
        html! {
            p.kicker { "No transcript yet" }
            h1 { (title) }
            p { (why) }
            @if let Some(offer) = offer { (button(offer)) }
            p.about { a href=(video.address()) rel="noreferrer" { "Watch it on " (platform) } }
        },
    )
}

/// The page of a video of which there will be no transcript here, or cannot be said what there is.
pub(crate) fn closed(video: &VideoId, kicker: &str, why: &str) -> Markup {
    let platform = video.platform().name();
    let title = format!("{platform} video {}", video.id());
    shown(
        &title,
        None,
        html! {
            p.kicker { (kicker) }
            h1 { (title) }
            p { (why) }
            p.about { a href=(video.address()) rel="noreferrer" { "Watch it on " (platform) } }
        },
    )
}

/// The page for when the archive cannot be read.
pub(crate) fn away(video: &VideoId) -> Markup {
    closed(video, "Out of reach", "The archive cannot be read right now: please try again in a moment.")
}

/// The page of a short link that was not followed: it leads to the platform, and nowhere else.
pub(crate) fn short(link: &ShortLink, offer: Option<&Offer>) -> Markup {
    let platform = link.platform().name();
    of_short(
        link,
        offer,
        html! {
            "This is the page of a short link, and which video of " (platform) " it means is not known here: it was \
             not followed yet, or could not be."
        },
    )
}

/// The page of a short link for when it cannot be looked up.
pub(crate) fn short_away(link: &ShortLink) -> Markup {
    of_short(link, None, html! { "The archive cannot be read right now: please try again in a moment." })
}

fn of_short(link: &ShortLink, offer: Option<&Offer>, why: Markup) -> Markup {
    let platform = link.platform().name();
    let title = format!("{platform} short link {}", link.code());
    shown(
        &title,
        offer,
        html! {
            p.kicker { "No transcript yet" }
            h1 { (title) }
            p { (why) }
            @match offer {
                Some(offer) => { (button(offer)) }
                None => p { "On " (platform) ", copy the link of the video itself: its transcript is found by that one, too." }
            }
            p.about { a href=(link.address()) rel="noreferrer" { "Open " (link.address()) " on " (platform) } }
        },
    )
}

/// The page of an address that names no video.
pub(crate) fn unknown(root: &str) -> Markup {
    document(
        Page::plain("No such video", root),
        html! {
            p.kicker { "Error 404" }
            h1 { "No such video" }
            p { "This address names no video: check that it was copied whole." }
            p { a href=(root) { "Paste the video's link on the front page" } }
        },
    )
}

fn shown(title: &str, offer: Option<&Offer>, body: Markup) -> Markup {
    let title = format!("{title} – no transcript");
    document(Page { has_script: offer.is_some(), ..Page::plain(&title, ROOT) }, body)
}

/// The one button, and all that it needs. Nothing of the check is loaded before it is pressed.
fn button(offer: &Offer) -> Markup {
    let Offer { here, query, per_day } = offer;
    html! {
        section.transcribe
            data-transcribe={ (here) "/transcribe" (query) }
            data-challenge={ (here) "/challenge" }
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
                " a day. First your browser does a short calculation, which keeps machines out; nothing about you \
                 leaves this site."
            }
            noscript {
                p.note {
                    "Having a video transcribed needs JavaScript, for a calculation that keeps machines out. Reading \
                     transcripts does not. With an API key, programs can ask for this video without it."
                }
            }
        }
    }
}
