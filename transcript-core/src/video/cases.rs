//! The table of links: `cases/*.tsv`, one text and what it names per line.

use super::{LinkProblem, ShortLink, VideoId, VideoLink};

/// What a text gives, as the tables write it.
fn outcome(text: &str) -> String {
    match VideoLink::parse(text) {
        Ok(VideoLink::Video(video)) => format!("{} {}", video.platform(), video.id()),
        Ok(VideoLink::Short(link)) => {
            let named = ShortLink::from_name(link.platform(), &link.name());
            assert_eq!(named.as_ref(), Some(&link), "a short link is the one that its name means");
            assert!(VideoId::new(link.platform(), &link.name()).is_err(), "no video has a short link's name");
            format!("short {} {} {}", link.platform(), link.address(), link.code())
        }
        Err(error) => format!("error {:?}", error.problem()),
    }
}

#[track_caller]
fn check(text: &str, expect: &str) {
    assert_eq!(outcome(text), expect, "{text:?}");
}

/// Checks every line of a table and tells all that differ at once.
#[track_caller]
fn check_table(table: &str, cases_min: usize) {
    let mut cases = 0;
    let mut wrong = String::new();
    for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")) {
        let (text, expect) = line.rsplit_once('\t').expect("a text, a tab and what it names");
        let given = outcome(text);
        if given != expect {
            wrong.push_str(&format!("\n{text}\n    expected {expect}\n    given    {given}"));
        }
        cases += 1;
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(cases >= cases_min, "only {cases} cases were read");
}

#[test]
fn youtube_links() {
    check_table(include_str!("cases/youtube.tsv"), 200);
}

#[test]
fn tiktok_links() {
    check_table(include_str!("cases/tiktok.tsv"), 80);
}

#[test]
fn instagram_links() {
    check_table(include_str!("cases/instagram.tsv"), 80);
}

#[test]
fn x_links() {
    check_table(include_str!("cases/x.tsv"), 80);
}

#[test]
fn texts_with_and_without_links() {
    check_table(include_str!("cases/texts.tsv"), 120);
}

#[test]
fn white_space_and_invisible_characters_around_do_not_matter() {
    check("  https://youtu.be/aB3-_xYz019\t\r\n", "video_site aB3-_xYz019");
    check("\u{feff}https://youtu.be/aB3-_xYz019\u{200b}", "video_site aB3-_xYz019");
    check("\u{a0}aB3-_xYz019\u{3000}", "video_site aB3-_xYz019");
    check("\u{202a}https://youtu.be/aB3-_xYz019\u{202c}", "video_site aB3-_xYz019");
    check("first line\n\nhttps://youtu.be/aB3-_xYz019\nlast line", "video_site aB3-_xYz019");
}

#[test]
fn nothing_is_told_apart_from_something() {
    check("", "error Empty");
    check(" \t\n\u{200b}", "error Empty");
    check("\0", "error Empty");
}

#[test]
fn a_long_text_is_not_looked_at() {
    let link = "https://youtu.be/aB3-_xYz019 ";
    check(&format!("{link}{}", "a".repeat(VideoLink::LENGTH_MAX - link.len())), "video_site aB3-_xYz019");
    check(&format!("{link}{}", "a".repeat(VideoLink::LENGTH_MAX - link.len() + 1)), "error TooLong");
}

#[test]
fn links_inside_links_have_a_bound() {
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

/// An error's message must name these words.
#[track_caller]
fn check_message(text: &str, problem: LinkProblem, words: &[&str]) {
    let error = VideoLink::parse(text).expect_err("names no video");
    assert_eq!(error.problem(), problem, "{text:?}");
    for word in words {
        assert!(error.message().contains(word), "{text:?} gives: {error}");
    }
}

#[test]
fn messages_say_what_to_give_instead() {
    let watch = "https://www.youtube.com/watch";
    check_message("", LinkProblem::Empty, &["YouTube", "TikTok", "Instagram", "X video"]);
    check_message(&"a".repeat(5_000), LinkProblem::TooLong, &["5000", "4096"]);
    check_message(
        &format!("{watch}?v=aB3-_xYz01"),
        LinkProblem::MalformedId,
        &["cut off", "10 characters", "11"],
    );
    check_message(&format!("{watch}?feature=share"), LinkProblem::NotAVideo, &["v=", "shell", "quotes"]);
    check_message(
        "https://www.youtube.com/@name",
        LinkProblem::NotAVideo,
        &["YouTube", "a channel", "/watch?v="],
    );
    check_message(
        "https://www.tiktok.com/@name",
        LinkProblem::NotAVideo,
        &["TikTok", "a profile", "/video/"],
    );
    check_message("https://x.com/i/spaces/1a", LinkProblem::NotAVideo, &["X link", "a space", "/status/"]);
    check_message(
        "https://fxtwitter.com/a/status/20",
        LinkProblem::UnknownHost,
        &["front end", "https://x.com/"],
    );
    check_message("https://www.douyin.com/video/71", LinkProblem::UnknownHost, &["Douyin"]);
    check_message("https://vimeo.com/1", LinkProblem::UnknownHost, &["vimeo.com", "YouTube", "Instagram"]);
    check_message("https://a@youtu.be/aB3-_xYz019", LinkProblem::UnsafeAuthority, &["user name"]);
    check_message("https://youtu.be:1/aB3-_xYz019", LinkProblem::UnsafeAuthority, &["port"]);
    check_message("https://x.com/a/status/0020", LinkProblem::MalformedId, &["X id", "not 0"]);
}
