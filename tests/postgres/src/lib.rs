//! A temporary PostgreSQL server for tests and benches: a cluster in a temporary folder, on a free port, run by an
//! ordinary user.
//!
//! A script runs the server and stops it as soon as the pipe to its owner is closed, also when the owner panics or is
//! killed.

mod pooler;

pub use pooler::Pooler;

use std::{
    io::{BufRead, BufReader, Write},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use anyhow::{Context as _, Result, bail, ensure};
use tokio::net::TcpSocket;

const SCRIPT: &str = include_str!("run_server.sh");
/// The user that runs the server if the tests run as root, which PostgreSQL rejects.
const USER: &str = "postgres";

/// Durability of acknowledged transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The defaults of PostgreSQL: for tests that kill the server, and for measurements.
    Full,
    /// None: a crash of the machine would lose them. For tests without kills.
    None,
}

/// A running server.
#[derive(Debug)]
pub struct Cluster {
    port: ReservedPort,
    folder: PathBuf,
    process: Mutex<ServerProcess>,
    databases: AtomicU32,
}

/// A port of 127.0.0.1 that no other process gets, also while the server of this one is stopped.
///
/// The socket is bound and does not listen: connections are refused, and a program that sets `SO_REUSEADDR`, as
/// PostgreSQL and `PgBouncer` do, can listen there.
#[derive(Debug)]
struct ReservedPort {
    number: u16,
    _socket: TcpSocket,
}

impl ReservedPort {
    fn new() -> Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        Ok(Self { number: socket.local_addr()?.port(), _socket: socket })
    }
}

/// A database of a server. Drop deletes it with all its connections, because each database takes some megabytes.
#[derive(Debug)]
pub struct TestDatabase<'a> {
    /// Its address.
    pub url: String,
    name: String,
    cluster: &'a Cluster,
}

impl Drop for TestDatabase<'_> {
    fn drop(&mut self) {
        // The server may have been stopped on purpose.
        let _ = self.cluster.send(&format!("drop {}", self.name));
    }
}

#[derive(Debug)]
struct ServerProcess {
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    child: Child,
}

impl Cluster {
    /// Creates a cluster and starts its server.
    ///
    /// # Errors
    /// PostgreSQL is not installed or does not start.
    pub fn start(durability: Durability) -> Result<Self> {
        let port = ReservedPort::new()?;
        let (process, folder) = ServerProcess::start(&programs()?, port.number, durability)?;
        Ok(Self { port, folder, process: Mutex::new(process), databases: AtomicU32::new(0) })
    }

    /// The server that all tests of a binary share, each with its own database. It is not durable.
    ///
    /// # Panics
    /// PostgreSQL cannot be started.
    #[expect(clippy::expect_used, reason = "the tests need a server")]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(Durability::None).expect("PostgreSQL starts"))
    }

    /// Creates an empty database, which is deleted on drop.
    ///
    /// # Errors
    /// The database cannot be created.
    pub fn database(&self) -> Result<TestDatabase<'_>> {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        let name = format!("case_{number}");
        self.send(&format!("database {name}"))?;
        Ok(TestDatabase { url: self.url(&name), name, cluster: self })
    }

    /// Creates a database that stays, with a name of letters.
    ///
    /// # Errors
    /// The database cannot be created.
    pub fn create_database(&self, name: &str) -> Result<()> {
        self.send(&format!("database {name}"))
    }

    /// The address of a database.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://verbatim@127.0.0.1:{}/{database}", self.port.number)
    }

    /// The folder of its Unix socket, the faster connection.
    pub fn socket_folder(&self) -> &Path {
        &self.folder
    }

    /// The port of the server.
    pub fn port(&self) -> u16 {
        self.port.number
    }

    /// Stops the server and ends its connections.
    ///
    /// # Errors
    /// The server does not stop.
    pub fn stop(&self) -> Result<()> {
        self.send("stop")
    }

    /// Stops the server at once, without writing its memory to disk.
    ///
    /// # Errors
    /// The server does not stop.
    pub fn stop_immediately(&self) -> Result<()> {
        self.send("drop-everything")
    }

    /// Kills all processes of the server at once.
    ///
    /// # Errors
    /// The processes cannot be killed.
    pub fn kill(&self) -> Result<()> {
        self.send("kill")
    }

    /// Writes a file to the data folder, as the server's user. Each line of `text` ends with a line feed.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_file(&self, name: &str, text: &str) -> Result<()> {
        self.send(&format!("file {name}\n{text}END OF FILE"))
    }

    /// Adds a line to the server's settings, effective from the next start.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add_setting(&self, line: &str) -> Result<()> {
        self.send(&format!("set {line}"))
    }

    /// Suspends the server: connections stay open without responses.
    ///
    /// # Errors
    /// The processes cannot be suspended.
    pub fn pause(&self) -> Result<()> {
        self.send("pause")
    }

    /// Resumes a suspended server.
    ///
    /// # Errors
    /// The server has ended.
    pub fn resume(&self) -> Result<()> {
        self.send("resume")
    }

    /// Starts the stopped server on the same port.
    ///
    /// # Errors
    /// The server does not start.
    pub fn restart(&self) -> Result<()> {
        self.send("start")
    }

    fn send(&self, command: &str) -> Result<()> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner).send(command)
    }
}

