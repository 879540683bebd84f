use std::{
    collections::BTreeMap,
    sync::{
        Mutex as StdMutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use super::*;
use crate::{
    error::ErrorKind,
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, test_transcript},
    video::Platform,
};

/// A sorted map in memory.
#[derive(Debug, Default)]
struct MapStore(StdMutex<BTreeMap<String, Vec<u8>>>);

impl MapStore {
    fn change<T>(&self, work: impl FnOnce(&mut BTreeMap<String, Vec<u8>>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl KeyValueStore for MapStore {
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        tokio::task::yield_now().await;
        Ok(self.change(|map| map.get(key).cloned()))
    }

    async fn write(&self, changes: Vec<KeyValueChange>) -> Result<()> {
        tokio::task::yield_now().await;
        self.change(|map| {
            for KeyValueChange { key, value } in changes {
                match value {
                    Some(value) => map.insert(key, value),
                    None => map.remove(&key),
                };
            }
        });
        Ok(())
    }

    async fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<Vec<(String, Vec<u8>)>> {
        let entry = |(key, value): (&String, &Vec<u8>)| (key.clone(), value.clone());
        Ok(self.change(|map| {
            let keys = map.iter().filter(|(key, _)| key.starts_with(prefix) && key.as_str() > after);
            keys.take(limit).map(entry).collect()
        }))
    }
}

#[cfg(feature = "testing")]
mod conformance {
    use super::*;

    crate::archive_conformance!(Arc::new(KeyValueArchive::new(Arc::new(MapStore::default()))));
}

fn request(id: &str, text: &str, languages: &[&str]) -> PutRequest {
    let video = VideoId::new(Platform::YouTube, id).unwrap();
    let tag = |tag: &&str| LanguageTag::parse(tag).unwrap();
    let track = |language: &&str| TrackInfo::new(tag(language), TrackKind::Human);
    PutRequest {
        video: video.clone(),
        selectors: languages.iter().map(|language| TrackSelector::Language(tag(language))).collect(),
        transcript: Arc::new(Transcript {
            video,
            track: track(&languages[0]),
            ..test_transcript(vec![Segment::new(text, 0, 1_000)])
        }),
        known_tracks: languages.iter().map(track).collect(),
        metadata: Default::default(),
        parser_version: 1,
        replace: false,
        now: Timestamp::from_millis(1),
    }
}

#[tokio::test]
async fn key_value_damaged_text_is_corrupt_until_put_again() {
    let store = Arc::new(MapStore::default());
    let archive = KeyValueArchive::new(Arc::clone(&store) as _);
    let put = request("aaaaaaaaaaa", "Hello.", &["en"]);
    let (video, selector) = (put.video.clone(), put.selectors[0].clone());
    archive.put(put.clone()).await.unwrap();
    for damage in [&b"{"[..], b"{}"] {
        store.change(|map| {
            let text = map.keys().find(|key| key.starts_with("text/")).cloned().unwrap();
            map.insert(text, damage.to_vec());
        });
        let found = archive.find(&video, &selector, put.now).await;
        assert_eq!(found.unwrap_err().kind(), ErrorKind::Corrupt);
        archive.put(PutRequest { replace: true, ..put.clone() }).await.unwrap();
        let found = archive.find(&video, &selector, put.now).await.unwrap();
        assert!(matches!(found, FindOutcome::Transcript(stored) if stored.revision == 1));
    }
    archive.delete(&video).await.unwrap();
    assert_eq!(store.change(|map| map.keys().filter(|key| key.starts_with("text/")).count()), 0);
}

#[tokio::test]
async fn key_value_list_continues_within_video_and_beyond_one_read() {
    let archive = KeyValueArchive::new(Arc::new(MapStore::default()));
    let videos = keys::LIST_MAX + 20;
    for number in 0..videos {
        let id = format!("aaaaaaaa{number:03}");
        archive.put(request(&id, "One.", &["en"])).await.unwrap();
        archive.put(request(&id, "Zwei.", &["de"])).await.unwrap();
    }
    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let page = archive.list_tracks(PageRequest { after, limit: 7 }).await.unwrap();
        listed.extend(
            page.items.iter().map(|track| (track.video.to_string(), track.track.language.to_string())),
        );
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(listed.len(), videos * 2);
    let mut distinct = listed.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), listed.len());
    assert_eq!(archive.stats().await.unwrap().transcripts, videos as u64 * 2);
}

/// A store whose writes end although their caller is dropped, as those of a blocking thread do.
#[derive(Debug, Default)]
struct DetachedStore(Arc<MapStore>);

#[async_trait]
impl KeyValueStore for DetachedStore {
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        self.0.get(key).await
    }

    async fn write(&self, changes: Vec<KeyValueChange>) -> Result<()> {
        let store = Arc::clone(&self.0);
        let write = tokio::spawn(async move {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            store.write(changes).await
        });
        write.await.unwrap()
    }

    async fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<Vec<(String, Vec<u8>)>> {
        self.0.list(prefix, after, limit).await
    }
}

