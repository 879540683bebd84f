//! Watch page of an archived transcript: reading, search, copy and download.

use maud::{Markup, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use transcript_core::{
    archive::StoredTranscript,
    transcript::{
        Chapter, Chunk, LanguageTag, TrackInfo, TrackKind, TrackSelector, Transcript, VideoMetadata,
        best_track, chapter_paragraphs, distinct_languages, format_timestamp,
    },
    video::{Platform, VideoId},
};

use super::{
    Frame, PageContext, PagePolicy, PageWidth, Section,
    assets::{PLAYER, SCRIPT},
    card::PageCard,
    no_transcript::unnamed,
    question::{self, PageAnswer},
};
use crate::config::PageIndex;

/// Length of the summary in link previews, in characters.
const SUMMARY_CHARS: usize = 200;
/// Maximum number of languages that the page links to.
const LANGUAGES_MAX: usize = 40;
/// Length of the date at the start of an RFC 3339 time.
const DATE_LENGTH: usize = 10;
/// Length of the title in a file name, in characters.
const FILE_NAME_CHARS: usize = 60;
/// Number of chapters from which the page has a table of contents.
const CONTENTS_MIN: usize = 2;
/// Download formats: parameters of the API, file extension, message with the label.
const FORMS: [(&str, &str, &str); 5] = [
    ("text&frontmatter=true", "txt", "transcript.plain"),
    ("md&frontmatter=true", "md", "transcript.markdown"),
    ("srt", "srt", "transcript.srt"),
    ("vtt&frontmatter=true", "vtt", "transcript.vtt"),
    ("json", "json", "transcript.json"),
];
/// Documents: last part of the address, message with the label.
const DOCUMENTS: &[(&str, &str)] =
    if cfg!(feature = "documents") { &[("docx", "transcript.docx"), ("pdf", "transcript.pdf")] } else { &[] };
const SCRIPT_MESSAGES: [(&str, &str); 12] = [
    ("hit", "script.hit"),
    ("noHit", "script.no_hit"),
    ("linkCopied", "script.link_copied"),
    ("quoteCopied", "script.quote_copied"),
    ("copied", "script.copied"),
    ("notCopied", "script.not_copied"),
    ("copyAddress", "script.copy_address"),
    ("copyFile", "script.copy_file"),
    ("follow", "script.follow"),
    ("close", "script.close"),
    ("player", "script.player"),
    ("blocked", "script.blocked"),
];

/// Characters that are not escaped in the last path segment.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The last segment of the path of a watch page.
pub(crate) fn page_segment(name: &str) -> String {
    utf8_percent_encode(name, SEGMENT).to_string()
}

/// The relative address of a watch page on itself. The leading `./` keeps a name with a colon from being parsed as a
/// URL scheme.
pub(crate) fn own_address(name: &str) -> String {
    format!("./{}", page_segment(name))
}

/// Parameters as the query of an address: empty, or with `?` in front.
pub(crate) fn optional_query(query: &str) -> String {
    if query.is_empty() { String::new() } else { format!("?{query}") }
}

/// The parameters of a track. A machine translation is shown only where it is named.
pub(crate) fn track_query(language: &LanguageTag, translated: bool) -> String {
    format!("lang={language}{}", if translated { "&translated=true" } else { "" })
}

/// Content security policy of the page of a video.
pub(crate) fn policy(video: &VideoId) -> PagePolicy {
    if has_player(video) { PagePolicy::Player } else { PagePolicy::Script }
}

/// Whether the page can show the player of the platform.
fn has_player(video: &VideoId) -> bool {
    video.platform() == Platform::YouTube
}

/// Renders the page. `watch_url` is its absolute address, and `page_answer` the answer that it shows.
pub(crate) fn transcript(
    context: &PageContext,
    stored: &StoredTranscript,
    requested: Option<&LanguageTag>,
    watch_url: &str,
    page_answer: Option<&PageAnswer>,
) -> Markup {
    let (transcript, details) = (&*stored.transcript, &*stored.details);
    let video = &transcript.video;
    let heading = heading(context, transcript);
    let paragraphs = chapter_paragraphs(&transcript.segments, &details.metadata.chapters);
    let (lang, direction) = language_attributes(transcript);
    let platform = video.platform().name();
    let translated = transcript.track.kind == TrackKind::Translated;
    let query = requested.map_or(String::new(), |tag| track_query(tag, translated));
    let own = match page_answer {
        None => own_address(video.id()),
        // The address of an answer is below that of the page.
        Some(_) => format!("../{}", page_segment(video.id())),
    };
    let own = (own, context.with_language(&optional_query(&query)));
    let body = html! {
        article {
            header.title lang=[lang] {
                h1 dir="auto" { (heading) }
            }
            (about(context, transcript, &details.metadata))
            // The script adds search and moment to these links.
            (languages(context, &details.tracks, Some(&transcript.track), ""))
            @if !paragraphs.is_empty() { (contents(context, &details.metadata.chapters)) }
            (question::section(context, stored, (&own.0, &own.1), page_answer))
            (tools(context, video, &heading, &query, (&own.0, &own.1)))
            div.words #words lang=[lang] dir=(direction) data-title=(heading) data-author=[author(transcript)]
                data-messages=(context.json(&SCRIPT_MESSAGES)) {
                (words(context, video, &paragraphs, &details.metadata.chapters))
                @if paragraphs.is_empty() { p { span { (context.text("transcript.empty")) } } }
            }
            button.scripted #quote type="button" hidden { (context.text("transcript.quote")) }
            footer.source {
                p {
                    (context.fill("transcript.source", &[("platform", platform)])) " "
                    a href=(video.address()) rel="noreferrer" dir="ltr" { (video.address()) }
                }
                p.scripted.unprinted.keyboard {
                    label { input #shortcut type="checkbox" checked; " " (context.text("transcript.shortcut")) }
                }
            }
        }
    };
    let summary = summary(paragraphs.first().map_or("", |first| &first.text));
    let address = canonical(watch_url, &transcript.track, &details.tracks, &query);
    let card = PageCard { stored, heading: &heading, summary: &summary, address: &address };
    let is_indexed = context.site().index == PageIndex::Transcripts;
    let title = context.fill("transcript.tab", &[("title", &heading)]);
    let frame = Frame::new(context, &title).section(Section::Transcripts).width(PageWidth::Reading);
    let frame = frame.with_script(&SCRIPT).head(card.head(is_indexed)).query(&query);
    frame.indexed_with(PageIndex::Transcripts).render(body)
}

/// Language and direction of the text.
pub(super) fn language_attributes(transcript: &Transcript) -> (Option<&str>, &'static str) {
    let language = known_language(transcript);
    let direction = match language {
        Some(language) if language.is_right_to_left() => "rtl",
        Some(_) => "ltr",
        None => "auto",
    };
    (language.map(LanguageTag::as_str), direction)
}

/// The paragraphs with their times, and the chapters as headings.
fn words(context: &PageContext, video: &VideoId, paragraphs: &[Chunk], chapters: &[Chapter]) -> Markup {
    // Other platforms have no links to a position: every timestamp would have the same link.
    let has_moments = video.address_at(1) != video.address();
    let platform = video.platform().name();
    let mut chapters = chapters.iter().enumerate().peekable();
    html! {
        @for (paragraph, id) in paragraphs.iter().zip(moment_ids(paragraphs)) {
            @let seconds = paragraph.start_ms / 1000;
            @while let Some((index, chapter)) = chapters.next_if(|(_, next)| next.start_ms <= paragraph.start_ms) {
                (chapter_heading(index, chapter))
            }
            @let time = format_timestamp(seconds);
            p id=[&id] {
                @if has_moments {
                    a.time href=(video.address_at(seconds)) rel="noreferrer"
                        aria-label=(context.fill("transcript.play", &[("time", &time), ("platform", platform)])) {
                        (time)
                    }
                } @else {
                    span.time { (time) }
                }
                " "
                @if let Some(id) = &id {
                    a.moment href={ "#" (id) } aria-label=(context.fill("transcript.moment", &[("time", &time)])) { "#" }
                }
                " "
                span dir="auto" { (paragraph.text) }
            }
        }
        @if !paragraphs.is_empty() {
            // Chapters that begin after the last words.
            @for (index, chapter) in chapters { (chapter_heading(index, chapter)) }
        }
    }
}

fn chapter_heading(index: usize, chapter: &Chapter) -> Markup {
    html! { h2.chapter id=(chapter_id(index)) dir="auto" { (chapter.title) } }
}

fn chapter_id(index: usize) -> String {
    format!("chapter{}", index + 1)
}

/// Links to the chapters.
fn contents(context: &PageContext, chapters: &[Chapter]) -> Markup {
    html! {
        @if chapters.len() >= CONTENTS_MIN {
            details.contents {
                summary { (context.text("transcript.contents")) " (" (chapters.len()) ")" }
                ol {
                    @for (index, chapter) in chapters.iter().enumerate() {
                        li {
                            span.when { (format_timestamp(chapter.start_ms / 1000)) } " "
                            a href={ "#" (chapter_id(index)) } dir="auto" { (chapter.title) }
                        }
                    }
                }
            }
        }
    }
}

/// The languages of a video as links to its pages, if there are several. `shown` is the track of this page, and `rest`
/// has the other parameters of the links.
pub(super) fn languages(
    context: &PageContext,
    tracks: &[TrackInfo],
    shown: Option<&TrackInfo>,
    rest: &str,
) -> Markup {
    let is_listed = |track: &&TrackInfo| track.kind != TrackKind::Translated;
    // The page of a translation leads to all languages of the video.
    let shown = shown.filter(is_listed);
    let tracks = shown.into_iter().chain(tracks).filter(is_listed);
    let mut tags = distinct_languages(tracks.filter(|track| track.language != LanguageTag::unknown()));
    tags.truncate(LANGUAGES_MAX);
    let separator = if rest.is_empty() { "" } else { "&" };
    html! {
        @if tags.len() > 1 || (shown.is_none() && !tags.is_empty()) {
            nav.languages aria-label=(context.text("transcript.languages")) {
                ul {
                    @for tag in &tags {
                        @let current = shown.is_some_and(|track| track.language == *tag).then_some("page");
                        li {
                            @let address = context.here(&format!("lang={tag}{separator}{rest}"));
                            a href=(address) hreflang=(tag) aria-current=[current] { (tag.english_name()) }
                        }
                    }
                }
            }
        }
    }
}

/// Author, length, date, language and kind of captions, and the player.
fn about(context: &PageContext, transcript: &Transcript, metadata: &VideoMetadata) -> Markup {
    let video = &transcript.video;
    let platform = video.platform().name();
    html! {
        ul.about aria-label=(context.text("transcript.about")) {
            @if let Some(author) = author(transcript) {
                li {
                    @match &metadata.author_url {
                        Some(url) => a href=(url) rel="noreferrer nofollow" { bdi { (author) } },
                        None => bdi { (author) },
                    }
                }
            }
            @if let Some(length) = transcript.duration_ms.filter(|length| *length > 0) {
                li { (format_timestamp(length.div_ceil(1_000))) }
            }
            @if let (Some(time), Some(date)) = (metadata.published_at, published_date(metadata)) {
                li { time datetime=(time) { (date) } }
            }
            @if let Some(tag) = known_language(transcript) { li { (tag.english_name()) } }
            li { (context.text(kind(transcript))) }
            @if has_player(video) {
                li.scripted.unprinted {
                    button.link #watch type="button" data-video=(video.id())
                        data-player={ (context.root()) "assets/" (PLAYER.name) }
                        title=(context.fill("transcript.watch_here_note", &[("platform", platform)])) {
                        (context.text("transcript.watch_here"))
                    }
                }
            }
            li.unprinted {
                a href=(video.address()) rel="noreferrer" {
                    (context.fill("transcript.watch", &[("platform", platform)]))
                }
            }
        }
    }
}

/// Search and downloads. Controls that need the script are hidden without it.
///
/// `track` has the parameters of the track.
fn tools(context: &PageContext, video: &VideoId, heading: &str, track: &str, own: (&str, &str)) -> Markup {
    html! {
        div.tools {
            search.scripted #search {
                label.unseen for="query" { (context.text("transcript.search_label")) }
                div.field {
                    input #query type="search" placeholder=(context.text("transcript.search")) autocomplete="off"
                        spellcheck="false" aria-describedby="found";
                    output #found for="query" aria-live="polite" {}
                }
                div.matches {
                    button.quiet #previous type="button" aria-label=(context.text("transcript.previous")) disabled {
                        "↑"
                    }
                    button.quiet #next type="button" aria-label=(context.text("transcript.next")) disabled { "↓" }
                    details.list #hits hidden {
                        summary {
                            (context.text("transcript.list")) span.unseen { " " (context.text("transcript.list_of")) }
                        }
                        ol {}
                    }
                }
            }
            (downloads(context, video, heading, track, own))
            p.unseen #said role="status" {}
        }
    }
}

