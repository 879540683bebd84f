//! How yt-dlp is run: its arguments, environment and limits.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
};

use tokio::time::Instant;
use transcript_core::video::{Platform, VideoId};

use crate::{
    http::Egress,
    program::{Program, Room},
};

/// The most that it may print, in bytes: what it knows of a video with hundreds of tracks is 5 MB.
const OUTPUT_MAX: u64 = 32 << 20;
/// The memory that it may write to, in bytes: it takes 100 MB, and more where it runs a page's scripts.
const MEMORY_MAX: u64 = 1 << 30;
/// The largest file that it may write, in bytes: captions, and what it is given to read.
const FILE_MAX: u64 = 64 << 20;

/// What each run is told: nothing of the user's own is read or run, and nothing is kept.
const ALWAYS: [&str; 14] = [
    "--ignore-config",
    "--no-plugin-dirs",
    "--no-cache-dir",
    "--no-exec",
    "--no-playlist",
    "--no-progress",
    "--color=never",
    "--socket-timeout=15",
    "--retries=2",
    "--extractor-retries=1",
    "--ignore-no-formats-error",
    "--write-subs",
    "--write-auto-subs",
    "--sub-format=json3/vtt/srt/ttml/best",
];

/// The extractors that may open a platform's videos. Without the generic one no other address is opened.
fn extractors(platform: Platform) -> &'static str {
    match platform {
        Platform::VideoSite => "--use-extractors=youtube",
        Platform::ShortVideo => "--use-extractors=TikTok",
        Platform::Reels => "--use-extractors=Instagram",
        Platform::Microblog => "--use-extractors=twitter",
    }
}

/// Finds out what there is of a video; prints it as JSON. Of a video of which it knows neither files nor captions its
/// warnings say why: it is to end well all the same, since there may be captions without files.
pub(super) fn ask(
    program: &Path,
    egress: &Egress,
    folder: &Path,
    video: &VideoId,
    deadline: Instant,
) -> Program {
    let own =
        [extractors(video.platform()), "--dump-single-json", "--", &video.address()].map(OsString::from);
    with(program, egress, folder, own.into(), deadline)
}

/// Fetches the captions of these languages, each into a file of its own, for what is told of a video in a file. The
/// first that fails ends it.
pub(super) fn fetch(
    program: &Path,
    egress: &Egress,
    folder: &Path,
    video: &VideoId,
    info: &Path,
    keys: &[&str],
    deadline: Instant,
) -> Program {
    let own = vec![
        extractors(video.platform()).into(),
        "--no-warnings".into(),
        "--abort-on-error".into(),
        "--skip-download".into(),
        "--output=captions".into(),
        format!("--sub-langs={}", keys.join(",")).into(),
        "--load-info-json".into(),
        info.into(),
    ];
    with(program, egress, folder, own, deadline)
}

fn with(program: &Path, egress: &Egress, folder: &Path, own: Vec<OsString>, deadline: Instant) -> Program {
    let mut arguments: Vec<OsString> = ALWAYS.map(OsString::from).into();
    let mut environment: Vec<(OsString, OsString)> = Vec::new();
    let mut set = |name: &str, value: &OsStr| environment.push((name.into(), value.into()));
    // It finds its interpreter and ffmpeg there.
    if let Some(path) = std::env::var_os("PATH") {
        set("PATH", &path);
    }
    for home in ["HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
        set(home, folder.as_os_str());
    }
    for (name, value) in [
        ("LANG", "C.UTF-8"),
        ("PYTHONUTF8", "1"),
        ("PYTHONNOUSERSITE", "1"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
    ] {
        set(name, OsStr::new(value));
    }
    // Not as an argument: those can be read by everybody on the machine, and a proxy's address may hold a password.
    if let Some(proxy) = &egress.proxy {
        for name in ["http_proxy", "https_proxy", "all_proxy"] {
            set(name, OsStr::new(proxy));
        }
    }
    if let Some(file) = &egress.ca_file {
        // Its own list of certificates would come before the file.
        arguments.push("--compat-options=no-certifi".into());
        set("SSL_CERT_FILE", file.as_os_str());
    }
    arguments.extend(own);
    Program {
        path: program.to_owned(),
        arguments,
        environment,
        folder: folder.to_owned(),
        deadline,
        output_max: OUTPUT_MAX,
        room: Room { memory: MEMORY_MAX, file: FILE_MAX },
    }
}
