//! An hour of audio through speech-to-text: server memory, and wall time compared with ffmpeg alone.
//!
//! The speech-to-text service responds immediately, since only the work around it is measured.

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
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Rule, Script};

use crate::{
    http_client::{HttpClient, text},
    posts,
    process::{BenchServer, new_key, serve},
    report::{Goal, line, ratio},
};

const POST: u64 = 7_600_000_000_000_000_000;
const LENGTH_S: u64 = 3_600;
/// Memory budget of the server above its idle memory, in MiB.
const BUDGET_MIB: f64 = 64.0;
/// Timeout of the transcription.
const TIMEOUT: Duration = Duration::from_secs(600);

/// An hour of tones with pauses in a platform's format: MP4 with AAC, its index first.
fn make_hour(folder: &Path) -> Result<Vec<u8>> {
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

/// Seconds that ffmpeg alone takes to make the chunks for the service.
fn measure_ffmpeg(folder: &Path) -> Result<f64> {
    let started = Instant::now();
    let made = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-i"])
        .arg(folder.join("hour.mp4"))
        .args(["-ac", "1", "-ar", "16000", "-c:a", "libopus", "-b:a", "24k", "-f", "ogg", "-y", "/dev/null"])
        .status()?;
    ensure!(made.success(), "ffmpeg failed");
    Ok(started.elapsed().as_secs_f64())
}

/// A service that returns the same transcription for every chunk; counts chunks and their bytes.
async fn service(parts: Arc<AtomicU64>, bytes: Arc<AtomicU64>) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let base_url = format!("http://{}/v1", listener.local_addr()?);
    let transcription = json!({ "text": "A tone, and a pause.", "language": "english",
        "segments": [{ "start": 0.5, "end": 5.5, "text": " A tone, and a pause." }] });
    let transcription = Bytes::from(transcription.to_string());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (parts, bytes, transcription) =
                (Arc::clone(&parts), Arc::clone(&bytes), transcription.clone());
            tokio::spawn(async move {
                let handler = service_fn(|request: Request<Incoming>| {
                    let (parts, bytes, transcription) =
                        (Arc::clone(&parts), Arc::clone(&bytes), transcription.clone());
                    async move {
                        let mut body = request.into_body();
                        while let Some(Ok(frame)) = body.frame().await {
                            let length = frame.data_ref().map_or(0, Bytes::len) as u64;
                            bytes.fetch_add(length, Ordering::Relaxed);
                        }
                        parts.fetch_add(1, Ordering::Relaxed);
                        let mut response = Response::new(Full::new(transcription));
                        response
                            .headers_mut()
                            .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                        Ok::<_, Infallible>(response)
                    }
                });
                // A client that disconnects is not an error.
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), handler).await;
            });
        }
    });
    Ok(base_url)
}

/// Polls until the transcript is available; returns the peak memory of the server's programs in MiB.
async fn await_transcript(server: &BenchServer, bearer: &str) -> Result<f64> {
    let (client, started) = (HttpClient::new(), Instant::now());
    let path = format!("/api/transcript?url=https://www.tiktok.com/@_/video/{POST}");
    let headers = [("authorization", bearer)];
    let polling = async {
        loop {
            let body = text(&client, server.address(), &path, &headers).await?;
            if body.contains("a pause.") {
                return Ok(());
            }
            ensure!(started.elapsed() < TIMEOUT && body.contains("still"), "{body:.600}");
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
        ended = polling => ended,
        stopped = watching => stopped,
    };
    ended.map(|()| programs)
}

/// Runs the measurement.
pub(crate) async fn run() -> Result<()> {
    let folder = TempDir::new()?;
    let file = make_hour(folder.path())?;
    line("an hour of sound", file.len() as f64 / f64::from(1 << 20), "MiB");
    let page = posts::tiktok(POST, LENGTH_S, false, "");
    let html = ReplayResponse::bytes("text/html; charset=utf-8", page).gzipped();
    let proxy = ReplayProxy::start(
        Script::new().rule(Rule::get("www.tiktok.com", &format!("/@_/video/{POST}")).respond(html)).rule(
            Rule::get("v16-webapp.tiktok.com", &format!("/video/{POST}"))
                .respond(ReplayResponse::bytes("video/mp4", file)),
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
    text(&HttpClient::new(), server.address(), "/health", &[]).await?;
    let (idle, cpu, started) = (server.resident_mib()?, server.cpu_seconds()?, Instant::now());
    let programs = await_transcript(&server, &bearer).await?;
    let wall = started.elapsed().as_secs_f64();
    let above = server.peak_mib()? - idle;
    line("chunks sent", parts.load(Ordering::Relaxed) as f64, "");
    line("bytes sent", bytes.load(Ordering::Relaxed) as f64 / f64::from(1 << 20), "MiB");
    line("the server's memory, idle", idle, "MiB");
    line("the server's peak memory above that", above, "MiB");
    ratio("the same, to the budget of 64 MiB", above / BUDGET_MIB, Goal::AtMost(1.0));
    line("peak memory of its programs", programs, "MiB");
    line("the server's CPU", server.cpu_seconds()? - cpu, "s");
    line("wall time", wall, "s");
    ratio("wall time to ffmpeg alone", wall / measure_ffmpeg(folder.path())?, Goal::None);
    if parts.load(Ordering::Relaxed) < 2 {
        bail!("an hour was sent in one chunk");
    }
    Ok(())
}
