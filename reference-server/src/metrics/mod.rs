//! Prometheus metrics for operators.
//!
//! Per-response values are atomic [`counters`]. Rarer events (a fetch, a ledger operation) use the Prometheus library's
//! metric families, which lock briefly. Queues, caches and memory are read on each scrape ([`scrape`]). No label has a
//! value from outside: routes are router patterns, suppliers are the configured ones, reasons and operations are names
//! in the code.

mod counters;
mod observer;
mod process;
mod reloads;
mod scrape;

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use axum::{
    extract::{MatchedPath, Request},
    middleware::Next,
    response::Response,
};
use http::{HeaderMap, StatusCode};
use transcript_core::{
    accounts::{mail::MailResult, webhooks::WebhookResult},
    archive::CompactOutcome,
    search::IndexProgress,
};

use crate::api::{
    ResultOrigin, TRANSCRIPT_PATH, UnansweredReason, V1_CHAT_PATH, V1_TRANSCRIPT_PATH, WATCH_PATH, X_CACHE,
    watch_names,
};
use counters::{RouteCounters, RouteTable};
use observer::MetricsObserver;
use reloads::ReloadCounters;

pub(crate) use process::start_time;
pub(crate) use reloads::ReloadResult;
pub(crate) use scrape::MetricsSources;

/// Route that returns transcripts, or answers from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerRoute {
    /// `/api/transcript`
    Lookup,
    /// `/api/v1/transcript`
    V1,
    /// `/api/v1/chat`
    Chat,
}

impl AnswerRoute {
    const ALL: [Self; 3] = [Self::Lookup, Self::V1, Self::Chat];

    fn as_str(self) -> &'static str {
        match self {
            Self::Lookup => "lookup",
            Self::V1 => "v1",
            Self::Chat => "chat",
        }
    }
}

/// Metrics of one server process.
#[derive(Debug, smart_default::SmartDefault)]
pub(crate) struct Metrics {
    #[default(RouteCounters::new(TRANSCRIPT_PATH))]
    lookup: RouteCounters,
    #[default(RouteCounters::new(V1_TRANSCRIPT_PATH))]
    v1_transcript: RouteCounters,
    #[default(RouteCounters::new(WATCH_PATH))]
    watch_page: RouteCounters,
    #[default(RouteTable::new())]
    others: RouteTable,
    /// Requests whose path matches no route.
    #[default(RouteCounters::new("none"))]
    unmatched: RouteCounters,
    #[default(std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0))))]
    answers: [[AtomicU64; ResultOrigin::ALL.len()]; AnswerRoute::ALL.len()],
    #[default(std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0))))]
    unanswered: [[AtomicU64; UnansweredReason::COUNT]; AnswerRoute::ALL.len()],
    connections: AtomicI64,
    reloads: ReloadCounters,
    /// Videos of successful and of failed calls of the purge hook.
    purges: [AtomicU64; 2],
    /// Attempts to send a mail: accepted, failed, and failed for the last time.
    mails: [AtomicU64; 3],
    /// Attempts to send a webhook: accepted, failed, and failed for the last time.
    webhooks: [AtomicU64; 3],
    /// Transcripts that the background job moved to cold storage, and the bytes that this saved.
    compacted: [AtomicU64; 2],
    /// Videos that the search indexer indexed because they changed.
    indexed_videos: AtomicU64,
    /// Tracks that the build of the search index has read, and whether it has ended.
    index_tracks: AtomicU64,
    index_complete: AtomicU64,
    observer: MetricsObserver,
}

/// Route of a request if it is one of the busiest, known before routing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HotCounters {
    /// Transcripts of the lookup API.
    Lookup,
    /// Transcripts of the v1 API.
    V1Transcript,
    /// Pages of videos.
    WatchPage,
    /// Another route.
    Other,
}

