use transcript_core::{
    supplier::SupplyReason,
    video::{VideoId, VideoLink},
};

use super::*;

const TIKTOK: Platform = Platform::ShortVideo;
const INSTAGRAM: Platform = Platform::Reels;
const X: Platform = Platform::Microblog;

fn judged(platform: Platform, status: u16, location: &str) -> Result<Step, Refusal> {
    let location = Url::parse(location).ok();
    judge(platform, StatusCode::from_u16(status).unwrap(), location.as_ref())
}

#[track_caller]
fn check(platform: Platform, location: &str, id: &str) {
    let video = VideoId::new(platform, id).unwrap();
    assert_eq!(judged(platform, 301, location), Ok(Step::Video(video)), "{location}");
}

#[test]
fn the_address_of_a_video_is_the_answer() {
    check(
        TIKTOK,
        "https://www.tiktok.com/@dyke.society/video/7524919459643919624?_r=1&_t=8",
        "7524919459643919624",
    );
    check(TIKTOK, "https://www.tiktok.com/@/video/7524919459643919624", "7524919459643919624");
    check(TIKTOK, "https://www.tiktok.com/@a/photo/7524919459643919624", "7524919459643919624");
    check(TIKTOK, "https://m.tiktok.com/v/7524919459643919624.html?u_code=d", "7524919459643919624");
    check(TIKTOK, "https://www.tiktokv.com/share/video/7524919459643919624/", "7524919459643919624");
    check(INSTAGRAM, "https://www.instagram.com/reel/DdG4RIxIPyf/?igsh=abc", "DdG4RIxIPyf");
    check(INSTAGRAM, "https://www.instagram.com/dyke.society/p/DdG4RIxIPyf/", "DdG4RIxIPyf");
    check(
        INSTAGRAM,
        "https://l.instagram.com/?u=https%3A%2F%2Finstagram.com%2Freel%2FDdG4RIxIPyf%2F&e=x",
        "DdG4RIxIPyf",
    );
    check(X, "https://x.com/dyke/status/1585341984679469056/video/1", "1585341984679469056");
    check(X, "https://twitter.com/i/web/status/20", "20");
    // What people typed without a scheme; it need not be asked.
    check(X, "http://twitter.com/dyke/status/20", "20");
    check(
        X,
        "https://x.com/safety/unsafe_link_warning?unsafe_link=https%3A%2F%2Fx.com%2Fa%2Fstatus%2F20",
        "20",
    );
    check(X, "https://x.com/i/flow/login?redirect_after_login=%2Fa%2Fstatus%2F20", "20");
}

#[test]
fn every_kind_of_redirect_counts() {
    for status in [301, 302, 303, 307, 308] {
        let judged = judged(X, status, "https://x.com/a/status/20");
        assert!(matches!(judged, Ok(Step::Video(_))), "{status}: {judged:?}");
    }
}

#[test]
fn another_short_link_of_the_platform_is_asked_at_its_own_address() {
    for (platform, location, expect) in [
        (TIKTOK, "https://www.tiktok.com/t/ZTR45GpSF/?k=1", "https://www.tiktok.com/t/ZTR45GpSF/"),
        (TIKTOK, "https://vt.tiktok.com/ZTR45GpSF//", "https://vt.tiktok.com/ZTR45GpSF/"),
        (
            INSTAGRAM,
            "https://instagram.com/share/reel/BARSSL4rTu",
            "https://www.instagram.com/share/reel/BARSSL4rTu/",
        ),
        (X, "https://t.co/AbCdEf1234?amp=1", "https://t.co/AbCdEf1234"),
        (X, "https://x.com/safety/unsafe_link_warning?unsafe_link=https://t.co/Ab", "https://t.co/Ab"),
    ] {
        let Ok(Step::Onward(link)) = judged(platform, 302, location) else { panic!("{location}") };
        assert_eq!(link.address(), expect);
    }
}

#[track_caller]
fn check_nowhere(platform: Platform, location: &str, part: &str) {
    let judged = judged(platform, 302, location);
    let Ok(Step::Nowhere(why)) = &judged else { panic!("{location}: {judged:?}") };
    assert!(why.contains(part), "{location}: {why}");
    // It is printed behind the name of a parameter.
    assert!(why.starts_with("this ") && !why.ends_with('.'), "{why}");
}

