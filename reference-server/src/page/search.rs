//! Search page: the query, and the videos that match with their moments.

use std::borrow::Cow;

use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use transcript_core::{
    search::{
        QUERY_CHARS_MAX, SearchMoment, SearchPage, SearchParams, SearchResult, SearchSort, UnfilteredSearch,
    },
    transcript::{TrackKind, format_timestamp},
};

use super::{
    Frame, PageContext, PagePolicy, PageWidth, Section,
    assets::SEARCH_SCRIPT,
    query_parameter,
    transcript::{heading, known_language, language_attributes, track_query},
};

/// Content security policy of the search page.
pub(crate) const POLICY: PagePolicy = PagePolicy::Script;

/// What the page shows below the form.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SearchView<'a> {
    /// Nothing: no query yet.
    Empty,
    /// Results.
    Found(&'a SearchPage),
    /// Why there are none.
    Failed(&'a str),
}

pub(crate) fn search(context: &PageContext, params: &SearchParams, state: SearchView<'_>) -> Markup {
    let title = match params.query.is_empty() {
        true => context.text("search.title").to_owned(),
        false => context.fill("search.tab", &[("query", &params.query)]),
    };
    let body = html! {
        h1 { (context.text("search.title")) }
        (form(context, params))
        p.unseen #said role="status" {}
        @match state {
            SearchView::Empty => {}
            SearchView::Failed(why) => p.error role="alert" { (why) },
            SearchView::Found(found) => (results(context, params, found)),
        }
    };
    let is_plain = params.query.is_empty() && filters(params).next().is_none();
    let query = if is_plain { String::new() } else { query(params, &params.query, None) };
    let frame = Frame::new(context, &title).section(Section::Search).width(PageWidth::Wide);
    frame.with_script(&SEARCH_SCRIPT).query(&query).render(body)
}

fn form(context: &PageContext, params: &SearchParams) -> Markup {
    let example = |text: &str| html! { code dir="ltr" { (text) } };
    let examples = [
        ("phrase", example("\"tide tables\"")),
        ("not", example("-moon")),
        ("or", example("OR")),
        ("prefix", example("harbo*")),
        ("language", example("lang:en")),
        ("channel", example("channel:news")),
        ("date", example("after:2024")),
    ];
    html! {
        form.find action="search" method="get" role="search" data-unreached=(context.text("script.unreached")) {
            label for="q" { (context.text("search.label")) }
            div.row {
                input #q name="q" type="search" autocomplete="off" autocapitalize="off" spellcheck="false"
                    dir="auto" required maxlength=(QUERY_CHARS_MAX) value=(params.query)
                    aria-describedby="hint";
                (context.language_field())
                @for (name, value) in filters(params) { input type="hidden" name=(name) value=(value); }
                button type="submit" { (context.text("search.submit")) }
            }
            p.hint #hint { (context.markup("search.hint", &examples)) }
        }
    }
}

fn results(context: &PageContext, params: &SearchParams, found: &SearchPage) -> Markup {
    let address = |words: &str, cursor| context.href(&format!("search?{}", query(params, words, cursor)));
    let count = context.number(found.total.value);
    let total = if found.total.is_exact { "search.total" } else { "search.total_at_least" };
    html! {
        section.results aria-label=(context.text("search.results")) {
            @if found.hits.is_empty() {
                p role="status" { (context.text("search.nothing")) }
                @if let Some(words) = &found.suggestion {
                    @let link = html! { a href=(address(words, None)) { bdi { (words) } } };
                    p { (context.markup("search.suggestion", &[("query", link)])) }
                }
                @if let Some(unfiltered) = &found.without_filters {
                    p { (without_filters(context, params, unfiltered)) }
                }
            } @else {
                p.hint role="status" { (context.fill(total, &[("count", &count)])) }
                ol.hits { @for hit in &found.hits { li { (result(context, &params.query, hit)) } } }
            }
            @if let Some(next) = &found.next {
                p { a rel="next" href=(address(&params.query, Some(next))) { (context.text("search.more")) } }
            }
        }
    }
}

/// The search without its filters, with the number of its videos.
fn without_filters(context: &PageContext, params: &SearchParams, unfiltered: &UnfilteredSearch) -> Markup {
    let params = SearchParams { language: None, platform: None, ..params.clone() };
    let address = format!("search?{}", query(&params, &unfiltered.query, None));
    let count = context.number(unfiltered.total.value);
    let text = match unfiltered.total.is_exact {
        true => context.fill("search.unfiltered", &[("count", &count)]),
        false => context.fill("search.unfiltered_at_least", &[("count", &count)]),
    };
    html! { a href=(context.href(&address)) { (text) } }
}

/// What the page of a hit searches: the word or phrase of a query, or a form of the word that the hit has.
///
/// `None` for several words: the page finds them only beside each other.
fn words_of_page<'a>(query: &'a str, moments: &[SearchMoment]) -> Option<Cow<'a, str>> {
    let query = query.trim();
    let phrase = query.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let words = phrase.unwrap_or_else(|| query.trim_end_matches('*'));
    let is_part = |c: char| c == '"' || (phrase.is_none() && (c.is_whitespace() || c == ':'));
    if words.is_empty() || words.contains(is_part) || words.starts_with('-') {
        return None;
    }
    let folded = words.to_lowercase();
    if moments.iter().any(|moment| moment.text.to_lowercase().contains(&folded)) {
        return Some(words.into());
    }
    let found = moments.iter().flat_map(|moment| {
        moment.matches.iter().map(|(start, end)| {
            let letters = moment.text.chars().skip(*start as usize);
            letters.take(end.saturating_sub(*start) as usize).collect::<String>()
        })
    });
    found.filter(|_| phrase.is_none()).min_by_key(|form| form.chars().count()).map(Cow::Owned)
}

