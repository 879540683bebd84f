//! Runs ffmpeg: without a shell, with standard streams only, with a time limit, and stopped on drop.

use std::{
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use futures_util::future::try_join3;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    time::timeout,
};

use super::failure::SpeechFailure;
use crate::process::{ProcessGroup, ResourceLimits};

/// Environment variables that ffmpeg receives: the paths of the program and its libraries.
const ENVIRONMENT: [&str; 4] = ["PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH"];
/// Arguments of every run.
///
/// They disable prompts, the banner and all protocols but files and pipes, and limit the memory that a malicious file
/// can request.
const BASE_ARGUMENTS: [&str; 10] = [
    "-nostdin",
    "-hide_banner",
    "-loglevel",
    "error",
    "-max_alloc",
    "134217728",
    "-threads",
    "1",
    "-protocol_whitelist",
    "file,pipe",
];
/// Limit of writable memory in bytes, on systems that support it.
const MEMORY_MAX: u64 = 1 << 30;
/// Maximum of error output that is kept, in bytes.
const ERROR_OUTPUT_MAX: u64 = 8 << 10;

/// The ffmpeg program.
#[derive(Debug)]
pub(super) struct Ffmpeg(PathBuf);

impl Ffmpeg {
    pub(super) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Starts ffmpeg with these arguments.
    ///
    /// # Errors
    /// [`SpeechFailure::NoProgram`] when the program is missing or not executable.
    pub(super) fn start<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
        stdin: Stdio,
    ) -> Result<FfmpegHandle, SpeechFailure> {
        let mut command = Command::new(&self.0);
        command.args(BASE_ARGUMENTS).args(arguments).env_clear().env("LC_ALL", "C");
        for name in ENVIRONMENT {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        // ffmpeg writes no file.
        let limits = ResourceLimits { memory: MEMORY_MAX, file: 0 };
        let (child, group) = ProcessGroup::spawn(&mut command, limits).map_err(|error| {
            tracing::warn!(%error, "ffmpeg start failed");
            match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => SpeechFailure::NoProgram,
                _ => SpeechFailure::ProgramFailed,
            }
        })?;
        Ok(FfmpegHandle { child, group })
    }
}

/// A running ffmpeg, which is stopped on drop.
#[derive(Debug)]
pub(super) struct FfmpegHandle {
    child: Child,
    group: ProcessGroup,
}

/// How a run ended.
#[derive(Debug)]
pub(super) struct FfmpegExit {
    pub(super) status: ExitStatus,
    /// The first part of its error output.
    pub(super) error_output: String,
}

impl FfmpegHandle {
    /// Waits for the end of the run, at most `limit`.
    ///
    /// `feed` writes the input of the program and `take` reads its output. `feed` receives `None` if the input is a
    /// file.
    ///
    /// # Errors
    /// The errors of `feed` and `take`; [`SpeechFailure::ProgramFailed`] after the time limit.
    pub(super) async fn end<T>(
        mut self,
        limit: Duration,
        feed: impl AsyncFnOnce(Option<ChildStdin>) -> Result<(), SpeechFailure>,
        take: impl AsyncFnOnce(ChildStdout) -> Result<T, SpeechFailure>,
    ) -> Result<(T, FfmpegExit), SpeechFailure> {
        let failed = || SpeechFailure::ProgramFailed;
        let stdin = self.child.stdin.take();
        let stdout = self.child.stdout.take().ok_or_else(failed)?;
        let stderr = self.child.stderr.take().ok_or_else(failed)?;
        let run = async {
            let streams = try_join3(feed(stdin), take(stdout), error_output(stderr));
            let ((), taken, error_output) = streams.await?;
            let status = self.child.wait().await.map_err(|_| SpeechFailure::ProgramFailed)?;
            drop(self.group);
            Ok((taken, FfmpegExit { status, error_output }))
        };
        timeout(limit, run).await.unwrap_or_else(|_| Err(failed()))
    }
}

/// Reads the error output and keeps its first part.
///
/// The remainder is drained so that ffmpeg does not block.
async fn error_output(mut stderr: ChildStderr) -> Result<String, SpeechFailure> {
    let failed = |_| SpeechFailure::ProgramFailed;
    let mut kept = Vec::new();
    (&mut stderr).take(ERROR_OUTPUT_MAX).read_to_end(&mut kept).await.map_err(failed)?;
    drain(stderr).await.map_err(failed)?;
    Ok(String::from_utf8_lossy(&kept).into_owned())
}

async fn drain(mut from: impl AsyncRead + Unpin) -> io::Result<()> {
    tokio::io::copy(&mut from, &mut tokio::io::sink()).await.map(drop)
}
