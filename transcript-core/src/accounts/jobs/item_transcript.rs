//! The transcript of an item of a job, for its results.

use std::sync::Arc;

use super::{
    AccountJobs, ItemFailure, ItemStatus, Job, JobItem,
    worker::{DAMAGED, failure},
};
use crate::{
    accounts::{
        V1Error,
        transcript::{LanguagePreference, PreferredTrack},
    },
    archive::StoredTranscript,
};

/// The reason of a delivered transcript that is no longer stored.
const MISSING: &str = "missing";
/// What the results say of it.
const MISSING_MESSAGE: &str = "The transcript of this video is no longer stored.";
/// What the results say of a delivered transcript that cannot be read.
const DAMAGED_MESSAGE: &str =
    "The stored transcript of this video is damaged. The operator of this service must repair it.";

/// The transcript of an item of a job.
#[derive(Clone, Debug)]
pub enum ItemTranscript {
    /// The item has none yet, or the item says why.
    Undelivered,
    /// It was delivered.
    Delivered(StoredTranscript),
    /// It was delivered, and cannot be shown: it was withdrawn or deleted since, or cannot be read.
    Lost(ItemFailure),
}

impl ItemTranscript {
    /// The transcript; `None` if it cannot be shown.
    pub fn stored(&self) -> Option<&StoredTranscript> {
        match self {
            Self::Delivered(stored) => Some(stored),
            Self::Undelivered | Self::Lost(_) => None,
        }
    }

    /// Why a delivered transcript cannot be shown; `None` for any other.
    pub fn loss(&self) -> Option<&ItemFailure> {
        match self {
            Self::Lost(failure) => Some(failure),
            Self::Undelivered | Self::Delivered(_) => None,
        }
    }
}

impl AccountJobs {
    /// The transcript of an item.
    ///
    /// # Errors
    /// [`V1Error::Internal`].
    pub async fn transcript(self: &Arc<Self>, job: &Job, item: &JobItem) -> Result<ItemTranscript, V1Error> {
        let Some(video) = item.video.clone().filter(|_| item.status == ItemStatus::Done) else {
            return Ok(ItemTranscript::Undelivered);
        };
        let preference = LanguagePreference::parse(job.language.as_deref())?;
        let delivery = Arc::clone(&self.delivery);
        let work = async move {
            match delivery.find_archived(&video, &preference).await {
                Ok(PreferredTrack::Archived(stored)) => Ok(ItemTranscript::Delivered(stored)),
                Ok(PreferredTrack::Missing(_)) => Ok(ItemTranscript::Lost(failure(MISSING, MISSING_MESSAGE))),
                Err(V1Error::Unavailable(none)) => {
                    let lost = failure(none.detail_or_reason(), none.message.as_str());
                    Ok(ItemTranscript::Lost(lost))
                }
                Err(V1Error::Damaged) => Ok(ItemTranscript::Lost(failure(DAMAGED, DAMAGED_MESSAGE))),
                Err(error) => Err(error),
            }
        };
        self.context.task(work).await
    }
}
