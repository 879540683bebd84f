//! How long a failure is stored as an absence.

use std::time::Duration;

use super::AbsencePolicy;
use crate::{
    archive::{Absence, TrackSelector},
    supplier::{SupplyError, SupplyReason},
    time::Timestamp,
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
    Some(Absence {
        video: video.clone(),
        selector: selector.clone(),
        reason: failure.reason().as_str().to_owned(),
        message: failure.message().to_owned(),
        suppliers_tried,
        until,
    })
}
