//! Conformance cases of vectors. A store that keeps none passes them too.

use super::*;
use crate::{
    archive::{CompactRequest, VECTORS_BYTES_MAX, VectorsKey},
    error::ErrorKind,
    page::PageRequest,
    testing::expect_error,
};

/// Key of the vectors of a stored transcript, for texts with this digest.
fn key(stored: &StoredTranscript, texts: u8) -> VectorsKey {
    let (video, content_sha256) = (stored.transcript.video.clone(), stored.content_sha256.clone());
    VectorsKey { video, content_sha256, texts_sha256: [texts; 32] }
}

async fn vectors(store: &ArchiveStore, key: &VectorsKey) -> Option<Vec<u8>> {
    expect_ok(store.vectors(key).await)
}

/// Stores vectors; returns whether the archive keeps them.
async fn put_vectors(store: &ArchiveStore, key: &VectorsKey, bytes: &[u8]) -> bool {
    expect_ok(store.put_vectors(key, bytes.to_vec()).await);
    let found = vectors(store, key).await;
    assert!(found.as_deref().is_none_or(|found| found == bytes), "vectors are returned unchanged");
    found.is_some()
}

/// Vectors are returned for the transcript and the texts of which they are, and for no others.
pub async fn vectors_belong_to_transcript_and_texts(store: ArchiveStore) {
    let english = put(&store, put_request(1, "en", "text", &[DEFAULT, selector("en")])).await;
    let german = put(&store, put_request(1, "de", "Text", &[selector("de")])).await;
    let other = put(&store, put_request(2, "en", "text", &[DEFAULT])).await;
    let all = [key(&english, 1), key(&english, 2), key(&german, 1), key(&other, 1)];
    for key in &all {
        assert_eq!(vectors(&store, key).await, None, "a transcript has no vectors at first");
    }
    let before = expect_ok(store.change_counter().await);
    let bytes: Vec<u8> = (0..100_000_u32).map(|n| (n * 7 % 251) as u8).collect();
    if !put_vectors(&store, &all[0], &bytes).await {
        return;
    }
    for key in &all[1..] {
        assert_eq!(vectors(&store, key).await, None, "other texts and transcripts have none");
    }
    assert!(put_vectors(&store, &all[2], b"\0\xFF").await, "each transcript of a video has its own");
    assert_eq!(vectors(&store, &all[0]).await.as_deref(), Some(&bytes[..]), "and keeps them");
    for content in [b"other".as_slice(), b""] {
        assert!(put_vectors(&store, &all[1], content).await, "those of other texts replace them");
    }
    assert_eq!(vectors(&store, &all[0]).await, None, "a transcript has those of one model");
    assert_eq!(expect_ok(store.change_counter().await), before, "vectors are no change");
    let too_large = vec![0; VECTORS_BYTES_MAX + 1];
    expect_error(store.put_vectors(&all[2], too_large).await, ErrorKind::Invalid, "too large");
    assert_eq!(vectors(&store, &all[2]).await.as_deref(), Some(&b"\0\xFF"[..]), "nothing was stored");
}

/// Vectors go with their transcript: a replaced, withdrawn or deleted one has none, a compacted one keeps them.
pub async fn vectors_go_with_their_transcript(store: ArchiveStore) {
    let missing = key(&put(&store, put_request(2, "en", "text", &[DEFAULT])).await, 1);
    expect_ok(store.delete(&video(2)).await);
    assert!(!put_vectors(&store, &missing, b"x").await, "an unknown video stores none");
    let first = key(&put(&store, put_request(1, "en", "text", &[DEFAULT])).await, 1);
    if !put_vectors(&store, &first, b"first").await {
        return;
    }
    put(&store, refresh_request(1, "en", "text", &[DEFAULT])).await;
    assert!(vectors(&store, &first).await.is_some(), "a refresh without a change leaves them");
    let compacted = CompactRequest { stored_before: at(1_000_000), page: PageRequest::first() };
    let compacted = store.compact(compacted).await;
    assert!(compacted.is_err() || vectors(&store, &first).await.is_some(), "so does compaction");
    expect_ok(store.withdraw(&video(1), true, at(5)).await);
    assert_eq!(vectors(&store, &first).await, None, "a withdrawn video has none");
    assert!(!put_vectors(&store, &first, b"second").await, "and stores none");
    expect_ok(store.withdraw(&video(1), false, at(6)).await);
    assert_eq!(vectors(&store, &first).await.as_deref(), Some(&b"first"[..]), "a restored one has them");

    let second = key(&put(&store, refresh_request(1, "en", "newer", &[DEFAULT])).await, 1);
    assert_eq!(vectors(&store, &second).await, None, "another revision has its own");
    assert_eq!(vectors(&store, &first).await, None, "those of the earlier one are deleted");
    assert!(!put_vectors(&store, &first, b"first").await, "and not stored again");
    assert!(put_vectors(&store, &second, b"second").await);
    expect_ok(store.delete(&video(1)).await);
    assert_eq!(vectors(&store, &second).await, None, "they are deleted with the video");
    put(&store, put_request(1, "en", "newer", &[DEFAULT])).await;
    assert_eq!(vectors(&store, &second).await, None, "and do not return with the text");
}