fn downloads(
    context: &PageContext,
    video: &VideoId,
    heading: &str,
    track: &str,
    (own, query): (&str, &str),
) -> Markup {
    let file = file_name(heading, video);
    html! {
        details.keep {
            summary {
                span.long { (context.text("transcript.keep")) } span.short { (context.text("transcript.keep_short")) }
            }
            ul {
                @for (format, ending, label) in FORMS {
                    @let address = api_address(context, video, format, track);
                    @let label = context.text(label);
                    @let described = context.fill("transcript.as", &[("format", label)]);
                    li {
                        span { (label) }
                        a href=(address) download={ (file) "." (ending) } {
                            (context.text("transcript.download")) span.unseen { " " (described) }
                        }
                        button.quiet.scripted type="button" data-copy=(address) {
                            (context.text("transcript.copy")) span.unseen { " " (described) }
                        }
                    }
                }
                // Their errors are pages, which browsers do not show with the attribute `download`.
                @for (format, label) in DOCUMENTS {
                    @let label = context.text(label);
                    li {
                        span { (label) }
                        a href={ (own) "/" (format) (query) } {
                            (context.text("transcript.download"))
                            span.unseen { " " (context.fill("transcript.as", &[("format", label)])) }
                        }
                    }
                }
            }
        }
    }
}

