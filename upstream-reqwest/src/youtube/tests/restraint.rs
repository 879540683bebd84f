//! How much is asked for, and what is taken for an answer.

use tokio::time::Instant;

use super::*;

fn texts(supplied: &Supplied) -> Vec<&str> {
    supplied.tracks.iter().map(|found| found.segments[0].text.as_str()).collect()
}

fn throttle(named_s: u32) -> Vec<Step> {
    answer(429, &format!("retry-after: {named_s}\r\n"), "")
}

#[tokio::test]
async fn a_gated_track_gives_way_to_no_other_language() {
    for (gated, wish) in [("en", "default"), ("fr", "fr")] {
        let platform = Platform::start(move |seen, _| match client(seen) {
            Some(_) => player(&[track(gated, "", "&exp=xpe"), track("de", "asr", "")]),
            None => words("half of it"),
        })
        .await;
        assert_eq!(reason(supply(&platform, wish).await), SupplyReason::Unreadable, "{wish}");
        assert_eq!(platform.seen().len(), 3, "{wish}");
    }
}

#[tokio::test]
async fn youtube_is_left_alone_after_it_refused_the_only_address() {
    fn bot_check(_: u32) -> Vec<Step> {
        refuse("LOGIN_REQUIRED", "Sign in to confirm you’re not a bot")
    }
    for (block, most_s) in [(throttle as fn(u32) -> Vec<Step>, 300), (bot_check, 60)] {
        let platform = Platform::start(move |_, _| block(3_600)).await;
        let http = platform.http();
        supply_by(Arc::clone(&http), ask("default"), true).await.unwrap_err();
        for _ in 0..2 {
            let error = supply_by(Arc::clone(&http), ask("default"), true).await.unwrap_err();
            let SupplyReason::Throttled(Some(left)) = *error.reason() else { panic!("{error:?}") };
            assert!((most_s - 15..=most_s).contains(&left.as_secs()), "{left:?}");
            assert!(error.message().contains("not asked for now"), "{error}");
        }
        assert_eq!(platform.seen().len(), 1, "nothing more is sent");
    }
}

#[tokio::test]
async fn one_video_does_not_silence_us_for_all() {
    let platform = Platform::start(|_, _| answer(403, "", "")).await;
    let http = platform.http();
    for _ in 0..2 {
        let error = supply_by(Arc::clone(&http), ask("default"), true).await.unwrap_err();
        assert_eq!(*error.reason(), SupplyReason::Throttled(None));
    }
    assert_eq!(platform.seen().len(), 6);
}

#[tokio::test]
async fn the_default_never_keeps_the_wished_one_waiting() {
    let late = || {
        let mut steps = vec![Step::Wait(Duration::from_secs(15))];
        steps.extend(words("the wheel"));
        steps
    };
    for default in
        [late as fn() -> Vec<Step>, || throttle(5), || answer(503, "", ""), || answer(200, "", "?")]
    {
        let platform = Platform::start(move |seen, _| match client(seen) {
            Some(_) => player(&[track("en", "", ""), track("de", "", "")]),
            None if seen.line.contains("lang=de") => words("das Rad"),
            None => default(),
        })
        .await;
        let begin = Instant::now();
        let supplied = supply(&platform, "de").await.unwrap();
        assert!(begin.elapsed() < Duration::from_secs(8), "{:?}", begin.elapsed());
        assert_eq!(texts(&supplied), ["das Rad"]);
        assert_eq!(platform.seen().len(), 3, "one request for the default");
    }
}

#[tokio::test]
async fn a_default_behind_a_proof_is_not_replaced() {
    let platform = Platform::start(|seen, _| match client(seen) {
        Some(_) => player(&[track("en", "", "&exp=xpe"), track("en", "asr", ""), track("de", "", "")]),
        None => words("das Rad"),
    })
    .await;
    assert_eq!(texts(&supply(&platform, "de").await.unwrap()), ["das Rad"]);
    assert_eq!(platform.seen().len(), 2);
}

#[tokio::test]
async fn a_look_up_makes_so_many_requests_and_no_more() {
    // Every form of the captions takes three tries, and is unreadable then.
    let platform = Platform::start(|seen, before| match client(seen) {
        Some(_) => player(&[track("en", "", "")]),
        None if before % 10 % 3 == 0 => answer(200, "", "?"),
        None => answer(502, "", ""),
    })
    .await;
    assert_eq!(reason(supply(&platform, "default").await), SupplyReason::Unreadable);
    assert_eq!(platform.seen().len(), 12);
}

