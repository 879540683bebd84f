//! Tests of exported traces, as a collector receives them.

use std::{fs::File, sync::Mutex, time::SystemTime};

use axum::{Router, middleware::from_fn, routing::get};
use http::StatusCode;
use opentelemetry::{
    InstrumentationScope, KeyValue as Attribute,
    trace::{SpanContext, SpanId, SpanKind},
};
use opentelemetry_proto::tonic::{
    collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse},
    common::v1::{KeyValue, any_value::Value},
    trace::v1::Span as SentSpan,
};
use prost::Message as _;
use tokio::net::TcpListener;
use tracing::Instrument as _;

use super::*;
use crate::{
    config::Settings,
    log::LogQueue,
    metrics::matched,
    serve::{CurrentService, HttpService},
};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A collector that decodes requests and responds as the protocol specifies.
#[derive(Clone, Debug, Default)]
struct TestCollector(Arc<Mutex<Vec<ExportTraceServiceRequest>>>);

impl TestCollector {
    async fn listen(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let collector = self.clone();
        let receive = move |request: axum::extract::Request| async move {
            assert_eq!(request.headers()["content-type"], "application/x-protobuf");
            let body = request.into_body().collect().await.unwrap().to_bytes();
            collector.0.lock().unwrap().push(ExportTraceServiceRequest::decode(body).unwrap());
            ExportTraceServiceResponse::default().encode_to_vec()
        };
        let routes = Router::new().route("/v1/traces", axum::routing::post(receive));
        tokio::spawn(async move { axum_serve(listener, routes).await });
        format!("http://{address}/v1/traces")
    }

    fn spans(&self) -> Vec<SentSpan> {
        let collector = self.0.lock().unwrap();
        let scopes = collector.iter().flat_map(|one| &one.resource_spans).flat_map(|one| &one.scope_spans);
        scopes.flat_map(|scope| scope.spans.clone()).collect()
    }
}

async fn axum_serve(listener: TcpListener, routes: Router) {
    let (log, _guard) = LogQueue::start(std::io::sink(), LogFormat::Text, tracing::Level::WARN);
    let front = CurrentService::new(HttpService::new(routes, Vec::new(), log));
    crate::serve::serve(
        crate::serve::Listener::Tcp(listener),
        front,
        crate::serve::ConnectionLimits::default(),
        std::future::pending(),
    )
    .await;
}

fn settings(endpoint: &str) -> config::LogSettings {
    let environment = vec![("VERBATIM_TRACES__ENDPOINT".into(), endpoint.into())];
    let sources = config::SettingSources { data: "/data".into(), file: None, environment, flags: Vec::new() };
    Settings::load(sources).unwrap().log
}

fn attribute(attributes: &[KeyValue], name: &str) -> Option<String> {
    let value = attributes.iter().find(|one| one.key == name)?.value.clone()?.value?;
    Some(match value {
        Value::StringValue(text) => text,
        Value::IntValue(number) => number.to_string(),
        other => format!("{other:?}"),
    })
}

fn is_health_check(span: &SentSpan) -> bool {
    attribute(&span.attributes, "http.route").is_some_and(|route| HEALTH_PATHS.contains(&&*route))
}

// Runs on one thread, so that the thread's subscriber receives all spans.
#[tokio::test]
async fn traces_collector_receives_requests_and_suppliers() {
    let collector = TestCollector::default();
    let (traces, tracer) = start(&settings(&collector.listen().await), Handle::current()).unwrap().unzip();
    let subscriber = tracing_subscriber::registry().with(
        tracing_opentelemetry::layer().with_tracer(tracer.unwrap()).with_location(false).with_level(false),
    );
    let _subscribed = tracing::subscriber::set_default(subscriber);
    let work = async || {
        let supplier = tracing::debug_span!("supplier", supplier = "youtube-captions");
        tokio::spawn(async { tokio::task::yield_now().await }.instrument(supplier)).await.unwrap();
        StatusCode::SERVICE_UNAVAILABLE
    };
    let routes = Router::new()
        .route("/watch/{id}", get(work))
        .route("/readyz", get(async || StatusCode::OK))
        .route("/healthz", get(async || StatusCode::SERVICE_UNAVAILABLE))
        .layer(from_fn(matched));
    let (log, _guard) = LogQueue::start(std::io::sink(), LogFormat::Text, tracing::Level::WARN);
    let front = HttpService::new(routes, vec!["10.0.0.0/8".parse().unwrap()], log);
    // A socket for both families names IPv4 addresses as IPv6 ones.
    for peer in ["10.0.0.1", "::ffff:10.0.0.2", "192.0.2.1"] {
        let request =
            Request::get("/watch/secret-id?key=vbk_secret").header("host", "v").header("traceparent", PARENT);
        let request = request.header("authorization", "Bearer vbk_secret").body(axum::body::Body::empty());
        let answer = front.answer(request.unwrap(), peer.parse().unwrap()).await;
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    }
    for path in ["/readyz", "/healthz"] {
        let check = Request::get(path).header("host", "v").body(axum::body::Body::empty()).unwrap();
        front.answer(check, "10.0.0.1".parse().unwrap()).await;
    }
    traces.unwrap().stop().await;

    let (checks, spans): (Vec<_>, Vec<_>) = collector.spans().into_iter().partition(is_health_check);
    let routes: Vec<_> = checks.iter().map(|span| attribute(&span.attributes, "http.route")).collect();
    assert_eq!(routes, [Some("/healthz".to_owned())], "only a failed health check has a trace");
    assert_eq!(spans.len(), 6, "{spans:?}");
    let requests: Vec<&SentSpan> = spans.iter().filter(|span| span.name == "request").collect();
    for request in &requests {
        assert_eq!(attribute(&request.attributes, "http.route").as_deref(), Some("/watch/{id}"));
        assert_eq!(attribute(&request.attributes, "http.request.method").as_deref(), Some("GET"));
        assert_eq!(attribute(&request.attributes, "http.response.status_code").as_deref(), Some("503"));
        assert_eq!(request.status.as_ref().map(|status| status.code), Some(2), "an error");
        let child = spans.iter().find(|span| span.parent_span_id == request.span_id).unwrap();
        assert_eq!((child.name.as_str(), &child.trace_id), ("supplier", &request.trace_id));
        assert_eq!(attribute(&child.attributes, "supplier").as_deref(), Some("youtube-captions"));
    }
    let with_parent =
        requests.iter().filter(|one| one.trace_id.starts_with(&[0x0a, 0xf7, 0x65, 0x19])).count();
    assert_eq!(with_parent, 2, "only a trusted proxy sets the trace of a request");
    let all = format!("{:?}", collector.0.lock().unwrap());
    assert!(all.contains("service.name") && all.contains("verbatim"), "{all}");
    assert!(!all.contains("secret"), "{all}");
}

