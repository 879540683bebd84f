//! Classifies the error messages of yt-dlp. No I/O.

use std::time::Duration;

use transcript_core::{
    supplier::{SupplyError, SupplyReason},
    video::Platform,
};

use crate::{http::HttpError, process::ProgramError, social::SocialFailure, youtube};

/// The warning of a run with `--ignore-no-formats-error` about a video without files.
const NO_FORMATS: &str = "WARNING: No video formats found";

/// Why yt-dlp returned nothing.
#[derive(Debug)]
pub(super) enum YtDlpFailure {
    /// A failure that the platform suppliers share.
    Classified(SocialFailure),
    /// A failure specific to yt-dlp, as a complete error.
    Reported(SupplyError),
    /// A failure of the program itself.
    Program(ProgramError),
}

impl YtDlpFailure {
    /// The supply error to report.
    pub(super) fn error(&self, platform: Platform) -> SupplyError {
        let of = |reason, message: &str| SupplyError::new(reason, message);
        match self {
            Self::Classified(inner) => inner.error(platform),
            Self::Reported(error) => error.clone(),
            Self::Program(ProgramError::Start(error)) => SupplyError::new(
                SupplyReason::Misconfigured,
                format!(
                    "yt-dlp could not be started ({}). The operator can correct ytdlp.program.",
                    error.kind()
                ),
            ),
            Self::Program(ProgramError::Timeout) => {
                of(SupplyReason::Timeout, "yt-dlp took too long. Try again in a moment.")
            }
            Self::Program(ProgramError::TooMuch) => {
                of(SupplyReason::Unreadable, "The output of yt-dlp is too large.")
            }
            Self::Program(ProgramError::Broken(error)) => SupplyError::new(
                SupplyReason::Unreadable,
                format!("The output of yt-dlp ended early ({}).", error.kind()),
            ),
            Self::Program(ProgramError::Cancelled) => SocialFailure::Cancelled.error(platform),
        }
    }

    /// Whether the egress route is blocked, so that another may succeed.
    ///
    /// The inner value is the time for which to pause the platform on this route. If the post may be the cause, the
    /// route is not blocked: links of such posts must not stop the proxies.
    pub(super) fn route_block(&self) -> Option<Option<Duration>> {
        match self {
            Self::Classified(inner) if inner.may_be_the_post() => None,
            Self::Classified(inner) if inner.is_route_blocked() => Some(inner.platform_pause()),
            Self::Classified(SocialFailure::Transport(HttpError::Throttled(_))) => {
                Some(Some(Duration::from_secs(60)))
            }
            _ => None,
        }
    }
}

/// Classifies a run without a result.
pub(super) fn classify_exit(status: Option<i32>, errors: &str, platform: Platform) -> YtDlpFailure {
    if status == Some(2) {
        let message = "This version of yt-dlp rejects its arguments. The operator can install a newer one.";
        return YtDlpFailure::Reported(SupplyError::new(SupplyReason::Stale, message));
    }
    let line = errors.lines().rev().find(|line| line.starts_with("ERROR:")).unwrap_or_default();
    let report = |reason, message: &str| YtDlpFailure::Reported(SupplyError::new(reason, message));
    if let Some(failure) = classify_line(line) {
        return failure;
    }
    if line.is_empty() && errors.contains("No module named") {
        return report(
            SupplyReason::Misconfigured,
            "yt-dlp does not find its own modules, as after `pip install --user`: user folders are not \
             read. The operator can install it with pipx or into a venv, and set ytdlp.program to that one.",
        );
    }
    let lower = line.to_ascii_lowercase();
    if let Some(status) = http_status(&lower) {
        return match status {
            // X returns this for outdated API requests, for any post.
            404 if platform == Platform::X && lower.contains("unable to download json metadata") => report(
                SupplyReason::Stale,
                "X no longer supports the requests of this yt-dlp. The operator can install a newer one.",
            ),
            404 | 410 => YtDlpFailure::Classified(match platform {
                // YouTube answers for a removed video with 200: an address of its API is missing.
                Platform::YouTube => SocialFailure::from_platform_message(words(line).unwrap_or(line)),
                Platform::TikTok | Platform::Instagram | Platform::X => SocialFailure::Removed,
            }),
            401 | 403 => YtDlpFailure::Classified(SocialFailure::Forbidden(status)),
            429 => YtDlpFailure::Classified(throttled()),
            _ => YtDlpFailure::Classified(SocialFailure::Transport(HttpError::Status(status, None))),
        };
    }
    match words(line) {
        Some(words) => YtDlpFailure::Classified(SocialFailure::from_platform_message(words)),
        None => {
            let how = status.map_or_else(|| "a signal".to_owned(), |status| format!("exit status {status}"));
            let name = platform.name();
            report(
                SupplyReason::PlatformFault,
                &format!("yt-dlp ended without an error message ({how}), so {name} returned nothing."),
            )
        }
    }
}

