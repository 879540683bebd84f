use std::sync::Arc;

use transcript_core::{
    time::Timestamp,
    transcript::{
        Chapter, LanguageTag, Segment, TrackInfo, TrackKind, Transcript, VideoDetails, VideoMetadata,
    },
    video::{Platform, VideoId},
};

use super::{
    assets::{self, DOCS_STYLE, PLAYER, SCRIPT, STYLE, WIDGET, WORKER},
    *,
};
use crate::api::ContentEncoding;

const WATCH_URL: &str = "https://v.example/watch/video_site/dQw4w9WgXcQ?src=mcp_other";

fn sample(platform: Platform, id: &str, language: &str) -> Transcript {
    Transcript {
        video: VideoId::new(platform, id).unwrap(),
        title: Some("<b>\"Tom\" & 'Ann'</b>".to_owned()),
        author: Some("</title><script>alert(1)</script>".to_owned()),
        duration_ms: Some(3_723_500),
        track: TrackInfo::new(LanguageTag::from_canonical(language), TrackKind::Generated),
        source: "youtube-captions".to_owned(),
        segments: vec![
            Segment::new("one <i>& two</i> \" onmouseover=x", 5_400, 1_000),
            Segment::new("שלום", 3_723_000, 1_000),
        ],
    }
}

fn render(transcript: Transcript, details: VideoDetails) -> String {
    render_with(&PageContext::for_test("/watch/video_site/dQw4w9WgXcQ"), transcript, details)
}

fn render_with(context: &PageContext, transcript: Transcript, details: VideoDetails) -> String {
    let stored = crate::testing::stored(transcript, details);
    transcript::transcript(context, &stored, None, WATCH_URL, None).into_string()
}

fn page(platform: Platform, id: &str, language: &str) -> String {
    render(sample(platform, id, language), VideoDetails::default())
}

#[test]
fn page_outside_text_is_escaped() {
    let page = page(Platform::YouTube, "dQw4w9WgXcQ", "en");
    for foreign in ["<script>", "<b>", "<i>", "\" onmouseover", "'Ann'</"] {
        assert!(!page.contains(foreign), "{foreign}: {page}");
    }
    assert!(
        page.contains("<title>&lt;b&gt;&quot;Tom&quot; &amp; 'Ann'&lt;/b&gt; – transcript</title>"),
        "{page}"
    );
    assert!(page.contains("one &lt;i&gt;&amp; two&lt;/i&gt; &quot; onmouseover=x"), "{page}");
    // The policy forbids inline code, but the pages must be safe without it.
    for inline in ["<style", " style=", "javascript:", " onclick"] {
        assert!(!page.contains(inline), "{inline}: {page}");
    }
}

#[test]
fn page_shows_languages_date_and_chapters() {
    let chapter = |title: &str, start_ms| Chapter { title: title.to_owned(), start_ms };
    let track = |tag: &str, kind| TrackInfo::new(LanguageTag::from_canonical(tag), kind);
    let details = VideoDetails {
        metadata: VideoMetadata {
            author_url: Some("https://www.youtube.com/@ann".to_owned()),
            published_at: Some(Timestamp::from_millis(1_256_453_971_000)),
            chapters: vec![chapter("<Intro>", 0), chapter("Middle", 60_000), chapter("End", 3_700_000)],
            ..VideoMetadata::default()
        },
        tracks: vec![
            track("en", TrackKind::Human),
            track("pt-BR", TrackKind::Generated),
            track("fr", TrackKind::Translated),
        ],
    };
    let page = render(sample(Platform::YouTube, "dQw4w9WgXcQ", "en"), details);
    for part in [
        "<a href=\"https://www.youtube.com/@ann\" rel=\"noreferrer nofollow\">",
        "<time datetime=\"2009-10-25T06:59:31Z\">2009-10-25</time>",
        "<a href=\"?lang=en\" hreflang=\"en\" aria-current=\"page\">English</a>",
        "<a href=\"?lang=pt-BR\" hreflang=\"pt-BR\">",
        "<h2 class=\"chapter\" id=\"chapter1\" dir=\"auto\">&lt;Intro&gt;</h2>",
        "<summary>Chapters (3)</summary>",
        "<span class=\"when\">0:00</span> <a href=\"#chapter1\" dir=\"auto\">&lt;Intro&gt;</a>",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("?lang=fr"), "{page}");
    let order = ["&lt;Intro&gt;", "0:05", "Middle", "End", "1:02:03"].map(|part| page.rfind(part));
    assert!(order.is_sorted(), "{order:?}");
}

