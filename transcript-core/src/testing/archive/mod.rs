//! Conformance cases of the archive.

mod compaction;
mod details;
mod find;
mod leases;
mod operations;
mod put;
mod stored_body;
mod vectors;
mod verification;

use std::sync::Arc;

pub use compaction::*;
pub use details::*;
pub use find::*;
pub use leases::*;
pub use operations::*;
pub use put::*;
pub use stored_body::*;
pub use vectors::*;
pub use verification::*;

use super::{at, expect_ok};
use crate::{
    archive::{
        Absence, Archive, ArchiveStats, ArchivedTrack, FetchLease,
        FindOutcome::{self, NotFound},
        LeaseOutcome::{self, Acquired},
        PutRequest, StoredBody, StoredTranscript, TrackSelector, content_digest,
    },
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript, VideoMetadata},
    video::{Platform, VideoId},
};

/// Generates one test per case of [`Archive`]; see [`crate::testing`].
#[macro_export]
macro_rules! archive_conformance {
    ($make:expr) => {
        $crate::archive_conformance_cases!(conformance_cases; $make;);
        // Not a case of stores in other languages, which need not shorten leases.
        $crate::conformance_cases! { $make; $crate::archive::Archive; [$crate::testing::archive];
            lease_of_corrected_clock_is_shortened
        }
    };
}

/// Case names of the archive, passed to the macro `$then`.
#[doc(hidden)]
#[macro_export]
macro_rules! archive_conformance_cases {
    ($then:ident; $($before:tt)*) => {
        $crate::$then! { $($before)* $crate::archive::Archive; [$crate::testing::archive];
            empty_archive_returns_not_found
            stored_transcript_is_found_unchanged
            extreme_texts_round_trip
            transcript_of_20000_segments_round_trips
            selectors_and_videos_are_separate
            words_are_returned_with_their_times
            metadata_of_video_is_merged
            details_list_known_tracks
            tracks_without_transcript_are_merged
            absence_is_found_until_expiry
            later_absence_replaces_earlier
            absence_never_hides_transcript
            put_clears_absences_of_its_selectors

            put_without_replace_keeps_first_transcript
            put_for_several_selectors_stores_once
            put_fills_selectors_without_transcript
            same_content_is_stored_once
            refresh_adds_revision
            refresh_exceeds_highest_revision_of_selectors
            refresh_unchanged_adds_no_revision
            returning_content_is_new_revision
            put_out_of_bounds_stores_nothing
            concurrent_puts_store_one
            concurrent_refreshes_lose_no_revision

            stored_body_matches_found_transcript
            concurrent_body_reads_return_own_video
            missing_transcript_has_no_stored_body
            refreshed_transcript_has_new_stored_body

            compaction_changes_no_result
            compaction_compacts_old_transcripts_once
            compact_transcript_can_be_refreshed
            concurrent_compaction_loses_nothing

            vectors_belong_to_transcript_and_texts
            vectors_go_with_their_transcript

            verification_of_sound_archive_changes_nothing

            known_tracks_are_merged_in_order
            track_is_original_once_any_supplier_marks_it
            tracks_list_their_selectors
            replaced_track_has_no_selectors
            withdrawn_video_is_not_found
            unknown_video_can_be_withdrawn
            delete_removes_all_data_of_video
            delete_keeps_withdrawal_lease_and_links
            archived_tracks_are_paged_once_each
            withdrawn_videos_are_paged_once_each
            stats_count_stored_data
            change_counter_counts_invalidating_changes
            changed_videos_are_unindexed_until_deleted

            lease_is_held_by_one_holder
            lease_is_renewed_by_its_holder
            lease_ends_at_expiry
            lease_is_released_by_its_holder_only
            lease_is_released_with_put_of_its_holder
            leases_of_other_selectors_are_separate
            concurrent_lease_requests_acquire_one
            short_link_is_stored
            first_video_of_short_link_stays
            concurrent_short_link_puts_agree
        }
    };
}