/// The day on which the video was published, if known: `2026-11-26`.
pub(super) fn published_date(metadata: &VideoMetadata) -> Option<String> {
    let time = metadata.published_at?.to_string();
    Some(time.get(..DATE_LENGTH).unwrap_or(&time).to_owned())
}

/// The author of the video, if known.
pub(super) fn author(transcript: &Transcript) -> Option<&str> {
    transcript.author.as_deref().map(str::trim).filter(|author| !author.is_empty())
}

/// The id of each paragraph: `t61` for the first one that starts in second 61.
fn moment_ids(paragraphs: &[Chunk]) -> Vec<Option<String>> {
    let mut last = None;
    let id = |paragraph: &Chunk| {
        let seconds = paragraph.start_ms / 1000;
        (last.replace(seconds) != Some(seconds)).then(|| moment_id(paragraph))
    };
    paragraphs.iter().map(id).collect()
}

fn moment_id(paragraph: &Chunk) -> String {
    format!("t{}", paragraph.start_ms / 1000)
}

/// The id of the paragraph in which a moment lies; `None` without words.
pub(crate) fn paragraph_at(stored: &StoredTranscript, moment_ms: u64) -> Option<String> {
    let paragraphs = chapter_paragraphs(&stored.transcript.segments, &stored.details.metadata.chapters);
    // Ids and links have whole seconds.
    let after = paragraphs.partition_point(|paragraph| paragraph.start_ms / 1000 <= moment_ms / 1000);
    paragraphs.get(after.saturating_sub(1)).map(moment_id)
}

