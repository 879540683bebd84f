//! One lookup by yt-dlp: the video's metadata, then the captions for the track selector.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tempfile::TempDir;
use tokio::{runtime::Handle, task::spawn_blocking, time::Instant};
use transcript_core::{
    archive::TrackSelector,
    supplier::{SupplyError, SupplyMonitor, SupplyOutput, SupplyReason, SupplyRequest},
    time::Timestamp,
    transcript::{Segment, TrackKind, Transcript, best_track, distinct_languages},
    video::Platform,
};
use url::Url;

use super::{
    NAME,
    classify::{YtDlpFailure, caption_failure, classify_exit, explain_missing, translation_failure},
    command,
    info::{LivePhase, YtDlpInfo},
    tracks::YtDlpTrack,
};
use crate::{
    http::{HttpTransport, ProgramEgress, is_allowed},
    instagram,
    process::{ProgramCommand, ProgramExit},
    social::{Media, SocialFailure, read},
    tiktok, x, youtube,
};

/// Maximum size of a caption file in bytes.
const CAPTIONS_MAX: u64 = 32 << 20;
/// Beginning of the names of folders of runs.
const FOLDER_PREFIX: &str = "verbatim-yt-dlp-";
/// Maximum number of requests that check the playlists of a track.
const CHECKS_MAX: u32 = 12;
/// The stage that is reported to waiters.
const STAGE: &str = "captions";

/// Context of a lookup.
pub(super) struct YtDlpFetch<'a> {
    pub(super) program: &'a Path,
    pub(super) http: &'a Arc<HttpTransport>,
    pub(super) monitor: &'a dyn SupplyMonitor,
    pub(super) deadline: Instant,
}

