use transcript_core::ErrorKind;

use super::*;
use crate::{GetOutcome, GetRequest, Options, SupplierOptions, Verbatim};

const LINK: &str = "https://youtu.be/dQw4w9WgXcQ";

async fn open() -> Verbatim {
    Verbatim::open(Options { suppliers: SupplierOptions::none(), ..Options::default() }).await.unwrap()
}

fn import(language: Option<&str>, first_text: &str) -> ImportRequest {
    ImportRequest {
        link: LINK.to_owned(),
        captions: format!("WEBVTT\n\n00:01.000 --> 00:02.000\n{first_text}\n").into_bytes(),
        language: language.map(str::to_owned),
        ..ImportRequest::default()
    }
}

/// Effect on each selector: `default Added, en Added`.
fn effects_text(imported: &ImportOutcome) -> String {
    let effects = imported.selectors.iter().map(|import| format!("{} {:?}", import.selector, import.effect));
    effects.collect::<Vec<_>>().join(", ")
}

async fn first_text(verbatim: &Verbatim, language: Option<&str>) -> Option<String> {
    let request =
        GetRequest { link: LINK.to_owned(), language: language.map(str::to_owned), ..GetRequest::default() };
    match verbatim.get(request).await.unwrap() {
        GetOutcome::Found(found) => Some(found.stored.transcript.segments[0].text.clone()),
        GetOutcome::Missing(_) => None,
    }
}

#[tokio::test]
async fn import_answers_language_and_default() {
    let verbatim = open().await;
    let first = verbatim.tools().import(import(Some("de-AT"), "Servus")).await.unwrap();
    assert_eq!(effects_text(&first), "de-AT Added, default Added, de Added");
    assert_eq!(first.segments, 1);
    assert_eq!(first_text(&verbatim, None).await.as_deref(), Some("Servus"));
    assert_eq!(first_text(&verbatim, Some("de")).await.as_deref(), Some("Servus"));
    assert_eq!(first_text(&verbatim, Some("en")).await, None);
}

#[tokio::test]
async fn import_effect_is_strongest_of_selectors() {
    let verbatim = open().await;
    let mut effects = Vec::new();
    for (language, first_text, replace) in [
        ("en", "first", false),
        ("en", "second", false),
        ("en", "second", true),
        ("en", "second", true),
        ("de-AT", "Servus", false),
        // German keeps its transcript, and yet something was added.
        ("de-CH", "Grüezi", false),
    ] {
        let imported = verbatim
            .tools()
            .import(ImportRequest { replace, ..import(Some(language), first_text) })
            .await
            .unwrap();
        effects.push(imported.effect());
    }
    assert_eq!(
        effects,
        [
            ImportEffect::Added,
            ImportEffect::Kept,
            ImportEffect::Replaced,
            ImportEffect::Unchanged,
            ImportEffect::Added,
            ImportEffect::Added
        ]
    );
}

#[tokio::test]
async fn import_without_replace_keeps_archived() {
    let verbatim = open().await;
    verbatim.tools().import(import(Some("en"), "first")).await.unwrap();
    let kept = verbatim.tools().import(import(Some("en"), "second")).await.unwrap();
    assert_eq!(effects_text(&kept), "en Kept, default Kept");
    assert_eq!(first_text(&verbatim, None).await.as_deref(), Some("first"));
    let replaced = verbatim
        .tools()
        .import(ImportRequest { replace: true, ..import(Some("en"), "second") })
        .await
        .unwrap();
    assert_eq!(effects_text(&replaced), "en Replaced, default Replaced");
    assert_eq!(first_text(&verbatim, None).await.as_deref(), Some("second"));
    let again = verbatim
        .tools()
        .import(ImportRequest { replace: true, ..import(Some("en"), "second") })
        .await
        .unwrap();
    assert_eq!(effects_text(&again), "en Unchanged, default Unchanged");
}

