use transcript_core::{
    supplier::SupplyReason,
    video::{VideoId, VideoLink},
};

use super::*;

const TIKTOK: Platform = Platform::TikTok;
const INSTAGRAM: Platform = Platform::Instagram;
const X: Platform = Platform::X;

fn classified(platform: Platform, status: u16, location: &str) -> Result<RedirectStep, ShortLinkFailure> {
    let location = Url::parse(location).ok();
    classify_response(platform, StatusCode::from_u16(status).unwrap(), location.as_ref())
}

#[track_caller]
fn check(platform: Platform, location: &str, id: &str) {
    let video = VideoId::new(platform, id).unwrap();
    assert_eq!(classified(platform, 301, location), Ok(RedirectStep::Video(video)), "{location}");
}

#[test]
fn redirect_to_video_is_resolved() {
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
    // Links typed without a scheme; they are not requested.
    check(X, "http://twitter.com/dyke/status/20", "20");
    check(
        X,
        "https://x.com/safety/unsafe_link_warning?unsafe_link=https%3A%2F%2Fx.com%2Fa%2Fstatus%2F20",
        "20",
    );
    check(X, "https://x.com/i/flow/login?redirect_after_login=%2Fa%2Fstatus%2F20", "20");
}

#[test]
fn redirect_every_status_is_accepted() {
    for status in [301, 302, 303, 307, 308] {
        let classified = classified(X, status, "https://x.com/a/status/20");
        assert!(matches!(classified, Ok(RedirectStep::Video(_))), "{status}: {classified:?}");
    }
}

#[test]
fn redirect_to_short_link_uses_canonical_url() {
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
        let Ok(RedirectStep::ShortLink(link)) = classified(platform, 302, location) else {
            panic!("{location}")
        };
        assert_eq!(link.address(), expect);
    }
}

#[track_caller]
fn assert_not_a_video(platform: Platform, location: &str, part: &str) {
    let classified = classified(platform, 302, location);
    let Ok(RedirectStep::NotAVideo(why)) = &classified else { panic!("{location}: {classified:?}") };
    assert!(why.contains(part), "{location}: {why}");
    // The message is printed after the name of a parameter.
    assert!(why.starts_with("this ") && !why.ends_with('.'), "{why}");
}

#[test]
fn redirect_to_non_video_is_not_a_video() {
    assert_not_a_video(TIKTOK, "https://www.tiktok.com/?_r=1", "expired");
    assert_not_a_video(TIKTOK, "https://www.tiktok.com/@dyke.society?lang=en", "a profile");
    assert_not_a_video(TIKTOK, "https://www.tiktok.com/@dyke.society/live", "a live stream");
    assert_not_a_video(TIKTOK, "https://www.tiktok.com/@a/video/0", "not lead to a video");
    assert_not_a_video(TIKTOK, "https://www.douyin.com/video/7524919459643919624", "www.douyin.com");
    assert_not_a_video(INSTAGRAM, "https://www.instagram.com/dyke.society/", "a profile");
    assert_not_a_video(INSTAGRAM, "https://www.instagram.com/stories/dyke.society/1/", "a story");
    assert_not_a_video(X, "https://x.com/dyke", "a profile");
    assert_not_a_video(X, "https://x.com/", "many posts");
    assert_not_a_video(X, "https://x.com/login", "a sign-in page");
    assert_not_a_video(X, "https://example.org/?u=https://x.com/a/status/20", "example.org");
    assert_not_a_video(
        X,
        "https://x.com/safety/unsafe_link_warning?unsafe_link=https://example.org",
        "example.org",
    );
    assert_not_a_video(X, "https://x.com/safety/unsafe_link_warning", "another page");
    assert_not_a_video(X, "https://youtu.be/dQw4w9WgXcQ", "https://www.youtube.com/watch?v=dQw4w9WgXcQ");
    assert_not_a_video(X, "https://www.youtube.com/@dyke", "a channel");
    assert_not_a_video(X, "https://vm.tiktok.com/ZTR45GpSF", "https://vm.tiktok.com/ZTR45GpSF/");
    assert_not_a_video(X, "https://www.instagram.com/", "a page without a code");
}

#[test]
fn redirect_to_unsafe_url_is_not_requested() {
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
        assert_not_a_video(TIKTOK, location, part);
    }
    let long_host = format!("https://{}.example/", "a.".repeat(100));
    assert_not_a_video(TIKTOK, &long_host, "away from TikTok");
}

#[test]
fn wall_or_error_is_not_a_property_of_link() {
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
        (
            INSTAGRAM,
            302,
            "https://www.instagram.com/accounts/login/?next=https%3A%2F%2Fother.example%2F",
            Throttled(None),
        ),
        (INSTAGRAM, 302, "https://www.instagram.com/", Throttled(None)),
        (INSTAGRAM, 302, "https://www.instagram.com/challenge/?next=%2F", BotCheck),
        (INSTAGRAM, 401, "", Throttled(None)),
        (INSTAGRAM, 200, "", Unreadable),
        (X, 200, "", Unreadable),
        (X, 403, "", Throttled(None)),
    ] {
        let classified = classified(platform, status, location);
        let Err(failure) = &classified else { panic!("{status} {location}: {classified:?}") };
        let error = failure.error(platform);
        assert_eq!(*error.reason(), expect, "{status} {location}");
        let message = error.message();
        assert!(message.starts_with(platform.name()) && message.ends_with('.'), "{message}");
    }
}

#[test]
fn missing_link_is_not_a_video() {
    for (platform, status) in [(TIKTOK, 404), (INSTAGRAM, 404), (X, 404), (X, 410)] {
        let classified = classified(platform, status, "");
        assert!(
            matches!(&classified, Ok(RedirectStep::NotAVideo(why)) if why.contains("expired")),
            "{classified:?}"
        );
    }
}
