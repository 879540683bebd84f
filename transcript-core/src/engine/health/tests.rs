//! A breaker through its rests, trials and recoveries.

use super::*;

const REST: Duration = Duration::from_secs(30);

fn at(second: u64) -> Timestamp {
    Timestamp::from_millis(1_000_000_000_000).plus(Duration::from_secs(second))
}

fn video(number: u32) -> VideoId {
    VideoId::new(Platform::ShortVideo, &format!("{}", 7_000 + number)).unwrap()
}

/// Three videos, 30 seconds, 100 seconds at most.
fn breaker() -> Breaker {
    Breaker::new(HealthPolicy { failures: 3, rest: REST, rest_max: Duration::from_secs(100) })
}

fn fails() -> Verdict {
    Verdict::Fails(SupplyReason::Timeout)
}

/// A breaker whose rest began at second 0.
fn resting_since_0(reason: &SupplyReason) -> Breaker {
    let mut breaker = breaker();
    for number in 0..3 {
        learn(&mut breaker, &video(number), Verdict::Fails(reason.clone()), false, at(0));
    }
    breaker
}

/// As somebody who was let in now.
fn learn(
    breaker: &mut Breaker,
    video: &VideoId,
    verdict: Verdict,
    is_trial: bool,
    now: Timestamp,
) -> Option<Change> {
    let given = Let { is_trial, turn: breaker.turn };
    breaker.learn(video, verdict, given, now)
}

#[track_caller]
fn check_open(breaker: &mut Breaker, second: u64, is_trial: bool) {
    let admission = breaker.admit(at(second));
    assert!(matches!(admission, Admission::Open(given) if given.is_trial == is_trial), "{admission:?}");
}

#[track_caller]
fn check_rests(breaker: &mut Breaker, second: u64, left: u64) {
    let expect = Duration::from_secs(left);
    assert!(
        matches!(breaker.admit(at(second)), Admission::Resting(_, left) if left == expect),
        "{breaker:?}"
    );
}

#[test]
fn so_many_videos_in_a_row_begin_a_rest() {
    let mut breaker = breaker();
    for number in [0, 1] {
        assert_eq!(learn(&mut breaker, &video(number), fails(), false, at(0)), None);
        check_open(&mut breaker, 0, false);
    }
    let rest = Rest { reason: SupplyReason::Timeout, until: at(30), in_a_row: 1 };
    assert_eq!(learn(&mut breaker, &video(2), fails(), false, at(0)), Some(Change::Rests(rest)));
    check_rests(&mut breaker, 0, 30);
    check_rests(&mut breaker, 29, 1);
}

#[test]
fn an_answer_in_between_begins_the_count_anew() {
    let mut breaker = breaker();
    for number in 0..9 {
        learn(&mut breaker, &video(number), fails(), false, at(0));
        if number % 2 == 1 {
            learn(&mut breaker, &video(99), Verdict::Works, false, at(0));
        }
    }
    check_open(&mut breaker, 0, false);
}

#[test]
fn one_video_alone_takes_the_supplier_from_nobody() {
    let mut breaker = breaker();
    for _ in 0..100 {
        assert_eq!(learn(&mut breaker, &video(1), fails(), false, at(0)), None);
    }
    check_open(&mut breaker, 0, false);
}

#[test]
fn what_says_nothing_of_the_supplier_counts_neither_way() {
    let mut breaker = breaker();
    for number in 0..9 {
        learn(&mut breaker, &video(number), Verdict::Open(Some(REST)), false, at(0));
    }
    check_open(&mut breaker, 0, false);
    for number in [0, 1] {
        learn(&mut breaker, &video(number), fails(), false, at(0));
        learn(&mut breaker, &video(9), Verdict::Open(None), false, at(0));
    }
    assert!(matches!(learn(&mut breaker, &video(2), fails(), false, at(0)), Some(Change::Rests(_))));
}

