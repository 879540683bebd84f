//! Arguments of `verbatim archive` and `verbatim ledger`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand, ValueEnum};

use super::arguments::{JsonArgs, OutputFormat};

#[derive(Debug, Subcommand)]
pub(super) enum ArchiveCommand {
    /// Show the archived tracks of a video
    Show(ShowArgs),
    /// Write archived transcripts to files
    Export(ExportArgs),
    /// Delete everything archived of a video
    Delete(DeleteArgs),
    /// Take a video down
    Withdraw(WithdrawArgs),
    /// Fetch a transcript again and archive a new revision if it has changed
    Refresh(RefreshArgs),
    /// Compress old transcripts
    Compact(CompactArgs),
    /// Check that every stored transcript can be read, and repair damage
    Verify(VerifyArgs),
    /// List archived transcripts
    #[command(after_help = "Examples:
  verbatim archive list
  verbatim archive list --json | jq -r '.[].videoId' | head

Lists every archived track with its newest revision, by video, including withdrawn videos. Output starts at \
once, also for large archives.")]
    List(JsonArgs),
    /// Print totals of the archive
    #[command(after_help = "Examples:
  verbatim archive stats
  verbatim archive stats --json | jq .videos")]
    Stats(JsonArgs),
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim archive show https://youtu.be/dQw4w9WgXcQ
  verbatim archive show dQw4w9WgXcQ --json | jq '.tracks[].language'

Reads the archive only. Exit status 1: a transcript of the video is damaged; 3: unknown video.")]
pub(super) struct ShowArgs {
    /// Link to the video, or a YouTube id
    #[arg(value_name = "LINK", allow_hyphen_values = true)]
    pub(super) link: String,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args, Debug)]
#[command(
    override_usage = "verbatim archive export [OPTIONS] LINK...
       verbatim archive export [OPTIONS] --all",
    after_help = "Examples:
  verbatim archive export --all --to backup
  verbatim archive export dQw4w9WgXcQ --format srt --to subtitles
  verbatim archive export --all --format md --to notes --force

