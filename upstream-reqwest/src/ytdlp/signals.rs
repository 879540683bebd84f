//! What yt-dlp's error messages mean. Pure.

use std::time::Duration;

use transcript_core::{
    supplier::{SupplyError, SupplyReason},
    video::Platform,
};

use crate::{http::HttpFault, program::ProgramFault, social::Refusal};

/// Why yt-dlp gave nothing.
#[derive(Debug)]
pub(super) enum Failure {
    /// What it says of the video or the platform.
    Refused(Refusal),
    /// As it is told.
    Told(SupplyError),
    /// Something of the program itself.
    Program(ProgramFault),
}

impl Failure {
    /// The failure to report.
    pub(super) fn error(&self, platform: Platform) -> SupplyError {
        let of = |reason, message: &str| SupplyError::new(reason, message);
        match self {
            Self::Refused(refusal) => refusal.error(platform),
            Self::Told(error) => error.clone(),
            Self::Program(ProgramFault::Start(error)) => SupplyError::new(
                SupplyReason::Misconfigured,
                format!(
                    "yt-dlp could not be started ({}). The operator can correct ytdlp.program.",
                    error.kind()
                ),
            ),
            Self::Program(ProgramFault::Timeout) => {
                of(SupplyReason::Timeout, "yt-dlp took too long. Try again in a moment.")
            }
            Self::Program(ProgramFault::TooMuch) => {
                of(SupplyReason::Unreadable, "yt-dlp's answer is larger than any that is read.")
            }
            Self::Program(ProgramFault::Broken(error)) => SupplyError::new(
                SupplyReason::Unreadable,
                format!("yt-dlp's answer broke off ({}).", error.kind()),
            ),
            Self::Program(ProgramFault::Cancelled) => Refusal::Cancelled.error(platform),
        }
    }

    /// What it says of the address that we ask from: another may fare better, and for how long the platform is best
    /// left alone from this one.
    pub(super) fn distrust(&self) -> Option<Option<Duration>> {
        match self {
            Self::Refused(refusal) if refusal.is_distrust() => Some(refusal.silence()),
            Self::Refused(Refusal::Fault(HttpFault::Throttled(_))) => Some(Some(Duration::from_secs(60))),
            _ => None,
        }
    }
}

/// What the end of a run without an answer means.
pub(super) fn judge(status: Option<i32>, errors: &str, platform: Platform) -> Failure {
    if status == Some(2) {
        let message = "This yt-dlp does not know what it is told. The operator can install a newer one.";
        return Failure::Told(SupplyError::new(SupplyReason::Stale, message));
    }
    let line = errors.lines().rev().find(|line| line.starts_with("ERROR:")).unwrap_or_default();
    let told = |reason, message: &str| Failure::Told(SupplyError::new(reason, message));
    if let Some(failure) = known(line) {
        return failure;
    }
    if line.is_empty() && errors.contains("No module named") {
        return told(
            SupplyReason::Misconfigured,
            "yt-dlp does not find its own modules, as when it was installed with `pip install --user`: no user's folder is \
             read here. The operator can install it with pipx or into a venv, and name that one in ytdlp.program.",
        );
    }
    let said = line.to_ascii_lowercase();
    if let Some(status) = http_status(&said) {
        return match status {
            // X does so to questions that it no longer understands, whatever post they are about.
            404 if platform == Platform::Microblog && said.contains("unable to download json metadata") => {
                told(
                    SupplyReason::Stale,
                    "X no longer understands how this yt-dlp asks. The operator can install a newer one.",
                )
            }
            404 | 410 => Failure::Refused(Refusal::Gone),
            401 | 403 => Failure::Refused(Refusal::Forbidden(status)),
            429 => Failure::Refused(throttled()),
            _ => Failure::Refused(Refusal::Fault(HttpFault::Status(status, None))),
        };
    }
    match line.split_once(": ").map(|(_, rest)| without_id(rest)) {
        Some(words) => Failure::Refused(Refusal::quoting(words)),
        None => {
            let how = status.map_or_else(|| "a signal".to_owned(), |status| format!("exit status {status}"));
            let name = platform.name();
            told(
                SupplyReason::PlatformFault,
                &format!("yt-dlp ended without saying why ({how}), so nothing was learnt from {name}."),
            )
        }
    }
}

/// Why a run that ended well names neither files nor captions of a video, where that is known: so that there may be
/// captions all the same, yt-dlp only warns of most refusals.
pub(super) fn why_bare(errors: &str, platform: Platform) -> Option<Failure> {
    let own = errors.lines().rev().filter(|line| line.starts_with("WARNING: ["));
    own.filter_map(known).next().or_else(|| {
        // What is played there has files: that there are none is a refusal in words that nobody knows yet.
        (platform == Platform::VideoSite).then(|| {
            let message =
                "yt-dlp found neither files nor captions of this video on YouTube, and does not say why.";
            Failure::Told(SupplyError::new(SupplyReason::Unreadable, message).perhaps_the_video())
        })
    })
}