pub(super) fn heading(context: &PageContext, transcript: &Transcript) -> String {
    title(transcript).map_or_else(|| unnamed(context, &transcript.video), str::to_owned)
}

/// The title of the video, if known.
pub(crate) fn title(transcript: &Transcript) -> Option<&str> {
    transcript.title.as_deref().map(str::trim).filter(|title| !title.is_empty())
}

/// Language of the transcript; `None` if unknown.
pub(super) fn known_language(transcript: &Transcript) -> Option<&LanguageTag> {
    let language = &transcript.track.language;
    (*language != LanguageTag::unknown()).then_some(language)
}

/// Message with the kind of the captions.
pub(super) fn kind(transcript: &Transcript) -> &'static str {
    match transcript.track.kind {
        TrackKind::Human => "transcript.human",
        TrackKind::Generated => "transcript.generated",
        TrackKind::Translated => "transcript.translated",
    }
}

/// Beginning of a text, cut between two words.
pub(crate) fn summary(text: &str) -> String {
    if text.chars().count() <= SUMMARY_CHARS {
        return text.to_owned();
    }
    let cut: String = text.chars().take(SUMMARY_CHARS).collect();
    let whole = cut.rsplit_once(' ').map_or(cut.as_str(), |(whole, _)| whole);
    format!("{whole} …")
}

/// File name that is valid on every system: letters and digits of the title, cut between two words.
pub(crate) fn file_name(heading: &str, video: &VideoId) -> String {
    let words = heading.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let words = words.collect::<Vec<_>>().join("-");
    if words.is_empty() {
        return format!("transcript-{}", video.id());
    }
    if words.chars().count() <= FILE_NAME_CHARS {
        return words;
    }
    let cut: String = words.chars().take(FILE_NAME_CHARS + 1).collect();
    // A long word, or text in a script without spaces, is cut itself.
    let whole = cut.rsplit_once('-').map(|(whole, _)| whole);
    let whole = whole.filter(|whole| whole.chars().count() > FILE_NAME_CHARS / 2);
    whole.map_or_else(|| cut.chars().take(FILE_NAME_CHARS).collect(), str::to_owned)
}

/// Address of the watch page for other sites: without an attribution tag.
///
/// It names the track, unless the page shows that one without parameters.
fn canonical(watch_url: &str, shown: &TrackInfo, tracks: &[TrackInfo], query: &str) -> String {
    let page = watch_url.split_once('?').map_or(watch_url, |(page, _)| page);
    let default = best_track(tracks, &TrackSelector::Default).and_then(|best| tracks.get(best));
    let is_default = default.is_none_or(|default| default.is_same(shown));
    if is_default { page.to_owned() } else { format!("{page}{}", optional_query(query)) }
}

fn api_address(context: &PageContext, video: &VideoId, format: &str, track: &str) -> String {
    let url = utf8_percent_encode(&video.address(), NON_ALPHANUMERIC).to_string();
    let separator = if track.is_empty() { "" } else { "&" };
    format!("{}api/transcript?url={url}&format={format}{separator}{track}", context.root())
}
