//! Traces for a collector of the operator's, by OTLP over HTTP.
//!
//! A request that the router is asked for is a span, and so is a supplier that works for it, wherever in the engine that
//! happens. Answers that are ready, or put around what is stored, are none: there is nothing in them to look into. A
//! span says which route it was, with what status it ended, which supplier worked and for which platform; never an
//! address that was asked for, a key, or a word of a transcript. Events (lines of the log) are not sent.
//!
//! Spans wait in a bounded queue for a thread of the library; where the collector is away they are dropped.

use std::{net::IpAddr, time::Duration};

use async_trait::async_trait;
use axum::extract::MatchedPath;
use bytes::Bytes;
use http::{Request, Response, request::Parts};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use ipnet::IpNet;
use opentelemetry::{
    propagation::TextMapPropagator as _,
    trace::{Status, TraceContextExt as _, TracerProvider as _},
};
use opentelemetry_http::{HeaderExtractor, HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    propagation::TraceContextPropagator,
    trace::{Sampler, SdkTracerProvider},
};
use tokio::runtime::Handle;
use tracing::{Span, level_filters::LevelFilter, subscriber::set_global_default};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::{Layer as _, filter::filter_fn, fmt::MakeWriter, layer::SubscriberExt as _};

use crate::config::{self, LogFormat};

/// How long the collector may take for one batch.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long what waits may take to be sent when the server stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest answer of a collector that is read, in bytes.
const ANSWER_MAX: usize = 64 * 1024;
/// Whose spans are sent: ours, and not those of the libraries below.
const OURS: [&str; 5] =
    ["reference_server", "transcript_core", "verbatim", "upstream_reqwest", "storage_sqlx"];

/// What makes spans of ours into the collector's.
pub(crate) type Tracer = opentelemetry_sdk::trace::SdkTracer;

/// The traces of this process.
#[derive(Debug)]
pub(crate) struct Traces(SdkTracerProvider);

/// Begins to send traces where the settings name a collector. Nothing is sent before the first span ends.
///
/// # Errors
/// A sentence, when the collector's address cannot be used.
pub(crate) fn start(settings: &config::Log, runtime: Handle) -> Result<Option<(Traces, Tracer)>, String> {
    let Some(endpoint) = &settings.traces else { return Ok(None) };
    let client = Collector { runtime, client: Client::builder(TokioExecutor::new()).build_http() };
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(client)
        .with_endpoint(endpoint.as_str())
        .with_timeout(TIMEOUT)
        .build()
        .map_err(|error| format!("traces.endpoint: {error}"))?;
    let sampler = match settings.traces_one_in {
        1 => Sampler::AlwaysOn,
        one_in => Sampler::TraceIdRatioBased(1.0 / one_in as f64),
    };
    let version = opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let resource = Resource::builder().with_service_name("verbatim").with_attribute(version).build();
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_sampler(Sampler::ParentBased(Box::new(sampler)))
        .with_resource(resource)
        .build();
    let tracer = provider.tracer("verbatim");
    Ok(Some((Traces(provider), tracer)))
}

impl Traces {
    /// Sends what waits, and ends.
    pub(crate) async fn stop(self) {
        // It waits on the thread that calls it.
        let stop = move || self.0.shutdown_with_timeout(STOP_TIMEOUT);
        if let Ok(Err(error)) = tokio::task::spawn_blocking(stop).await {
            tracing::warn!(%error, "some traces were not sent");
        }
    }
}

/// Starts the log with lines and traces side by side: each hears what it is for.
pub(crate) fn log_and_trace(
    settings: &config::Log,
    ansi: bool,
    tracer: Tracer,
    lines: impl for<'a> MakeWriter<'a> + Send + Sync + 'static,
) {
    let level = LevelFilter::from_level(settings.level.0);
    let layer = tracing_subscriber::fmt::layer().with_ansi(ansi).with_writer(lines);
    let lines = match settings.format {
        LogFormat::Text => layer.with_target(false).boxed(),
        LogFormat::Json => layer.json().flatten_event(true).with_current_span(false).boxed(),
    };
    let is_ours = |target: &str| OURS.contains(&target.split("::").next().unwrap_or_default());
    let spans = filter_fn(move |seen| seen.is_span() && is_ours(seen.target()))
        .with_max_level_hint(LevelFilter::DEBUG);
    let traces = tracing_opentelemetry::layer()
        .with_tracer(tracer)
        .with_location(false)
        .with_threads(false)
        .with_level(false)
        .with_target(false);
    let all = tracing_subscriber::registry()
        .with(filter_fn(crate::log::is_sayable))
        .with(lines.with_filter(level))
        .with(traces.with_filter(spans));
    // A second start in one process keeps the first subscriber: lines go on to be written there.
    let _ = set_global_default(all);
}

/// Notes what a request is. The trace that it belongs to is believed of proxies that are trusted.
pub(crate) fn begin(span: &Span, head: &Parts, peer: IpAddr, trusted_proxies: &[IpNet]) {
    span.set_attribute("http.request.method", known_method(&head.method));
    if trusted_proxies.iter().any(|network| network.contains(&peer)) {
        let parent = TraceContextPropagator::new().extract(&HeaderExtractor(&head.headers));
        if parent.span().span_context().is_valid() {
            // Without a collector there is nothing to set it in.
            let _ = span.set_parent(parent);
        }
    }
}

/// Notes how a request ended.
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

/// A method by its name; those that nobody knows are one.
fn known_method(method: &http::Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "OPTIONS", "PUT", "PATCH", "DELETE"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("_OTHER")
}

/// How the collector is reached: by the server's own runtime, whichever thread asks.
#[derive(Debug)]
struct Collector {
    runtime: Handle,
    client: Client<HttpConnector, Full<Bytes>>,
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let send = async move {
            let answer = client.request(request.map(Full::new)).await?;
            let (head, body) = answer.into_parts();
            let body = Limited::new(body, ANSWER_MAX).collect().await?.to_bytes();
            Ok(Response::from_parts(head, body))
        };
        // No span of ours is about sending spans.
        let sent = self.runtime.spawn(async move { tokio::time::timeout(TIMEOUT, send).await });
        sent.await??
    }
}

#[cfg(test)]
mod tests;
