//! Measured processes: their CPU time, memory and first line of output.

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};

/// A running server; drop kills it.
#[derive(Debug)]
pub(crate) struct BenchServer {
    child: Child,
    address: String,
}

impl BenchServer {
    /// Starts a program whose first line of output ends with its address.
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("no standard output")?;
        BufReader::new(stdout).read_line(&mut line)?;
        let server = |address: &str| Self { child, address: address.to_owned() };
        let (_, address) = line.trim_end().rsplit_once("http://").context("the server did not start")?;
        Ok(server(address))
    }

    /// Its listen address: `127.0.0.1:PORT`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// CPU time of all its threads so far, see [`cpu_seconds`].
    pub(crate) fn cpu_seconds(&self) -> Result<f64> {
        cpu_seconds(self.child.id())
    }

    /// Its resident memory in MiB.
    pub(crate) fn resident_mib(&self) -> Result<f64> {
        status_mib(self.child.id(), "VmRSS:")
    }

    /// Its peak resident memory in MiB.
    pub(crate) fn peak_mib(&self) -> Result<f64> {
        status_mib(self.child.id(), "VmHWM:")
    }

    /// Sum of the peak resident memory of its running child processes, in MiB.
    pub(crate) fn programs_mib(&self) -> Result<f64> {
        let mut all = 0.0;
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            // A thread or a child process may end while it is read.
            let children = std::fs::read_to_string(thread?.path().join("children")).unwrap_or_default();
            let children = children.split_whitespace().filter_map(|id| id.parse().ok());
            all += children.filter_map(|id| status_mib(id, "VmHWM:").ok()).sum::<f64>();
        }
        Ok(all)
    }
}

/// A figure of `/proc/PROCESS/status`, in MiB.
pub(crate) fn status_mib(process: u32, name: &str) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line =
        status.lines().find_map(|line| line.strip_prefix(name)).with_context(|| format!("no {name}"))?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib / 1024.0)
}

/// CPU time of all threads of a process so far, in seconds: user and system, in steps of 10 ms.
pub(crate) fn cpu_seconds(process: u32) -> Result<f64> {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name in brackets may have spaces; fields 14 and 15 are the 12th and 13th after it.
    let (_, fields) = stat.rsplit_once(')').context("/proc has no name of the process")?;
    let ticks: Result<Vec<u64>, _> = fields.split_whitespace().skip(11).take(2).map(str::parse).collect();
    Ok(ticks?.iter().sum::<u64>() as f64 / TICKS_PER_SECOND)
}

impl Drop for BenchServer {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The `verbatim` command with the profile of this program. It is built once.
pub(crate) fn verbatim_binary() -> Result<PathBuf> {
    static BUILT: Mutex<Option<PathBuf>> = Mutex::new(None);
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(binary) = &*built {
        return Ok(binary.clone());
    }
    Ok(built.insert(build()?).clone())
}

fn build() -> Result<PathBuf> {
    let this = std::env::current_exe()?;
    let folder = this.parent().context("this program has no folder")?;
    ensure!(folder.ends_with("release"), "not a release build: run with --release");
    let mut cargo = verbatim_tests::cargo();
    cargo.args([
        "build",
        "--quiet",
        "--release",
        "--package",
        "verbatim-reference-server",
        "--bin",
        "verbatim",
    ]);
    ensure!(cargo.status()?.success(), "cargo build failed");
    Ok(folder.join("verbatim"))
}

/// The built command with a data folder, without settings from the environment.
pub(crate) fn verbatim(data: &Path, arguments: &[&str], settings: &[(&str, String)]) -> Result<Command> {
    let mut command = Command::new(verbatim_binary()?);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("VERBATIM_") {
            command.env_remove(name);
        }
    }
    command.args(arguments).arg("--data").arg(data).stderr(Stdio::null());
    command.envs(settings.iter().map(|(name, value)| (name, value)));
    Ok(command)
}

