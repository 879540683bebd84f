use std::time::Duration;

use super::*;
use crate::{
    GetOutcome, ImportRequest, Options, StorageOptions, SupplierOptions, read_cache::CHANGE_COUNTER_AGE_MAX,
};

const LINK: &str = "https://youtu.be/dQw4w9WgXcQ";

fn request(link: &str) -> Arc<GetRequest> {
    Arc::new(GetRequest { link: link.to_owned(), ..GetRequest::default() })
}

async fn import(parts: &Verbatim, link: &str, text: &str, replace: bool) {
    let captions = format!("1\n00:00:01,000 --> 00:00:02,000\n{text}\n");
    let import = ImportRequest {
        link: link.to_owned(),
        captions: captions.into_bytes(),
        language: Some("en".to_owned()),
        title: None,
        author: None,
        generated: false,
        replace,
    };
    parts.tools().import(import).await.unwrap();
}

async fn text(cache: &TranscriptCache) -> String {
    if let Some(archived) = cache.get(&request(LINK)).await {
        return decoded_text(&archived);
    }
    match cache.verbatim().get(GetRequest::clone(&request(LINK))).await.unwrap() {
        GetOutcome::Found(found) => panic!("{found:?}"),
        GetOutcome::Missing(missing) => missing.reason.as_str().to_owned(),
    }
}

/// Requests twice, so that the transcript is cached.
async fn cached_text(cache: &TranscriptCache) -> String {
    text(cache).await;
    let text = text(cache).await;
    assert!(cache.peek(&request(LINK)).is_some());
    text
}

fn decoded_text(archived: &ArchivedTranscript) -> String {
    archived.read().unwrap().transcript.segments[0].text.clone()
}

async fn open_cache(bytes_max: u64) -> TranscriptCache {
    let options = Options { suppliers: SupplierOptions::none(), ..Options::default() };
    TranscriptCache::new(Verbatim::open(options).await.unwrap(), bytes_max)
}

#[tokio::test(start_paused = true)]
async fn cache_entry_is_revalidated_after_max_age() {
    let cache = open_cache(1 << 20).await;
    import(cache.verbatim(), LINK, "one", false).await;
    assert!(cache.peek(&request(LINK)).is_none());
    assert_eq!(text(&cache).await, "one");
    // A first request is not cached.
    assert!(cache.peek(&request(LINK)).is_none());
    assert_eq!(text(&cache).await, "one");
    assert!(cache.peek(&request(LINK)).is_some());
    assert!(cache.peek(&request("dQw4w9WgXcQ")).is_none());
    assert!(
        cache
            .peek(&GetRequest { language: Some("de".to_owned()), ..GetRequest::clone(&request(LINK)) })
            .is_none()
    );
    // A change by another caller is detected once the counter is too old.
    import(cache.verbatim(), LINK, "two", true).await;
    tokio::time::advance(CHANGE_COUNTER_AGE_MAX).await;
    assert!(cache.peek(&request(LINK)).is_none());
    assert_eq!(text(&cache).await, "two");
    // Nothing has changed: the entry is valid without another read.
    tokio::time::advance(CHANGE_COUNTER_AGE_MAX).await;
    assert_eq!(cache.0.cache.monitor().read().await, Some(1));
    assert_eq!(decoded_text(&cache.peek(&request(LINK)).unwrap()), "two");
}

#[tokio::test(start_paused = true)]
async fn cache_invalidated_after_delete_is_empty() {
    let cache = open_cache(1 << 20).await;
    import(cache.verbatim(), LINK, "one", false).await;
    assert_eq!(cached_text(&cache).await, "one");
    let video = cache.verbatim().tools().known_video(LINK).await.unwrap();
    cache.verbatim().tools().delete(&video).await.unwrap();
    cache.invalidate_all();
    assert!(cache.peek(&request(LINK)).is_none());
    import(cache.verbatim(), LINK, "two", false).await;
    assert_eq!(text(&cache).await, "two");
}

#[tokio::test(start_paused = true)]
async fn cache_read_before_own_change_is_not_returned() {
    let cache = open_cache(1 << 20).await;
    import(cache.verbatim(), LINK, "one", false).await;
    cached_text(&cache).await;
    // A call that read the archive before the change, and stores what it read after the invalidation.
    let changes = cache.0.cache.monitor().read().await.unwrap();
    let stored = Arc::new(cache.get(&request(LINK)).await.unwrap().read().unwrap().clone());
    import(cache.verbatim(), LINK, "two", true).await;
    cache.invalidate_all();
    let video = cache.verbatim().tools().known_video(LINK).await.unwrap();
    let key = TranscriptKey { video, selector: TrackSelector::Default, changes };
    for _ in 0..2 {
        cache.insert(&request(LINK), key.clone(), CachedForm::Decoded(Arc::clone(&stored)));
    }
    assert!(cache.peek(&request(LINK)).is_none());
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(cache.0.cache.monitor().read().await, Some(changes + 1));
    assert!(cache.peek(&request(LINK)).is_none());
    assert_eq!(text(&cache).await, "two");
    assert_eq!(decoded_text(&cache.peek(&request(LINK)).unwrap()), "two");
}

