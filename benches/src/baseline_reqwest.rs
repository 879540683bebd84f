//! The least work of a fetch: the same requests by reqwest alone.
//!
//! Responses are decompressed and dropped without parsing.

use std::{io::Read as _, path::Path, time::Instant};

use anyhow::{Result, ensure};
use reqwest::{Certificate, Client, Proxy, RequestBuilder};
use tokio::task::JoinSet;

/// Reads lines of video ids, fetches the ids of a line concurrently, and prints each line's seconds.
///
/// Each id takes two requests, for the player and then for the captions, which `bindings-python/benches/bench.py`
/// serves.
pub(crate) async fn serve(proxy: &str, ca_file: &Path) -> Result<()> {
    // No other code of this process has installed a provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let ca = Certificate::from_pem(&std::fs::read(ca_file)?)?;
    let client = Client::builder().proxy(Proxy::all(proxy)?).tls_certs_merge([ca]).build()?;
    let mut line = String::new();
    while std::io::stdin().read_line(&mut line)? > 0 {
        let started = Instant::now();
        let mut tasks = JoinSet::new();
        for video in line.split_whitespace() {
            tasks.spawn(fetch(client.clone(), video.to_owned()));
        }
        while let Some(task) = tasks.join_next().await {
            task??;
        }
        println!("{}", started.elapsed().as_secs_f64());
        line.clear();
    }
    Ok(())
}

async fn fetch(client: Client, video: String) -> Result<()> {
    let player = client.post("https://www.youtube.com/youtubei/v1/player");
    let player =
        player.header("content-type", "application/json").body(format!("{{\"videoId\":\"{video}\"}}"));
    ensure!(response_bytes(player).await? > 100_000, "the player response is too short");
    let captions = format!("https://www.youtube.com/api/timedtext?v={video}&lang=en&key=yt8&fmt=json3");
    ensure!(response_bytes(client.get(captions)).await? > 10_000, "the captions are too short");
    Ok(())
}

async fn response_bytes(request: RequestBuilder) -> Result<usize> {
    let response =
        request.header("accept-encoding", "gzip").send().await?.error_for_status()?.bytes().await?;
    let mut text = Vec::with_capacity(response.len() * 6);
    Ok(flate2::read::MultiGzDecoder::new(&*response).read_to_end(&mut text)?)
}
