//! Stores supplier output in the archive, before anything is settled.

use std::sync::Arc;

use super::{
    EngineInner,
    single_flight::{FetchPurpose, FlightKey},
};
use crate::{
    archive::{PutRequest, StoredTranscript, TrackSelector},
    captions::PARSER_VERSION,
    error::{Error, Result},
    failure_log::log_failure,
    ids::Holder,
    retry::retry_store_persistently,
    supplier::SupplyOutput,
    transcript::{TrackInfo, Transcript, best_track},
};

impl EngineInner {
    /// Stores all tracks. Returns the transcript that now serves the flight's selector.
    ///
    /// The track that serves the selector is stored first: once it is stored the flight has succeeded, and a failure
    /// with the other tracks is only logged. With a holder, storing that track also releases its lease.
    pub(super) async fn store_tracks(
        &self,
        key: &FlightKey,
        supplied: SupplyOutput,
        lease_holder: Option<&Holder>,
    ) -> Result<StoredTranscript> {
        let SupplyOutput { transcripts: tracks, mut known_tracks, metadata } = supplied;
        let duration_ms = tracks.iter().find_map(|transcript| transcript.duration_ms);
        let metadata = metadata.cleaned(duration_ms);
        for transcript in &tracks {
            if !known_tracks.iter().any(|known| known.is_same(&transcript.track)) {
                known_tracks.push(transcript.track.clone());
            }
        }
        let mut answer = None;
        for transcript in tracks {
            let selectors = selectors(&transcript, &known_tracks, answer.is_none().then_some(&key.1));
            if selectors.is_empty() {
                continue;
            }
            let request = PutRequest {
                video: key.0.clone(),
                selectors,
                transcript: Arc::new(transcript),
                known_tracks: known_tracks.clone(),
                metadata: metadata.clone(),
                parser_version: PARSER_VERSION,
                replace: key.2 == FetchPurpose::Refresh,
                now: self.clock.now(),
            };
            let put = || match lease_holder.filter(|_| answer.is_none()) {
                Some(holder) => self.archive.put_and_release(request.clone(), holder),
                None => self.archive.put(request.clone()),
            };
            match (retry_store_persistently(self.options.hold_policy(), put).await, &answer) {
                (Ok(stored), None) => answer = Some(stored),
                (Err(error), None) => return Err(error),
                (Ok(_), Some(_)) => {}
                (Err(error), Some(_)) => {
                    log_failure!(warn, [video = %key.0, %error], "additional track not stored");
                }
            }
        }
        answer.ok_or_else(|| Error::unexpected("the supplier output has no transcripts"))
    }
}

/// The selectors of a transcript: the requested one, and each with this as its best known track.
fn selectors(
    transcript: &Transcript,
    known: &[TrackInfo],
    requested: Option<&TrackSelector>,
) -> Vec<TrackSelector> {
    let candidates = [TrackSelector::Default, transcript.track.selector()];
    let is_best = |selector: &TrackSelector| {
        best_track(known, selector).is_some_and(|index| known[index].is_same(&transcript.track))
    };
    let mut selectors: Vec<TrackSelector> = requested.into_iter().cloned().collect();
    for selector in candidates {
        if !selectors.contains(&selector) && is_best(&selector) {
            selectors.push(selector);
        }
    }
    selectors
}
