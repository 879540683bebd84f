//! Keeping what a supplier gave: before anything is settled.

use std::sync::Arc;

use super::{
    Inner,
    errands::{Errand, Purpose},
    retry::persistently,
};
use crate::{
    archive::{Keep, StoredTranscript, Wish},
    captions::PARSER_VERSION,
    error::{Error, Result},
    supplier::Supplied,
    transcript::{TrackInfo, Transcript, best_track},
};

impl Inner {
    /// Keeps all tracks; returns what now answers the errand's wish.
    ///
    /// The track that answers the wish comes first: once it is kept, the errand is done, and a fault
    /// with the others costs nobody anything.
    pub(super) async fn keep(&self, errand: &Errand, supplied: Supplied) -> Result<StoredTranscript> {
        let Supplied { tracks, mut known_tracks } = supplied;
        for transcript in &tracks {
            if !known_tracks.iter().any(|known| known.is_same(&transcript.track)) {
                known_tracks.push(transcript.track.clone());
            }
        }
        let mut answer = None;
        for transcript in tracks {
            let wishes = wishes(&transcript, &known_tracks, answer.is_none().then_some(&errand.1));
            if wishes.is_empty() {
                continue;
            }
            let keep = Keep {
                video: errand.0.clone(),
                wishes,
                transcript: Arc::new(transcript),
                known_tracks: known_tracks.clone(),
                parser_version: PARSER_VERSION,
                replace: errand.2 == Purpose::Refresh,
                now: self.clock.now(),
            };
            match (persistently(self.long(), || self.archive.keep(keep.clone())).await, &answer) {
                (Ok(stored), None) => answer = Some(stored),
                (Err(error), None) => return Err(error),
                (Ok(_), Some(_)) => {}
                (Err(error), Some(_)) => {
                    tracing::warn!(video = %errand.0, %error, "a second track could not be kept");
                }
            }
        }
        answer.ok_or_else(|| Error::unexpected("a supply without tracks reached the archive"))
    }
}

/// The wishes that a transcript answers: the one that was asked, and every one for which it is the best
/// of the video's known tracks.
fn wishes(transcript: &Transcript, known: &[TrackInfo], asked: Option<&Wish>) -> Vec<Wish> {
    let own = [Wish::Default, Wish::Language(transcript.track.language.clone())];
    let best =
        |wish: &Wish| best_track(known, wish).is_some_and(|place| known[place].is_same(&transcript.track));
    let mut wishes: Vec<Wish> = asked.into_iter().cloned().collect();
    for wish in own {
        if !wishes.contains(&wish) && best(&wish) {
            wishes.push(wish);
        }
    }
    wishes
}
