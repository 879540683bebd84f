//! How YouTube says no: from a playability status to the [`Refusal`] it means. Pure.
//!
//! Structure is looked at first, since sentences come in many languages; then sentences, in English since
//! that is what we ask for, in every place where YouTube has been seen to put them.

use serde_json::Value;
use transcript_core::time::Timestamp;
use url::Url;

use super::{
    player::{Details, field, items, text},
    refusal::Refusal,
};

/// How many sentences are looked at, and how much of each, in characters.
const TEXTS_MAX: usize = 24;
const TEXT_MAX: usize = 1_000;
/// How much of YouTube's own words is quoted, in characters.
const QUOTE_MAX: usize = 200;
/// The page on bot checks, which the sentence beside one links to in every language.
const BOT_CHECK_HELP: &str = "answer/3037019";

/// What the player data says about whether the video plays.
pub(super) struct Signals<'a> {
    status: &'a str,
    playability: &'a Value,
    details: &'a Details,
    /// The sentences, folded; the reason first.
    texts: Vec<String>,
}

impl<'a> Signals<'a> {
    pub(super) fn new(playability: &'a Value, details: &'a Details) -> Self {
        let status = field(playability, "status").as_str().unwrap_or("");
        let texts = sentences(playability).iter().map(|text| fold(text)).collect();
        Self { status, playability, details, texts }
    }

    /// Whether the video plays.
    pub(super) fn is_ok(&self) -> bool {
        self.status == "OK"
    }

    /// Whether YouTube distrusts us: such an answer says nothing about the video.
    pub(super) fn distrust(&self) -> Option<Refusal> {
        let screen = field(self.playability, "errorScreen");
        if !field(screen, "playerCaptchaViewModel").is_null() {
            return Some(Refusal::Captcha);
        }
        let reason = self.texts.first().is_some_and(|reason| reason.contains("not a bot"));
        let login = self.status == "LOGIN_REQUIRED";
        if reason || (login && (self.says(&["not a bot"]) || links_to_bot_check(screen))) {
            return Some(Refusal::BotCheck);
        }
        if self.says(&["content isn't available, try again later"]) {
            return Some(Refusal::SessionLimit);
        }
        None
    }

    /// Why a video does not play, when it does not.
    pub(super) fn refusal(&self) -> Refusal {
        self.by_structure().or_else(|| self.by_sentence()).unwrap_or_else(|| self.by_status())
    }

    fn by_structure(&self) -> Option<Refusal> {
        let has = |value: &Value, name| !field(value, name).is_null();
        let screen = field(self.playability, "errorScreen");
        let offers = ["playerLegacyDesktopYpcOfferRenderer", "playerLegacyDesktopYpcTrailerRenderer"];
        if self.status.starts_with("AGE_") || has(self.playability, "desktopLegacyAgeGateReason") {
            Some(Refusal::Age)
        } else if offers.iter().any(|offer| has(screen, offer)) {
            Some(Refusal::Payment)
        } else {
            None
        }
    }

    fn by_sentence(&self) -> Option<Refusal> {
        // In order: what comes first may hold the words of what comes later.
        let known: [(&[&str], Refusal); 12] = [
            (&["confirm your age", "age-restricted", "inappropriate for some"], Refusal::Age),
            (&["video is private", "private video"], Refusal::Private),
            (&["music premium"], Refusal::MusicPremium),
            (&["members", "join this channel"], Refusal::Members),
            (&["requires payment", "payment to watch", "purchase", "rent this"], Refusal::Payment),
            (&["your country", "your region", "your location"], Refusal::Region),
            (&["recording is not available"], Refusal::RecordingGone),
            (&["will begin in", "premieres in", "premiere will begin"], self.upcoming()),
            (&["event has ended", "stream has ended"], Refusal::JustEnded),
            // What the apps say of themselves when their version is no longer served.
            (
                &["latest version", "no longer supported", "not available on this app", "update the app"],
                Refusal::TooOld,
            ),
            (&["removed", "terminated", "account has been closed", "no longer available"], Refusal::Gone),
            (&["deleted", "copyright"], Refusal::Gone),
        ];
        known.into_iter().find(|(words, _)| self.says(words)).map(|(_, refusal)| refusal)
    }