#[test]
fn a_look_up_ends_by_itself_and_before_its_caller() {
    for (left_ms, expect_ms) in [(0, 0), (100, 0), (25_000, 24_750), (60_250, 60_000), (3_600_000, 60_000)] {
        let patience = super::super::patience(Duration::from_millis(left_ms));
        assert_eq!(patience, Duration::from_millis(expect_ms), "{left_ms}");
    }
}

#[tokio::test]
async fn a_page_in_place_of_captions_is_not_asked_for_in_other_forms() {
    let platform = Platform::start(|seen, _| match client(seen) {
        Some(_) => player(&[track("en", "", "")]),
        None => answer(200, "", "<!DOCTYPE html><title>Sorry</title>"),
    })
    .await;
    assert_eq!(reason(supply(&platform, "default").await), SupplyReason::Unreadable);
    assert_eq!(platform.seen().len(), 6);
}

#[tokio::test]
async fn throttled_translations_leave_the_rest_in_peace() {
    let platform = Platform::start(|seen, _| match client(seen) {
        Some(_) => player(&[track("en", "", "")]),
        None if seen.line.contains("tlang=") => throttle(1),
        None => words("the wheel"),
    })
    .await;
    let http = platform.http();
    let error = supply_by(Arc::clone(&http), ask("ja"), true).await.unwrap_err();
    assert_eq!(*error.reason(), SupplyReason::Throttled(Some(Duration::from_secs(1))));
    assert!(error.message().contains("translates"), "{error}");
    assert_eq!(platform.seen().len(), 2, "not tried again");
    assert_eq!(texts(&supply_by(http, ask("default"), true).await.unwrap()), ["the wheel"]);
}

#[tokio::test]
async fn all_clients_are_asked_before_a_language_is_missing() {
    let platform = Platform::start(|seen, _| match client(seen).as_deref() {
        Some("VISIONOS") => player_with(&[track("en", "", "")], &["de"]),
        Some(_) => player_with(&[track("en", "", "")], &["de", "nl"]),
        None if seen.line.contains("tlang=nl") => words("het rad"),
        None => words("the wheel"),
    })
    .await;
    assert_eq!(texts(&supply(&platform, "nl").await.unwrap()), ["het rad", "the wheel"]);
    assert_eq!(lines(&platform)[..2], ["VISIONOS", "ANDROID"]);
}

#[tokio::test]
async fn the_exit_that_was_refused_rests_and_not_the_last_one() {
    let refused = Platform::start(|seen, _| match client(seen).as_deref() {
        Some("VISIONOS") => answer(403, "", ""),
        _ => answer(502, "", ""),
    })
    .await;
    let dull = Platform::start(|_, _| answer(200, "", "?")).await;
    let (options, _file) = both(&refused, &dull);
    let http = Arc::new(Http::new(HttpOptions { retries: 1, ..options }).unwrap());
    assert_eq!(reason(supply_by(Arc::clone(&http), ask("default"), true).await), SupplyReason::Unreadable);
    assert_eq!((refused.seen().len(), dull.seen().len()), (2, 5));
    assert_eq!(reason(supply_by(http, ask("default"), true).await), SupplyReason::Unreadable);
    assert_eq!((refused.seen().len(), dull.seen().len()), (2, 8));
}

#[tokio::test]
async fn an_empty_track_gives_way_to_another_of_its_language() {
    let script = |more: &'static str| {
        move |seen: &Seen, _: usize| match client(seen) {
            Some(_) => player(&[track("en", "", ""), track("en", "asr", more), track("de", "", "")]),
            None if seen.line.contains("kind=asr") => words("the wheel"),
            None if seen.line.contains("lang=en") => answer(200, "", r#"{"events":[]}"#),
            None => words("das Rad"),
        }
    };
    for (wish, more, expect) in [
        ("default", "", Ok("the wheel")),
        ("en", "", Ok("the wheel")),
        ("en", "&exp=xpe", Err(SupplyReason::Unreadable)),
    ] {
        let platform = Platform::start(script(more)).await;
        let result = supply(&platform, wish).await;
        let result = result.map(|supplied| texts(&supplied)[0].to_owned());
        let result = result.map_err(|error| error.reason().clone());
        assert_eq!(result, expect.map(str::to_owned), "{wish} {more}");
    }
}