#[test]
fn after_the_rest_one_at_a_time_tries() {
    let mut breaker = resting_since_0(&SupplyReason::Timeout);
    check_open(&mut breaker, 30, true);
    check_rests(&mut breaker, 30, 30);
    check_rests(&mut breaker, 59, 1);
    // One that takes long keeps nobody out for ever.
    check_open(&mut breaker, 60, true);
    check_rests(&mut breaker, 60, 30);
    assert_eq!(learn(&mut breaker, &video(9), Verdict::Works, true, at(61)), Some(Change::Recovers));
    check_open(&mut breaker, 61, false);
    // And it has as many chances as at first.
    assert_eq!(learn(&mut breaker, &video(1), fails(), false, at(61)), None);
}

#[test]
fn a_trial_in_vain_begins_a_longer_rest_within_bounds() {
    let mut breaker = resting_since_0(&SupplyReason::Timeout);
    let mut now = 30;
    for (in_a_row, length) in [(2, 60), (3, 100), (4, 100)] {
        check_open(&mut breaker, now, true);
        let rest = Rest { reason: SupplyReason::BotCheck, until: at(now + length), in_a_row };
        let change = learn(&mut breaker, &video(1), Verdict::Fails(SupplyReason::BotCheck), true, at(now));
        assert_eq!(change, Some(Change::Rests(rest)));
        check_rests(&mut breaker, now, length);
        now += length;
    }
    // Once it worked, rests are short again.
    check_open(&mut breaker, now, true);
    learn(&mut breaker, &video(1), Verdict::Works, true, at(now));
    for number in 0..3 {
        learn(&mut breaker, &video(number), fails(), false, at(now));
    }
    check_rests(&mut breaker, now, 30);
}

#[test]
fn a_trial_that_says_nothing_lets_the_next_one_try() {
    let mut breaker = resting_since_0(&SupplyReason::Timeout);
    check_open(&mut breaker, 30, true);
    assert_eq!(learn(&mut breaker, &video(9), Verdict::Open(None), true, at(31)), None);
    check_open(&mut breaker, 31, true);
    breaker.abandon(Let { is_trial: true, turn: breaker.turn });
    check_open(&mut breaker, 31, true);
    learn(&mut breaker, &video(9), Verdict::Open(Some(Duration::from_secs(7))), true, at(31));
    check_rests(&mut breaker, 32, 6);
    check_open(&mut breaker, 38, true);
}

#[test]
fn a_trial_that_is_answered_at_all_ends_the_rest() {
    let mut breaker = resting_since_0(&SupplyReason::Timeout);
    assert_eq!(learn(&mut breaker, &video(8), Verdict::Answers, false, at(3)), None, "it was asked before");
    check_open(&mut breaker, 30, true);
    assert_eq!(learn(&mut breaker, &video(9), Verdict::Answers, true, at(31)), Some(Change::Recovers));
    check_open(&mut breaker, 31, false);
    let answered = |reason| Verdict::of(&Err(SupplyError::new(reason, "x").perhaps_the_video()));
    assert_eq!(answered(SupplyReason::PlatformFault), Verdict::Answers);
    for reason in [SupplyReason::Timeout, SupplyReason::Unreachable, SupplyReason::Cancelled] {
        assert_eq!(answered(reason), Verdict::Open(None));
    }
}

#[test]
fn what_was_asked_before_a_rest_begins_no_other_after_it() {
    let mut breaker = breaker();
    let Admission::Open(before) = breaker.admit(at(0)) else { panic!("{breaker:?}") };
    for number in 0..3 {
        learn(&mut breaker, &video(number), fails(), false, at(0));
    }
    let Admission::Open(trial) = breaker.admit(at(30)) else { panic!("{breaker:?}") };
    breaker.abandon(before);
    check_rests(&mut breaker, 31, 29);
    assert_eq!(breaker.learn(&video(9), Verdict::Works, trial, at(32)), Some(Change::Recovers));
    for number in 10..20 {
        assert_eq!(breaker.learn(&video(number), fails(), before, at(33)), None);
    }
    check_open(&mut breaker, 33, false);
    // Nor does a trial of an earlier rest make a later one longer.
    for number in 0..3 {
        learn(&mut breaker, &video(number), fails(), false, at(40));
    }
    assert_eq!(breaker.learn(&video(9), fails(), trial, at(41)), None);
    check_rests(&mut breaker, 41, 29);
}