#[test]
fn page_chapters_begin_paragraphs_and_all_have_headings() {
    let starts = [("A", 0), ("B", 1_600), ("C", 2_000), ("D", 2_800), ("E", 9_000)];
    let chapters = starts.map(|(title, start_ms)| Chapter { title: title.to_owned(), start_ms }).into();
    let metadata = VideoMetadata { chapters, ..VideoMetadata::default() };
    let details = VideoDetails { metadata, ..VideoDetails::default() };
    let spoken = Transcript {
        segments: [500, 1_500, 2_750, 3_900].map(|start| Segment::new("la", start, 1_000)).into(),
        ..sample(Platform::YouTube, "dQw4w9WgXcQ", "en")
    };
    let stored = crate::testing::stored(spoken.clone(), details.clone());
    let page = render(spoken, details);
    let words = page.split("id=\"words\"").nth(1).unwrap();
    let order = [">A<", "\"t0\"", ">B<", ">C<", "\"t2\"", ">D<", "\"t3\"", ">E<"];
    let places = order.map(|part| words.find(part));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}: {words}");
    assert_eq!(words.matches("<p id=").count(), 3, "{words}");
    assert!(page.contains("<summary>Chapters (5)</summary>"), "{page}");
    // The address of a moment leads to the paragraph with its id.
    for seconds in [0, 2, 3] {
        assert_eq!(transcript::paragraph_at(&stored, seconds * 1_000), Some(format!("t{seconds}")));
    }
}

#[test]
fn page_times_link_to_video_position() {
    let of_site = page(Platform::YouTube, "dQw4w9WgXcQ", "en");
    let address = "https://www.youtube.com/watch?v=dQw4w9WgXcQ&amp;t=5s";
    let link = format!(
        "<p id=\"t5\"><a class=\"time\" href=\"{address}\" rel=\"noreferrer\" aria-label=\"Play from 0:05 on YouTube\">\
         0:05</a> <a class=\"moment\" href=\"#t5\" aria-label=\"Link to 0:05\">#</a>"
    );
    assert!(of_site.contains(&link), "{of_site}");
    assert!(of_site.contains(">1:02:03</a>"), "{of_site}");
    let clip = page(Platform::TikTok, "7", "en");
    assert!(clip.contains("<span class=\"time\">0:05</span>"), "{clip}");
}

#[test]
fn page_language_is_declared_if_known() {
    let page = |language| page(Platform::X, "7", language);
    let hebrew = page("he");
    assert!(hebrew.contains("id=\"words\" lang=\"he\" dir=\"rtl\""), "{hebrew}");
    // The header is aligned as the page.
    assert!(hebrew.contains("<header class=\"title\" lang=\"he\"><h1 dir=\"auto\">"), "{hebrew}");
    assert!(
        hebrew.contains("<li>Hebrew</li>") && hebrew.contains("<span dir=\"auto\">שלום</span>"),
        "{hebrew}"
    );
    assert!(page("en-GB").contains("id=\"words\" lang=\"en-GB\" dir=\"ltr\""));
    assert!(page("und").contains("id=\"words\" dir=\"auto\""));
}