type ArchiveStore = Arc<dyn Archive>;

/// The default track, which most cases select.
const DEFAULT: TrackSelector = TrackSelector::Default;

fn video(number: u32) -> VideoId {
    VideoId::new(Platform::YouTube, &format!("video-{number:05}")).expect("11 characters are a valid id")
}

fn language(tag: &str) -> LanguageTag {
    LanguageTag::parse(tag).expect("the cases use valid language tags")
}

fn selector(tag: &str) -> TrackSelector {
    TrackSelector::Language(language(tag))
}

fn track(tag: &str) -> TrackInfo {
    TrackInfo::new(language(tag), TrackKind::Human)
}

/// Transcript of this video, language and text.
fn transcript(number: u32, tag: &str, text: &str) -> Transcript {
    Transcript {
        video: video(number),
        title: Some(format!("Video {number}")),
        author: Some("A. Author".to_owned()),
        duration_ms: Some(61_001),
        track: track(tag),
        source: "youtube-captions".to_owned(),
        segments: vec![Segment::new(text, 0, 1_500), Segment::new("The end.", 1_500, 0)],
    }
}

/// Request to store a transcript for these selectors; its track is the only known one.
fn put_request(number: u32, tag: &str, text: &str, selectors: &[TrackSelector]) -> PutRequest {
    PutRequest {
        video: video(number),
        selectors: selectors.to_vec(),
        transcript: Arc::new(transcript(number, tag, text)),
        known_tracks: vec![track(tag)],
        metadata: VideoMetadata::default(),
        parser_version: 7,
        replace: false,
        now: at(0),
    }
}

/// The same request as a refresh at a later time.
fn refresh_request(number: u32, tag: &str, text: &str, selectors: &[TrackSelector]) -> PutRequest {
    PutRequest { replace: true, now: at(100), ..put_request(number, tag, text, selectors) }
}

fn absence(number: u32, selector: TrackSelector, until: i64) -> Absence {
    Absence {
        video: video(number),
        selector,
        reason: "no_captions".to_owned(),
        message: "There are no captions — «nowhere».".to_owned(),
        suppliers_tried: vec!["youtube-captions".to_owned(), "yt-dlp".to_owned()],
        until: at(until),
    }
}

async fn put(store: &ArchiveStore, request: PutRequest) -> StoredTranscript {
    expect_ok(store.put(request).await)
}

async fn acquire(store: &ArchiveStore, lease: FetchLease) -> LeaseOutcome {
    expect_ok(store.acquire_lease(lease).await)
}

async fn find(store: &ArchiveStore, number: u32, selector: &TrackSelector) -> FindOutcome {
    expect_ok(store.find(&video(number), selector, at(10)).await)
}

/// The stored body of a selector, if the store has that form.
async fn body(store: &ArchiveStore, number: u32, selector: &TrackSelector) -> Option<StoredBody> {
    expect_ok(store.stored_body(&video(number), selector).await)
}

/// Stored transcript of a selector that must have one.
async fn find_stored(store: &ArchiveStore, number: u32, selector: &TrackSelector) -> StoredTranscript {
    match find(store, number, selector).await {
        FindOutcome::Transcript(stored) => stored,
        other => panic!("a stored selector has a transcript; got {other:?}"),
    }
}

/// First text and revision of the stored transcript of a selector.
async fn first_text(store: &ArchiveStore, number: u32, selector: &TrackSelector) -> (String, u32) {
    let stored = find_stored(store, number, selector).await;
    (stored.transcript.segments[0].text.clone(), stored.revision)
}

async fn tracks(store: &ArchiveStore, number: u32) -> Vec<ArchivedTrack> {
    expect_ok(store.tracks(&video(number)).await)
}

/// Languages of a video's tracks.
async fn languages(store: &ArchiveStore, number: u32) -> Vec<String> {
    tracks(store, number).await.iter().map(|archived| archived.track.language.to_string()).collect()
}
