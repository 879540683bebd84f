use std::sync::Arc;

use transcript_core::{
    archive::PutRequest,
    time::Timestamp,
    transcript::{LanguageTag, TrackKind, Transcript},
    video::Platform,
};

use super::*;
use crate::{ImportDraft, ImportDraftRequest, ImportEffect, Options, SupplierOptions, Verbatim};

fn video() -> VideoId {
    VideoId::new(Platform::X, "20").unwrap()
}

fn tag(text: &str) -> LanguageTag {
    LanguageTag::parse(text).unwrap()
}

/// A transcript with a value in every field, and with texts and times that are easily lost.
fn transcript(language: &str, kind: TrackKind) -> Transcript {
    Transcript {
        video: video(),
        title: Some("\"T\"\n\u{1b} </script> \u{2028}".repeat(60)),
        author: Some(String::new()),
        duration_ms: Some(3_600_000_000),
        track: TrackInfo {
            language: tag(language),
            kind,
            name: Some("a name".to_owned()),
            original: kind == TrackKind::Generated,
        },
        source: "x-captions".to_owned(),
        segments: vec![
            Segment::new(" leading & <b>bold</b>\n\n", 0, 0),
            Segment::new(" ", 0, 1),
            Segment::new("\\u0000 \u{0} \u{FEFF}\u{10FFFF}", 1, 999_999_999),
            Segment {
                words: vec![Word::new("la", 3_599_999_999, 1), Word::new("te", 3_600_000_000, 0)],
                ..Segment::new("late", 3_599_999_999, 3_600_000_000)
            },
        ],
    }
}

fn metadata() -> VideoMetadata {
    VideoMetadata {
        author_id: Some("12".to_owned()),
        author_url: Some("https://x.com/a".to_owned()),
        published_at: Some(Timestamp::from_millis(1_700_000_000_123)),
        thumbnail_url: Some("https://pbs.twimg.com/a.jpg".to_owned()),
        live: Some(LiveStatus::WasLive),
        description: Some(" two\nlines </script>".to_owned()),
        chapters: vec![
            Chapter { title: "Start".to_owned(), start_ms: 0 },
            Chapter { title: "End".to_owned(), start_ms: 1_001 },
        ],
    }
}

async fn open() -> Verbatim {
    Verbatim::open(Options { suppliers: SupplierOptions::none(), ..Options::default() }).await.unwrap()
}

async fn open_with_transcripts() -> Verbatim {
    let verbatim = open().await;
    let english = TrackSelector::Language(tag("en"));
    let german = TrackSelector::Language(tag("de-AT"));
    let translated = TrackSelector::in_language(tag("de-AT"), true);
    for (selectors, transcript) in [
        (vec![german], transcript("de-AT", TrackKind::Human)),
        (vec![translated], transcript("de-AT", TrackKind::Translated)),
        (vec![TrackSelector::Default], transcript("en", TrackKind::Generated)),
        (vec![english], transcript("en", TrackKind::Human)),
    ] {
        let keep = PutRequest {
            video: video(),
            selectors,
            transcript: Arc::new(transcript),
            known_tracks: vec![TrackInfo::new(tag("fr"), TrackKind::Translated)],
            metadata: metadata(),
            parser_version: 7,
            replace: false,
            now: verbatim.tools().now(),
        };
        verbatim.archive().put(keep).await.unwrap();
    }
    verbatim
}

#[tokio::test]
async fn export_and_import_round_trip() {
    let from = open_with_transcripts().await;
    let to = open().await;
    let exported = from.tools().archived(&video()).await.unwrap();
    let names: Vec<_> = exported.iter().map(TranscriptExport::name).collect();
    assert_eq!(names, ["de-AT", "translation_de-AT.de-AT", "default.en", "en"]);
    for archived in &exported {
        let mut drafts = ImportDraft::read(archived.to_json().unwrap().as_bytes()).unwrap();
        let import_request = |draft, dry_run| ImportDraftRequest { draft, replace: false, dry_run };
        let draft = drafts.remove(0);
        for dry_run in [true, false] {
            let imported = to.tools().import_draft(import_request(draft.clone(), dry_run)).await.unwrap();
            assert!(
                imported.selectors.iter().all(|selector| selector.effect == ImportEffect::Added),
                "{imported:?}"
            );
        }
        let again = to.tools().import_draft(import_request(draft, false)).await.unwrap();
        assert!(
            again.selectors.iter().all(|selector| selector.effect == ImportEffect::Unchanged),
            "{again:?}"
        );
    }
    let mut expect = exported;
    let mut found = to.tools().archived(&video()).await.unwrap();
    for archived in expect.iter_mut().chain(&mut found) {
        // The storage time and the order of the known tracks depend on the archive.
        archived.stored.stored_at = from.tools().now();
        archived.known_tracks.sort_by_key(|track| format!("{track:?}"));
        Arc::make_mut(&mut archived.stored.details).tracks.sort_by_key(|track| format!("{track:?}"));
    }
    let stored_at = expect[0].stored.stored_at;
    expect.iter_mut().chain(&mut found).for_each(|archived| archived.stored.stored_at = stored_at);
    assert_eq!(found, expect);
    assert_eq!(found[0].stored.details.metadata, metadata());
}

#[tokio::test]
async fn export_has_lookup_api_fields() {
    let exported = open_with_transcripts().await.tools().archived(&video()).await.unwrap();
    let json: serde_json::Value = serde_json::from_str(&exported[0].to_json().unwrap()).unwrap();
    for (name, expect) in
        [("platform", "microblog"), ("videoId", "20"), ("source", "x-captions"), ("format", FORMAT)]
    {
        assert_eq!(json[name], expect);
    }
    assert_eq!(json["available"], true);
    assert_eq!(json["transcript"][2]["duration"], 999_999.999);
    assert_eq!(json["transcript"][2].get("words"), None);
    assert_eq!(json["transcript"][3]["words"][0]["start"], 3_599_999.999);
    assert_eq!(json["metadata"]["publishedAt"], "2023-11-14T22:13:20.123Z");
    assert_eq!(json["chapters"][1]["start"], 1.001);
}

#[tokio::test]
async fn export_of_withdrawn_video_is_empty() {
    let verbatim = open_with_transcripts().await;
    verbatim.tools().withdraw(&video(), true).await.unwrap();
    assert_eq!(verbatim.tools().archived(&video()).await.unwrap(), []);
    let shown = verbatim.tools().show("https://x.com/a/status/20").await.unwrap();
    assert!(shown.withdrawn && shown.is_known() && shown.archived.is_empty());
}
