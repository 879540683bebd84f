use std::{
    future::ready,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use transcript_core::{
    Timestamp,
    archive::{Archive, PutRequest, TrackSelector},
    memory::MemoryArchive,
    transcript::Segment,
    video::VideoId,
};

use super::*;
use crate::{SystemClock, SystemRandom, get::tests::test_transcript};

const MIB: u64 = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key(u32, bool);

impl FormKey for Key {
    fn cost(&self) -> FormCost {
        if self.1 { FormCost::Costly } else { FormCost::Cheap }
    }
}

type TestCache = ReadCache<String, u32, Key, u32>;

fn open() -> (Arc<MemoryArchive>, TestCache) {
    open_with(|transcripts, budget| ReadCache::new(transcripts, budget, Duration::ZERO))
}

fn open_with(
    create: impl FnOnce(Transcripts, ReadCacheBudget) -> TestCache,
) -> (Arc<MemoryArchive>, TestCache) {
    let archive = Arc::new(MemoryArchive::default());
    let runtime = tokio::runtime::Handle::current();
    let ports =
        (Arc::clone(&archive), Arc::new(SystemClock::default()), Arc::new(SystemRandom::open().unwrap()));
    let transcripts = Transcripts::builder(ports.0, ports.1, ports.2, runtime).build();
    let budget = ReadCacheBudget { selections: MIB, cheap_forms: MIB, costly_forms: 2 * MIB };
    (archive, create(transcripts, budget))
}

/// Archives a transcript, so that a withdrawal grows the change counter.
async fn put(archive: &MemoryArchive) -> VideoId {
    let transcript = test_transcript(vec![Segment::new("one", 0, 1)]);
    let video = transcript.video.clone();
    let request = PutRequest {
        video: video.clone(),
        selectors: vec![TrackSelector::Default],
        known_tracks: vec![transcript.track.clone()],
        transcript: Arc::new(transcript),
        metadata: Default::default(),
        parser_version: 1,
        replace: false,
        now: Timestamp::from_millis(0),
    };
    archive.put(request).await.unwrap();
    video
}

#[tokio::test(start_paused = true)]
async fn selection_is_valid_within_counter_age_only() {
    let (archive, cache) = open();
    let video = put(&archive).await;
    assert_eq!(cache.selection("q", Instant::now()), None);
    let changes = cache.monitor().read().await.unwrap();
    cache.insert_selection("q".to_owned(), 1, 7, changes);
    assert_eq!(cache.selection("q", Instant::now()), Some(7));
    archive.withdraw(&video, true, Timestamp::from_millis(0)).await.unwrap();
    // Another process's change may be unseen for 50 ms, and no longer.
    tokio::time::advance(CHANGE_COUNTER_AGE_MAX - Duration::from_millis(31)).await;
    assert_eq!(cache.selection("q", Instant::now()), Some(7));
    tokio::time::advance(Duration::from_millis(31)).await;
    assert_eq!(cache.selection("q", Instant::now()), None);
    assert_eq!(cache.selection_or_wait("q").await, None);
    // The counter is known now, and differs.
    assert!(cache.monitor().changes(Instant::now()).is_some());
    assert_eq!(cache.selection("q", Instant::now()), None);
}

#[tokio::test(start_paused = true)]
async fn selection_is_refreshed_in_background_under_traffic() {
    let (_archive, cache) = open();
    let changes = cache.monitor().read().await.unwrap();
    cache.insert_selection("q".to_owned(), 1, 7, changes);
    for _ in 0..20 {
        tokio::time::advance(Duration::from_millis(21)).await;
        assert_eq!(cache.selection("q", Instant::now()), Some(7));
        // The background reading takes a few polls of its tasks.
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn selection_of_program_is_refreshed_by_requests_only() {
    let (_archive, cache) = open_with(ReadCache::for_program);
    let changes = cache.monitor().read().await.unwrap();
    cache.insert_selection("q".to_owned(), 1, 7, changes);
    for _ in 0..3 {
        tokio::time::advance(Duration::from_millis(30)).await;
        assert_eq!(cache.selection("q", Instant::now()), Some(7));
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
        tokio::time::advance(Duration::from_millis(30)).await;
        assert_eq!(cache.selection("q", Instant::now()), None);
        assert_eq!(cache.selection_or_wait("q").await, Some(7));
    }
}

#[tokio::test(start_paused = true)]
async fn selection_of_older_counter_is_never_valid() {
    let (archive, cache) = open();
    let video = put(&archive).await;
    let before = cache.monitor().read().await.unwrap();
    archive.withdraw(&video, true, Timestamp::from_millis(0)).await.unwrap();
    tokio::time::advance(CHANGE_COUNTER_AGE_MAX).await;
    let after = cache.monitor().read().await.unwrap();
    assert!(before < after);
    // A slow reader stores what it read before the change.
    cache.insert_selection("q".to_owned(), 1, 7, before);
    cache.monitor().record(before, Instant::now());
    assert_eq!(cache.selection("q", Instant::now()), None);
}

#[tokio::test(start_paused = true)]
async fn selection_of_counter_that_went_back_is_never_valid() {
    let (_archive, cache) = open();
    let monitor = cache.monitor();
    let before_first = Instant::now();
    tokio::time::advance(Duration::from_millis(1)).await;
    let first = monitor.record(100, Instant::now());
    cache.insert_selection("q".to_owned(), 1, 7, first);
    // An older reading, and one that overlaps: the counter stays.
    monitor.record(99, before_first);
    monitor.record(99, Instant::now());
    assert_eq!(cache.selection("q", Instant::now()), Some(7));
    // The database failed over and lost three changes.
    tokio::time::advance(Duration::from_millis(1)).await;
    let lower = monitor.record(97, Instant::now());
    assert_eq!((lower > first, monitor.changes(Instant::now())), (true, Some(lower)));
    assert_eq!(cache.selection("q", Instant::now()), None);
    cache.insert_selection("r".to_owned(), 1, 8, lower);
    assert_eq!(cache.selection("r", Instant::now()), Some(8));
    // A change after the failover, and the counter of the first selection again.
    for count in [98, 100] {
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(monitor.record(count, Instant::now()), lower + count - 97);
        assert_eq!(
            (cache.selection("q", Instant::now()), cache.selection("r", Instant::now())),
            (None, None)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn invalidated_cache_reads_counter_again() {
    let (archive, cache) = open();
    let video = put(&archive).await;
    let changes = cache.monitor().read().await.unwrap();
    cache.insert_selection("q".to_owned(), 1, 7, changes);
    cache.insert_form(Key(7, true), 70, 1);
    archive.withdraw(&video, true, Timestamp::from_millis(0)).await.unwrap();
    tokio::time::advance(Duration::from_millis(1)).await;
    cache.invalidate_all();
    assert_eq!((cache.selection("q", Instant::now()), cache.form(&Key(7, true))), (None, None));
    // A call that began before the change stores its result late.
    cache.insert_selection("q".to_owned(), 1, 7, changes);
    assert_eq!(cache.selection("q", Instant::now()), None);
    assert_eq!(cache.selection_or_wait("q").await, None);
    assert_eq!(cache.monitor().read().await, Some(changes + 1));
}

#[tokio::test]
async fn costly_forms_are_not_evicted_by_cheap_ones() {
    let (_archive, cache) = open();
    cache.insert_form(Key(0, true), 1, MIB);
    for number in 0..1_000 {
        cache.insert_form(Key(number, false), number, 64 << 10);
    }
    assert_eq!(cache.form(&Key(0, true)), Some(1));
    let cheap = cache.usage(|key| !key.1);
    assert!(cheap.bytes <= MIB && 4 < cheap.entries && cheap.entries < 17, "{cheap:?}");
    assert_eq!(cache.usage(|key| key.1), ReadCacheUsage { entries: 1, bytes: MIB + OVERHEAD });
}

#[tokio::test]
async fn costly_form_is_made_once_for_concurrent_callers() {
    let (_archive, cache) = open();
    let made = AtomicU32::new(0);
    let make = || async {
        tokio::task::yield_now().await;
        made.fetch_add(1, Ordering::Relaxed);
        Ok::<_, ()>((5, 100))
    };
    let key = Key(1, true);
    let callers = tokio::join!(cache.form_or_make(&key, make()), cache.form_or_make(&key, make()));
    assert_eq!((callers, made.load(Ordering::Relaxed)), ((Ok(5), Ok(5)), 1));
    // A failure is not stored.
    assert_eq!(cache.form_or_make(&Key(2, true), ready(Err("failed"))).await, Err("failed"));
    assert_eq!(cache.form_or_make(&Key(2, true), ready(Ok::<_, ()>((6, 100)))).await, Ok(6));
}

#[tokio::test]
async fn replaced_form_is_cached_only_if_it_was() {
    let (_archive, cache) = open();
    cache.try_replace_form(&Key(1, false), 1, 10);
    assert_eq!(cache.form(&Key(1, false)), None);
    cache.insert_form(Key(1, false), 1, 10);
    cache.try_replace_form(&Key(1, false), 2, 20);
    assert_eq!(cache.form(&Key(1, false)), Some(2));
    assert_eq!(cache.usage(|_| true), ReadCacheUsage { entries: 1, bytes: 20 + OVERHEAD });
}

#[tokio::test]
async fn cache_parts_never_exceed_budget() {
    for bytes in [0, 1, MIB - 1, 3 * MIB + 5, 24 * MIB + 7, 64 * MIB + 63, (1 << 32) - 1] {
        let selections: WeightedCache<u32, u32> = cache(bytes, 2 * OVERHEAD, SELECTION_SHARD_BYTES_MIN);
        let forms: WeightedCache<u32, u32> = cache(bytes, FORM_BYTES, FORM_SHARD_BYTES_MIN);
        for (part, shard_bytes_min) in
            [(selections, SELECTION_SHARD_BYTES_MIN), (forms, FORM_SHARD_BYTES_MIN)]
        {
            let shards = part.num_shards() as u64;
            assert!((bytes.saturating_sub(shards - 1)..=bytes).contains(&part.capacity()), "{bytes}");
            assert!(shards == 1 || shard_bytes_min <= part.shard_capacity(), "{bytes}: {shards}");
        }
    }
    assert_eq!(open().1.selections.num_shards(), 2);
}