#[tokio::test]
async fn traces_unreachable_collector_does_not_block_stop() {
    let unreachable = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let settings = settings(&format!("http://{unreachable}/v1/traces"));
    let (traces, tracer) = start(&settings, Handle::current()).unwrap().unzip();
    let subscriber =
        tracing_subscriber::registry().with(tracing_opentelemetry::layer().with_tracer(tracer.unwrap()));
    tracing::subscriber::with_default(subscriber, || drop(tracing::error_span!("request")));
    tokio::time::timeout(2 * STOP_TIMEOUT, traces.unwrap().stop()).await.unwrap();
}

fn span(route: &'static str) -> SpanData {
    SpanData {
        span_context: SpanContext::empty_context(),
        parent_span_id: SpanId::INVALID,
        parent_span_is_remote: false,
        span_kind: SpanKind::Server,
        name: "request".into(),
        start_time: SystemTime::UNIX_EPOCH,
        end_time: SystemTime::UNIX_EPOCH,
        attributes: vec![
            Attribute::new("http.route", route),
            Attribute::new("http.response.status_code", 200_i64),
        ],
        dropped_attributes_count: 0,
        events: Default::default(),
        links: Default::default(),
        status: Status::Unset,
        instrumentation_scope: InstrumentationScope::default(),
    }
}

// Runs on one thread, so that the thread's subscriber receives all events.
#[tokio::test]
async fn traces_failing_export_is_logged_at_begin_and_end() {
    let status = Arc::new(Mutex::new(StatusCode::BAD_REQUEST));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}/v1/traces", listener.local_addr().unwrap());
    let answer = Arc::clone(&status);
    let respond = move || async move { *answer.lock().unwrap() };
    let routes = Router::new().route("/v1/traces", axum::routing::post(respond));
    tokio::spawn(async move { axum_serve(listener, routes).await });
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let writer = Arc::new(File::create(&log).unwrap());
    let lines = tracing_subscriber::fmt().with_ansi(false).with_writer(writer).finish();
    let _subscribed = tracing::subscriber::set_default(lines);
    let exporter = RequestExporter::new(&endpoint, Handle::current()).unwrap();

    for _ in 0..3 {
        assert!(exporter.export(vec![span("/watch/{id}"), span("/readyz"), span("/version")]).await.is_err());
    }
    *status.lock().unwrap() = StatusCode::OK;
    assert!(exporter.export(vec![span("/readyz")]).await.is_ok());
    for _ in 0..2 {
        assert!(exporter.export(vec![span("/watch/{id}")]).await.is_ok());
    }
    // A second outage within the minute is not reported, but counts in the next report.
    *status.lock().unwrap() = StatusCode::BAD_REQUEST;
    assert!(exporter.export(vec![span("/version")]).await.is_err());
    *status.lock().unwrap() = StatusCode::OK;
    assert!(exporter.export(vec![span("/version")]).await.is_ok());
    assert_eq!(exporter.lost.load(Ordering::Relaxed), 1);
    let log = std::fs::read_to_string(log).unwrap();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("trace export")).collect();
    let [failed, recovered] = lines.as_slice() else { panic!("{log}") };
    assert!(failed.contains("WARN") && failed.contains("400") && failed.contains("lost=2"), "{failed}");
    assert!(recovered.contains("INFO") && recovered.contains("lost=6"), "{recovered}");
}

#[test]
fn traces_endpoint_must_be_http() {
    let load = |endpoint: &str| {
        let environment = vec![("VERBATIM_TRACES__ENDPOINT".into(), endpoint.into())];
        let sources =
            config::SettingSources { data: "/data".into(), file: None, environment, flags: Vec::new() };
        Settings::load(sources)
            .map(|settings| settings.log.traces.is_some())
            .map_err(|error| error.to_string())
    };
    assert_eq!(load("http://127.0.0.1:4318/v1/traces"), Ok(true));
    assert!(load("https://c.example/v1/traces").unwrap_err().contains("traces are sent over http only"));
    assert_eq!(load(""), Ok(false));
}
