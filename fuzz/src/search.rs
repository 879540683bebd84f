//! Queries of the search in the archive, and where they match a transcript.

use std::sync::Arc;

use transcript_core::{
    archive::{Archive as _, PutRequest},
    memory::{MemoryArchive, MemorySearchIndex},
    search::{ArchiveSearch, Indexer, MOMENTS_MAX, SearchMoment, SearchPage, SearchParams, SearchQuery},
    time::{Clock, Timestamp},
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, TrackSelector, Transcript, VideoMetadata},
    video::{Platform, VideoId},
};

use crate::{runtime, seeds};

/// Most filters of a kind, and most characters of a moment.
const FILTERS_MAX: usize = 8;
const TEXT_CHARS_MAX: usize = 2_000;
/// Lengths of a word that every index has as it is.
const PLAIN_LETTERS: std::ops::RangeInclusive<usize> = 4..=20;

#[derive(Debug)]
struct FrozenClock;

impl Clock for FrozenClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_795_132_800_000)
    }
}

/// The first line is the query, the second the language, the third title and channel; a segment on each other line.
pub(crate) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (query, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let parsed = SearchQuery::parse(query);
    assert!(parsed.filters.languages.len() <= FILTERS_MAX && parsed.filters.platforms.len() <= FILTERS_MAX);
    let transcript = transcript(rest);
    if transcript.check().is_err() {
        return;
    }
    runtime::block_on(async {
        let search = index(&transcript).await;
        let page = find(&search, query).await;
        assert!(page.hits.is_empty() || !parsed.is_empty(), "an empty query finds nothing");
        for hit in &page.hits {
            assert_eq!(*hit.stored.transcript, transcript);
            assert!(hit.moments.len() <= MOMENTS_MAX);
            hit.moments.iter().for_each(|moment| check_moment(moment, &transcript));
        }
        if let Some(suggestion) = &page.suggestion {
            assert_ne!(suggestion, query);
        }
        if let Some(word) = transcript.segments.iter().find_map(|segment| plain_word(&segment.text)) {
            let page = find(&search, word).await;
            assert!(page.hits.iter().any(|hit| !hit.moments.is_empty()), "{word:?} is not found");
        }
    });
}

async fn find(search: &ArchiveSearch, query: &str) -> SearchPage {
    let params = SearchParams { query: query.to_owned(), with_unfiltered: true, ..SearchParams::default() };
    search.search(&params).await.expect("stores in memory do not fail")
}

/// A search over this transcript.
async fn index(transcript: &Transcript) -> ArchiveSearch {
    let (archive, index) = (Arc::new(MemoryArchive::default()), Arc::new(MemorySearchIndex::default()));
    let (clock, handle) = (Arc::new(FrozenClock), tokio::runtime::Handle::current());
    let put = PutRequest {
        video: transcript.video.clone(),
        selectors: vec![TrackSelector::Default],
        transcript: Arc::new(transcript.clone()),
        known_tracks: Vec::new(),
        metadata: VideoMetadata::default(),
        parser_version: 1,
        replace: false,
        now: clock.now(),
    };
    archive.put(put).await.expect("a valid transcript is archived");
    let indexer = Indexer::new(
        Arc::clone(&archive) as _,
        Arc::clone(&index) as _,
        Arc::clone(&clock) as _,
        handle.clone(),
    );
    while !indexer.step().await.expect("stores in memory do not fail").is_idle() {}
    ArchiveSearch::new(archive, index, clock, handle)
}

/// A moment has text of the transcript, and its matches are in it.
fn check_moment(moment: &SearchMoment, transcript: &Transcript) {
    let SearchMoment { start_ms, end_ms, text, matches } = moment;
    assert!(start_ms <= end_ms);
    let length = text.chars().count();
    assert!((1..=TEXT_CHARS_MAX).contains(&length), "{length} characters");
    assert!(!text.contains(char::is_control), "{text:?} is on one line");
    let mut before = 0;
    for (start, end) in matches {
        assert!(before <= *start && start < end && *end as usize <= length, "{matches:?} in {text:?}");
        before = *end;
    }
    let spoken: String = transcript.segments.iter().map(|segment| letters(&segment.text)).collect();
    assert!(spoken.contains(&letters(text)), "{text:?} is spoken");
}

fn letters(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && !c.is_control()).collect()
}

/// A word of ASCII letters between spaces.
fn plain_word(text: &str) -> Option<&str> {
    text.split(' ').find(|word| {
        PLAIN_LETTERS.contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_lowercase())
    })
}

fn transcript(text: &str) -> Transcript {
    let mut lines = text.split('\n');
    let language =
        lines.next().and_then(|tag| LanguageTag::parse(tag).ok()).unwrap_or_else(LanguageTag::english);
    let title = lines.next().filter(|title| !title.is_empty()).map(str::to_owned);
    let segment = |(number, text): (u64, &str)| Segment::new(text, number * 3_000, 2_500);
    Transcript {
        video: VideoId::new(Platform::YouTube, "dQw4w9WgXcQ").expect("a valid id"),
        author: title.clone(),
        title,
        duration_ms: None,
        track: TrackInfo::new(language, TrackKind::Human),
        source: "test".to_owned(),
        segments: (0..).zip(lines).map(segment).collect(),
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    const TALK: &str =
        "en\nTide tables\nA tide came in the early morning, they said.\nThen a tide table, with tables.\n";
    let queries = [
        "tide tables",
        "\"tide table\" -harbour",
        "tea OR tide mor*",
        "lang:en platform:youtube channel:\"Tide tables\" before:2030 after:2020-02-28 tide",
        "tdie tabels",
        "“tide table” l'école state-of-the-art don't",
        "-only -these",
    ];
    let mut seeds: Vec<Vec<u8>> =
        queries.iter().map(|query| format!("{query}\n{TALK}").into_bytes()).collect();
    seeds.extend(seeds::texts(&[
        "爆发 AI革命\nzh\n火山\n今天讲火山\n爆发的原因 AI革命",
        "서울에서 \"서울\"\nko\n\n서울에서 만나요",
        "straße İstanbul ﬁnde\nde\nÜber Straßen\nIm Straßenlärm hörte ich 1912 die Schiffe; İstanbul war weit, ﬁnde ich.",
        "ภาษาไทย\nth\n\nภาษาไทยง่ายมาก\u{0}\u{202e}a\r\u{300}",
        "école\nfr\nL'école\nl'école est finie aujourd'hui",
    ]));
    seeds
}
