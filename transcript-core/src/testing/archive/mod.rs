//! The cases of the archive.

mod compacting;
mod finding;
mod holding;
mod keeping;
mod operating;
mod sending;

use std::sync::Arc;

pub use compacting::*;
pub use finding::*;
pub use holding::*;
pub use keeping::*;
pub use operating::*;
pub use sending::*;

use super::{at, done};
use crate::{
    archive::{Absence, Archive, ArchivedTrack, Found, Keep, Stats, StoredTranscript, Wish, content_digest},
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
    video::{Platform, VideoId},
};

/// Makes a test of every case of [`Archive`]; see [`crate::testing`].
#[macro_export]
macro_rules! archive_conformance {
    ($make:expr) => {
        $crate::archive_conformance_cases!(conformance_cases; $make;);
    };
}

/// The names of the cases, for whoever makes something of them.
#[doc(hidden)]
#[macro_export]
macro_rules! archive_conformance_cases {
    ($then:ident; $($before:tt)*) => {
        $crate::$then! { $($before)* $crate::archive::Archive; [$crate::testing::archive];
            nothing_is_known_at_first
            a_kept_transcript_is_found_as_it_was
            odd_texts_come_back_as_they_were
            a_transcript_of_many_segments_comes_back
            wishes_and_videos_are_apart
            an_absence_is_found_until_it_ends
            a_later_absence_replaces_an_earlier_one
            an_absence_never_hides_a_transcript
            keeping_clears_the_absences_of_its_wishes

            the_first_transcript_stays
            one_transcript_answers_several_wishes
            wishes_that_lack_a_transcript_get_the_new_one
            the_same_content_is_stored_once
            replacing_adds_a_revision
            replacing_several_goes_beyond_the_highest_revision
            unchanged_content_adds_no_revision
            content_that_returns_is_a_new_revision
            keeping_out_of_bounds_stores_nothing
            keeping_at_once_stores_one
            replacing_at_once_loses_no_revision

            a_body_is_of_the_transcript_that_is_found
            bodies_at_once_are_each_their_own
            what_is_not_found_has_no_body
            a_replaced_transcript_has_its_own_body

            compacting_changes_nothing_that_is_found
            what_is_old_is_compacted_once
            what_is_compact_is_refreshed
            compacting_beside_others_loses_nothing

            known_tracks_are_joined
            a_track_is_original_once_anyone_said_so
            tracks_name_the_wishes_that_they_answer
            a_replaced_track_answers_no_wish
            a_withdrawn_video_is_not_found
            a_video_can_be_withdrawn_before_it_is_known
            forgetting_deletes_all_of_a_video
            forgetting_keeps_withdrawal_lease_and_links
            archived_tracks_come_in_pages
            withdrawn_videos_come_in_pages
            stats_count_what_is_there
            what_was_found_before_is_known_to_hold

            a_wish_is_claimed_by_one
            a_claim_is_renewed_by_its_holder
            a_claim_ends_at_its_moment
            only_the_holder_gives_a_claim_back
            claims_of_other_wishes_are_apart
            claiming_at_once_gives_it_to_one
            a_link_is_remembered
            the_first_answer_to_a_link_stays
            links_at_once_agree_on_one
        }
    };
}

type Store = Arc<dyn Archive>;

/// The video with this number.
fn video(number: u32) -> VideoId {
    VideoId::new(Platform::VideoSite, &format!("video-{number:05}")).expect("11 characters are an id")
}

fn language(tag: &str) -> LanguageTag {
    LanguageTag::parse(tag).expect("the cases use language tags")
}

fn wish(tag: &str) -> Wish {
    Wish::Language(language(tag))
}

fn track(tag: &str) -> TrackInfo {
    TrackInfo::new(language(tag), TrackKind::Human)
}

/// A transcript of this video, language and text.
fn transcript(number: u32, tag: &str, text: &str) -> Transcript {
    Transcript {
        video: video(number),
        title: Some(format!("Video {number}")),
        author: Some("Somebody".to_owned()),
        duration_ms: Some(61_001),
        track: track(tag),
        source: "youtube-captions".to_owned(),
        segments: vec![Segment::new(text, 0, 1_500), Segment::new("The end.", 1_500, 0)],
    }
}

/// To keep a transcript in a language for these wishes, which is the only track known.
fn keep(number: u32, tag: &str, text: &str, wishes: &[Wish]) -> Keep {
    Keep {
        video: video(number),
        wishes: wishes.to_vec(),
        transcript: Arc::new(transcript(number, tag, text)),
        known_tracks: vec![track(tag)],
        parser_version: 7,
        replace: false,
        now: at(0),
    }
}

/// The same, as a refresh of a later moment.
fn refresh(number: u32, tag: &str, text: &str, wishes: &[Wish]) -> Keep {
    Keep { replace: true, now: at(100), ..keep(number, tag, text, wishes) }
}

fn absence(number: u32, wish: Wish, until: i64) -> Absence {
    Absence {
        video: video(number),
        wish,
        reason: "no_captions".to_owned(),
        message: "There are no captions — «nowhere».".to_owned(),
        asked: vec!["youtube-captions".to_owned(), "yt-dlp".to_owned()],
        until: at(until),
    }
}

async fn find(store: &Store, number: u32, wish: &Wish) -> Found {
    done(store.find(&video(number), wish, at(10)).await)
}

/// What is stored for a wish that must have a transcript.
async fn found(store: &Store, number: u32, wish: &Wish) -> StoredTranscript {
    match find(store, number, wish).await {
        Found::Transcript(stored) => stored,
        other => panic!("a wish that a transcript was kept for has one; it is {other:?}"),
    }
}

/// The first text and the revision of what is stored for a wish.
async fn text(store: &Store, number: u32, wish: &Wish) -> (String, u32) {
    let stored = found(store, number, wish).await;
    (stored.transcript.segments[0].text.clone(), stored.revision)
}

async fn tracks(store: &Store, number: u32) -> Vec<ArchivedTrack> {
    done(store.tracks(&video(number)).await)
}

/// The languages of a video's tracks.
async fn languages(store: &Store, number: u32) -> Vec<String> {
    tracks(store, number).await.iter().map(|archived| archived.track.language.to_string()).collect()
}
