//! Request limits of the supplier, and which responses it accepts.

use super::*;
use crate::ClientIdentity;

fn texts(supplied: &SupplyOutput) -> Vec<&str> {
    supplied.transcripts.iter().map(|found| found.segments[0].text.as_str()).collect()
}

fn throttle(named_s: u32) -> Vec<ScriptStep> {
    reply(429, &format!("retry-after: {named_s}\r\n"), "")
}

#[tokio::test]
async fn supply_gated_track_keeps_language() {
    for (gated, selector) in [("en", "default"), ("fr", "fr")] {
        let platform = FakePlatform::start(move |request, _| match client(request) {
            Some(_) => player(&[track(gated, "", "&exp=xpe"), track("de", "asr", "")]),
            None => captions_reply("half of it"),
        })
        .await;
        assert_eq!(reason(supply(&platform, selector).await), SupplyReason::Unreadable, "{selector}");
        assert_eq!(platform.requests().len(), 3, "{selector}");
    }
}

#[tokio::test]
async fn supply_blocked_only_route_pauses_youtube() {
    fn bot_check(_: u32) -> Vec<ScriptStep> {
        rejection("LOGIN_REQUIRED", "Sign in to confirm you’re not a bot")
    }
    for (block, most_s) in [(throttle as fn(u32) -> Vec<ScriptStep>, 300), (bot_check, 1)] {
        let platform = FakePlatform::start(move |_, _| block(3_600)).await;
        let http = platform.http();
        let blocked = supply_by(Arc::clone(&http), request("default")).await.unwrap_err();
        assert!(blocked.retry_after().is_some(), "{blocked:?}");
        for _ in 0..2 {
            let error = supply_by(Arc::clone(&http), request("default")).await.unwrap_err();
            let SupplyReason::Throttled(Some(left)) = *error.reason() else { panic!("{error:?}") };
            let most = Duration::from_secs(most_s);
            assert!(left <= most && !left.is_zero() && left + Duration::from_secs(15) >= most, "{left:?}");
            assert!(error.message().contains("requests to it are paused"), "{error}");
        }
        assert_eq!(platform.requests().len(), 1, "no more requests are sent");
    }
}

#[tokio::test]
async fn supply_403_of_one_video_does_not_pause_youtube() {
    let platform = FakePlatform::start(|_, _| reply(403, "", "")).await;
    let http = platform.http();
    for _ in 0..2 {
        let error = supply_by(Arc::clone(&http), request("default")).await.unwrap_err();
        assert_eq!(*error.reason(), SupplyReason::Throttled(None));
    }
    assert_eq!(platform.requests().len(), 6);
}

#[tokio::test]
async fn supply_slow_default_does_not_delay_requested_language() {
    let late = || {
        let mut steps = vec![ScriptStep::Wait(Duration::from_secs(15))];
        steps.extend(captions_reply("the wheel"));
        steps
    };
    for default in
        [late as fn() -> Vec<ScriptStep>, || throttle(5), || reply(503, "", ""), || reply(200, "", "?")]
    {
        let platform = FakePlatform::start(move |request, _| match client(request) {
            Some(_) => player(&[track("en", "", ""), track("de", "", "")]),
            None if request.line.contains("lang=de") => captions_reply("das Rad"),
            None => default(),
        })
        .await;
        let started = Instant::now();
        let supplied = supply(&platform, "de").await.unwrap();
        assert!(started.elapsed() < Duration::from_secs(12), "{:?}", started.elapsed());
        assert_eq!(texts(&supplied), ["das Rad"]);
        assert_eq!(platform.requests().len(), 3, "one request for the default");
    }
}

#[tokio::test]
async fn supply_gated_default_is_not_replaced() {
    let platform = FakePlatform::start(|request, _| match client(request) {
        Some(_) => player(&[track("en", "", "&exp=xpe"), track("en", "asr", ""), track("de", "", "")]),
        None => captions_reply("das Rad"),
    })
    .await;
    assert_eq!(texts(&supply(&platform, "de").await.unwrap()), ["das Rad"]);
    assert_eq!(platform.requests().len(), 2);
}

#[tokio::test]
async fn supply_stops_at_request_limit() {
    // Every format of the captions takes three attempts and is unreadable.
    let platform = FakePlatform::start(|request, before| match client(request) {
        Some(_) => player(&[track("en", "", "")]),
        None if before % 10 % 3 == 0 => reply(200, "", "?"),
        None => reply(502, "", ""),
    })
    .await;
    assert_eq!(reason(supply(&platform, "default").await), SupplyReason::Unreadable);
    assert_eq!(platform.requests().len(), 12);
}

