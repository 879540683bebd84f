//! Watch page of an archived transcript: reading, search, copy and download.

use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use transcript_core::{
    archive::StoredTranscript,
    transcript::{
        Chunk, LanguageTag, TrackInfo, TrackKind, Transcript, VideoMetadata, distinct_languages,
        format_timestamp, paragraphs,
    },
    video::VideoId,
};

use super::{HtmlPage, PagePolicy, document};

/// Content security policy of the page.
pub(crate) const POLICY: PagePolicy = PagePolicy::Script;
/// Relative path from a watch page to the root of the service.
const ROOT: &str = "../../";
/// Length of the summary in link previews, in characters.
const SUMMARY_CHARS: usize = 200;
/// Maximum number of languages that the page links to.
const LANGUAGES_MAX: usize = 40;
/// Length of the date at the start of an RFC 3339 time.
const DATE_LENGTH: usize = 10;
/// Length of the title in a file name, in characters.
const FILE_NAME_CHARS: usize = 60;
/// Download formats: API name, file extension, label.
const FORMS: [(&str, &str, &str); 4] = [
    ("text", "txt", "Plain text"),
    ("md", "md", "Markdown with timestamps"),
    ("srt", "srt", "SubRip subtitles"),
    ("vtt", "vtt", "WebVTT subtitles"),
];

/// Renders the page. `watch_url` is its absolute address.
pub(crate) fn transcript(
    stored: &StoredTranscript,
    requested: Option<&LanguageTag>,
    watch_url: &str,
) -> Markup {
    let (transcript, details) = (&*stored.transcript, &*stored.details);
    let mut chapters = details.metadata.chapters.iter().peekable();
    let video = &transcript.video;
    let language = known_language(transcript);
    let heading = heading(transcript);
    let paragraphs = paragraphs(&transcript.segments);
    // Other platforms have no links to a position: every timestamp would have the same link.
    let has_moments = video.address_at(1) != video.address();
    let direction = match language {
        Some(language) if language.is_right_to_left() => "rtl",
        Some(_) => "ltr",
        None => "auto",
    };
    let lang = language.map(LanguageTag::as_str);
    let body = html! {
        article {
            header.title lang=[lang] dir=(direction) {
                h1 dir="auto" { (heading) }
            }
            (about(transcript, &details.metadata))
            (languages(&details.tracks, Some(&transcript.track)))
            (tools(video, &heading, requested))
            div.words #words lang=[lang] dir=(direction) data-title=(heading) data-author=[author(transcript)] {
                @for (paragraph, id) in paragraphs.iter().zip(moment_ids(&paragraphs)) {
                    @let seconds = paragraph.start_ms / 1000;
                    @while let Some(chapter) = chapters.next_if(|next| next.start_ms <= paragraph.start_ms) {
                        h2.chapter dir="auto" { (chapter.title) }
                    }
                    @let time = format_timestamp(seconds);
                    p id=[&id] {
                        @if has_moments {
                            a.time href=(video.address_at(seconds)) rel="noreferrer"
                                aria-label={ "Play from " (time) " on " (video.platform().name()) } { (time) }
                        } @else {
                            span.time { (time) }
                        }
                        " "
                        @if let Some(id) = &id {
                            a.moment href={ "#" (id) } aria-label={ "Link to " (time) } { "#" }
                        }
                        " "
                        span dir="auto" { (paragraph.text) }
                    }
                }
                @if paragraphs.is_empty() { p { span { "This video has no spoken words." } } }
            }
            button.scripted #quote type="button" hidden { "Copy quotation" }
            footer.source {
                p { "From " (video.platform().name()) ": " a href=(video.address()) rel="noreferrer" { (video.address()) } }
            }
        }
    };
    let summary = summary(paragraphs.first().map_or("", |first| &first.text));
    let head = html! {
        meta name="description" content=(summary);
        meta property="og:type" content="article";
        meta property="og:site_name" content="Verbatim";
        meta property="og:title" content=(heading);
        meta property="og:description" content=(summary);
        meta property="og:url" content=(canonical(watch_url));
        meta name="twitter:card" content="summary";
        link rel="canonical" href=(canonical(watch_url));
    };
    let title = format!("{heading} – transcript");
    document(HtmlPage { has_script: true, head, class: "reading", ..HtmlPage::plain(&title, ROOT) }, body)
}

/// The languages of a video as links to its pages, if there are several. `shown` is the track of this page.
pub(super) fn languages(tracks: &[TrackInfo], shown: Option<&TrackInfo>) -> Markup {
    let tracks = shown.into_iter().chain(tracks).filter(|track| track.kind != TrackKind::Translated);
    let mut tags = distinct_languages(tracks.filter(|track| track.language != LanguageTag::unknown()));
    tags.truncate(LANGUAGES_MAX);
    html! {
        @if tags.len() > 1 || (shown.is_none() && !tags.is_empty()) {
            nav.languages aria-label="Languages" {
                ul {
                    @for tag in &tags {
                        @let current = shown.is_some_and(|track| track.language == *tag).then_some("page");
                        li {
                            a href={ "?lang=" (tag) } hreflang=(tag) aria-current=[current] { (tag.english_name()) }
                        }
                    }
                }
            }
        }
    }
}

