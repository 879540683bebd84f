//! Tests of the terms and of the moments.

use std::sync::Arc;

use super::{
    SearchDocument, SearchMoment, SearchQuery, expression::RunMode, moments::moments, text_match::match_text,
    tokens::IndexTokenizers,
};
use crate::{
    archive::{StoredTranscript, content_digest},
    time::Timestamp,
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, TrackSelector, Transcript},
    video::{Platform, VideoId},
};

fn stored(language: &str, lines: &[&str]) -> StoredTranscript {
    let transcript = Transcript {
        video: VideoId::new(Platform::YouTube, "aaaaaaaaaaa").unwrap(),
        title: Some("Tide tables".to_owned()),
        author: Some("Sea News".to_owned()),
        duration_ms: None,
        track: TrackInfo::new(LanguageTag::parse(language).unwrap(), TrackKind::Human),
        source: "imported".to_owned(),
        segments: lines.iter().zip(0..).map(|(line, n)| Segment::new(*line, n * 3_000, 2_500)).collect(),
    };
    StoredTranscript {
        content_sha256: content_digest(&transcript),
        transcript: Arc::new(transcript),
        revision: 1,
        parser_version: 1,
        stored_at: Timestamp::from_millis(0),
        details: Arc::default(),
    }
}

fn found(query: &str, stored: &StoredTranscript) -> Option<Vec<SearchMoment>> {
    let query = SearchQuery::parse(query).compile(RunMode::Strict)?;
    Some(moments(&stored.transcript.segments, &match_text(&query, stored, &IndexTokenizers::default())?))
}

fn rows(lines: &[&str], row_terms: usize) -> SearchDocument {
    SearchDocument::new(TrackSelector::Default, &stored("en", lines), row_terms)
}

#[test]
fn document_rows_repeat_terms_of_others() {
    let document = rows(&["one walrus", "two cats", "three pelicans"], 2);
    assert_eq!(document.rows.len(), 3);
    let first = &document.rows[0];
    assert_eq!((first.title.as_str(), first.channel.as_str()), ("tide tables", "sea news"));
    assert_eq!(first.words, "one walrus");
    let has = |text: &str, term: &str| text.split(' ').any(|known| known == term);
    for term in ["·entabl", "·enwalrus"] {
        assert!(has(&first.extras, term), "{term}: {}", first.extras);
    }
    for term in ["two", "cats", "·encat", "pelicans"] {
        assert!(has(&first.others, term), "{term}: {}", first.others);
    }
    assert!(!has(&first.others, "walrus"));
    assert_eq!(rows(&["one walrus"], 4_000).rows.len(), 1);
}

#[test]
fn document_phrases_are_in_one_row() {
    let words: Vec<String> = (100..400).map(|n| format!("w{n}")).collect();
    let document = rows(&[&words.join(" ")], 100);
    let lengths: Vec<usize> = document.rows.iter().map(|row| row.words.split(' ').count()).collect();
    assert_eq!(lengths, [100, 163, 163]);
    for phrase in words.windows(64) {
        let phrase = phrase.join(" ");
        assert!(document.rows.iter().any(|row| row.words.contains(&phrase)), "{phrase}");
    }
}

/// FTS5 ends a term at every ASCII character that is neither a letter nor a digit.
#[test]
fn document_terms_have_no_separator() {
    let lines = ["snake_case, it's ⑴ ½ ㎯ ﷺ a\u{37a}b", "Straße-Ärger 火山 e\u{301}_ 3.5"];
    for row in rows(&lines, 4).rows {
        for text in [row.title, row.channel, row.words, row.extras, row.others, row.facets] {
            let is_term =
                |letter: char| !letter.is_ascii() || letter.is_ascii_alphanumeric() || letter == ' ';
            assert!(text.chars().all(is_term), "{text}");
        }
    }
}

