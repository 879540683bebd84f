//! The least that fetching can cost: the same requests by reqwest alone. Answers are freed of their compression and
//! dropped, unread.

use std::{io::Read as _, path::Path, time::Instant};

use anyhow::{Result, ensure};
use reqwest::{Certificate, Client, Proxy, RequestBuilder};
use tokio::task::JoinSet;

/// Reads names of videos, those that are asked for at once on a line, and says for each line how many seconds they took:
/// of each the player, and then the captions, as `bindings-python/benches/bench.py` has them.
pub(crate) async fn serve(proxy: &str, ca_file: &Path) -> Result<()> {
    // Nobody else has installed one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let ca = Certificate::from_pem(&std::fs::read(ca_file)?)?;
    let client = Client::builder().proxy(Proxy::all(proxy)?).tls_certs_merge([ca]).build()?;
    let mut line = String::new();
    while std::io::stdin().read_line(&mut line)? > 0 {
        let begun = Instant::now();
        let mut asking = JoinSet::new();
        for video in line.split_whitespace() {
            asking.spawn(fetch(client.clone(), video.to_owned()));
        }
        while let Some(asked) = asking.join_next().await {
            asked??;
        }
        println!("{}", begun.elapsed().as_secs_f64());
        line.clear();
    }
    Ok(())
}

async fn fetch(client: Client, video: String) -> Result<()> {
    let player = client.post("https://www.youtube.com/youtubei/v1/player");
    let player =
        player.header("content-type", "application/json").body(format!("{{\"videoId\":\"{video}\"}}"));
    ensure!(bytes(player).await? > 100_000, "a player is shorter than that");
    let captions = format!("https://www.youtube.com/api/timedtext?v={video}&lang=en&key=yt8&fmt=json3");
    ensure!(bytes(client.get(captions)).await? > 10_000, "captions are longer than that");
    Ok(())
}

async fn bytes(request: RequestBuilder) -> Result<usize> {
    let answer = request.header("accept-encoding", "gzip").send().await?.error_for_status()?.bytes().await?;
    let mut text = Vec::with_capacity(answer.len() * 6);
    Ok(flate2::read::MultiGzDecoder::new(&*answer).read_to_end(&mut text)?)
}
