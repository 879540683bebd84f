//! The parts of a player answer that matter, read within bounds. Pure.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

/// The longest parts that are read, in bytes. JSON that is built up in memory may take a hundred times its
/// length there. Captions with 40 tracks and 160 translations have some 50 KB, the other parts 1 to 15 KB.
pub(super) const CAPTIONS_MAX: usize = 512 << 10;
pub(super) const PART_MAX: usize = 64 << 10;
/// A video has some 30 forms, each with an address of 1 KB; dubbed ones have ten times as many.
const STREAMS_MAX: usize = 1 << 20;

/// The parts of player data that matter, as they are written; the rest, which is most of it, is skipped.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Parts<'a> {
    #[serde(borrow)]
    playability_status: Option<&'a RawValue>,
    #[serde(borrow)]
    video_details: Option<&'a RawValue>,
    #[serde(borrow)]
    captions: Option<&'a RawValue>,
    #[serde(borrow)]
    response_context: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    /// Some endpoints wrap the player data in this.
    #[serde(borrow)]
    player_response: Option<&'a RawValue>,
}

/// The part of player data that says where the video itself is.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Streams<'a> {
    #[serde(borrow)]
    streaming_data: Option<&'a RawValue>,
    #[serde(borrow)]
    player_response: Option<&'a RawValue>,
}

/// The parts of player data that matter. Each is any JSON, so a wrong type spoils only itself.
#[derive(Debug)]
pub(super) struct Data {
    pub(super) playability_status: Value,
    pub(super) video_details: Value,
    /// None when they are too large or nested too deeply to be read.
    pub(super) captions: Option<Value>,
    pub(super) response_context: Value,
    pub(super) error: Value,
}

impl Data {
    /// Reads player data, bare or wrapped; none when it is no JSON object.
    pub(super) fn read(text: &str) -> Option<Self> {
        let parts: Parts<'_> = serde_json::from_str(text).ok()?;
        let inner = parts.player_response.filter(|inner| inner.get().starts_with('{'));
        Some(Self::of(&match inner {
            Some(inner) => serde_json::from_str(inner.get()).unwrap_or_default(),
            None => parts,
        }))
    }

    /// Where the video itself is, of player data, bare or wrapped; null where it says nothing of it.
    pub(super) fn streams(text: &str) -> Value {
        let read = |text| serde_json::from_str::<Streams<'_>>(text).unwrap_or_default();
        let outer = read(text);
        let streams = match outer.player_response.filter(|inner| inner.get().starts_with('{')) {
            Some(inner) => read(inner.get()),
            None => outer,
        };
        read_part(streams.streaming_data, STREAMS_MAX).unwrap_or_default()
    }

    fn of(parts: &Parts<'_>) -> Self {
        let part = |part, max| read_part(part, max).unwrap_or_default();
        Self {
            playability_status: part(parts.playability_status, PART_MAX),
            video_details: part(parts.video_details, PART_MAX),
            captions: read_part(parts.captions, CAPTIONS_MAX),
            response_context: part(parts.response_context, PART_MAX),
            error: part(parts.error, PART_MAX),
        }
    }
}

/// A part of the player data, null where it is missing; none when it is too large or nested too deeply.
fn read_part(part: Option<&RawValue>, max: usize) -> Option<Value> {
    let text = part.map_or("null", RawValue::get);
    (text.len() <= max).then(|| serde_json::from_str(text).ok()).flatten()
}