#[test]
fn document_memory_is_bounded() {
    let words: Vec<String> = (0..40_000).map(|n| format!("w{n}")).collect();
    let lines: Vec<String> = words.chunks(10).map(|words| words.join(" ")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let document = rows(&lines, 100);
    assert_eq!(document.rows.len(), 64);
    let bytes: usize =
        document.rows.iter().map(|row| row.words.len() + row.extras.len() + row.others.len()).sum();
    assert!(bytes < 64 * 17_000 * 8, "{bytes}");
}

#[test]
fn match_best_moments_come_first() {
    let lines = [
        "A tide came in the early morning, they said.",
        "Then a tide table, with tables and more.",
        "Nothing.",
    ];
    let moments = found("tide tables", &stored("en", &lines)).unwrap();
    assert_eq!(moments.len(), 2);
    assert_eq!(moments[0].text, lines[1]);
    assert_eq!(moments[0].matches, [(7, 11), (12, 17), (24, 30)]);
    assert_eq!(moments[1].matches, [(2, 6)]);
}

#[test]
fn match_title_alone_has_no_moments() {
    assert_eq!(found("\"tide tables\"", &stored("en", &["Nothing of it."])), Some(Vec::new()));
    assert_eq!(found("tide nothing", &stored("en", &["Nothing of it."])).unwrap().len(), 1);
    assert_eq!(found("absent", &stored("en", &["Nothing of it."])), None);
}

#[test]
fn match_unspaced_segments_are_joined_without_space() {
    let moments = found("爆发", &stored("zh", &["今天讲火山", "爆发的原因"])).unwrap();
    assert_eq!(moments[0].text, "今天讲火山爆发的原因");
    assert_eq!(moments[0].matches, [(5, 7)]);
}

#[test]
fn match_single_characters_adjoin_in_phrase() {
    let check = |query: &str, lines: &[&str], expect: Option<&[(u32, u32)]>| {
        let found = found(query, &stored("zh", lines));
        let matches = found.map(|moments| moments.into_iter().next().map(|moment| moment.matches));
        assert_eq!(matches.flatten().as_deref(), expect, "{query}");
    };
    check("\"3月\"", &["在3月的雨"], Some(&[(1, 3)]));
    check("\"3月\"", &["3 个人，月"], None);
    check("\"第3章\"", &["看第3章吧"], Some(&[(1, 4)]));
    check("\"第3章\"", &["第章3"], None);
    check("\"火山3月\"", &["看火山3月份"], Some(&[(1, 5)]));
    check("\"火山3月\"", &["火山月3月"], None);
    check("\"B 站 now\"", &["on B", "站, now"], Some(&[(3, 4), (5, 6), (8, 11)]));
    check("雨 -\"3月\"", &["3月的雨"], None);
    check("雨 -\"3月\"", &["3 月的雨和3个人"], None);
    check("雨 -\"3月\"", &["月的雨3"], Some(&[(2, 3)]));
}

#[test]
fn match_channel_has_single_characters() {
    let mut stored = stored("zh", &["王先生"]);
    for (author, query, expect) in [
        ("王志安", "channel:王", true),
        ("Sea News", "channel:王", false),
        ("老B站", "channel:B站", true),
        ("B 大站", "channel:B站", false),
    ] {
        Arc::make_mut(&mut stored.transcript).author = Some(author.to_owned());
        assert_eq!(found(query, &stored).is_some(), expect, "{author}: {query}");
    }
}

#[test]
fn match_kana_are_joined_and_keep_voicing() {
    let lines = ["バザーのおもちゃとはさみ"];
    for (query, expect) in [
        ("オモチャ", Some((4, 8))),
        ("ばざー", Some((0, 3))),
        ("ハサミ", Some((9, 12))),
        ("パサー", None),
        ("らーめん", None),
    ] {
        let found = found(query, &stored("ja", &lines)).map(|moments| moments[0].matches[0]);
        assert_eq!(found, expect, "{query}");
    }
}

#[test]
fn match_long_segment_is_cut_around_match() {
    let check = |before: &str, after: &str, is_cut: bool| {
        let line = format!("{before} pelican {after}");
        let moments = found("pelican", &stored("en", &[&line])).unwrap();
        let (start, end) = moments[0].matches[0];
        let text: Vec<char> = moments[0].text.chars().collect();
        assert!(text.len() <= 2_000);
        assert_eq!(text.len() < line.trim().chars().count(), is_cut);
        assert_eq!(text[start as usize..end as usize].iter().collect::<String>(), "pelican");
    };
    check(&"word ".repeat(1_000), &"word ".repeat(1_000), true);
    // Longer than 1,000 characters before the match, but not too long.
    check(&"word".repeat(300), "", false);
    // More than 2,000 bytes.
    check(&"слово".repeat(300), "слово", false);
}
