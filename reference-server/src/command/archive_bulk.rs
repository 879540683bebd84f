//! `verbatim archive compact` and `list`: commands over the whole archive.

use serde::Serialize;
use serde_json::json;
use transcript_core::{archive::ArchivedTrack, transcript::TrackKind};
use verbatim::Verbatim;

use super::{
    CommandError,
    archive_arguments::CompactArgs,
    arguments::JsonArgs,
    ignore_closed,
    listing::{print_all, seconds, table},
    print, print_json,
    progress::ProgressLine,
};

/// Maximum number of damaged transcripts in the error.
const NAMED_MAX: usize = 20;

pub(super) async fn compact(verbatim: &Verbatim, args: &CompactArgs) -> Result<(), CommandError> {
    let all = verbatim.tools().stats().await.ok();
    let count = all.map(|all| all.transcripts.saturating_sub(all.compact));
    let mut progress = ProgressLine::new("looked at", count);
    let on_progress = |done: &transcript_core::archive::CompactOutcome| {
        progress.reach(done.scanned, &format!("{} compacted", done.compacted));
    };
    let done = verbatim.tools().compact(args.older_than, on_progress).await?;
    drop(progress);
    if args.json {
        let damaged: Vec<_> = done.damaged.iter().map(ToString::to_string).collect();
        let figures = json!({
            "lookedAt": done.scanned, "compacted": done.compacted, "bytesBefore": done.bytes_before,
            "bytesAfter": done.bytes_after, "damaged": damaged,
        });
        ignore_closed(print_json(&format!("{figures:#}\n")))?;
    } else {
        ignore_closed(print(&format!(
            "{} transcripts compacted: {} bytes became {}\n",
            done.compacted, done.bytes_before, done.bytes_after
        )))?;
    }
    if done.damaged.is_empty() {
        return Ok(());
    }
    let named: Vec<_> = done.damaged.iter().take(NAMED_MAX).map(ToString::to_string).collect();
    let more = if done.damaged.len() > NAMED_MAX { ", …" } else { "" };
    Err(CommandError::Fault(format!(
        "{} transcripts are damaged and were not changed: {}{more}; repair them with `verbatim archive verify \
         --repair refetch`",
        done.damaged.len(),
        named.join(", ")
    )))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ArchiveListRow {
    platform: &'static str,
    video_id: String,
    language: String,
    kind: &'static str,
    name: Option<String>,
    revision: Option<u32>,
    stored_at: Option<String>,
    #[serde(rename = "wishes")]
    selectors: Vec<String>,
}

impl From<&ArchivedTrack> for ArchiveListRow {
    fn from(archived: &ArchivedTrack) -> Self {
        Self {
            platform: archived.video.platform().as_str(),
            video_id: archived.video.id().to_owned(),
            language: archived.track.language.to_string(),
            kind: archived.track.kind.as_str(),
            name: archived.track.name.clone(),
            revision: archived.revision,
            stored_at: archived.stored_at.map(|at| at.to_string()),
            selectors: archived.selectors.iter().map(|selector| selector.as_str().to_owned()).collect(),
        }
    }
}

pub(super) async fn list(verbatim: &Verbatim, args: &JsonArgs) -> Result<(), CommandError> {
    let page = |request| async { verbatim.archive().list_tracks(request).await };
    print_all::<ArchiveListRow, _, _>(args.json, page, track_table).await
}

fn track_table(tracks: &[ArchivedTrack], is_first: bool) -> String {
    let columns = [("video", 34), ("language", 10), ("made by", 9), ("revision", -8), ("stored", 0)];
    let row = |archived: &ArchivedTrack| {
        let author = match archived.track.kind {
            TrackKind::Human => "people",
            TrackKind::Generated | TrackKind::Translated => "a machine",
        };
        [
            archived.video.to_string(),
            archived.track.language.to_string(),
            author.to_owned(),
            archived.revision.unwrap_or_default().to_string(),
            archived.stored_at.map_or_else(String::new, |at| seconds(&at.to_string())),
        ]
    };
    table(columns, is_first && !tracks.is_empty(), tracks.iter().map(row))
}