#[tokio::test(start_paused = true)]
async fn cache_change_removes_unreachable_entries() {
    let cache = open_cache(1 << 20).await;
    let links = [LINK, "https://youtu.be/aaaaaaaaaaa"];
    for link in links {
        import(cache.verbatim(), link, "one", false).await;
        for _ in 0..2 {
            cache.get(&request(link)).await.unwrap();
        }
    }
    assert_eq!(cache.0.cache.usage(|_| true).entries, 2);
    import(cache.verbatim(), links[1], "two", true).await;
    tokio::time::advance(CHANGE_COUNTER_AGE_MAX).await;
    assert_eq!(cached_text(&cache).await, "one");
    assert_eq!(cache.0.cache.usage(|_| true).entries, 1);
}

fn forms_bytes(cache: &TranscriptCache) -> u64 {
    cache.0.cache.usage(|_| true).bytes
}

#[tokio::test(start_paused = true)]
async fn cache_size_is_bounded() {
    let cache = open_cache(30_000).await;
    for number in 0..20 {
        let link = format!("{number:011}");
        import(cache.verbatim(), &link, &"x".repeat(4_000), false).await;
        for _ in 0..2 {
            cache.get(&request(&link)).await.unwrap();
        }
        assert!(forms_bytes(&cache) <= cache.0.cache.budget().forms());
    }
    assert!(forms_bytes(&cache) > cache.0.cache.budget().forms() / 2);
    import(cache.verbatim(), LINK, &"x".repeat(30_000), false).await;
    for _ in 0..2 {
        assert_eq!(text(&cache).await.len(), 30_000);
    }
    assert!(cache.peek(&request(LINK)).is_none());
}

#[tokio::test(start_paused = true)]
async fn cache_scan_evicts_nothing() {
    let cache = open_cache(20_000).await;
    import(cache.verbatim(), LINK, "one", false).await;
    assert_eq!(cached_text(&cache).await, "one");
    let links: Vec<_> = (0..20).map(|number| format!("{number:011}")).collect();
    for link in &links {
        import(cache.verbatim(), link, &"x".repeat(4_000), false).await;
    }
    // In the second round no request is recorded any more.
    for link in links.iter().chain(&links) {
        cache.get(&request(link)).await.unwrap();
        assert!(cache.peek(&request(link)).is_none());
    }
    assert!(cache.peek(&request(LINK)).is_some());
    // Requested again while its request is recorded.
    cache.get(&request(&links[19])).await.unwrap();
    assert!(cache.peek(&request(&links[19])).is_some());
}

#[cfg(feature = "sqlite")]
mod on_disk {
    use super::*;

    /// On a file, whose transcripts stay lazy until they are accessed.
    async fn open_cache(bytes_max: u64) -> (TranscriptCache, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let storage = StorageOptions::ArchiveFile(folder.path().join("archive.db"));
        let options = Options { storage, suppliers: SupplierOptions::none(), ..Options::default() };
        (TranscriptCache::new(Verbatim::open(options).await.unwrap(), bytes_max), folder)
    }

    fn link(number: u32) -> String {
        format!("{number:011}")
    }

    fn is_read(cache: &TranscriptCache, number: u32) -> Option<bool> {
        let key = cache.0.cache.selection(&*request(&link(number)), Instant::now())?;
        cache.0.cache.form(&key).map(|form| matches!(form, CachedForm::Decoded(_)))
    }