#[tokio::test]
async fn supply_page_for_captions_tries_no_other_format() {
    let platform = FakePlatform::start(|request, _| match client(request) {
        Some(_) => player(&[track("en", "", "")]),
        None => reply(200, "", "<!DOCTYPE html><title>Sorry</title>"),
    })
    .await;
    assert_eq!(reason(supply(&platform, "default").await), SupplyReason::Unreadable);
    assert_eq!(platform.requests().len(), 6);
}

#[tokio::test]
async fn supply_throttled_translation_does_not_pause_youtube() {
    let platform = FakePlatform::start(|request, _| match client(request) {
        Some(_) => player(&[track("en", "", "")]),
        None if request.line.contains("tlang=") => throttle(1),
        None => captions_reply("the wheel"),
    })
    .await;
    let http = platform.http();
    let error = supply_by(Arc::clone(&http), request("translation:ja")).await.unwrap_err();
    assert_eq!(*error.reason(), SupplyReason::Throttled(Some(Duration::from_secs(1))));
    assert!(error.message().contains("translates"), "{error}");
    assert!(!error.counts_against_supplier(), "it must not open the circuit breaker");
    assert_eq!(platform.requests().len(), 2, "not retried");
    assert_eq!(texts(&supply_by(http, request("default")).await.unwrap()), ["the wheel"]);
}

#[tokio::test]
async fn supply_missing_language_asks_further_clients_only_if_they_may_list_more() {
    let script = |visionos: &'static [&str]| {
        move |request: &SeenRequest, _: usize| match client(request).as_deref() {
            Some("VISIONOS") => player_with(&[track("en", "", "")], visionos),
            Some(_) => player_with(&[track("en", "", "")], &["de", "nl"]),
            None if request.line.contains("tlang=nl") => captions_reply("het rad"),
            None => captions_reply("the wheel"),
        }
    };
    // Every client lists all tracks of the video.
    let platform = FakePlatform::start(script(&[])).await;
    assert!(matches!(reason(supply(&platform, "nl").await), SupplyReason::NoLanguage(_)));
    assert_eq!(lines(&platform), ["VISIONOS"]);
    // Only the first lists all translations.
    let platform = FakePlatform::start(script(&["de"])).await;
    assert!(matches!(reason(supply(&platform, "translation:nl").await), SupplyReason::NoLanguage(_)));
    assert_eq!(lines(&platform), ["VISIONOS"]);
    let platform = FakePlatform::start(script(&[])).await;
    assert_eq!(texts(&supply(&platform, "translation:nl").await.unwrap()), ["het rad", "the wheel"]);
    assert_eq!(lines(&platform)[..2], ["VISIONOS", "ANDROID"]);
    let platform = FakePlatform::start(script(&["ja"])).await;
    let clients = ["android", "visionos"].map(|name| ClientIdentity::parse(name).unwrap());
    let options = YouTubeOptions { clients: clients.to_vec(), ..YouTubeOptions::default() };
    let supplier = YouTubeCaptions::new(platform.http(), options, clock());
    let wanted = request("translation:ja");
    let found = supplier.supply(wanted, Arc::new(PatientMonitor::default())).await.unwrap();
    assert_eq!(found.transcripts.len(), 2);
    assert_eq!(lines(&platform)[..2], ["ANDROID", "VISIONOS"]);
}

#[tokio::test]
async fn supply_blocked_route_cools_down_not_last_one() {
    let refused = FakePlatform::start(|request, _| match client(request).as_deref() {
        Some("VISIONOS") => reply(403, "", ""),
        _ => reply(502, "", ""),
    })
    .await;
    let dull = FakePlatform::start(|_, _| reply(200, "", "?")).await;
    let (options, _file) = two_proxies(&refused, &dull);
    let http = Arc::new(HttpTransport::new(HttpOptions { retries: 1, ..options }).unwrap());
    assert_eq!(reason(supply_by(Arc::clone(&http), request("default")).await), SupplyReason::Unreadable);
    assert_eq!((refused.requests().len(), dull.requests().len()), (2, 5));
    assert_eq!(reason(supply_by(http, request("default")).await), SupplyReason::Unreadable);
    assert_eq!((refused.requests().len(), dull.requests().len()), (2, 8));
}

#[tokio::test]
async fn supply_empty_track_is_replaced_in_same_language() {
    let script = |more: &'static str| {
        move |request: &SeenRequest, _: usize| match client(request) {
            Some(_) => player(&[track("en", "", ""), track("en", "asr", more), track("de", "", "")]),
            None if request.line.contains("kind=asr") => captions_reply("the wheel"),
            None if request.line.contains("lang=en") => reply(200, "", r#"{"events":[]}"#),
            None => captions_reply("das Rad"),
        }
    };
    for (selector, more, expect) in [
        ("default", "", Ok("the wheel")),
        ("en", "", Ok("the wheel")),
        ("en", "&exp=xpe", Err(SupplyReason::Unreadable)),
    ] {
        let platform = FakePlatform::start(script(more)).await;
        let result = supply(&platform, selector).await;
        let result = result.map(|supplied| texts(&supplied)[0].to_owned());
        let result = result.map_err(|error| error.reason().clone());
        assert_eq!(result, expect.map(str::to_owned), "{selector} {more}");
    }
}

