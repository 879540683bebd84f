use transcript_core::ErrorKind;

use super::*;
use crate::{Get, GetOutcome, Options, SupplierOptions};

const LINK: &str = "https://youtu.be/dQw4w9WgXcQ";

async fn open() -> Verbatim {
    Verbatim::open(Options { suppliers: SupplierOptions::none(), ..Options::default() }).await.unwrap()
}

fn import(language: Option<&str>, words: &str) -> Import {
    Import {
        link: LINK.to_owned(),
        captions: format!("WEBVTT\n\n00:01.000 --> 00:02.000\n{words}\n").into_bytes(),
        language: language.map(str::to_owned),
        ..Import::default()
    }
}

/// What each wish came to: `default added, en added`.
fn told(imported: &Imported) -> String {
    let wishes = imported.wishes.iter().map(|wish| format!("{} {:?}", wish.wish, wish.effect));
    wishes.collect::<Vec<_>>().join(", ")
}

async fn words(verbatim: &Verbatim, language: Option<&str>) -> Option<String> {
    let ask = Get { link: LINK.to_owned(), language: language.map(str::to_owned) };
    match verbatim.get(ask).await.unwrap() {
        GetOutcome::Found(found) => Some(found.stored.transcript.segments[0].text.clone()),
        GetOutcome::Missing(_) => None,
    }
}

#[tokio::test]
async fn an_import_answers_its_language_and_the_default() {
    let verbatim = open().await;
    let first = verbatim.import(import(Some("de-AT"), "Servus")).await.unwrap();
    assert_eq!(told(&first), "de-AT Added, default Added, de Added");
    assert_eq!(first.segments, 1);
    assert_eq!(words(&verbatim, None).await.as_deref(), Some("Servus"));
    assert_eq!(words(&verbatim, Some("de")).await.as_deref(), Some("Servus"));
    assert_eq!(words(&verbatim, Some("en")).await, None);
}

#[tokio::test]
async fn an_import_that_adds_something_has_added() {
    let verbatim = open().await;
    let mut effects = Vec::new();
    for (language, words, replace) in [
        ("en", "first", false),
        ("en", "second", false),
        ("en", "second", true),
        ("en", "second", true),
        ("de-AT", "Servus", false),
        // German stays as it is, and yet there is something from now on that was not there before.
        ("de-CH", "Grüezi", false),
    ] {
        let imported = verbatim.import(Import { replace, ..import(Some(language), words) }).await.unwrap();
        effects.push(imported.effect());
    }
    assert_eq!(
        effects,
        [Effect::Added, Effect::Kept, Effect::Replaced, Effect::Unchanged, Effect::Added, Effect::Added]
    );
}

#[tokio::test]
async fn what_is_archived_stays_unless_it_is_to_be_replaced() {
    let verbatim = open().await;
    verbatim.import(import(Some("en"), "first")).await.unwrap();
    let kept = verbatim.import(import(Some("en"), "second")).await.unwrap();
    assert_eq!(told(&kept), "en Kept, default Kept");
    assert_eq!(words(&verbatim, None).await.as_deref(), Some("first"));
    let replaced = verbatim.import(Import { replace: true, ..import(Some("en"), "second") }).await.unwrap();
    assert_eq!(told(&replaced), "en Replaced, default Replaced");
    assert_eq!(words(&verbatim, None).await.as_deref(), Some("second"));
    let again = verbatim.import(Import { replace: true, ..import(Some("en"), "second") }).await.unwrap();
    assert_eq!(told(&again), "en Unchanged, default Unchanged");
}

#[tokio::test]
async fn another_language_does_not_take_the_place_of_the_default() {
    let verbatim = open().await;
    verbatim.import(import(Some("en"), "first")).await.unwrap();
    let other = verbatim.import(Import { replace: true, ..import(Some("de"), "zweitens") }).await.unwrap();
    assert_eq!(told(&other), "de Added");
    assert_eq!(words(&verbatim, None).await.as_deref(), Some("first"));
}

#[tokio::test]
async fn another_track_stands_in_where_nobody_can_be_asked() {
    let verbatim = open().await;
    let track = |tag| TrackInfo::new(LanguageTag::parse(tag).unwrap(), TrackKind::Human);
    let draft = Draft {
        video: Some(verbatim.known_video(LINK).await.unwrap()),
        language: Some(track("fr").language),
        known_tracks: vec![track("en"), track("fr-CA")],
        ..Draft::read(&import(None, "Mot").captions).unwrap().remove(0)
    };
    let imported = verbatim.admit(Admit { draft, replace: false, dry_run: false }).await.unwrap();
    assert_eq!(told(&imported), "fr Added");
    for (language, expect) in [(None, Some("Mot")), (Some("fr-CA"), Some("Mot")), (Some("en"), None)] {
        assert_eq!(words(&verbatim, language).await.as_deref(), expect, "{language:?}");
    }
}

#[tokio::test]
async fn captions_in_a_language_that_nobody_named_are_the_default() {
    let verbatim = open().await;
    let imported = verbatim.import(import(None, "words")).await.unwrap();
    assert_eq!(imported.language, LanguageTag::unknown());
    assert_eq!(words(&verbatim, None).await.as_deref(), Some("words"));
}

#[tokio::test]
async fn what_is_wrong_is_said_and_nothing_is_stored() {
    let verbatim = open().await;
    for ask in [
        Import { link: "nonsense".to_owned(), ..import(None, "words") },
        Import { captions: b"nonsense".to_vec(), ..import(None, "words") },
        Import { captions: Vec::new(), ..import(None, "words") },
        import(Some("no language"), "words"),
        Import { title: Some("x".repeat(501)), ..import(None, "words") },
    ] {
        assert_eq!(verbatim.import(ask).await.unwrap_err().kind(), ErrorKind::Invalid);
    }
    assert_eq!(verbatim.archive().stats().await.unwrap().transcripts, 0);
}

#[tokio::test]
async fn a_withdrawn_video_takes_no_import() {
    let verbatim = open().await;
    let video = verbatim.import(import(Some("en"), "words")).await.unwrap().video;
    verbatim.archive().withdraw(&video, true, verbatim.now()).await.unwrap();
    let refused = verbatim.import(import(Some("en"), "others")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert_eq!(words(&verbatim, None).await, None);
}
