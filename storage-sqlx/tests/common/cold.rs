//! Archives whose transcripts are compacted.

use std::sync::Arc;

use transcript_core::{
    PageRequest, Timestamp,
    archive::{Archive, Compact, Compacted, Found, Keep, StoredBody},
    transcript::Segment,
};

/// A transcript of some minutes, whose words are those of this video.
pub(crate) fn speech(number: u64) -> Keep {
    let mut keep = super::keep(&format!("cold-{number:06}"), "");
    let transcript = Arc::make_mut(&mut keep.transcript);
    // As many surprises as fill some parts.
    let surprise = |place: u64| (number * 1_000 + place + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let say = |place: u64| {
        let text = format!("and then number {number} said it {place} times, which is {:x}", surprise(place));
        Segment::new(text, place * 1_711, 3_000)
    };
    transcript.segments = (0..400).map(say).collect();
    transcript.title = Some(format!("The title of {number}"));
    keep
}

/// One step, of so many transcripts, from the beginning.
pub(crate) async fn compact(archive: &dyn Archive, limit: u32) -> Compacted {
    let page = PageRequest { after: None, limit };
    archive.compact(Compact { stored_before: Timestamp::from_millis(i64::MAX), page }).await.unwrap()
}

/// All that can be found of a transcript that was kept, which must be it.
pub(crate) async fn found(archive: &dyn Archive, kept: &Keep) -> (Found, StoredBody) {
    let found = archive.find(&kept.video, &kept.wishes[0], kept.now).await.unwrap();
    let Found::Transcript(stored) = &found else { panic!("{found:?}") };
    assert_eq!(stored.transcript, kept.transcript);
    let body = archive.body(&kept.video, &kept.wishes[0]).await.unwrap();
    (found, body.unwrap())
}
