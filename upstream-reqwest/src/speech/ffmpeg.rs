//! Running ffmpeg: without a shell, with nothing but what it is given on its standard streams, for a limited
//! time, and never for longer than somebody waits for it.

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

use super::refusal::Refusal;
use crate::program::{Group, Room};

/// What it may see of our environment: where it and its libraries are.
const ENVIRONMENT: [&str; 4] = ["PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH"];
/// What every run begins with: no questions, no greeting, no protocol but files and pipes, and no room for what
/// a hostile file says that it needs.
const MANNERS: [&str; 10] = [
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
/// The memory that it may write to, in bytes; where the system keeps such limits.
const MEMORY_MAX: u64 = 1 << 30;
/// How much of its complaints is read.
const COMPLAINT_MAX: u64 = 8 << 10;

/// The ffmpeg program.
#[derive(Debug)]
pub(super) struct Ffmpeg(PathBuf);

impl Ffmpeg {
    pub(super) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Starts it with these arguments.
    ///
    /// # Errors
    /// [`Refusal::NoProgram`] when there is none that can be run.
    pub(super) fn start<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
        stdin: Stdio,
    ) -> Result<Running, Refusal> {
        let mut command = Command::new(&self.0);
        command.args(MANNERS).args(arguments).env_clear().env("LC_ALL", "C");
        for name in ENVIRONMENT {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        // It writes no file at all.
        let room = Room { memory: MEMORY_MAX, file: 0 };
        let (child, group) = Group::spawn(&mut command, room).map_err(|error| {
            tracing::warn!(%error, "ffmpeg cannot be run");
            match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => Refusal::NoProgram,
                _ => Refusal::ProgramFailed,
            }
        })?;
        Ok(Running { child, group })
    }
}

/// A run of it, which ends at the latest with this value.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    group: Group,
}

/// How a run ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    /// What it complained about, in part.
    pub(super) complaint: String,
}

impl Running {
    /// Lets it run to its end, which comes within `limit`, while `feed` writes its input and `take` reads its
    /// output; `feed` gets nothing where it reads from elsewhere.
    ///
    /// # Errors
    /// What `feed` and `take` say; [`Refusal::ProgramFailed`] when it takes too long.
    pub(super) async fn end<T>(
        mut self,
        limit: Duration,
        feed: impl AsyncFnOnce(Option<ChildStdin>) -> Result<(), Refusal>,
        take: impl AsyncFnOnce(ChildStdout) -> Result<T, Refusal>,
    ) -> Result<(T, Ended), Refusal> {
        let failed = || Refusal::ProgramFailed;
        let stdin = self.child.stdin.take();
        let stdout = self.child.stdout.take().ok_or_else(failed)?;
        let stderr = self.child.stderr.take().ok_or_else(failed)?;
        let run = async {
            let streams = try_join3(feed(stdin), take(stdout), complaint(stderr));
            let ((), taken, complaint) = streams.await?;
            let status = self.child.wait().await.map_err(|_| Refusal::ProgramFailed)?;
            drop(self.group);
            Ok((taken, Ended { status, complaint }))
        };
        timeout(limit, run).await.unwrap_or_else(|_| Err(failed()))
    }
}

/// Its complaints: the beginning of them is kept, the rest is read so that it is never held up.
async fn complaint(mut stderr: ChildStderr) -> Result<String, Refusal> {
    let failed = |_| Refusal::ProgramFailed;
    let mut kept = Vec::new();
    (&mut stderr).take(COMPLAINT_MAX).read_to_end(&mut kept).await.map_err(failed)?;
    drain(stderr).await.map_err(failed)?;
    Ok(String::from_utf8_lossy(&kept).into_owned())
}

async fn drain(mut from: impl AsyncRead + Unpin) -> io::Result<()> {
    tokio::io::copy(&mut from, &mut tokio::io::sink()).await.map(drop)
}