#[test]
fn a_wait_that_is_named_is_heeded_within_bounds() {
    let named = |seconds| SupplyReason::Throttled(Some(Duration::from_secs(seconds)));
    for (named, left) in [(named(7), 30), (named(80), 80), (named(9_000), 100)] {
        check_rests(&mut resting_since_0(&named), 0, left);
    }
    // Who was asked before the rest began may name one, too.
    let mut breaker = resting_since_0(&SupplyReason::Timeout);
    assert_eq!(learn(&mut breaker, &video(8), Verdict::Fails(named(50)), false, at(10)), None);
    check_rests(&mut breaker, 10, 50);
    assert_eq!(learn(&mut breaker, &video(8), fails(), false, at(10)), None);
    check_rests(&mut breaker, 10, 50);
}

#[test]
fn who_was_asked_before_the_rest_and_answers_ends_it() {
    let mut breaker = resting_since_0(&SupplyReason::Timeout);
    assert_eq!(learn(&mut breaker, &video(8), Verdict::Works, false, at(3)), Some(Change::Recovers));
    check_open(&mut breaker, 3, false);
}

#[test]
fn with_a_count_of_0_none_rests() {
    let mut breaker = Breaker::new(HealthPolicy { failures: 0, ..HealthPolicy::default() });
    for number in 0..99 {
        assert_eq!(learn(&mut breaker, &video(number), fails(), false, at(0)), None);
    }
    check_open(&mut breaker, 0, false);
}

#[test]
fn answers_are_judged() {
    let failed = |reason| Verdict::of(&Err(SupplyError::new(reason, "It failed.")));
    for reason in [SupplyReason::NoCaptions, SupplyReason::Private, SupplyReason::Login] {
        assert_eq!(failed(reason), Verdict::Works);
    }
    for reason in [
        SupplyReason::Timeout,
        SupplyReason::Unreachable,
        SupplyReason::PlatformFault,
        SupplyReason::Unreadable,
        SupplyReason::BotCheck,
        SupplyReason::OtherVideo,
        SupplyReason::Throttled(None),
        SupplyReason::Stale,
        SupplyReason::Misconfigured,
    ] {
        assert_eq!(failed(reason.clone()), Verdict::Fails(reason.clone()));
        let is_silence = matches!(reason, SupplyReason::Timeout | SupplyReason::Unreachable);
        let expect = if is_silence { Verdict::Open(None) } else { Verdict::Answers };
        let perhaps = SupplyError::new(reason, "It failed.").perhaps_the_video();
        assert_eq!(Verdict::of(&Err(perhaps)), expect);
    }
    assert_eq!(failed(SupplyReason::Cancelled), Verdict::Open(None));
    for reason in [SupplyReason::Private, SupplyReason::NoCaptions, SupplyReason::PlatformFault] {
        let before = SupplyError::new(reason, "It was not tried.").only_the_video();
        assert!(!before.speaks_against_the_supplier());
        assert_eq!(Verdict::of(&Err(before)), Verdict::Open(None));
    }
    let named = Some(Duration::from_secs(7));
    let unasked = SupplyError::unasked(SupplyReason::Throttled(named), "It is left alone.");
    assert_eq!(Verdict::of(&Err(unasked)), Verdict::Open(named));
}

#[test]
fn what_is_told_has_the_reason_and_when_to_ask_again() {
    let left = Duration::from_millis(28_300);
    let told = resting("yt-dlp", Platform::Reels, SupplyReason::Throttled(None), left);
    assert_eq!(*told.reason(), SupplyReason::Throttled(Some(left)));
    assert_eq!((told.was_asked(), told.retry_after()), (false, Some(left)));
    assert!(told.message().ends_with("please ask again in 29 seconds."), "{told}");
}