fn result(context: &PageContext, query: &str, hit: &SearchResult) -> Markup {
    let transcript = &hit.stored.transcript;
    let language = &transcript.track.language;
    let is_translated = transcript.track.kind == TrackKind::Translated;
    let page = format!("watch/{}?{}", transcript.video, track_query(language, is_translated));
    let (lang, direction) = language_attributes(transcript);
    let words = words_of_page(query, &hit.moments).map(|words| format!("&{}", query_parameter("q", &words)));
    let address = format!("{page}{}", words.unwrap_or_default());
    html! {
        h2 { a href=(context.href(&address)) { bdi { (heading(context, transcript)) } } }
        p.hint {
            @if let Some(author) = &transcript.author { bdi { (author) } " · " }
            (transcript.video.platform().name())
            @if let Some(tag) = known_language(transcript) { " · " (tag.english_name()) }
        }
        @if !hit.moments.is_empty() {
            ul.moments {
                @for moment in &hit.moments {
                    @let seconds = moment.start_ms / 1_000;
                    li {
                        a.time href=(context.href(&format!("{page}&t={seconds}"))) { (format_timestamp(seconds)) }
                        " "
                        span lang=[lang] dir=(direction) { (marked(moment)) }
                    }
                }
            }
        }
    }
}

/// The text of a moment with its matches marked.
fn marked(moment: &SearchMoment) -> Markup {
    let letters: Vec<char> = moment.text.chars().collect();
    let text = |from: usize, to: usize| letters.get(from..to).unwrap_or_default().iter().collect::<String>();
    let ends = moment.matches.iter().map(|(_, end)| *end as usize);
    let before = std::iter::once(0).chain(ends);
    let rest = moment.matches.last().map_or(0, |(_, end)| *end as usize);
    html! {
        @for ((start, end), before) in moment.matches.iter().zip(before) {
            (text(before, *start as usize))
            mark { (text(*start as usize, *end as usize)) }
        }
        (text(rest, letters.len()))
    }
}

/// The parameters that are set besides the words, with their names. They need no escaping in an address.
fn filters(params: &SearchParams) -> impl Iterator<Item = (&'static str, &str)> {
    let sort = (params.sort != SearchSort::default()).then(|| ("sort", params.sort.as_str()));
    let language = params.language.as_ref().map(|language| ("lang", language.as_str()));
    let platform = params.platform.map(|platform| ("platform", platform.as_str()));
    language.into_iter().chain(platform).chain(sort)
}

/// Query of the address of a search with these words.
fn query(params: &SearchParams, words: &str, cursor: Option<&str>) -> String {
    let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let mut address = format!("q={}", encode(words));
    for (name, value) in filters(params) {
        address.push_str(&format!("&{name}={value}"));
    }
    if let Some(cursor) = cursor {
        address.push_str(&format!("&cursor={}", encode(cursor)));
    }
    address
}

#[cfg(test)]
mod tests {
    use transcript_core::{
        transcript::{LanguageTag, TrackSelector, VideoDetails},
        video::{Platform, VideoId},
    };

    use super::*;
    use crate::testing;

    #[test]
    fn search_hit_in_machine_translation_leads_to_it() {
        let mut transcript = testing::transcript(&VideoId::new(Platform::YouTube, "dQw4w9WgXcQ").unwrap());
        transcript.track.kind = TrackKind::Translated;
        let selector = TrackSelector::in_language(transcript.track.language.clone(), true);
        let stored = testing::stored(transcript, VideoDetails::default());
        let moment =
            SearchMoment { start_ms: 1_500, end_ms: 2_750, text: "It is so".to_owned(), matches: Vec::new() };
        let hit = SearchResult { stored, selector, score: 1.0, moments: vec![moment] };
        let page = result(&PageContext::for_test("/search"), "so it", &hit).into_string();
        let address = "\"watch/video_site/dQw4w9WgXcQ?lang=en&amp;translated=true";
        for link in [format!("{address}\""), format!("{address}&amp;t=1\"")] {
            assert!(page.contains(&link), "{link}: {page}");
        }
    }