/// Why a successful run reports neither files nor captions.
///
/// yt-dlp only warns of most failures, since there may be captions without files. Its own warning follows that of an
/// extractor: alone it names no reason.
pub(super) fn explain_missing(errors: &str, platform: Platform) -> Option<YtDlpFailure> {
    let own = errors.lines().rev().filter(|line| line.starts_with("WARNING: ["));
    own.filter_map(classify_line).next().or_else(|| {
        // Every playable video on YouTube has files: their absence is a failure with an unknown message.
        let is_unexplained =
            platform == Platform::YouTube || errors.lines().any(|line| line.starts_with(NO_FORMATS));
        is_unexplained.then(|| {
            let message = format!(
                "yt-dlp found neither files nor captions of this video on {}, and named no reason.",
                platform.name()
            );
            YtDlpFailure::Reported(SupplyError::new(SupplyReason::Unreadable, message).ambiguous())
        })
    })
}

/// Classifies a failed fetch of existing captions: it says nothing about the video.
pub(super) fn caption_failure(failure: YtDlpFailure) -> YtDlpFailure {
    match failure {
        YtDlpFailure::Classified(inner)
            if inner.is_route_blocked() || matches!(inner, SocialFailure::Transport(_)) =>
        {
            YtDlpFailure::Classified(inner)
        }
        YtDlpFailure::Reported(error)
            if matches!(error.reason(), SupplyReason::Stale | SupplyReason::Misconfigured) =>
        {
            YtDlpFailure::Reported(error)
        }
        YtDlpFailure::Program(fault) => YtDlpFailure::Program(fault),
        YtDlpFailure::Classified(_) | YtDlpFailure::Reported(_) => YtDlpFailure::Classified(
            SocialFailure::UnreadableCaptions("yt-dlp wrote no complete file".to_owned()),
        ),
    }
}

/// Classifies a failed fetch of a machine translation. YouTube throttles these alone, and much sooner than all else.
pub(super) fn translation_failure(failure: YtDlpFailure) -> YtDlpFailure {
    match failure {
        YtDlpFailure::Classified(SocialFailure::Transport(HttpError::Throttled(named))) => {
            YtDlpFailure::Reported(youtube::translations_throttled(named))
        }
        other => other,
    }
}

/// Classifies a line by known phrases.
fn classify_line(line: &str) -> Option<YtDlpFailure> {
    let lower = line.to_ascii_lowercase().replace('’', "'");
    let mentions = |parts: &[&str]| parts.iter().any(|part| lower.contains(part));
    let report = |reason, message: &str| Some(YtDlpFailure::Reported(SupplyError::new(reason, message)));
    // Phrases of YouTube only.
    if mentions(&["music premium"]) {
        return report(SupplyReason::Members, "The video is only for members of YouTube Music Premium.");
    }
    if mentions(&["join this channel", "members-only", "members on level"]) {
        return report(SupplyReason::Members, "The video is only for members of its channel.");
    }
    if mentions(&["requires payment", "rental", "is available to buy"]) {
        return report(SupplyReason::Payment, "The video must be paid for.");
    }
    if mentions(&["this live event will begin", "premieres in", "premiere will begin"]) {
        return report(SupplyReason::Upcoming(None), "The video has not started yet.");
    }
    if mentions(&["event has ended", "stream has ended"]) {
        return Some(YtDlpFailure::Reported(youtube::just_ended()));
    }
    classify_phrase(&mentions).or_else(|| unavailable(line, &lower)).map(YtDlpFailure::Classified)
}