impl ServerProcess {
    fn start(programs: &Path, port: u16, durability: Durability) -> Result<(Self, PathBuf)> {
        let mut command = as_ordinary_user()?;
        command.args(["sh", "-c", SCRIPT, "run_server"]).arg(programs).arg(port.to_string());
        if durability == Durability::None {
            command.args(["fsync = off", "synchronous_commit = off", "full_page_writes = off"]);
        }
        // Variables of PostgreSQL would change the servers and files that its programs use.
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PG")) {
            command.env_remove(name);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("sh")?;
        let stdin = child.stdin.take();
        let stdout =
            BufReader::new(child.stdout.take().context("the server's script has no standard output")?);
        let mut process = Self { stdin, stdout, child };
        let line = process.read_line()?;
        let folder =
            line.strip_prefix("up ").with_context(|| format!("PostgreSQL did not start: {line:?}"))?;
        let folder = PathBuf::from(folder);
        Ok((process, folder))
    }

    fn read_line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    fn send(&mut self, command: &str) -> Result<()> {
        let stdin = self.stdin.as_mut().context("the server has ended")?;
        writeln!(stdin, "{command}")?;
        stdin.flush()?;
        let reply = self.read_line()?;
        ensure!(reply == "done", "PostgreSQL command {command:?} failed: {reply}");
        Ok(())
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // The script ends when its standard input is closed.
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}

/// A command prefix that runs a program as a user that PostgreSQL accepts.
fn as_ordinary_user() -> Result<Command> {
    let user_id = Command::new("id").arg("-u").output().context("id")?;
    if String::from_utf8_lossy(&user_id.stdout).trim() != "0" {
        return Ok(Command::new("env"));
    }
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={USER}"), &format!("--regid={USER}"), "--clear-groups", "env"]);
    // `TMPDIR` and `HOME` may be folders that only root can read.
    command.args(["-u", "TMPDIR", "HOME=/"]);
    Ok(command)
}

/// The folder of PostgreSQL's programs, of the newest installed version.
///
/// # Errors
/// PostgreSQL is not installed.
pub fn programs() -> Result<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = Vec::new();
    for version in std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten() {
        let folder = version.path().join("bin");
        let number = version.file_name().to_string_lossy().parse();
        if let (Ok(number), true) = (number, folder.join("initdb").exists()) {
            found.push((number, folder));
        }
    }
    if let Some((_, folder)) = found.into_iter().max() {
        return Ok(folder);
    }
    let output = Command::new("pg_config").arg("--bindir").output();
    let folder = output
        .map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
        .unwrap_or_default();
    if folder.join("initdb").exists() {
        return Ok(folder);
    }
    bail!("PostgreSQL is not installed: apt-get install postgresql")
}
