//! The keys of a [`super::KeyValueArchive`].

use super::{KeyValueStore, ShortLink, TrackSelector, VideoId};
use crate::{
    error::{Error, Result},
    hex,
};

/// Key of the figures of the whole archive.
pub(super) const TOTALS: &str = "totals";
/// Key that a check of writes puts. It is never read.
pub(super) const CHECK: &str = "check";
/// Prefix of the keys of videos.
pub(super) const VIDEOS: &str = "video/";
/// Prefix of the keys of videos that a search index has not read since they changed.
pub(super) const UNINDEXED: &str = "unindexed/";
/// Number of keys that are read at once.
pub(super) const LIST_MAX: usize = 100;

pub(super) fn video(video: &VideoId) -> String {
    format!("{VIDEOS}{video}")
}

/// A key before that of a video and after those of all lesser videos.
pub(super) fn before(of: &VideoId) -> String {
    let mut key = video(of);
    // Ids are ASCII. What is longer than the shortened key is greater than it.
    key.pop();
    key
}

pub(super) fn text(video: &VideoId, content_sha256: &[u8]) -> String {
    format!("text/{video}/{}", hex::encode(content_sha256))
}

pub(super) fn lease(video: &VideoId, selector: &TrackSelector) -> String {
    format!("lease/{video}/{selector}")
}

/// The keys are in the order of the changes.
pub(super) fn unindexed(change: u64) -> String {
    format!("{UNINDEXED}{change:020}")
}

pub(super) fn link(link: &ShortLink) -> String {
    format!("link/{}/{}", link.platform(), link.code())
}

/// Lists entries as [`KeyValueStore::list`] does, and fails if the store returns other keys.
///
/// A list of many pages that continues after its last key would never end over a store that ignores `after`.
pub(super) async fn list(
    store: &dyn KeyValueStore,
    prefix: &str,
    after: &str,
    limit: usize,
) -> Result<Vec<(String, Vec<u8>)>> {
    let entries = store.list(prefix, after, limit).await?;
    let mut previous = after;
    for (key, _) in &entries {
        if !key.starts_with(prefix) || key.as_str() <= previous {
            let message = format!(
                "the store lists the key {key:?} after {previous:?}: `list` returns keys that begin with \
                 `prefix`, are greater than `after` and are in ascending order of their bytes"
            );
            return Err(Error::corrupt(message));
        }
        previous = key;
    }
    Ok(entries)
}
