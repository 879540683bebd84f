//! Runs the built command as a user does, and the programs of its databases.

use std::{
    ffi::OsStr,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::{OnceLock, mpsc},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client as HyperClient, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::Value;
use tempfile::TempDir;
use verbatim_tests_postgres::programs;

/// The example of the documentation, a file with captions.
pub(crate) const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/lighthouse.vtt");
/// Timeout of a start, a stop or a command.
const PROCESS_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of [`wait_until`]: longer than leases and holds that are not renewed.
const CONDITION_TIMEOUT: Duration = Duration::from_secs(150);
const DAY_SECONDS: u64 = 24 * 60 * 60;
/// Upper bound of the duration of tests that count by the day.
const TEST_SECONDS: u64 = 20;

/// The built `verbatim` program. The first call builds it with the profile of the tests.
pub(crate) fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| build_program().expect("the command must build"))
}

fn build_program() -> Result<PathBuf> {
    let this = std::env::current_exe()?;
    // The test program is in `target/PROFILE/deps`, the command in `target/PROFILE`.
    let folder = this.parent().and_then(Path::parent).context("the test program is in no target folder")?;
    let mut cargo = verbatim_tests::cargo();
    // As `tests/programs.sh`: the libraries are as the tests have built them.
    let arguments =
        "build --quiet --workspace --exclude verbatim-benches --all-features --bin verbatim --bin replay";
    cargo.args(arguments.split(' '));
    if folder.file_name() == Some(OsStr::new("release")) {
        cargo.arg("--release");
    }
    if !cargo.status()?.success() {
        bail!("cargo build failed");
    }
    Ok(folder.join("verbatim"))
}

/// The number in a variable of the environment, if it is set.
pub(crate) fn read_number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.trim().parse().expect("a number"))
}

/// The command with these arguments, on this data folder, without the `VERBATIM_` variables of the environment.
pub(crate) fn verbatim(data: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("VERBATIM_") {
            command.env_remove(name);
        }
    }
    // The test output shows warnings, but no log line per request.
    command.env("VERBATIM_LOG__LEVEL", "warn");
    command.args(arguments).arg("--data").arg(data);
    command
}

/// Same as [`verbatim`], with these settings.
pub(crate) fn verbatim_with(data: &Path, settings: &[(&str, &str)], arguments: &[&str]) -> Command {
    let mut command = verbatim(data, arguments);
    command.envs(settings.iter().copied());
    command
}

/// Runs a command with this standard input and waits until it has ended.
pub(crate) fn run(mut command: Command, input: &[u8]) -> Result<Output> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command that rejects its arguments does not read its input.
        let _ = stdin.write_all(input);
    }
    Ok(child.wait_with_output()?)
}

/// Same as [`run`], for a command that must succeed; returns its standard output.
pub(crate) fn run_ok(command: Command, input: &[u8]) -> Result<String> {
    let shown = format!("{command:?}");
    let output = run(command, input)?;
    let (status, out, err) = (output.status, text(&output.stdout), text(&output.stderr));
    ensure!(status.success(), "{shown}: {status}: {out}{err}");
    Ok(out)
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs the operator's audit, which must find the ledger consistent.
pub(crate) fn audit_ledger(data: &Path, settings: &[(&str, &str)]) -> Result<()> {
    run_ok(verbatim_with(data, settings, &["ledger", "audit"]), b"").map(drop)
}

/// Archives the example of the documentation for a video.
pub(crate) fn import_example(data: &TempDir, video: &str) -> Result<()> {
    run_ok(verbatim(data.path(), &["import", EXAMPLE, "--video", video, "--lang", "en"]), b"").map(drop)
}

/// Output of sqlite3 on a file.
pub(crate) fn sqlite(file: &Path, statements: &str) -> Result<String> {
    let mut command = Command::new("sqlite3");
    command.args(["-bail", "-cmd", ".timeout 5000"]).arg(file).arg(statements);
    run_ok(command, b"")
}

/// Output of psql on a database.
pub(crate) fn psql(url: &str, statements: &str) -> Result<String> {
    let mut command = Command::new(programs()?.join("psql"));
    command.args(["-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", statements]);
    run_ok(command, b"")
}

/// Borrows settings in the form that [`ServerFixture::start`] accepts.
pub(crate) fn borrow_settings(settings: &[(String, String)]) -> Vec<(&str, &str)> {
    settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

pub(crate) type HttpClient = HyperClient<HttpConnector, Full<Bytes>>;

pub(crate) fn http_client() -> HttpClient {
    HyperClient::builder(TokioExecutor::new()).build_http()
}

/// A running server. Dropping it kills it.
pub(crate) struct ServerFixture {
    child: Child,
    address: String,
    client: HttpClient,
}

transcript_core::debug_fields!(ServerFixture { address });

/// A response of the server.
#[derive(Debug)]
pub(crate) struct ServerReply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl ServerReply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        text(&self.body)
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
    }
}

