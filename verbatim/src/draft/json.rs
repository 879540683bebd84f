//! The JSON in which transcripts come: our own, and that of others.

use std::{collections::BTreeMap, fmt, marker::PhantomData};

use serde::{Deserialize, Deserializer, de};
use serde_json::value::RawValue;
use transcript_core::{
    Error, Result,
    archive::{KNOWN_TRACKS_MAX, Wish},
    captions::{self, CaptionFormat, Occurrences, SEGMENTS_MAX},
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind},
    video::{Platform, VideoId},
};

use super::Draft;
use crate::export::FORMAT;

/// The most videos in one body.
const VIDEOS_MAX: usize = 10_000;
/// The most wishes that one transcript answers.
const WISHES_MAX: usize = 100;
/// How much of a JSON reader's complaint is told, in characters: it may quote the body.
const COMPLAINT_MAX: usize = 200;

/// A piece of text with its times in seconds, as everybody writes it.
#[derive(Debug, Deserialize)]
struct Snippet {
    text: String,
    start: f64,
    duration: Option<f64>,
    /// Speech recognisers give this instead of the duration.
    end: Option<f64>,
}

/// A track, as our own export writes it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Track {
    language: String,
    kind: String,
    name: Option<String>,
    #[serde(default)]
    original: bool,
}

/// One transcript with what is known of it. Every field has the same meaning for all who write it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Whole {
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
    track_name: Option<String>,
    #[serde(default)]
    original: bool,
    title: Option<String>,
    author: Option<String>,
    duration: Option<f64>,
    source: Option<String>,
    parser_version: Option<u32>,
    #[serde(default, deserialize_with = "bounded")]
    wishes: Vec<String>,
    #[serde(default, deserialize_with = "bounded")]
    tracks: Vec<Track>,
    #[serde(alias = "snippets", alias = "segments", deserialize_with = "bounded")]
    transcript: Vec<Snippet>,
}

/// The transcripts of a JSON body.
pub(super) fn read(body: &[u8]) -> Result<Vec<Draft>> {
    let text = std::str::from_utf8(body).map_err(|_| Error::invalid("the JSON is no UTF-8"))?.trim();
    let drafts = if text.starts_with('[') { list(text) } else { object(text) }?;
    if drafts.is_empty() {
        return Err(Error::invalid("the JSON has no transcript in it"));
    }
    Ok(drafts)
}

/// A list: one transcript's snippets, or several transcripts.
fn list(text: &str) -> Result<Vec<Draft>> {
    let Items(items) = from_str(text)?;
    let Some(first) = items.first() else {
        return Err(Error::invalid("the JSON is an empty list"));
    };
    if is_snippet(first) {
        return Ok(vec![snippets(text)?]);
    }
    if items.len() > VIDEOS_MAX {
        return Err(Error::invalid(format!("one JSON body has at most {VIDEOS_MAX} videos")));
    }
    let drafts: Vec<Draft> = items.into_iter().map(|item| one(item.get())).collect::<Result<_>>()?;
    if drafts.len() > 1 && drafts.iter().any(|draft| draft.video.is_none()) {
        return Err(Error::invalid("the JSON has several transcripts and does not say of which videos"));
    }
    Ok(drafts)
}

fn is_snippet(item: &RawValue) -> bool {
    from_str::<Fields<'_>>(item.get())
        .is_ok_and(|Fields(fields)| fields.contains_key("text") && fields.contains_key("start"))
}

