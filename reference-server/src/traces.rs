//! Request traces for an operator's collector, as OTLP over HTTP.
//!
//! A request that reaches the router is a span, and so is each supplier call for it, anywhere in the engine. Responses
//! from the cache or built around stored bodies have no span, and those of passed health checks are not exported. A
//! span contains the route, the status, the supplier and the platform; never a requested address, a key or a word of a
//! transcript. Log events are not exported.
//!
//! Spans are queued in a bounded queue of the library's thread and dropped while the collector is unreachable.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use axum::extract::MatchedPath;
use bytes::Bytes;
use http::{Request, Response, StatusCode, request::Parts};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use ipnet::IpNet;
use opentelemetry::{
    Value,
    propagation::TextMapPropagator as _,
    trace::{Status, TraceContextExt as _, TracerProvider as _},
};
use opentelemetry_http::{HeaderExtractor, HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    propagation::TraceContextPropagator,
    trace::{Sampler, SdkTracerProvider, SpanData, SpanExporter as ExportSpans},
};
use tokio::runtime::Handle;
use tracing::{Metadata, Span, level_filters::LevelFilter, subscriber::set_global_default};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::{Layer as _, filter::filter_fn, fmt::MakeWriter, layer::SubscriberExt as _, reload};
use transcript_core::FailureLog;

use crate::{
    api::HEALTH_PATHS,
    config::{self, LogFormat},
};

/// Timeout of one batch.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long the server waits for queued spans when it stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// Largest collector response that is read, in bytes.
const ANSWER_MAX: usize = 64 * 1024;
/// Crates whose spans are exported.
const EXPORTED_CRATES: [&str; 5] =
    ["reference_server", "transcript_core", "verbatim", "upstream_reqwest", "storage_sqlx"];

/// Converts spans of `tracing` to OpenTelemetry.
pub(crate) type TracerHandle = opentelemetry_sdk::trace::SdkTracer;

/// Trace export of this process.
#[derive(Debug)]
pub(crate) struct RequestTraces(SdkTracerProvider);

/// Starts the export if the settings name a collector. Nothing is sent before the first span ends.
///
/// # Errors
/// The collector's address is invalid.
pub(crate) fn start(
    settings: &config::LogSettings,
    runtime: Handle,
) -> Result<Option<(RequestTraces, TracerHandle)>, String> {
    let Some(endpoint) = &settings.traces else { return Ok(None) };
    let exporter = RequestExporter::new(endpoint.as_str(), runtime)?;
    let sampler = Sampler::TraceIdRatioBased(settings.traces_sample_ratio);
    let version = opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let resource = Resource::builder().with_service_name("verbatim").with_attribute(version).build();
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_sampler(Sampler::ParentBased(Box::new(sampler)))
        .with_resource(resource)
        .build();
    let tracer = provider.tracer("verbatim");
    Ok(Some((RequestTraces(provider), tracer)))
}

impl RequestTraces {
    /// Exports queued spans and stops.
    pub(crate) async fn stop(self) {
        // The shutdown blocks its thread.
        let stop = move || self.0.shutdown_with_timeout(STOP_TIMEOUT);
        if let Ok(Err(error)) = tokio::task::spawn_blocking(stop).await {
            tracing::warn!(%error, "trace export stopped early");
        }
    }
}