    #[tokio::test]
    async fn cache_decoded_entry_counts_decoded_size() {
        let (cache, _folder) = open_cache(80_000).await;
        for number in 1..=8 {
            import(cache.verbatim(), &link(number), &"x".repeat(20_000), false).await;
            assert_eq!(is_read(&cache, number), None);
            for _ in 0..2 {
                let archived = cache.get(&request(&link(number))).await.unwrap();
                assert_eq!(archived.revision(), 1);
            }
        }
        // All lazy entries fit.
        assert!((1..=8).all(|number| is_read(&cache, number) == Some(false)));
        assert!(forms_bytes(&cache) < 10_000);
        let third = cache.get(&request(&link(3))).await.unwrap();
        assert_eq!(decoded_text(&third).len(), 20_000);
        assert_eq!(is_read(&cache, 3), Some(true));
        assert!((20_000..40_000).contains(&forms_bytes(&cache)));
        // Decoded entries leave no room for all others.
        for number in 4..=8 {
            decoded_text(&cache.get(&request(&link(number))).await.unwrap());
            assert!(forms_bytes(&cache) <= cache.0.cache.budget().forms());
        }
        assert!((1..=8).filter(|number| is_read(&cache, *number) == Some(true)).count() <= 2);
        // An evicted transcript stays usable for its holder.
        assert_eq!(decoded_text(&third).len(), 20_000);
    }

    #[tokio::test]
    async fn cache_entry_of_language_stays_lazy() {
        let (cache, _folder) = open_cache(1 << 20).await;
        import(cache.verbatim(), LINK, "one", false).await;
        let english = Arc::new(GetRequest::new(LINK).with_language("en"));
        for _ in 0..2 {
            assert_eq!(cache.get(&english).await.unwrap().revision(), 1);
        }
        let key = cache.0.cache.selection_or_wait(&*english).await.unwrap();
        assert!(matches!(cache.0.cache.form(&key), Some(CachedForm::Lazy(_))));
        assert_eq!(decoded_text(&cache.get(&english).await.unwrap()), "one");
        assert!(matches!(cache.0.cache.form(&key), Some(CachedForm::Decoded(_))));
    }

    #[tokio::test]
    async fn cache_late_decode_replaces_no_newer_entry() {
        let (cache, _folder) = open_cache(1 << 20).await;
        import(cache.verbatim(), LINK, "one", false).await;
        cached_text(&cache).await;
        cache.invalidate_all();
        let one = cache.get(&request(LINK)).await.unwrap();
        import(cache.verbatim(), LINK, "two", true).await;
        cache.invalidate_all();
        let two = cache.get(&request(LINK)).await.unwrap();
        assert_eq!((decoded_text(&one), one.revision()), ("one".to_owned(), 1));
        assert_eq!((decoded_text(&two), two.revision()), ("two".to_owned(), 2));
        assert_eq!(text(&cache).await, "two");
    }

    #[tokio::test]
    async fn cache_sees_foreign_change_after_max_age() {
        let (cache, folder) = open_cache(1 << 20).await;
        import(cache.verbatim(), LINK, "one", false).await;
        assert_eq!(cached_text(&cache).await, "one");
        let storage = StorageOptions::ArchiveFile(folder.path().join("archive.db"));
        let options = Options { storage, suppliers: SupplierOptions::none(), ..Options::default() };
        let other = Verbatim::open(options).await.unwrap();
        import(&other, LINK, "two", true).await;
        tokio::time::sleep(CHANGE_COUNTER_AGE_MAX).await;
        assert_eq!(text(&cache).await, "two");
        other.tools().delete(&other.tools().known_video(LINK).await.unwrap()).await.unwrap();
        tokio::time::sleep(CHANGE_COUNTER_AGE_MAX).await;
        assert!(cache.get(&request(LINK)).await.is_none());
    }

    #[tokio::test]
    async fn cache_row_read_before_foreign_change_is_not_returned() {
        let (cache, folder) = open_cache(1 << 20).await;
        import(cache.verbatim(), LINK, "one", false).await;
        assert_eq!(text(&cache).await, "one");
        let started_at = Instant::now();
        let video = cache.verbatim().tools().known_video(LINK).await.unwrap();
        let selector = TrackSelector::Default;
        let lazy = cache.verbatim().transcripts().find_lazy(&video, &selector).await.unwrap().unwrap();
        let storage = StorageOptions::ArchiveFile(folder.path().join("archive.db"));
        let options = Options { storage, suppliers: SupplierOptions::none(), ..Options::default() };
        let other = Verbatim::open(options).await.unwrap();
        import(&other, LINK, "two", true).await;
        tokio::time::sleep(CHANGE_COUNTER_AGE_MAX).await;
        cache.0.cache.monitor().read().await.unwrap();
        let changes = lazy.change_counter();
        cache.0.cache.monitor().record(changes, started_at);
        let key = TranscriptKey { video, selector, changes };
        let archived = cache.insert(&request(LINK), key, CachedForm::Lazy(lazy));
        assert_eq!(decoded_text(&archived), "one");
        assert!(cache.peek(&request(LINK)).is_none());
        assert_eq!(text(&cache).await, "two");
    }
}