/// What it means that captions which there are were not fetched: nothing that is so of the video.
pub(super) fn of_captions(failure: Failure) -> Failure {
    match failure {
        Failure::Refused(refusal) if refusal.is_distrust() || matches!(refusal, Refusal::Fault(_)) => {
            Failure::Refused(refusal)
        }
        Failure::Told(error)
            if matches!(error.reason(), SupplyReason::Stale | SupplyReason::Misconfigured) =>
        {
            Failure::Told(error)
        }
        Failure::Program(fault) => Failure::Program(fault),
        Failure::Refused(_) | Failure::Told(_) => {
            Failure::Refused(Refusal::UnreadableCaptions("yt-dlp got no file of them".to_owned()))
        }
    }
}

/// What a line of its own says, in words that are known.
fn known(line: &str) -> Option<Failure> {
    let said = line.to_ascii_lowercase().replace('’', "'");
    let says = |parts: &[&str]| parts.iter().any(|part| said.contains(part));
    let told = |reason, message: &str| Some(Failure::Told(SupplyError::new(reason, message)));
    // What only YouTube has.
    if says(&["join this channel", "members-only", "members on level"]) {
        return told(SupplyReason::Members, "The video is only for members of its channel.");
    }
    if says(&["requires payment", "rental", "is available to buy"]) {
        return told(SupplyReason::Payment, "The video must be paid for.");
    }
    if says(&["this live event will begin", "premieres in", "premiere will begin"]) {
        return told(SupplyReason::Upcoming(None), "The video has not started yet.");
    }
    refusal(&says).map(Failure::Refused)
}

fn refusal(says: &dyn Fn(&[&str]) -> bool) -> Option<Refusal> {
    let known: [(&[&str], Refusal); 13] = [
        (&["confirm you're not a bot", "captcha"], Refusal::BotCheck),
        (
            &[
                "too many requests",
                "rate-limit",
                "rate limit",
                "http error 429",
                // YouTube's limit for one address.
                "content isn't available, try again later",
            ],
            throttled(),
        ),
        (&["your ip is likely being blocked"], Refusal::OtherVideo),
        // TikTok's refusal of an address is also what it says of posts that are gone.
        (&["your ip address is blocked"], Refusal::Withheld(None)),
        (
            &["solve js challenge", "challenge data", "unexpected response from webpage", "universal data"],
            Refusal::HeldBack,
        ),
        (
            &["confirm your age", "age-restricted", "nsfw tweet", "comfortable for some audiences"],
            Refusal::Age,
        ),
        (&["private video", "video is private", "account is private", "protected tweet"], Refusal::Private),
        (
            &[
                "geo restriction",
                "not available from your location",
                "not made this video available in your country",
            ],
            Refusal::Region,
        ),
        (
            &[
                "requiring login",
                "registered users",
                "restricted video",
                "do not have permission",
                "use --cookies",
            ],
            Refusal::Login,
        ),
        (
            &["no video in this post", "no video could be found", "is not a video", "no video formats found"],
            Refusal::NoVideo,
        ),
        (
            &["video has been removed", "video unavailable", "has been terminated", "does not exist"],
            Refusal::Gone,
        ),
        (&["empty media response"], Refusal::Withheld(None)),
        (
            &["failed to resolve", "timed out", "connection reset", "connection refused", "transporterror"],
            Refusal::Fault(HttpFault::Unreachable("yt-dlp got no answer")),
        ),
    ];
    known.into_iter().find(|(parts, _)| says(parts)).map(|(_, refusal)| refusal)
}

fn throttled() -> Refusal {
    Refusal::Fault(HttpFault::Throttled(None))
}

