//! Watch pages of videos without a transcript: the reason, the transcribe button, and what to do next.

use maud::{Markup, html};
use transcript_core::{
    transcript::{LanguageTag, TrackInfo},
    video::{ShortLink, VideoId},
};

use super::{
    Frame, NextSteps, PageContext, PagePolicy, Section,
    assets::{TRANSCRIBE, WIDGET, WORKER},
    transcript::languages,
};

/// Messages of the script for the button.
const SCRIPT_MESSAGES: [(&str, &str); 7] = [
    ("solving", "script.solving"),
    ("insecure", "script.insecure"),
    ("unsolved", "script.unsolved"),
    ("unreached", "script.unreached"),
    ("lost", "script.lost"),
    ("failed", "failure.fetch_error"),
    ("done", "script.done"),
];

/// Content security policy of such a page: only the button needs the script.
pub(crate) fn policy(offer: Option<&TranscribeOffer>) -> PagePolicy {
    if offer.is_some_and(TranscribeOffer::has_button) { PagePolicy::Script } else { PagePolicy::Static }
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
    /// New transcripts that are left to this visitor today.
    pub(crate) left: u64,
    /// Whether the network has none left, while the visitor has.
    pub(crate) is_network_spent: bool,
    /// Links below the button. Credits of an account do not pay for it.
    pub(crate) next: NextSteps,
}

impl TranscribeOffer {
    fn has_button(&self) -> bool {
        self.left > 0
    }
}

/// Why a video has no transcript.
#[derive(Clone, Debug)]
pub(crate) enum MissingReason {
    /// Not transcribed yet; the text says more, and the steps lead on without an offer.
    NotYet(String, NextSteps),
    /// Withdrawn by the operator.
    Withdrawn,
    /// The archive cannot be read.
    Unavailable,
}

/// Page of a video without a transcript. Without an offer there is no button, only the reason.
///
/// `query` has the parameters of the page.
pub(crate) fn video(
    context: &PageContext,
    video: &VideoId,
    query: &str,
    reason: &MissingReason,
    offer: Option<&TranscribeOffer>,
) -> Markup {
    let none = NextSteps::default();
    let (kicker, why, next) = match reason {
        MissingReason::NotYet(why, next) => ("missing.kicker", why.as_str(), *next),
        MissingReason::Withdrawn => ("missing.withdrawn_kicker", context.text("missing.withdrawn"), none),
        MissingReason::Unavailable => {
            ("missing.unavailable_kicker", context.text("missing.unavailable"), none)
        }
    };
    let below = match (reason, offer) {
        (MissingReason::Unavailable, _) => reload(context),
        (_, Some(offer)) => button(context, offer),
        (_, None) => Markup::default(),
    };
    let title = unnamed(context, video);
    let texts = [title.as_str(), context.text(kicker), why];
    video_page(context, video, query, texts, (offer, next), &below)
}

/// Heading of a video whose title is unknown.
pub(super) fn unnamed(context: &PageContext, video: &VideoId) -> String {
    context.fill("missing.video", &[("platform", video.platform().name()), ("id", video.id())])
}

fn video_page(
    context: &PageContext,
    video: &VideoId,
    query: &str,
    [title, kicker, why]: [&str; 3],
    steps: (Option<&TranscribeOffer>, NextSteps),
    below: &Markup,
) -> Markup {
    let platform = video.platform().name();
    page(
        context,
        title,
        query,
        steps,
        html! {
            p.kicker { (kicker) }
            h1 dir="auto" { (title) }
            p { (why) }
            (below)
            p.about {
                a href=(video.address()) rel="noreferrer" {
                    (context.fill("missing.watch", &[("platform", platform)]))
                }
            }
        },
    )
}

/// Page of a video that has no transcript in a language, with links to the others. `title` is that of another track,
/// and `rest` has the parameters of the page without those of the track.
pub(crate) fn other_languages(
    context: &PageContext,
    video: &VideoId,
    (query, rest): (&str, &str),
    (title, language): (Option<&str>, &LanguageTag),
    tracks: &[TrackInfo],
) -> Markup {
    let title = title.map_or_else(|| unnamed(context, video), str::to_owned);
    let why = context.fill("missing.language", &[("language", &language.english_name())]);
    let texts = [title.as_str(), context.text("missing.language_kicker"), why.as_str()];
    let steps = (None, NextSteps::default());
    video_page(context, video, query, texts, steps, &languages(context, tracks, None, rest))
}