    #[test]
    fn search_hit_has_heading_and_language_of_its_page() {
        let mut clip = testing::transcript(&VideoId::new(Platform::TikTok, "7").unwrap());
        clip.title = None;
        let shown = |language: &str| {
            let mut clip = clip.clone();
            clip.track.language = LanguageTag::from_canonical(language);
            let stored = testing::stored(clip, VideoDetails::default());
            let moment = SearchMoment { start_ms: 0, end_ms: 1, text: "So".to_owned(), matches: Vec::new() };
            let hit =
                SearchResult { stored, selector: TrackSelector::Default, score: 1.0, moments: vec![moment] };
            result(&PageContext::for_test("/search"), "", &hit).into_string()
        };
        let english = shown("en");
        assert!(english.contains("<bdi>TikTok video 7</bdi>"), "{english}");
        assert!(english.contains("TikTok · English</p>"), "{english}");
        assert!(english.contains("<span lang=\"en\" dir=\"ltr\">So</span>"), "{english}");
        let unknown = shown("und");
        assert!(unknown.contains("TikTok</p>"), "{unknown}");
        assert!(unknown.contains("<span dir=\"auto\">So</span>"), "{unknown}");
    }

    #[test]
    fn search_hit_of_one_word_or_phrase_leads_to_its_matches() {
        let moment = SearchMoment {
            start_ms: 0,
            end_ms: 1,
            text: "Tide tables, and one table".to_owned(),
            matches: vec![(5, 11), (21, 26)],
        };
        for (query, words) in [
            ("Tables", Some("Tables")),
            ("tabl*", Some("tabl")),
            ("\"tide tables\"", Some("tide tables")),
            // Another form of the word.
            ("tabled", Some("table")),
            ("\"tide table\" sea", None),
            ("\"one tide\"", None),
            ("tide table", None),
            ("lang:en", None),
            ("-moon", None),
            ("\"\"", None),
            ("", None),
        ] {
            assert_eq!(words_of_page(query, std::slice::from_ref(&moment)).as_deref(), words, "{query}");
        }
        assert_eq!(words_of_page("table", &[]), None, "the word is in the title");
        let clip = testing::transcript(&VideoId::new(Platform::TikTok, "7").unwrap());
        let stored = testing::stored(clip, VideoDetails::default());
        let moments = vec![moment];
        let hit = SearchResult { stored, selector: TrackSelector::Default, score: 1.0, moments };
        let page = result(&PageContext::for_test("/search"), "\"tide tables\"", &hit).into_string();
        let link = "<h2><a href=\"watch/short_video/7?lang=en&amp;q=tide%20tables\">";
        assert!(page.contains(link), "{page}");
    }

    #[test]
    fn search_matches_are_marked_and_escaped() {
        let moment = SearchMoment {
            start_ms: 0,
            end_ms: 1,
            text: "🌊 <tide> tables".to_owned(),
            matches: vec![(3, 7), (9, 15)],
        };
        assert_eq!(marked(&moment).into_string(), "🌊 &lt;<mark>tide</mark>&gt; <mark>tables</mark>");
        let unmarked = SearchMoment { matches: Vec::new(), ..moment };
        assert_eq!(marked(&unmarked).into_string(), "🌊 &lt;tide&gt; tables");
    }

    #[test]
    fn search_query_keeps_other_parameters() {
        let params = SearchParams { sort: SearchSort::Date, ..SearchParams::default() };
        assert_eq!(query(&params, "a \"b\"&", Some("s1")), "q=a%20%22b%22%26&sort=date&cursor=s1");
        let params = SearchParams { platform: Some(Platform::Instagram), ..params };
        assert_eq!(query(&params, "a", None), "q=a&platform=reels&sort=date");
        let page = search(&PageContext::for_test("/search"), &params, SearchView::Empty).into_string();
        for part in [
            "name=\"platform\" value=\"reels\"",
            "name=\"sort\" value=\"date\"",
            // The page in another language, which has filters only with `q`.
            "href=\"?hl=de&amp;q=&amp;platform=reels&amp;sort=date\"",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("name=\"lang\""), "{page}");
        let plain = SearchParams::default();
        let page = search(&PageContext::for_test("/search"), &plain, SearchView::Empty).into_string();
        assert!(page.contains("href=\"?hl=de\""), "{page}");
    }
}
