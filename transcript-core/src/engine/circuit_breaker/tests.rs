//! Breaker transitions: opening, trials and closing.

use super::*;

const COOLDOWN: Duration = Duration::from_secs(30);

fn at(second: u64) -> Timestamp {
    Timestamp::from_millis(1_000_000_000_000).plus(Duration::from_secs(second))
}

fn video(number: u32) -> VideoId {
    VideoId::new(Platform::TikTok, &format!("{}", 7_000 + number)).unwrap()
}

/// Opens after three videos, for 30 seconds, at most 100 seconds.
fn breaker() -> CircuitBreaker {
    CircuitBreaker::new(BreakerPolicy {
        failures: 3,
        cooldown: COOLDOWN,
        cooldown_max: Duration::from_secs(100),
    })
}

fn fails() -> HealthSignal {
    HealthSignal::Failing(SupplyReason::Timeout)
}

/// A breaker that opened at second 0.
fn open_since_0(reason: &SupplyReason) -> CircuitBreaker {
    let mut breaker = breaker();
    for number in 0..3 {
        record_result(&mut breaker, &video(number), HealthSignal::Failing(reason.clone()), false, at(0));
    }
    breaker
}

/// Records the result of a call that was permitted in the current state.
fn record_result(
    breaker: &mut CircuitBreaker,
    video: &VideoId,
    signal: HealthSignal,
    is_trial: bool,
    now: Timestamp,
) -> Option<BreakerTransition> {
    let permit = BreakerPermit { is_trial, generation: breaker.generation };
    breaker.record(video, signal, permit, now)
}

#[track_caller]
fn check_permitted(breaker: &mut CircuitBreaker, second: u64, is_trial: bool) {
    let admission = breaker.admit(at(second));
    assert!(
        matches!(admission, BreakerDecision::Permitted(permit) if permit.is_trial == is_trial),
        "{admission:?}"
    );
}

#[track_caller]
fn check_denied(breaker: &mut CircuitBreaker, second: u64, left: u64) {
    let expect = Duration::from_secs(left);
    assert!(
        matches!(breaker.admit(at(second)), BreakerDecision::Open(_, left) if left == expect),
        "{breaker:?}"
    );
}

#[test]
fn breaker_failures_of_max_videos_opens() {
    let mut breaker = breaker();
    for number in [0, 1] {
        assert_eq!(record_result(&mut breaker, &video(number), fails(), false, at(0)), None);
        check_permitted(&mut breaker, 0, false);
    }
    let cooldown = Cooldown { reason: SupplyReason::Timeout, expires_at: at(30), consecutive: 1 };
    assert_eq!(
        record_result(&mut breaker, &video(2), fails(), false, at(0)),
        Some(BreakerTransition::Opened(cooldown))
    );
    check_denied(&mut breaker, 0, 30);
    check_denied(&mut breaker, 29, 1);
}

#[test]
fn breaker_success_between_failures_resets_count() {
    let mut breaker = breaker();
    for number in 0..9 {
        record_result(&mut breaker, &video(number), fails(), false, at(0));
        if number % 2 == 1 {
            record_result(&mut breaker, &video(99), HealthSignal::Healthy, false, at(0));
        }
    }
    check_permitted(&mut breaker, 0, false);
}

#[test]
fn breaker_repeated_failure_of_one_video_stays_closed() {
    let mut breaker = breaker();
    for _ in 0..100 {
        assert_eq!(record_result(&mut breaker, &video(1), fails(), false, at(0)), None);
    }
    check_permitted(&mut breaker, 0, false);
}

#[test]
fn breaker_neutral_result_keeps_count() {
    let mut breaker = breaker();
    for number in 0..9 {
        record_result(&mut breaker, &video(number), HealthSignal::Neutral(Some(COOLDOWN)), false, at(0));
    }
    check_permitted(&mut breaker, 0, false);
    for number in [0, 1] {
        record_result(&mut breaker, &video(number), fails(), false, at(0));
        record_result(&mut breaker, &video(9), HealthSignal::Neutral(None), false, at(0));
    }
    assert!(matches!(
        record_result(&mut breaker, &video(2), fails(), false, at(0)),
        Some(BreakerTransition::Opened(_))
    ));
}