The newest revision of each transcript becomes a file DIR/PLATFORM/ID/LANGUAGE.FORMAT, whose name is \
printed. JSON has everything of that revision: `verbatim import DIR` imports it into another archive, where \
the time of archiving is that of the import. Existing files are kept, unless --force is given; the exit status is 1 if \
one of them has different content. Files of an earlier export whose transcripts were deleted since stay.
Transcripts of withdrawn videos are not written. JSON records the withdrawal (withdrawn.json), and its \
import withdraws the video. Damaged transcripts are named on standard error, and the export continues; the \
exit status is 1.
Exit status 3: nothing is archived of a named video."
)]
pub(super) struct ExportArgs {
    /// Links to the videos, or YouTube ids (after -- if one begins with -)
    #[arg(value_name = "LINK", required_unless_present = "all", conflicts_with = "all")]
    pub(super) links: Vec<String>,
    /// Export the whole archive
    #[arg(long)]
    pub(super) all: bool,
    /// Format of the files
    #[arg(long, value_enum, default_value_t = OutputFormat::Json)]
    pub(super) format: OutputFormat,
    /// Target folder; it is created if necessary
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(super) to: PathBuf,
    /// Overwrite existing files
    #[arg(long)]
    pub(super) force: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim archive delete https://youtu.be/dQw4w9WgXcQ
  verbatim archive delete dQw4w9WgXcQ --yes

All transcripts of the video are deleted, with all their revisions. The video can be fetched and archived \
again; to prevent that, use `verbatim archive withdraw`. The text stays in free pages of the database and, for 24 \
hours, in responses that were stored for an Idempotency-Key: \"Erasure\" in docs/operations.md erases it. On a \
terminal the command prompts for confirmation; elsewhere --yes is required. Exit status 3: unknown video.")]
pub(super) struct DeleteArgs {
    /// Link to the video, or a YouTube id
    #[arg(value_name = "LINK", allow_hyphen_values = true)]
    pub(super) link: String,
    /// Skip the confirmation
    #[arg(long)]
    pub(super) yes: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim archive withdraw https://youtu.be/dQw4w9WgXcQ
  verbatim archive withdraw dQw4w9WgXcQ --undo

Takes effect at once, also on running servers: lookups return no_captions, withdrawn by the operator, and \
the video is not fetched again. Its transcripts stay stored and are served again after --undo.")]
pub(super) struct WithdrawArgs {
    /// Link to the video, or a YouTube id
    #[arg(value_name = "LINK", allow_hyphen_values = true)]
    pub(super) link: String,
    /// Revert the withdrawal
    #[arg(long)]
    pub(super) undo: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim archive refresh https://youtu.be/dQw4w9WgXcQ
  verbatim archive refresh dQw4w9WgXcQ --lang de

Earlier revisions stay stored. Nothing is charged. A damaged transcript is replaced. If the fetch fails, the \
archived transcript is kept and the exit status is 3, as with `verbatim get`.")]
pub(super) struct RefreshArgs {
    /// Link to the video, or a YouTube id
    #[arg(value_name = "LINK", allow_hyphen_values = true)]
    pub(super) link: String,
    /// Language, such as en, pt-BR or zh-Hant [default: the default transcript]
    #[arg(long, value_name = "TAG")]
    pub(super) lang: Option<String>,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim archive compact
  verbatim archive compact --older-than 7d --json

Moves old transcripts to cold storage, which takes two thirds of the space. Lookups return the same bytes; \
the first one takes slightly longer. Each transcript is decompressed and compared before its old form is \
replaced. Servers can run at the same time, and the command can be stopped at any time: the next run \
continues. On SQLite the space becomes free within the file. Exit status 1: a stored transcript is \
unreadable; it was not changed.")]
pub(super) struct CompactArgs {
    /// Minimum age of the transcripts
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = humantime::parse_duration)]
    pub(super) older_than: Duration,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim archive verify
  verbatim archive verify --repair refetch
  verbatim archive verify --repair delete --json
  verbatim archive verify --limit 100000
  verbatim archive verify --after video_site/dQw4w9WgXcQ/41

Reads and decodes every stored transcript, all revisions and those of withdrawn videos included, and lists \
those that are damaged, and videos whose selectors are: they name the transcript that a lookup returns. Servers \
can run at the same time, and the command can be stopped at any time: it names the cursor with which --after \
continues. A second Ctrl-C or SIGTERM ends it at once. --repair delete deletes damaged transcripts and nothing \
else: lookups fetch them again. \
--repair refetch also fetches those at once that lookups used, free of charge, and those of a video without any \
selector. Both set damaged selectors again. \
A transcript that may be of a newer version is listed, but never deleted. To repair a single video, use \
`verbatim archive refresh` or `delete`.
Exit status 0: all transcripts are readable, or all damage was repaired; 1: damage remains, or a transcript \
could not be fetched again; 130: stopped, and no damage remains so far.")]
pub(super) struct VerifyArgs {
    /// Repair damaged transcripts
    #[arg(long, value_enum, value_name = "ACTION")]
    pub(super) repair: Option<RepairAction>,
    /// Continue after this cursor
    #[arg(long, value_name = "CURSOR", allow_hyphen_values = true)]
    pub(super) after: Option<String>,
    /// Stop after this number of transcripts
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) limit: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// What `verify` does with damaged transcripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum RepairAction {
    /// Delete them
    Delete,
    /// Delete them and fetch them again
    Refetch,
}

#[derive(Debug, Subcommand)]
pub(super) enum LedgerCommand {
    /// Recompute every balance from its entries
    #[command(after_help = "Examples:
  verbatim ledger audit
  verbatim ledger audit --json | jq '.differences[].wallet'

Can run next to a server. Exit status 0: no differences; 1: differences, all of which are printed.")]
    Audit(JsonArgs),
}