#[tokio::test]
async fn supply_language_without_text_leaves_default_to_others() {
    let script = |request: &SeenRequest, _| match client(request) {
        Some(_) => player(&[track("en", "", ""), track("de", "asr", "")]),
        None if request.line.contains("lang=en") => reply(200, "", r#"{"events":[]}"#),
        None => captions_reply("das Rad"),
    };
    let platform = FakePlatform::start(script).await;
    let supplied = supply(&platform, "default").await.unwrap();
    assert_eq!(texts(&supplied), ["das Rad"]);
    assert_eq!(supplied.transcripts[0].track.language.as_str(), "de");
    let platform = FakePlatform::start(script).await;
    assert_eq!(reason(supply(&platform, "en").await), SupplyReason::NoCaptions);
}

#[tokio::test]
async fn supply_format_with_lost_words_tries_others() {
    let words = |starts: [&str; 2]| {
        let event = |start| format!(r#"{{"tStartMs":{start},"segs":[{{"utf8":"word"}}]}}"#);
        format!(r#"{{"events":[{}]}}"#, starts.map(event).join(","))
    };
    let whole = r#"<timedtext format="3"><body><p t="0">salt</p><p t="2000">sea</p></body></timedtext>"#;
    for (lossy, xml, expect) in [
        (words(["0", "{}"]), whole, Some("salt")),
        (words(["0", "\"later\""]), whole, Some("salt")),
        (words(["null", "null"]), whole, Some("salt")),
        (
            words(["0", "{}"]),
            "<transcript><text start=\"0\">a</text><text start=\"x\">b</text></transcript>",
            None,
        ),
        (words(["0", "2000"]), "", Some("word")),
    ] {
        let platform = FakePlatform::start(move |request, _| match client(request) {
            Some(_) => player(&[track("en", "", "")]),
            None if request.line.contains("fmt=json3") => reply(200, "", lossy.clone()),
            None => reply(200, "", xml),
        })
        .await;
        let result = supply(&platform, "default").await;
        let result = result.map(|supplied| texts(&supplied)[0].to_owned());
        // The person who uploaded the captions may be the cause.
        assert!(result.as_ref().err().is_none_or(|error| !error.counts_against_supplier()), "{xml}");
        let result = result.map_err(|error| error.reason().clone());
        assert_eq!(result, expect.map(str::to_owned).ok_or(SupplyReason::Unreadable), "{xml}");
        // Every client and format is tried until one is whole.
        assert!(expect.is_some() || platform.requests().len() == 12);
    }
}

#[tokio::test]
async fn supply_caption_url_of_other_video_is_not_requested() {
    let mut foreign = track("en", "", "");
    foreign["baseUrl"] = json!("https://www.youtube.com/api/timedtext?v=vb-others-0&lang=en");
    let platform = FakePlatform::start(move |_, _| player(std::slice::from_ref(&foreign))).await;
    assert_eq!(reason(supply(&platform, "default").await), SupplyReason::OtherVideo);
    assert_eq!(lines(&platform), ["VISIONOS", "ANDROID", "IOS"]);
}

#[tokio::test]
async fn supply_untranslated_words_are_no_translation() {
    let words = |count: u32| (0..count).map(|number| format!("word{number}")).collect::<Vec<_>>().join(" ");
    let (long, short) = (words(50), words(49));
    let (long, short) = (long.as_str(), short.as_str());
    for (language, original, translated, is_taken) in [
        ("en", long, long, false),
        ("en", long, "元の言葉", true),
        // The same words may be right: of a name, and of captions whose language is not known.
        ("en", short, short, true),
        ("und", long, long, true),
    ] {
        let (sent, source) = (translated.to_owned(), original.to_owned());
        let platform = FakePlatform::start(move |request, _| match client(request) {
            Some(_) => player(&[track(language, "", "")]),
            None if request.line.contains("tlang=ja") => captions_reply(&sent),
            None => captions_reply(&source),
        })
        .await;
        let result = supply(&platform, "translation:ja").await;
        // Other clients return the same.
        assert_eq!(platform.requests().len(), 3, "{language} {translated}");
        match result {
            Ok(supplied) => assert!(is_taken && texts(&supplied)[0] == translated, "{language} {translated}"),
            Err(error) => {
                assert_eq!(*error.reason(), SupplyReason::Unreadable, "{language} {translated}");
                assert!(!is_taken && !error.counts_against_supplier(), "{language} {translated}");
            }
        }
    }
}
