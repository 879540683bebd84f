//! Internal metadata of a stored response, never sent to clients.

use super::{StoredHeader, StoredResponse, charge::CreditHold};
use crate::{headers, ids::HoldId, video::VideoId};

/// The names of the metadata entries. HTTP allows no such header name, so that none can be sent.
const HOLD: &str = ":hold";
const VIDEO: &str = ":video";
const OMITTED: &str = ":omitted";

/// Metadata of a stored response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ReplyMetadata {
    /// The hold that pays for the response: a replay settles it first. `None` if a prepaid delivery may pay for it.
    pub(super) hold: Option<CreditHold>,
    /// The video of the response: there is no replay after its withdrawal.
    pub(super) video: Option<VideoId>,
    /// Whether the response was delivered and is not stored: a repeat does the work again at no cost.
    pub(super) is_omitted: bool,
}

impl ReplyMetadata {
    /// Adds the metadata to a response that is to be stored.
    pub(super) fn put(&self, response: &mut StoredResponse) {
        let mut entry = |name: &str, value: String| {
            response.headers.push(StoredHeader { name: name.to_owned(), value });
        };
        if let Some(CreditHold { id, amount }) = &self.hold {
            entry(HOLD, format!("{amount} {id}"));
        }
        if let Some(video) = &self.video {
            entry(VIDEO, video.to_string());
        }
        if self.is_omitted {
            entry(OMITTED, String::new());
        }
    }

    /// Removes the metadata from a stored response and returns it.
    pub(super) fn take(response: &mut StoredResponse) -> Self {
        let mut metadata = Self::default();
        response.headers.retain(|StoredHeader { name, value }| {
            match name.as_str() {
                HOLD => metadata.hold = parse_hold(value),
                VIDEO => metadata.video = VideoId::from_name(value),
                OMITTED => metadata.is_omitted = true,
                _ => return true,
            }
            false
        });
        metadata
    }
}

/// Marks a response as that of a repeated request.
pub(super) fn mark_replayed(response: &mut StoredResponse) {
    response.push(headers::IDEMPOTENT_REPLAYED, "true");
}

fn parse_hold(entry: &str) -> Option<CreditHold> {
    let (amount, id) = entry.split_once(' ')?;
    Some(CreditHold { id: HoldId::new(id), amount: amount.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::video::Platform;

    fn header(name: &str, value: &str) -> StoredHeader {
        StoredHeader { name: name.to_owned(), value: value.to_owned() }
    }

    #[test]
    fn reply_metadata_is_read_back_and_removed() {
        let response =
            StoredResponse { status: 200, headers: vec![header("x-cache", "HIT")], body: b"{}".to_vec() };
        let hold = CreditHold { id: HoldId::new("transcript-1 2-3"), amount: 7 };
        let video = VideoId::new(Platform::YouTube, "dQw4w9WgXcQ").unwrap();
        for metadata in [
            ReplyMetadata::default(),
            ReplyMetadata { hold: Some(hold.clone()), ..ReplyMetadata::default() },
            ReplyMetadata { hold: Some(hold), video: Some(video), is_omitted: false },
            ReplyMetadata { is_omitted: true, ..ReplyMetadata::default() },
        ] {
            let mut stored = response.clone();
            metadata.put(&mut stored);
            assert_eq!(stored == response, metadata == ReplyMetadata::default());
            assert_eq!((ReplyMetadata::take(&mut stored), stored), (metadata, response.clone()));
        }
    }

    #[test]
    fn reply_metadata_damaged_entry_is_removed() {
        for (name, damaged) in [
            (HOLD, ""),
            (HOLD, "7"),
            (HOLD, "x hold"),
            (HOLD, "-1 hold"),
            (VIDEO, "reels"),
            (VIDEO, "video_site/no"),
        ] {
            let mut response =
                StoredResponse { status: 200, headers: vec![header(name, damaged)], body: Vec::new() };
            assert_eq!(ReplyMetadata::take(&mut response), ReplyMetadata::default());
            assert_eq!(response.headers, []);
        }
    }
}
