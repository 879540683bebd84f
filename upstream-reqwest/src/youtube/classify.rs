//! Maps a playability status to a [`YouTubeFailure`]. No I/O.
//!
//! The structure of the response is checked first, because it is independent of the language. Then its sentences are
//! searched, in every field where YouTube has been observed to put them. They are in English, which requests set.

use serde_json::Value;
use transcript_core::time::Timestamp;
use url::Url;

use super::{details::YouTubeDetails, failure::YouTubeFailure, player::text};
use crate::json::{field, items};

/// Maximum number of sentences read, and of characters of each.
const TEXTS_MAX: usize = 24;
const TEXT_MAX: usize = 1_000;
/// Maximum length of a quoted sentence in characters.
const QUOTE_MAX: usize = 200;
/// The help page on bot checks, which the message links to in every language.
const BOT_CHECK_HELP: &str = "answer/3037019";

/// The playability of a video according to its player data.
pub(super) struct Playability<'a> {
    status: &'a str,
    playability: &'a Value,
    details: &'a YouTubeDetails,
    /// The normalized sentences; the reason first.
    texts: Vec<String>,
}

impl<'a> Playability<'a> {
    pub(super) fn new(playability: &'a Value, details: &'a YouTubeDetails) -> Self {
        let status = field(playability, "status").as_str().unwrap_or("");
        let texts = sentences(playability).iter().map(|text| normalize(text)).collect();
        Self { status, playability, details, texts }
    }

    /// Whether the video plays.
    pub(super) fn is_ok(&self) -> bool {
        self.status == "OK"
    }

    /// The failure if YouTube blocks the client. Such a response has no information about the video.
    pub(super) fn block(&self) -> Option<YouTubeFailure> {
        let screen = field(self.playability, "errorScreen");
        if !field(screen, "playerCaptchaViewModel").is_null() {
            return Some(YouTubeFailure::Captcha);
        }
        let reason = self.texts.first().is_some_and(|reason| reason.contains("not a bot"));
        let login = self.status == "LOGIN_REQUIRED";
        if reason || (login && (self.mentions(&["not a bot"]) || links_to_bot_check(screen))) {
            return Some(YouTubeFailure::BotCheck);
        }
        if self.mentions(&["content isn't available, try again later"]) {
            return Some(YouTubeFailure::SessionLimit);
        }
        None
    }

    /// Why the video does not play; only valid if it does not.
    pub(super) fn failure(&self) -> YouTubeFailure {
        self.by_structure().or_else(|| self.by_sentence()).unwrap_or_else(|| self.by_status())
    }

    fn by_structure(&self) -> Option<YouTubeFailure> {
        let has = |value: &Value, name| !field(value, name).is_null();
        let screen = field(self.playability, "errorScreen");
        let offers = ["playerLegacyDesktopYpcOfferRenderer", "playerLegacyDesktopYpcTrailerRenderer"];
        if self.status.starts_with("AGE_") || has(self.playability, "desktopLegacyAgeGateReason") {
            Some(YouTubeFailure::Age)
        } else if offers.iter().any(|offer| has(screen, offer)) {
            Some(YouTubeFailure::Payment)
        } else {
            None
        }
    }

    fn by_sentence(&self) -> Option<YouTubeFailure> {
        // The order matters: earlier entries may contain the words of later ones.
        let known: [(&[&str], YouTubeFailure); 12] = [
            (&["confirm your age", "age-restricted", "inappropriate for some"], YouTubeFailure::Age),
            (&["video is private", "private video"], YouTubeFailure::Private),
            (&["music premium"], YouTubeFailure::MusicPremium),
            (&["members", "join this channel"], YouTubeFailure::Members),
            (&["requires payment", "payment to watch", "purchase", "rent this"], YouTubeFailure::Payment),
            (&["your country", "your region", "your location"], YouTubeFailure::Region),
            (&["recording is not available"], YouTubeFailure::RecordingRemoved),
            (&["will begin in", "premieres in", "premiere will begin"], self.upcoming()),
            (&["event has ended", "stream has ended"], YouTubeFailure::JustEnded),
            // Messages of the apps when their version is no longer served.
            (
                &["latest version", "no longer supported", "not available on this app", "update the app"],
                YouTubeFailure::TooOld,
            ),
            (
                &["removed", "terminated", "account has been closed", "no longer available"],
                YouTubeFailure::Removed,
            ),
            (&["deleted", "copyright"], YouTubeFailure::Removed),
        ];
        known.into_iter().find(|(words, _)| self.mentions(words)).map(|(_, failure)| failure)
    }

