//! Failures of yt-dlp for a list. No I/O.

use transcript_core::{
    supplier::{ListAbsence, ListAbsenceReason, SupplyError, SupplyReason},
    video::Platform,
};

use super::{
    super::classify::{YtDlpFailure, classify_exit},
    ReadPage,
    entry::ListEntries,
};
use crate::{
    social::SocialFailure,
    youtube::{absence, by_alert, no_tab},
};

/// What a run shows.
pub(super) enum Exit {
    /// Videos.
    Page(ReadPage),
    /// There is no such list.
    Absent(ListAbsence),
}

/// Classifies a run that failed without a video.
///
/// # Errors
/// The failure, if it says nothing about the list.
pub(super) fn read_exit(status: Option<i32>, errors: &str, platform: Platform) -> Result<Exit, YtDlpFailure> {
    let line = errors.lines().rev().find(|line| line.starts_with("ERROR: [")).unwrap_or_default();
    let found = match platform {
        Platform::YouTube => youtube_absence(line),
        Platform::TikTok | Platform::Instagram | Platform::X => {
            if line.contains("does not have any videos posted") {
                let entries = ListEntries::default();
                return Ok(Exit::Page(ReadPage { entries, is_end: true, failure: None }));
            }
            profile_absence(line)
        }
    };
    found.map(Exit::Absent).ok_or_else(|| classify_exit(status, errors, platform))
}

fn youtube_absence(line: &str) -> Option<ListAbsence> {
    if line.contains("This channel does not have a ") {
        return Some(no_tab());
    }
    // Only the words of YouTube are about the list.
    by_alert(line.split_once("YouTube said: ")?.1)
}

fn profile_absence(line: &str) -> Option<ListAbsence> {
    let is_private = ["account is private", "likely either private or all of their videos are private"];
    let message = "This profile is private, or all of its videos are.";
    is_private.iter().any(|words| line.contains(words)).then(|| absence(ListAbsenceReason::Private, message))
}

/// The error of a list that was not read. Those of captions name a post.
pub(super) fn list_error(failure: &YtDlpFailure, platform: Platform) -> SupplyError {
    let (error, name) = (failure.error(platform), platform.name());
    let YtDlpFailure::Classified(failure) = failure else { return error };
    match failure {
        SocialFailure::BotCheck | SocialFailure::Forbidden(_) | SocialFailure::Transport(_) => error,
        SocialFailure::Other(words) if words.starts_with("Unable to extract secondary user ID") => {
            let message = format!(
                "{name} does not show this profile: it does not exist, or {name} blocks this server's address. Try \
                 again later; the operator can set upstream.proxy."
            );
            SupplyError::new(SupplyReason::PlatformFault, message)
        }
        SocialFailure::Other(words) => {
            let message = format!("yt-dlp cannot read this list on {name} now. Its message: \"{words}\".");
            SupplyError::new(SupplyReason::PlatformFault, message)
        }
        failure if failure.is_route_blocked() => {
            let message = format!(
                "{name} does not show this list, as it does when many requests come from one address. Try again \
                 later; the operator can set upstream.proxy."
            );
            SupplyError::new(SupplyReason::Throttled(None), message)
        }
        // What it says of a post is not known of a list.
        _ => {
            let message = format!("yt-dlp cannot read this list on {name} now. Try again later.");
            SupplyError::new(SupplyReason::PlatformFault, message)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a run with this error shows: the reason of an absence or failure, or `empty`.
    fn outcome(line: &str, platform: Platform) -> String {
        match read_exit(Some(1), &format!("WARNING: [x] y\nERROR: {line}\n"), platform) {
            Ok(Exit::Page(page)) => {
                assert!(page.is_end && page.entries.videos.is_empty());
                "empty".to_owned()
            }
            Ok(Exit::Absent(absence)) => format!("absent: {}", absence.reason.as_str()),
            Err(failure) => {
                let error = list_error(&failure, platform);
                let message = error.message();
                assert!(message.ends_with('.') && !message.contains("post"), "{message}");
                error.reason().as_str().to_owned()
            }
        }
    }

    #[test]
    fn profile_errors_map_to_reasons() {
        for (line, expect) in [
            ("[tiktok:user] rope: This account does not have any videos posted", "empty"),
            (
                "[tiktok:user] rope: This user's account is private. Log into an account that has access",
                "absent: private",
            ),
            (
                "[tiktok:user] rope: This user's account is likely either private or all of their videos are private. \
                 Log into an account that has access",
                "absent: private",
            ),
            ("[tiktok:user] rope: Unable to extract secondary user ID. If you are able to", "platform_fault"),
            ("[tiktok:user] rope: TikTok API keeps sending the same page", "platform_fault"),
            ("[tiktok:user] rope: Unable to solve JS challenge", "throttled"),
            ("[tiktok:user] rope: Your IP address is blocked from accessing this post", "throttled"),
            ("[tiktok:user] rope: Unable to download JSON metadata: HTTP Error 403: Forbidden", "throttled"),
            (
                "[tiktok:user] rope: Unable to download JSON metadata: HTTP Error 404: Not Found",
                "platform_fault",
            ),
            (
                "[tiktok:user] rope: Unable to download JSON metadata: HTTP Error 503: Service Unavailable",
                "platform_fault",
            ),
            ("something else", "platform_fault"),
        ] {
            assert_eq!(outcome(line, Platform::TikTok), expect, "{line}");
        }
    }

    #[test]
    fn youtube_list_errors_map_to_reasons() {
        for (line, expect) in [
            ("[youtube:tab] PL1: YouTube said: The playlist does not exist.", "absent: removed"),
            ("[youtube:tab] PL1: YouTube said: This playlist is private.", "absent: private"),
            ("[youtube:tab] RD1: YouTube said: This playlist type is unviewable.", "absent: unviewable"),
            ("[youtube:tab] @a: This channel does not have a shorts tab", "absent: no_tab"),
            (
                "[youtube:tab] @a: Unable to download API page: HTTP Error 503: Service Unavailable",
                "platform_fault",
            ),
            ("[youtube:tab] @a: Unable to download API page: HTTP Error 404: Not Found", "platform_fault"),
            ("[youtube:tab] @a: Sign in to confirm you’re not a bot", "bot_check"),
            ("[youtube:tab] @a: Unable to recognize tab page", "platform_fault"),
        ] {
            assert_eq!(outcome(line, Platform::YouTube), expect, "{line}");
        }
    }
}
