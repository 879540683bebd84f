//! A series of requests that belong together, each tried until it is answered or time is up.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use reqwest::Response;
use tokio::time::{Instant, sleep, timeout_at};

use super::{Answer, Http, HttpFault, Request, Sink, backoff, beginning, body, exits::Exit};

/// The most cookies of one answer that are looked at.
const COOKIES_MAX: usize = 32;

/// A series of requests that leave through the same exit as long as it is not blocked.
#[derive(Debug)]
pub(crate) struct Visit {
    http: Arc<Http>,
    /// The exit's place, once the first request has taken one.
    exit: Option<usize>,
    /// How many requests may still be sent.
    left: u32,
    /// Whether any was sent.
    asked: bool,
}

impl Visit {
    pub(super) fn new(http: Arc<Http>) -> Self {
        Self { http, exit: None, left: u32::MAX, asked: false }
    }

    /// The same visit, with at most this many requests, tries included.
    pub(crate) fn at_most(self, requests: u32) -> Self {
        Self { left: requests, ..self }
    }

    /// The same visit, beginning at the exit of another one.
    pub(crate) fn through(self, exit: Option<usize>) -> Self {
        Self { exit, ..self }
    }

    /// Sends a request and reads its answer.
    ///
    /// Passing faults are tried again within the deadline, through another exit where there is one.
    pub(crate) async fn send(&mut self, request: &Request, deadline: Instant) -> Result<Answer, HttpFault> {
        self.tries(request, deadline, self.http.options.retries, None).await
    }

    /// As [`Visit::send`], but the body of a good answer goes to `sink`, from its beginning whenever the request
    /// is tried again. A long body may take until the deadline, as long as it keeps coming.
    pub(crate) async fn download(
        &mut self,
        request: &Request,
        deadline: Instant,
        sink: &mut dyn Sink,
    ) -> Result<Answer, HttpFault> {
        self.tries(request, deadline, self.http.options.retries, Some(sink)).await
    }

    /// Sends a request once and reads its answer.
    pub(crate) async fn send_once(
        &mut self,
        request: &Request,
        deadline: Instant,
    ) -> Result<Answer, HttpFault> {
        self.tries(request, deadline, 0, None).await
    }

    async fn tries(
        &mut self,
        request: &Request,
        deadline: Instant,
        retries: u32,
        mut sink: Option<&mut dyn Sink>,
    ) -> Result<Answer, HttpFault> {
        request.check()?;
        let mut attempt = 0;
        loop {
            self.left = self.left.checked_sub(1).ok_or(HttpFault::Spent)?;
            let place = self.place(request)?;
            self.asked = true;
            let fault =
                match self.http.attempt(place, request, attempt, deadline, reborrowed(&mut sink)).await {
                    Ok(answer) => return Ok(answer),
                    Err(fault) => fault,
                };
            self.exit = None;
            let others = self.http.exits.has_fresh(place);
            let may = attempt < retries && self.left > 0 && fault.is_passing();
            let pause = pause(&fault, request, attempt, others).filter(|_| may);
            let Some(pause) = pause.filter(|&pause| Instant::now() + pause < deadline) else {
                fault.tell(&self.http.exits, place, request);
                return Err(fault);
            };
            // An exit that is waited for must not be shut to ourselves.
            if others || !matches!(fault, HttpFault::Throttled(_)) {
                fault.tell(&self.http.exits, place, request);
            }
            sleep(pause).await;
            attempt += 1;
        }
    }

    /// The exit that the last answer came through; none where no answer came.
    pub(crate) fn exit(&self) -> Option<usize> {
        self.exit
    }

    /// Says that a platform distrusts an exit, as an answer that came through it shows: the exit rests, and
    /// the next request takes another. Returns whether there is another that does not rest.
    pub(crate) fn distrusted(&mut self, exit: Option<usize>) -> bool {
        self.exit = None;
        let Some(place) = exit else { return false };
        self.http.exits.distrusted(place, None);
        self.http.exits.has_fresh(place)
    }

    /// Lets nobody ask a platform, named by the first of its hosts, through an exit for a while.
    pub(crate) fn silence(&self, exit: Option<usize>, platform: &'static str, time: Duration) {
        if let Some(place) = exit {
            self.http.exits.silence(place, platform, time);
        }
    }

    fn place(&mut self, request: &Request) -> Result<usize, HttpFault> {
        let place = match self.exit {
            Some(place) => place,
            None => {
                let place = self.http.exits.take_turn(request.platform());
                place.map_err(|left| HttpFault::Resting { left, asked: self.asked })?
            }
        };
        self.exit = Some(place);
        Ok(place)
    }
}

/// The pause before the next attempt; none when waiting does not help.
fn pause(fault: &HttpFault, request: &Request, attempt: u32, others: bool) -> Option<Duration> {
    let random = rand::random::<f64>();
    match fault {
        HttpFault::Throttled(_) if request.throttled_apart => None,
        // Another exit is not throttled: no need to wait for it.
        HttpFault::Throttled(_) if others => Some(Duration::ZERO),
        HttpFault::Throttled(named) => backoff::throttled_pause(attempt, *named, random),
        HttpFault::Status(_, Some(named)) => backoff::throttled_pause(attempt, Some(*named), random),
        _ => Some(backoff::pause(attempt, random)),
    }
}

