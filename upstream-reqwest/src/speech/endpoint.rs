//! Client of an OpenAI-compatible transcription service on one host, which the operator chose.
//!
//! It uses no proxy of the platforms, so no proxy sees the key.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::StatusCode;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::{Instant, sleep_until, timeout},
};
use transcript_core::{
    Result as CoreResult, Retry, hex,
    retry::{Backoff, retry},
};

use super::{
    AudioFormat, SpeechOptions,
    failure::SpeechFailure,
    multipart::form,
    response::{self, Transcription},
};
use crate::{
    http::{HttpError, pause, read_body, retry_policy},
    openai::{OpenAiEndpoint, ServiceFault, contains, read_error},
};

/// Timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of a response. Ten minutes of speech have about 200 KB.
const ANSWER_MAX: usize = 4 << 20;
/// The field for the units of which times are requested.
const GRANULARITIES: &str = "timestamp_granularities[]";
/// Number of texts without a language after which a service that has never named one is taken to name none.
const UNNAMED_MAX: u32 = 3;
/// The longest `Retry-After` that is waited for, and the pauses without one.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(120);
const THROTTLED: Backoff = Backoff { first: Duration::from_secs(1), max: Duration::from_secs(64) };

/// A transcription service.
pub(super) struct SpeechEndpoint {
    endpoint: OpenAiEndpoint,
    model: String,
    format: AudioFormat,
    timeout: Duration,
    retries: u32,
    permits: Semaphore,
    /// End of the pause that the service requested.
    paused_until: Mutex<Option<Instant>>,
    /// Whether the service has returned a transcription without times.
    is_untimed: AtomicBool,
    /// Whether the service has named the language of a text.
    has_named_language: AtomicBool,
    /// Number of texts whose language it has not named.
    unnamed_texts: AtomicU32,
    /// Whether the service has answered a request for the times of words.
    accepts_words: AtomicBool,
    /// Whether the service has rejected a request for the times of words, and no other.
    rejects_words: AtomicBool,
}

impl SpeechEndpoint {
    pub(super) fn new(options: &SpeechOptions) -> CoreResult<Self> {
        let url = options.check()?;
        let (key, ca_file) = (options.api_key.as_deref(), options.ca_file.as_deref());
        let endpoint = OpenAiEndpoint::new(url, key, "speech.api_key", ca_file, CONNECT_TIMEOUT)?;
        Ok(Self {
            endpoint,
            model: options.model.clone(),
            format: options.format,
            timeout: options.timeout,
            retries: options.retries,
            permits: Semaphore::new(options.concurrency as usize),
            paused_until: Mutex::new(None),
            is_untimed: AtomicBool::new(false),
            has_named_language: AtomicBool::new(false),
            unnamed_texts: AtomicU32::new(0),
            accepts_words: AtomicBool::new(false),
            rejects_words: AtomicBool::new(false),
        })
    }

    /// Waits until a chunk may be sent.
    pub(super) async fn permit(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.permits.acquire().await.ok()
    }

    /// Whether the service returns the times of spans, as far as is known.
    pub(super) fn is_timed(&self) -> bool {
        !self.is_untimed.load(Ordering::Relaxed)
    }

    /// Records that the service returns no times.
    pub(super) fn set_untimed(&self) {
        self.is_untimed.store(true, Ordering::Relaxed);
    }

    /// Whether the service names the language of a text, as far as is known.
    pub(super) fn names_language(&self) -> bool {
        self.has_named_language.load(Ordering::Relaxed)
            || self.unnamed_texts.load(Ordering::Relaxed) < UNNAMED_MAX
    }

    /// Records whether the service has named the language of a text.
    pub(super) fn record_language(&self, is_named: bool) {
        self.has_named_language.fetch_or(is_named, Ordering::Relaxed);
        self.unnamed_texts.fetch_add(u32::from(!is_named), Ordering::Relaxed);
    }

