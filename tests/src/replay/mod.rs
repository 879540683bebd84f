//! The replay proxy: it responds for the real host names of the platforms according to a script.
//!
//! The code under test is the production code with its production addresses: it only gets a proxy and one more root
//! certificate, both of which are ordinary settings. The proxy accepts CONNECT, speaks TLS with a certificate for the
//! requested host, and serves HTTP/1.1 or HTTP/2 from a [`Script`]. It listens on loopback only and opens no
//! connections, so a request without a rule cannot reach the platform: it gets the status [`UNEXPECTED`] and is
//! recorded for the test.
//!
//! ```
//! use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Rule, Script};
//!
//! let rule = Rule::get("www.youtube.com", "/api/timedtext").query("lang", "en");
//! let proxy = ReplayProxy::start(Script::new().rule(rule.respond(ReplayResponse::text("hello"))))?;
//! assert!(proxy.url().starts_with("http://127.0.0.1:"));
//! assert!(proxy.ca_file().exists());
//! assert_eq!(proxy.count(|request| request.host == "www.youtube.com"), 0);
//! # Ok::<(), anyhow::Error>(())
//! ```

mod authority;
mod connection;
pub mod recordings;
mod request_log;
mod response;
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

pub use authority::TestAuthority;
pub use request_log::{SeenRequest, SeenTunnel};
pub use response::ReplayResponse;
pub use rule::Rule;
pub use script::{Script, Tunnel};

use self::request_log::RequestLog;

/// The status of the response to a request that no rule of the script matches.
///
/// No platform sends it, and no rule of a script should.
pub const UNEXPECTED: u16 = 599;

/// A running replay proxy. Dropping it closes its connections and frees its port.
pub struct ReplayProxy {
    address: SocketAddr,
    authority: Arc<TestAuthority>,
    log: Arc<RequestLog>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ReplayProxy {
    /// Starts a proxy that plays this script, with a new certificate authority.
    ///
    /// It runs on its own thread, so that a test may use any runtime, or none, and may pause its clock.
    ///
    /// # Errors
    /// No certificate could be created, or no loopback port could be bound.
    pub fn start(script: Script) -> Result<Self> {
        Self::start_signed_by(script, Arc::new(TestAuthority::new()?))
    }

    /// Starts a proxy with certificates of this authority: for several proxies of one client.
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
        let log = Arc::new(RequestLog::default());
        let stage = connection::ConnectionStage::new(script, Arc::clone(&log), Arc::clone(&authority));
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("replay-proxy".to_owned()).spawn(move || {
            runtime.block_on(connection::accept(listener, stage, stopped));
            // Dropping the runtime here ends every task.
        })?;
        Ok(Self { address, authority, log, stop: Some(stop), thread: Some(thread) })
    }

    /// The proxy's address, for `upstream.proxy`: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The file with the authority's certificate in PEM, for `upstream.ca_file`.
    pub fn ca_file(&self) -> &Path {
        self.authority.ca_file()
    }

    /// The requests so far in the order of their arrival; the first 100,000 are recorded.
    pub fn requests(&self) -> Vec<SeenRequest> {
        self.log.requests()
    }

    /// The number of requests so far that satisfy the predicate.
    pub fn count(&self, predicate: impl Fn(&SeenRequest) -> bool) -> usize {
        self.log.count(predicate)
    }

    /// The requests so far that no rule of the script matched.
    pub fn unexpected(&self) -> Vec<SeenRequest> {
        self.requests().into_iter().filter(|request| !request.expected).collect()
    }

    /// The requested tunnels so far, granted or not, in the order of their arrival.
    pub fn tunnels(&self) -> Vec<SeenTunnel> {
        self.log.tunnels()
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
