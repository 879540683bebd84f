//! Egress sessions: requests over one route, with retries up to a deadline.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use reqwest::Response;
use tokio::time::{Instant, sleep, timeout_at};
use transcript_core::supplier::SupplyError;

use super::{
    BodySink, HttpError, HttpRequest, HttpResponse, HttpTransport, backoff, body, body_budget::BodyBudget,
    egress_pool::EgressRoute, prefix_read,
};

/// Maximum number of `Set-Cookie` headers read from one response.
const COOKIES_MAX: usize = 32;

/// Requests that use one egress route until it is blocked.
#[derive(Debug)]
pub(crate) struct EgressSession {
    http: Arc<HttpTransport>,
    /// Index of the route; `None` until the next request selects one.
    route: Option<usize>,
    /// Routes that others replace if possible, since they may be blocked.
    avoided: Vec<usize>,
    /// How many requests may still be sent.
    left: u32,
    /// Whether any request was sent.
    attempted: bool,
    /// How often it may still be retried, over another route or after a pause.
    retries: u32,
}

impl EgressSession {
    pub(super) fn new(http: Arc<HttpTransport>) -> Self {
        let retries = http.options.retries;
        Self { http, route: None, avoided: Vec::new(), left: u32::MAX, attempted: false, retries }
    }

    /// Limits the session to this many requests, retries included.
    pub(crate) fn with_request_limit(self, requests: u32) -> Self {
        Self { left: requests, ..self }
    }

    /// Starts the session on the route of another one.
    pub(crate) fn with_route(self, route: Option<usize>) -> Self {
        Self { route, ..self }
    }

    /// Sends a request and reads its response.
    ///
    /// Transient errors are retried within the deadline, over another route if there is one.
    pub(crate) async fn send(
        &mut self,
        request: &HttpRequest,
        deadline: Instant,
    ) -> Result<HttpResponse, HttpError> {
        self.send_with_retries(request, deadline, self.http.options.retries, None).await
    }

    /// As [`EgressSession::send`], but writes the body of a successful response to `sink`.
    ///
    /// A retry starts the body again from its beginning. A long body may take until the deadline while data arrives.
    pub(crate) async fn download(
        &mut self,
        request: &HttpRequest,
        deadline: Instant,
        sink: &mut dyn BodySink,
    ) -> Result<HttpResponse, HttpError> {
        self.send_with_retries(request, deadline, self.http.options.retries, Some(sink)).await
    }

    /// Sends a request without retries and reads its response.
    pub(crate) async fn send_once(
        &mut self,
        request: &HttpRequest,
        deadline: Instant,
    ) -> Result<HttpResponse, HttpError> {
        self.send_with_retries(request, deadline, 0, None).await
    }

