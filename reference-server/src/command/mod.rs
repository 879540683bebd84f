//! The command line: commands, arguments and exit statuses.

mod accounts;
mod accounts_arguments;
mod admin;
mod admin_arguments;
mod archive;
mod archive_arguments;
mod archive_bulk;
mod archive_export;
mod archive_verify;
mod arguments;
mod bounded_file;
mod check_config;
mod confirm;
mod fetch_status;
mod get;
mod get_arguments;
mod health;
mod import;
mod jobs;
mod keys;
mod keys_arguments;
mod ledger;
mod listing;
#[cfg(feature = "mcp")]
mod mcp;
mod open;
mod output_file;
mod progress;
mod reload;
mod search;
mod serve;
pub(crate) mod service_builder;
mod shell;
mod storage;
mod terminal;
mod version;
mod webhook;

use std::{ffi::OsString, fmt, path::PathBuf, process::ExitCode};

use clap::Parser;
use etcetera::{BaseStrategy, choose_base_strategy};
use transcript_core::{Error, ErrorKind};

#[cfg(feature = "fuzzing")]
pub(crate) use import::fuzzing;

use crate::{
    config::{ConfigErrors, SettingSources, Settings},
    response_cache::EXPIRE,
};
use archive_arguments::{ArchiveCommand, LedgerCommand};
use arguments::{Command, CommandArgs, CommonArgs};
use import::WITHDRAWN;
use open::{
    open, open_any_archive, open_archive, open_archive_read_only, open_existing, open_existing_archive,
    open_existing_with_audit_log, open_with_audit_log, operations, report_missing_main_file, warn_unrecorded,
};
use terminal::{ignore_closed, print, print_json, print_stderr, shown, video_name};

/// Error of a command, with its exit status.
#[derive(Debug)]
enum CommandError {
    /// A wrong argument or setting: exit status 2.
    Wrong(String),
    /// No transcript: exit status 3. The second line is the watch address.
    Missing(String, String),
    /// Any other error: exit status 1.
    Fault(String),
    /// The command has printed all of it, and ends with this exit status.
    Reported(u8),
    /// The reader of standard output closed it: exit status 0. Commands that do more than print ignore it.
    OutputClosed,
}

impl From<ConfigErrors> for CommandError {
    fn from(problem: ConfigErrors) -> Self {
        Self::Wrong(problem.to_string())
    }
}

impl From<Error> for CommandError {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Invalid => Self::Wrong(error.to_string()),
            _ => Self::Fault(error.to_string()),
        }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong(text) | Self::Fault(text) | Self::Missing(text, _) => f.write_str(text),
            Self::Reported(status) => write!(f, "exit status {status}"),
            Self::OutputClosed => f.write_str("standard output is closed"),
        }
    }
}

impl CommandError {
    fn exit_code(self) -> ExitCode {
        let (text, code) = match self {
            Self::Wrong(text) => (text, 2),
            Self::Missing(text, watch_url) => {
                print_stderr(&format!("{text}\n{watch_url}"));
                return ExitCode::from(3);
            }
            Self::Fault(text) => (text, 1),
            Self::Reported(status) => return ExitCode::from(status),
            Self::OutputClosed => return ExitCode::SUCCESS,
        };
        for line in text.lines() {
            print_stderr(&format!("verbatim: {line}"));
        }
        ExitCode::from(code)
    }
}

/// Runs a command line; the first argument is the program's name.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match CommandArgs::try_parse_from(search::with_excluded_words(arguments)) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version go to standard output and are not errors; a closed output is ignored.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match perform(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.exit_code(),
    }
}

fn perform(arguments: CommandArgs) -> Result<(), CommandError> {
    // These need no settings, and packages run the first two at build time.
    match &arguments.command {
        Command::Completions(args) => return shell::print_completions(args),
        Command::ManPages(args) => return shell::write_man_pages(args),
        Command::Webhook(command) => return webhook::run(command),
        _ => {}
    }
    let flags = match &arguments.command {
        Command::Serve(serve) => serve.flags(),
        _ => Vec::new(),
    };
    let sources = sources(&arguments.common, flags)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::Fault(format!("cannot start threads: {error}")))?;
    if let Command::Health(args) = &arguments.command {
        return runtime.block_on(health::run(&Settings::listen_address(sources)?, args));
    }
    let settings = Settings::load(sources.clone())?;
    let is_change = changes_archive(&arguments.command);
    runtime.block_on(async {
        let ended = match arguments.command {
            Command::Serve(_) => serve::run(settings, sources).await,
            Command::Get(get) => get::run(&settings, get).await,
            Command::Import(import) => import::run(&settings, import).await,
            Command::Archive(command) => archive::run(&settings, command).await,
            Command::Ledger(LedgerCommand::Audit(audit)) => ledger::run(&settings, audit).await,
            Command::Accounts(command) => accounts::run(&settings, command).await,
            Command::Jobs(command) => jobs::run(&settings, command).await,
            Command::Keys(keys) => keys::run(&settings, keys).await,
            Command::AdminTokens(command) => admin::run_tokens(&settings, command).await,
            Command::AuditLog(args) => admin::run_audit_log(&settings, args).await,
            #[cfg(feature = "mcp")]
            Command::Mcp => mcp::run(&settings).await,
            Command::Search(args) => search::run(&settings, &arguments.common, &args).await,
            Command::Storage(command) => storage::run(&settings, command).await,
            Command::CheckConfig(args) => check_config::run(&settings, &args).await,
            Command::Completions(_) | Command::ManPages(_) | Command::Webhook(_) | Command::Health(_) => {
                Ok(())
            }
        };
        if is_change {
            // Afterwards every running server serves the change.
            tokio::time::sleep(EXPIRE).await;
        }
        ended
    })
}

/// Whether a command changes responses of a running server.
fn changes_archive(command: &Command) -> bool {
    use ArchiveCommand::{Delete, Refresh, Verify, Withdraw};
    match command {
        Command::Import(_) | Command::Archive(Delete(_) | Refresh(_) | Withdraw(_)) => true,
        Command::Archive(Verify(args)) => args.repair.is_some(),
        _ => false,
    }
}

/// Returns the sources of the settings.
fn sources(
    common: &CommonArgs,
    flags: Vec<(String, String, String)>,
) -> Result<SettingSources, CommandError> {
    let named = |flag: &Option<PathBuf>, variable: &str| {
        let variable = || std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
        flag.clone().or_else(variable)
    };
    let data = match named(&common.data, "VERBATIM_DATA") {
        Some(data) => data,
        None => default_data()?,
    };
    let file = named(&common.config, "VERBATIM_CONFIG");
    Ok(SettingSources { data, file, environment: std::env::vars_os().collect(), flags })
}

/// The user's data folder (XDG): `~/.local/share/verbatim`.
fn default_data() -> Result<PathBuf, CommandError> {
    let strategy = choose_base_strategy().map_err(|_| {
        CommandError::Wrong("there is no home folder: set the data folder with --data".to_owned())
    })?;
    Ok(strategy.data_dir().join("verbatim"))
}