#[test]
fn what_is_no_video_of_the_platform_is_nowhere() {
    check_nowhere(TIKTOK, "https://www.tiktok.com/?_r=1", "expired");
    check_nowhere(TIKTOK, "https://www.tiktok.com/@dyke.society?lang=en", "a profile");
    check_nowhere(TIKTOK, "https://www.tiktok.com/@dyke.society/live", "a live stream");
    check_nowhere(TIKTOK, "https://www.tiktok.com/@a/video/0", "no video");
    check_nowhere(TIKTOK, "https://www.douyin.com/video/7524919459643919624", "www.douyin.com");
    check_nowhere(INSTAGRAM, "https://www.instagram.com/dyke.society/", "a profile");
    check_nowhere(INSTAGRAM, "https://www.instagram.com/stories/dyke.society/1/", "a story");
    check_nowhere(X, "https://x.com/dyke", "a profile");
    check_nowhere(X, "https://x.com/", "many posts");
    check_nowhere(X, "https://x.com/login", "a sign-in page");
    check_nowhere(X, "https://example.org/?u=https://x.com/a/status/20", "example.org");
    check_nowhere(
        X,
        "https://x.com/safety/unsafe_link_warning?unsafe_link=https://example.org",
        "example.org",
    );
    check_nowhere(X, "https://x.com/safety/unsafe_link_warning", "another page");
    check_nowhere(X, "https://youtu.be/dQw4w9WgXcQ", "https://www.youtube.com/watch?v=dQw4w9WgXcQ");
    check_nowhere(X, "https://www.youtube.com/@dyke", "a channel");
    check_nowhere(X, "https://vm.tiktok.com/ZTR45GpSF", "https://vm.tiktok.com/ZTR45GpSF/");
    check_nowhere(X, "https://www.instagram.com/", "a page without a code");
}

#[test]
fn no_unsafe_address_is_ever_asked() {
    for (location, part) in [
        ("http://vm.tiktok.com/ZTR45GpSF/", "not safe"),
        ("https://vm.tiktok.com:8443/ZTR45GpSF/", "not safe"),
        ("https://www.tiktok.com:80/@a/video/20", "not safe"),
        ("https://me@vm.tiktok.com/ZTR45GpSF/", "not safe"),
        ("https://:secret@www.tiktok.com/@a/video/20", "not safe"),
        ("https://vm.tiktok.com@evil.example/ZTR45GpSF/", "not safe"),
        ("https://tiktok.com.evil.example/t/ZTR45GpSF/", "tiktok.com.evil.example"),
        ("https://eviltiktok.com/t/ZTR45GpSF/", "eviltiktok.com"),
        ("https://vm.tiktok.com./ZTR45GpSF/", "vm.tiktok.com."),
        ("https://127.0.0.1/ZTR45GpSF/", "127.0.0.1"),
        ("https://2130706433/", "127.0.0.1"),
        ("https://10.1.2.3/", "10.1.2.3"),
        ("http://169.254.169.254/latest/meta-data", "169.254.169.254"),
        ("https://[::1]/", "away from TikTok"),
        ("https://localhost/", "localhost"),
        ("https://xn--tktok-q4a.com/t/ZTR45GpSF/", "xn--tktok-q4a.com"),
        ("file:///etc/hostname", "not safe"),
        ("javascript:alert(1)", "not safe"),
        ("data:text/html,https://www.tiktok.com/@a/video/20", "not safe"),
    ] {
        check_nowhere(TIKTOK, location, part);
    }
    let long_host = format!("https://{}.example/", "a.".repeat(100));
    check_nowhere(TIKTOK, &long_host, "away from TikTok");
}

#[test]
fn walls_and_faults_say_nothing_about_the_link() {
    use SupplyReason::{BotCheck, PlatformFault, Throttled, Unreadable};
    let long = format!("https://www.tiktok.com/@a/video/20?{}", "a".repeat(VideoLink::LENGTH_MAX));
    for (platform, status, location, expect) in [
        (TIKTOK, 302, "https://www.tiktok.com/login?redirect_url=x", Throttled(None)),
        (TIKTOK, 302, "https://www.tiktok.com/captcha-init", BotCheck),
        (TIKTOK, 403, "", Throttled(None)),
        (TIKTOK, 200, "", Unreadable),
        (TIKTOK, 200, "https://www.tiktok.com/@a/video/20", Unreadable),
        (TIKTOK, 302, "", Unreadable),
        (TIKTOK, 302, long.as_str(), Unreadable),
        (TIKTOK, 304, "", PlatformFault),
        (TIKTOK, 400, "", PlatformFault),
        (
            INSTAGRAM,
            302,
            "https://www.instagram.com/accounts/login/?next=%2Fshare%2FBARSSL4rTu",
            Throttled(None),
        ),
        (INSTAGRAM, 302, "https://www.instagram.com/", Throttled(None)),
        (INSTAGRAM, 302, "https://www.instagram.com/challenge/?next=%2F", BotCheck),
        (INSTAGRAM, 401, "", Throttled(None)),
        (INSTAGRAM, 200, "", Unreadable),
        (X, 200, "", Unreadable),
        (X, 403, "", Throttled(None)),
    ] {
        let judged = judged(platform, status, location);
        let Err(refusal) = &judged else { panic!("{status} {location}: {judged:?}") };
        let error = refusal.error(platform);
        assert_eq!(*error.reason(), expect, "{status} {location}");
        let message = error.message();
        assert!(message.starts_with(platform.name()) && message.ends_with('.'), "{message}");
    }
}

#[test]
fn a_link_that_is_not_there_is_nowhere() {
    for (platform, status) in [(TIKTOK, 404), (INSTAGRAM, 404), (X, 404), (X, 410)] {
        let judged = judged(platform, status, "");
        assert!(matches!(&judged, Ok(Step::Nowhere(why)) if why.contains("expired")), "{judged:?}");
    }
}
