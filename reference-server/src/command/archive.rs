//! `verbatim archive`: shows and changes archived transcripts.

use serde_json::json;
use transcript_core::{archive::ArchivedTrack, hex, transcript::TrackKind};
use verbatim::{GetRequest, RefreshOutcome, TranscriptExport, UnreadableTrack, Verbatim, VideoReport};

use super::{
    CommandError,
    archive_arguments::{ArchiveCommand, DeleteArgs, RefreshArgs, ShowArgs, WithdrawArgs},
    archive_bulk, archive_export, archive_verify,
    arguments::JsonArgs,
    confirm::confirm,
    ignore_closed, open_any_archive, open_existing_archive, open_existing_with_audit_log,
    open_with_audit_log, operations, print, print_json, shown, warn_unrecorded,
};
use crate::{config::Settings, operations::Operations};

/// Longest title or message that is printed, in characters.
const TEXT_MAX: usize = 300;

/// Runs a subcommand of `archive`.
pub(super) async fn run(settings: &Settings, command: ArchiveCommand) -> Result<(), CommandError> {
    // A video that is not archived can be withdrawn or fetched.
    let verbatim = match command {
        ArchiveCommand::Withdraw(_) => open_with_audit_log(settings).await?,
        ArchiveCommand::Delete(_) => open_existing_with_audit_log(settings).await?,
        ArchiveCommand::Refresh(_) => open_any_archive(settings).await?,
        _ => open_existing_archive(settings).await?,
    };
    let done = match command {
        ArchiveCommand::Show(args) => show(&verbatim, &args).await,
        ArchiveCommand::Export(args) => archive_export::run(&verbatim, &args).await,
        ArchiveCommand::Delete(args) => delete(&operations(settings, &verbatim), &args).await,
        ArchiveCommand::Withdraw(args) => withdraw(&operations(settings, &verbatim), &args).await,
        ArchiveCommand::Refresh(args) => refresh(&verbatim, args).await,
        ArchiveCommand::Compact(args) => archive_bulk::compact(&verbatim, &args).await,
        ArchiveCommand::Verify(args) => archive_verify::run(&verbatim, &args).await,
        ArchiveCommand::List(args) => archive_bulk::list(&verbatim, &args).await,
        ArchiveCommand::Stats(args) => stats(&verbatim, &args).await,
    };
    verbatim.close().await;
    done
}

/// The error for an unknown video: exit status 3, as for a missing transcript.
pub(super) fn unknown_video(video: &VideoReport) -> CommandError {
    CommandError::Missing(format!("nothing is archived of {}", video.video), video.watch_url.clone())
}

async fn show(verbatim: &Verbatim, args: &ShowArgs) -> Result<(), CommandError> {
    let video = verbatim.tools().show(&args.link).await?;
    if !video.is_known() {
        return Err(unknown_video(&video));
    }
    ignore_closed(match args.json {
        true => print_json(&format!("{:#}\n", as_json(&video))),
        false => print(&as_text(&video)),
    })?;
    if video.unreadable.is_empty() {
        return Ok(());
    }
    let errors: Vec<_> = video.unreadable.iter().map(|track| track.error.to_string()).collect();
    Err(CommandError::Fault(errors.join("\n")))
}

fn find_archived<'a>(video: &'a VideoReport, track: &ArchivedTrack) -> Option<&'a TranscriptExport> {
    video.archived.iter().find(|archived| {
        track.selectors.iter().any(|selector| archived.selectors.contains(selector))
            && archived.stored.transcript.track.is_same(&track.track)
    })
}

/// Returns the unreadable transcript of a track.
fn find_unreadable<'a>(video: &'a VideoReport, track: &ArchivedTrack) -> Option<&'a UnreadableTrack> {
    video.unreadable.iter().find(|unreadable| unreadable.track == track.track)
}

fn as_text(video: &VideoReport) -> String {
    let mut text = format!("{}\n{}\n", video.video, video.video.address());
    if video.withdrawn {
        text.push_str("withdrawn by the operator; `verbatim archive withdraw --undo` reverts it\n");
    }
    if let Some(absence) = &video.absence {
        let message = shown(&absence.message, TEXT_MAX);
        text.push_str(&format!("no default transcript until {}: {message}\n", absence.until));
    }
    for track in &video.tracks {
        let info = &track.track;
        let kind = match info.kind {
            TrackKind::Human => "",
            TrackKind::Generated => ", recognised by a machine",
            TrackKind::Translated => ", translated by a machine",
        };
        let original = if info.original { ", the spoken language" } else { "" };
        let name = info.name.as_deref().map(|name| format!(" “{}”", shown(name, TEXT_MAX)));
        text.push_str(&format!("\n{}{}{kind}{original}\n", info.language, name.unwrap_or_default()));
        text.push_str(&match find_archived(video, track) {
            Some(archived) => archived_as_text(archived),
            None if find_unreadable(video, track).is_some() => "  archived, but damaged\n".to_owned(),
            None if track.revision.is_some() => "  archived, but superseded by other tracks\n".to_owned(),
            None => "  known, but not archived\n".to_owned(),
        });
    }
    text
}