impl YtDlpFetch<'_> {
    /// The transcript for the selector and, if different, the default transcript.
    pub(super) async fn supply(&self, request: &SupplyRequest) -> Result<SupplyOutput, SupplyError> {
        let platform = request.video.platform();
        let attempt = |egress: Arc<ProgramEgress>| async move {
            let supplied = self.fetch_captions(&egress, request, hosts_for(platform).captions).await?;
            self.resume_route(platform, &egress);
            Ok(supplied)
        };
        self.over_routes(platform, attempt, |failure| failure.error(platform)).await
    }

    /// Finds the audio of the video.
    pub(super) async fn media(&self, request: &SupplyRequest) -> Result<Media, SupplyError> {
        let platform = request.video.platform();
        let attempt = |egress: Arc<ProgramEgress>| async move {
            let media = self.fetch_media(&egress, request, hosts_for(platform).files).await?;
            self.resume_route(platform, &egress);
            Ok(media)
        };
        self.over_routes(platform, attempt, |failure| failure.error(platform)).await
    }

    /// Repeats an attempt over other egress routes while its failure is that of the route.
    ///
    /// # Errors
    /// The error of the last attempt, or why there is no route.
    pub(super) async fn over_routes<T, F: Future<Output = Result<T, YtDlpFailure>>>(
        &self,
        platform: Platform,
        attempt: impl Fn(Arc<ProgramEgress>) -> F,
        error_of: impl Fn(&YtDlpFailure) -> SupplyError,
    ) -> Result<T, SupplyError> {
        let name = hosts_for(platform).name;
        let (mut retries, mut last_error) = (self.http.retries(), None);
        loop {
            let egress = self.http.egress(name).map(Arc::new);
            let egress =
                egress.map_err(|fault| last_error.take().unwrap_or_else(|| fault.supply_error(platform)))?;
            let failure = match attempt(Arc::clone(&egress)).await {
                Ok(found) => return Ok(found),
                Err(failure) => failure,
            };
            let error = error_of(&failure);
            let Some(has_others) = self.pause_route(platform, &egress, &failure) else { return Err(error) };
            if !has_others || retries == 0 || Instant::now() >= self.deadline {
                return Err(self.http.with_pause(error, name));
            }
            retries -= 1;
            last_error = Some(error);
        }
    }

    /// Notes that a platform returned what was requested over a route.
    pub(super) fn resume_route(&self, platform: Platform, egress: &ProgramEgress) {
        self.http.resume_on_egress(egress, hosts_for(platform).name);
    }

    /// Pauses a route if the failure is that of the route; returns then whether there are others.
    pub(super) fn pause_route(
        &self,
        platform: Platform,
        egress: &ProgramEgress,
        failure: &YtDlpFailure,
    ) -> Option<bool> {
        let pause = failure.route_block()?;
        Some(self.http.leave_egress(egress, pause.map(|max| (hosts_for(platform).name, max))))
    }

    /// The metadata of the video; fails if yt-dlp returns another video.
    async fn fetch_info(
        &self,
        egress: &ProgramEgress,
        folder: &Path,
        request: &SupplyRequest,
    ) -> Result<YtDlpInfo, YtDlpFailure> {
        self.monitor.report_progress("looking", 0, 0);
        let command = command::info_command(self.program, egress, folder, request, self.deadline);
        let exit = self.run(&command).await?;
        // yt-dlp prints `null` after a failure.
        let info = match exit.status {
            Some(0) => {
                YtDlpInfo::read(&exit.output).map_err(|_| unreadable("its output is not a JSON object"))?
            }
            status => return Err(classify_exit(status, &exit.errors, request.video.platform())),
        };
        if !info.is_of(&request.video) {
            return Err(YtDlpFailure::Classified(SocialFailure::OtherVideo));
        }
        check_live(info.live_phase())?;
        match explain_missing(&exit.errors, request.video.platform()) {
            Some(failure) if info.has_no_media() => Err(failure),
            _ => Ok(info),
        }
    }

    async fn fetch_media(
        &self,
        egress: &ProgramEgress,
        request: &SupplyRequest,
        hosts: &'static [&'static str],
    ) -> Result<Media, YtDlpFailure> {
        let folder = RunFolder::create().await?;
        let info = self.fetch_info(egress, &folder.path, request).await?;
        let addresses = info.audio_urls(request.video.platform(), hosts);
        if addresses.is_empty() {
            return Err(unreadable("it names no audio file on a host of the platform"));
        }
        let details = info.details(request.video.platform());
        Ok(Media {
            video: request.video.clone(),
            title: details.title,
            author: details.author,
            duration_ms: details.duration_ms,
            metadata: details.metadata,
            // The spoken language is detected later.
            language: None,
            has_audio: None,
            addresses,
            hosts,
            route: Some(egress.index()),
        })
    }

    async fn fetch_captions(
        &self,
        egress: &ProgramEgress,
        request: &SupplyRequest,
        hosts: &[&str],
    ) -> Result<SupplyOutput, YtDlpFailure> {
        let folder = RunFolder::create().await?;
        let info = self.fetch_info(egress, &folder.path, request).await?;
        let tracks = info.tracks(request.video.platform());
        let mut selected = choose(&info, &tracks, request)?;
        if request.video.platform() == Platform::X {
            self.keep_whole(egress, &mut selected).await?;
        }
        let input = info.to_input(&request.video, &selected, hosts);
        let input = input.ok_or_else(|| unreadable("its captions are not on a host of the platform"))?;
        let input_file = folder.path.join("given.json");
        tokio::fs::write(&input_file, input.to_string()).await.map_err(folder_error)?;

        let of = selected.len() as u64;
        self.monitor.report_progress(STAGE, 0, of);
        let keys: Vec<_> = selected.iter().map(|track| track.key.as_str()).collect();
        let command = command::captions_command(
            self.program,
            egress,
            &folder.path,
            &request.video,
            &input_file,
            &keys,
            self.deadline,
        );
        let exit = self.run(&command).await?;
        let results = read_files(folder, selected).await?;
        // The failure of the run may be that of the default track, which then has no file.
        let is_default_missing = results.iter().skip(1).any(|(_, result)| !matches!(result, Ok(Some(_))));
        let is_complete = exit.status == Some(0) || is_default_missing;
        let details = info.details(request.video.platform());
        let mut found = Vec::new();
        for (index, (track, result)) in results.into_iter().enumerate() {
            let segments = match result {
                Ok(Some(segments)) if is_complete => segments,
                // The requested transcript is complete: a failure of the default one must not discard it.
                _ if index > 0 => continue,
                Ok(_) => {
                    let failure = classify_exit(exit.status, &exit.errors, request.video.platform());
                    let failure = caption_failure(failure);
                    return Err(match track.info.kind {
                        TrackKind::Translated => translation_failure(failure),
                        TrackKind::Human | TrackKind::Generated => failure,
                    });
                }
                Err(failure) => return Err(YtDlpFailure::Classified(failure)),
            };
            found.push(Transcript {
                video: request.video.clone(),
                title: details.title.clone(),
                author: details.author.clone(),
                duration_ms: details.duration_ms,
                track: track.info,
                source: NAME.to_owned(),
                segments,
            });
        }
        self.monitor.report_progress(STAGE, of, of);
        Ok(SupplyOutput {
            transcripts: found,
            known_tracks: tracks.into_iter().map(|track| track.info).collect(),
            metadata: details.metadata,
        })
    }

    /// Keeps those of X's tracks whose playlists are whole: yt-dlp joins what a playlist lists, also if that is a part.
    ///
    /// Fails unless the first one is.
    async fn keep_whole(
        &self,
        egress: &ProgramEgress,
        tracks: &mut Vec<YtDlpTrack>,
    ) -> Result<(), YtDlpFailure> {
        let mut whole = 0;
        for track in tracks.iter() {
            match self.check_playlists(egress, track).await {
                Ok(()) => whole += 1,
                Err(failure) if whole == 0 => return Err(YtDlpFailure::Classified(failure)),
                Err(_) => break,
            }
        }
        tracks.truncate(whole);
        Ok(())
    }

    async fn check_playlists(&self, egress: &ProgramEgress, track: &YtDlpTrack) -> Result<(), SocialFailure> {
        let urls = track.forms.iter().filter_map(|form| Url::parse(form.get("url")?.as_str()?).ok());
        let urls: BTreeSet<_> = urls.filter(|url| is_allowed(url, x::request::VIDEO)).collect();
        let session = self.http.session().with_request_limit(CHECKS_MAX);
        let mut session = session.with_route(Some(egress.index()));
        for url in urls {
            x::check_playlist(&mut session, url, self.deadline).await?;
        }
        Ok(())
    }

    async fn run(&self, program: &ProgramCommand) -> Result<ProgramExit, YtDlpFailure> {
        program.run(self.monitor).await.map_err(YtDlpFailure::Program)
    }
}