#[test]
fn page_has_metadata_for_link_previews() {
    let page = page(Platform::YouTube, "dQw4w9WgXcQ", "en");
    for part in [
        "<meta property=\"og:title\" content=\"&lt;b&gt;&quot;Tom&quot; &amp; 'Ann'&lt;/b&gt;\">",
        "<meta property=\"og:url\" content=\"https://v.example/watch/video_site/dQw4w9WgXcQ\">",
        "<meta name=\"description\" content=\"one &lt;i&gt;&amp; two&lt;/i&gt; &quot; onmouseover=x\">",
        "<li>1:02:04</li>",
        "download=\"b-Tom-Ann-b.srt\"",
        "format=vtt&amp;frontmatter=true\"",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let mut long = sample(Platform::YouTube, "dQw4w9WgXcQ", "en");
    long.segments = vec![Segment::new("many words ".repeat(100), 0, 1_000)];
    let page = render(long, VideoDetails::default());
    let summary = page.split("name=\"description\" content=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(summary.ends_with("words …") && summary.chars().count() <= 202, "{summary}");
}

#[test]
fn page_file_name_ends_with_whole_word() {
    let video = VideoId::new(Platform::TikTok, "7").unwrap();
    let sixty = format!("{} {}", "ab ".repeat(19).trim_end(), "cde");
    let [word, run] = ["x", "字"].map(|letter| letter.repeat(70));
    for (heading, name) in [
        ("A talk: part 2", "A-talk-part-2".to_owned()),
        (&sixty, sixty.replace(' ', "-")),
        (&format!("{sixty} and more"), sixty.replace(' ', "-")),
        (&format!("{sixty}f and more"), sixty.replace(" cde", "").replace(' ', "-")),
        (&word, "x".repeat(60)),
        (&format!("第1 {run}"), format!("第1-{}", "字".repeat(57))),
        ("?!", "transcript-7".to_owned()),
    ] {
        assert_eq!(transcript::file_name(heading, &video), name, "{heading}");
    }
}

#[test]
fn page_structured_data_is_escaped_and_for_search_engines_only() {
    let sample = || sample(Platform::YouTube, "dQw4w9WgXcQ", "en");
    assert!(!render(sample(), VideoDetails::default()).contains("ld+json"));
    let site = site::Site { index: crate::config::PageIndex::Transcripts, ..site::Site::default() };
    let path = "/watch/video_site/dQw4w9WgXcQ".parse().unwrap();
    let context = PageContext::new(Arc::new(site), &http::Method::GET, &path, &http::HeaderMap::new());
    let mut hostile = sample();
    hostile.title = Some("</script><!-- \"'".to_owned());
    let metadata = VideoMetadata {
        published_at: Some(Timestamp::from_millis(1_256_453_971_000)),
        ..VideoMetadata::default()
    };
    let dated = || VideoDetails { metadata: metadata.clone(), ..VideoDetails::default() };
    let page = render_with(&context, hostile, dated());
    let data = page.split("<script type=\"application/ld+json\">").nth(1).unwrap().split("</script>").next();
    assert!(!data.unwrap().contains('<'), "{page}");
    let data: serde_json::Value = serde_json::from_str(data.unwrap()).unwrap();
    assert_eq!((&data["@type"], &data["duration"]), (&"VideoObject".into(), &"PT3724S".into()));
    assert_eq!(data["name"], "</script><!-- \"'");
    assert_eq!(data["embedUrl"], "https://www.youtube-nocookie.com/embed/dQw4w9WgXcQ");
    assert_eq!(data["uploadDate"], "2009-10-25T06:59:31Z");
    assert!(!page.contains("noindex"), "{page}");
    // Search engines report a video without a date or a picture as an error.
    let clip = self::sample(Platform::TikTok, "7", "en");
    for (transcript, details) in [(sample(), VideoDetails::default()), (clip, dated())] {
        assert!(!render_with(&context, transcript, details).contains("ld+json"));
    }
}

#[test]
fn content_security_policies_allow_own_origin_only() {
    let player = "; frame-src https://www.youtube-nocookie.com";
    for page_policy in [PagePolicy::Static, PagePolicy::Form, PagePolicy::Script, PagePolicy::Player] {
        let policy = content_security_policy(page_policy);
        let policy = policy.to_str().unwrap();
        assert_eq!(policy.contains(player), page_policy == PagePolicy::Player, "{policy}");
        let policy = &policy.replace(player, "");
        assert!(policy.starts_with("default-src 'none'; style-src 'self'; img-src 'self'; "), "{policy}");
        for (directive, allowed) in [
            ("form-action 'self'", page_policy != PagePolicy::Static),
            ("script-src 'self'", matches!(page_policy, PagePolicy::Script | PagePolicy::Player)),
        ] {
            assert_eq!(policy.contains(directive), allowed, "{page_policy:?} {directive}");
        }
        for never in ["unsafe", "http", "data:", "blob:", "*"] {
            assert!(!policy.contains(never), "{never}: {policy}");
        }
    }
}

#[test]
fn assets_are_small_and_named_by_digest() {
    let size = |asset: &assets::Asset| asset.bytes(ContentEncoding::Brotli).len();
    let (page, check) = (size(&STYLE) + size(&SCRIPT), size(&WIDGET) + size(&WORKER));
    assert!(page < 12_000 && page + check < 47_000, "{page} {check}");
    for asset in [&STYLE, &DOCS_STYLE, &SCRIPT, &PLAYER, &WIDGET, &WORKER] {
        let found = assets::named(&asset.name).unwrap();
        assert_eq!(found.bytes(ContentEncoding::Identity), asset.bytes(ContentEncoding::Identity));
        assert!(asset.bytes(ContentEncoding::Gzip).len() < asset.bytes(ContentEncoding::Identity).len());
    }
    assert!(assets::named("style.css").is_none() && assets::named("../mod.rs").is_none());
    let widget = String::from_utf8(WIDGET.bytes(ContentEncoding::Identity).to_vec()).unwrap();
    assert!(widget.starts_with("/*! altcha 3.2.2\nMIT License"), "{}", &widget[..80]);
}

#[test]
fn root_of_has_one_step_per_path_segment() {
    for (path, root) in
        [("/", ""), ("/x", ""), ("/watch/reels/7", "../../"), ("/a/b/c/d", "../../../"), ("", "")]
    {
        assert_eq!(root_of(path), root, "{path}");
    }
}

/// The relative luminance of the colour of a variable, by the formula of WCAG.
fn luminance(scheme: &str, variable: &str) -> f64 {
    let hex = scheme.split(&format!("--{variable}: #")).nth(1).unwrap();
    let channel = |at: usize| {
        let value = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * channel(0) + 0.7152 * channel(2) + 0.0722 * channel(4)
}

/// Accessibility checkers do not see highlights, so this is the check of their colours.
#[test]
fn page_colours_have_contrast_in_both_schemes() {
    let style = include_str!("style.css");
    let (light, dark) = style.split_once("@media (prefers-color-scheme: dark)").unwrap();
    for scheme in [light, dark] {
        for (front, back) in [
            ("ink", "paper"),
            ("soft", "paper"),
            ("accent", "paper"),
            ("wrong", "paper"),
            ("ink", "wash"),
            ("on-accent", "accent"),
            ("on-mark", "mark"),
            ("on-now", "mark-now"),
        ] {
            let (front_l, back_l) = (luminance(scheme, front), luminance(scheme, back));
            let ratio = (front_l.max(back_l) + 0.05) / (front_l.min(back_l) + 0.05);
            assert!(ratio >= 4.5, "{front} on {back}: {ratio:.2}");
        }
    }
}
