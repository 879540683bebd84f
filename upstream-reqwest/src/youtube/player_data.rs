//! The relevant parts of a player response, read within bounds. No I/O.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::json;

/// Maximum length of each part in bytes.
///
/// JSON in memory may take a hundred times its length. Captions with 40 tracks and 160 translations have about 50 KB,
/// the other parts 1 to 15 KB.
pub(super) const CAPTIONS_MAX: usize = 512 << 10;
pub(super) const PART_MAX: usize = 64 << 10;
/// A video has about 30 formats, each with a URL of 1 KB; dubbed ones have ten times as many.
const STREAMS_MAX: usize = 1 << 20;

/// The relevant parts of player data as raw JSON; the remainder, which is most of it, is skipped.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RawPlayerData<'a> {
    #[serde(borrow)]
    playability_status: Option<&'a RawValue>,
    #[serde(borrow)]
    video_details: Option<&'a RawValue>,
    #[serde(borrow)]
    microformat: Option<&'a RawValue>,
    #[serde(borrow)]
    captions: Option<&'a RawValue>,
    #[serde(borrow)]
    response_context: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    /// Wrapper that some endpoints use.
    #[serde(borrow)]
    player_response: Option<&'a RawValue>,
}

/// The part of player data with the media URLs.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PlayerStreams<'a> {
    #[serde(borrow)]
    streaming_data: Option<&'a RawValue>,
    #[serde(borrow)]
    player_response: Option<&'a RawValue>,
}

/// The relevant parts of player data. Each is any JSON, so a wrong type affects only itself.
#[derive(Debug)]
pub(super) struct StreamingData {
    pub(super) playability_status: Value,
    pub(super) video_details: Value,
    pub(super) microformat: Value,
    /// `None` if too large or too deeply nested.
    pub(super) captions: Option<Value>,
    pub(super) response_context: Value,
    pub(super) error: Value,
}

impl StreamingData {
    /// Reads player data, bare or wrapped; `None` if it is not a JSON object.
    pub(super) fn read(text: &str) -> Option<Self> {
        let parts: RawPlayerData<'_> = serde_json::from_str(text).ok()?;
        let inner = parts.player_response.filter(|inner| inner.get().starts_with('{'));
        Some(Self::new(&match inner {
            Some(inner) => serde_json::from_str(inner.get()).unwrap_or_default(),
            None => parts,
        }))
    }

    /// The streaming data in player data, bare or wrapped; null if absent.
    pub(super) fn streams(text: &str) -> Value {
        let read = |text| serde_json::from_str::<PlayerStreams<'_>>(text).unwrap_or_default();
        let outer = read(text);
        let streams = match outer.player_response.filter(|inner| inner.get().starts_with('{')) {
            Some(inner) => read(inner.get()),
            None => outer,
        };
        read_part(streams.streaming_data, STREAMS_MAX).unwrap_or_default()
    }

    fn new(parts: &RawPlayerData<'_>) -> Self {
        let part = |part, max| read_part(part, max).unwrap_or_default();
        Self {
            playability_status: part(parts.playability_status, PART_MAX),
            video_details: part(parts.video_details, PART_MAX),
            microformat: part(parts.microformat, PART_MAX),
            captions: read_part(parts.captions, CAPTIONS_MAX),
            response_context: part(parts.response_context, PART_MAX),
            error: part(parts.error, PART_MAX),
        }
    }
}

/// A part of the player data, null if absent; `None` if too large or too deeply nested.
fn read_part(part: Option<&RawValue>, max: usize) -> Option<Value> {
    part.map_or(Some(Value::Null), |part| json::part(part, max))
}
