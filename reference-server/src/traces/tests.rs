//! Traces as a collector gets them.

use std::sync::{Arc, Mutex};

use axum::{Router, middleware::from_fn, routing::get};
use http::StatusCode;
use opentelemetry_proto::tonic::{
    collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse},
    common::v1::{KeyValue, any_value::Value},
    trace::v1::Span as Sent,
};
use prost::Message as _;
use tokio::net::TcpListener;
use tracing::Instrument as _;

use super::*;
use crate::{config::Settings, http::Front, log::Log, metrics::matched};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A collector: reads what is sent to it as the protocol describes it, and answers as it describes.
#[derive(Clone, Debug, Default)]
struct Received(Arc<Mutex<Vec<ExportTraceServiceRequest>>>);

impl Received {
    async fn listen(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let received = self.clone();
        let take = move |request: axum::extract::Request| async move {
            assert_eq!(request.headers()["content-type"], "application/x-protobuf");
            let body = request.into_body().collect().await.unwrap().to_bytes();
            received.0.lock().unwrap().push(ExportTraceServiceRequest::decode(body).unwrap());
            ExportTraceServiceResponse::default().encode_to_vec()
        };
        let routes = Router::new().route("/v1/traces", axum::routing::post(take));
        tokio::spawn(async move { axum_serve(listener, routes).await });
        format!("http://{address}/v1/traces")
    }

    fn spans(&self) -> Vec<Sent> {
        let received = self.0.lock().unwrap();
        let scopes = received.iter().flat_map(|one| &one.resource_spans).flat_map(|one| &one.scope_spans);
        scopes.flat_map(|scope| scope.spans.clone()).collect()
    }
}

async fn axum_serve(listener: TcpListener, routes: Router) {
    let (log, _guard) = Log::start(std::io::sink(), LogFormat::Text, false);
    let front = Front::new(routes, Vec::new(), log);
    crate::http::serve(listener, front, crate::http::Bounds::default(), std::future::pending()).await;
}

fn settings(endpoint: &str) -> config::Log {
    let environment = vec![("VERBATIM_TRACES__ENDPOINT".into(), endpoint.into())];
    let sources = config::Sources { data: "/data".into(), file: None, environment, flags: Vec::new() };
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

// On one thread, so that whoever subscribes on it hears of everything.
#[tokio::test]
async fn a_collector_gets_requests_and_what_was_done_for_them() {
    let received = Received::default();
    let (traces, tracer) = start(&settings(&received.listen().await), Handle::current()).unwrap().unzip();
    let subscriber = tracing_subscriber::registry().with(
        tracing_opentelemetry::layer().with_tracer(tracer.unwrap()).with_location(false).with_level(false),
    );
    let _heard = tracing::subscriber::set_default(subscriber);
    let work = async || {
        let supplier = tracing::debug_span!("supplier", supplier = "youtube-captions");
        tokio::spawn(async { tokio::task::yield_now().await }.instrument(supplier)).await.unwrap();
        StatusCode::SERVICE_UNAVAILABLE
    };
    let routes = Router::new().route("/watch/{id}", get(work)).layer(from_fn(matched));
    let (log, _guard) = Log::start(std::io::sink(), LogFormat::Text, false);
    let front = Front::new(routes, vec!["10.0.0.0/8".parse().unwrap()], log);
    for peer in ["10.0.0.1", "192.0.2.1"] {
        let request =
            Request::get("/watch/secret-id?key=vbk_secret").header("host", "v").header("traceparent", PARENT);
        let request = request.header("authorization", "Bearer vbk_secret").body(axum::body::Body::empty());
        let answer = front.answer(request.unwrap(), peer.parse().unwrap()).await;
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    }
    traces.unwrap().stop().await;

    let spans = received.spans();
    assert_eq!(spans.len(), 4, "{spans:?}");
    let requests: Vec<&Sent> = spans.iter().filter(|span| span.name == "request").collect();
    for request in &requests {
        assert_eq!(attribute(&request.attributes, "http.route").as_deref(), Some("/watch/{id}"));
        assert_eq!(attribute(&request.attributes, "http.request.method").as_deref(), Some("GET"));
        assert_eq!(attribute(&request.attributes, "http.response.status_code").as_deref(), Some("503"));
        assert_eq!(request.status.as_ref().map(|status| status.code), Some(2), "an error");
        let child = spans.iter().find(|span| span.parent_span_id == request.span_id).unwrap();
        assert_eq!((child.name.as_str(), &child.trace_id), ("supplier", &request.trace_id));
        assert_eq!(attribute(&child.attributes, "supplier").as_deref(), Some("youtube-captions"));
    }
    let believed = requests.iter().filter(|one| one.trace_id.starts_with(&[0x0a, 0xf7, 0x65, 0x19])).count();
    assert_eq!(believed, 1, "only a proxy that is trusted says to which trace a request belongs");
    let all = format!("{:?}", received.0.lock().unwrap());
    assert!(all.contains("service.name") && all.contains("verbatim"), "{all}");
    assert!(!all.contains("secret"), "{all}");
}

#[tokio::test]
async fn a_collector_that_is_away_harms_nobody() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let settings = settings(&format!("http://{nobody}/v1/traces"));
    let (traces, tracer) = start(&settings, Handle::current()).unwrap().unzip();
    let subscriber =
        tracing_subscriber::registry().with(tracing_opentelemetry::layer().with_tracer(tracer.unwrap()));
    tracing::subscriber::with_default(subscriber, || drop(tracing::error_span!("request")));
    tokio::time::timeout(2 * STOP_TIMEOUT, traces.unwrap().stop()).await.unwrap();
}

#[test]
fn only_an_address_without_tls_is_a_collectors() {
    let load = |endpoint: &str| {
        let environment = vec![("VERBATIM_TRACES__ENDPOINT".into(), endpoint.into())];
        let sources = config::Sources { data: "/data".into(), file: None, environment, flags: Vec::new() };
        Settings::load(sources)
            .map(|settings| settings.log.traces.is_some())
            .map_err(|error| error.to_string())
    };
    assert_eq!(load("http://127.0.0.1:4318/v1/traces"), Ok(true));
    assert!(load("https://c.example/v1/traces").unwrap_err().contains("traces leave by http only"));
    assert_eq!(load(""), Ok(false));
}
