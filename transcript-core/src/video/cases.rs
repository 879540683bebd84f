//! Tests of link parsing with tables: `cases/*.tsv` has one text and its expected result per line.

use super::{LinkErrorKind, ShortLink, VideoId, VideoLink};

/// Result of a text, in the notation of the tables.
fn outcome(text: &str) -> String {
    match VideoLink::parse(text) {
        Ok(VideoLink::Video(video)) => format!("{} {}", video.platform(), video.id()),
        Ok(VideoLink::Short(link)) => {
            let named = ShortLink::from_name(link.platform(), &link.name());
            assert_eq!(named.as_ref(), Some(&link), "a short link's name leads back to the link");
            assert!(
                VideoId::new(link.platform(), &link.name()).is_err(),
                "a short link's name is not a video id"
            );
            format!("short {} {} {}", link.platform(), link.address(), link.code())
        }
        Err(error) => format!("error {:?}", error.problem()),
    }
}

#[track_caller]
fn check(text: &str, expect: &str) {
    assert_eq!(outcome(text), expect, "{text:?}");
}

/// Checks every line of a table and reports all failures at once.
#[track_caller]
fn check_table(table: &str, cases_min: usize) {
    let mut cases = 0;
    let mut wrong = String::new();
    for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")) {
        let (text, expect) = line.rsplit_once('\t').expect("a text, a tab and the expected result");
        let actual = outcome(text);
        if actual != expect {
            wrong.push_str(&format!("\n{text}\n    expected {expect}\n    given    {actual}"));
        }
        cases += 1;
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(cases >= cases_min, "only {cases} cases were read");
}

#[test]
fn link_table_youtube() {
    check_table(include_str!("cases/youtube.tsv"), 200);
}

#[test]
fn link_table_tiktok() {
    check_table(include_str!("cases/tiktok.tsv"), 80);
}

#[test]
fn link_table_instagram() {
    check_table(include_str!("cases/instagram.tsv"), 80);
}

#[test]
fn link_table_x() {
    check_table(include_str!("cases/x.tsv"), 80);
}

#[test]
fn link_table_texts() {
    check_table(include_str!("cases/texts.tsv"), 120);
}

#[test]
fn link_surrounding_invisible_characters_are_ignored() {
    check("  https://youtu.be/aB3-_xYz019\t\r\n", "video_site aB3-_xYz019");
    check("\u{feff}https://youtu.be/aB3-_xYz019\u{200b}", "video_site aB3-_xYz019");
    check("\u{180e}https://youtu.be/aB3-_xYz019\u{34f}", "video_site aB3-_xYz019");
    check("\u{a0}aB3-_xYz019\u{3000}", "video_site aB3-_xYz019");
    check("\u{202a}https://youtu.be/aB3-_xYz019\u{202c}", "video_site aB3-_xYz019");
    check("first line\n\nhttps://youtu.be/aB3-_xYz019\nlast line", "video_site aB3-_xYz019");
}

#[test]
fn link_blank_text_is_empty_error() {
    check("", "error Empty");
    check(" \t\n\u{200b}", "error Empty");
    check("\0", "error Empty");
}

#[test]
fn link_text_above_limit_is_rejected() {
    let link = "https://youtu.be/aB3-_xYz019 ";
    check(&format!("{link}{}", "a".repeat(VideoLink::LENGTH_MAX - link.len())), "video_site aB3-_xYz019");
    check(&format!("{link}{}", "a".repeat(VideoLink::LENGTH_MAX - link.len() + 1)), "error TooLong");
}

#[test]
fn link_nesting_is_limited() {
    let wrap = |inner: String| {
        let inner =
            percent_encoding::utf8_percent_encode(&inner, percent_encoding::NON_ALPHANUMERIC).to_string();
        format!("https://www.youtube.com/attribution_link?u={inner}")
    };
    let link = || "https://youtu.be/aB3-_xYz019".to_owned();
    check(&wrap(wrap(link())), "video_site aB3-_xYz019");
    check(&wrap(wrap(wrap(link()))), "video_site aB3-_xYz019");
    check(&wrap(wrap(wrap(wrap(wrap(link()))))), "error NotAVideo");
}

/// Checks that an error's message contains these words.
#[track_caller]
fn check_message(text: &str, problem: LinkErrorKind, words: &[&str]) {
    let error = VideoLink::parse(text).expect_err("names no video");
    assert_eq!(error.problem(), problem, "{text:?}");
    for word in words {
        assert!(error.message().contains(word), "{text:?} gives: {error}");
    }
}

#[test]
fn link_error_message_suggests_alternative() {
    let watch = "https://www.youtube.com/watch";
    check_message("", LinkErrorKind::Empty, &["YouTube", "TikTok", "Instagram", "X video"]);
    check_message(&"a".repeat(5_000), LinkErrorKind::TooLong, &["5000", "4096"]);
    check_message(
        &format!("{watch}?v=aB3-_xYz01"),
        LinkErrorKind::MalformedId,
        &["cut off", "10 characters", "11"],
    );
    check_message(&format!("{watch}?feature=share"), LinkErrorKind::NotAVideo, &["v=", "shell", "quotes"]);
    check_message(
        "https://www.youtube.com/@name",
        LinkErrorKind::NotAVideo,
        &["YouTube", "a channel", "/watch?v="],
    );
    check_message(
        "https://www.tiktok.com/@name",
        LinkErrorKind::NotAVideo,
        &["TikTok", "a profile", "/video/"],
    );
    check_message("https://x.com/i/spaces/1a", LinkErrorKind::NotAVideo, &["X link", "a space", "/status/"]);
    check_message(
        "https://xcancel.com/a/status/20",
        LinkErrorKind::UnknownHost,
        &["front end", "https://x.com/"],
    );
    check_message("https://www.douyin.com/video/71", LinkErrorKind::UnknownHost, &["Douyin"]);
    check_message("https://vimeo.com/1", LinkErrorKind::UnknownHost, &["vimeo.com", "YouTube", "Instagram"]);
    check_message("https://a@youtu.be/aB3-_xYz019", LinkErrorKind::UnsafeAuthority, &["user name"]);
    check_message("https://youtu.be:1/aB3-_xYz019", LinkErrorKind::UnsafeAuthority, &["port"]);
    check_message("https://x.com/a/status/0020", LinkErrorKind::MalformedId, &["X id", "not 0"]);
}
