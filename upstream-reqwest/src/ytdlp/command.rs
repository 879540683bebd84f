//! The command line, environment and limits of yt-dlp.

use std::{
    ffi::{OsStr, OsString},
    ops::RangeInclusive,
    path::Path,
};

use tokio::time::Instant;
use transcript_core::{
    supplier::SupplyRequest,
    transcript::TrackKind,
    video::{Platform, VideoId, VideoList},
};

use crate::{
    http::ProgramEgress,
    process::{ProgramCommand, ResourceLimits},
    youtube,
};

/// Maximum output in bytes: the metadata of a video with hundreds of tracks is 5 MB.
const OUTPUT_MAX: u64 = 32 << 20;
/// Limit of writable memory in bytes: yt-dlp needs 100 MB, and more when it runs a page's scripts.
const MEMORY_MAX: u64 = 1 << 30;
/// Maximum size of a file that yt-dlp writes, in bytes: captions, and the metadata that it is given.
const FILE_MAX: u64 = 64 << 20;

/// Arguments of every run: no configuration or code of the user is read, and nothing is cached.
const COMMON_ARGUMENTS: [&str; 14] = [
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

/// The allowed extractors of a platform. Without the generic one no other URL is opened.
fn extractors(platform: Platform) -> &'static str {
    match platform {
        Platform::YouTube => "--use-extractors=youtube",
        Platform::TikTok => "--use-extractors=TikTok",
        Platform::Instagram => "--use-extractors=Instagram",
        Platform::X => "--use-extractors=twitter",
    }
}

/// The command that prints the metadata of a video as JSON.
///
/// For a video without files and captions, the reason is in the warnings. The run must succeed without files, since a
/// video may have captions without files.
pub(super) fn info_command(
    program: &Path,
    egress: &ProgramEgress,
    folder: &Path,
    request: &SupplyRequest,
    deadline: Instant,
) -> ProgramCommand {
    let video = &request.video;
    let mut arguments_of_run: Vec<OsString> =
        vec![extractors(video.platform()).into(), "--dump-single-json".into()];
    if !request.selector.takes(TrackKind::Translated) {
        // YouTube's translations of each track into each language: of 40 tracks, 20 MB and ten seconds of Python.
        arguments_of_run.push("--extractor-args=youtube:skip=translated_subs".into());
    }
    let address = match video.platform() {
        // yt-dlp takes a response about another spelling of the id for one about another video.
        Platform::YouTube => youtube::canonical(video).address(),
        Platform::TikTok | Platform::Instagram | Platform::X => video.address(),
    };
    arguments_of_run.extend([OsString::from("--"), address.into()]);
    build_command(program, egress, folder, arguments_of_run, deadline)
}

/// The command that fetches the captions of these keys from the metadata in a file.
///
/// Each track is written to its own file. The first error ends the run, also that of one part of captions in parts.
pub(super) fn captions_command(
    program: &Path,
    egress: &ProgramEgress,
    folder: &Path,
    video: &VideoId,
    info: &Path,
    keys: &[&str],
    deadline: Instant,
) -> ProgramCommand {
    let arguments_of_run = vec![
        extractors(video.platform()).into(),
        "--no-warnings".into(),
        "--abort-on-error".into(),
        "--abort-on-unavailable-fragments".into(),
        "--fragment-retries=2".into(),
        "--skip-download".into(),
        "--output=captions".into(),
        format!("--sub-langs={}", keys.join(",")).into(),
        "--load-info-json".into(),
        info.into(),
    ];
    build_command(program, egress, folder, arguments_of_run, deadline)
}

/// The arguments of every run for a list.
///
/// Entries are printed as they arrive, and not opened. The pause between requests is that of yt-dlp's own preset.
const LIST_ARGUMENTS: [&str; 5] = [
    "--flat-playlist",
    "--lazy-playlist",
    "--sleep-requests=0.75",
    // Without a date, nothing would be too old. One request for each page, and none for the page of the website.
    "--extractor-args=youtubetab:approximate_date;skip=webpage",
    "--print=%(.{id,title,duration,timestamp,channel,uploader,live_status,availability,\
     playlist_title,playlist_count})j",
];

/// The command that prints these videos of a list, counted from 1, as a line of JSON for each.
pub(super) fn list_command(
    program: &Path,
    egress: &ProgramEgress,
    folder: &Path,
    list: &VideoList,
    range: &RangeInclusive<u64>,
    deadline: Instant,
) -> ProgramCommand {
    let extractors = match list.platform() {
        Platform::YouTube => "--use-extractors=youtube:tab,youtube:playlist,youtube:search_url",
        // The others have no lists.
        Platform::TikTok | Platform::Instagram | Platform::X => "--use-extractors=tiktok:user",
    };
    let mut address = list.address();
    if list.query().is_some() {
        // The filter for videos, as in the requests of the own lister.
        address.push_str("&sp=EgIQAfABAQ%3D%3D");
    }
    let mut arguments_of_run: Vec<OsString> = LIST_ARGUMENTS.map(OsString::from).into();
    arguments_of_run.extend([
        extractors.into(),
        format!("--playlist-items={}:{}", range.start(), range.end()).into(),
        "--".into(),
        address.into(),
    ]);
    build_command(program, egress, folder, arguments_of_run, deadline)
}

fn build_command(
    program: &Path,
    egress: &ProgramEgress,
    folder: &Path,
    arguments_of_run: Vec<OsString>,
    deadline: Instant,
) -> ProgramCommand {
    let mut arguments: Vec<OsString> = COMMON_ARGUMENTS.map(OsString::from).into();
    let mut environment: Vec<(OsString, OsString)> = Vec::new();
    let mut set_variable = |name: &str, value: &OsStr| environment.push((name.into(), value.into()));
    // The folders of its interpreter and of ffmpeg.
    if let Some(path) = std::env::var_os("PATH") {
        set_variable("PATH", &path);
    }
    for home in ["HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
        set_variable(home, folder.as_os_str());
    }
    for (name, value) in [
        ("LANG", "C.UTF-8"),
        ("PYTHONUTF8", "1"),
        ("PYTHONNOUSERSITE", "1"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
    ] {
        set_variable(name, OsStr::new(value));
    }
    // Not as an argument: arguments are visible to all users of the machine, and a proxy's URL may hold a password.
    if let Some(proxy) = &egress.proxy {
        for name in ["http_proxy", "https_proxy", "all_proxy"] {
            set_variable(name, OsStr::new(proxy));
        }
    }
    if let Some(direct) = &egress.no_proxy {
        set_variable("no_proxy", OsStr::new(direct));
    }
    if let Some(file) = &egress.ca_file {
        // The bundled certificate list would take precedence over the file.
        arguments.push("--compat-options=no-certifi".into());
        if file.is_dir() {
            // In place of the default folder, which may be the only one with the system's certificates.
            let mut folders = file.clone().into_os_string();
            folders.push(":/etc/ssl/certs");
            set_variable("SSL_CERT_DIR", &folders);
        } else {
            set_variable("SSL_CERT_FILE", file.as_os_str());
        }
    }
    arguments.extend(arguments_of_run);
    ProgramCommand {
        path: program.to_owned(),
        arguments,
        environment,
        folder: folder.to_owned(),
        deadline,
        output_max: OUTPUT_MAX,
        room: ResourceLimits { memory: MEMORY_MAX, file: FILE_MAX },
    }
}