impl HotCounters {
    /// Classifies a path.
    pub(crate) fn for_path(path: &str) -> Self {
        match path {
            TRANSCRIPT_PATH => Self::Lookup,
            V1_TRANSCRIPT_PATH => Self::V1Transcript,
            _ if watch_names(path).is_some() => Self::WatchPage,
            _ => Self::Other,
        }
    }
}

impl Metrics {
    /// Counts a response and the time until it began. `from` is its origin if known before the handler ran.
    pub(crate) fn count<B>(
        &self,
        hot: HotCounters,
        from: Option<ResultOrigin>,
        response: &http::Response<B>,
        took: Duration,
    ) {
        let extensions = response.extensions();
        let route = match hot {
            HotCounters::Lookup => {
                if let Some(from) = from.or_else(|| extensions.get().copied()) {
                    self.count_origin(AnswerRoute::Lookup, from);
                    self.count_reason(AnswerRoute::Lookup, extensions.get().copied());
                }
                &self.lookup
            }
            HotCounters::V1Transcript => {
                self.count_charged(AnswerRoute::V1, from, response);
                &self.v1_transcript
            }
            HotCounters::WatchPage => &self.watch_page,
            HotCounters::Other => {
                let pattern = extensions.get::<MatchedPath>().map(MatchedPath::as_str);
                if pattern == Some(V1_CHAT_PATH) {
                    self.count_charged(AnswerRoute::Chat, None, response);
                }
                pattern.and_then(|pattern| self.others.get(pattern)).unwrap_or(&self.unmatched)
            }
        };
        route.count(response.status(), took);
    }

    /// Counts the origin of a response of the v1 API, or the reason for which it has no transcript.
    fn count_charged<B>(&self, api: AnswerRoute, known: Option<ResultOrigin>, response: &http::Response<B>) {
        let (status, headers) = (response.status(), response.headers());
        let Some(from) = charged_from(status, headers, known) else { return };
        self.count_origin(api, from);
        let unanswered = from == ResultOrigin::Nothing;
        self.count_reason(api, unanswered.then(|| UnansweredReason::for_v1(status, headers)));
    }

    fn count_origin(&self, api: AnswerRoute, from: ResultOrigin) {
        if let Some(cell) = self.answers.get(api as usize).and_then(|counts| counts.get(from as usize)) {
            cell.fetch_add(1, Relaxed);
        }
    }

    /// Counts the videos of a call of the purge hook.
    pub(crate) fn count_purges(&self, videos: usize, is_done: bool) {
        let [done, failed] = &self.purges;
        (if is_done { done } else { failed }).fetch_add(videos as u64, Relaxed);
    }

    /// Counts an attempt to send a mail.
    pub(crate) fn count_mail(&self, result: MailResult) {
        let [sent, failed, abandoned] = &self.mails;
        let counter = match result {
            MailResult::Sent => sent,
            MailResult::Failed => failed,
            MailResult::Abandoned => abandoned,
        };
        counter.fetch_add(1, Relaxed);
    }

    /// Counts an attempt to send a webhook.
    pub(crate) fn count_webhook(&self, result: WebhookResult) {
        let [delivered, failed, abandoned] = &self.webhooks;
        let counter = match result {
            WebhookResult::Delivered => delivered,
            WebhookResult::Failed => failed,
            WebhookResult::Abandoned => abandoned,
        };
        counter.fetch_add(1, Relaxed);
    }

    /// Counts what the search indexer did, and records the state of the index.
    pub(crate) fn count_indexing(&self, progress: &IndexProgress) {
        self.indexed_videos.fetch_add(progress.changed, Relaxed);
        self.index_tracks.store(progress.state.tracks, Relaxed);
        self.index_complete.store(u64::from(progress.state.is_complete), Relaxed);
    }

    /// Counts a step of the compaction of old transcripts.
    pub(crate) fn count_compaction(&self, outcome: &CompactOutcome) {
        let [transcripts, saved] = &self.compacted;
        transcripts.fetch_add(outcome.compacted, Relaxed);
        saved.fetch_add(outcome.bytes_before.saturating_sub(outcome.bytes_after), Relaxed);
    }

