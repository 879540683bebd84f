//! What the command line takes.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::{
    accounts_arguments::AccountsCommand,
    archive_arguments::{ArchiveCommand, LedgerCommand},
    storage::StorageCommand,
};

/// A link to a video in, the words that are spoken in it out, with the time of each.
#[derive(Debug, Parser)]
#[command(
    name = "verbatim",
    version,
    max_term_width = 100,
    after_help = "Examples:
  verbatim get https://youtu.be/dQw4w9WgXcQ
  verbatim get dQw4w9WgXcQ --format md > talk.md
  verbatim serve --listen 0.0.0.0:8080 --data /var/lib/verbatim
  verbatim import talk.srt --video https://youtu.be/dQw4w9WgXcQ --lang en
  verbatim import Downloads/subtitles
  verbatim archive withdraw https://youtu.be/dQw4w9WgXcQ
  verbatim keys create --label laptop

All commands share one archive, in the data folder; all of them may run at the same time.
Exit status: 0 done; 1 something failed; 2 a wrong link, usage or setting; 3 there is no transcript."
)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) common: Common,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// What every command takes.
#[derive(Args, Debug)]
pub(super) struct Common {
    /// The data folder.
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        help = "The folder with the archive, keys and ledger [default: the user's data folder; or $VERBATIM_DATA]"
    )]
    pub(super) data: Option<PathBuf>,
    /// The settings file.
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        help = "The settings file, in TOML [or $VERBATIM_CONFIG]; see `verbatim check-config` for all settings"
    )]
    pub(super) config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Serve both APIs and the watch pages over HTTP
    Serve(Serve),
    /// Print the transcript of a video; fetch and archive it when it is new
    Get(Get),
    /// Put captions that you have into the archive: files, or whole folders
    Import(Import),
    /// What is archived: show, export, delete, withdraw, refresh, stats
    #[command(subcommand)]
    Archive(ArchiveCommand),
    /// Keys of the look-up API
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Accounts of the v1 API: list, show, grant, block, unblock, statement, export, delete
    #[command(subcommand)]
    Accounts(AccountsCommand),
    /// The ledger of what was spent
    #[command(subcommand)]
    Ledger(LedgerCommand),
    /// Give assistants the archive: the Model Context Protocol on standard input and output
    #[command(after_help = "Example, as the configuration of an assistant:
  {\"mcpServers\": {\"verbatim\": {\"command\": \"verbatim\", \"args\": [\"mcp\"]}}}

The tools: get_transcript, search_transcript, list_languages, ask_video. What is new is fetched and archived, and
nobody is charged. A running server has the same tools at /mcp, for keys.")]
    Mcp,
    /// Where everything is kept: copy it from files to PostgreSQL, or back
    #[command(subcommand)]
    Storage(StorageCommand),
    /// Print every setting in effect, where it comes from, and what to watch out for
    CheckConfig,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim serve
  verbatim serve --listen 127.0.0.1:0 --data /tmp/trial
  VERBATIM_SERVER__BASE_URL=https://transcripts.example.org verbatim serve

Once it answers, it prints one line on standard output: verbatim VERSION listening on http://ADDRESS.
The first SIGTERM or Ctrl-C lets running requests finish; the second ends at once.")]
pub(super) struct Serve {
    /// Where to listen; port 0 picks a free one [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
}

impl Serve {
    /// The settings that the flags set.
    pub(super) fn flags(&self) -> Vec<(String, String, String)> {
        let listen = self.listen.map(|address| address.to_string());
        listen
            .map(|address| ("server.listen".to_owned(), "--listen".to_owned(), address))
            .into_iter()
            .collect()
    }
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim get https://www.youtube.com/watch?v=dQw4w9WgXcQ
  verbatim get dQw4w9WgXcQ --lang de --format json | jq .transcript
  verbatim get dQw4w9WgXcQ --format srt > talk.srt

Exit status 3: there is no transcript; standard error says why, and its last line is the watch address.")]
pub(super) struct Get {
    /// The link to the video, in any form that people use; or a YouTube id
    #[arg(value_name = "LINK", allow_hyphen_values = true)]
    pub(super) link: String,
    /// The language, such as en, pt-BR or zh-Hant [default: English, else the spoken language]
    #[arg(long, value_name = "TAG")]
    pub(super) lang: Option<String>,
    /// The form of the transcript
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,
}

/// The forms of a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// The look-up API's JSON
    Json,
    /// Plain prose
    Text,
    /// Markdown with times
    Md,
    /// SRT subtitles
    Srt,
    /// WebVTT subtitles
    Vtt,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim import talk.vtt --video https://youtu.be/dQw4w9WgXcQ --lang en --title \"The talk\"
  ffmpeg -i talk.mkv -f srt - | verbatim import - --video dQw4w9WgXcQ --lang en
  verbatim import Downloads/subtitles --dry-run
  verbatim import transcripts.json backup

Forms: WebVTT, SRT, TTML, YouTube's XML and json3; `verbatim archive export`; the look-up API's JSON; what
youtube-transcript-api writes as JSON.
Without --video, the video comes from the file itself, from the .info.json that yt-dlp wrote beside it, or
from its name: 'Title [ID].en.vtt', 'Title-ID.en.vtt', 'ID.en.srt', 'video_site/ID/en.vtt'. So does the
language without --lang, also from the header of WebVTT (Language: en).
What cannot be read is told: characters, which become U+FFFD, and cues without readable times, which are left
out.
In folders, files with other endings are passed over, and links that lead out of the folder are not
followed. Nothing is ever fetched. What is archived already stays, unless --replace is given.
Exit status 1: some files could not be imported; the others were.")]
pub(super) struct Import {
    /// Files and folders; - reads standard input
    #[arg(value_name = "PATH", required = true)]
    pub(super) paths: Vec<PathBuf>,
    /// The link to the video that the one file is of
    #[arg(long, value_name = "LINK", allow_hyphen_values = true)]
    pub(super) video: Option<String>,
    /// The language, such as en, pt-BR or zh-Hant
    #[arg(long, value_name = "TAG")]
    pub(super) lang: Option<String>,
    /// The video's title; with one file only
    #[arg(long)]
    pub(super) title: Option<String>,
    /// Who published the video; with one file only
    #[arg(long)]
    pub(super) author: Option<String>,
    /// A machine recognised the words
    #[arg(long)]
    pub(super) generated: bool,
    /// Replace what is archived in that language
    #[arg(long)]
    pub(super) replace: bool,
    /// Only tell what would be done
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print a line of JSON for each transcript
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum KeysCommand {
    /// Make keys; each is printed once, on a line of its own
    Create(CreateKeys),
    /// List all keys with what they have used, oldest first
    List(ListKeys),
    /// Revoke a key; a running server refuses it from its next request on
    Revoke(RevokeKey),
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim keys list
  verbatim keys list --json | jq -r '.[] | select(.plan == \"plus\") | .id'

Used and allowance are those of the current period: the month, or the day for plus keys (UTC).")]
pub(super) struct ListKeys {
    /// Print a JSON array
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Example:
  verbatim keys revoke key-0123456789abcdef0123456789abcdef

Exit status 1: there is no live key with that id.")]
pub(super) struct RevokeKey {
    /// The key's id, as `keys list` shows it; not the key itself
    #[arg(value_name = "ID")]
    pub(super) id: String,
}

#[derive(Args, Debug)]
pub(super) struct CreateKeys {
    /// What the keys are called
    #[arg(long)]
    pub(super) label: Option<String>,
    /// The e-mail address of their owner
    #[arg(long)]
    pub(super) email: Option<String>,
    /// How many
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) count: u32,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_unit_and_the_container_start_a_server() {
        let unit = include_str!("../../../deploy/verbatim.service");
        let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
        let arguments = Arguments::try_parse_from(line.split(' ')).unwrap();
        assert!(matches!(arguments.command, Command::Serve(_)), "{line}");
        assert_eq!(arguments.common.data.as_deref(), Some(std::path::Path::new("/var/lib/verbatim")));
        assert!(unit.contains("\nStateDirectory=verbatim\n"), "which is that folder");

        let container = include_str!("../../../deploy/Dockerfile");
        let command = container.lines().find_map(|line| line.strip_prefix("CMD ")).unwrap();
        let command: Vec<String> = serde_json::from_str(command).unwrap();
        let line = ["verbatim".to_owned()].into_iter().chain(command);
        assert!(matches!(Arguments::try_parse_from(line).unwrap().command, Command::Serve(_)));
        let variables = container.lines().find_map(|line| line.strip_prefix("ENV ")).unwrap().split(' ');
        let environment = variables.map(|variable| variable.split_once('=').unwrap());
        let environment = environment.map(|(name, value)| (name.into(), value.into())).collect();
        let sources =
            crate::config::Sources { data: "/data".into(), file: None, environment, flags: Vec::new() };
        let settings = crate::config::Settings::load(sources).unwrap();
        assert_eq!(settings.server.listen.to_string(), "0.0.0.0:8080");
    }

    #[test]
    fn ids_that_begin_with_a_hyphen_are_links() {
        let arguments =
            Arguments::try_parse_from(["verbatim", "get", "-wtIMTCHWuI", "--format", "md"]).unwrap();
        let Command::Get(get) = arguments.command else { panic!("{arguments:?}") };
        assert_eq!((get.link.as_str(), get.format), ("-wtIMTCHWuI", Format::Md));
    }

    #[test]
    fn common_flags_stand_anywhere() {
        for line in
            [["verbatim", "--data", "/d", "check-config"], ["verbatim", "check-config", "--data", "/d"]]
        {
            let arguments = Arguments::try_parse_from(line).unwrap();
            assert_eq!(arguments.common.data.as_deref(), Some(std::path::Path::new("/d")));
        }
    }
}
