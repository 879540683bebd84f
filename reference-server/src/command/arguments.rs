//! Arguments of the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use transcript_core::captions::TextFormat;

use super::{
    accounts_arguments::AccountsCommand,
    admin_arguments::{AdminTokensCommand, AuditLogArgs},
    archive_arguments::{ArchiveCommand, LedgerCommand},
    get_arguments::GetArgs,
    health::HealthArgs,
    jobs::JobsCommand,
    keys_arguments::KeysCommand,
    search::SearchArgs,
    shell::{CompletionsArgs, ManPagesArgs},
    storage::StorageCommand,
    version::long_version,
    webhook::WebhookCommand,
};

/// Get, archive and serve timestamped transcripts of YouTube, TikTok, Instagram and X videos
#[derive(Debug, Parser)]
#[command(
    name = "verbatim",
    version,
    long_version = long_version(),
    max_term_width = 100,
    after_help = "Examples:
  verbatim get https://youtu.be/dQw4w9WgXcQ
  verbatim get dQw4w9WgXcQ --format md > talk.md
  verbatim get PLAYLIST CHANNEL --to transcripts
  verbatim serve --listen 0.0.0.0:8080 --data /var/lib/verbatim
  verbatim import talk.srt --video https://youtu.be/dQw4w9WgXcQ --lang en
  verbatim import Downloads/subtitles
  verbatim search tide tables
  verbatim archive withdraw https://youtu.be/dQw4w9WgXcQ
  verbatim keys create --label laptop

All commands share one archive, in the data folder, and can run at the same time.
Exit status: 0 success; 1 a failure; 2 a wrong link, option or setting; 3 no transcript; 4 some transcripts."
)]
pub(super) struct CommandArgs {
    #[command(flatten)]
    pub(super) common: CommonArgs,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// Arguments of every command.
#[derive(Args, Debug)]
pub(super) struct CommonArgs {
    /// Data folder.
    #[arg(
        long,
        global = true,
        help_heading = "Global options",
        value_name = "DIR",
        help = "Data folder, with the archive, keys and ledger [default: $VERBATIM_DATA, otherwise the user's data folder]"
    )]
    pub(super) data: Option<PathBuf>,
    /// Settings file.
    #[arg(
        long,
        global = true,
        help_heading = "Global options",
        value_name = "FILE",
        help = "Settings file, in TOML [default: $VERBATIM_CONFIG]; `verbatim check-config` prints all settings"
    )]
    pub(super) config: Option<PathBuf>,
}

/// The format of a result.
#[derive(Args, Debug)]
pub(super) struct JsonArgs {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// The format of a list.
#[derive(Args, Debug)]
pub(super) struct JsonListArgs {
    /// Print a JSON array
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Serve both APIs and the watch pages over HTTP
    Serve(ServeArgs),
    /// Get the transcripts of videos, playlists and channels; fetch and archive those that are new
    Get(GetArgs),
    /// Import caption files or folders
    Import(ImportArgs),
    /// Search all archived transcripts, and maintain the index of the search
    Search(SearchArgs),
    /// Manage the archive: show, export, delete, withdraw, refresh, compact, verify, list, stats
    #[command(subcommand)]
    Archive(ArchiveCommand),
    /// Manage API keys of the lookup API: create, list, set, revoke
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Manage accounts of the v1 API: create, new-key, list, show, grant, revoke-grant, block, unblock, statement,
    /// export, delete
    #[command(subcommand)]
    Accounts(AccountsCommand),
    /// Manage the jobs of accounts: list, pause, resume
    #[command(subcommand)]
    Jobs(JobsCommand),
    /// Check the ledger
    #[command(subcommand)]
    Ledger(LedgerCommand),
    /// Manage the tokens of the admin API: create, list, revoke
    #[command(subcommand)]
    AdminTokens(AdminTokensCommand),
    /// Verify the signature of a webhook
    #[command(subcommand)]
    Webhook(WebhookCommand),
    /// Print the audit log: what operators did, newest first
    AuditLog(AuditLogArgs),
    /// Serve the archive as MCP tools on standard input and output
    #[cfg(feature = "mcp")]
    #[command(after_help = "Example, as the configuration of an assistant:
  {\"mcpServers\": {\"verbatim\": {\"command\": \"verbatim\", \"args\": [\"mcp\"]}}}

Tools: get_transcript, search_transcript, search_archive, list_languages, list_videos, ask_video. New transcripts are \
fetched and archived, free of charge. A running server has them at /mcp, with those for jobs. Archived transcripts \
need no key there.")]
    Mcp,
    /// Copy all data from files to PostgreSQL, or back
    #[command(subcommand)]
    Storage(StorageCommand),
    /// Print every effective setting, its origin, and warnings
    CheckConfig(CheckConfigArgs),
    /// Ask the server at server.listen whether it serves: for supervisors and container health checks
    Health(HealthArgs),
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Write manual pages into a folder
    ManPages(ManPagesArgs),
}

#[derive(Args, Debug)]
#[command(after_help = "Example, before a server starts:
  verbatim check-config --config /etc/verbatim/verbatim.toml --connect

Exit status 1: a database cannot be reached; 2: a setting is invalid.")]
pub(super) struct CheckConfigArgs {
    /// Also connect to the databases: print versions, and whether the connections of all servers fit. Changes nothing
    #[arg(long)]
    pub(super) connect: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim serve
  verbatim serve --listen 127.0.0.1:0 --data /tmp/trial
  VERBATIM_SERVER__BASE_URL=https://transcripts.example.org verbatim serve

Once it serves, it prints one line on standard output: verbatim VERSION listening on http://ADDRESS. On a \
terminal, first steps follow.
After the first SIGTERM or Ctrl-C running requests finish; the second ends the server at once. SIGHUP \
reloads the settings, SIGUSR1 switches the log level between debug and log.level.")]
pub(super) struct ServeArgs {
    /// Listening address, or a path after `unix:`; port 0 selects a free port [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,
}

impl ServeArgs {
    /// Returns the settings set by flags.
    pub(super) fn flags(&self) -> Vec<(String, String, String)> {
        self.listen
            .clone()
            .map(|address| ("server.listen".to_owned(), "--listen".to_owned(), address))
            .into_iter()
            .collect()
    }
}

/// Formats of a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputFormat {
    /// JSON of the lookup API
    Json,
    /// Plain text
    Text,
    /// Markdown with timestamps
    Md,
    /// SRT subtitles
    Srt,
    /// WebVTT subtitles
    Vtt,
}

impl OutputFormat {
    /// Returns the text format; `None` for JSON.
    pub(super) fn text_format(self) -> Option<TextFormat> {
        match self {
            Self::Json => None,
            Self::Text => Some(TextFormat::Text),
            Self::Md => Some(TextFormat::Markdown),
            Self::Srt => Some(TextFormat::Srt),
            Self::Vtt => Some(TextFormat::WebVtt),
        }
    }

