//! Tests of exported traces, as a collector receives them.

use std::sync::Mutex;

use axum::{Router, middleware::from_fn, routing::get};
use http::StatusCode;
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
    let (log, _guard) = LogQueue::start(std::io::sink(), LogFormat::Text, false);
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
    let routes = Router::new().route("/watch/{id}", get(work)).layer(from_fn(matched));
    let (log, _guard) = LogQueue::start(std::io::sink(), LogFormat::Text, false);
    let front = HttpService::new(routes, vec!["10.0.0.0/8".parse().unwrap()], log);
    // A socket for both families names IPv4 addresses as IPv6 ones.
    for peer in ["10.0.0.1", "::ffff:10.0.0.2", "192.0.2.1"] {
        let request =
            Request::get("/watch/secret-id?key=vbk_secret").header("host", "v").header("traceparent", PARENT);
        let request = request.header("authorization", "Bearer vbk_secret").body(axum::body::Body::empty());
        let answer = front.answer(request.unwrap(), peer.parse().unwrap()).await;
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    }
    traces.unwrap().stop().await;

    let spans = collector.spans();
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
