//! `PgBouncer` in front of a server: it lends a server connection to each transaction.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{ChildStdin, Command, Stdio},
    sync::{Mutex, OnceLock},
};

use anyhow::{Context as _, Result, ensure};

use super::{Cluster, ReservedPort, as_ordinary_user};

/// Runs a pooler until standard input is closed. $1 is its port, $2 the server's, $3 the most clients. Prints `up` when
/// the pooler is ready.
const SCRIPT: &str = r#"set -u
umask 077
PATH=$PATH:/usr/sbin
folder=$(mktemp -d "${TMPDIR:-/tmp}/verbatim-pooler-XXXXXX") || exit 1
cat >"$folder/ini" <<END
[databases]
* = host=127.0.0.1 port=$2 user=verbatim
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $1
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
max_client_conn = $3
logfile = $folder/log
END
pgbouncer -q "$folder/ini" &
pid=$!
end() { kill "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; rm -rf "$folder"; }
trap end EXIT
trap 'exit 1' INT TERM HUP
tries=0
until grep -q 'process up' "$folder/log" 2>/dev/null; do
  tries=$((tries + 1)); [ $tries -lt 400 ] && kill -0 "$pid" || { cat "$folder/log" >&2; exit 1; }
  sleep 0.05
done
echo up
cat >/dev/null
"#;

/// A running `PgBouncer` in transaction mode, with four connections per database.
#[derive(Debug)]
pub struct Pooler {
    port: ReservedPort,
    /// Closing this pipe stops the pooler, also when the owner is killed.
    _stdin: Mutex<ChildStdin>,
}

impl Pooler {
    /// Starts a pooler in front of a server.
    ///
    /// # Errors
    /// `PgBouncer` is not installed or does not start.
    pub fn start(cluster: &Cluster) -> Result<Self> {
        Self::start_for_clients(cluster, 1_000)
    }

    /// The same for at most this many connections of clients.
    ///
    /// # Errors
    /// As [`Pooler::start`].
    pub fn start_for_clients(cluster: &Cluster, clients: u32) -> Result<Self> {
        let port = ReservedPort::new()?;
        let mut command: Command = as_ordinary_user()?;
        command
            .args(["sh", "-c", SCRIPT, "run_pooler"])
            .arg(port.number.to_string())
            .arg(cluster.port().to_string())
            .arg(clients.to_string());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("sh")?;
        let mut stdin = child.stdin.take().context("the pooler's script has no standard input")?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("the pooler's script has no standard output")?)
            .read_line(&mut line)?;
        ensure!(line.trim() == "up", "PgBouncer did not start: is it installed? apt-get install pgbouncer");
        stdin.flush()?;
        // The script ends when the pipe is closed; no process waits for it.
        drop(child);
        Ok(Self { port, _stdin: Mutex::new(stdin) })
    }

    /// The pooler in front of [`Cluster::shared`], which all tests of a binary share.
    ///
    /// # Panics
    /// `PgBouncer` cannot be started.
    #[expect(clippy::expect_used, reason = "tests of the pooler need the pooler")]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Pooler> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(Cluster::shared()).expect("PgBouncer starts"))
    }

    /// The address of a server's database through the pooler.
    pub fn url(&self, database: &str) -> String {
        let name = database.rsplit('/').next().unwrap_or_default();
        format!("postgres://verbatim@127.0.0.1:{}/{name}", self.port.number)
    }
}
