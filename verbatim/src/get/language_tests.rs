//! Languages, machine translations and archived-only requests.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use async_trait::async_trait;
use transcript_core::{
    supplier::{
        Supplier, SupplierInfo, SupplyError, SupplyMonitor, SupplyOutput, SupplyReason, SupplyRequest,
    },
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
};

use super::{tests::test_transcript, *};
use crate::{CustomPorts, Options, SupplierOptions, Verbatim};

const LINK: &str = "https://youtu.be/dQw4w9WgXcQ";

/// Has captions in English and French, and a machine translation into German.
#[derive(Debug, Default)]
struct TranslatingSupplier {
    calls: AtomicU32,
}

#[async_trait]
impl Supplier for TranslatingSupplier {
    fn info(&self) -> SupplierInfo {
        SupplierInfo::captions("translating", &[Platform::YouTube])
    }

    async fn supply(
        &self,
        request: SupplyRequest,
        _: Arc<dyn SupplyMonitor>,
    ) -> Result<SupplyOutput, SupplyError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let track = |tag: &str, kind| TrackInfo::new(LanguageTag::parse(tag).unwrap(), kind);
        let known = vec![track("en", TrackKind::Human), track("fr", TrackKind::Generated)];
        let chosen = match request.selector.as_str() {
            "default" | "en" => known[0].clone(),
            "fr" => known[1].clone(),
            "de" | "translation:de" => track("de", TrackKind::Translated),
            _ => {
                return Err(SupplyError::new(SupplyReason::NoLanguage(known), "There is no such language."));
            }
        };
        let transcript = Transcript {
            video: request.video,
            track: chosen,
            source: "translating".to_owned(),
            ..test_transcript(vec![Segment::new("Hello.", 0, 1_000)])
        };
        Ok(SupplyOutput { transcripts: vec![transcript], known_tracks: known, ..SupplyOutput::default() })
    }
}

/// Takes four seconds to find that there is no such language.
#[derive(Debug)]
struct LateSupplier;

#[async_trait]
impl Supplier for LateSupplier {
    fn info(&self) -> SupplierInfo {
        SupplierInfo::captions("slow", &[Platform::YouTube])
    }

    async fn supply(&self, _: SupplyRequest, _: Arc<dyn SupplyMonitor>) -> Result<SupplyOutput, SupplyError> {
        tokio::time::sleep(Duration::from_secs(4)).await;
        Err(SupplyError::new(SupplyReason::NoLanguage(Vec::new()), "There is no such language."))
    }
}

#[tokio::test(start_paused = true)]
async fn get_languages_share_wait_of_options() {
    let wait = Duration::from_secs(5);
    let options =
        Options::default().without_suppliers().with_supplier(Arc::new(LateSupplier)).with_wait(wait);
    let verbatim = Verbatim::open(options).await.unwrap();
    let start = Instant::now();
    let reason = language(&verbatim, request(&["de", "fr", "nl"])).await.unwrap_err();
    assert_eq!(reason, FailureReason::FetchError);
    assert!(start.elapsed() < wait + Duration::from_secs(1), "{:?}", start.elapsed());
}

async fn open() -> (Verbatim, Arc<TranslatingSupplier>) {
    let supplier = Arc::new(TranslatingSupplier::default());
    let mut suppliers = SupplierOptions::none();
    suppliers.add_custom(supplier.as_ref());
    let custom = CustomPorts { suppliers: vec![Arc::clone(&supplier) as _], ..CustomPorts::default() };
    (Verbatim::open(Options { suppliers, custom, ..Options::default() }).await.unwrap(), supplier)
}

fn request(languages: &[&str]) -> GetRequest {
    let mut languages = languages.iter().copied().map(str::to_owned);
    GetRequest {
        link: LINK.to_owned(),
        language: languages.next(),
        other_languages: languages.collect(),
        ..GetRequest::default()
    }
}

/// The language of the transcript, or the reason.
async fn language(verbatim: &Verbatim, request: GetRequest) -> Result<String, FailureReason> {
    match verbatim.get(request).await.unwrap() {
        GetOutcome::Found(found) => Ok(found.stored.transcript.track.language.to_string()),
        GetOutcome::Missing(missing) => Err(missing.reason),
    }
}

