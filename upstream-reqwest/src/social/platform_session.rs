//! A platform session: a few requests over one egress route, with the cookies of their responses.

use std::{sync::Arc, time::Duration};

use http::header;
use tokio::time::Instant;
use transcript_core::{
    supplier::{SupplyError, SupplyMonitor, SupplyRequest},
    time::Clock,
    video::VideoId,
};
use url::Url;

use super::SocialFailure;
use crate::{
    deadline::lookup_end,
    http::{
        CookieJar, EgressSession, HttpError, HttpRequest, HttpResponse, HttpTransport, is_allowed, pause,
    },
};

/// Maximum number of redirects per request.
const REDIRECTS_MAX: usize = 5;

/// Whether a request is repeated after a transient error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retries {
    Yes,
    No,
}

/// A platform session. Its cookies are dropped with it.
#[derive(Debug)]
pub(crate) struct PlatformSession<'a> {
    video: &'a VideoId,
    /// The platform's name in the transport.
    platform: &'static str,
    monitor: &'a dyn SupplyMonitor,
    deadline: Instant,
    egress: EgressSession,
    cookies: CookieJar,
}

/// Repeats an attempt of a session or fetch while another route may help, and returns its result.
///
/// It is a macro because the compiler accepts no closure here: its future borrows the session, and must be [`Send`].
macro_rules! attempt_over_routes {
    ($session:ident, $attempt:expr) => {
        loop {
            match $attempt.await {
                Ok(found) => break $session.finish(found),
                Err(failure) => $session.retry_elsewhere(&failure)?,
            }
        }
    };
}
pub(crate) use attempt_over_routes;

impl<'a> PlatformSession<'a> {
    /// Creates a session for this request, with at most `requests` requests, retries included.
    pub(crate) fn new(
        http: &Arc<HttpTransport>,
        clock: &dyn Clock,
        request: &'a SupplyRequest,
        monitor: &'a dyn SupplyMonitor,
        platform: &'static str,
        requests: u32,
    ) -> Self {
        Self {
            video: &request.video,
            platform,
            monitor,
            deadline: lookup_end(clock, request.deadline),
            egress: http.session().with_request_limit(requests),
            cookies: CookieJar::default(),
        }
    }

    /// Sends a request with its cookies, and stores the cookies of the response.
    ///
    /// # Errors
    /// No response arrived, or no waiter is left.
    pub(crate) async fn send(&mut self, request: &HttpRequest) -> Result<HttpResponse, SocialFailure> {
        self.check_cancelled()?;
        let request = self.with_cookies(request);
        let response = self.egress.send(&request, self.deadline).await.map_err(SocialFailure::Transport)?;
        self.cookies.take(&request.url, &response.cookies);
        Ok(response)
    }

    /// As [`PlatformSession::send`], without cookies; without retries for a request that has an alternative.
    ///
    /// # Errors
    /// As [`PlatformSession::send`].
    pub(crate) async fn send_as_guest(
        &mut self,
        request: &HttpRequest,
        retries: Retries,
    ) -> Result<HttpResponse, SocialFailure> {
        self.check_cancelled()?;
        let response = match retries {
            Retries::Yes => self.egress.send(request, self.deadline).await,
            Retries::No => self.egress.send_once(request, self.deadline).await,
        };
        response.map_err(SocialFailure::Transport)
    }

    /// The session's deadline.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// As [`PlatformSession::send`], and follows redirects among the request's own hosts.
    /// A redirect target that `classify_redirect` classifies is returned as that failure.
    ///
    /// # Errors
    /// As [`PlatformSession::send`]; the failure from `classify_redirect`; a redirect to another host, or too many.
    pub(crate) async fn follow(
        &mut self,
        request: &HttpRequest,
        classify_redirect: impl Fn(&Url) -> Option<SocialFailure>,
    ) -> Result<HttpResponse, SocialFailure> {
        let mut request = request.clone();
        for _ in 0..=REDIRECTS_MAX {
            let response = self.send(&request).await?;
            let Some(location) = response.location.as_ref().filter(|_| response.status.is_redirection())
            else {
                return Ok(response);
            };
            // The URL of another host is not classified.
            if !is_allowed(location, request.hosts) {
                return Err(SocialFailure::Transport(HttpError::DisallowedHost));
            }
            if let Some(failure) = classify_redirect(location) {
                return Err(failure);
            }
            request.url = location.clone();
        }
        Err(SocialFailure::Unreadable("it sent too many redirects".to_owned()))
    }