/// An object: YouTube's own captions, one transcript, or transcripts by video.
fn object(text: &str) -> Result<Vec<Draft>> {
    let fields = match from_str(text) {
        Ok(Fields(fields)) => fields,
        // Captions that are cut off have a better explanation than a misplaced comma.
        Err(_) if captions::sniff(text.as_bytes()) == Some(CaptionFormat::Json3) => {
            return Ok(vec![Draft::of_captions(text.as_bytes())?]);
        }
        Err(error) => return Err(error),
    };
    let has = |name: &str| fields.contains_key(name);
    if has("events") || has("wireMagic") {
        return Ok(vec![Draft::of_captions(text.as_bytes())?]);
    }
    if ["transcript", "snippets", "segments", "available"].into_iter().any(has) {
        return Ok(vec![whole(text)?]);
    }
    let by_video = fields.into_iter().map(|(id, transcript)| {
        let video = VideoId::new(Platform::VideoSite, &id)
            .map_err(|_| Error::invalid("the JSON is none of the known forms of transcripts"))?;
        let mut draft = one(transcript.get())?;
        draft.be_of(video)?;
        Ok(draft)
    });
    by_video.collect()
}

/// One transcript: its snippets, or an object around them.
fn one(text: &str) -> Result<Draft> {
    if text.trim_start().starts_with('[') { snippets(text) } else { whole(text) }
}

