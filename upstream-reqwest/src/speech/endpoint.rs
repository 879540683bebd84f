//! Asking an OpenAI-compatible service what is said in a part. One host, the operator's; no proxy of the
//! platforms' sees the key.

use std::{
    fmt::{self, Write as _},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::{Instant, sleep, sleep_until, timeout},
};
use transcript_core::{Error, Result as CoreResult};
use url::Url;

use super::{
    SoundFormat, SpeechOptions,
    answer::{self, Said},
    form::form,
    refusal::Refusal,
};
use crate::http::{HttpFault, bearer, named_wait, own_client, pause, read_body};

/// The longest that a connection takes to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The most that is read of an answer, and of a refusal. Ten minutes of speech have some 200 KB.
const ANSWER_MAX: usize = 4 << 20;
const REFUSAL_MAX: usize = 64 << 10;
/// The longest wait that a service may name and is waited for; and the shortest when it names none.
const NAMED_MAX: Duration = Duration::from_secs(120);
const THROTTLED_MIN: Duration = Duration::from_secs(1);

/// A service.
pub(super) struct Endpoint {
    client: reqwest::Client,
    url: Url,
    authorization: Option<HeaderValue>,
    model: String,
    format: SoundFormat,
    timeout: Duration,
    retries: u32,
    permits: Semaphore,
    /// Until when it wants to be left alone.
    closed_until: Mutex<Option<Instant>>,
    /// Whether it has shown that it tells no times.
    is_untimed: AtomicBool,
}

impl Endpoint {
    pub(super) fn new(options: &SpeechOptions) -> CoreResult<Self> {
        let url = options.check()?;
        let authorization = options.api_key.as_deref().map(bearer).transpose();
        let authorization =
            authorization.map_err(|_| Error::invalid("speech.api_key holds what no key holds"))?;
        let client = own_client(options.ca_file.as_deref(), CONNECT_TIMEOUT, None)?;
        Ok(Self {
            client,
            url,
            authorization,
            model: options.model.clone(),
            format: options.format,
            timeout: options.timeout,
            retries: options.retries,
            permits: Semaphore::new(options.concurrency as usize),
            closed_until: Mutex::new(None),
            is_untimed: AtomicBool::new(false),
        })
    }

    /// Waits until a part may be sent.
    pub(super) async fn permit(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.permits.acquire().await.ok()
    }

    /// Whether the service tells when the words of a part were spoken, as far as is known.
    pub(super) fn is_timed(&self) -> bool {
        !self.is_untimed.load(Ordering::Relaxed)
    }

    /// Notes that it does not.
    pub(super) fn set_untimed(&self) {
        self.is_untimed.store(true, Ordering::Relaxed);
    }

    /// What is said in a part. Passing faults are tried again; `accept` says whether an answer is good.
    ///
    /// # Errors
    /// The last fault; [`Refusal::Untimed`] when times are wanted and the service cannot tell them.
    pub(super) async fn transcribe<T>(
        &self,
        sound: &[u8],
        is_timed: bool,
        accept: impl Fn(Said) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let boundary = boundary();
        let response_format = if is_timed { "verbose_json" } else { "json" };
        let fields = [("model", self.model.as_str()), ("response_format", response_format)];
        let body = form(&boundary, &fields, self.format.file_name(), self.format.media_type(), sound);
        let media_type = format!("multipart/form-data; boundary={boundary}");
        let mut attempt = 0;
        loop {
            self.wait_until_open().await;
            let refusal = match self.attempt(&media_type, &body, is_timed).await.and_then(&accept) {
                Ok(said) => return Ok(said),
                Err(refusal) => refusal,
            };
            tracing::debug!(attempt, ?refusal, "a part was not heard");
            if attempt >= self.retries || !refusal.is_passing() {
                return Err(refusal);
            }
            match &refusal {
                Refusal::Throttled(Some(named)) if *named > NAMED_MAX => return Err(refusal),
                Refusal::Throttled(named) => {
                    self.close_for(named.unwrap_or_else(|| throttled_pause(attempt)))
                }
                _ => sleep(pause(attempt, rand::random())).await,
            }
            attempt += 1;
        }
    }

    /// Lets nobody send anything for a while.
    fn close_for(&self, time: Duration) {
        let until = Instant::now() + time;
        let mut closed = self.closed_until.lock().unwrap_or_else(PoisonError::into_inner);
        *closed = (*closed).max(Some(until));
    }

