//! Runs a program and collects its output.
//!
//! There is no shell, the environment is complete and explicit, standard input is empty and the output is bounded. The
//! program is stopped with its child processes at its deadline, on cancellation, and when the future is dropped.

use std::{ffi::OsString, io, path::PathBuf, process::Stdio, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::Command,
    time::{Instant, interval, sleep_until},
};
use transcript_core::supplier::SupplyMonitor;

use super::group::{ProcessGroup, ResourceLimits};

/// Interval of the cancellation check.
const CANCEL_CHECK: Duration = Duration::from_millis(200);

/// A program to run.
#[derive(Clone, Debug)]
pub(crate) struct ProgramCommand {
    /// Path of the program.
    pub(crate) path: PathBuf,
    /// Its arguments; they never pass through a shell.
    pub(crate) arguments: Vec<OsString>,
    /// Its whole environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Its working directory.
    pub(crate) folder: PathBuf,
    /// When it is stopped.
    pub(crate) deadline: Instant,
    /// Maximum of standard output in bytes; it is stopped if it prints more.
    pub(crate) output_max: u64,
    /// Its resource limits.
    pub(crate) room: ResourceLimits,
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProgramExit {
    /// Its exit status; `None` if a signal ended it.
    pub(crate) status: Option<i32>,
    /// Its standard output.
    pub(crate) output: Vec<u8>,
    /// The last part of its standard error.
    pub(crate) errors: String,
}

/// Why a run failed.
#[derive(Debug)]
pub(crate) enum ProgramError {
    /// The program could not be started.
    Start(io::Error),
    /// The deadline passed.
    Timeout,
    /// The output exceeded its limit.
    TooMuch,
    /// Reading the output failed.
    Broken(io::Error),
    /// No waiter is left.
    Cancelled,
}

/// Maximum of standard error that is kept in bytes: its end, which contains the reason.
const ERRORS_KEPT: usize = 16 << 10;
/// Number of bytes of standard output for which each read has room.
const READ_SIZE: usize = 8 << 10;

impl ProgramCommand {
    /// Runs the program to its end.
    ///
    /// Dropping the future stops the program and all its child processes.
    ///
    /// # Errors
    /// The program cannot be started, misses its deadline, prints too much, or the run is cancelled. An exit status
    /// other than 0 is not an error.
    pub(crate) async fn run(&self, monitor: &dyn SupplyMonitor) -> Result<ProgramExit, ProgramError> {
        let mut output = Vec::new();
        let (status, errors) = self.run_into(&mut output, monitor).await?;
        Ok(ProgramExit { status, output, errors })
    }

    /// As [`ProgramCommand::run`], with standard output written to `output`, also if the run fails.
    ///
    /// Returns the exit status and the last part of standard error.
    ///
    /// # Errors
    /// As [`ProgramCommand::run`].
    pub(crate) async fn run_into(
        &self,
        output: &mut Vec<u8>,
        monitor: &dyn SupplyMonitor,
    ) -> Result<(Option<i32>, String), ProgramError> {
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
        let (mut child, group) = ProcessGroup::spawn(&mut command, self.room).map_err(ProgramError::Start)?;
        let (from, errors) = (child.stdout.take(), child.stderr.take());
        let ending = async {
            let status = child.wait().await.map_err(ProgramError::Broken)?;
            // Stop remaining child processes too: they may hold the output open.
            drop(group);
            Ok(status.code())
        };
        let work = async {
            let read = read_all(from, self.output_max, output);
            let (status, (), errors) = tokio::try_join!(ending, read, read_tail(errors, ERRORS_KEPT))?;
            Ok((status, errors))
        };
        tokio::select! {
            ended = work => ended,
            () = sleep_until(self.deadline) => Err(ProgramError::Timeout),
            () = cancelled(monitor) => Err(ProgramError::Cancelled),
        }
    }
}

/// Reads all output, up to a limit. A dropped future leaves what it has read.
async fn read_all(
    from: Option<impl AsyncRead + Unpin>,
    limit: u64,
    all: &mut Vec<u8>,
) -> Result<(), ProgramError> {
    let Some(from) = from else { return Ok(()) };
    let mut from = from.take(limit.saturating_add(1));
    loop {
        all.reserve(READ_SIZE);
        if from.read_buf(all).await.map_err(ProgramError::Broken)? == 0 {
            break;
        }
    }
    if all.len() as u64 > limit { Err(ProgramError::TooMuch) } else { Ok(()) }
}

/// Reads all output and keeps the last part.
async fn read_tail(from: Option<impl AsyncRead + Unpin>, keep: usize) -> Result<String, ProgramError> {
    let Some(mut from) = from else { return Ok(String::new()) };
    let mut kept: Vec<u8> = Vec::new();
    let mut part = vec![0; 4 << 10];
    loop {
        let read = from.read(&mut part).await.map_err(ProgramError::Broken)?;
        let Some(part) = part.get(..read).filter(|part| !part.is_empty()) else { break };
        kept.extend_from_slice(part);
        let over = kept.len().saturating_sub(keep);
        kept.drain(..over);
    }
    Ok(String::from_utf8_lossy(&kept).into_owned())
}

/// Returns when the run is cancelled.
async fn cancelled(monitor: &dyn SupplyMonitor) {
    let mut ticks = interval(CANCEL_CHECK);
    while !monitor.is_cancelled() {
        ticks.tick().await;
    }
}

#[cfg(test)]
mod tests;