fn snippets(text: &str) -> Result<Draft> {
    #[derive(Deserialize)]
    struct Snippets(#[serde(deserialize_with = "bounded")] Vec<Snippet>);

    let Snippets(found) = from_str(text)?;
    let (segments, unreadable) = of_others(segments(found)?);
    Ok(Draft { segments, unreadable, ..Draft::default() })
}

fn whole(text: &str) -> Result<Draft> {
    let whole: Whole = from_str(text)?;
    let is_ours = whole.format.as_deref() == Some(FORMAT);
    let withdrawn = is_ours && whole.withdrawn;
    if whole.available == Some(false) && !withdrawn {
        let reason = whole.failure_reason.unwrap_or_else(|| "no reason".to_owned());
        return Err(Error::invalid(format!("it says that there is no transcript: {reason}")));
    }
    if let Some(other) = whole.format.filter(|_| !is_ours) {
        let other: String = other.chars().take(COMPLAINT_MAX).collect();
        return Err(Error::invalid(format!("it is in the format {other:?}; this version knows {FORMAT:?}")));
    }
    let platform = match whole.platform.as_deref().filter(|name| !name.is_empty()) {
        None => Platform::VideoSite,
        Some(name) => {
            Platform::from_wire(name).ok_or_else(|| Error::invalid("it is of an unknown platform"))?
        }
    };
    let video = whole.video_id.filter(|id| !id.is_empty()).map(|id| VideoId::new(platform, &id));
    let video = video.transpose().map_err(|error| Error::invalid(error.to_string()))?;
    let kind = whole.kind.as_deref().map(kind).transpose()?;
    let generated = |is| if is { TrackKind::Generated } else { TrackKind::Human };
    if whole.wishes.len() > WISHES_MAX || whole.tracks.len() > KNOWN_TRACKS_MAX {
        return Err(Error::invalid("it names more wishes or tracks than a video has"));
    }
    let segments = segments(whole.transcript)?;
    // What was archived comes back as it was.
    let (segments, unreadable) =
        if is_ours { (segments, Occurrences::default()) } else { of_others(segments) };
    Ok(Draft {
        video,
        title: whole.title,
        author: whole.author,
        duration_ms: whole.duration.map(millis).transpose()?,
        language: if is_ours {
            language(whole.language, None)
        } else {
            language(whole.language_code, whole.language)
        }?,
        kind: kind.or(whole.is_generated.map(generated)),
        name: whole.track_name,
        original: whole.original,
        source: whole.source,
        parser_version: whole.parser_version,
        wishes: whole.wishes.iter().map(|wish| self::wish(wish)).collect::<Result<_>>()?,
        known_tracks: whole.tracks.into_iter().map(track).collect::<Result<_>>()?,
        withdrawn,
        segments,
        unreadable,
        left_out: Occurrences::default(),
    })
}

/// The language: a code is believed, a name only when it is a code ("English" is none).
fn language(code: Option<String>, name: Option<String>) -> Result<Option<LanguageTag>> {
    if let Some(code) = code.filter(|code| !code.is_empty()) {
        return LanguageTag::parse(&code).map(Some);
    }
    let is_code = |name: &String| name.split(['-', '_']).next().is_some_and(|part| part.len() <= 3);
    Ok(name.filter(is_code).and_then(|name| LanguageTag::parse(&name).ok()))
}

fn kind(name: &str) -> Result<TrackKind> {
    TrackKind::from_name(name).ok_or_else(|| Error::invalid("its words came to be in an unknown way"))
}

fn wish(name: &str) -> Result<Wish> {
    match name {
        "default" => Ok(Wish::Default),
        tag => LanguageTag::parse(tag).map(Wish::Language),
    }
}

fn track(track: Track) -> Result<TrackInfo> {
    Ok(TrackInfo {
        language: LanguageTag::parse(&track.language)?,
        kind: kind(&track.kind)?,
        name: track.name,
        original: track.original,
    })
}

fn segments(snippets: Vec<Snippet>) -> Result<Vec<Segment>> {
    let segment = |snippet: Snippet| {
        let start_ms = millis(snippet.start.max(0.0))?;
        let duration_ms = match (snippet.duration, snippet.end) {
            (Some(duration), _) => millis(duration.max(0.0))?,
            (None, Some(end)) => millis(end.max(0.0))?.saturating_sub(start_ms),
            (None, None) => return Err(Error::invalid("a segment has neither duration nor end")),
        };
        Ok(Segment { text: snippet.text, start_ms, duration_ms })
    };
    let mut segments: Vec<Segment> = snippets.into_iter().map(segment).collect::<Result<_>>()?;
    segments.sort_by_key(|segment| segment.start_ms);
    Ok(segments)
}

/// The segments that have words, and how many characters of theirs are unreadable. A zero byte is one: no
/// form in which we write can hold it.
fn of_others(mut segments: Vec<Segment>) -> (Vec<Segment>, Occurrences) {
    segments.retain(|segment| !segment.text.trim().is_empty());
    let mut count = 0;
    for segment in &mut segments {
        if segment.text.contains('\0') {
            segment.text = segment.text.replace('\0', "\u{FFFD}");
        }
        count += segment.text.matches(char::REPLACEMENT_CHARACTER).count() as u64;
    }
    (segments, Occurrences { count, lines: Vec::new() })
}

/// Seconds as the nearest millisecond.
fn millis(seconds: f64) -> Result<u64> {
    let millis = (seconds * 1000.0).round();
    if millis.is_finite() && millis >= 0.0 && millis <= captions::TIME_MAX_MS as f64 {
        // It lies within the bounds, and has no fraction.
        Ok(millis as u64)
    } else {
        Err(Error::invalid("a transcript's times lie within 1,000 hours"))
    }
}

fn from_str<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| {
        let complaint: String = error.to_string().chars().take(COMPLAINT_MAX).collect();
        Error::invalid(format!("the JSON cannot be read as a transcript: {complaint}"))
    })
}

/// Reads a list, and stops where there is more than a transcript has.
fn bounded<'de, T, D>(from: D) -> std::result::Result<Vec<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    struct Items<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> de::Visitor<'de> for Items<T> {
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

    from.deserialize_seq(Items(PhantomData))
}

/// The items of a list, unread.
#[derive(Deserialize)]
struct Items<'a>(#[serde(borrow, deserialize_with = "bounded")] Vec<&'a RawValue>);

/// The fields of an object, unread: as many as there may be videos in one body.
struct Fields<'a>(BTreeMap<String, &'a RawValue>);

impl<'a> Deserialize<'a> for Fields<'a> {
    fn deserialize<D: Deserializer<'a>>(from: D) -> std::result::Result<Self, D::Error> {
        struct Visitor;

        impl<'a> de::Visitor<'a> for Visitor {
            type Value = Fields<'a>;

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
                Ok(Fields(fields))
            }
        }

        from.deserialize_map(Visitor)
    }
}

#[cfg(test)]
mod tests;