    fn by_status(&self) -> Refusal {
        match self.status {
            "LIVE_STREAM_OFFLINE" => self.upcoming(),
            // The details are told of videos with an age gate, but neither with a bot check nor of
            // private ones: this is the gate in a language that we don't read.
            "LOGIN_REQUIRED" if self.details.video.is_some() => Refusal::Age,
            "LOGIN_REQUIRED" | "CONTENT_CHECK_REQUIRED" => Refusal::Login,
            "ERROR" => Refusal::Unavailable,
            "UNPLAYABLE" if self.texts.is_empty() || self.says(&["not available", "unavailable"]) => {
                Refusal::WrongClient
            }
            _ => Refusal::Other(self.quote()),
        }
    }

    /// That the video starts later, with the moment where it is named.
    pub(super) fn upcoming(&self) -> Refusal {
        let path = [
            "liveStreamability",
            "liveStreamabilityRenderer",
            "offlineSlate",
            "liveStreamOfflineSlateRenderer",
            "scheduledStartTime",
        ];
        let start = path.into_iter().fold(self.playability, field);
        let seconds = start.as_i64().or_else(|| start.as_str()?.parse().ok());
        let start = seconds.filter(|&seconds| seconds > 0);
        Refusal::Upcoming(start.map(|seconds| Timestamp::from_millis(seconds.saturating_mul(1_000))))
    }

    fn says(&self, words: &[&str]) -> bool {
        self.texts.iter().any(|text| words.iter().any(|words| text.contains(words)))
    }

    /// The first sentence in YouTube's words, or the status where there is none.
    fn quote(&self) -> String {
        let sentences = sentences(self.playability);
        let words = sentences.first().map_or(self.status, String::as_str);
        let clean = words.chars().map(|c| if c.is_control() || c == '"' { ' ' } else { c });
        clean.take(QUOTE_MAX).collect::<String>().trim().trim_end_matches('.').to_owned()
    }
}

/// All sentences of a playability status: the reason first, then by place.
fn sentences(playability: &Value) -> Vec<String> {
    let screen = field(playability, "errorScreen");
    let message = field(screen, "playerErrorMessageRenderer");
    let dialog = field(screen, "confirmDialogRenderer");
    let places = [field(playability, "reason")]
        .into_iter()
        .chain(items(playability, "messages"))
        .chain([field(message, "reason"), field(message, "subreason")])
        .chain(items(dialog, "dialogMessages"))
        .chain([field(playability, "reasonTitle")]);
    places.filter_map(|place| text(place, TEXT_MAX)).take(TEXTS_MAX).collect()
}

fn links_to_bot_check(screen: &Value) -> bool {
    let subreason = field(field(screen, "playerErrorMessageRenderer"), "subreason");
    items(subreason, "runs").take(TEXTS_MAX).any(|run| {
        let link = field(field(field(run, "navigationEndpoint"), "urlEndpoint"), "url");
        link.as_str().is_some_and(|link| link.contains(BOT_CHECK_HELP))
    })
}

/// Lower case, with the typewriter's apostrophe for the printer's.
fn fold(text: &str) -> String {
    text.replace('\u{2019}', "'").to_lowercase()
}

/// What a redirect stands for that came where data was expected; none when it is some other one.
pub(super) fn detour(to: &Url) -> Option<Refusal> {
    if to.path().starts_with("/sorry/") {
        Some(Refusal::Captcha)
    } else if to.host_str().is_some_and(|host| host.starts_with("consent.")) {
        Some(Refusal::Consent)
    } else {
        None
    }
}

/// Whether a body is written in markup, as pages are.
pub(super) fn is_markup(body: &[u8]) -> bool {
    body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'<')
}

/// What a page stands for that came where data was expected; none when it is no page.
pub(super) fn page(body: &[u8]) -> Option<Refusal> {
    if !is_markup(body) {
        return None;
    }
    let page = String::from_utf8_lossy(body);
    if ["g-recaptcha", "recaptcha/api.js", "/sorry/index"].iter().any(|mark| page.contains(mark)) {
        Some(Refusal::Captcha)
    } else if page.contains("consent.youtube.com") || page.contains("consent.google.com") {
        Some(Refusal::Consent)
    } else {
        None
    }
}
