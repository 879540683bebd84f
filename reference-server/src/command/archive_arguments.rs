//! What `verbatim archive` and `verbatim ledger` take.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand};

use super::arguments::Format;

#[derive(Debug, Subcommand)]
pub(super) enum ArchiveCommand {
    /// Tell what is known and archived of a video
    Show(Show),
    /// Write archived transcripts into files
    Export(Export),
    /// Forget everything that is archived of a video
    Delete(Delete),
    /// Take a video down: everybody is told that the operator withdrew it
    Withdraw(Withdraw),
    /// Fetch a transcript again, now, and keep it as a new revision when it has changed
    Refresh(Refresh),
    /// Bring what was archived long ago into a smaller form
    Compact(Compact),
    /// List what is archived
    List(List),
    /// Tell how much is archived
    Stats(Stats),
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim archive show https://youtu.be/dQw4w9WgXcQ
  verbatim archive show dQw4w9WgXcQ --json | jq '.tracks[].language'

Nobody is asked for anything. Exit status 3: nothing is known of the video.")]
pub(super) struct Show {
    /// The link to the video; or a YouTube id
    #[arg(value_name = "LINK", allow_hyphen_values = true)]
    pub(super) link: String,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim archive export --all --to backup
  verbatim archive export dQw4w9WgXcQ --format srt --to subtitles
  verbatim archive export --all --format md --to notes --force

Each transcript gets a file of its own, DIR/PLATFORM/ID/LANGUAGE.FORMAT, whose name is printed. JSON keeps
everything: `verbatim import DIR` puts it into another archive without loss. Files that exist stay as
they are, unless --force is given; the exit status is 1 when one of them has another content.
Of withdrawn videos no words are written, but with JSON that they are withdrawn (withdrawn.json), and importing
that withdraws them. Exit status 3: nothing is archived of a video that was named.")]
pub(super) struct Export {
    /// The links to the videos; or YouTube ids (behind -- when one begins with -)
    #[arg(value_name = "LINK", required_unless_present = "all", conflicts_with = "all")]
    pub(super) links: Vec<String>,
    /// Everything that is archived
    #[arg(long)]
    pub(super) all: bool,
    /// The form of the files
    #[arg(long, value_enum, default_value_t = Format::Json)]
    pub(super) format: Format,
    /// The folder that the files go into; it is made where there is none
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(super) to: PathBuf,
    /// Overwrite files that exist
    #[arg(long)]
    pub(super) force: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim archive delete https://youtu.be/dQw4w9WgXcQ
  verbatim archive delete dQw4w9WgXcQ --yes

All transcripts of the video go, with all their revisions. It may be fetched and archived again: to keep
it from being served, use `verbatim archive withdraw`. On a terminal it is asked first; elsewhere --yes
must be given. Exit status 3: nothing is known of the video.")]
pub(super) struct Delete {
    /// The link to the video; or a YouTube id
    #[arg(value_name = "LINK", allow_hyphen_values = true)]
    pub(super) link: String,
    /// Do not ask
    #[arg(long)]
    pub(super) yes: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim archive withdraw https://youtu.be/dQw4w9WgXcQ
  verbatim archive withdraw dQw4w9WgXcQ --undo

A running server tells it at once: no_captions, withdrawn by the operator. The video is never fetched
again. What is stored of it stays stored, and is served again after --undo.")]
pub(super) struct Withdraw {
    /// The link to the video; or a YouTube id
    #[arg(value_name = "LINK", allow_hyphen_values = true)]
    pub(super) link: String,
    /// Put it back
    #[arg(long)]
    pub(super) undo: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim archive refresh https://youtu.be/dQw4w9WgXcQ
  verbatim archive refresh dQw4w9WgXcQ --lang de

Earlier revisions stay stored. Nobody is charged. When nothing can be fetched, what is archived stays, and
the exit status is 3, as with `verbatim get`.")]
pub(super) struct Refresh {
    /// The link to the video; or a YouTube id
    #[arg(value_name = "LINK", allow_hyphen_values = true)]
    pub(super) link: String,
    /// The language, such as en, pt-BR or zh-Hant [default: the default transcript]
    #[arg(long, value_name = "TAG")]
    pub(super) lang: Option<String>,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim archive compact
  verbatim archive compact --older-than 7d --json

What is compact takes two thirds of the room, and is served to the byte as before, a little later where it is asked for the
first time. Each transcript is read back out of the smaller form before that takes its place. Servers may run meanwhile,
and it may be stopped at any time: begun again, it goes on with what is left. On SQLite the room becomes free within the
file, for what comes next. Exit status 1: a transcript cannot be read as it lies there; it was left as it is.")]
pub(super) struct Compact {
    /// Only what was stored longer ago than this
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = humantime::parse_duration)]
    pub(super) older_than: Duration,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim archive list
  verbatim archive list --json | jq -r '.[].videoId' | head

Every archived track, by video: its newest revision, also of videos that are withdrawn. It is printed as it is read, so the
beginning of a large archive is there at once.")]
pub(super) struct List {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim archive stats
  verbatim archive stats --json | jq .videos")]
pub(super) struct Stats {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum LedgerCommand {
    /// Check that every balance is what its entries add up to
    Audit(Audit),
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim ledger audit
  verbatim ledger audit --json | jq '.differences[].wallet'

It may run while a server does. Exit status 0: all agrees; 1: it does not, and every difference is told.")]
pub(super) struct Audit {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}
