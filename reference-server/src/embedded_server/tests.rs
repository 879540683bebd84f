use axum::routing::get;
use http::{StatusCode, header::HOST};
use http_body_util::BodyExt;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tower::Service as _;
use transcript_core::ErrorKind;
use verbatim::{ImportRequest, Options};

use super::*;

async fn open() -> Verbatim {
    let mut options = Options::default().without_suppliers();
    options.set_base_url("https://v.example");
    let verbatim = Verbatim::open(options).await.unwrap();
    let import = ImportRequest {
        link: "https://youtu.be/dQw4w9WgXcQ".to_owned(),
        captions: b"1\n00:00:01,000 --> 00:00:03,000\nThe gate opens at nine.\n".to_vec(),
        language: Some("en".to_owned()),
        ..ImportRequest::default()
    };
    verbatim.tools().import(import).await.unwrap();
    verbatim
}

fn request(path: &str, host: &str) -> Request<Body> {
    Request::get(path).header(HOST, host).body(Body::empty()).unwrap()
}

async fn status(server: &mut EmbeddedServer, path: &str, host: &str) -> StatusCode {
    server.call(request(path, host)).await.unwrap().status()
}

#[tokio::test]
async fn embedded_server_answers_beside_own_routes() {
    let verbatim = open().await;
    let server = EmbeddedServer::new(&verbatim, &EmbedOptions::default()).unwrap();
    let app = Router::new().route("/hello", get(|| async { "Hello." })).merge(server.router());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    let serve = tokio::spawn(async move { axum::serve(listener, service).await });
    let get = async |path: &str| {
        let mut connection = TcpStream::connect(address).await.unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nHost: v.example\r\nConnection: close\r\n\r\n");
        connection.write_all(head.as_bytes()).await.unwrap();
        let mut response = String::new();
        connection.read_to_string(&mut response).await.unwrap();
        response
    };
    assert!(get("/hello").await.ends_with("Hello."));
    let transcript = get("/api/transcript?v=dQw4w9WgXcQ&format=text").await;
    assert!(transcript.starts_with("HTTP/1.1 200") && transcript.contains("The gate opens at nine."));
    assert!(transcript.contains("x-request-id: "), "{transcript}");
    assert!(get("/health").await.starts_with("HTTP/1.1 200"));
    assert!(get("/watch/video_site/dQw4w9WgXcQ").await.contains("https://v.example"));
    assert!(get("/nothing").await.starts_with("HTTP/1.1 404"));
    serve.abort();
    verbatim.close().await;
}

#[tokio::test]
async fn embedded_server_is_tower_service_with_client_address() {
    let verbatim = open().await;
    let mut server = EmbeddedServer::new(&verbatim, &EmbedOptions::default()).unwrap();
    let client = |address: &str| ConnectInfo(SocketAddr::new(address.parse().unwrap(), 1));
    let mut challenge = async |address: Option<&str>| {
        let mut request = Request::post("/api/keys").header(HOST, "v.example").body(Body::empty()).unwrap();
        if let Some(address) = address {
            request.extensions_mut().insert(client(address));
        }
        server.call(request).await.unwrap().status()
    };
    // The limit of created keys is per network: another network has its own, and unknown clients share one.
    let mut created = 0;
    while challenge(Some("192.0.2.1")).await.is_success() {
        created += 1;
        assert!(created < 1_000);
    }
    assert!(created > 0);
    assert_eq!(challenge(Some("192.0.2.1")).await, StatusCode::TOO_MANY_REQUESTS);
    assert!(challenge(Some("198.51.100.1")).await.is_success());
    for _ in 0..created {
        assert!(challenge(None).await.is_success());
    }
    assert_eq!(challenge(None).await, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn embedded_server_at_loopback_answers_known_hosts_only() {
    let verbatim = open().await;
    let options = EmbedOptions {
        listen: Some("127.0.0.1:8080".parse().unwrap()),
        allowed_hosts: vec!["*.example.org".to_owned()],
        ..EmbedOptions::default()
    };
    let mut server = EmbeddedServer::new(&verbatim, &options).unwrap();
    for host in ["127.0.0.1:8080", "localhost", "v.example", "a.example.org"] {
        assert_eq!(status(&mut server, "/health", host).await, StatusCode::OK, "{host}");
    }
    assert_eq!(status(&mut server, "/health", "evil.example").await, StatusCode::MISDIRECTED_REQUEST);
    // A browser gets a page, not JSON.
    let mut browser = request("/", "evil.example");
    browser.headers_mut().insert("accept", "text/html".parse().unwrap());
    let refused = server.call(browser).await.unwrap();
    assert_eq!(refused.status(), StatusCode::MISDIRECTED_REQUEST);
    let page = refused.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&page).contains("There is nothing at this address."), "{page:?}");
    let mut open = EmbeddedServer::new(&verbatim, &EmbedOptions::default()).unwrap();
    let health = open.call(request("/health", "any.example")).await.unwrap();
    assert_eq!(health.status(), StatusCode::OK);
    assert!(!health.into_body().collect().await.unwrap().to_bytes().is_empty());
}

#[tokio::test]
async fn embedded_server_invalid_option_is_named() {
    let verbatim = open().await;
    let origins = EmbedOptions { cors_origins: vec!["*".to_owned()], ..EmbedOptions::default() };
    let hosts = EmbedOptions { allowed_hosts: vec!["a b".to_owned()], ..EmbedOptions::default() };
    for (options, name) in [(origins, "cors_origins"), (hosts, "allowed_hosts")] {
        let error = EmbeddedServer::new(&verbatim, &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().starts_with(name), "{error}");
    }
    let ca_file = EmbedOptions { webhook_ca_file: Some("/nope".into()), ..EmbedOptions::default() };
    let error = EmbeddedServer::new(&verbatim, &ca_file).unwrap().start_work(None).unwrap_err();
    assert!(error.message().starts_with("webhook_ca_file /nope"), "{error}");
}

#[tokio::test]
async fn embedded_server_works_on_jobs() {
    let verbatim = open().await;
    let server = EmbeddedServer::new(&verbatim, &EmbedOptions::default()).unwrap();
    let (_, key) = verbatim.accounts().admin.create("ann").await.unwrap();
    let send = async |request: http::request::Builder, body: &'static str| {
        let request = request.header(HOST, "v.example").header("content-type", "application/json");
        let request = request.header("authorization", format!("Bearer {}", key.reveal()));
        let response = server.clone().call(request.body(Body::from(body)).unwrap()).await.unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        serde_json::from_slice::<serde_json::Value>(&body).unwrap()
    };
    let job = send(Request::post("/api/v1/jobs"), r#"{"urls":["dQw4w9WgXcQ"]}"#).await;
    assert_eq!(job["status"], "queued", "{job}");
    let path = format!("/api/v1/jobs/{}", job["job_id"].as_str().unwrap());
    let work = server.start_work(None).unwrap();
    let ended = async {
        while send(Request::get(&path), "").await["status"] == "queued" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), ended).await.unwrap();
    for job in work {
        job.stop().await;
    }
    verbatim.close().await;
}
