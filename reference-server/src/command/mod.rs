//! The command line: what each command takes, and how it ends.

mod accounts;
mod accounts_arguments;
mod archive;
mod archive_arguments;
mod archive_export;
mod archive_large;
mod arguments;
mod check_config;
mod confirm;
mod fetch_line;
mod get;
mod import;
mod keys;
mod ledger;
mod listing;
mod mcp;
mod opening;
mod progress;
mod serve;
mod storage;
mod terminal;

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use clap::Parser;
use etcetera::{BaseStrategy, choose_base_strategy};
use transcript_core::{Error, ErrorKind};

use crate::{
    bodies::EXPIRE,
    config::{Problem, Settings, Sources},
};
use archive_arguments::{ArchiveCommand, LedgerCommand};
use arguments::{Arguments, Command, Common};
use import::WITHDRAWN;
use opening::{open, open_archive, open_archive_to_look, open_existing, open_existing_archive};
use terminal::{print, print_json, shown, tell};

/// How a command ends when it does not end well.
#[derive(Debug)]
enum Failure {
    /// The caller gave something wrong, or a setting is: exit 2.
    Wrong(String),
    /// There is no transcript: exit 3. The second line is the watch address.
    Missing(String, String),
    /// Anything else: exit 1.
    Fault(String),
    /// Whoever read our output stopped reading: nothing is wrong, and nobody is left to tell.
    Unread,
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Wrong(problem.to_string())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Invalid => Self::Wrong(error.to_string()),
            _ => Self::Fault(error.to_string()),
        }
    }
}

impl Failure {
    fn end(self) -> ExitCode {
        let (text, code) = match self {
            Self::Wrong(text) => (text, 2),
            Self::Missing(text, watch_url) => {
                tell(&format!("{text}\n{watch_url}"));
                return ExitCode::from(3);
            }
            Self::Fault(text) => (text, 1),
            Self::Unread => return ExitCode::SUCCESS,
        };
        for line in text.lines() {
            tell(&format!("verbatim: {line}"));
        }
        ExitCode::from(code)
    }
}

/// Runs the command line with these arguments; the first is the program's own name.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version go to standard output and are no failure; a closed output is not ours.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match perform(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.end(),
    }
}

fn perform(arguments: Arguments) -> Result<(), Failure> {
    let flags = match &arguments.command {
        Command::Serve(serve) => serve.flags(),
        _ => Vec::new(),
    };
    let settings = settings(&arguments.common, flags)?;
    if let Command::CheckConfig = arguments.command {
        return check_config::run(&settings);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Fault(format!("no threads can be started: {error}")))?;
    let is_for_readers = changes_answers(&arguments.command);
    runtime.block_on(async {
        let ended = match arguments.command {
            Command::Serve(_) => serve::run(settings).await,
            Command::Get(get) => get::run(&settings, get).await,
            Command::Import(import) => import::run(&settings, import).await,
            Command::Archive(command) => archive::run(&settings, command).await,
            Command::Ledger(LedgerCommand::Audit(audit)) => ledger::run(&settings, audit).await,
            Command::Accounts(command) => accounts::run(&settings, command).await,
            Command::Keys(keys) => keys::run(&settings, keys).await,
            Command::Mcp => mcp::run(&settings).await,
            Command::Storage(command) => storage::run(&settings, command).await,
            Command::CheckConfig => Ok(()),
        };
        if is_for_readers {
            // When the command is over, every running server shows what it did.
            tokio::time::sleep(EXPIRE).await;
        }
        ended
    })
}

/// Whether a command changes what a running server answers.
fn changes_answers(command: &Command) -> bool {
    use ArchiveCommand::{Delete, Refresh, Withdraw};
    matches!(command, Command::Import(_) | Command::Archive(Delete(_) | Refresh(_) | Withdraw(_)))
}

/// All settings, from where the flags and the environment say.
fn settings(common: &Common, flags: Vec<(String, String, String)>) -> Result<Settings, Failure> {
    let named = |flag: &Option<PathBuf>, variable: &str| {
        let variable = || std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
        flag.clone().or_else(variable)
    };
    let data = match named(&common.data, "VERBATIM_DATA") {
        Some(data) => data,
        None => default_data()?,
    };
    let file = named(&common.config, "VERBATIM_CONFIG");
    Ok(Settings::load(Sources { data, file, environment: std::env::vars_os().collect(), flags })?)
}

/// The user's data folder (XDG): `~/.local/share/verbatim`.
fn default_data() -> Result<PathBuf, Failure> {
    let strategy = choose_base_strategy()
        .map_err(|_| Failure::Wrong("there is no home folder: name a data folder with --data".to_owned()))?;
    Ok(strategy.data_dir().join("verbatim"))
}