    async fn send_with_retries(
        &mut self,
        request: &HttpRequest,
        deadline: Instant,
        retries: u32,
        mut sink: Option<&mut dyn BodySink>,
    ) -> Result<HttpResponse, HttpError> {
        request.check()?;
        // Not the loop of `transcript_core::retry`. Each attempt borrows the session and the sink mutably, which a
        // closure that is called again cannot lend to its future. And a route is cooled down only if another attempt
        // follows, which that loop decides after its `judge`.
        let mut attempt = 0;
        loop {
            self.left = self.left.checked_sub(1).ok_or(HttpError::BudgetExhausted)?;
            let index = self.index(request)?;
            self.attempted = true;
            let fault = match self.http.attempt(index, request, attempt, deadline, reborrow(&mut sink)).await
            {
                Ok(head) => return Ok(head),
                Err(fault) => fault,
            };
            self.route = None;
            let has_others = self.http.pool.has_available(&[index]);
            let can_retry = attempt < retries && self.left > 0 && fault.is_transient();
            let pause = pause(&fault, request, attempt, has_others).filter(|_| can_retry);
            let Some(pause) = pause.filter(|&pause| Instant::now() + pause < deadline) else {
                fault.apply_to(&self.http.pool, index, request);
                return Err(fault);
            };
            // If this session waits to retry on the only route, the route is not cooled down.
            if has_others || !matches!(fault, HttpError::Throttled(_)) {
                fault.apply_to(&self.http.pool, index, request);
            }
            tracing::info!(
                host = request.url.host_str(),
                attempt = attempt + 1,
                pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX),
                ?fault,
                "request is retried"
            );
            sleep(pause).await;
            attempt += 1;
        }
    }

    /// The route of the last response; `None` after an error.
    pub(crate) fn route(&self) -> Option<usize> {
        self.route
    }

    /// Cools a route down after a response showed that the platform blocks it, and pauses the platform in `pause` on
    /// it, at most for that time.
    ///
    /// The next request selects another route. Returns whether one is available.
    pub(crate) fn leave_route(
        &mut self,
        route: Option<usize>,
        pause: Option<(&'static str, Duration)>,
    ) -> bool {
        self.route = None;
        route.is_some_and(|index| self.http.pool.leave(index, pause))
    }

    /// Counts a retry after this pause; returns whether it may be made.
    pub(crate) fn take_retry(&mut self, pause: Duration, deadline: Instant) -> bool {
        let is_left = self.retries > 0 && Instant::now() + pause < deadline;
        self.retries -= u32::from(is_left);
        is_left
    }

    /// Leaves the present route, which may be blocked, without a cooldown: the video may be the cause.
    ///
    /// The next request selects another route. Returns whether one is available.
    pub(crate) fn avoid_route(&mut self) -> bool {
        let Some(index) = self.route.take() else { return false };
        self.avoided.push(index);
        self.http.pool.has_available(&self.avoided)
    }

    /// Cools down the avoided routes: another one returned what was requested, so they are blocked.
    pub(crate) fn cool_down_avoided(&self) {
        for &index in self.avoided.iter().filter(|&&index| Some(index) != self.route) {
            self.http.pool.cool_down(index, None);
        }
    }

    /// Notes that a platform returned what was requested over the present route.
    pub(crate) fn resume_platform(&self, platform: &'static str) {
        if let Some(index) = self.route {
            self.http.pool.resume_platform(index, platform);
        }
    }

    /// Adds to a failure when a platform may be called again, if it is paused on every route.
    ///
    /// A failure that describes the video ends a block of the route: the platform answers.
    pub(crate) fn with_pause(&self, failure: SupplyError, platform: &'static str) -> SupplyError {
        if failure.reason().is_about_video() {
            self.resume_platform(platform);
        }
        self.http.with_pause(failure, platform)
    }

    fn index(&mut self, request: &HttpRequest) -> Result<usize, HttpError> {
        let index = match self.route {
            Some(index) => index,
            None => {
                let index = self.http.pool.select(request.platform(), &self.avoided);
                index.map_err(|left| HttpError::CoolingDown { left, attempted: self.attempted })?
            }
        };
        self.route = Some(index);
        Ok(index)
    }
}

/// The pause before the next attempt; `None` when a retry cannot help.
fn pause(fault: &HttpError, request: &HttpRequest, attempt: u32, has_others: bool) -> Option<Duration> {
    let random = rand::random::<f64>();
    match fault {
        HttpError::Throttled(_) if request.has_own_rate_limit => None,
        // Another route is not throttled, so the retry is immediate.
        HttpError::Throttled(_) if has_others => Some(Duration::ZERO),
        HttpError::Throttled(retry_after) => backoff::throttled_pause(attempt, *retry_after, random),
        HttpError::Status(_, Some(retry_after)) => {
            backoff::throttled_pause(attempt, Some(*retry_after), random)
        }
        _ => Some(backoff::pause(attempt, random)),
    }
}

impl HttpTransport {
    /// Adds to a failure when a platform may be called again, if it is paused on every route.
    pub(crate) fn with_pause(&self, failure: SupplyError, platform: &'static str) -> SupplyError {
        let is_open = failure.reason().is_supplier_fault() && failure.retry_after().is_none();
        match self.pool.remaining_pause(platform).filter(|_| is_open) {
            Some(left) => failure.with_retry_after(left),
            None => failure,
        }
    }

    async fn attempt(
        &self,
        index: usize,
        request: &HttpRequest,
        attempt: u32,
        deadline: Instant,
        sink: Option<&mut dyn BodySink>,
    ) -> Result<HttpResponse, HttpError> {
        let Some(route) = self.pool.at(index) else { return Err(HttpError::Unreachable("no egress route")) };
        // The semaphore is never closed.
        let Ok(Ok(_permit)) = timeout_at(deadline, self.permits.acquire()).await else {
            return Err(HttpError::Timeout);
        };
        let started = Instant::now();
        let end = if sink.is_some() { deadline } else { deadline.min(started + self.options.timeout) };
        let response = send(route, request, sink, Some(&self.bodies));
        let result = timeout_at(end, response).await.unwrap_or(Err(HttpError::Timeout));
        // The path alone: queries carry signatures.
        tracing::debug!(
            host = request.url.host_str(),
            path = request.url.path(),
            route = route.name,
            attempt,
            elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            status = result.as_ref().ok().map(|head| head.status.as_u16()),
            fault = result.as_ref().err().map(tracing::field::debug),
            "upstream request finished"
        );
        result
    }
}

