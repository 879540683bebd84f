//! JSON formats of transcripts: our own, and those of other programs.

use std::{collections::BTreeMap, fmt, marker::PhantomData};

use serde::{Deserialize, Deserializer, de};
use serde_json::value::RawValue;
use transcript_core::{
    Error, Result,
    archive::{KNOWN_TRACKS_MAX, TrackSelector},
    captions::{self, CaptionFormat, Occurrences},
    text::replace_lone_surrogates,
    transcript::{LanguageTag, SEGMENTS_MAX, Segment, TrackInfo, TrackKind, remove_unfit_words},
    video::{Platform, VideoId},
    wire::LanguageObject,
};

use super::{
    ImportDraft,
    details::{self, DraftDetails},
};
use crate::export::FORMAT;

/// Maximum number of videos in one body.
const VIDEOS_MAX: usize = 10_000;
/// Maximum number of selectors of one transcript.
const SELECTORS_MAX: usize = 100;
/// Maximum length of a JSON error in messages, in characters: it may quote the body.
const ERROR_TEXT_MAX: usize = 200;

/// A piece of text with its times in seconds, as all formats have it.
#[derive(Debug, Deserialize)]
struct DraftSnippet {
    text: String,
    start: f64,
    duration: Option<f64>,
    /// Speech recognizers write this instead of the duration.
    end: Option<f64>,
    words: Option<Box<RawValue>>,
    /// Whisper's confidence values.
    avg_logprob: Option<de::IgnoredAny>,
    no_speech_prob: Option<de::IgnoredAny>,
}

impl DraftSnippet {
    fn is_recognised(&self) -> bool {
        self.avg_logprob.is_some() || self.no_speech_prob.is_some()
    }
}

/// A track, as our own export writes it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DraftTrack {
    language: String,
    kind: String,
    name: Option<String>,
    #[serde(default)]
    original: bool,
}

/// One transcript with its metadata. Every field has the same meaning in all formats.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DraftDocument {
    format: Option<String>,
    platform: Option<String>,
    #[serde(alias = "video_id")]
    video_id: Option<String>,
    available: Option<bool>,
    #[serde(default)]
    withdrawn: bool,
    failure_reason: Option<String>,
    #[serde(alias = "language_code")]
    language_code: Option<String>,
    language: Option<String>,
    #[serde(alias = "is_generated")]
    is_generated: Option<bool>,
    kind: Option<String>,
    #[serde(alias = "track_name")]
    track_name: Option<String>,
    #[serde(default)]
    original: bool,
    title: Option<String>,
    author: Option<String>,
    duration: Option<f64>,
    source: Option<String>,
    parser_version: Option<u32>,
    #[serde(rename = "wishes", default, deserialize_with = "deserialize_bounded")]
    selectors: Vec<String>,
    #[serde(default, deserialize_with = "deserialize_bounded")]
    tracks: Vec<DraftTrack>,
    #[serde(alias = "snippets", alias = "segments", deserialize_with = "deserialize_bounded")]
    transcript: Vec<DraftSnippet>,
    /// The languages of the video in the responses of both APIs.
    languages: Option<Box<RawValue>>,
    metadata: Option<Box<RawValue>>,
    chapters: Option<Box<RawValue>>,
}

/// Reads the transcripts of a JSON body.
pub(super) fn read(body: &[u8]) -> Result<Vec<ImportDraft>> {
    let text = std::str::from_utf8(body).map_err(|_| Error::invalid("the JSON is not UTF-8"))?;
    // Python writes half an emoji as an escape.
    let text = replace_lone_surrogates(text.trim());
    let drafts = if text.starts_with('[') { list(&text) } else { object(&text) }?;
    if drafts.is_empty() {
        return Err(Error::invalid("the JSON contains no transcript"));
    }
    Ok(drafts)
}

/// A list: the snippets of one transcript, or several transcripts.
fn list(text: &str) -> Result<Vec<ImportDraft>> {
    let DraftItems(items) = from_str(text)?;
    let Some(first) = items.first() else {
        return Err(Error::invalid("the JSON is an empty list"));
    };
    if is_snippet(first) {
        return Ok(vec![snippets(text)?]);
    }
    transcripts(items)
}

