//! One errand at a platform: a few requests through one exit, with the cookies that their answers set.

use std::{sync::Arc, time::Duration};

use http::header;
use tokio::time::Instant;
use transcript_core::{
    supplier::{Ask, Watcher},
    time::Clock,
};
use url::Url;

use super::Refusal;
use crate::http::{Answer, Cookies, Http, HttpFault, Request, Visit, is_allowed};

/// How long before the caller's deadline it gives up, so that its own verdict still arrives.
const MARGIN: Duration = Duration::from_millis(250);
/// The longest that one errand takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// How many redirects of one request are followed.
const REDIRECTS_MAX: usize = 5;

/// One errand: nothing of it is left when it ends.
#[derive(Debug)]
pub(crate) struct Errand<'a> {
    watcher: &'a dyn Watcher,
    deadline: Instant,
    visit: Visit,
    cookies: Cookies,
    /// How often it may begin anew through another exit.
    retries: u32,
}

impl<'a> Errand<'a> {
    /// An errand for this ask, with at most this many requests, tries included.
    pub(crate) fn new(
        http: &Arc<Http>,
        clock: &dyn Clock,
        ask: &Ask,
        watcher: &'a dyn Watcher,
        requests: u32,
    ) -> Self {
        let left = ask.deadline.since(clock.now());
        Self {
            watcher,
            deadline: Instant::now() + left.saturating_sub(MARGIN).min(PATIENCE),
            visit: http.visit().at_most(requests),
            cookies: Cookies::default(),
            retries: http.retries(),
        }
    }

    /// Sends a request with the cookies that belong to it, and keeps those that the answer sets.
    ///
    /// # Errors
    /// No answer came, or nobody wants one any more.
    pub(crate) async fn send(&mut self, request: &Request) -> Result<Answer, Refusal> {
        self.check_cancelled()?;
        let request = self.with_cookies(request);
        let answer = self.visit.send(&request, self.deadline).await.map_err(Refusal::Fault)?;
        self.cookies.take(&request.url, &answer.cookies);
        Ok(answer)
    }

    /// As [`Errand::send`], but tries once only: for what can be asked in another way.
    ///
    /// # Errors
    /// As [`Errand::send`].
    pub(crate) async fn send_once(&mut self, request: &Request) -> Result<Answer, Refusal> {
        self.check_cancelled()?;
        self.visit.send_once(request, self.deadline).await.map_err(Refusal::Fault)
    }

    /// The moment at which it gives up.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// As [`Errand::send`], and follows redirects among the request's own hosts, unless `detour` knows what
    /// their address means.
    ///
    /// # Errors
    /// As [`Errand::send`]; what `detour` says; a redirect elsewhere or in a circle.
    pub(crate) async fn follow(
        &mut self,
        request: &Request,
        detour: impl Fn(&Url) -> Option<Refusal>,
    ) -> Result<Answer, Refusal> {
        let mut request = request.clone();
        for _ in 0..=REDIRECTS_MAX {
            let answer = self.send(&request).await?;
            let Some(location) = answer.location.as_ref().filter(|_| answer.status.is_redirection()) else {
                return Ok(answer);
            };
            // What somebody else's address looks like means nothing.
            if !is_allowed(location, request.hosts) {
                return Err(Refusal::Fault(HttpFault::ForeignAddress));
            }
            if let Some(refusal) = detour(location) {
                return Err(refusal);
            }
            request.url = location.clone();
        }
        Err(Refusal::Unreadable("it redirects again and again".to_owned()))
    }

    /// Leaves it only so much time, for what is good to have but not wished; returns the true deadline, for
    /// [`Errand::relax`].
    pub(crate) fn hurry(&mut self, patience: Duration) -> Instant {
        let deadline = self.deadline;
        self.deadline = deadline.min(Instant::now() + patience);
        deadline
    }

    /// Takes back [`Errand::hurry`].
    pub(crate) fn relax(&mut self, deadline: Instant) {
        self.deadline = deadline;
    }

    /// Says how far it is.
    pub(crate) fn stage(&self, name: &str, done: u64, of: u64) {
        self.watcher.stage(name, done, of);
    }

    /// Makes what a refusal says of our address known, and returns whether to begin anew through another.
    pub(crate) fn begins_anew(&mut self, refusal: &Refusal, platform: &'static str) -> bool {
        if !refusal.is_distrust() {
            return false;
        }
        let exit = self.visit.exit();
        if let Some(time) = refusal.silence() {
            self.visit.silence(exit, platform, time);
        }
        let others = self.visit.distrusted(exit);
        let again = others && self.retries > 0 && Instant::now() < self.deadline;
        if again {
            self.retries -= 1;
            // Whoever comes from another address is somebody else.
            self.cookies = Cookies::default();
        }
        again
    }

    /// The cookies that a request to this address would carry.
    pub(crate) fn cookies_for(&self, url: &Url) -> Option<http::HeaderValue> {
        self.cookies.header(url)
    }

    /// The way out that the last answer came through.
    pub(crate) fn exit(&self) -> Option<usize> {
        self.visit.exit()
    }

    fn with_cookies(&self, request: &Request) -> Request {
        let mut request = request.clone();
        // An address that is not the platform's gets no cookies: it is refused further on, too.
        if let Some(cookies) = self.cookies.header(&request.url) {
            request.headers.insert(header::COOKIE, cookies);
        }
        request
    }

    fn check_cancelled(&self) -> Result<(), Refusal> {
        if self.watcher.cancelled() { Err(Refusal::Cancelled) } else { Ok(()) }
    }
}

/// Whether a fault leaves no time or way for another request.
pub(crate) fn stops(fault: &HttpFault) -> bool {
    matches!(
        fault,
        HttpFault::Timeout | HttpFault::Unreachable(_) | HttpFault::Spent | HttpFault::ProxyCredentials
    )
}
