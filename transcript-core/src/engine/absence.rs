//! For how long a failure is remembered.

use std::time::Duration;

use super::AbsencePolicy;
use crate::{
    archive::{Absence, Wish},
    supplier::{SupplyError, SupplyReason},
    time::Timestamp,
    video::VideoId,
};

/// The longest time for which a video that starts later is not asked for again.
const UPCOMING_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// The absence that a failure leaves behind; none for what may be over in a moment.
pub(super) fn of_failure(
    video: &VideoId,
    wish: &Wish,
    failure: &SupplyError,
    asked: Vec<String>,
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
        // A start that is unknown or past says nothing: ask again soon.
        // A far start is a guess of the uploader's, and may be brought forward.
        SupplyReason::Upcoming(Some(start)) if *start > now => (*start).min(now.plus(UPCOMING_MAX)),
        SupplyReason::Upcoming(_) => now.plus(policy.login),
        _ => return None,
    };
    Some(Absence {
        video: video.clone(),
        wish: wish.clone(),
        reason: failure.reason().as_str().to_owned(),
        message: failure.message().to_owned(),
        asked,
        until,
    })
}