    /// Transcribes a chunk. Transient errors are retried; `accept` validates a response.
    ///
    /// The times of words are requested with those of spans. If that fails for a reason that they may have caused, and
    /// the service has not answered such a request before, the chunk is requested without them.
    ///
    /// # Errors
    /// The last error; [`SpeechFailure::Untimed`] when times are required and the service does not support them.
    pub(super) async fn transcribe<T>(
        &self,
        audio: &[u8],
        is_timed: bool,
        accept: impl Fn(Transcription) -> Result<T, SpeechFailure> + Send + Sync,
    ) -> Result<T, SpeechFailure> {
        let has_words = is_timed && !self.rejects_words.load(Ordering::Relaxed);
        let result = self.transcribe_as(audio, is_timed, has_words, &accept).await;
        let failure = match result {
            Err(failure) if has_words && failure.may_concern_words() => failure,
            result => {
                self.accepts_words.fetch_or(has_words && result.is_ok(), Ordering::Relaxed);
                return result;
            }
        };
        if self.accepts_words.load(Ordering::Relaxed) {
            return Err(failure);
        }
        let result = self.transcribe_as(audio, is_timed, false, &accept).await;
        if result.is_ok() && matches!(failure, SpeechFailure::Rejected(_)) {
            self.rejects_words.store(true, Ordering::Relaxed);
        }
        result
    }

    async fn transcribe_as<T>(
        &self,
        audio: &[u8],
        is_timed: bool,
        has_words: bool,
        accept: &(impl Fn(Transcription) -> Result<T, SpeechFailure> + Send + Sync),
    ) -> Result<T, SpeechFailure> {
        let boundary = boundary();
        let response_format = if is_timed { "verbose_json" } else { "json" };
        let mut fields = vec![("model", self.model.as_str()), ("response_format", response_format)];
        if has_words {
            // A service that reads one value only must read the last, which it would assume anyway.
            fields.extend(["word", "segment"].map(|unit| (GRANULARITIES, unit)));
        }
        let body = form(&boundary, &fields, self.format.file_name(), self.format.media_type(), audio);
        let media_type = format!("multipart/form-data; boundary={boundary}");
        let judge = |attempt, failure: &SpeechFailure| match failure {
            failure if !failure.is_transient() => Retry::Never,
            SpeechFailure::Throttled(Some(named)) if *named > RETRY_AFTER_MAX => Retry::Never,
            SpeechFailure::Throttled(named) => {
                // All chunks wait, this one too.
                self.pause_for(named.unwrap_or_else(|| throttled_pause(attempt)));
                Retry::After(Duration::ZERO)
            }
            _ => Retry::Backoff,
        };
        let call = |attempt| {
            let (media_type, body) = (&media_type, &body);
            async move {
                self.wait_for_pause().await;
                let result = self.attempt(media_type, body, is_timed).await.and_then(accept);
                result.inspect_err(|failure| tracing::debug!(attempt, ?failure, "chunk transcription failed"))
            }
        };
        retry(retry_policy(self.retries), rand::random, judge, call).await
    }

    /// Pauses all requests to the service.
    fn pause_for(&self, time: Duration) {
        let ends_at = Instant::now() + time;
        let mut paused = self.paused_until.lock().unwrap_or_else(PoisonError::into_inner);
        *paused = (*paused).max(Some(ends_at));
    }

    async fn wait_for_pause(&self) {
        // Another chunk may extend the pause while this one waits.
        loop {
            let ends_at = *self.paused_until.lock().unwrap_or_else(PoisonError::into_inner);
            match ends_at {
                Some(ends_at) if ends_at > Instant::now() => sleep_until(ends_at).await,
                _ => return,
            }
        }
    }

    async fn attempt(
        &self,
        media_type: &str,
        body: &Bytes,
        is_timed: bool,
    ) -> Result<Transcription, SpeechFailure> {
        let started = Instant::now();
        let result = timeout(self.timeout, self.send(media_type, body.clone(), is_timed)).await;
        let result = result.unwrap_or(Err(SpeechFailure::Unreachable(HttpError::Timeout)));
        tracing::debug!(
            bytes = body.len(),
            elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            is_success = result.is_ok(),
            "transcription request finished"
        );
        result
    }

