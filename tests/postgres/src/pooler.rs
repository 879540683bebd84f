//! `PgBouncer` before a server: it lends a connection of the server for each transaction.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    process::{ChildStdin, Command, Stdio},
    sync::{Mutex, OnceLock},
};

use anyhow::{Context as _, Result, ensure};

use super::{Cluster, as_ordinary_user};

/// Keeps a pooler until its standard input ends, however that comes about. $1 is its port, $2 that of the server. It
/// says `up` once it answers.
const KEEPER: &str = r#"set -u
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
max_client_conn = 1000
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

/// A running `PgBouncer` in transaction mode, with four connections to each database.
#[derive(Debug)]
pub struct Pooler {
    port: u16,
    /// It ends with its owner: that closes the pipe.
    _orders: Mutex<ChildStdin>,
}

impl Pooler {
    /// Starts one before a server.
    ///
    /// # Errors
    /// When `PgBouncer` is not installed, or does not start.
    pub fn before(cluster: &Cluster) -> Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command: Command = as_ordinary_user()?;
        command.args(["sh", "-c", KEEPER, "keeper"]).arg(port.to_string()).arg(cluster.port().to_string());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("sh")?;
        let mut orders = child.stdin.take().context("no way to the pooler's keeper")?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no way to hear it")?).read_line(&mut line)?;
        ensure!(line.trim() == "up", "PgBouncer did not start: is it installed? apt-get install pgbouncer");
        orders.flush()?;
        // The keeper ends when the pipe is closed, and is nobody's to wait for then.
        drop(child);
        Ok(Self { port, _orders: Mutex::new(orders) })
    }

    /// The one before [`Cluster::shared`], which all tests of a binary share.
    ///
    /// # Panics
    /// When it cannot be started: nothing could be tested.
    #[expect(clippy::expect_used, reason = "without a pooler no test of it means anything")]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Pooler> = OnceLock::new();
        SHARED.get_or_init(|| Self::before(Cluster::shared()).expect("PgBouncer starts"))
    }

    /// The way by it to a database of its server.
    pub fn url(&self, database: &str) -> String {
        let name = database.rsplit('/').next().unwrap_or_default();
        format!("postgres://verbatim@127.0.0.1:{}/{name}", self.port)
    }
}