fn archived_as_text(archived: &TranscriptExport) -> String {
    let stored = &archived.stored;
    let transcript = &stored.transcript;
    let selectors =
        archived.selectors.iter().map(|selector| selector.as_str()).collect::<Vec<_>>().join(", ");
    let segments = transcript.segments.len();
    let source = shown(&transcript.source, TEXT_MAX);
    let mut text = format!(
        "  revision {} of {}, {segments} segments, from {source}\n  selectors: {selectors}\n",
        stored.revision, stored.stored_at,
    );
    for (label, name) in [("title", &transcript.title), ("author", &transcript.author)] {
        if let Some(name) = name {
            text.push_str(&format!("  {label}: {}\n", shown(name, TEXT_MAX)));
        }
    }
    text
}

fn as_json(video: &VideoReport) -> serde_json::Value {
    let archived = |archived: &TranscriptExport| {
        let stored = &archived.stored;
        json!({
            "revision": stored.revision,
            "storedAt": stored.stored_at.to_string(),
            "contentSha256": hex::encode(&stored.content_sha256),
            "parserVersion": stored.parser_version,
            "source": stored.transcript.source,
            "title": stored.transcript.title,
            "author": stored.transcript.author,
            "segments": stored.transcript.segments.len(),
        })
    };
    let tracks = video.tracks.iter().map(|track| {
        json!({
            "language": track.track.language.as_str(),
            "kind": track.track.kind.as_str(),
            "name": track.track.name,
            "original": track.track.original,
            "wishes": track.selectors.iter().map(|selector| selector.as_str()).collect::<Vec<_>>(),
            "archived": find_archived(video, track).map(archived),
            "damaged": find_unreadable(video, track).is_some(),
        })
    });
    let absence = video.absence.as_ref().map(|absence| {
        json!({
            "reason": absence.reason, "message": absence.message, "until": absence.until.to_string(),
        })
    });
    json!({
        "platform": video.video.platform().as_str(),
        "videoId": video.video.id(),
        "address": video.video.address(),
        "watchUrl": video.watch_url,
        "withdrawn": video.withdrawn,
        "absence": absence,
        "tracks": tracks.collect::<Vec<_>>(),
    })
}

async fn delete(operations: &Operations, args: &DeleteArgs) -> Result<(), CommandError> {
    let video = operations.verbatim().tools().show(&args.link).await?;
    if !video.is_known() {
        return Err(unknown_video(&video));
    }
    // No number: the report has no earlier revisions, and nothing of a withdrawn video.
    let withdrawn = if video.withdrawn { ", which is withdrawn" } else { "" };
    let question = format!("Delete all transcripts and revisions of {}{withdrawn}?", video.video);
    if !args.yes && !confirm(&question)? {
        return Err(CommandError::Fault("nothing was deleted".to_owned()));
    }
    if let Some(error) = operations.delete_video(video.video.clone()).await? {
        warn_unrecorded(&error);
    }
    print(&format!("{}: deleted\n", video.video))
}

async fn withdraw(operations: &Operations, args: &WithdrawArgs) -> Result<(), CommandError> {
    let withdrawal = operations.withdraw(&args.link, !args.undo).await?;
    if let Some(error) = &withdrawal.unrecorded {
        warn_unrecorded(error);
    }
    let state = match (args.undo, withdrawal.was_withdrawn) {
        (false, false) => "withdrawn",
        (false, true) => "withdrawn already",
        (true, true) => "restored",
        (true, false) => "not withdrawn",
    };
    print(&format!("{}: {state}\n", withdrawal.video))
}

async fn refresh(verbatim: &Verbatim, args: RefreshArgs) -> Result<(), CommandError> {
    let refreshed = verbatim
        .tools()
        .refresh(GetRequest { link: args.link, language: args.lang, ..GetRequest::default() })
        .await?;
    let (stored, effect) = match refreshed {
        RefreshOutcome::Changed(stored) => (stored, "archived as"),
        RefreshOutcome::Unchanged(stored) => (stored, "unchanged, still"),
        RefreshOutcome::Missing(missing) => {
            let text = format!("{}: {}", missing.reason.as_str(), missing.message);
            return Err(CommandError::Missing(text, missing.watch_url));
        }
    };
    let transcript = &stored.transcript;
    print(&format!(
        "{}, {}: {effect} revision {}, {} segments, from {}\n",
        transcript.video,
        transcript.track.language,
        stored.revision,
        transcript.segments.len(),
        shown(&transcript.source, TEXT_MAX),
    ))
}

async fn stats(verbatim: &Verbatim, args: &JsonArgs) -> Result<(), CommandError> {
    let stats = verbatim.tools().stats().await?;
    let totals = [
        ("videos", stats.videos),
        ("transcripts", stats.transcripts),
        ("absences", stats.absences),
        ("withdrawn", stats.withdrawn),
        ("links", stats.links),
        ("bytes", stats.bytes),
        ("compact", stats.compact),
    ];
    if args.json {
        let totals: serde_json::Map<_, _> =
            totals.into_iter().map(|(name, figure)| (name.to_owned(), figure.into())).collect();
        return print_json(&format!("{:#}\n", serde_json::Value::Object(totals)));
    }
    let labels = [
        "videos with a transcript",
        "transcripts, all revisions included",
        "absences",
        "videos withdrawn by the operator",
        "resolved short links",
        "bytes of stored transcripts",
        "transcripts in cold storage",
    ];
    let lines = totals.iter().zip(labels).map(|((_, figure), label)| format!("{figure:>12}  {label}\n"));
    print(&lines.collect::<String>())
}