/// Page of an unresolved short link. It links to the platform.
pub(crate) fn short_link(
    context: &PageContext,
    link: &ShortLink,
    query: &str,
    (offer, next): (Option<&TranscribeOffer>, NextSteps),
) -> Markup {
    let platform = [("platform", link.platform().name())];
    let below = html! {
        p { (context.fill("missing.link_why", &platform)) }
        @match offer {
            Some(offer) => (button(context, offer)),
            None => p { (context.fill("missing.link_copy", &platform)) },
        }
    };
    short_link_page(context, link, query, context.text("missing.kicker"), (offer, next), &below)
}

/// Page of a short link for an unavailable archive.
pub(crate) fn short_link_unavailable(context: &PageContext, link: &ShortLink, query: &str) -> Markup {
    let below = html! {
        p { (context.text("missing.unavailable")) }
        (reload(context))
    };
    let steps = (None, NextSteps::default());
    short_link_page(context, link, query, context.text("missing.unavailable_kicker"), steps, &below)
}

fn short_link_page(
    context: &PageContext,
    link: &ShortLink,
    query: &str,
    kicker: &str,
    steps: (Option<&TranscribeOffer>, NextSteps),
    below: &Markup,
) -> Markup {
    let platform = link.platform().name();
    let title = context.fill("missing.short_link", &[("platform", platform), ("id", link.code())]);
    let open = [("platform", platform), ("address", link.address())];
    page(
        context,
        &title,
        query,
        steps,
        html! {
            p.kicker { (kicker) }
            h1 { (title) }
            (below)
            p.about { a href=(link.address()) rel="noreferrer" { (context.fill("missing.open", &open)) } }
        },
    )
}

/// Page of a path that names no video.
pub(crate) fn unknown(context: &PageContext) -> Markup {
    let title = context.text("missing.unknown_title");
    Frame::new(context, title).section(Section::Transcripts).render(html! {
        h1 { (title) }
        p { (context.text("missing.unknown")) }
        (NextSteps::default().render(context))
    })
}

fn page(
    context: &PageContext,
    title: &str,
    query: &str,
    (offer, next): (Option<&TranscribeOffer>, NextSteps),
    body: Markup,
) -> Markup {
    let tab = context.fill("missing.tab", &[("title", title)]);
    let frame = Frame::new(context, &tab).section(Section::Transcripts).query(query);
    let has_script = policy(offer) == PagePolicy::Script;
    let frame = if has_script { frame.with_script(&TRANSCRIBE) } else { frame };
    frame.render(html! {
        (body)
        (next.render(context))
    })
}

fn reload(context: &PageContext) -> Markup {
    html! { p { a href="" { (context.text("missing.reload")) } } }
}

/// The button and its data, or that the visitor or the network has used today's transcripts. The challenge is loaded
/// only after a click.
fn button(context: &PageContext, offer: &TranscribeOffer) -> Markup {
    let TranscribeOffer { base, query, per_day, left, is_network_spent, .. } = offer;
    let (left, limit) = (left.to_string(), per_day.to_string());
    let counts = [("left", left.as_str()), ("limit", limit.as_str())];
    html! {
        @if offer.has_button() {
            section.transcribe
                data-transcribe={ (base) "/transcribe" (query) }
                data-challenge={ (base) "/challenge" }
                data-widget={ (context.root()) "assets/" (WIDGET.name) }
                data-worker={ (context.root()) "assets/" (WORKER.name) }
                data-messages=(context.json(&SCRIPT_MESSAGES)) {
                button #transcribe type="button" disabled { (context.text("missing.transcribe")) }
                div.work hidden {
                    progress #progress aria-label=(context.text("missing.progress")) {}
                    p #stage {}
                }
                p.unseen #said role="status" {}
                p.error #failed role="alert" hidden {}
                p.hint { (context.fill("missing.left", &counts)) " " (context.text("missing.check")) }
                noscript { p.note { (context.text("missing.noscript")) } }
            }
        } @else if *is_network_spent {
            p.note { (context.text("failure.fair_use")) }
        } @else {
            p.note { (context.fill("missing.used", &counts)) }
            @if context.site().has_account_pages { p.hint { (context.text("missing.credits")) } }
        }
    }
}
