//! The replay proxy: it answers for the platforms' real host names with what a script says.
//!
//! The code under test is the code in production, to the address: it is only given a proxy and one more
//! root certificate, both of which are ordinary settings. The proxy answers CONNECT, speaks TLS with a
//! certificate made for the host that was asked for, and serves HTTP/1.1 or HTTP/2 from a [`Script`].
//! It listens on loopback only and opens no connection of its own, so that a request which no rule
//! answers cannot reach the platform: it is answered with [`UNEXPECTED`] and kept for the test to see.
//!
//! ```
//! use verbatim_tests::replay::{Answer, ReplayProxy, Rule, Script};
//!
//! let rule = Rule::get("www.youtube.com", "/api/timedtext").query("lang", "en");
//! let proxy = ReplayProxy::start(Script::new().rule(rule.answer(Answer::text("hello"))))?;
//! assert!(proxy.url().starts_with("http://127.0.0.1:"));
//! assert!(proxy.ca_file().exists());
//! assert_eq!(proxy.count(|request| request.host == "www.youtube.com"), 0);
//! # Ok::<(), anyhow::Error>(())
//! ```

mod answer;
mod authority;
mod connection;
mod ledger;
pub mod recordings;
mod rule;
mod script;

use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::Path,
    sync::Arc,
    thread::JoinHandle,
};

use anyhow::{Context as _, Result};
use tokio::sync::oneshot;

pub use answer::Answer;
pub use authority::TestAuthority;
pub use ledger::{SeenRequest, SeenTunnel};
pub use rule::Rule;
pub use script::{Script, Tunnel};

use self::ledger::Ledger;

/// The status of an answer to a request that no rule of the script expects.
///
/// No platform sends it, and no rule of a script should.
pub const UNEXPECTED: u16 = 599;

/// A running replay proxy. Dropping it closes its connections and frees its port.
pub struct ReplayProxy {
    address: SocketAddr,
    authority: Arc<TestAuthority>,
    seen: Arc<Ledger>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ReplayProxy {
    /// Starts a proxy that plays this script, with a certificate authority of its own.
    ///
    /// It runs on a thread of its own, so that a test may use any runtime, or none, and may pause its clock.
    ///
    /// # Errors
    /// No certificate could be made, or no port of loopback could be bound.
    pub fn start(script: Script) -> Result<Self> {
        Self::start_signed_by(script, Arc::new(TestAuthority::new()?))
    }

    /// Starts a proxy whose certificates this authority signs: for several proxies of one client.
    ///
    /// # Errors
    /// As for [`Self::start`].
    pub fn start_signed_by(script: Script, authority: Arc<TestAuthority>) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("no runtime for the replay proxy")?;
        // Bound without the runtime, because the caller may be inside another one.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port for the replay proxy")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let seen = Arc::new(Ledger::default());
        let stage = connection::Stage::new(script, Arc::clone(&seen), Arc::clone(&authority));
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("replay-proxy".to_owned()).spawn(move || {
            runtime.block_on(connection::accept(listener, stage, stopped));
            // Dropping the runtime here ends every task, whatever it waits for.
        })?;
        Ok(Self { address, authority, seen, stop: Some(stop), thread: Some(thread) })
    }

    /// The proxy's address, for `upstream.proxy`: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The file with the authority's certificate in PEM, for `upstream.ca_file`.
    pub fn ca_file(&self) -> &Path {
        self.authority.ca_file()
    }

    /// The requests so far, in the order of their arrival; the first 100,000 are kept.
    pub fn requests(&self) -> Vec<SeenRequest> {
        self.seen.requests()
    }

    /// How many of the requests so far are such.
    pub fn count(&self, such: impl Fn(&SeenRequest) -> bool) -> usize {
        self.seen.count(such)
    }

    /// The requests so far that no rule of the script expected.
    pub fn unexpected(&self) -> Vec<SeenRequest> {
        self.requests().into_iter().filter(|request| !request.expected).collect()
    }

    /// The hosts to which a tunnel was asked for so far, granted or not, in the order of their arrival.
    pub fn tunnels(&self) -> Vec<SeenTunnel> {
        self.seen.tunnels()
    }
}

impl Drop for ReplayProxy {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // The receiver is gone only when the thread has ended already.
            let _ended = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

impl fmt::Debug for ReplayProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayProxy").field("address", &self.address).finish_non_exhaustive()
    }
}