/// Sleeps past midnight (UTC) if it is near: counters of the day would restart during the test.
fn wait_past_midnight() {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let left = DAY_SECONDS - since.as_secs() % DAY_SECONDS;
    if left <= TEST_SECONDS {
        std::thread::sleep(Duration::from_secs(left));
    }
}

impl ServerFixture {
    /// Starts a server on this data folder, with these settings in its environment.
    pub(crate) fn start(data: &TempDir, settings: &[(&str, &str)]) -> Result<Self> {
        Self::start_in(data.path(), settings)
    }

    /// Same as [`ServerFixture::start`], on a folder that the caller owns.
    pub(crate) fn start_in(data: &Path, settings: &[(&str, &str)]) -> Result<Self> {
        Self::spawn(data, settings, Stdio::inherit())
    }

    /// Same as [`ServerFixture::start`], with a file for its log.
    pub(crate) fn start_with_log(data: &TempDir, settings: &[(&str, &str)], log: &Path) -> Result<Self> {
        Self::spawn(data.path(), settings, std::fs::File::create(log)?.into())
    }

    /// Starts a server whose settings are those of a file, with another file for its log.
    pub(crate) fn start_with_config(data: &TempDir, config: &Path, log: &Path) -> Result<Self> {
        let mut command = verbatim(data.path(), &["serve", "--listen", "127.0.0.1:0"]);
        command.env("VERBATIM_CONFIG", config).env_remove("VERBATIM_LOG__LEVEL");
        Self::start_command(command, log)
    }

    /// Starts a server by this command, with a file for its log.
    pub(crate) fn start_command(command: Command, log: &Path) -> Result<Self> {
        Self::spawn_command(command, std::fs::File::create(log)?.into())
    }

    fn spawn(data: &Path, settings: &[(&str, &str)], log: Stdio) -> Result<Self> {
        Self::spawn_at(data, "127.0.0.1:0", settings, log)
    }

    /// Same as [`ServerFixture::start`], at this value of `server.listen`.
    pub(crate) fn start_at(data: &TempDir, listen: &str, settings: &[(&str, &str)]) -> Result<Self> {
        Self::spawn_at(data.path(), listen, settings, Stdio::inherit())
    }

    fn spawn_at(data: &Path, listen: &str, settings: &[(&str, &str)], log: Stdio) -> Result<Self> {
        Self::spawn_command(verbatim_with(data, settings, &["serve", "--listen", listen]), log)
    }

