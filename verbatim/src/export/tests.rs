use std::sync::Arc;

use transcript_core::{
    archive::Keep,
    transcript::{LanguageTag, TrackKind, Transcript},
    video::Platform,
};

use super::*;
use crate::{Admit, Draft, Effect, Options, SupplierOptions};

fn video() -> VideoId {
    VideoId::new(Platform::Microblog, "20").unwrap()
}

fn tag(text: &str) -> LanguageTag {
    LanguageTag::parse(text).unwrap()
}

/// A transcript with something in every place, and with texts and times that a careless writer loses.
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
            Segment::new("late", 3_599_999_999, 3_600_000_000),
        ],
    }
}

async fn open() -> Verbatim {
    Verbatim::open(Options { suppliers: SupplierOptions::none(), ..Options::default() }).await.unwrap()
}

async fn filled() -> Verbatim {
    let verbatim = open().await;
    let english = Wish::Language(tag("en"));
    let german = Wish::Language(tag("de-AT"));
    for (wishes, transcript) in [
        (vec![german], transcript("de-AT", TrackKind::Human)),
        (vec![Wish::Default], transcript("en", TrackKind::Generated)),
        (vec![english], transcript("en", TrackKind::Human)),
    ] {
        let keep = Keep {
            video: video(),
            wishes,
            transcript: Arc::new(transcript),
            known_tracks: vec![TrackInfo::new(tag("fr"), TrackKind::Translated)],
            parser_version: 7,
            replace: false,
            now: verbatim.now(),
        };
        verbatim.archive().keep(keep).await.unwrap();
    }
    verbatim
}

#[tokio::test]
async fn what_is_exported_comes_back_without_loss() {
    let from = filled().await;
    let to = open().await;
    let exported = from.archived(&video()).await.unwrap();
    let names: Vec<_> = exported.iter().map(Archived::name).collect();
    assert_eq!(names, ["de-AT", "default.en", "en"]);
    for archived in &exported {
        let mut drafts = Draft::read(archived.to_json().unwrap().as_bytes()).unwrap();
        let admit = |draft, dry_run| Admit { draft, replace: false, dry_run };
        let draft = drafts.remove(0);
        for dry_run in [true, false] {
            let imported = to.admit(admit(draft.clone(), dry_run)).await.unwrap();
            assert!(imported.wishes.iter().all(|wish| wish.effect == Effect::Added), "{imported:?}");
        }
        let again = to.admit(admit(draft, false)).await.unwrap();
        assert!(again.wishes.iter().all(|wish| wish.effect == Effect::Unchanged), "{again:?}");
    }
    let mut expect = exported;
    let mut found = to.archived(&video()).await.unwrap();
    for archived in expect.iter_mut().chain(&mut found) {
        // The moment of storing is each archive's own, and so is the order in which tracks became known.
        archived.stored.stored_at = from.now();
        archived.known_tracks.sort_by_key(|track| format!("{track:?}"));
    }
    let stored_at = expect[0].stored.stored_at;
    expect.iter_mut().chain(&mut found).for_each(|archived| archived.stored.stored_at = stored_at);
    assert_eq!(found, expect);
}

#[tokio::test]
async fn an_export_has_the_fields_of_the_look_up() {
    let exported = filled().await.archived(&video()).await.unwrap();
    let json: serde_json::Value = serde_json::from_str(&exported[0].to_json().unwrap()).unwrap();
    for (name, expect) in
        [("platform", "microblog"), ("videoId", "20"), ("source", "x-captions"), ("format", FORMAT)]
    {
        assert_eq!(json[name], expect);
    }
    assert_eq!(json["available"], true);
    assert_eq!(json["transcript"][2]["duration"], 999_999.999);
}

#[tokio::test]
async fn a_withdrawn_video_is_not_exported() {
    let verbatim = filled().await;
    verbatim.withdraw(&video(), true).await.unwrap();
    assert_eq!(verbatim.archived(&video()).await.unwrap(), []);
    let shown = verbatim.show("https://x.com/a/status/20").await.unwrap();
    assert!(shown.withdrawn && shown.is_known() && shown.archived.is_empty());
}