    /// Counts a reload of the settings.
    pub(crate) fn count_reload(&self, result: ReloadResult) {
        self.reloads.count(result);
    }

    fn count_reason(&self, api: AnswerRoute, reason: Option<UnansweredReason>) {
        let counts = self.unanswered.get(api as usize);
        if let Some(cell) = reason.and_then(|reason| counts?.get(reason.0)) {
            cell.fetch_add(1, Relaxed);
        }
    }

    /// Counts an open connection until the guard is dropped.
    pub(crate) fn connection(self: &Arc<Self>) -> ConnectionGuard {
        self.connections.fetch_add(1, Relaxed);
        ConnectionGuard(Arc::clone(self))
    }
}

/// Open connection; drop decrements the gauge.
#[derive(Debug)]
pub(crate) struct ConnectionGuard(Arc<Metrics>);

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Relaxed);
    }
}

/// Origin of a v1 transcript; `None` if the request was rejected before the lookup.
fn charged_from(
    status: StatusCode,
    headers: &HeaderMap,
    known: Option<ResultOrigin>,
) -> Option<ResultOrigin> {
    match headers.get(X_CACHE).map(|cache| cache.as_bytes()) {
        Some(b"HIT") => Some(known.unwrap_or(ResultOrigin::Archive)),
        Some(_) => Some(ResultOrigin::Fetched),
        None => {
            (status == StatusCode::NOT_FOUND || status.is_server_error()).then_some(ResultOrigin::Nothing)
        }
    }
}

/// Middleware that copies the matched route pattern into the response's extensions.
pub(crate) async fn matched(request: Request, next: Next) -> Response {
    let pattern = request.extensions().get::<MatchedPath>().cloned();
    let mut response = next.run(request).await;
    if let Some(pattern) = pattern {
        response.extensions_mut().insert(pattern);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origin_and_api_kind_indices_match_all() {
        for (index, from) in ResultOrigin::ALL.into_iter().enumerate() {
            assert_eq!(from as usize, index, "{}", from.as_str());
        }
        for (index, api) in AnswerRoute::ALL.into_iter().enumerate() {
            assert_eq!(api as usize, index, "{}", api.as_str());
        }
        assert_eq!(
            [HotCounters::for_path("/api/transcript"), HotCounters::for_path("/api/v1/transcript")],
            [HotCounters::Lookup, HotCounters::V1Transcript]
        );
        assert_eq!(HotCounters::for_path("/watch/video_site/x"), HotCounters::WatchPage);
        for path in ["/api/transcript/", "/watch/", "/watch/a", "/watch//x", "/watch/a/", "/watch/a/b/pdf"] {
            assert_eq!(HotCounters::for_path(path), HotCounters::Other, "{path}");
        }
    }

    #[test]
    fn charged_origin_rejected_call_is_none() {
        let none = HeaderMap::new();
        let cache = |value: &'static str| HeaderMap::from_iter([(X_CACHE, value.parse().unwrap())]);
        let ready = Some(ResultOrigin::Ready);
        assert_eq!(charged_from(StatusCode::OK, &cache("HIT"), None), Some(ResultOrigin::Archive));
        assert_eq!(charged_from(StatusCode::OK, &cache("HIT"), ready), Some(ResultOrigin::Ready));
        assert_eq!(charged_from(StatusCode::OK, &cache("MISS"), None), Some(ResultOrigin::Fetched));
        for status in [StatusCode::NOT_FOUND, StatusCode::INTERNAL_SERVER_ERROR] {
            assert_eq!(charged_from(status, &none, None), Some(ResultOrigin::Nothing));
        }
        for status in [StatusCode::UNAUTHORIZED, StatusCode::PAYMENT_REQUIRED, StatusCode::TOO_MANY_REQUESTS]
        {
            assert_eq!(charged_from(status, &none, ready), None);
        }
    }
}