    fn spawn_command(mut command: Command, log: Stdio) -> Result<Self> {
        wait_past_midnight();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn()?;
        let stdout = child.stdout.take().context("no standard output")?;
        let (lines, first) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // The test reads the first line only.
                let _ = lines.send(line);
            }
        });
        let line = match first.recv_timeout(PROCESS_TIMEOUT) {
            Ok(line) => line,
            Err(_) => {
                let _ = child.kill();
                bail!("the server did not start: {:?}", child.wait());
            }
        };
        let start = format!("verbatim {} listening on ", env!("CARGO_PKG_VERSION"));
        let address = line.strip_prefix(&start).ok_or_else(|| anyhow!("unexpected first line: {line}"))?;
        let address = address.strip_prefix("http://").unwrap_or(address);
        Ok(Self { child, address: address.to_owned(), client: http_client() })
    }

    /// Its listen address: `127.0.0.1:PORT`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<ServerReply> {
        send_with(&self.client, &self.address, method, path, headers, body).await
    }

    pub(crate) async fn get(&self, path: &str) -> Result<ServerReply> {
        self.send(Method::GET, path, &[], "").await
    }

    /// Sends a GET request with a key.
    pub(crate) async fn get_as(&self, key: &str, path: &str) -> Result<ServerReply> {
        self.send_as(key, Method::GET, path, &[], "").await
    }

    /// Sends JSON with a key.
    pub(crate) async fn post_as(&self, key: &str, path: &str, body: impl Into<Bytes>) -> Result<ServerReply> {
        self.send_as(key, Method::POST, path, &[("content-type", "application/json")], body).await
    }

    /// Same as [`ServerFixture::send`], with a key.
    pub(crate) async fn send_as(
        &self,
        key: &str,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<ServerReply> {
        let bearer = format!("Bearer {key}");
        self.send(method, path, &[&[("authorization", bearer.as_str())], headers].concat(), body).await
    }

    /// Process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the process and waits until it has ended.
    pub(crate) fn kill(&mut self) -> Result<ExitStatus> {
        self.child.kill()?;
        self.wait()
    }

    /// Sends SIGTERM and waits until the process has ended.
    pub(crate) fn stop(&mut self) -> Result<ExitStatus> {
        send_signal(self.pid(), "TERM")?;
        self.wait()
    }

    /// Waits until the process has ended.
    pub(crate) fn wait(&mut self) -> Result<ExitStatus> {
        let deadline = Instant::now() + PROCESS_TIMEOUT;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if Instant::now() > deadline {
                bail!("the server did not stop");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for ServerFixture {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal of this name to a process.
pub(crate) fn send_signal(pid: u32, name: &str) -> Result<()> {
    let status = Command::new("kill").args([format!("-{name}"), pid.to_string()]).status()?;
    ensure!(status.success(), "kill: {status}");
    Ok(())
}

/// Sends one request to an address, over a new connection.
pub(crate) async fn send_once(address: &str, method: Method, path: &str) -> Result<ServerReply> {
    send_once_with(address, method, path, &[], "").await
}

/// Same as [`send_once`], with headers and a body.
pub(crate) async fn send_once_with(
    address: &str,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Result<ServerReply> {
    send_with(&http_client(), address, method, path, headers, body).await
}

/// Sends one request to an address by this client.
pub(crate) async fn send_with(
    client: &HttpClient,
    address: &str,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Result<ServerReply> {
    let mut request = Request::builder().method(method).uri(format!("http://{address}{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = client.request(request.body(Full::new(body.into()))?).await?;
    let (parts, body) = response.into_parts();
    Ok(ServerReply { status: parts.status, headers: parts.headers, body: body.collect().await?.to_bytes() })
}

/// Creates keys with the operator's command.
pub(crate) fn create_keys(data: &TempDir, count: usize) -> Result<Vec<String>> {
    create_keys_with(data, count, &[])
}

/// Same as [`create_keys`], with these settings.
pub(crate) fn create_keys_with(
    data: &TempDir,
    count: usize,
    settings: &[(&str, &str)],
) -> Result<Vec<String>> {
    let command = verbatim_with(data.path(), settings, &["keys", "create", "--count", &count.to_string()]);
    Ok(run_ok(command, b"")?.lines().map(str::to_owned).collect())
}

/// Polls a condition until it is true, or fails with this message at [`CONDITION_TIMEOUT`].
pub(crate) async fn wait_until(
    failure: &str,
    mut condition: impl AsyncFnMut() -> Result<bool>,
) -> Result<()> {
    let deadline = Instant::now() + CONDITION_TIMEOUT;
    while !condition().await? {
        ensure!(Instant::now() < deadline, "{failure}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}