    fn by_status(&self) -> YouTubeFailure {
        match self.status {
            "LIVE_STREAM_OFFLINE" if self.details.is_ended => YouTubeFailure::JustEnded,
            "LIVE_STREAM_OFFLINE" => self.upcoming(),
            // Videos with an age gate have details, those with a bot check and private ones do not: this is the age
            // gate in another language.
            "LOGIN_REQUIRED" if self.details.video.is_some() => YouTubeFailure::Age,
            "LOGIN_REQUIRED" | "CONTENT_CHECK_REQUIRED" => YouTubeFailure::Login,
            "ERROR" => YouTubeFailure::Unavailable,
            "UNPLAYABLE" if self.texts.is_empty() || self.mentions(&["not available", "unavailable"]) => {
                YouTubeFailure::WrongClient
            }
            _ => YouTubeFailure::Other(self.quote()),
        }
    }

    /// An upcoming video, with its start time if known.
    pub(super) fn upcoming(&self) -> YouTubeFailure {
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
        YouTubeFailure::Upcoming(start.map(|seconds| Timestamp::from_millis(seconds.saturating_mul(1_000))))
    }

    fn mentions(&self, words: &[&str]) -> bool {
        self.texts.iter().any(|text| words.iter().any(|words| text.contains(words)))
    }

    /// The first sentence in YouTube's wording, or the status if there is none.
    fn quote(&self) -> String {
        let sentences = sentences(self.playability);
        let words = sentences.first().map_or(self.status, String::as_str);
        let clean = words.chars().map(|c| if c.is_control() || c == '"' { ' ' } else { c });
        clean.take(QUOTE_MAX).collect::<String>().trim().trim_end_matches('.').to_owned()
    }
}

/// All sentences of a playability status: the reason first, then in field order.
fn sentences(playability: &Value) -> Vec<String> {
    let screen = field(playability, "errorScreen");
    let message = field(screen, "playerErrorMessageRenderer");
    let dialog = field(screen, "confirmDialogRenderer");
    // As yt-dlp 2026.10.26 reads it.
    let interstitial =
        field(field(field(screen, "playerInterstitialRenderer"), "content"), "interstitialViewModel");
    let candidates = [field(playability, "reason")]
        .into_iter()
        .chain(items(playability, "messages", TEXTS_MAX))
        .chain([field(message, "reason"), field(message, "subreason")])
        .chain(["title", "description"].map(|name| field(field(interstitial, name), "content")))
        .chain(items(dialog, "dialogMessages", TEXTS_MAX))
        .chain([field(playability, "reasonTitle")]);
    candidates.filter_map(|candidate| text(candidate, TEXT_MAX)).take(TEXTS_MAX).collect()
}

fn links_to_bot_check(screen: &Value) -> bool {
    let subreason = field(field(screen, "playerErrorMessageRenderer"), "subreason");
    items(subreason, "runs", TEXTS_MAX).any(|run| {
        let link = field(field(field(run, "navigationEndpoint"), "urlEndpoint"), "url");
        link.as_str().is_some_and(|link| link.contains(BOT_CHECK_HELP))
    })
}

/// Lowercases a text and replaces typographic apostrophes.
fn normalize(text: &str) -> String {
    text.replace('\u{2019}', "'").to_lowercase()
}

/// Classifies a redirect of a data request; `None` for an unknown target.
pub(super) fn classify_redirect(to: &Url) -> Option<YouTubeFailure> {
    if to.path().starts_with("/sorry/") {
        Some(YouTubeFailure::Captcha)
    } else if to.host_str().is_some_and(|host| host.starts_with("consent.")) {
        Some(YouTubeFailure::Consent)
    } else {
        None
    }
}

/// Whether a body is markup, as pages are.
pub(super) fn is_markup(body: &[u8]) -> bool {
    body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'<')
}

/// Classifies a page that arrived in place of data; `None` if it is not a known page.
pub(super) fn page(body: &[u8]) -> Option<YouTubeFailure> {
    if !is_markup(body) {
        return None;
    }
    let page = String::from_utf8_lossy(body);
    if ["g-recaptcha", "recaptcha/api.js", "/sorry/index"].iter().any(|mark| page.contains(mark)) {
        Some(YouTubeFailure::Captcha)
    } else if page.contains("consent.youtube.com") || page.contains("consent.google.com") {
        Some(YouTubeFailure::Consent)
    } else {
        None
    }
}