/// Classifies what YouTube says of an unavailable video.
///
/// The same words precede the reason for a removed video, and the one for a client that it blocks or does not serve.
fn unavailable(line: &str, lower: &str) -> Option<SocialFailure> {
    const REMOVED: [&str; 6] =
        ["removed", "terminated", "no longer available", "does not exist", "deleted", "copyright"];
    let said = ["video unavailable", "video is unavailable"];
    let (_, reason) = said.into_iter().find_map(|said| lower.split_once(said))?;
    let is_bare = matches!(reason.trim_matches([' ', '.']), "" | "this video is unavailable");
    if is_bare || REMOVED.iter().any(|words| reason.contains(words)) {
        return Some(SocialFailure::Removed);
    }
    words(line).map(SocialFailure::from_platform_message)
}

fn classify_phrase(mentions: &dyn Fn(&[&str]) -> bool) -> Option<SocialFailure> {
    let phrases: [(&[&str], SocialFailure); 13] = [
        (&["confirm you're not a bot", "captcha"], SocialFailure::BotCheck),
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
        (&["your ip is likely being blocked"], SocialFailure::OtherVideo),
        // TikTok's message for a blocked address is also its message for deleted posts.
        (&["your ip address is blocked"], SocialFailure::Withheld(None)),
        (
            &["solve js challenge", "challenge data", "unexpected response from webpage", "universal data"],
            SocialFailure::PostMissing,
        ),
        (
            &[
                "confirm your age",
                "age-restricted",
                "inappropriate for some",
                "nsfw tweet",
                "comfortable for some audiences",
            ],
            SocialFailure::Age,
        ),
        (
            &["private video", "video is private", "account is private", "protected tweet"],
            SocialFailure::Private,
        ),
        (
            &["geo restriction", "not available from your location", "in your country", "in your region"],
            SocialFailure::Region,
        ),
        // The advice to log in follows for posts of any kind.
        (&["empty media response"], SocialFailure::Withheld(None)),
        (
            &[
                "requiring login",
                "registered users",
                "restricted video",
                "do not have permission",
                "use --cookies",
            ],
            SocialFailure::Login,
        ),
        (&["no video in this post", "no video could be found", "is not a video"], SocialFailure::NoVideo),
        (
            &[
                "video has been removed",
                "has been terminated",
                "does not exist",
                "recording is not available",
            ],
            SocialFailure::Removed,
        ),
        (
            &["failed to resolve", "timed out", "connection reset", "connection refused", "transporterror"],
            SocialFailure::Transport(HttpError::Unreachable("yt-dlp received no response")),
        ),
    ];
    phrases.into_iter().find(|(parts, _)| mentions(parts)).map(|(_, inner)| inner)
}

fn throttled() -> SocialFailure {
    SocialFailure::Transport(HttpError::Throttled(None))
}

