//! Running a program that prints its answer.
//!
//! No shell is asked, the environment is what is given and nothing else, standard input is empty, what is printed
//! is read up to a limit, and the program ends with those that it started: at its deadline, when nobody wants its
//! answer any more, and when whoever runs it is dropped.

use std::{ffi::OsString, io, path::PathBuf, process::Stdio, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::Command,
    time::{Instant, interval, sleep_until},
};
use transcript_core::supplier::Watcher;

use super::group::{Group, Room};

/// How often it is asked whether anybody still wants the answer.
const CANCEL_CHECK: Duration = Duration::from_millis(200);

/// A program to run.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// What it is told; never through a shell.
    pub(crate) arguments: Vec<OsString>,
    /// Its whole environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// The folder that it runs in.
    pub(crate) folder: PathBuf,
    /// When it is ended.
    pub(crate) deadline: Instant,
    /// How much it may print to standard output, in bytes; with more it is ended.
    pub(crate) output_max: u64,
    /// What it may take.
    pub(crate) room: Room,
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Its exit status; none when a signal ended it.
    pub(crate) status: Option<i32>,
    /// What it printed to standard output.
    pub(crate) output: Vec<u8>,
    /// The last of what it printed to standard error.
    pub(crate) errors: String,
}

/// Why a program gave no answer.
#[derive(Debug)]
pub(crate) enum ProgramFault {
    /// It could not be started.
    Start(io::Error),
    /// It took too long.
    Timeout,
    /// It printed more than it may.
    TooMuch,
    /// It could not be listened to.
    Broken(io::Error),
    /// Nobody wants its answer any more.
    Cancelled,
}

/// How much of standard error is kept: its end, where the reason is.
const ERRORS_KEPT: usize = 16 << 10;

impl Program {
    /// Runs it to its end.
    ///
    /// Dropping the future ends the program and all that it started.
    ///
    /// # Errors
    /// It cannot be started, takes too long or prints too much, or nobody wants the answer any more. An exit status
    /// other than 0 is none.
    pub(crate) async fn run(&self, watcher: &dyn Watcher) -> Result<Ended, ProgramFault> {
        let mut command = Command::new(&self.path);
        command
            .args(&self.arguments)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let (mut child, group) = Group::spawn(&mut command, self.room).map_err(ProgramFault::Start)?;
        let output = child.stdout.take();
        let errors = child.stderr.take();
        let ending = async {
            let status = child.wait().await.map_err(ProgramFault::Broken)?;
            // Those that it left behind end, too, also because they may hold its output open.
            drop(group);
            Ok(status.code())
        };
        let work = async {
            let (status, output, errors) =
                tokio::try_join!(ending, whole(output, self.output_max), tail(errors, ERRORS_KEPT))?;
            Ok(Ended { status, output, errors })
        };
        tokio::select! {
            ended = work => ended,
            () = sleep_until(self.deadline) => Err(ProgramFault::Timeout),
            () = cancelled(watcher) => Err(ProgramFault::Cancelled),
        }
    }
}

/// All of what is printed, up to a limit.
async fn whole(from: Option<impl AsyncRead + Unpin>, limit: u64) -> Result<Vec<u8>, ProgramFault> {
    let mut all = Vec::new();
    let Some(from) = from else { return Ok(all) };
    from.take(limit.saturating_add(1)).read_to_end(&mut all).await.map_err(ProgramFault::Broken)?;
    if all.len() as u64 > limit { Err(ProgramFault::TooMuch) } else { Ok(all) }
}

/// The last of what is printed.
async fn tail(from: Option<impl AsyncRead + Unpin>, keep: usize) -> Result<String, ProgramFault> {
    let Some(mut from) = from else { return Ok(String::new()) };
    let mut kept: Vec<u8> = Vec::new();
    let mut part = vec![0; 4 << 10];
    loop {
        let read = from.read(&mut part).await.map_err(ProgramFault::Broken)?;
        let Some(part) = part.get(..read).filter(|part| !part.is_empty()) else { break };
        kept.extend_from_slice(part);
        let over = kept.len().saturating_sub(keep);
        kept.drain(..over);
    }
    Ok(String::from_utf8_lossy(&kept).into_owned())
}

/// Ends when nobody wants the answer any more.
async fn cancelled(watcher: &dyn Watcher) {
    let mut ticks = interval(CANCEL_CHECK);
    while !watcher.cancelled() {
        ticks.tick().await;
    }
}

#[cfg(test)]
mod tests;