#[tokio::test]
async fn get_languages_returns_first_available() {
    let (verbatim, _) = open().await;
    assert_eq!(language(&verbatim, request(&["nl", "fr", "en"])).await.unwrap(), "fr");
    assert_eq!(language(&verbatim, request(&["nl", "de", "en"])).await.unwrap(), "en");
    // An absence of the first language is archived now.
    assert_eq!(language(&verbatim, request(&["nl", "fr"])).await.unwrap(), "fr");
    assert_eq!(language(&verbatim, request(&["nl", "pt"])).await, Err(FailureReason::NoCaptions));
    let many = vec!["en"; LANGUAGES_MAX + 1];
    assert_eq!(verbatim.get(request(&many)).await.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(verbatim.get(request(&["en", "no language"])).await.unwrap_err().kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn get_without_translations_refuses_machine_translation() {
    let (verbatim, supplier) = open().await;
    for _ in 0..2 {
        assert_eq!(language(&verbatim, request(&["de"])).await, Err(FailureReason::NoCaptions));
    }
    // The absence is archived.
    assert_eq!(supplier.calls.load(Ordering::Relaxed), 1);
    let translated = GetRequest { translated: true, ..request(&["de"]) };
    assert_eq!(language(&verbatim, translated.clone()).await.unwrap(), "de");
    assert_eq!(language(&verbatim, translated).await.unwrap(), "de");
    assert_eq!(supplier.calls.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn get_archived_only_calls_no_supplier() {
    let (verbatim, supplier) = open().await;
    let archived = |languages: &[&str]| GetRequest { archived_only: true, ..request(languages) };
    assert_eq!(language(&verbatim, archived(&[])).await, Err(FailureReason::NeedsVerification));
    assert!(verbatim.tools().tracks(archived(&[])).await.unwrap().unwrap().is_empty());
    assert_eq!(supplier.calls.load(Ordering::Relaxed), 0);
    assert_eq!(language(&verbatim, request(&["fr"])).await.unwrap(), "fr");
    assert_eq!(language(&verbatim, archived(&["en", "fr"])).await.unwrap(), "fr");
    assert_eq!(language(&verbatim, archived(&[])).await.unwrap(), "fr");
    assert_eq!(supplier.calls.load(Ordering::Relaxed), 1);
}

/// The message for a video that is not archived in one of these languages, and the number of archived tracks.
async fn not_archived(verbatim: &Verbatim, languages: &[&str]) -> (String, usize) {
    let archived = GetRequest { archived_only: true, ..request(languages) };
    match verbatim.get(archived).await.unwrap() {
        GetOutcome::Missing(missing) => (missing.message, missing.languages.len()),
        GetOutcome::Found(_) => panic!("{languages:?} is archived"),
    }
}

#[tokio::test]
async fn get_archived_only_names_archived_languages() {
    let (verbatim, _) = open().await;
    assert_eq!(not_archived(&verbatim, &["fr"]).await, ("This video is not archived yet.".to_owned(), 0));
    language(&verbatim, request(&["en"])).await.unwrap();
    language(&verbatim, GetRequest { translated: true, ..request(&["de"]) }).await.unwrap();
    let message = "This video is not archived in de or fr. Archived languages: en, de (machine translation).";
    assert_eq!(not_archived(&verbatim, &["de", "fr"]).await, (message.to_owned(), 2));
}

#[tokio::test]
async fn tracks_unknown_video_is_fetched_once() {
    let (verbatim, supplier) = open().await;
    for _ in 0..2 {
        let tracks = verbatim.tools().tracks(request(&[])).await.unwrap().unwrap();
        let names: Vec<_> =
            tracks.iter().map(|one| (one.track.language.as_str(), one.revision.is_some())).collect();
        assert_eq!(names, [("en", true), ("fr", false)]);
    }
    assert_eq!(supplier.calls.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn get_cached_translation_is_refused() {
    let (verbatim, _) = open().await;
    let cache = crate::TranscriptCache::new(verbatim.clone(), 1 << 20);
    let translated = Arc::new(GetRequest { translated: true, ..request(&["de"]) });
    language(&verbatim, GetRequest::clone(&translated)).await.unwrap();
    for _ in 0..3 {
        assert!(cache.get(&translated).await.is_some());
        assert!(cache.get(&Arc::new(request(&["de"]))).await.is_none());
    }
}