/// The temporary folder of a run. Drop deletes it, and blocks no thread of a runtime.
pub(super) struct RunFolder {
    pub(super) path: PathBuf,
    folder: Option<TempDir>,
}

impl RunFolder {
    pub(super) async fn create() -> Result<Self, YtDlpFailure> {
        let folder = spawn_blocking(|| tempfile::Builder::new().prefix(FOLDER_PREFIX).tempdir()).await;
        let folder = folder.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(folder_error)?;
        Ok(Self { path: folder.path().to_owned(), folder: Some(folder) })
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        let folder = self.folder.take();
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn_blocking(move || drop(folder));
        }
    }
}

/// Deletes the folders of runs in `parent` that have not changed for `age`: those of processes that were killed.
pub(super) fn remove_stale_folders(parent: &Path, age: Duration) {
    let is_stale = |entry: &fs::DirEntry| {
        let is_of_run = entry.file_name().to_str().is_some_and(|name| name.starts_with(FOLDER_PREFIX));
        let unchanged_for = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
        is_of_run && unchanged_for().is_some_and(|time| time >= age)
    };
    for folder in fs::read_dir(parent).into_iter().flatten().flatten().filter(is_stale) {
        // It may be that of another user, or another process deletes it too.
        if let Err(error) = fs::remove_dir_all(folder.path()) {
            tracing::debug!(%error, "stale folder was not deleted");
        }
    }
}

/// Properties of a platform: its name in the transport, and the hosts of its captions and files.
struct PlatformHosts {
    name: &'static str,
    captions: &'static [&'static str],
    files: &'static [&'static str],
}

fn hosts_for(platform: Platform) -> PlatformHosts {
    let (name, captions, files) = match platform {
        Platform::YouTube => (youtube::request::PLATFORM, youtube::request::HOSTS, youtube::FILES),
        Platform::TikTok => (tiktok::request::PLATFORM, tiktok::request::FILES, tiktok::request::FILES),
        // Instagram has no captions.
        Platform::Instagram => (instagram::request::PLATFORM, &[][..], instagram::request::FILES),
        Platform::X => (x::request::PLATFORM, x::request::VIDEO, x::request::VIDEO),
    };
    PlatformHosts { name, captions, files }
}