/// Several transcripts, each with its video, or one.
fn transcripts(items: Vec<&RawValue>) -> Result<Vec<ImportDraft>> {
    if items.len() > VIDEOS_MAX {
        return Err(Error::invalid(format!("one JSON body has at most {VIDEOS_MAX} videos")));
    }
    let drafts: Vec<ImportDraft> =
        items.into_iter().map(|item| parse_transcript(item.get())).collect::<Result<_>>()?;
    if drafts.len() > 1 && drafts.iter().any(|draft| draft.video.is_none()) {
        return Err(Error::invalid("the JSON has several transcripts without video ids"));
    }
    Ok(drafts)
}

/// The objects of JSON lines, as `get` prints them for several videos; `None` if the text is not two objects or more.
fn json_lines(text: &str) -> Option<Vec<&RawValue>> {
    let items = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>().take(VIDEOS_MAX + 1);
    let items: Vec<_> = items.collect::<std::result::Result<_, _>>().ok()?;
    (items.len() > 1).then_some(items)
}

fn is_snippet(item: &RawValue) -> bool {
    from_str::<DraftFields<'_>>(item.get())
        .is_ok_and(|DraftFields(fields)| fields.contains_key("text") && fields.contains_key("start"))
}

/// An object: captions of YouTube or TikTok, one transcript, or transcripts by video; or several, one after the other.
fn object(text: &str) -> Result<Vec<ImportDraft>> {
    let fields = match from_str(text) {
        Ok(DraftFields(fields)) => fields,
        Err(error) => {
            return match json_lines(text) {
                Some(items) => transcripts(items),
                // Truncated captions get a better error than a misplaced comma.
                None if captions::sniff(text.as_bytes()) == Some(CaptionFormat::Json3) => {
                    Ok(vec![ImportDraft::from_captions(text.as_bytes(), None)?])
                }
                None => Err(error),
            };
        }
    };
    let has = |name: &str| fields.contains_key(name);
    if has("events") || has("wireMagic") {
        return Ok(vec![ImportDraft::from_captions(text.as_bytes(), None)?]);
    }
    if ["transcript", "snippets", "segments", "available"].into_iter().any(has) {
        return Ok(vec![document(text)?]);
    }
    if has("utterances") {
        return Ok(vec![ImportDraft::from_captions(text.as_bytes(), None)?]);
    }
    let by_video = fields.into_iter().map(|(id, transcript)| {
        let video = VideoId::new(Platform::YouTube, &id)
            .map_err(|_| Error::invalid("the JSON is not a known transcript format"))?;
        let mut draft = parse_transcript(transcript.get())?;
        draft.set_video(video)?;
        Ok(draft)
    });
    by_video.collect()
}

/// Parses one transcript: a list of snippets, or an object that contains the list.
fn parse_transcript(text: &str) -> Result<ImportDraft> {
    if text.trim_start().starts_with('[') { snippets(text) } else { document(text) }
}