    async fn send(
        &self,
        media_type: &str,
        body: Bytes,
        is_timed: bool,
    ) -> Result<Transcription, SpeechFailure> {
        let sent = self.endpoint.post(media_type, body).await;
        let response = sent.map_err(SpeechFailure::Unreachable)?;
        if response.status().is_success() {
            let body = read_body(response, ANSWER_MAX).await.map_err(SpeechFailure::Unreachable)?;
            return response::read(&body);
        }
        let (status, wait, body) = read_error(response).await;
        Err(classify_error(status, wait, &body, is_timed))
    }
}

transcript_core::debug_fields!(SpeechEndpoint |this| { host: this.endpoint.host() });

/// Classifies an error response. Its text is inspected but never reported: it may contain the key.
pub(super) fn classify_error(
    status: StatusCode,
    wait: Option<Duration>,
    body: &[u8],
    is_timed: bool,
) -> SpeechFailure {
    let says = |word: &str| contains(body, word);
    // An error about the times of words may name the format too, which they need.
    let is_untimed =
        || is_timed && !says("timestamp_granularities") && (says("response_format") || says("verbose_json"));
    match ServiceFault::new(status, wait, body) {
        ServiceFault::Key => SpeechFailure::Key,
        ServiceFault::QuotaExceeded => SpeechFailure::QuotaExceeded,
        ServiceFault::Throttled(wait) => SpeechFailure::Throttled(wait),
        ServiceFault::Unknown => SpeechFailure::Unknown,
        ServiceFault::TooLarge => SpeechFailure::PartTooLarge,
        ServiceFault::Rejected(400 | 422) if is_untimed() => SpeechFailure::Untimed,
        ServiceFault::Rejected(status) => SpeechFailure::Rejected(status),
        ServiceFault::ServerError(status) => SpeechFailure::ServerError(status),
    }
}

/// The pause after throttling without a `Retry-After`: up to 400 ms more than that of the backoff.
fn throttled_pause(attempt: u32) -> Duration {
    THROTTLED.pause(attempt, 1.0) + pause(0, rand::random())
}

/// A random boundary; it occurs in the audio with a probability of about 1 in 2¹²⁸.
fn boundary() -> String {
    format!("verbatim-{}", hex::encode(&rand::random::<[u8; 16]>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_response_is_classified() {
        let wait = Some(Duration::from_secs(7));
        for (status, body, expect) in [
            (401, "", SpeechFailure::Key),
            (402, "", SpeechFailure::QuotaExceeded),
            (429, r#"{"error":{"code":"insufficient_quota"}}"#, SpeechFailure::QuotaExceeded),
            (429, "slow down", SpeechFailure::Throttled(wait)),
            (503, "", SpeechFailure::Throttled(wait)),
            (502, "", SpeechFailure::ServerError(502)),
            (404, "", SpeechFailure::Unknown),
            (413, "<html>", SpeechFailure::PartTooLarge),
            (
                400,
                r#"{"error":{"param":"response_format","code":"unsupported_value"}}"#,
                SpeechFailure::Untimed,
            ),
            (422, r#"{"detail":[{"loc":["body","file"]}]}"#, SpeechFailure::Rejected(422)),
            (400, "timestamp_granularities needs verbose_json", SpeechFailure::Rejected(400)),
            (302, "", SpeechFailure::Rejected(302)),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(classify_error(status, wait, body.as_bytes(), true), expect, "{status} {body}");
        }
        assert_eq!(
            classify_error(StatusCode::BAD_REQUEST, None, b"response_format", false),
            SpeechFailure::Rejected(400)
        );
        assert_eq!(
            classify_error(StatusCode::SERVICE_UNAVAILABLE, None, b"", true),
            SpeechFailure::ServerError(503)
        );
    }

    #[test]
    fn throttled_pause_doubles_to_limit() {
        let pause = |attempt| throttled_pause(attempt).as_secs();
        assert_eq!((pause(0), pause(2), pause(99)), (1, 4, 64));
    }
}