#[test]
fn breaker_after_cooldown_admits_one_trial_at_a_time() {
    let mut breaker = open_since_0(&SupplyReason::Timeout);
    check_permitted(&mut breaker, 30, true);
    check_denied(&mut breaker, 30, 6);
    check_denied(&mut breaker, 59, 1);
    // A slow trial does not block further ones.
    check_permitted(&mut breaker, 60, true);
    check_denied(&mut breaker, 60, 6);
    assert_eq!(
        record_result(&mut breaker, &video(9), HealthSignal::Healthy, true, at(61)),
        Some(BreakerTransition::Closed)
    );
    check_permitted(&mut breaker, 61, false);
    // It needs as many failures as at first.
    assert_eq!(record_result(&mut breaker, &video(1), fails(), false, at(61)), None);
}

#[test]
fn breaker_of_corrected_clock_admits_trial() {
    let mut breaker = breaker();
    for number in 0..3 {
        record_result(&mut breaker, &video(number), fails(), false, at(86_400));
    }
    check_denied(&mut breaker, 86_400, 30);
    check_permitted(&mut breaker, 86_430, true);
    // The cooldown and the trial are those of a clock that was a day ahead.
    check_permitted(&mut breaker, 0, true);
    check_denied(&mut breaker, 0, 6);
    assert!(record_result(&mut breaker, &video(1), fails(), true, at(1)).is_some());
    check_denied(&mut breaker, 1, 60);
}

#[test]
fn breaker_failed_trial_doubles_cooldown_up_to_max() {
    let mut breaker = open_since_0(&SupplyReason::Timeout);
    let mut now = 30;
    for (consecutive, length) in [(2, 60), (3, 100), (4, 100)] {
        check_permitted(&mut breaker, now, true);
        let cooldown = Cooldown { reason: SupplyReason::BotCheck, expires_at: at(now + length), consecutive };
        let change = record_result(
            &mut breaker,
            &video(1),
            HealthSignal::Failing(SupplyReason::BotCheck),
            true,
            at(now),
        );
        assert_eq!(change, Some(BreakerTransition::Opened(cooldown)));
        check_denied(&mut breaker, now, length);
        now += length;
    }
    // After it closed, cooldowns are short again.
    check_permitted(&mut breaker, now, true);
    record_result(&mut breaker, &video(1), HealthSignal::Healthy, true, at(now));
    for number in 0..3 {
        record_result(&mut breaker, &video(number), fails(), false, at(now));
    }
    check_denied(&mut breaker, now, 30);
}

#[test]
fn breaker_neutral_trial_admits_next_trial() {
    let mut breaker = open_since_0(&SupplyReason::Timeout);
    check_permitted(&mut breaker, 30, true);
    assert_eq!(record_result(&mut breaker, &video(9), HealthSignal::Neutral(None), true, at(31)), None);
    check_permitted(&mut breaker, 31, true);
    breaker.abandon(BreakerPermit { is_trial: true, generation: breaker.generation });
    check_permitted(&mut breaker, 31, true);
    record_result(&mut breaker, &video(9), HealthSignal::Neutral(Some(Duration::from_secs(7))), true, at(31));
    check_denied(&mut breaker, 32, 6);
    check_permitted(&mut breaker, 38, true);
}

#[test]
fn breaker_trial_names_short_wait_if_cooldown_is_short() {
    let policy =
        BreakerPolicy { failures: 1, cooldown: Duration::from_millis(250), ..BreakerPolicy::default() };
    let mut breaker = CircuitBreaker::new(policy);
    record_result(&mut breaker, &video(1), fails(), false, at(0));
    check_permitted(&mut breaker, 1, true);
    // The trial may run alone for ten seconds.
    for second in [1, 9] {
        let decision = breaker.admit(at(second));
        assert!(matches!(decision, BreakerDecision::Open(_, wait) if wait == TRIAL_POLL), "{decision:?}");
    }
    check_permitted(&mut breaker, 11, true);
}

#[test]
fn breaker_answered_trial_closes() {
    let mut breaker = open_since_0(&SupplyReason::Timeout);
    assert_eq!(
        record_result(&mut breaker, &video(8), HealthSignal::Responding, false, at(3)),
        None,
        "started before the cooldown"
    );
    check_permitted(&mut breaker, 30, true);
    assert_eq!(
        record_result(&mut breaker, &video(9), HealthSignal::Responding, true, at(31)),
        Some(BreakerTransition::Closed)
    );
    check_permitted(&mut breaker, 31, false);
    let answered = |reason| HealthSignal::from_result(&Err(SupplyError::new(reason, "x").ambiguous()));
    assert_eq!(answered(SupplyReason::PlatformFault), HealthSignal::Responding);
    for reason in [SupplyReason::Timeout, SupplyReason::Unreachable, SupplyReason::Cancelled] {
        assert_eq!(answered(reason), HealthSignal::Neutral(None));
    }
}

