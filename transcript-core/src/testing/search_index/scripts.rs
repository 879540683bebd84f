//! Cases of scripts without spaces.

use std::sync::Arc;

use super::{SearchFixture, Spoken, id, indexed};
use crate::search::{ArchiveIndex, SearchParams, SearchSort};

/// Chinese, Japanese, Korean and Thai need no spaces; Arabic and Hebrew no points.
pub async fn search_scripts_without_spaces_are_found(index: Arc<dyn ArchiveIndex>) {
    let lines = [
        "今天我们讲火山爆发的原因",
        "昨日東京タワーは完成しました",
        "서울에서 태어났습니다",
        "น้ำท่วมใหญ่ที่เชียงใหม่",
        "مُحَمَّد كَتَبَ الكِتَاب",
        "שָׁלוֹם עולם",
    ];
    let fixture = indexed(index, "und", &lines).await;
    fixture.check("火山", "a").await;
    fixture.check("火", "a").await;
    fixture.check("火山原因", "a").await;
    fixture.check("東京タワー", "b").await;
    fixture.check("東京タワーが完成", "b").await;
    fixture.check("東京たわー", "b").await;
    fixture.check("パワー", "").await;
    fixture.check("서울은", "c").await;
    fixture.check("서울", "c").await;
    fixture.check("เชียงใหม่", "d").await;
    fixture.check("محمد", "e").await;
    fixture.check("שלום", "f").await;
    fixture.check("地震", "").await;
}

/// In a quoted phrase, a single Chinese character is beside its neighbours.
pub async fn search_phrases_have_single_characters(index: Arc<dyn ArchiveIndex>) {
    let lines = ["3月的雨", "3个人，雨", "月的雨，3"];
    let fixture = indexed(index, "zh", &lines).await;
    fixture.check("\"3月\"", "a").await;
    fixture.check("\"3月的\"", "a").await;
    fixture.check("雨 -\"3月\"", "bc").await;
    fixture.check("\"3月\" OR 人", "ab").await;
    let (id, author) = (&id('d'), "看B站");
    fixture.put(Spoken { id, author, language: "zh", lines: &["B站"], ..Spoken::default() }).await;
    fixture.index_all().await;
    fixture.check("channel:B站", "d").await;
    fixture.check("channel:站", "d").await;
    fixture.check("channel:月", "").await;
}

/// In scripts without spaces, a word may begin in one segment and end in the next.
pub async fn search_words_of_two_segments_are_found(index: Arc<dyn ArchiveIndex>) {
    let fixture = SearchFixture::new(index);
    let spoken = [
        ('a', "ja", ["フランスとシ", "ンガポール"]),
        ('b', "ja", ["フランスとシ。", "ンガポール"]),
        ('c', "th", ["เปิดไ", "ฟ"]),
        ('d', "ko", ["서", "울에서"]),
        ('e', "en", ["It costs $12,000.", "Ok"]),
    ];
    for (letter, language, lines) in &spoken {
        fixture.put(Spoken { id: &id(*letter), language, lines, ..Spoken::default() }).await;
    }
    fixture.index_all().await;
    fixture.check("シンガポール", "a").await;
    fixture.check("\"シンガポール\"", "a").await;
    fixture.check("ไฟ", "c").await;
    fixture.check("서울", "").await;
    fixture.check("12000", "e").await;
    fixture.check("12.000", "e").await;
}

/// A phrase of runs is found with or without a space or a break between them, and not within one run.
pub async fn search_phrases_of_runs_have_any_space(index: Arc<dyn ArchiveIndex>) {
    let fixture = SearchFixture::new(index);
    let spoken: [(char, &str, &[&str]); 6] = [
        ('a', "ja", &["東京大学です"]),
        ('b', "ja", &["東京 大学"]),
        ('c', "ja", &["東京", "大学"]),
        ('d', "ja", &["大学と東京"]),
        ('e', "ja", &["東京都"]),
        ('f', "th", &["ต้นไม้ไผ่"]),
    ];
    for (letter, language, lines) in spoken {
        fixture.put(Spoken { id: &id(letter), language, lines, ..Spoken::default() }).await;
    }
    fixture.index_all().await;
    fixture.check("\"東京 大学\"", "abc").await;
    fixture.check("東京 -\"東京 大学\"", "de").await;
    fixture.check("\"東京 京都\"", "").await;
    fixture.check("東京 -\"東京 京都\"", "abcde").await;
    fixture.check("\"ไม้ ไผ่\"", "f").await;
}

/// Hindi writes a nasal before a consonant in two ways, and India groups the digits of a number in its own.
pub async fn search_spellings_of_nasals_and_numbers_are_found(index: Arc<dyn ArchiveIndex>) {
    let lines = ["यह हिन्दी है", "यह हिंदी है", "₹1,00,000", "100,000 or 100000"];
    let fixture = indexed(index, "hi", &lines).await;
    for query in ["हिंदी", "हिन्दी", "\"यह हिंदी\"", "हिन्*", "हिंद*"]
    {
        fixture.check(query, "ab").await;
    }
    for query in ["1,00,000", "100000", "100,000"] {
        fixture.check(query, "cd").await;
    }
}

/// A page whose candidates the archive alone can check reads them once, and may have no hits before its cursor.
pub async fn search_page_of_unchecked_candidates_is_read_once(index: Arc<dyn ArchiveIndex>) {
    let fixture = SearchFixture::new(index);
    for published in 0..230_i64 {
        let (id, published) = (format!("vid{published:08}"), Some(published));
        let line = if published == Some(0) { "3月的雨" } else { "月的雨，3" };
        let spoken = Spoken { id: &id, language: "zh", lines: &[line], published, ..Spoken::default() };
        fixture.put(spoken).await;
    }
    fixture.index_all().await;
    let (query, sort) = ("\"3月\"".to_owned(), SearchSort::Date);
    let params = SearchParams { query, sort, limit: 1, ..SearchParams::default() };
    let first = fixture.page(params.clone()).await;
    assert_eq!((first.hits.len(), first.next.is_some(), first.total.is_exact), (0, true, false));
    let last = fixture.page(SearchParams { cursor: first.next, ..params }).await;
    let found: Vec<_> = last.hits.iter().map(|hit| hit.stored.transcript.video.id()).collect();
    assert_eq!((found, last.next), (vec!["vid00000000"], None));
}