    async fn wait_until_open(&self) {
        // Another part may be told to wait longer meanwhile.
        loop {
            let until = *self.closed_until.lock().unwrap_or_else(PoisonError::into_inner);
            match until {
                Some(until) if until > Instant::now() => sleep_until(until).await,
                _ => return,
            }
        }
    }

    async fn attempt(&self, media_type: &str, body: &Bytes, is_timed: bool) -> Result<Said, Refusal> {
        let mut request =
            self.client.post(self.url.clone()).header(header::CONTENT_TYPE, media_type).body(body.clone());
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization.clone());
        }
        let started = Instant::now();
        let result = timeout(self.timeout, send(request, is_timed)).await;
        let result = result.unwrap_or(Err(Refusal::Away(HttpFault::Timeout)));
        tracing::debug!(
            bytes = body.len(),
            elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            is_heard = result.is_ok(),
            "asked for a transcription"
        );
        result
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("host", &self.url.host_str()).finish_non_exhaustive()
    }
}

async fn send(request: reqwest::RequestBuilder, is_timed: bool) -> Result<Said, Refusal> {
    let fault = |error| Refusal::Away(HttpFault::of(&error));
    let response = request.send().await.map_err(fault)?;
    let status = response.status();
    if status.is_success() {
        let body = read_body(response, ANSWER_MAX).await.map_err(Refusal::Away)?;
        return answer::read(&body);
    }
    let wait = named_wait(response.headers());
    // A refusal that cannot be read is one all the same.
    let body = read_body(response, REFUSAL_MAX).await.unwrap_or_default();
    Err(judge(status, wait, &body, is_timed))
}

/// What a refusal means. Its own words are looked at, but never told: they may name the key.
fn judge(status: StatusCode, wait: Option<Duration>, body: &[u8], is_timed: bool) -> Refusal {
    let says = |word: &str| body.windows(word.len()).any(|window| window == word.as_bytes());
    match status.as_u16() {
        401 | 403 => Refusal::Key,
        402 => Refusal::UsedUp,
        429 if says("insufficient_quota") => Refusal::UsedUp,
        429 => Refusal::Throttled(wait),
        404 | 405 => Refusal::Unknown,
        413 => Refusal::PartTooLarge,
        400 | 422 if is_timed && (says("response_format") || says("verbose_json")) => Refusal::Untimed,
        503 if wait.is_some() => Refusal::Throttled(wait),
        408 | 500.. => Refusal::Fault(status.as_u16()),
        status => Refusal::Refused(status),
    }
}

/// The pause before a service that names none is asked again: from one second on, doubling.
fn throttled_pause(attempt: u32) -> Duration {
    THROTTLED_MIN.saturating_mul(1 << attempt.min(6)) + pause(0, rand::random())
}

/// A boundary that no sound holds but by an accident of one in 2¹²⁸.
fn boundary() -> String {
    let mut text = String::from("verbatim-");
    for byte in rand::random::<[u8; 16]>() {
        // Writing to a string never fails.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_apart() {
        let wait = Some(Duration::from_secs(7));
        for (status, body, expect) in [
            (401, "", Refusal::Key),
            (402, "", Refusal::UsedUp),
            (429, r#"{"error":{"code":"insufficient_quota"}}"#, Refusal::UsedUp),
            (429, "slow down", Refusal::Throttled(wait)),
            (503, "", Refusal::Throttled(wait)),
            (502, "", Refusal::Fault(502)),
            (404, "", Refusal::Unknown),
            (413, "<html>", Refusal::PartTooLarge),
            (400, r#"{"error":{"param":"response_format","code":"unsupported_value"}}"#, Refusal::Untimed),
            (422, r#"{"detail":[{"loc":["body","file"]}]}"#, Refusal::Refused(422)),
            (302, "", Refusal::Refused(302)),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(judge(status, wait, body.as_bytes(), true), expect, "{status} {body}");
        }
        assert_eq!(judge(StatusCode::BAD_REQUEST, None, b"response_format", false), Refusal::Refused(400));
        assert_eq!(judge(StatusCode::SERVICE_UNAVAILABLE, None, b"", true), Refusal::Fault(503));
    }

    #[test]
    fn pauses_grow() {
        let pause = |attempt| throttled_pause(attempt).as_secs();
        assert_eq!((pause(0), pause(2), pause(99)), (1, 4, 64));
    }
}