/// Creates a key of the lookup API in a data folder.
pub(crate) fn new_key(data: &Path, settings: &[(&str, String)]) -> Result<String> {
    let made = verbatim(data, &["keys", "create"], settings)?.output()?;
    ensure!(made.status.success(), "keys create failed");
    Ok(String::from_utf8(made.stdout)?.trim().to_owned())
}

/// Starts `verbatim serve`.
pub(crate) fn serve(data: &Path, settings: &[(&str, String)]) -> Result<BenchServer> {
    BenchServer::start(&mut verbatim(data, &["serve", "--listen", "127.0.0.1:0"], settings)?)
}

/// Arguments of wrk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessLoad<'a> {
    /// Concurrent connections.
    pub(crate) connections: u32,
    /// The script that builds the requests, if they differ.
    pub(crate) script: Option<&'a str>,
    /// Environment variables of the script.
    pub(crate) variables: &'a [(&'a str, String)],
    /// Duration of the load.
    pub(crate) time: Duration,
}

/// Sends requests of wrk over 32 connections, for one path or for random videos.
///
/// Returns the number of responses, and the responses a second.
pub(crate) fn wrk(
    server: &BenchServer,
    path: &str,
    headers: &[&str],
    videos: Option<u64>,
    time: Duration,
) -> Result<(u64, f64)> {
    let script = videos.map(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/paths.lua"));
    let variables = [("VIDEOS", videos.unwrap_or_default().to_string())];
    wrk_with(server, path, headers, &ProcessLoad { connections: 32, script, variables: &variables, time })
}

/// Sends requests of wrk with these arguments, none of which may fail.
///
/// Returns the number of responses, and the responses a second.
pub(crate) fn wrk_with(
    server: &BenchServer,
    path: &str,
    headers: &[&str],
    load: &ProcessLoad<'_>,
) -> Result<(u64, f64)> {
    let output = run_wrk(server, path, headers, load)?;
    ensure!(!output.contains("Non-2xx") && !output.contains("Socket errors"), "wrk: {output}");
    wrk_figures(&output)
}

/// Sends requests of wrk with these arguments, some of which may be refused.
///
/// Returns the number of successful responses, and these a second.
pub(crate) fn wrk_tolerant(
    server: &BenchServer,
    path: &str,
    headers: &[&str],
    load: &ProcessLoad<'_>,
) -> Result<(u64, f64)> {
    let output = run_wrk(server, path, headers, load)?;
    let (count, rate) = wrk_figures(&output)?;
    let refused = output.lines().find_map(|line| line.trim().strip_prefix("Non-2xx or 3xx responses:"));
    let refused: u64 = refused.map_or(Ok(0), |refused| refused.trim().parse())?;
    let succeeded = count - refused;
    Ok((succeeded, rate * succeeded as f64 / count.max(1) as f64))
}

fn run_wrk(server: &BenchServer, path: &str, headers: &[&str], load: &ProcessLoad<'_>) -> Result<String> {
    let mut command = Command::new("wrk");
    let connections = format!("-c{}", load.connections);
    command.args(["-t1", &connections, &format!("-d{}s", load.time.as_secs().max(1))]);
    for header in headers {
        command.args(["-H", header]);
    }
    if let Some(script) = load.script {
        command.args(["-s", script]).envs(load.variables.iter().map(|(name, value)| (name, value)));
    }
    command.arg(format!("http://{}{path}", server.address()));
    let output = command.output().context("wrk is missing: apt-get install wrk")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "wrk: {text}{}", String::from_utf8_lossy(&output.stderr));
    Ok(text)
}

/// The number of responses in wrk's output, and the responses a second.
fn wrk_figures(output: &str) -> Result<(u64, f64)> {
    let count =
        output.lines().find_map(|line| line.trim().split_once(" requests in ")).context("no count")?;
    let rate = output.lines().find_map(|line| line.strip_prefix("Requests/sec:")).context("no rate")?;
    Ok((count.0.parse()?, rate.trim().parse()?))
}