#[test]
fn breaker_stale_failure_does_not_reopen() {
    let mut breaker = breaker();
    let BreakerDecision::Permitted(before) = breaker.admit(at(0)) else { panic!("{breaker:?}") };
    for number in 0..3 {
        record_result(&mut breaker, &video(number), fails(), false, at(0));
    }
    let BreakerDecision::Permitted(trial) = breaker.admit(at(30)) else { panic!("{breaker:?}") };
    breaker.abandon(before);
    check_denied(&mut breaker, 31, 6);
    assert_eq!(
        breaker.record(&video(9), HealthSignal::Healthy, trial, at(32)),
        Some(BreakerTransition::Closed)
    );
    for number in 10..20 {
        assert_eq!(breaker.record(&video(number), fails(), before, at(33)), None);
    }
    check_permitted(&mut breaker, 33, false);
    // A trial of an earlier cooldown does not extend a later one.
    for number in 0..3 {
        record_result(&mut breaker, &video(number), fails(), false, at(40));
    }
    assert_eq!(breaker.record(&video(9), fails(), trial, at(41)), None);
    check_denied(&mut breaker, 41, 29);
}

#[test]
fn breaker_requested_wait_extends_cooldown_up_to_max() {
    let named = |seconds| SupplyReason::Throttled(Some(Duration::from_secs(seconds)));
    for (named, left) in [(named(7), 30), (named(80), 80), (named(9_000), 100)] {
        check_denied(&mut open_since_0(&named), 0, left);
    }
    // A call that started before the breaker opened may request a wait, too.
    let mut breaker = open_since_0(&SupplyReason::Timeout);
    assert_eq!(record_result(&mut breaker, &video(8), HealthSignal::Failing(named(50)), false, at(10)), None);
    check_denied(&mut breaker, 10, 50);
    assert_eq!(record_result(&mut breaker, &video(8), fails(), false, at(10)), None);
    check_denied(&mut breaker, 10, 50);
}

#[test]
fn breaker_stale_success_closes() {
    let mut breaker = open_since_0(&SupplyReason::Timeout);
    assert_eq!(
        record_result(&mut breaker, &video(8), HealthSignal::Healthy, false, at(3)),
        Some(BreakerTransition::Closed)
    );
    check_permitted(&mut breaker, 3, false);
}

#[test]
fn breaker_zero_failure_limit_never_opens() {
    let mut breaker = CircuitBreaker::new(BreakerPolicy { failures: 0, ..BreakerPolicy::default() });
    for number in 0..99 {
        assert_eq!(record_result(&mut breaker, &video(number), fails(), false, at(0)), None);
    }
    check_permitted(&mut breaker, 0, false);
}

#[test]
fn health_signal_matches_call_result() {
    let failed = |reason| HealthSignal::from_result(&Err(SupplyError::new(reason, "It failed.")));
    for reason in [SupplyReason::NoCaptions, SupplyReason::Private, SupplyReason::Login] {
        assert_eq!(failed(reason), HealthSignal::Healthy);
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
        assert_eq!(failed(reason.clone()), HealthSignal::Failing(reason.clone()));
        let is_silence = matches!(reason, SupplyReason::Timeout | SupplyReason::Unreachable);
        let expect = if is_silence { HealthSignal::Neutral(None) } else { HealthSignal::Responding };
        let ambiguous = SupplyError::new(reason, "It failed.").ambiguous();
        assert_eq!(HealthSignal::from_result(&Err(ambiguous)), expect);
    }
    assert_eq!(failed(SupplyReason::Cancelled), HealthSignal::Neutral(None));
    for reason in [SupplyReason::Private, SupplyReason::NoCaptions, SupplyReason::PlatformFault] {
        let before = SupplyError::new(reason, "It was not tried.").video_only();
        assert!(!before.counts_against_supplier());
        assert_eq!(HealthSignal::from_result(&Err(before)), HealthSignal::Neutral(None));
    }
    let named = Some(Duration::from_secs(7));
    let unattempted = SupplyError::before_request(SupplyReason::Throttled(named), "It is paused.");
    assert_eq!(HealthSignal::from_result(&Err(unattempted)), HealthSignal::Neutral(named));
}

#[test]
fn cooldown_error_has_reason_and_retry_after() {
    let left = Duration::from_millis(28_300);
    let error = cooldown_error("yt-dlp", Platform::Instagram, SupplyReason::Throttled(None), left);
    assert_eq!(*error.reason(), SupplyReason::Throttled(Some(left)));
    assert_eq!((error.was_attempted(), error.retry_after()), (false, Some(left)));
    assert!(error.message().ends_with("Try again in 29 seconds."), "{error}");
}