#[tokio::test(start_paused = true)]
async fn key_value_change_waits_for_write_of_dropped_caller() {
    let archive = KeyValueArchive::new(Arc::new(DetachedStore::default()));
    let put = request("aaaaaaaaaaa", "Hello.", &["en"]);
    let (video, selector) = (put.video.clone(), put.selectors[0].clone());
    let dropped = tokio::time::timeout(std::time::Duration::from_millis(5), archive.put(put.clone())).await;
    assert!(dropped.is_err(), "the caller waited");
    archive.withdraw(&video, true, put.now).await.unwrap();
    assert_eq!(archive.find(&video, &selector, put.now).await.unwrap(), FindOutcome::Withdrawn);
    archive.withdraw(&video, false, put.now).await.unwrap();
    let found = archive.find(&video, &selector, put.now).await.unwrap();
    assert!(matches!(found, FindOutcome::Transcript(_)), "the write is lost: {found:?}");
    assert_eq!(archive.change_counter().await.unwrap(), 2);
}

/// A store whose first write panics while its caller waits for it.
#[derive(Debug, Default)]
struct PanickingStore {
    map: MapStore,
    has_panicked: AtomicBool,
}

#[async_trait]
impl KeyValueStore for PanickingStore {
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        self.map.get(key).await
    }

    async fn write(&self, changes: Vec<KeyValueChange>) -> Result<()> {
        tokio::task::yield_now().await;
        assert!(self.has_panicked.swap(true, Ordering::Relaxed), "a defect");
        self.map.write(changes).await
    }

    async fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<Vec<(String, Vec<u8>)>> {
        self.map.list(prefix, after, limit).await
    }
}

#[tokio::test]
async fn key_value_write_that_panics_fails_only_its_change() {
    let archive = KeyValueArchive::new(Arc::new(PanickingStore::default()));
    let put = request("aaaaaaaaaaa", "Hello.", &["en"]);
    let (changed, first) = (archive.clone(), put.clone());
    let failed = tokio::spawn(async move { changed.put(first).await }).await;
    assert!(failed.unwrap_err().is_panic());
    archive.put(put.clone()).await.unwrap();
    archive.withdraw(&put.video, true, put.now).await.unwrap();
    assert_eq!(archive.find(&put.video, &put.selectors[0], put.now).await.unwrap(), FindOutcome::Withdrawn);
}

#[tokio::test]
async fn key_value_records_changes_over_data_of_earlier_versions() {
    let store = Arc::new(MapStore::default());
    let archive = KeyValueArchive::new(Arc::clone(&store) as _);
    let put = request("aaaaaaaaaaa", "Hello.", &["en"]);
    archive.put(put.clone()).await.unwrap();
    store.change(|map| {
        map.retain(|key, _| !key.starts_with(keys::UNINDEXED));
        let fields = [(keys::TOTALS.to_owned(), "index_changes"), (keys::video(&put.video), "index_change")];
        for (key, field) in fields {
            let mut value: serde_json::Value = serde_json::from_slice(&map[&key]).unwrap();
            assert!(value.as_object_mut().unwrap().remove(field).is_some(), "{key} has no {field}");
            map.insert(key, serde_json::to_vec(&value).unwrap());
        }
    });
    assert_eq!(archive.unindexed_videos(10).await.unwrap(), []);
    archive.withdraw(&put.video, true, put.now).await.unwrap();
    archive.withdraw(&put.video, false, put.now).await.unwrap();
    let listed = archive.unindexed_videos(10).await.unwrap();
    assert_eq!(listed, [ChangedVideo { video: put.video.clone(), change: 2 }]);
    archive.delete_unindexed_videos(&listed).await.unwrap();
    assert_eq!(store.change(|map| map.keys().filter(|key| key.starts_with(keys::UNINDEXED)).count()), 0);
}

