use transcript_core::{
    transcript::{Segment, TrackInfo},
    video::Platform,
};

use super::*;

fn sample(platform: Platform, id: &str, language: &str) -> Transcript {
    Transcript {
        video: VideoId::new(platform, id).unwrap(),
        title: Some("<b>\"Tom\" & 'Ann'</b>".to_owned()),
        author: Some("</title><script>alert(1)</script>".to_owned()),
        duration_ms: None,
        track: TrackInfo::new(LanguageTag::from_canonical(language), TrackKind::Generated),
        source: "youtube-captions".to_owned(),
        segments: vec![
            Segment::new("one <i>& two</i>", 5_400, 1_000),
            Segment::new("שלום", 3_723_000, 1_000),
        ],
    }
}

#[test]
fn everything_from_outside_is_escaped() {
    let page =
        transcript(&sample(Platform::VideoSite, "dQw4w9WgXcQ", "en"), "https://v.example").into_string();
    for foreign in ["<script", "<b>", "<i>"] {
        assert!(!page.contains(foreign), "{foreign}: {page}");
    }
    assert!(
        page.contains("<title>&lt;b&gt;&quot;Tom&quot; &amp; 'Ann'&lt;/b&gt; – transcript</title>"),
        "{page}"
    );
    assert!(page.contains("one &lt;i&gt;&amp; two&lt;/i&gt;"), "{page}");
}

#[test]
fn times_lead_to_their_moments() {
    let page =
        transcript(&sample(Platform::VideoSite, "dQw4w9WgXcQ", "en"), "https://v.example").into_string();
    let address = "https://www.youtube.com/watch?v=dQw4w9WgXcQ&amp;t=5s";
    assert!(page.contains(&format!("<a class=\"time\" href=\"{address}\">0:05</a>")), "{page}");
    assert!(page.contains(">1:02:03</a>"), "{page}");
    let page = transcript(&sample(Platform::ShortVideo, "7", "en"), "https://v.example").into_string();
    assert!(page.contains("<span class=\"time\">0:05</span>"), "{page}");
}

#[test]
fn the_language_is_said_where_it_is_known() {
    let page = |language| transcript(&sample(Platform::Microblog, "7", language), "").into_string();
    assert!(page("he").contains("<ol class=\"segments\" lang=\"he\">"));
    assert!(page("und").contains("<ol class=\"segments\">"));
    assert!(page("he").contains("<p dir=\"auto\">שלום</p>"));
}

#[test]
fn the_policy_names_the_style_sheet_that_is_served() {
    let policy = content_security_policy(false);
    let policy = policy.to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    let page = unknown().into_string();
    let sheet = page.split("<style>").nth(1).unwrap().split("</style>").next().unwrap();
    assert_eq!(sheet, style::SHEET);
}
