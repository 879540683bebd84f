//! Audio that X offers only as the parts of a playlist.

use std::{fs, process::Command, sync::Arc};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;
use transcript_core::{
    Clock,
    archive::TrackSelector,
    supplier::{Supplier as _, SupplyError, SupplyOutput, SupplyRequest},
    video::{Platform, VideoId},
};
use upstream_reqwest::{SpeechOptions, SpeechToText, XCaptions, XOptions};
use verbatim::SystemClock;
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Rule, Script};

use super::fixture::{RecordedStages, TIMEOUT, options};
use crate::{
    install::installed,
    service::fake::{FakeReply, FakeService},
    social::{read_recording, supplier_calls},
};

const POST: &str = "/i/api/graphql/2ICDjqPd81tulZcYrtpTuQ/TweetResultByRestId";
const VIDEO: &str = "1990000000000000001";
const FILES: &str = "video.twimg.com";
const MASTER: &str = "/amplify_video/9001/pl/master.m3u8";
/// The folder of the smallest audio, as the master playlist of the recording names it.
const FOLDER: &str = "/amplify_video/9001/pl/mp4a/32000/";
/// Length of the audio in seconds.
const SECONDS: u32 = 7;

/// The recorded post without its media files, and as long as the audio.
fn post() -> Result<ReplayResponse> {
    fn without_files(value: &mut Value) {
        match value {
            Value::Array(items) => {
                items.retain(|item| item["content_type"] != "video/mp4");
                items.iter_mut().for_each(without_files);
            }
            Value::Object(fields) => {
                if let Some(length) = fields.get_mut("duration_millis") {
                    *length = (SECONDS * 1_000).into();
                }
                fields.values_mut().for_each(without_files);
            }
            _ => {}
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/recordings/x/posts/video.json");
    let mut post: Value = serde_json::from_slice(&fs::read(path)?)?;
    without_files(&mut post);
    Ok(ReplayResponse::json(&post))
}

/// A file with its name.
type PlaylistFile = (String, Vec<u8>);

/// Audio that ffmpeg splits into parts: the playlist and all files.
fn parts() -> Result<(String, Vec<PlaylistFile>)> {
    // Installs ffmpeg if it is missing.
    installed("speech")?;
    let folder = TempDir::new()?;
    let tones = format!("aevalsrc=0.3*sin(440*2*PI*t)*lt(mod(t\\,2)\\,1.5):s=16000:d={SECONDS}");
    let form = [
        "-c:a",
        "aac",
        "-b:a",
        "32k",
        "-f",
        "hls",
        "-hls_time",
        "2",
        "-hls_playlist_type",
        "vod",
        "-hls_segment_type",
        "fmp4",
        "-hls_fmp4_init_filename",
        "init.mp4",
        "-hls_segment_filename",
        "%d.m4s",
        "a.m3u8",
    ];
    let mut command = Command::new("ffmpeg");
    command.args(["-nostdin", "-v", "error", "-f", "lavfi", "-i", &tones]).args(form);
    let output = command.current_dir(folder.path()).output()?;
    ensure!(output.status.success(), "ffmpeg: {}", String::from_utf8_lossy(&output.stderr));
    let list = fs::read_to_string(folder.path().join("a.m3u8"))?;
    let mut files = Vec::new();
    for file in fs::read_dir(folder.path())? {
        let file = file?;
        let name = file.file_name().to_string_lossy().into_owned();
        if !name.ends_with(".m3u8") {
            files.push((name, fs::read(file.path())?));
        }
    }
    files.sort();
    ensure!(files.len() > 3 && list.contains("#EXT-X-MAP:URI=\"init.mp4\""), "{list}");
    Ok((list, files))
}

/// X with that post, this playlist of its audio, and these files.
fn x(list: String, files: Vec<(String, ReplayResponse)>) -> Result<ReplayProxy> {
    let files = files.into_iter().map(|(name, response)| {
        let rule = Rule::get(FILES, &format!("{FOLDER}{name}"));
        rule.header("referer", "https://x.com/").respond(response)
    });
    let script = Script::new().rules([
        Rule::post("api.x.com", "/1.1/guest/activate.json").respond(read_recording("x", "posts/pass.json")?),
        Rule::get("x.com", POST).respond(post()?),
        Rule::get(FILES, MASTER).respond(read_recording("x", "files/master.m3u8")?),
        Rule::get(FILES, &format!("{FOLDER}a.m3u8")).respond(ReplayResponse::text(list)),
    ]);
    ReplayProxy::start(script.rules(files))
}

fn good(files: &[PlaylistFile]) -> Vec<(String, ReplayResponse)> {
    files
        .iter()
        .map(|(name, body)| (name.clone(), ReplayResponse::bytes("video/mp4", body.clone())))
        .collect()
}

async fn transcribe(
    proxy: &ReplayProxy,
    options: SpeechOptions,
) -> Result<Result<SupplyOutput, SupplyError>> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let http = supplier_calls::http(proxy)?;
    let x = XCaptions::new(Arc::clone(&http), XOptions::default(), Arc::clone(&clock));
    let deadline = clock.now().plus(TIMEOUT);
    let transcriber = SpeechToText::new(http, options, clock, vec![Arc::new(x)])?;
    let request = SupplyRequest {
        video: VideoId::new(Platform::X, VIDEO)?,
        selector: TrackSelector::Default,
        deadline,
    };
    Ok(transcriber.supply(request, Arc::new(RecordedStages::default())).await)
}

async fn service() -> Result<FakeService> {
    FakeService::start(|_, _| FakeReply::transcription(&[(0.0, 1.4, "the quick brown fox")])).await
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_playlist_parts_are_joined() -> Result<()> {
    let service = service().await?;
    let (list, files) = parts()?;
    let proxy = x(list, good(&files))?;
    let supplied = transcribe(&proxy, options(&service.base_url)).await??;
    assert_eq!(supplied.transcripts.first().context("no transcript")?.source, "speech-to-text");
    // All audio was sent, and each part was downloaded once.
    let seconds: f64 = service.requests().iter().map(|request| request.seconds()).sum();
    assert!((seconds - f64::from(SECONDS)).abs() < 1.0, "{seconds}");
    for (name, _) in &files {
        assert_eq!(proxy.count(|request| request.path == format!("{FOLDER}{name}")), 1, "{name}");
    }
    assert!(proxy.unexpected().is_empty(), "{:?}", proxy.unexpected());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_playlist_with_invalid_part_is_unreadable() -> Result<()> {
    let service = service().await?;
    let (list, files) = parts()?;
    let last = files
        .iter()
        .map(|(name, _)| name.clone())
        .filter(|name| name != "init.mp4")
        .max()
        .context("no part")?;
    let other = |response: ReplayResponse| {
        let mut files = good(&files);
        files.retain(|(name, _)| *name != last);
        files.push((last.clone(), response));
        files
    };
    // Parts that are missing at the start, in the middle or at the end.
    let lines = list.lines().map(|line| if line.starts_with("#EXTINF:") { "#EXTINF:0.1," } else { line });
    let short = lines.collect::<Vec<_>>().join("\n");
    for (list, files, expect) in [
        (list.replace("#EXT-X-MEDIA-SEQUENCE:0", "#EXT-X-MEDIA-SEQUENCE:7"), good(&files), "unreadable"),
        (list.replacen("#EXTINF", "#EXT-X-GAP\n#EXTINF", 1), good(&files), "unreadable"),
        (list.replace("#EXT-X-ENDLIST", ""), good(&files), "unreadable"),
        (short, good(&files), "unreadable"),
        (list.replace(&last, "https://evil.example/x.m4s"), good(&files), "unreadable"),
        (list.replace(&last, "https://127.0.0.1/x.m4s"), good(&files), "unreadable"),
        (list.replace(&last, "http://video.twimg.com/x.m4s"), good(&files), "unreadable"),
        (
            list.replace("#EXT-X-MAP", "#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n#EXT-X-MAP"),
            good(&files),
            "unreadable",
        ),
        ("<html>".to_owned(), good(&files), "unreadable"),
        (list.clone(), other(ReplayResponse::status(404)), "unreadable"),
        (list.clone(), other(ReplayResponse::text("<html>Access Denied</html>")), "unreadable"),
    ] {
        let proxy = x(list, files)?;
        let error = transcribe(&proxy, options(&service.base_url)).await?.err().context("a transcript")?;
        assert_eq!(error.reason().as_str(), expect, "{error:?}");
        assert!(proxy.unexpected().is_empty(), "{:?}", proxy.unexpected());
    }
    // The size limit of a file applies to all parts together.
    let size_limit = files.iter().map(|(_, body)| body.len() as u64).sum::<u64>() - 1;
    let proxy = x(list, good(&files))?;
    let small = SpeechOptions { max_download: size_limit, ..options(&service.base_url) };
    let error = transcribe(&proxy, small).await?.err().context("a transcript")?;
    assert!(error.message().contains("too large"), "{error:?}");
    assert!(service.requests().is_empty());
    Ok(())
}