/// Author, length, date, language and kind of captions.
fn about(transcript: &Transcript, metadata: &VideoMetadata) -> Markup {
    let video = &transcript.video;
    html! {
        ul.about aria-label="About the video" {
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
            @if let Some(date) = metadata.published_at.map(|time| time.to_string()) {
                li { time datetime=(date) { (date.get(..DATE_LENGTH).unwrap_or(&date)) } }
            }
            @if let Some(tag) = known_language(transcript) { li { (tag.english_name()) } }
            li { (kind(transcript)) }
            li { a href=(video.address()) rel="noreferrer" { "Watch on " (video.platform().name()) } }
        }
    }
}

/// Search and downloads. Controls that need the script are hidden without it.
fn tools(video: &VideoId, heading: &str, requested: Option<&LanguageTag>) -> Markup {
    let file = file_name(heading, video);
    html! {
        div.tools {
            search.scripted #search {
                label.unseen for="query" { "Search in this transcript" }
                div.field {
                    input #query type="search" placeholder="Search the words" autocomplete="off"
                        spellcheck="false" aria-describedby="found" aria-keyshortcuts="/";
                    output #found for="query" aria-live="polite" {}
                }
                button.quiet #previous type="button" aria-label="Previous match" disabled { "↑" }
                button.quiet #next type="button" aria-label="Next match" disabled { "↓" }
                details.list #hits hidden {
                    summary { "List" span.unseen { " of the matches" } }
                    ol {}
                }
            }
            details.keep {
                summary { span.long { "Copy or download" } span.short { "Save" } }
                ul {
                    @for (format, ending, name) in FORMS {
                        @let address = api_address(video, format, requested);
                        li {
                            span { (name) }
                            a href=(address) download={ (file) "." (ending) } {
                                "Download" span.unseen { " as " (name) }
                            }
                            button.quiet.scripted type="button" data-copy=(address) {
                                "Copy" span.unseen { " as " (name) }
                            }
                        }
                    }
                }
            }
            p.unseen #said role="status" {}
        }
    }
}

/// The author of the video, if known.
fn author(transcript: &Transcript) -> Option<&str> {
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
pub(crate) fn paragraph_at(transcript: &Transcript, moment_ms: u64) -> Option<String> {
    let paragraphs = paragraphs(&transcript.segments);
    let after = paragraphs.partition_point(|paragraph| paragraph.start_ms <= moment_ms);
    paragraphs.get(after.saturating_sub(1)).map(moment_id)
}

fn heading(transcript: &Transcript) -> String {
    let title = transcript.title.as_deref().map(str::trim).filter(|title| !title.is_empty());
    let video = &transcript.video;
    title.map_or_else(|| format!("{} video {}", video.platform().name(), video.id()), str::to_owned)
}

/// Language of the transcript; `None` if unknown.
fn known_language(transcript: &Transcript) -> Option<&LanguageTag> {
    let language = &transcript.track.language;
    (*language != LanguageTag::unknown()).then_some(language)
}

/// Kind of the captions.
fn kind(transcript: &Transcript) -> &'static str {
    match transcript.track.kind {
        TrackKind::Human => "Captions written by people",
        TrackKind::Generated => "Automatic captions",
        TrackKind::Translated => "Translated automatically",
    }
}

/// Beginning of a text, cut between two words.
fn summary(text: &str) -> String {
    if text.chars().count() <= SUMMARY_CHARS {
        return text.to_owned();
    }
    let cut: String = text.chars().take(SUMMARY_CHARS).collect();
    let whole = cut.rsplit_once(' ').map_or(cut.as_str(), |(whole, _)| whole);
    format!("{whole} …")
}

/// File name that is valid on every system: letters and digits of the title.
fn file_name(heading: &str, video: &VideoId) -> String {
    let words = heading.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let name: String = words.collect::<Vec<_>>().join("-").chars().take(FILE_NAME_CHARS).collect();
    if name.is_empty() { format!("transcript-{}", video.id()) } else { name }
}

/// Watch page address without its attribution tag.
fn canonical(watch_url: &str) -> &str {
    watch_url.split_once('?').map_or(watch_url, |(page, _)| page)
}

fn api_address(video: &VideoId, format: &str, requested: Option<&LanguageTag>) -> String {
    let url = utf8_percent_encode(&video.address(), NON_ALPHANUMERIC).to_string();
    let language = requested.map_or(String::new(), |tag| format!("&lang={tag}"));
    format!("{ROOT}api/transcript?url={url}&format={format}{language}")
}
