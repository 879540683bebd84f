//! `verbatim archive`: what is archived, and what becomes of it.

use serde_json::json;
use transcript_core::{archive::ArchivedTrack, transcript::TrackKind};
use verbatim::{Archived, Get, Refreshed, Shown, Verbatim};

use super::{
    Failure,
    archive_arguments::{ArchiveCommand, Delete, Refresh, Show, Stats, Withdraw},
    archive_export, archive_large,
    confirm::confirmed,
    open_archive, open_existing_archive, print, print_json, shown,
};
use crate::config::Settings;

/// The most characters of a title or message that are shown.
const TEXT_MAX: usize = 300;

/// Runs one of the archive's commands.
pub(super) async fn run(settings: &Settings, command: ArchiveCommand) -> Result<(), Failure> {
    // What was never archived can be withdrawn, or fetched.
    let verbatim = match command {
        ArchiveCommand::Withdraw(_) | ArchiveCommand::Refresh(_) => open_archive(settings).await?,
        _ => open_existing_archive(settings).await?,
    };
    let done = match command {
        ArchiveCommand::Show(ask) => show(&verbatim, &ask).await,
        ArchiveCommand::Export(ask) => archive_export::run(&verbatim, &ask).await,
        ArchiveCommand::Delete(ask) => delete(&verbatim, &ask).await,
        ArchiveCommand::Withdraw(ask) => withdraw(&verbatim, &ask).await,
        ArchiveCommand::Refresh(ask) => refresh(&verbatim, ask).await,
        ArchiveCommand::Compact(ask) => archive_large::compact(&verbatim, &ask).await,
        ArchiveCommand::List(ask) => archive_large::list(&verbatim, &ask).await,
        ArchiveCommand::Stats(ask) => stats(&verbatim, &ask).await,
    };
    verbatim.close().await;
    done
}

/// Nothing is known of a video: exit 3, as when there is no transcript.
pub(super) fn unknown(video: &Shown) -> Failure {
    Failure::Missing(format!("nothing is archived of {}", video.video), video.watch_url.clone())
}

async fn show(verbatim: &Verbatim, ask: &Show) -> Result<(), Failure> {
    let video = verbatim.show(&ask.link).await?;
    if !video.is_known() {
        return Err(unknown(&video));
    }
    if ask.json { print_json(&format!("{:#}\n", as_json(&video))) } else { print(&as_text(&video)) }
}

/// The transcript that is archived of a track.
fn of_track<'a>(video: &'a Shown, track: &ArchivedTrack) -> Option<&'a Archived> {
    video.archived.iter().find(|archived| {
        track.wishes.iter().any(|wish| archived.wishes.contains(wish))
            && archived.stored.transcript.track.is_same(&track.track)
    })
}

fn as_text(video: &Shown) -> String {
    let mut text = format!("{}\n{}\n", video.video, video.video.address());
    if video.withdrawn {
        text.push_str("withdrawn by the operator; --undo of `verbatim archive withdraw` puts it back\n");
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
        let name = info.name.as_deref().map(|name| format!(" {:?}", shown(name, TEXT_MAX)));
        text.push_str(&format!("\n{}{}{kind}{original}\n", info.language, name.unwrap_or_default()));
        text.push_str(&match of_track(video, track) {
            Some(archived) => archived_as_text(archived),
            None if track.revision.is_some() => {
                "  archived, but replaced by another one for every wish\n".to_owned()
            }
            None => "  known, but not archived\n".to_owned(),
        });
    }
    text
}

fn archived_as_text(archived: &Archived) -> String {
    let stored = &archived.stored;
    let transcript = &stored.transcript;
    let wishes = archived.wishes.iter().map(|wish| wish.as_str()).collect::<Vec<_>>().join(", ");
    let segments = transcript.segments.len();
    let source = shown(&transcript.source, TEXT_MAX);
    let mut text = format!(
        "  revision {} of {}, {segments} segments, from {source}\n  answers: {wishes}\n",
        stored.revision, stored.stored_at,
    );
    for (what, name) in [("title", &transcript.title), ("author", &transcript.author)] {
        if let Some(name) = name {
            text.push_str(&format!("  {what}: {}\n", shown(name, TEXT_MAX)));
        }
    }
    text
}

fn as_json(video: &Shown) -> serde_json::Value {
    let archived = |archived: &Archived| {
        let stored = &archived.stored;
        json!({
            "revision": stored.revision,
            "storedAt": stored.stored_at.to_string(),
            "contentSha256": stored.content_sha256.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
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
            "wishes": track.wishes.iter().map(|wish| wish.as_str()).collect::<Vec<_>>(),
            "archived": of_track(video, track).map(archived),
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

async fn delete(verbatim: &Verbatim, ask: &Delete) -> Result<(), Failure> {
    let video = verbatim.show(&ask.link).await?;
    if !video.is_known() {
        return Err(unknown(&video));
    }
    let question = format!("Delete all {} transcripts of {}?", video.archived.len(), video.video);
    if !ask.yes && !confirmed(&question)? {
        return Err(Failure::Fault("nothing was deleted".to_owned()));
    }
    verbatim.delete(&video.video).await?;
    print(&format!("{}: deleted\n", video.video))
}

async fn withdraw(verbatim: &Verbatim, ask: &Withdraw) -> Result<(), Failure> {
    let video = verbatim.show(&ask.link).await?;
    let became = match (ask.undo, video.withdrawn) {
        (false, false) => "withdrawn",
        (false, true) => "withdrawn already",
        (true, true) => "put back",
        (true, false) => "not withdrawn",
    };
    verbatim.withdraw(&video.video, !ask.undo).await?;
    print(&format!("{}: {became}\n", video.video))
}

async fn refresh(verbatim: &Verbatim, ask: Refresh) -> Result<(), Failure> {
    let refreshed = verbatim.refresh(Get { link: ask.link, language: ask.lang }).await?;
    let (stored, what) = match refreshed {
        Refreshed::Changed(stored) => (stored, "archived as"),
        Refreshed::Unchanged(stored) => (stored, "unchanged, still"),
        Refreshed::Missing(missing) => {
            let text = format!("{}: {}", missing.reason.as_str(), missing.message);
            return Err(Failure::Missing(text, missing.watch_url));
        }
    };
    let transcript = &stored.transcript;
    print(&format!(
        "{}, {}: {what} revision {}, {} segments, from {}\n",
        transcript.video,
        transcript.track.language,
        stored.revision,
        transcript.segments.len(),
        shown(&transcript.source, TEXT_MAX),
    ))
}

async fn stats(verbatim: &Verbatim, ask: &Stats) -> Result<(), Failure> {
    let stats = verbatim.stats().await?;
    let figures = [
        ("videos", stats.videos),
        ("transcripts", stats.transcripts),
        ("absences", stats.absences),
        ("withdrawn", stats.withdrawn),
        ("links", stats.links),
        ("bytes", stats.bytes),
        ("compact", stats.compact),
    ];
    if ask.json {
        let figures: serde_json::Map<_, _> =
            figures.into_iter().map(|(name, figure)| (name.to_owned(), figure.into())).collect();
        return print_json(&format!("{:#}\n", serde_json::Value::Object(figures)));
    }
    let what = [
        "videos with a transcript",
        "transcripts, all revisions counted",
        "wishes remembered to have nothing",
        "videos withdrawn by the operator",
        "short links learnt",
        "bytes that the transcripts take",
        "transcripts in the compact form",
    ];
    let lines = figures.iter().zip(what).map(|((_, figure), what)| format!("{figure:>12}  {what}\n"));
    print(&lines.collect::<String>())
}