/// The track for the selector, and the default track if different.
fn choose(
    info: &YtDlpInfo,
    tracks: &[YtDlpTrack],
    request: &SupplyRequest,
) -> Result<Vec<YtDlpTrack>, YtDlpFailure> {
    let languages = distinct_languages(tracks.iter().map(|track| &track.info)).len();
    if request.video.platform() == Platform::TikTok && languages > 1 {
        // One of them is the original, the others are machine translations of it.
        let error = unreadable_error("it does not distinguish the original captions from their translations");
        return Err(YtDlpFailure::Reported(error.ambiguous()));
    }
    let best_for = |selector: &TrackSelector| {
        best_track(tracks.iter().map(|track| &track.info), selector).and_then(|index| tracks.get(index))
    };
    let selector = &request.selector;
    let translation = || match selector.language() {
        Some(language) if selector.takes(TrackKind::Translated) => info.translation(tracks, language),
        _ => None,
    };
    let Some(best) = best_for(selector).cloned().or_else(translation) else {
        // The default is one of any tracks: if there are some, a language was selected.
        return Err(match (tracks.is_empty(), info.live_phase()) {
            (true, LivePhase::Ended) => YtDlpFailure::Reported(youtube::just_ended()),
            (true, _) => YtDlpFailure::Classified(SocialFailure::NoCaptions),
            (false, _) => {
                let known = tracks.iter().map(|track| track.info.clone()).collect();
                YtDlpFailure::Classified(SocialFailure::NoLanguage(known))
            }
        });
    };
    // Two tracks with one key would be written to the same file.
    let default = best_for(&TrackSelector::Default).filter(|default| default.key != best.key).cloned();
    Ok([best].into_iter().chain(default).collect())
}

fn check_live(phase: LivePhase) -> Result<(), YtDlpFailure> {
    let (reason, message) = match phase {
        LivePhase::Past | LivePhase::Ended => return Ok(()),
        LivePhase::Now => (SupplyReason::Live, "The video is live; its captions appear after the stream."),
        LivePhase::Later(start) => {
            let start = start.and_then(|seconds| seconds.checked_mul(1_000)).map(Timestamp::from_millis);
            (SupplyReason::Upcoming(start), "The video has not started yet.")
        }
    };
    Err(YtDlpFailure::Reported(SupplyError::new(reason, message)))
}

/// A track with the result of [`read_captions`].
type ReadTrack = (YtDlpTrack, Result<Option<Vec<Segment>>, SocialFailure>);

/// Reads the caption files of these tracks.
async fn read_files(folder: RunFolder, tracks: Vec<YtDlpTrack>) -> Result<Vec<ReadTrack>, YtDlpFailure> {
    let read = spawn_blocking(move || {
        let read = |track: YtDlpTrack| {
            let result = read_captions(&folder.path, &track);
            (track, result)
        };
        tracks.into_iter().map(read).collect::<Vec<_>>()
    });
    read.await.map_err(|_| unreadable("its files could not be read"))
}

/// The segments in the caption file of a track; `None` if there is no file.
fn read_captions(folder: &Path, track: &YtDlpTrack) -> Result<Option<Vec<Segment>>, SocialFailure> {
    let prefix = format!("captions.{}.", track.key);
    let failed = |error: io::Error| SocialFailure::Unreadable(error.kind().to_string());
    let files = fs::read_dir(folder).map_err(failed)?;
    let is_caption_file = |name: &str| {
        name.strip_prefix(&prefix).is_some_and(|ending| !ending.is_empty() && !ending.contains('.'))
    };
    let file = files.flatten().find(|file| file.file_name().to_str().is_some_and(is_caption_file));
    let Some(file) = file else { return Ok(None) };
    let mut body = Vec::new();
    let file = fs::File::open(file.path()).map_err(failed)?;
    file.take(CAPTIONS_MAX + 1).read_to_end(&mut body).map_err(failed)?;
    if body.len() as u64 > CAPTIONS_MAX {
        return Err(SocialFailure::UnreadableCaptions("they are too large".to_owned()));
    }
    read(&body).map(Some)
}

pub(super) fn unreadable(what: &str) -> YtDlpFailure {
    YtDlpFailure::Reported(unreadable_error(what))
}

fn unreadable_error(what: &str) -> SupplyError {
    SupplyError::new(SupplyReason::Unreadable, format!("The output of yt-dlp is unusable: {what}."))
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes the error by value")]
fn folder_error(error: io::Error) -> YtDlpFailure {
    let message = format!(
        "A temporary folder for yt-dlp could not be created ({}). The operator can free space in TMPDIR.",
        error.kind()
    );
    YtDlpFailure::Reported(SupplyError::new(SupplyReason::Misconfigured, message))
}