/// Installs log and traces, each with its own filter. Events that are not loggable are in neither.
///
/// Returns a function that changes the level of the log.
pub(crate) fn log_and_trace(
    settings: &config::LogSettings,
    ansi: bool,
    tracer: TracerHandle,
    is_loggable: fn(&Metadata<'_>) -> bool,
    lines: impl for<'a> MakeWriter<'a> + Send + Sync + 'static,
) -> Arc<dyn Fn(LevelFilter) + Send + Sync> {
    let (level, handle) = reload::Layer::new(LevelFilter::from_level(settings.level.0));
    let layer = tracing_subscriber::fmt::layer().with_ansi(ansi).with_writer(lines);
    let lines = match settings.format {
        LogFormat::Text => layer.with_target(false).boxed(),
        LogFormat::Json => layer.json().flatten_event(true).with_current_span(false).boxed(),
    };
    let is_exported = |target: &str| EXPORTED_CRATES.contains(&target.split("::").next().unwrap_or_default());
    let spans = filter_fn(move |metadata| metadata.is_span() && is_exported(metadata.target()))
        .with_max_level_hint(LevelFilter::DEBUG);
    let traces = tracing_opentelemetry::layer()
        .with_tracer(tracer)
        .with_location(false)
        .with_threads(false)
        .with_level(false)
        .with_target(false);
    let all = tracing_subscriber::registry()
        .with(filter_fn(is_loggable))
        .with(lines.with_filter(level))
        .with(traces.with_filter(spans));
    // A second start in one process keeps the first subscriber.
    let _ = set_global_default(all);
    // Fails only if the subscriber was not installed.
    Arc::new(move |level| drop(handle.reload(level)))
}

/// Sets the attributes of a request. A trace parent is accepted from trusted proxies only.
pub(crate) fn begin(span: &Span, head: &Parts, peer: IpAddr, trusted_proxies: &[IpNet]) {
    span.set_attribute("http.request.method", known_method(&head.method));
    let peer = peer.to_canonical();
    if trusted_proxies.iter().any(|network| network.contains(&peer)) {
        let parent = TraceContextPropagator::new().extract(&HeaderExtractor(&head.headers));
        if parent.span().span_context().is_valid() {
            // Fails without a collector.
            let _ = span.set_parent(parent);
        }
    }
}

/// Sets the attributes of a response.
pub(crate) fn end<B>(span: &Span, response: &Response<B>) {
    if let Some(route) = response.extensions().get::<MatchedPath>() {
        span.set_attribute("http.route", route.as_str().to_owned());
    }
    let status = response.status();
    span.set_attribute("http.response.status_code", i64::from(status.as_u16()));
    if status.is_server_error() {
        span.set_status(Status::error(""));
    }
}

/// Returns the name of a known method, otherwise `_OTHER`.
fn known_method(method: &http::Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "OPTIONS", "PUT", "PATCH", "DELETE"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("_OTHER")
}

/// Exports spans, except those of passed health checks, and logs failures.
///
/// The events of the library are not in the log.
#[derive(Debug)]
struct RequestExporter {
    exporter: SpanExporter,
    failures: FailureLog,
    /// Spans lost since the last reported recovery.
    lost: AtomicU64,
}

impl RequestExporter {
    /// An exporter to the collector at this address.
    ///
    /// # Errors
    /// The collector's address is invalid.
    fn new(endpoint: &str, runtime: Handle) -> Result<Self, String> {
        let client = CollectorClient { runtime, client: Client::builder(TokioExecutor::new()).build_http() };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_endpoint(endpoint)
            .with_timeout(TIMEOUT)
            .build()
            .map_err(|error| format!("traces.endpoint: {error}"))?;
        Ok(Self { exporter, failures: FailureLog::new(), lost: AtomicU64::new(0) })
    }
}

impl ExportSpans for RequestExporter {
    async fn export(&self, mut batch: Vec<SpanData>) -> OTelSdkResult {
        batch.retain(|span| !is_passed_health_check(span));
        if batch.is_empty() {
            return Ok(());
        }
        let spans = batch.len() as u64;
        let result = self.exporter.export(batch).await;
        match &result {
            Ok(()) => {
                if self.failures.succeeded().is_some() {
                    let lost = self.lost.swap(0, Ordering::Relaxed);
                    tracing::info!(lost, "trace export recovered");
                }
            }
            Err(error) => {
                let lost = self.lost.fetch_add(spans, Ordering::Relaxed) + spans;
                if self.failures.failed().is_some() {
                    tracing::warn!(%error, lost, "trace export failed, check traces.endpoint");
                }
            }
        }
        result
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

/// Whether a span is that of a successful health check, which load balancers repeat all the time.
fn is_passed_health_check(span: &SpanData) -> bool {
    let value = |name: &str| {
        let attribute = span.attributes.iter().find(|attribute| attribute.key.as_str() == name);
        attribute.map(|attribute| &attribute.value)
    };
    let ok = Value::I64(StatusCode::OK.as_u16().into());
    value("http.route").is_some_and(|route| HEALTH_PATHS.contains(&&*route.as_str()))
        && value("http.response.status_code") == Some(&ok)
}

/// HTTP client for the collector, which runs on the server's runtime, whichever thread calls it.
#[derive(Debug)]
struct CollectorClient {
    runtime: Handle,
    client: Client<HttpConnector, Full<Bytes>>,
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let send = async move {
            let answer = client.request(request.map(Full::new)).await?;
            let (head, body) = answer.into_parts();
            let body = Limited::new(body, ANSWER_MAX).collect().await?.to_bytes();
            Ok(Response::from_parts(head, body))
        };
        // Spawned, so that no span of a caller contains the export.
        let sent = self.runtime.spawn(async move { tokio::time::timeout(TIMEOUT, send).await });
        sent.await??
    }
}

#[cfg(test)]
mod tests;