#[tokio::test]
async fn import_other_language_keeps_default() {
    let verbatim = open().await;
    verbatim.tools().import(import(Some("en"), "first")).await.unwrap();
    let other = verbatim
        .tools()
        .import(ImportRequest { replace: true, ..import(Some("de"), "zweitens") })
        .await
        .unwrap();
    assert_eq!(effects_text(&other), "de Added");
    assert_eq!(first_text(&verbatim, None).await.as_deref(), Some("first"));
}

#[tokio::test]
async fn import_of_english_replaces_imported_default() {
    let verbatim = open().await;
    verbatim.tools().import(import(Some("de"), "zuerst")).await.unwrap();
    for (language, first_text, effects) in [
        ("en", "second", "en Added, default Replaced"),
        ("en", "third", "en Kept, default Kept"),
        ("de", "viertens", "de Kept"),
    ] {
        let imported = verbatim.tools().import(import(Some(language), first_text)).await.unwrap();
        assert_eq!(effects_text(&imported), effects, "{first_text}");
    }
    check_texts(&verbatim).await;

    // JSON of the APIs lists the tracks of the video: English is its default before it is imported.
    let verbatim = open().await;
    for (language, first_text, effects) in
        [("de", "zuerst", "de Added"), ("en", "second", "en Added, default Added")]
    {
        let languages = r#"[{"tag":"de","name":"German","kind":"manual","original":true},
            {"tag":"en","name":"English","kind":"manual","original":false}]"#;
        let captions = format!(
            r#"{{"language":"{language}","source":"a-supplier","languages":{languages},
                "transcript":[{{"text":"{first_text}","start":1,"duration":1}}]}}"#
        );
        let request = ImportRequest { captions: captions.into_bytes(), ..import(None, "") };
        let imported = verbatim.tools().import(request).await.unwrap();
        assert_eq!(effects_text(&imported), effects, "{first_text}");
    }
    check_texts(&verbatim).await;
}

/// The texts of an archive with English, which is the default, and German.
async fn check_texts(verbatim: &Verbatim) {
    for (language, expect) in [(None, "second"), (Some("en"), "second"), (Some("de"), "zuerst")] {
        assert_eq!(first_text(verbatim, language).await.as_deref(), Some(expect), "{language:?}");
    }
}

#[tokio::test]
async fn import_of_english_keeps_other_defaults() {
    // The default was fetched, or answers nothing else.
    for (source, selectors) in [(Some("a-supplier"), &["default", "de"][..]), (None, &["default"])] {
        let verbatim = open().await;
        let draft = ImportDraft {
            video: Some(verbatim.tools().known_video(LINK).await.unwrap()),
            language: LanguageTag::parse("de").ok(),
            source: source.map(str::to_owned),
            selectors: selectors.iter().map(|name| TrackSelector::from_name(name)).collect(),
            ..ImportDraft::read(&import(None, "zuerst").captions).unwrap().remove(0)
        };
        let request = ImportDraftRequest { draft, replace: false, dry_run: false };
        verbatim.tools().import_draft(request).await.unwrap();
        let kept = verbatim.tools().import(import(Some("en"), "second")).await.unwrap();
        assert_eq!(effects_text(&kept), "en Added, default Kept");
        assert_eq!(first_text(&verbatim, None).await.as_deref(), Some("zuerst"));
    }
}

#[tokio::test]
async fn get_without_supplier_returns_matching_track() {
    let verbatim = open().await;
    let track = |tag| TrackInfo::new(LanguageTag::parse(tag).unwrap(), TrackKind::Human);
    let draft = ImportDraft {
        video: Some(verbatim.tools().known_video(LINK).await.unwrap()),
        language: Some(track("fr").language),
        known_tracks: vec![track("en"), track("fr-CA")],
        ..ImportDraft::read(&import(None, "Mot").captions).unwrap().remove(0)
    };
    let imported = verbatim
        .tools()
        .import_draft(ImportDraftRequest { draft, replace: false, dry_run: false })
        .await
        .unwrap();
    assert_eq!(effects_text(&imported), "fr Added");
    for (language, expect) in [(None, Some("Mot")), (Some("fr-CA"), Some("Mot")), (Some("en"), None)] {
        assert_eq!(first_text(&verbatim, language).await.as_deref(), expect, "{language:?}");
    }
}