/// The status in `http error 403`.
fn http_status(lower: &str) -> Option<u16> {
    let digits: String =
        lower.split_once("http error ")?.1.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// The message of a line, without the extractor's name and the video's id in front: `ERROR: [TikTok] 76: words`.
fn words(line: &str) -> Option<&str> {
    line.split_once(": ").map(|(_, rest)| without_id(rest))
}

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
    fn error_message_is_classified() {
        use SupplyReason::{
            Age, BotCheck, Live, Login, Members, NoCaptions, OtherVideo, Payment, PlatformFault, Private,
            Region, Removed, Stale, Throttled, Unreachable, Upcoming,
        };
        for (message, expect) in [
            ("[youtube] x: Sign in to confirm you’re not a bot. Use --cookies-from-browser", BotCheck),
            ("[youtube] x: Join this channel to get access to members-only content", Members),
            ("[youtube] x: This video requires payment to watch.", Payment),
            ("[youtube] x: This live event will begin in 3 hours.", Upcoming(None)),
            ("[youtube] x: This live event has ended.", Live),
            ("[youtube] x: Private video. Sign in if you've been granted access", Private),
            ("[youtube] x: Sign in to confirm your age.", Age),
            (
                "[youtube] x: Video unavailable. The uploader has not made this video available in your country",
                Region,
            ),
            ("[youtube] x: Video unavailable. This video has been removed by the uploader", Removed),
            ("[youtube] x: This live stream recording is not available.", Removed),
            ("[youtube] x: This video is only available to Music Premium members", Members),
            ("[youtube] x: This video may be inappropriate for some users.", Age),
            ("[Instagram] x: Requested content is not available, rate-limit reached", Throttled(None)),
            ("[TikTok] 7: Unable to solve JS challenge", BotCheck),
            ("[TikTok] 7: TikTok is requiring login for access to this content", Login),
            ("[twitter] 2: No video could be found in this tweet", NoCaptions),
            ("[twitter] 2: Error(s) while querying API: out of order", PlatformFault),
            ("[youtube] x: Unable to download API page: HTTP Error 404: Not Found", PlatformFault),
            (
                "[Instagram] x: Instagram sent an empty media response. Check if this post is accessible in your \
                 browser without being logged-in. If it is not, then use --cookies-from-browser or --cookies",
                PlatformFault,
            ),
            ("[TikTok] 7: No video formats found!; please report this issue", PlatformFault),
            ("[TikTok] 7: Unable to download webpage: HTTP Error 404: Not Found", Removed),
            ("[twitter] 2: Unable to download JSON metadata: HTTP Error 503: x", PlatformFault),
            (
                "[youtube] x: All player responses are invalid. Your IP is likely being blocked by Youtube",
                OtherVideo,
            ),
            ("[twitter] 2: Failed to resolve 'x.com' ([Errno -2] Name or service not known)", Unreachable),
        ] {
            let errors = format!("WARNING: much\nERROR: {message}\n");
            let platform = match message.split(']').next() {
                Some("[TikTok") => Platform::TikTok,
                Some("[Instagram") => Platform::Instagram,
                Some("[twitter") => Platform::X,
                _ => Platform::YouTube,
            };
            let error = classify_exit(Some(1), &errors, platform).error(platform);
            let is_rate_limited = |reason: &SupplyReason| matches!(reason, BotCheck | Throttled(_));
            assert!(
                *error.reason() == expect || is_rate_limited(&expect) && is_rate_limited(error.reason()),
                "{message}: {error:?}"
            );
            assert!(error.message().ends_with('.') && !error.message().contains('\n'), "{error}");
        }
        assert_eq!(
            *classify_exit(Some(2), "", Platform::Instagram).error(Platform::Instagram).reason(),
            Stale
        );
        let odd = classify_exit(Some(1), "ERROR: [twitter] 2: Odd  words\n", Platform::X);
        let odd = odd.error(Platform::X);
        assert!(odd.message().contains("Odd words"));
        assert!(!odd.counts_against_supplier(), "an unknown message may concern one video only");
        assert_eq!(
            *classify_exit(None, "", Platform::Instagram).error(Platform::Instagram).reason(),
            PlatformFault
        );
    }

    #[test]
    fn youtube_unavailable_video_is_removed_only_if_it_says_so() {
        let error = |sentence: &str| {
            let errors = format!("WARNING: [youtube] {sentence}\nWARNING: No video formats found!\n");
            explain_missing(&errors, Platform::YouTube).unwrap().error(Platform::YouTube)
        };
        for sentence in [
            "Video unavailable",
            "Video unavailable. This video is unavailable",
            "This video is unavailable",
            "Video unavailable. This video was removed because it was too long",
            "Video unavailable. This video is no longer available because the uploader has closed their account.",
            "Video unavailable. This video contains content from SME, who has blocked it on copyright grounds",
        ] {
            assert_eq!(*error(sentence).reason(), SupplyReason::Removed, "{sentence}");
        }
        for sentence in [
            "Video unavailable. This video contains content from SME, who has blocked it in your country on \
             copyright grounds",
            "Video unavailable. This video is not available in your region",
        ] {
            assert_eq!(*error(sentence).reason(), SupplyReason::Region, "{sentence}");
        }
        // Of a blocked session, of a client that does not serve the video, and of an embedded player.
        for sentence in [
            "Video unavailable. This content isn’t available.",
            "Video unavailable. This video is not available",
            "Video unavailable. Playback on other websites has been disabled by the video owner",
        ] {
            let error = error(sentence);
            assert_eq!(*error.reason(), SupplyReason::PlatformFault, "{sentence}");
            assert!(!error.reason().is_final() && !error.counts_against_supplier(), "{error:?}");
            assert!(error.message().contains(sentence.trim_end_matches('.')), "{error}");
        }
    }

    #[test]
    fn x_outdated_request_is_stale_not_removed() {
        let of = |message: &str| {
            let errors = format!("ERROR: [twitter] 2: {message}\n");
            classify_exit(Some(1), &errors, Platform::X).error(Platform::X).reason().clone()
        };
        let stale = of("Unable to download JSON metadata: HTTP Error 404: Not Found");
        assert_eq!(stale, SupplyReason::Stale);
        assert_eq!(of("Unable to download webpage: HTTP Error 404: Not Found"), SupplyReason::Removed);
    }

    #[test]
    fn warning_explains_missing_files() {
        let of = |line: &str, platform| {
            explain_missing(&format!("{line}\nWARNING: No video formats found!\n"), platform)
        };
        let reason = |line: &str| {
            let failure = of(line, Platform::YouTube).unwrap();
            failure.error(Platform::YouTube).reason().clone()
        };
        for platform in [Platform::TikTok, Platform::Instagram, Platform::X] {
            let error = of("WARNING: [x] 2: Something new", platform).unwrap().error(platform);
            assert_eq!(*error.reason(), SupplyReason::Unreadable, "{platform:?}");
            assert!(!error.counts_against_supplier() && error.message().contains(platform.name()), "{error}");
            assert!(explain_missing("WARNING: [x] 2: Something new\n", platform).is_none());
        }
        let without_video = of("WARNING: [twitter] 2: No video could be found in this tweet", Platform::X);
        assert_eq!(*without_video.unwrap().error(Platform::X).reason(), SupplyReason::NoCaptions);
        assert_eq!(reason("WARNING: [youtube] Sign in to confirm you’re not a bot."), SupplyReason::BotCheck);
        assert_eq!(reason("WARNING: [youtube] x: Private video"), SupplyReason::Private);
        // An unknown phrase, or a warning of another origin, never means that there are no captions.
        for line in ["WARNING: [youtube] x: Something new", "WARNING: Private video", ""] {
            assert_eq!(reason(line), SupplyReason::Unreadable, "{line}");
        }
    }

    #[test]
    fn failure_that_may_be_the_post_does_not_block_route() {
        let of = |message: &str, platform| {
            classify_exit(Some(1), &format!("ERROR: {message}\n"), platform).route_block()
        };
        let empty = "[Instagram] x: Instagram sent an empty media response. Check if this post is accessible";
        assert_eq!(of(empty, Platform::Instagram), None);
        let blocked = "[TikTok] 7: Your IP address is blocked from accessing this post";
        assert_eq!(of(blocked, Platform::TikTok), None);
        let check = "[youtube] x: Sign in to confirm you’re not a bot.";
        assert!(of(check, Platform::YouTube).flatten().is_some());
        assert_eq!(of("[twitter] 2: HTTP Error 403: Forbidden", Platform::X), Some(None));
    }

    #[test]
    fn failed_caption_fetch_is_not_about_video() {
        let of = |message: &str| {
            let errors = format!("ERROR: Unable to download video subtitles for 'en': {message}\n");
            caption_failure(classify_exit(Some(1), &errors, Platform::YouTube))
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
            assert_eq!(*of(message).error(Platform::YouTube).reason(), expect, "{message}");
        }
        let silent = caption_failure(classify_exit(Some(0), "", Platform::YouTube)).error(Platform::YouTube);
        assert_eq!(*silent.reason(), SupplyReason::Unreadable);
    }

    #[test]
    fn missing_modules_error_names_remedy() {
        let errors = "Traceback (most recent call last):\n  File \"yt-dlp\", line 5, in <module>\n\
                      ModuleNotFoundError: No module named 'yt_dlp'\n";
        let error = classify_exit(Some(1), errors, Platform::Instagram).error(Platform::Instagram);
        assert_eq!(*error.reason(), SupplyReason::Misconfigured);
        assert!(error.message().contains("pipx") && error.message().contains("ytdlp.program"), "{error}");
    }
}