fn snippets(text: &str) -> Result<ImportDraft> {
    #[derive(Deserialize)]
    struct DraftSnippets(#[serde(deserialize_with = "deserialize_bounded")] Vec<DraftSnippet>);

    let DraftSnippets(found) = from_str(text)?;
    let is_recognised = found.iter().any(DraftSnippet::is_recognised);
    let (segments, unreadable) = clean_foreign(segments(found, false)?);
    Ok(ImportDraft { segments, unreadable, is_recognised, ..ImportDraft::default() })
}

fn document(text: &str) -> Result<ImportDraft> {
    let document: DraftDocument = from_str(text)?;
    let is_ours = document.format.as_deref() == Some(FORMAT);
    let withdrawn = is_ours && document.withdrawn;
    if document.available == Some(false) && !withdrawn {
        let reason = document.failure_reason.unwrap_or_else(|| "no reason".to_owned());
        return Err(Error::invalid(format!("the JSON states that there is no transcript: {reason}")));
    }
    if let Some(other) = document.format.filter(|_| !is_ours) {
        let other: String = other.chars().take(ERROR_TEXT_MAX).collect();
        return Err(Error::invalid(format!("unknown format {other:?}: this version reads {FORMAT:?}")));
    }
    let platform = match document.platform.as_deref().filter(|name| !name.is_empty()) {
        None => Platform::YouTube,
        Some(name) => Platform::parse(name).ok_or_else(|| Error::invalid("unknown platform"))?,
    };
    let video = document.video_id.filter(|id| !id.is_empty()).map(|id| VideoId::new(platform, &id));
    let video = video.transpose()?;
    let kind = document.kind.as_deref().map(kind).transpose()?;
    let language = if is_ours {
        language(document.language, None)
    } else {
        language(document.language_code, document.language)
    }?;
    let languages = document.languages.as_deref().map(listed_tracks).unwrap_or_default();
    let listed = listed_track(&languages, language.as_ref(), document.is_generated);
    let listed = listed.filter(|_| kind.is_none());
    let generated = |is| if is { TrackKind::Generated } else { TrackKind::Human };
    if document.selectors.len() > SELECTORS_MAX || document.tracks.len() > KNOWN_TRACKS_MAX {
        return Err(Error::invalid("the JSON names more selectors or tracks than a video has"));
    }
    let is_recognised = document.transcript.iter().any(DraftSnippet::is_recognised);
    let segments = segments(document.transcript, is_ours)?;
    let duration_ms = document.duration.map(millis).transpose()?;
    let (metadata, chapters) = (document.metadata.as_deref(), document.chapters.as_deref());
    let DraftDetails { title, author, duration_ms, metadata } =
        details::details(metadata, chapters, duration_ms, is_ours)?;
    // What was archived is restored unchanged.
    let (segments, unreadable) =
        if is_ours { (segments, Occurrences::default()) } else { clean_foreign(segments) };
    Ok(ImportDraft {
        encoding: None,
        video,
        // The v1 API writes an unknown title as an empty one.
        title: document.title.filter(|title| is_ours || !title.is_empty()).or(title),
        author: document.author.or(author),
        duration_ms,
        metadata,
        language,
        kind: kind.or(listed.map(|track| track.kind)).or(document.is_generated.map(generated)),
        is_recognised,
        original: document.original || listed.is_some_and(|track| track.original),
        name: document.track_name.or_else(|| listed?.name.clone()),
        source: document.source,
        parser_version: document.parser_version,
        selectors: document
            .selectors
            .iter()
            .map(|selector| self::selector(selector))
            .collect::<Result<_>>()?,
        known_tracks: match document.tracks {
            tracks if tracks.is_empty() => languages,
            tracks => tracks.into_iter().map(track).collect::<Result<_>>()?,
        },
        withdrawn,
        segments,
        unreadable,
        left_out: Occurrences::default(),
    })
}

/// The tracks of the languages of a video. A list in another form has none.
fn listed_tracks(languages: &RawValue) -> Vec<TrackInfo> {
    #[derive(Deserialize)]
    struct DraftLanguages(#[serde(deserialize_with = "deserialize_bounded")] Vec<LanguageObject>);

    let Ok(DraftLanguages(languages)) = from_str(languages.get()) else { return Vec::new() };
    languages.iter().filter_map(LanguageObject::to_track).take(KNOWN_TRACKS_MAX).collect()
}

/// The track of a transcript among the listed ones.
///
/// Of several in its language it is the best one, as in a lookup.
fn listed_track<'a>(
    listed: &'a [TrackInfo],
    language: Option<&LanguageTag>,
    is_generated: Option<bool>,
) -> Option<&'a TrackInfo> {
    let is_of_transcript = |track: &&TrackInfo| {
        Some(&track.language) == language && is_generated.is_none_or(|is| is == track.is_generated())
    };
    let tracks = listed.iter().filter(is_of_transcript);
    tracks.min_by_key(|track| (track.kind, track.name.is_some()))
}

/// Language: a code is used as it is, a name only if it is a code ("English" is not).
fn language(code: Option<String>, name: Option<String>) -> Result<Option<LanguageTag>> {
    if let Some(code) = code.filter(|code| !code.is_empty()) {
        return LanguageTag::parse(&code).map(Some);
    }
    let is_code = |name: &String| name.split(['-', '_']).next().is_some_and(|part| part.len() <= 3);
    Ok(name.filter(is_code).and_then(|name| LanguageTag::parse(&name).ok()))
}

fn kind(name: &str) -> Result<TrackKind> {
    TrackKind::from_name(name).ok_or_else(|| Error::invalid("unknown track kind"))
}

fn selector(name: &str) -> Result<TrackSelector> {
    match TrackSelector::from_name(name) {
        TrackSelector::Default => Ok(TrackSelector::Default),
        other => {
            let tag = LanguageTag::parse(other.language().map_or("", LanguageTag::as_str))?;
            Ok(TrackSelector::in_language(tag, other.takes(TrackKind::Translated)))
        }
    }
}