/// What `list` of a [`DefectiveListStore`] does.
#[derive(Clone, Copy, Debug)]
enum ListDefect {
    IgnoresAfter,
    IgnoresPrefix,
    Descends,
}

/// A store whose `list` breaks a rule.
#[derive(Debug)]
struct DefectiveListStore {
    map: MapStore,
    defect: ListDefect,
}

#[async_trait]
impl KeyValueStore for DefectiveListStore {
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        self.map.get(key).await
    }

    async fn write(&self, changes: Vec<KeyValueChange>) -> Result<()> {
        self.map.write(changes).await
    }

    async fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<Vec<(String, Vec<u8>)>> {
        match self.defect {
            ListDefect::IgnoresAfter => self.map.list(prefix, prefix, limit).await,
            ListDefect::IgnoresPrefix => self.map.list("", after, limit).await,
            ListDefect::Descends => {
                let entries = self.map.list(prefix, after, limit).await?;
                Ok(entries.into_iter().rev().collect())
            }
        }
    }
}

#[tokio::test]
async fn key_value_store_that_lists_other_keys_is_error() {
    for defect in [ListDefect::IgnoresAfter, ListDefect::IgnoresPrefix, ListDefect::Descends] {
        let store = DefectiveListStore { map: MapStore::default(), defect };
        let archive = KeyValueArchive::new(Arc::new(store));
        // Fewer than `unindexed_videos` reads: their keys are followed by others.
        let videos = if matches!(defect, ListDefect::IgnoresPrefix) { 5 } else { keys::LIST_MAX };
        for number in 0..videos {
            archive.put(request(&format!("aaaaaaaa{number:03}"), "One.", &["en"])).await.unwrap();
        }
        let error = match defect {
            ListDefect::IgnoresPrefix => archive.unindexed_videos(10).await.unwrap_err(),
            // No video is withdrawn, so the archive reads to the end.
            ListDefect::IgnoresAfter | ListDefect::Descends => {
                archive.list_withdrawn(PageRequest { after: None, limit: 7 }).await.unwrap_err()
            }
        };
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{defect:?}");
        assert!(error.message().contains("are greater than `after`"), "{defect:?}: {}", error.message());
    }
}

/// A store on a full disk.
#[derive(Debug, Default)]
struct FullStore(MapStore);

#[async_trait]
impl KeyValueStore for FullStore {
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        self.0.get(key).await
    }

    async fn write(&self, _: Vec<KeyValueChange>) -> Result<()> {
        Err(Error::unavailable("the disk is full"))
    }

    async fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<Vec<(String, Vec<u8>)>> {
        self.0.list(prefix, after, limit).await
    }
}

#[tokio::test]
async fn key_value_check_of_writes_writes_and_changes_no_data() {
    let full = KeyValueArchive::new(Arc::new(FullStore::default()));
    assert_eq!(full.check_writable().await.unwrap_err().message(), "the disk is full");
    let store = Arc::new(MapStore::default());
    let archive = KeyValueArchive::new(Arc::clone(&store) as _);
    archive.put(request("aaaaaaaaaaa", "One.", &["en"])).await.unwrap();
    let mut before = store.change(|map| map.clone());
    for _ in 0..2 {
        archive.check_writable().await.unwrap();
    }
    before.insert(keys::CHECK.to_owned(), b"null".to_vec());
    assert_eq!(store.change(|map| map.clone()), before);
}