    /// Extension of its files.
    pub(super) fn extension(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Text => "txt",
            Self::Md => "md",
            Self::Srt => "srt",
            Self::Vtt => "vtt",
        }
    }
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim import talk.vtt --video https://youtu.be/dQw4w9WgXcQ --lang en --title \"The talk\"
  ffmpeg -i talk.mkv -f srt - | verbatim import - --video dQw4w9WgXcQ --lang en
  verbatim import Downloads/subtitles --dry-run
  verbatim import transcripts.json backup

Formats: WebVTT, SRT, SBV, TTML, YouTube's XML and json3, TikTok's and Whisper's JSON; `verbatim archive export`; JSON \
of the lookup API; JSON of youtube-transcript-api.
Without --video, the video is read from the file, from the .info.json of yt-dlp next to it, or from its \
name: 'Title [ID].en.vtt', 'Title-ID.en.vtt', 'ID.en.srt', 'video_site/ID/en.vtt'. Without --lang, so is the \
language, also from the header of WebVTT (Language: en). Title, author, date, description and chapters are \
also read from the .info.json.
Unreadable characters, which become U+FFFD, and cues without readable times, which are left out, are reported.
In folders, files with other endings are skipped, and links that lead out of the folder are not followed. \
Nothing is fetched. Archived transcripts are kept, unless --replace is given.
Exit status 1: files failed; all others were imported.")]
pub(super) struct ImportArgs {
    /// Files and folders; - reads standard input
    #[arg(value_name = "PATH", required = true)]
    pub(super) paths: Vec<PathBuf>,
    /// Link to the video, with one file only
    #[arg(long, value_name = "LINK", allow_hyphen_values = true)]
    pub(super) video: Option<String>,
    /// Language, such as en, pt-BR or zh-Hant; selects one of TTML with several
    #[arg(long, value_name = "TAG")]
    pub(super) lang: Option<String>,
    /// Title of the video, with one file only
    #[arg(long)]
    pub(super) title: Option<String>,
    /// Author of the video, with one file only
    #[arg(long)]
    pub(super) author: Option<String>,
    /// Mark the text as recognised by a machine, as automatic captions of YouTube and Whisper's JSON are without it
    #[arg(long)]
    pub(super) generated: bool,
    /// Replace archived transcripts in that language
    #[arg(long)]
    pub(super) replace: bool,
    /// Report without writing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print a line of JSON per transcript
    #[arg(long)]
    pub(super) json: bool,
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, error::ErrorKind};

    use super::*;

    #[test]
    fn command_line_definition_is_valid() {
        CommandArgs::command().debug_assert();
    }