/// The status in `http error 403`.
fn http_status(said: &str) -> Option<u16> {
    let digits: String = said.split_once("http error ")?.1.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// The words without the extractor's name and the video's number in front: `[TikTok] 76: words`.
fn without_id(words: &str) -> &str {
    let Some(rest) = words.strip_prefix('[').and_then(|rest| rest.split_once("] ")) else { return words };
    match rest.1.split_once(": ") {
        Some((id, words)) if !id.contains(' ') => words,
        _ => rest.1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_understood() {
        use SupplyReason::{
            Age, BotCheck, Login, Members, NoCaptions, OtherVideo, Payment, PlatformFault, Private, Region,
            Removed, Stale, Throttled, Unreachable, Upcoming,
        };
        for (message, expect) in [
            ("[youtube] x: Sign in to confirm you’re not a bot. Use --cookies-from-browser", BotCheck),
            ("[youtube] x: Join this channel to get access to members-only content", Members),
            ("[youtube] x: This video requires payment to watch.", Payment),
            ("[youtube] x: This live event will begin in 3 hours.", Upcoming(None)),
            ("[youtube] x: Private video. Sign in if you've been granted access", Private),
            ("[youtube] x: Sign in to confirm your age.", Age),
            (
                "[youtube] x: Video unavailable. The uploader has not made this video available in your country",
                Region,
            ),
            ("[youtube] x: Video unavailable. This video has been removed by the uploader", Removed),
            ("[Instagram] x: Requested content is not available, rate-limit reached", Throttled(None)),
            ("[TikTok] 7: Unable to solve JS challenge", BotCheck),
            ("[TikTok] 7: TikTok is requiring login for access to this content", Login),
            ("[twitter] 2: No video could be found in this tweet", NoCaptions),
            ("[twitter] 2: Error(s) while querying API: out of order", PlatformFault),
            ("[TikTok] 7: Unable to download webpage: HTTP Error 404: Not Found", Removed),
            ("[twitter] 2: Unable to download JSON metadata: HTTP Error 503: x", PlatformFault),
            (
                "[youtube] x: All player responses are invalid. Your IP is likely being blocked by Youtube",
                OtherVideo,
            ),
            ("[twitter] 2: Failed to resolve 'x.com' ([Errno -2] Name or service not known)", Unreachable),
        ] {
            let errors = format!("WARNING: much\nERROR: {message}\n");
            let error = judge(Some(1), &errors, Platform::VideoSite).error(Platform::VideoSite);
            let is_rate_limited = |reason: &SupplyReason| matches!(reason, BotCheck | Throttled(_));
            assert!(
                *error.reason() == expect || is_rate_limited(&expect) && is_rate_limited(error.reason()),
                "{message}: {error:?}"
            );
            assert!(error.message().ends_with('.') && !error.message().contains('\n'), "{error}");
        }
        assert_eq!(*judge(Some(2), "", Platform::Reels).error(Platform::Reels).reason(), Stale);
        let odd = judge(Some(1), "ERROR: [twitter] 2: Odd  words\n", Platform::Microblog);
        let odd = odd.error(Platform::Microblog);
        assert!(odd.message().contains("Odd words"));
        assert!(!odd.speaks_against_the_supplier(), "words that nobody knows may be of one video alone");
        assert_eq!(*judge(None, "", Platform::Reels).error(Platform::Reels).reason(), PlatformFault);
    }

    #[test]
    fn questions_that_x_no_longer_understands_say_nothing_of_the_post() {
        let of = |message: &str| {
            let errors = format!("ERROR: [twitter] 2: {message}\n");
            judge(Some(1), &errors, Platform::Microblog).error(Platform::Microblog).reason().clone()
        };
        let stale = of("Unable to download JSON metadata: HTTP Error 404: Not Found");
        assert_eq!(stale, SupplyReason::Stale);
        assert_eq!(of("Unable to download webpage: HTTP Error 404: Not Found"), SupplyReason::Removed);
    }

    #[test]
    fn warnings_say_why_there_is_nothing() {
        let of =
            |line: &str, platform| why_bare(&format!("{line}\nWARNING: No video formats found!\n"), platform);
        let reason = |line: &str| {
            let failure = of(line, Platform::VideoSite).unwrap();
            failure.error(Platform::VideoSite).reason().clone()
        };
        assert_eq!(reason("WARNING: [youtube] Sign in to confirm you’re not a bot."), SupplyReason::BotCheck);
        assert_eq!(reason("WARNING: [youtube] x: Private video"), SupplyReason::Private);
        // Nobody is believed to have no captions for words that nobody knows, nor for warnings of others.
        for line in ["WARNING: [youtube] x: Something new", "WARNING: Private video", ""] {
            assert_eq!(reason(line), SupplyReason::Unreadable, "{line}");
        }
        assert!(of("WARNING: [twitter] 2: Something new", Platform::Microblog).is_none());
    }

    #[test]
    fn captions_that_were_not_fetched_say_nothing_of_the_video() {
        let of = |message: &str| {
            let errors = format!("ERROR: Unable to download video subtitles for 'en': {message}\n");
            of_captions(judge(Some(1), &errors, Platform::VideoSite))
        };
        for (message, expect) in [
            ("HTTP Error 404: Not Found", SupplyReason::Unreadable),
            ("HTTP Error 410: Gone", SupplyReason::Unreadable),
            ("something new", SupplyReason::Unreadable),
            ("HTTP Error 403: Forbidden", SupplyReason::Throttled(None)),
            ("HTTP Error 429: Too Many Requests", SupplyReason::Throttled(None)),
            ("HTTP Error 503: Service Unavailable", SupplyReason::PlatformFault),
            ("[Errno 104] Connection reset by peer", SupplyReason::Unreachable),
        ] {
            assert_eq!(*of(message).error(Platform::VideoSite).reason(), expect, "{message}");
        }
        let silent = of_captions(judge(Some(0), "", Platform::VideoSite)).error(Platform::VideoSite);
        assert_eq!(*silent.reason(), SupplyReason::Unreadable);
    }

    #[test]
    fn a_program_without_its_modules_is_told_with_what_helps() {
        let errors = "Traceback (most recent call last):\n  File \"yt-dlp\", line 5, in <module>\n\
                      ModuleNotFoundError: No module named 'yt_dlp'\n";
        let error = judge(Some(1), errors, Platform::Reels).error(Platform::Reels);
        assert_eq!(*error.reason(), SupplyReason::Misconfigured);
        assert!(error.message().contains("pipx") && error.message().contains("ytdlp.program"), "{error}");
    }
}
