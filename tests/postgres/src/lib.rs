//! A PostgreSQL server of one's own, for tests and benches: a cluster in a temporary folder, on a free port of this
//! machine, run by an ordinary user.
//!
//! It ends with whoever started it, also when they panic or are killed: a script keeps it, and ends it by its process
//! id as soon as the pipe to its owner is closed.

mod pooler;

pub use pooler::Pooler;

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use anyhow::{Context as _, Result, bail, ensure};

/// The script that keeps a server.
const KEEPER: &str = include_str!("keeper.sh");
/// The user who runs the server where the tests are run by root, which PostgreSQL refuses.
const USER: &str = "postgres";

/// How much a server does for what it has acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// As it is installed: for tests that kill it, and for measuring.
    Full,
    /// Nothing: a killed machine would lose it. For tests in which none is killed.
    None,
}

/// A running server.
#[derive(Debug)]
pub struct Cluster {
    port: u16,
    folder: PathBuf,
    keeper: Mutex<Keeper>,
    databases: AtomicU32,
}

/// A database of a server. It goes when it is dropped, whoever is connected: each takes some megabytes.
#[derive(Debug)]
pub struct Database<'a> {
    /// Its address.
    pub url: String,
    name: String,
    cluster: &'a Cluster,
}

impl Drop for Database<'_> {
    fn drop(&mut self) {
        // Its server may have been stopped on purpose.
        let _ = self.cluster.order(&format!("drop {}", self.name));
    }
}

#[derive(Debug)]
struct Keeper {
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    child: Child,
}

impl Cluster {
    /// Makes a cluster and starts its server.
    ///
    /// # Errors
    /// When PostgreSQL is not installed, or does not start.
    pub fn start(durability: Durability) -> Result<Self> {
        let programs = programs()?;
        let mut last = None;
        // Somebody else may take the port in between.
        for _ in 0..3 {
            let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            match Keeper::start(&programs, port, durability) {
                Ok((keeper, folder)) => {
                    let (keeper, databases) = (Mutex::new(keeper), AtomicU32::new(0));
                    return Ok(Self { port, folder, keeper, databases });
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.context("a server was tried three times")?)
    }

    /// The one server that all tests of a binary share, each with a database of its own. It is not durable.
    ///
    /// # Panics
    /// When it cannot be started: nothing could be tested.
    #[expect(clippy::expect_used, reason = "without a server no test means anything")]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(Durability::None).expect("PostgreSQL starts"))
    }

    /// A new, empty database.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn database(&self) -> Result<Database<'_>> {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        let name = format!("case_{number}");
        self.order(&format!("database {name}"))?;
        Ok(Database { url: self.url(&name), name, cluster: self })
    }

    /// Makes a database that stays, with a name of letters.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make_database(&self, name: &str) -> Result<()> {
        self.order(&format!("database {name}"))
    }

    /// The address of a database.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://verbatim@127.0.0.1:{}/{database}", self.port)
    }

    /// The folder of its socket, which is the faster way to it.
    pub fn socket_folder(&self) -> &Path {
        &self.folder
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Stops the server in order: its connections are ended.
    ///
    /// # Errors
    /// When it does not stop.
    pub fn stop(&self) -> Result<()> {
        self.order("stop")
    }

    /// Has the server drop everything and end at once, without writing what it still has in memory.
    ///
    /// # Errors
    /// When it does not stop.
    pub fn stop_at_once(&self) -> Result<()> {
        self.order("drop-everything")
    }

    /// Kills all processes of the server at once.
    ///
    /// # Errors
    /// When they cannot be killed.
    pub fn kill(&self) -> Result<()> {
        self.order("kill")
    }

    /// Writes a file into the folder of the server's data, as its own user. `text` ends each of its lines.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn put(&self, name: &str, text: &str) -> Result<()> {
        self.order(&format!("file {name}\n{text}END OF FILE"))
    }

    /// Adds a line to the server's settings: it counts from the next start on.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn set(&self, line: &str) -> Result<()> {
        self.order(&format!("set {line}"))
    }

    /// Has the server stand still: connections stay open, and nobody answers.
    ///
    /// # Errors
    /// When it cannot be stopped.
    pub fn pause(&self) -> Result<()> {
        self.order("pause")
    }

    /// Has it go on.
    ///
    /// # Errors
    /// When it is not there any more.
    pub fn resume(&self) -> Result<()> {
        self.order("resume")
    }

    /// Starts the server again, on the same port.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start_again(&self) -> Result<()> {
        self.order("start")
    }

    fn order(&self, order: &str) -> Result<()> {
        let mut keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        keeper.order(order)
    }
}

impl Keeper {
    fn start(programs: &Path, port: u16, durability: Durability) -> Result<(Self, PathBuf)> {
        let mut command = as_ordinary_user()?;
        command.args(["sh", "-c", KEEPER, "keeper"]).arg(programs).arg(port.to_string());
        if durability == Durability::None {
            command.args(["fsync = off", "synchronous_commit = off", "full_page_writes = off"]);
        }
        // PostgreSQL's own variables would send its programs elsewhere.
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PG")) {
            command.env_remove(name);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("sh")?;
        let orders = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().context("no way to hear the keeper")?);
        let mut keeper = Self { orders, answers, child };
        let answer = keeper.answer()?;
        let folder = answer.strip_prefix("up ").with_context(|| format!("no server came up: {answer:?}"))?;
        let folder = PathBuf::from(folder);
        Ok((keeper, folder))
    }

    fn answer(&mut self) -> Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    fn order(&mut self, order: &str) -> Result<()> {
        let orders = self.orders.as_mut().context("the server has ended")?;
        writeln!(orders, "{order}")?;
        orders.flush()?;
        let answer = self.answer()?;
        ensure!(answer == "done", "PostgreSQL, asked to {order}: {answer}");
        Ok(())
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // The end of its input is what ends it.
        drop(self.orders.take());
        let _ = self.child.wait();
    }
}

/// A command that runs what follows as a user whom PostgreSQL does not refuse.
fn as_ordinary_user() -> Result<Command> {
    let who = Command::new("id").arg("-u").output().context("id")?;
    if String::from_utf8_lossy(&who.stdout).trim() != "0" {
        return Ok(Command::new("env"));
    }
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={USER}"), &format!("--regid={USER}"), "--clear-groups", "env"]);
    // A folder that is root's own.
    command.args(["-u", "TMPDIR", "HOME=/"]);
    Ok(command)
}

/// The folder of PostgreSQL's programs: of the newest version, where there are several.
///
/// # Errors
/// When it is not installed.
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
    let asked = Command::new("pg_config").arg("--bindir").output();
    let folder =
        asked.map(|asked| PathBuf::from(String::from_utf8_lossy(&asked.stdout).trim())).unwrap_or_default();
    if folder.join("initdb").exists() {
        return Ok(folder);
    }
    bail!("PostgreSQL is not installed: apt-get install postgresql")
}