    #[test]
    fn unit_and_container_start_server() {
        let unit = include_str!("../../../deploy/verbatim.service");
        let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
        let arguments = CommandArgs::try_parse_from(line.split(' ')).unwrap();
        assert!(matches!(arguments.command, Command::Serve(_)), "{line}");
        assert_eq!(arguments.common.data.as_deref(), Some(std::path::Path::new("/var/lib/verbatim")));
        assert!(unit.contains("\nExecReload=/bin/kill -HUP $MAINPID\n"));
        assert!(unit.contains("\nStateDirectory=verbatim\n"), "the state directory must be the data folder");

        let container = include_str!("../../../deploy/Dockerfile");
        let command = container.lines().find_map(|line| line.strip_prefix("CMD ")).unwrap();
        let command: Vec<String> = serde_json::from_str(command).unwrap();
        let line = ["verbatim".to_owned()].into_iter().chain(command);
        assert!(matches!(CommandArgs::try_parse_from(line).unwrap().command, Command::Serve(_)));
        let variables = container.lines().find_map(|line| line.strip_prefix("ENV ")).unwrap().split(' ');
        let environment = variables.map(|variable| variable.split_once('=').unwrap());
        let environment = environment.map(|(name, value)| (name.into(), value.into())).collect();
        let sources = crate::config::SettingSources {
            data: "/data".into(),
            file: None,
            environment,
            flags: Vec::new(),
        };
        let settings = crate::config::Settings::load(sources).unwrap();
        assert_eq!(settings.server.listen.to_string(), "0.0.0.0:8080");
    }

    #[test]
    fn link_with_leading_hyphen_is_accepted() {
        let arguments =
            CommandArgs::try_parse_from(["verbatim", "get", "-wtIMTCHWuI", "--format", "md"]).unwrap();
        let Command::Get(get) = arguments.command else { panic!("{arguments:?}") };
        assert!(get.links().eq(["-wtIMTCHWuI"]) && get.format == OutputFormat::Md, "{get:?}");
    }

    #[test]
    fn several_links_and_options_mix() {
        let line =
            ["verbatim", "get", "-wtIMTCHWuI", "--to", "d", "@name", "--limit", "3", "--", "--x01234567"];
        let Command::Get(get) = CommandArgs::try_parse_from(line).unwrap().command else {
            panic!("{line:?}")
        };
        assert!(get.links().eq(["-wtIMTCHWuI", "@name", "--x01234567"]), "{get:?}");
        assert_eq!((get.to, get.limit), (Some("d".into()), Some(3)));
        for wrong in [&["verbatim", "get"][..], &["verbatim", "get", "a", "--name", "{id}"]] {
            assert!(CommandArgs::try_parse_from(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn common_flags_are_accepted_after_command() {
        for line in
            [["verbatim", "--data", "/d", "check-config"], ["verbatim", "check-config", "--data", "/d"]]
        {
            let arguments = CommandArgs::try_parse_from(line).unwrap();
            assert_eq!(arguments.common.data.as_deref(), Some(std::path::Path::new("/d")));
        }
    }

    #[test]
    fn credits_out_of_range_name_range() {
        for (line, expect) in [
            ("verbatim accounts grant acme five", "give a number from 1 to 1000000000"),
            ("verbatim accounts grant acme -5", "give a number from 1 to 1000000000"),
            ("verbatim accounts create acme --credits -5", "give a number from 0 to 1000000000"),
        ] {
            let error = CommandArgs::try_parse_from(line.split(' ')).unwrap_err().to_string();
            assert!(error.contains("CREDITS") && error.contains(expect), "{line}: {error}");
        }
    }

    #[test]
    fn operations_guide_commands_exist() {
        let is_prefix = |word: &&str| ["$", "sudo"].contains(word) || word.starts_with("VERBATIM_");
        // A command without its arguments stands for all of its uses.
        let unfinished = [
            ErrorKind::MissingRequiredArgument,
            ErrorKind::MissingSubcommand,
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
        ];
        let mut count = 0;
        // Every second part is code, in a line or a block.
        let code = include_str!("../../../docs/operations.md").split('`').skip(1).step_by(2);
        for line in code.flat_map(str::lines) {
            let words =
                line.split_whitespace().skip_while(is_prefix).take_while(|word| !word.starts_with('>'));
            let words: Vec<_> = words.map(|word| if word == "CREDITS" { "5" } else { word }).collect();
            if matches!(words.first(), Some(&"verbatim" | &"verbatim-admin")) {
                count += 1;
                if let Err(error) = CommandArgs::try_parse_from(words) {
                    assert!(unfinished.contains(&error.kind()), "{line}: {error}");
                }
            }
        }
        assert!(count > 20, "{count}");
    }
}
