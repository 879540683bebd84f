//! Fixtures for compacted archives.

use std::sync::Arc;

use transcript_core::{
    PageRequest, Timestamp,
    archive::{Archive, CompactOutcome, CompactRequest, FindOutcome, PutRequest, StoredBody},
    transcript::Segment,
};

/// A transcript of some minutes, with a text unique to this number.
pub(crate) fn speech(number: u64) -> PutRequest {
    let mut put_request = super::put_request(&format!("cold-{number:06}"), "");
    let transcript = Arc::make_mut(&mut put_request.transcript);
    // Enough incompressible text to fill several parts.
    let surprise = |index: u64| (number * 1_000 + index + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let say = |index: u64| {
        let text = format!("and then number {number} said it {index} times, which is {:x}", surprise(index));
        Segment::new(text, index * 1_711, 3_000)
    };
    transcript.segments = (0..400).map(say).collect();
    transcript.title = Some(format!("The title of {number}"));
    put_request
}

/// Compacts one page of at most `limit` transcripts, from the beginning.
pub(crate) async fn compact(archive: &dyn Archive, limit: u32) -> CompactOutcome {
    let page = PageRequest { after: None, limit };
    archive.compact(CompactRequest { stored_before: Timestamp::from_millis(i64::MAX), page }).await.unwrap()
}

/// Transcripts of a malformed name are passed by, also if a page has no others.
///
/// `set_video` gives such a name to the first one.
pub(crate) async fn check_malformed_name_is_passed(archive: &dyn Archive, set_video: impl AsyncFnOnce()) {
    for number in 1..=2 {
        archive.put(speech(number)).await.unwrap();
    }
    set_video().await;
    let (mut page, mut scanned, mut compacted) = (PageRequest { after: None, limit: 1 }, 0, 0);
    loop {
        let request = CompactRequest { stored_before: Timestamp::from_millis(i64::MAX), page: page.clone() };
        let outcome = archive.compact(request).await.unwrap();
        scanned += outcome.scanned;
        compacted += outcome.compacted;
        page.after = outcome.next;
        if page.after.is_none() {
            break;
        }
    }
    assert_eq!((scanned, compacted), (2, 1));
}

/// Reads a stored transcript through both methods and compares it.
pub(crate) async fn found(archive: &dyn Archive, kept: &PutRequest) -> (FindOutcome, StoredBody) {
    let found = archive.find(&kept.video, &kept.selectors[0], kept.now).await.unwrap();
    let FindOutcome::Transcript(stored) = &found else { panic!("{found:?}") };
    assert_eq!(stored.transcript, kept.transcript);
    let body = archive.stored_body(&kept.video, &kept.selectors[0]).await.unwrap();
    (found, body.unwrap())
}
