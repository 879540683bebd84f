//! Verification of an archive through its other methods.

use super::{Archive, ArchivedTrack, DamagedTranscript, VerifyArchiveOutcome, VerifyArchiveRequest};
use crate::{
    error::{ErrorKind, Result},
    time::Timestamp,
};

/// The default implementation of [`Archive::verify`].
pub(super) async fn verify_tracks<A: Archive + ?Sized>(
    archive: &A,
    request: VerifyArchiveRequest,
) -> Result<VerifyArchiveOutcome> {
    let tracks = archive.list_tracks(request.page).await?;
    let mut outcome = VerifyArchiveOutcome { next: tracks.next, ..VerifyArchiveOutcome::default() };
    for track in tracks.items {
        outcome.scanned += 1;
        outcome.damaged.extend(verify_track(archive, &track, request.delete_damaged).await?);
    }
    Ok(outcome)
}

/// Checks what the selectors of a track find.
async fn verify_track<A: Archive + ?Sized>(
    archive: &A,
    track: &ArchivedTrack,
    delete_damaged: bool,
) -> Result<Option<DamagedTranscript>> {
    let mut damaged: Option<DamagedTranscript> = None;
    let mut is_corrupt = false;
    for selector in &track.selectors {
        // No absence is valid that long.
        let found = archive.find(&track.video, selector, Timestamp::from_millis(i64::MAX)).await;
        let Err(error) = found else { continue };
        if !error.is_unreadable() {
            return Err(error);
        }
        is_corrupt |= error.kind() == ErrorKind::Corrupt;
        let damaged = damaged.get_or_insert_with(|| DamagedTranscript {
            video: track.video.clone(),
            language: Some(track.track.language.clone()),
            revision: track.revision.unwrap_or_default(),
            selectors: Vec::new(),
            reason: error.to_string(),
            is_deleted: false,
            is_restored: false,
            is_unselected: false,
        });
        damaged.selectors.push(selector.clone());
    }
    if let Some(damaged) = &mut damaged
        && delete_damaged
        && is_corrupt
    {
        archive.delete(&damaged.video).await?;
        damaged.is_deleted = true;
    }
    Ok(damaged)
}
