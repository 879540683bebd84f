//! `verbatim archive compact` and `list`: what is done with all of an archive, however large it is.

use serde::Serialize;
use serde_json::json;
use transcript_core::{archive::ArchivedTrack, transcript::TrackKind};
use verbatim::Verbatim;

use super::{
    Failure,
    archive_arguments::{Compact, List},
    listing::{print_all, seconds},
    print, print_json,
    progress::Progress,
};

/// How many damaged transcripts are named.
const NAMED_MAX: usize = 20;

pub(super) async fn compact(verbatim: &Verbatim, ask: &Compact) -> Result<(), Failure> {
    let all = verbatim.stats().await?;
    let mut progress = Progress::new("looked at", Some(all.transcripts.saturating_sub(all.compact)));
    let told = |done: &transcript_core::archive::Compacted| {
        progress.reach(done.looked_at, &format!("{} compacted", done.compacted));
    };
    let done = verbatim.compact(ask.older_than, told).await?;
    drop(progress);
    if ask.json {
        let damaged: Vec<_> = done.damaged.iter().map(ToString::to_string).collect();
        let figures = json!({
            "lookedAt": done.looked_at, "compacted": done.compacted, "bytesBefore": done.bytes_before,
            "bytesAfter": done.bytes_after, "damaged": damaged,
        });
        print_json(&format!("{figures:#}\n"))?;
    } else {
        print(&format!(
            "{} transcripts compacted: {} bytes became {}\n",
            done.compacted, done.bytes_before, done.bytes_after
        ))?;
    }
    if done.damaged.is_empty() {
        return Ok(());
    }
    let named: Vec<_> = done.damaged.iter().take(NAMED_MAX).map(ToString::to_string).collect();
    let more = if done.damaged.len() > NAMED_MAX { ", …" } else { "" };
    Err(Failure::Fault(format!(
        "{} transcripts are damaged and were left as they are: {}{more}; `verbatim archive delete` forgets one, and it \
        is fetched again when it is asked for",
        done.damaged.len(),
        named.join(", ")
    )))
}

/// A line of the list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    platform: &'static str,
    video_id: String,
    language: String,
    kind: &'static str,
    name: Option<String>,
    revision: Option<u32>,
    stored_at: Option<String>,
    wishes: Vec<String>,
}

impl From<&ArchivedTrack> for Row {
    fn from(archived: &ArchivedTrack) -> Self {
        Self {
            platform: archived.video.platform().as_str(),
            video_id: archived.video.id().to_owned(),
            language: archived.track.language.to_string(),
            kind: archived.track.kind.as_str(),
            name: archived.track.name.clone(),
            revision: archived.revision,
            stored_at: archived.stored_at.map(|moment| moment.to_string()),
            wishes: archived.wishes.iter().map(|wish| wish.as_str().to_owned()).collect(),
        }
    }
}

pub(super) async fn list(verbatim: &Verbatim, ask: &List) -> Result<(), Failure> {
    let page = |request| async { verbatim.archive().page(request).await };
    print_all::<Row, _, _>(ask.json, page, table).await
}

fn table(tracks: &[ArchivedTrack], is_first: bool) -> String {
    let mut text = String::new();
    if is_first && !tracks.is_empty() {
        text.push_str(&format!(
            "{:34}  {:10}  {:9}  {:>8}  stored\n",
            "video", "language", "made by", "revision"
        ));
    }
    for archived in tracks {
        let by = match archived.track.kind {
            TrackKind::Human => "people",
            TrackKind::Generated | TrackKind::Translated => "a machine",
        };
        let stored = archived.stored_at.map_or_else(String::new, |moment| seconds(&moment.to_string()));
        text.push_str(&format!(
            "{:34}  {:10}  {by:9}  {:>8}  {stored}\n",
            archived.video.to_string(),
            archived.track.language.to_string(),
            archived.revision.unwrap_or_default(),
        ));
    }
    text
}