impl Http {
    async fn attempt(
        &self,
        place: usize,
        request: &Request,
        attempt: u32,
        deadline: Instant,
        sink: Option<&mut dyn Sink>,
    ) -> Result<Answer, HttpFault> {
        let Some(exit) = self.exits.at(place) else { return Err(HttpFault::Unreachable("no way out")) };
        // The semaphore is never closed.
        let Ok(Ok(_permit)) = timeout_at(deadline, self.permits.acquire()).await else {
            return Err(HttpFault::Timeout);
        };
        let started = Instant::now();
        let end = if sink.is_some() { deadline } else { deadline.min(started + self.options.timeout) };
        let result = timeout_at(end, send(exit, request, sink)).await.unwrap_or(Err(HttpFault::Timeout));
        // The path alone: queries carry signatures.
        tracing::debug!(
            host = request.url.host_str(),
            path = request.url.path(),
            exit = exit.name,
            attempt,
            elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            status = result.as_ref().ok().map(|answer| answer.status.as_u16()),
            fault = result.as_ref().err().map(tracing::field::debug),
            "asked upstream"
        );
        result
    }
}

fn reborrowed<'a>(sink: &'a mut Option<&mut dyn Sink>) -> Option<&'a mut dyn Sink> {
    match sink {
        Some(sink) => Some(&mut **sink),
        None => None,
    }
}

pub(super) async fn send(
    exit: &Exit,
    request: &Request,
    sink: Option<&mut dyn Sink>,
) -> Result<Answer, HttpFault> {
    let (answer, response) = begin(exit, request).await?;
    let body = match (sink, request.answer_max) {
        (Some(sink), max) if answer.status.is_success() => {
            body::pour(response, max, sink).await?;
            Bytes::new()
        }
        (Some(_), _) | (None, 0) => Bytes::new(),
        (None, max) => body::read(response, max).await?,
    };
    Ok(Answer { body, ..answer })
}

/// The same with the beginning of a good answer's body, up to this text.
pub(super) async fn send_until(exit: &Exit, request: &Request, text: &[u8]) -> Result<Answer, HttpFault> {
    let (answer, response) = begin(exit, request).await?;
    let body = match answer.status.is_success() {
        true => beginning::read(response, request.answer_max, text).await?,
        false => body::read(response, request.answer_max).await?,
    };
    Ok(Answer { body, ..answer })
}

/// The answer without its body, and whence that comes.
async fn begin(exit: &Exit, request: &Request) -> Result<(Answer, Response), HttpFault> {
    let response = exit
        .client
        .request(request.method.clone(), request.url.clone())
        .headers(request.headers.clone())
        .body(request.body.clone())
        .send()
        .await
        .map_err(|error| HttpFault::of(&error))?;
    let status = response.status();
    let wait = named_wait(response.headers());
    if status == StatusCode::TOO_MANY_REQUESTS {
        return Err(HttpFault::Throttled(wait));
    }
    if status == StatusCode::REQUEST_TIMEOUT || status.is_server_error() {
        return Err(HttpFault::Status(status.as_u16(), wait));
    }
    let location = location(&response, request);
    let cookies = response.headers().get_all(header::SET_COOKIE).iter().take(COOKIES_MAX).cloned().collect();
    Ok((Answer { status, location, cookies, body: Bytes::new() }, response))
}

fn location(response: &Response, request: &Request) -> Option<url::Url> {
    // Servers write addresses in UTF-8, too, though they should not; the parser encodes them.
    let text = std::str::from_utf8(response.headers().get(header::LOCATION)?.as_bytes()).ok()?;
    request.url.join(text).ok()
}

/// The wait that a Retry-After header names: seconds, or a date, which is taken relative to the answer's
/// own date because the two clocks may differ.
pub(crate) fn named_wait(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name)?.to_str().ok().map(str::trim);
    let named = text(header::RETRY_AFTER)?;
    if let Ok(seconds) = named.parse::<u32>() {
        return Some(Duration::from_secs(seconds.into()));
    }
    let date = |text| httpdate::parse_http_date(text).ok();
    let (until, now): (SystemTime, SystemTime) = (date(named)?, date(text(header::DATE)?)?);
    Some(until.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_waits_are_read_in_both_forms() {
        let date = "Fri, 20 Nov 2026 10:00:00 GMT";
        for (named, expect_s) in [
            ("7", Some(7)),
            (" 120 ", Some(120)),
            ("Fri, 20 Nov 2026 10:01:30 GMT", Some(90)),
            ("Fri, 20 Nov 2026 09:00:00 GMT", Some(0)),
            ("soon", None),
            ("-5", None),
            ("99999999999", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::RETRY_AFTER, named.parse().unwrap());
            headers.insert(header::DATE, date.parse().unwrap());
            assert_eq!(named_wait(&headers), expect_s.map(Duration::from_secs), "{named}");
        }
        assert_eq!(named_wait(&HeaderMap::new()), None);
    }
}