fn reborrow<'a>(sink: &'a mut Option<&mut dyn BodySink>) -> Option<&'a mut dyn BodySink> {
    match sink {
        Some(sink) => Some(&mut **sink),
        None => None,
    }
}

pub(super) async fn send(
    route: &EgressRoute,
    request: &HttpRequest,
    sink: Option<&mut dyn BodySink>,
    budget: Option<&BodyBudget>,
) -> Result<HttpResponse, HttpError> {
    let (head, response) = send_head(route, request).await?;
    let body = match (sink, request.response_max) {
        (Some(sink), max) if head.status.is_success() => {
            body::write_to(response, max, sink).await?;
            Bytes::new()
        }
        (Some(_), _) | (None, 0) => Bytes::new(),
        (None, max) => body::read_counted(response, max, budget).await?,
    };
    Ok(HttpResponse { body, ..head })
}

/// As `send`, with the body of a successful response read up to `text`.
pub(super) async fn send_until(
    route: &EgressRoute,
    request: &HttpRequest,
    text: &[u8],
) -> Result<HttpResponse, HttpError> {
    let (head, response) = send_head(route, request).await?;
    let body = match head.status.is_success() {
        true => prefix_read::read(response, request.response_max, text).await?,
        false => body::read(response, request.response_max).await?,
    };
    Ok(HttpResponse { body, ..head })
}

/// Sends the request; returns the response without its body, and the body's source.
async fn send_head(
    route: &EgressRoute,
    request: &HttpRequest,
) -> Result<(HttpResponse, Response), HttpError> {
    let response = route
        .client
        .request(request.method.clone(), request.url.clone())
        .headers(request.headers.clone())
        .body(request.body.clone())
        .send()
        .await
        .map_err(|error| HttpError::from_reqwest(&error))?;
    let status = response.status();
    let wait = parse_retry_after(response.headers());
    if status == StatusCode::TOO_MANY_REQUESTS {
        return Err(HttpError::Throttled(wait));
    }
    if status == StatusCode::REQUEST_TIMEOUT || status.is_server_error() {
        return Err(HttpError::Status(status.as_u16(), wait));
    }
    let location = location(&response, request);
    let cookies = response.headers().get_all(header::SET_COOKIE).iter().take(COOKIES_MAX).cloned().collect();
    Ok((HttpResponse { status, location, cookies, body: Bytes::new() }, response))
}

fn location(response: &Response, request: &HttpRequest) -> Option<url::Url> {
    // Some servers send raw UTF-8 in `Location`; the URL parser encodes it.
    let text = std::str::from_utf8(response.headers().get(header::LOCATION)?.as_bytes()).ok()?;
    request.url.join(text).ok()
}

/// Duration in a `Retry-After` header: seconds, or a date.
///
/// A date is relative to the response's `Date` if it has one, because the two clocks may differ.
pub(crate) fn parse_retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name)?.to_str().ok().map(str::trim);
    let retry_after = text(header::RETRY_AFTER)?;
    if !retry_after.is_empty() && retry_after.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that does not fit is a long wait, too.
        return Some(Duration::from_secs(retry_after.parse().unwrap_or(u32::MAX).into()));
    }
    let date = |text| httpdate::parse_http_date(text).ok();
    let retry_at = date(retry_after)?;
    let now = text(header::DATE).and_then(date).unwrap_or_else(SystemTime::now);
    Some(retry_at.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_seconds_and_date_are_parsed() {
        let date = "Fri, 20 Nov 2026 10:00:00 GMT";
        for (retry_after, expect_s) in [
            ("7", Some(7)),
            (" 120 ", Some(120)),
            ("Fri, 20 Nov 2026 10:01:30 GMT", Some(90)),
            ("Fri, 20 Nov 2026 09:00:00 GMT", Some(0)),
            ("soon", None),
            ("-5", None),
            ("", None),
            ("99999999999", Some(u32::MAX.into())),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::RETRY_AFTER, retry_after.parse().unwrap());
            headers.insert(header::DATE, date.parse().unwrap());
            assert_eq!(parse_retry_after(&headers), expect_s.map(Duration::from_secs), "{retry_after}");
        }
        assert_eq!(parse_retry_after(&HeaderMap::new()), None);
        let in_an_hour = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(3_600));
        let mut without_date = HeaderMap::new();
        without_date.insert(header::RETRY_AFTER, in_an_hour.parse().unwrap());
        let wait = parse_retry_after(&without_date).unwrap().as_secs();
        assert!((3_500..=3_600).contains(&wait), "{wait}");
    }
}