fn track(track: DraftTrack) -> Result<TrackInfo> {
    Ok(TrackInfo {
        language: LanguageTag::parse(&track.language)?,
        kind: kind(&track.kind)?,
        name: track.name,
        original: track.original,
    })
}

fn segments(snippets: Vec<DraftSnippet>, is_ours: bool) -> Result<Vec<Segment>> {
    let segment = |snippet: DraftSnippet| {
        let start_ms = millis(snippet.start.max(0.0))?;
        let duration_ms = match (snippet.duration, snippet.end) {
            (Some(duration), _) => millis(duration.max(0.0))?,
            (None, Some(end)) => millis(end.max(0.0))?.saturating_sub(start_ms),
            (None, None) => return Err(Error::invalid("a segment has neither duration nor end")),
        };
        let words = details::words(snippet.words.as_deref(), is_ours)?;
        Ok(Segment { words, ..Segment::new(snippet.text, start_ms, duration_ms) })
    };
    let mut segments: Vec<Segment> = snippets.into_iter().map(segment).collect::<Result<_>>()?;
    segments.sort_by_key(|segment| segment.start_ms);
    Ok(segments)
}

/// Segments with text, and the number of their unreadable characters.
///
/// A zero byte is one: no format that we write can hold it.
fn clean_foreign(mut segments: Vec<Segment>) -> (Vec<Segment>, Occurrences) {
    segments.retain(|segment| !segment.text.trim().is_empty());
    let mut count = 0;
    for segment in &mut segments {
        if segment.text.contains('\0') {
            segment.text = segment.text.replace('\0', "\u{FFFD}");
        }
        count += segment.text.matches(char::REPLACEMENT_CHARACTER).count() as u64;
    }
    remove_unfit_words(&mut segments);
    (segments, Occurrences { count, lines: Vec::new() })
}

/// Seconds as the nearest millisecond.
pub(super) fn millis(seconds: f64) -> Result<u64> {
    transcript_core::body::segments::millis(seconds)
        .ok_or_else(|| Error::invalid("a time is out of range: at most 1,000 hours"))
}

pub(super) fn from_str<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| {
        let message: String = error.to_string().chars().take(ERROR_TEXT_MAX).collect();
        Error::invalid(format!("the JSON cannot be read as a transcript: {message}"))
    })
}

/// Deserializes a list, and fails if it has more items than a transcript may have.
fn deserialize_bounded<'de, T, D>(from: D) -> std::result::Result<Vec<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    struct DraftItems<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> de::Visitor<'de> for DraftItems<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: de::SeqAccess<'de>>(self, mut from: A) -> std::result::Result<Self::Value, A::Error> {
            let mut items = Vec::new();
            while let Some(item) = from.next_element()? {
                if items.len() >= SEGMENTS_MAX {
                    return Err(de::Error::custom("a list has more than 100,000 items"));
                }
                items.push(item);
            }
            Ok(items)
        }
    }

    from.deserialize_seq(DraftItems(PhantomData))
}

/// Undecoded items of a list.
#[derive(Deserialize)]
struct DraftItems<'a>(#[serde(borrow, deserialize_with = "deserialize_bounded")] Vec<&'a RawValue>);

/// Undecoded fields of an object, at most as many as videos in one body.
struct DraftFields<'a>(BTreeMap<String, &'a RawValue>);

impl<'a> Deserialize<'a> for DraftFields<'a> {
    fn deserialize<D: Deserializer<'a>>(from: D) -> std::result::Result<Self, D::Error> {
        struct DraftVisitor;

        impl<'a> de::Visitor<'a> for DraftVisitor {
            type Value = DraftFields<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: de::MapAccess<'a>>(
                self,
                mut from: A,
            ) -> std::result::Result<Self::Value, A::Error> {
                let mut fields = BTreeMap::new();
                while let Some((name, value)) = from.next_entry()? {
                    if fields.len() >= VIDEOS_MAX {
                        return Err(de::Error::custom("an object has more than 10,000 fields"));
                    }
                    fields.insert(name, value);
                }
                Ok(DraftFields(fields))
            }
        }

        from.deserialize_map(DraftVisitor)
    }
}

#[cfg(test)]
mod tests;
