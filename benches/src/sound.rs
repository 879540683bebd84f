//! An hour of sound through speech-to-text: how much memory the server takes for it, and how long beside ffmpeg alone.
//!
//! The service that hears answers at once, since what is measured is what comes before and after it.

use std::{
    convert::Infallible,
    fs,
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use http::{HeaderValue, Request, Response, header::CONTENT_TYPE};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tempfile::TempDir;
use tokio::{net::TcpListener, time::sleep};
use verbatim_tests::replay::{Answer, ReplayProxy, Rule, Script};

use crate::{
    ask::{Client, text},
    posts,
    process::{Server, new_key, serve},
    report::{Goal, line, ratio},
};

const POST: u64 = 7_600_000_000_000_000_000;
const LENGTH_S: u64 = 3_600;
/// What the server may take beside what it has when idle, in MiB.
const BUDGET_MIB: f64 = 64.0;
/// The longest that anybody waits.
const PATIENCE: Duration = Duration::from_secs(600);

/// An hour of tones with pauses, as a platform sends it: MP4 with AAC, its index first.
fn hour(folder: &Path) -> Result<Vec<u8>> {
    let file = folder.join("hour.mp4");
    let source = format!("aevalsrc=0.3*sin(440*2*PI*t)*lt(mod(t\\,7)\\,6):s=44100:d={LENGTH_S}");
    let coded = ["-c:a", "aac", "-b:a", "128k", "-movflags", "+faststart"];
    let made = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-f", "lavfi", "-i", &source])
        .args(coded)
        .arg(&file)
        .status()
        .context("ffmpeg is missing: apt-get install ffmpeg")?;
    ensure!(made.success(), "ffmpeg failed");
    Ok(fs::read(file)?)
}

/// How long ffmpeg alone takes to make the parts of the file that the service gets, in seconds.
fn alone(folder: &Path) -> Result<f64> {
    let begun = Instant::now();
    let made = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-i"])
        .arg(folder.join("hour.mp4"))
        .args(["-ac", "1", "-ar", "16000", "-c:a", "libopus", "-b:a", "24k", "-f", "ogg", "-y", "/dev/null"])
        .status()?;
    ensure!(made.success(), "ffmpeg failed");
    Ok(begun.elapsed().as_secs_f64())
}

/// A service that hears the same in every part, at once. Counts parts and their bytes.
async fn service(parts: Arc<AtomicU64>, bytes: Arc<AtomicU64>) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let base_url = format!("http://{}/v1", listener.local_addr()?);
    let heard = json!({ "text": "A tone, and a pause.", "language": "english",
        "segments": [{ "start": 0.5, "end": 5.5, "text": " A tone, and a pause." }] });
    let heard = Bytes::from(heard.to_string());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (parts, bytes, heard) = (Arc::clone(&parts), Arc::clone(&bytes), heard.clone());
            tokio::spawn(async move {
                let answer = service_fn(|request: Request<Incoming>| {
                    let (parts, bytes, heard) = (Arc::clone(&parts), Arc::clone(&bytes), heard.clone());
                    async move {
                        let mut body = request.into_body();
                        while let Some(Ok(frame)) = body.frame().await {
                            let length = frame.data_ref().map_or(0, Bytes::len) as u64;
                            bytes.fetch_add(length, Ordering::Relaxed);
                        }
                        parts.fetch_add(1, Ordering::Relaxed);
                        let mut response = Response::new(Full::new(heard));
                        response
                            .headers_mut()
                            .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                        Ok::<_, Infallible>(response)
                    }
                });
                // A peer that leaves is no event here.
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
            });
        }
    });
    Ok(base_url)
}

/// Asks until the words are there; returns the most memory of the programs that ran meanwhile, in MiB.
async fn ask(server: &Server, bearer: &str) -> Result<f64> {
    let (client, begun) = (Client::new(), Instant::now());
    let path = format!("/api/transcript?url=https://www.tiktok.com/@_/video/{POST}");
    let headers = [("authorization", bearer)];
    let asking = async {
        loop {
            let body = text(&client, server.address(), &path, &headers).await?;
            if body.contains("a pause.") {
                return Ok(());
            }
            ensure!(begun.elapsed() < PATIENCE && body.contains("still"), "{body:.600}");
            sleep(Duration::from_millis(500)).await;
        }
    };
    let mut programs = 0.0_f64;
    let watching = async {
        loop {
            programs = programs.max(server.programs_mib()?);
            sleep(Duration::from_millis(50)).await;
        }
    };
    let ended: Result<()> = tokio::select! {
        ended = asking => ended,
        stopped = watching => stopped,
    };
    ended.map(|()| programs)
}

/// The measurement.
pub(crate) async fn run() -> Result<()> {
    let folder = TempDir::new()?;
    let file = hour(folder.path())?;
    line("an hour of sound", file.len() as f64 / f64::from(1 << 20), "MiB");
    let page = posts::tiktok(POST, LENGTH_S, false, "");
    let html = Answer::bytes("text/html; charset=utf-8", page).gzipped();
    let proxy = ReplayProxy::start(
        Script::new().rule(Rule::get("www.tiktok.com", &format!("/@_/video/{POST}")).answer(html)).rule(
            Rule::get("v16-webapp.tiktok.com", &format!("/video/{POST}"))
                .answer(Answer::bytes("video/mp4", file)),
        ),
    )?;
    let (parts, bytes) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let base_url = service(Arc::clone(&parts), Arc::clone(&bytes)).await?;
    let settings = [
        ("VERBATIM_UPSTREAM__PROXY", proxy.url()),
        ("VERBATIM_UPSTREAM__CA_FILE", proxy.ca_file().display().to_string()),
        ("VERBATIM_SPEECH__BASE_URL", base_url),
        ("VERBATIM_SPEECH__MODEL", "bench".to_owned()),
        ("VERBATIM_LOG__LEVEL", "warn".to_owned()),
    ];
    let data = folder.path().join("data");
    let bearer = format!("Bearer {}", new_key(&data, &[])?);
    let server = serve(&data, &settings)?;
    text(&Client::new(), server.address(), "/health", &[]).await?;
    let (idle, cpu, begun) = (server.resident_mib()?, server.cpu_seconds()?, Instant::now());
    let programs = ask(&server, &bearer).await?;
    let wall = begun.elapsed().as_secs_f64();
    let above = server.peak_mib()? - idle;
    line("parts sent", parts.load(Ordering::Relaxed) as f64, "");
    line("bytes sent", bytes.load(Ordering::Relaxed) as f64 / f64::from(1 << 20), "MiB");
    line("the server's memory, idle", idle, "MiB");
    line("the server's memory above that, at most", above, "MiB");
    ratio("the same, of the budget of 64 MiB", above / BUDGET_MIB, Goal::AtMost(1.0));
    line("memory of the programs that it runs, at most", programs, "MiB");
    line("the server's CPU", server.cpu_seconds()? - cpu, "s");
    line("wall time", wall, "s");
    ratio("wall time beside ffmpeg alone", wall / alone(folder.path())?, Goal::None);
    if parts.load(Ordering::Relaxed) < 2 {
        bail!("an hour went in one part");
    }
    Ok(())
}
