//! How long a failure is stored as an absence.

use std::time::Duration;

use super::AbsencePolicy;
use crate::{
    archive::{Absence, TrackSelector},
    supplier::{SupplyError, SupplyReason},
    time::{LEASE_MAX, Timestamp},
    video::VideoId,
};

/// The longest absence of a video that starts later.
const UPCOMING_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// The absence that a failure leaves; `None` for transient failures.
pub(super) fn from_failure(
    video: &VideoId,
    selector: &TrackSelector,
    failure: &SupplyError,
    suppliers_tried: Vec<String>,
    policy: &AbsencePolicy,
    now: Timestamp,
) -> Option<Absence> {
    let until = match failure.reason() {
        SupplyReason::NoCaptions | SupplyReason::NoLanguage(_) => now.plus(policy.no_captions),
        SupplyReason::Private | SupplyReason::Removed | SupplyReason::Region | SupplyReason::Payment => {
            now.plus(policy.gone)
        }
        SupplyReason::Age | SupplyReason::Members | SupplyReason::Login | SupplyReason::Live => {
            now.plus(policy.login)
        }
        // An unknown or past start says nothing: retry soon.
        // A far start is the uploader's guess and may be moved forward.
        SupplyReason::Upcoming(Some(start)) if *start > now => (*start).min(now.plus(UPCOMING_MAX)),
        SupplyReason::Upcoming(_) => now.plus(policy.login),
        _ => return None,
    };
    // After the wait that a supplier named, a retry must reach it.
    let until = failure.retry_after().map_or(until, |wait| until.min(now.plus(wait)));
    Some(Absence {
        video: video.clone(),
        selector: selector.clone(),
        reason: failure.reason().as_str().to_owned(),
        message: failure.message().to_owned(),
        suppliers_tried,
        until,
    })
}

/// Whether an absence lasts longer than one that is stored now, by more than [`LEASE_MAX`].
///
/// It is void: a clock that was ahead and was corrected since stored it, or a server with other settings.
pub(super) fn is_too_long(absence: &Absence, policy: &AbsencePolicy, now: Timestamp) -> bool {
    let AbsencePolicy { no_captions, gone, login } = *policy;
    let longest = match absence.reason.as_str() {
        "no_captions" | "no_language" => no_captions,
        "private" | "removed" | "region" | "payment" => gone,
        "age" | "members" | "login" | "live" => login,
        // The start of the video, or an unknown reason.
        _ => no_captions.max(gone).max(login).max(UPCOMING_MAX),
    };
    absence.until > now.plus(longest).plus(LEASE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::video::Platform;

    #[test]
    fn absence_ends_with_wait_of_supplier() {
        let video = VideoId::new(Platform::YouTube, "dQw4w9WgXcQ").unwrap();
        let policy = AbsencePolicy::default();
        let now = Timestamp::from_millis(1_795_132_800_000);
        let lifetime = |failure: SupplyError| {
            let stored = from_failure(&video, &TrackSelector::Default, &failure, Vec::new(), &policy, now);
            stored.unwrap().until.since(now)
        };
        let live = || SupplyError::new(SupplyReason::Live, "It is live.");
        let minute = Duration::from_secs(60);
        assert_eq!(lifetime(live()), policy.login);
        assert_eq!(lifetime(live().with_retry_after(minute)), minute);
        assert_eq!(lifetime(live().with_retry_after(policy.login + minute)), policy.login);
    }

    #[test]
    fn absence_of_corrected_clock_is_too_long() {
        let video = VideoId::new(Platform::YouTube, "dQw4w9WgXcQ").unwrap();
        let policy = AbsencePolicy::default();
        let now = Timestamp::from_millis(1_795_132_800_000);
        let far = now.plus(30 * UPCOMING_MAX);
        for reason in [
            SupplyReason::NoCaptions,
            SupplyReason::NoLanguage(Vec::new()),
            SupplyReason::Private,
            SupplyReason::Removed,
            SupplyReason::Region,
            SupplyReason::Payment,
            SupplyReason::Age,
            SupplyReason::Members,
            SupplyReason::Login,
            SupplyReason::Live,
            SupplyReason::Upcoming(Some(far)),
        ] {
            let failure = SupplyError::new(reason, "There is none.");
            let stored = from_failure(&video, &TrackSelector::Default, &failure, Vec::new(), &policy, now);
            let absence = stored.unwrap();
            assert!(!is_too_long(&absence, &policy, now.minus(LEASE_MAX)), "{absence:?}");
            let corrected = now.minus(LEASE_MAX + Duration::from_millis(1));
            assert!(is_too_long(&absence, &policy, corrected), "{absence:?}");
        }
    }
}