    /// Shortens the deadline for an optional request; returns the original deadline for
    /// [`PlatformSession::restore_deadline`].
    pub(crate) fn shorten_deadline(&mut self, limit: Duration) -> Instant {
        let deadline = self.deadline;
        self.deadline = deadline.min(Instant::now() + limit);
        deadline
    }

    /// Restores the deadline after [`PlatformSession::shorten_deadline`].
    pub(crate) fn restore_deadline(&mut self, deadline: Instant) {
        self.deadline = deadline;
    }

    /// Reports progress.
    pub(crate) fn stage(&self, name: &str, done: u64, of: u64) {
        self.monitor.report_progress(name, done, of);
    }

    /// Notes that the platform returned what was requested.
    pub(crate) fn finish<T>(&self, result: T) -> Result<T, SupplyError> {
        self.egress.resume_platform(self.platform);
        self.egress.cool_down_avoided();
        Ok(result)
    }

    /// Applies a failure to its egress route, and prepares a retry over another route.
    ///
    /// # Errors
    /// The failure, unless another route may help.
    pub(crate) fn retry_elsewhere(&mut self, failure: &SocialFailure) -> Result<(), SupplyError> {
        tracing::debug!(video = %self.video, ?failure, "platform attempt failed");
        if failure.is_route_blocked() && self.change_route(failure) {
            return Ok(());
        }
        Err(self.egress.with_pause(failure.error(self.video.platform()), self.platform))
    }

    /// Waits before the same request is repeated; returns whether it may be.
    pub(crate) async fn wait_to_retry(&mut self, attempt: u32) -> bool {
        let pause = pause(attempt, rand::random());
        let is_left = self.egress.take_retry(pause, self.deadline);
        if is_left {
            tokio::time::sleep(pause).await;
        }
        is_left
    }

    /// Leaves the route of a failure; returns whether another one may be tried.
    ///
    /// The route is cooled down, for all platforms. If the post may be the cause, it is only once another route has
    /// returned the post: links of such posts must not stop the proxies.
    fn change_route(&mut self, failure: &SocialFailure) -> bool {
        let pause = failure.platform_pause().map(|max| (self.platform, max));
        let has_others = match failure.may_be_the_post() {
            true => self.egress.avoid_route(),
            false => self.egress.leave_route(self.egress.route(), pause),
        };
        let can_retry = has_others && self.egress.take_retry(Duration::ZERO, self.deadline);
        if can_retry {
            // Cookies are not reused over another address.
            self.cookies = CookieJar::default();
        }
        can_retry
    }

    /// The `Cookie` header of a request to this URL.
    pub(crate) fn cookies_for(&self, url: &Url) -> Option<http::HeaderValue> {
        self.cookies.header(url)
    }

    /// The egress route of the last response.
    pub(crate) fn route(&self) -> Option<usize> {
        self.egress.route()
    }

    fn with_cookies(&self, request: &HttpRequest) -> HttpRequest {
        let mut request = request.clone();
        // A URL of another host matches no cookies; the request is rejected later as well.
        if let Some(cookies) = self.cookies.header(&request.url) {
            request.headers.insert(header::COOKIE, cookies);
        }
        request
    }

    fn check_cancelled(&self) -> Result<(), SocialFailure> {
        if self.monitor.is_cancelled() { Err(SocialFailure::Cancelled) } else { Ok(()) }
    }
}

/// Whether a transport error leaves no time or route for another request.
pub(crate) fn stops(fault: &HttpError) -> bool {
    matches!(
        fault,
        HttpError::Timeout
            | HttpError::Unreachable(_)
            | HttpError::BudgetExhausted
            | HttpError::ProxyCredentials
    )
}