#[tokio::test]
async fn import_of_ttml_reads_given_language() {
    let div = |tag: &str, text: &str| {
        format!("<div xml:lang=\"{tag}\"><p begin=\"1s\" end=\"2s\">{text}</p></div>")
    };
    let ttml = format!("<tt xml:lang=\"en\"><body>{}{}</body></tt>", div("en", "wheel"), div("de", "Rad"));
    for (language, expect) in [(Some("de"), "Rad"), (Some("en"), "wheel"), (None, "wheel")] {
        let verbatim = open().await;
        let request = ImportRequest { captions: ttml.clone().into_bytes(), ..import(language, "") };
        let imported = verbatim.tools().import(request).await.unwrap();
        assert_eq!((imported.language.as_str(), imported.left_out.count), (language.unwrap_or("en"), 1));
        assert_eq!(first_text(&verbatim, None).await.as_deref(), Some(expect), "{language:?}");
    }
}

#[tokio::test]
async fn import_unknown_language_answers_default() {
    let verbatim = open().await;
    let imported = verbatim.tools().import(import(None, "words")).await.unwrap();
    assert_eq!(imported.language, LanguageTag::unknown());
    assert_eq!(first_text(&verbatim, None).await.as_deref(), Some("words"));
}

#[tokio::test]
async fn import_invalid_request_stores_nothing() {
    let verbatim = open().await;
    for request in [
        ImportRequest { link: "nonsense".to_owned(), ..import(None, "words") },
        ImportRequest { captions: b"nonsense".to_vec(), ..import(None, "words") },
        ImportRequest { captions: Vec::new(), ..import(None, "words") },
        import(Some("no language"), "words"),
        ImportRequest { title: Some("x".repeat(501)), ..import(None, "words") },
    ] {
        assert_eq!(verbatim.tools().import(request).await.unwrap_err().kind(), ErrorKind::Invalid);
    }
    assert_eq!(verbatim.archive().stats().await.unwrap().transcripts, 0);
}

#[tokio::test]
async fn import_of_withdrawn_video_is_conflict() {
    let verbatim = open().await;
    let video = verbatim.tools().import(import(Some("en"), "words")).await.unwrap().video;
    verbatim.archive().withdraw(&video, true, verbatim.tools().now()).await.unwrap();
    let refused = verbatim.tools().import(import(Some("en"), "others")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert_eq!(first_text(&verbatim, None).await, None);
}

#[tokio::test]
async fn import_without_replace_keeps_newer_metadata() {
    let verbatim = open().await;
    let mut metadata = Vec::new();
    for (language, description, author_id, replace) in [
        ("en", "new", None, false),
        ("en", "old", Some("UC1"), false),
        // No transcript of this language is archived.
        ("de", "old", Some("UC2"), false),
        ("en", "newest", None, true),
    ] {
        let mut draft = ImportDraft::read(&import(None, "words").captions).unwrap().remove(0);
        draft.video = Some(verbatim.tools().known_video(LINK).await.unwrap());
        draft.language = Some(LanguageTag::parse(language).unwrap());
        draft.metadata = VideoMetadata {
            description: Some(description.to_owned()),
            author_id: author_id.map(str::to_owned),
            ..VideoMetadata::default()
        };
        let request = ImportDraftRequest { draft, replace, dry_run: false };
        let video = verbatim.tools().import_draft(request).await.unwrap().video;
        let stored = verbatim.archive().stored_body(&video, &TrackSelector::Default).await.unwrap().unwrap();
        let VideoMetadata { description, author_id, .. } = stored.details.metadata.clone();
        metadata.push((description.unwrap(), author_id));
    }
    let expect = [("new", None), ("new", Some("UC1")), ("new", Some("UC1")), ("newest", Some("UC1"))];
    assert_eq!(metadata, expect.map(|(text, id)| (text.to_owned(), id.map(str::to_owned))));
}
