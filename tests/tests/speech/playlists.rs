//! Sound that X has in the parts of a playlist only.

use std::{fs, process::Command, sync::Arc};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;
use transcript_core::{
    Clock,
    archive::Wish,
    supplier::{Ask, Supplied, Supplier as _, SupplyError},
    video::{Platform, VideoId},
};
use upstream_reqwest::{SpeechOptions, SpeechToText, XCaptions, XOptions};
use verbatim::SystemClock;
use verbatim_tests::replay::{Answer, ReplayProxy, Rule, Script};

use super::{
    service::{Reply, Service},
    sounds::python,
    stage::{Notes, PATIENCE, options},
};
use crate::social::{asking, recorded};

const POST: &str = "/i/api/graphql/2ICDjqPd81tulZcYrtpTuQ/TweetResultByRestId";
const VIDEO: &str = "1990000000000000001";
const FILES: &str = "video.twimg.com";
const MASTER: &str = "/amplify_video/9001/pl/master.m3u8";
/// Where the master playlist of our recording says that the smallest sound is.
const FOLDER: &str = "/amplify_video/9001/pl/mp4a/32000/";
/// How long the sound is, in seconds.
const SECONDS: u32 = 7;

/// The recorded post, of which X tells no file.
fn post() -> Result<Answer> {
    fn without_files(value: &mut Value) {
        match value {
            Value::Array(items) => {
                items.retain(|item| item["content_type"] != "video/mp4");
                items.iter_mut().for_each(without_files);
            }
            Value::Object(fields) => fields.values_mut().for_each(without_files),
            _ => {}
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/recordings/x/posts/video.json");
    let mut post: Value = serde_json::from_slice(&fs::read(path)?)?;
    without_files(&mut post);
    Ok(Answer::json(&post))
}

/// A file with its name.
type File = (String, Vec<u8>);

/// A sound as ffmpeg puts it into parts: the playlist, and every file.
fn parts() -> Result<(String, Vec<File>)> {
    // It has ffmpeg installed where it is not there.
    python()?;
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

/// X with that post, this playlist of its sound, and these files.
fn x(list: String, files: Vec<(String, Answer)>) -> Result<ReplayProxy> {
    let files = files.into_iter().map(|(name, answer)| {
        let rule = Rule::get(FILES, &format!("{FOLDER}{name}"));
        rule.header("referer", "https://x.com/").answer(answer)
    });
    let script = Script::new().rules([
        Rule::post("api.x.com", "/1.1/guest/activate.json").answer(recorded("x", "posts/pass.json")?),
        Rule::get("x.com", POST).answer(post()?),
        Rule::get(FILES, MASTER).answer(recorded("x", "files/master.m3u8")?),
        Rule::get(FILES, &format!("{FOLDER}a.m3u8")).answer(Answer::text(list)),
    ]);
    ReplayProxy::start(script.rules(files))
}

fn good(files: &[File]) -> Vec<(String, Answer)> {
    files.iter().map(|(name, body)| (name.clone(), Answer::bytes("video/mp4", body.clone()))).collect()
}

async fn listen(proxy: &ReplayProxy, options: SpeechOptions) -> Result<Result<Supplied, SupplyError>> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let http = asking::http(proxy)?;
    let x = XCaptions::new(Arc::clone(&http), XOptions::default(), Arc::clone(&clock));
    let deadline = clock.now().plus(PATIENCE);
    let listener = SpeechToText::new(http, options, clock, vec![Arc::new(x)])?;
    let ask = Ask { video: VideoId::new(Platform::Microblog, VIDEO)?, wish: Wish::Default, deadline };
    Ok(listener.supply(ask, Arc::new(Notes::default())).await)
}

async fn service() -> Result<Service> {
    Service::start(|_, _| Reply::heard(&[(0.0, 1.4, "the quick brown fox")])).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_parts_are_one_sound() -> Result<()> {
    let service = service().await?;
    let (list, files) = parts()?;
    let proxy = x(list, good(&files))?;
    let supplied = listen(&proxy, options(&service.base_url)).await??;
    assert_eq!(supplied.tracks.first().context("no transcript")?.source, "speech-to-text");
    // All of it was heard, and each part was asked for once.
    let seconds: f64 = service.seen().iter().map(|seen| seen.seconds()).sum();
    assert!((seconds - f64::from(SECONDS)).abs() < 1.0, "{seconds}");
    for (name, _) in &files {
        assert_eq!(proxy.count(|request| request.path == format!("{FOLDER}{name}")), 1, "{name}");
    }
    assert!(proxy.unexpected().is_empty(), "{:?}", proxy.unexpected());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_that_are_elsewhere_missing_or_no_sound_are_no_sound() -> Result<()> {
    let service = service().await?;
    let (list, files) = parts()?;
    let last = files
        .iter()
        .map(|(name, _)| name.clone())
        .filter(|name| name != "init.mp4")
        .max()
        .context("no part")?;
    let other = |answer: Answer| {
        let mut files = good(&files);
        files.retain(|(name, _)| *name != last);
        files.push((last.clone(), answer));
        files
    };
    for (list, files, expect) in [
        (list.replace(&last, "https://evil.example/x.m4s"), good(&files), "unreadable"),
        (list.replace(&last, "https://127.0.0.1/x.m4s"), good(&files), "unreadable"),
        (list.replace(&last, "http://video.twimg.com/x.m4s"), good(&files), "unreadable"),
        (
            list.replace("#EXT-X-MAP", "#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n#EXT-X-MAP"),
            good(&files),
            "unreadable",
        ),
        ("<html>".to_owned(), good(&files), "unreadable"),
        (list.clone(), other(Answer::status(404)), "unreadable"),
        (list.clone(), other(Answer::text("<html>Access Denied</html>")), "unreadable"),
    ] {
        let proxy = x(list, files)?;
        let error = listen(&proxy, options(&service.base_url)).await?.err().context("it was heard")?;
        assert_eq!(error.reason().as_str(), expect, "{error:?}");
        assert!(proxy.unexpected().is_empty(), "{:?}", proxy.unexpected());
    }
    // The bound of a file holds for all parts together.
    let room = files.iter().map(|(_, body)| body.len() as u64).sum::<u64>() - 1;
    let proxy = x(list, good(&files))?;
    let small = SpeechOptions { max_download: room, ..options(&service.base_url) };
    let error = listen(&proxy, small).await?.err().context("it was heard")?;
    assert!(error.message().contains("larger"), "{error:?}");
    assert!(service.seen().is_empty());
    Ok(())
}
