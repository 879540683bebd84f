//! An axum program with one route, and both APIs of Verbatim beside it.
//!
//! ```sh
//! cargo run -p verbatim-reference-server --example own_axum_app
//! curl http://127.0.0.1:8080/titles/dQw4w9WgXcQ
//! curl 'http://127.0.0.1:8080/api/transcript?v=dQw4w9WgXcQ&format=text'
//! ```

use std::{error::Error, net::SocketAddr};

use axum::{
    Router,
    extract::{Path, State},
    routing::get,
};
use reference_server::{EmbedOptions, EmbeddedServer};
use tokio::net::TcpListener;
use verbatim::{ImportRequest, Options, Verbatim};

/// The title of a video: a route of the program, over the same archive.
async fn title(State(verbatim): State<Verbatim>, Path(id): Path<String>) -> String {
    match verbatim.get(id).await.and_then(verbatim::GetOutcome::into_transcript) {
        Ok(transcript) => transcript.title.clone().unwrap_or_default(),
        Err(error) => error.to_string(),
    }
}

/// Both APIs and the pages.
fn server(verbatim: &Verbatim, listen: SocketAddr) -> Result<EmbeddedServer, verbatim::Error> {
    EmbeddedServer::new(verbatim, &EmbedOptions { listen: Some(listen), ..EmbedOptions::default() })
}

/// The routes of the program, and those of the server.
fn app(verbatim: &Verbatim, server: &EmbeddedServer) -> Router {
    let own = Router::new().route("/titles/{id}", get(title)).with_state(verbatim.clone());
    own.merge(server.router())
}

async fn open(base_url: &str) -> Result<Verbatim, verbatim::Error> {
    let mut options = Options::default().without_suppliers();
    options.set_base_url(base_url);
    let verbatim = Verbatim::open(options).await?;
    let import = ImportRequest {
        link: "https://youtu.be/dQw4w9WgXcQ".to_owned(),
        captions: b"1\n00:00:01,500 --> 00:00:03,000\nIt is so quiet here.\n".to_vec(),
        language: Some("en".to_owned()),
        title: Some("The gate".to_owned()),
        ..ImportRequest::default()
    };
    verbatim.tools().import(import).await?;
    Ok(verbatim)
}

async fn shutdown() {
    if tokio::signal::ctrl_c().await.is_err() {
        // Without signals the server runs until it is killed.
        std::future::pending::<()>().await;
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    let address = listener.local_addr()?;
    let verbatim = open(&format!("http://{address}")).await?;
    let server = server(&verbatim, address)?;
    // Jobs of accounts, their webhooks and the search index. A program that registers accounts passes its mailer.
    let work = server.start_work(None)?;
    let app = app(&verbatim, &server).into_make_service_with_connect_info::<SocketAddr>();
    // Without a shutdown signal it never returns, and fetches end in the middle.
    axum::serve(listener, app).with_graceful_shutdown(shutdown()).await?;
    for job in work {
        job.stop().await;
    }
    verbatim.close().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http::{Request, StatusCode, header::HOST};
    use http_body_util::BodyExt as _;
    use tower::Service as _;

    use super::*;

    #[tokio::test]
    async fn example_answers_own_route_and_api() {
        let verbatim = open("http://127.0.0.1:8080").await.unwrap();
        let server = server(&verbatim, "127.0.0.1:8080".parse().unwrap()).unwrap();
        let mut app = app(&verbatim, &server);
        for (path, text) in [
            ("/titles/dQw4w9WgXcQ", "The gate"),
            ("/api/transcript?v=dQw4w9WgXcQ&format=text", "It is so quiet here.\n"),
        ] {
            let request = Request::get(path).header(HOST, "127.0.0.1:8080").body(Body::empty()).unwrap();
            let response = app.call(request).await.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            let body = response.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(String::from_utf8_lossy(&body), text);
        }
        verbatim.close().await;
    }
}
