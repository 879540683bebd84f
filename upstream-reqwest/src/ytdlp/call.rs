//! One look-up by yt-dlp: what there is of a video, then the captions of what answers the wish.

use std::{fs, io, path::Path, sync::Arc};

use tempfile::TempDir;
use tokio::time::Instant;
use transcript_core::{
    archive::Wish,
    supplier::{Ask, Supplied, SupplyError, SupplyReason, Watcher},
    time::Timestamp,
    transcript::{Segment, Transcript, best_track},
    video::Platform,
};

use super::{
    NAME, command,
    info::{Info, Liveness, Track},
    signals::{Failure, judge, of_captions, why_bare},
};
use crate::{
    http::{Egress, Http},
    instagram,
    program::{Ended, Program},
    social::{Media, Refusal, read},
    tiktok, x, youtube,
};

/// The largest file of captions that is read, in bytes.
const CAPTIONS_MAX: u64 = 32 << 20;
/// The stage that whoever waits hears of.
const STAGE: &str = "captions";

/// What a look-up has at hand.
pub(super) struct Call<'a> {
    pub(super) program: &'a Path,
    pub(super) http: &'a Arc<Http>,
    pub(super) watcher: &'a dyn Watcher,
    pub(super) deadline: Instant,
}

/// How often it may still begin anew, through another way out, and what is told where none is left.
struct Turns {
    retries: u32,
    told: Option<SupplyError>,
}

impl Call<'_> {
    /// The transcript that answers the wish and, where that is another one, the default transcript.
    pub(super) async fn supply(&self, ask: &Ask) -> Result<Supplied, SupplyError> {
        let own = own(ask.video.platform());
        let mut turns = self.turns();
        loop {
            let egress = self.way_out(&mut turns, ask)?;
            match self.through(&egress, ask, own.captions).await {
                Ok(supplied) => return Ok(supplied),
                Err(failure) => self.after(&mut turns, ask, &egress, &failure)?,
            }
        }
    }

    /// Where the sound of the video is.
    pub(super) async fn media(&self, ask: &Ask) -> Result<Media, SupplyError> {
        let own = own(ask.video.platform());
        let mut turns = self.turns();
        loop {
            let egress = self.way_out(&mut turns, ask)?;
            match self.sound_through(&egress, ask, own.files).await {
                Ok(media) => return Ok(media),
                Err(failure) => self.after(&mut turns, ask, &egress, &failure)?,
            }
        }
    }

    fn turns(&self) -> Turns {
        Turns { retries: self.http.retries(), told: None }
    }

    /// The way out whose turn it is. Where no way is left to begin anew, what was met before is told.
    fn way_out(&self, turns: &mut Turns, ask: &Ask) -> Result<Egress, SupplyError> {
        let platform = ask.video.platform();
        let egress = self.http.egress(own(platform).name).map_err(|fault| fault.supply_error(platform));
        egress.map_err(|fault| turns.told.take().unwrap_or(fault))
    }

    /// Notes what a failure says of a way out.
    ///
    /// # Errors
    /// The failure, unless it may be better through another way.
    fn after(
        &self,
        turns: &mut Turns,
        ask: &Ask,
        egress: &Egress,
        failure: &Failure,
    ) -> Result<(), SupplyError> {
        let platform = ask.video.platform();
        let error = failure.error(platform);
        let Some(silence) = failure.distrust() else { return Err(error) };
        if let Some(time) = silence {
            self.http.egress_silenced(egress, own(platform).name, time);
        }
        let others = self.http.egress_distrusted(egress);
        if !others || turns.retries == 0 || Instant::now() >= self.deadline {
            return Err(error);
        }
        turns.retries -= 1;
        turns.told = Some(error);
        Ok(())
    }

    /// What yt-dlp knows of the video, and of no other.
    async fn look(&self, egress: &Egress, folder: &Path, ask: &Ask) -> Result<Info, Failure> {
        self.watcher.stage("looking", 0, 0);
        let asking = command::ask(self.program, egress, folder, &ask.video, self.deadline);
        let ended = self.run(&asking).await?;
        // It prints `null` when it failed.
        let info = match ended.status {
            Some(0) => {
                Info::read(&ended.output).map_err(|_| unreadable("what it printed is no JSON object"))?
            }
            status => return Err(judge(status, &ended.errors, ask.video.platform())),
        };
        if !info.is_of(&ask.video) {
            return Err(Failure::Refused(Refusal::OtherVideo));
        }
        check_live(info.liveness())?;
        match why_bare(&ended.errors, ask.video.platform()) {
            Some(failure) if info.is_bare() => Err(failure),
            _ => Ok(info),
        }
    }

    async fn sound_through(
        &self,
        egress: &Egress,
        ask: &Ask,
        hosts: &'static [&'static str],
    ) -> Result<Media, Failure> {
        let folder = folder()?;
        let info = self.look(egress, folder.path(), ask).await?;
        let addresses = info.sound(ask.video.platform(), hosts);
        if addresses.is_empty() {
            return Err(unreadable("it names no file with sound at an address that is the platform's"));
        }
        let details = info.details(ask.video.platform());
        Ok(Media {
            video: ask.video.clone(),
            title: details.title,
            author: details.author,
            duration_ms: details.duration_ms,
            // What is spoken is heard.
            language: None,
            has_audio: None,
            addresses,
            hosts,
            exit: Some(egress.place()),
        })
    }

    async fn through(&self, egress: &Egress, ask: &Ask, hosts: &[&str]) -> Result<Supplied, Failure> {
        let folder = folder()?;
        let info = self.look(egress, folder.path(), ask).await?;
        let tracks = info.tracks(ask.video.platform());
        let chosen = choose(&tracks, ask)?;
        let known = info.only(&ask.video, &chosen, hosts);
        let known =
            known.ok_or_else(|| unreadable("its captions lie at an address that is not the platform's"))?;
        let given = folder.path().join("given.json");
        fs::write(&given, known.to_string()).map_err(no_folder)?;

        self.watcher.stage(STAGE, 0, chosen.len() as u64);
        let keys: Vec<_> = chosen.iter().map(|track| track.key.as_str()).collect();
        let fetching =
            command::fetch(self.program, egress, folder.path(), &ask.video, &given, &keys, self.deadline);
        let ended = self.run(&fetching).await?;
        let details = info.details(ask.video.platform());
        let mut found = Vec::new();
        for (place, track) in chosen.iter().enumerate() {
            let segments = match words(folder.path(), track) {
                Ok(Some(segments)) => segments,
                // What was wished is there: that the other one fails is no reason to lose it.
                Ok(None) | Err(_) if place > 0 => continue,
                Ok(None) => {
                    return Err(of_captions(judge(ended.status, &ended.errors, ask.video.platform())));
                }
                Err(refusal) => return Err(Failure::Refused(refusal)),
            };
            found.push(Transcript {
                video: ask.video.clone(),
                title: details.title.clone(),
                author: details.author.clone(),
                duration_ms: details.duration_ms,
                track: track.info.clone(),
                source: NAME.to_owned(),
                segments,
            });
        }
        self.watcher.stage(STAGE, chosen.len() as u64, chosen.len() as u64);
        Ok(Supplied { tracks: found, known_tracks: tracks.into_iter().map(|track| track.info).collect() })
    }

    async fn run(&self, program: &Program) -> Result<Ended, Failure> {
        program.run(self.watcher).await.map_err(Failure::Program)
    }
}

fn folder() -> Result<TempDir, Failure> {
    tempfile::Builder::new().prefix("verbatim-yt-dlp-").tempdir().map_err(no_folder)
}

/// What is a platform's own: its name among the transport's, and the hosts of its captions and files.
struct Own {
    name: &'static str,
    captions: &'static [&'static str],
    files: &'static [&'static str],
}

fn own(platform: Platform) -> Own {
    let (name, captions, files) = match platform {
        Platform::VideoSite => (youtube::request::PLATFORM, youtube::request::HOSTS, youtube::FILES),
        Platform::ShortVideo => (tiktok::request::PLATFORM, tiktok::request::FILES, tiktok::request::FILES),
        // It has no captions.
        Platform::Reels => (instagram::request::PLATFORM, &[][..], instagram::request::FILES),
        Platform::Microblog => (x::request::PLATFORM, x::request::VIDEO, x::request::VIDEO),
    };
    Own { name, captions, files }
}

/// The track that answers the wish, and the default where that is another one.
fn choose<'a>(tracks: &'a [Track], ask: &Ask) -> Result<Vec<&'a Track>, Failure> {
    let mut languages: Vec<_> = Vec::new();
    for track in tracks {
        if !languages.contains(&track.info.language) {
            languages.push(track.info.language.clone());
        }
    }
    if ask.video.platform() == Platform::ShortVideo && languages.len() > 1 {
        // One of them is what was said, the others are a machine's translations of it.
        let error = told_unreadable("it does not tell the original captions from their translations");
        return Err(Failure::Told(error.perhaps_the_video()));
    }
    let of =
        |wish: &Wish| best_track(tracks.iter().map(|track| &track.info), wish).and_then(|at| tracks.get(at));
    let Some(best) = of(&ask.wish) else {
        return Err(Failure::Refused(match ask.wish {
            Wish::Language(_) if !languages.is_empty() => Refusal::NoLanguage(languages),
            // A machine's translation is nobody's default.
            _ => Refusal::NoCaptions,
        }));
    };
    // Two tracks of one name would be written into one file.
    let default = of(&Wish::Default).filter(|default| default.key != best.key);
    Ok([best].into_iter().chain(default).collect())
}

fn check_live(liveness: Liveness) -> Result<(), Failure> {
    let (reason, message) = match liveness {
        Liveness::Past => return Ok(()),
        Liveness::Now => (SupplyReason::Live, "The video is live now; its captions come when it is over."),
        Liveness::Later(start) => {
            let start = start.and_then(|seconds| seconds.checked_mul(1_000)).map(Timestamp::from_millis);
            (SupplyReason::Upcoming(start), "The video has not started yet.")
        }
    };
    Err(Failure::Told(SupplyError::new(reason, message)))
}

/// The words that were written for a track; none where there is no file.
fn words(folder: &Path, track: &Track) -> Result<Option<Vec<Segment>>, Refusal> {
    let begin = format!("captions.{}.", track.key);
    let files = fs::read_dir(folder).map_err(|error| Refusal::Unreadable(error.kind().to_string()))?;
    let is_it = |name: &str| {
        name.strip_prefix(&begin).is_some_and(|ending| !ending.is_empty() && !ending.contains('.'))
    };
    let file = files.flatten().find(|file| file.file_name().to_str().is_some_and(is_it));
    let Some(file) = file else { return Ok(None) };
    if file.metadata().is_ok_and(|file| file.len() > CAPTIONS_MAX) {
        return Err(Refusal::UnreadableCaptions("they are larger than any that are read".to_owned()));
    }
    let body = fs::read(file.path()).map_err(|error| Refusal::Unreadable(error.kind().to_string()))?;
    read(&body).map(Some)
}

fn unreadable(what: &str) -> Failure {
    Failure::Told(told_unreadable(what))
}

fn told_unreadable(what: &str) -> SupplyError {
    SupplyError::new(SupplyReason::Unreadable, format!("yt-dlp's answer is of no use here: {what}."))
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` gives")]
fn no_folder(error: io::Error) -> Failure {
    let message = format!(
        "No folder could be made for yt-dlp ({}). The operator can make room in TMPDIR.",
        error.kind()
    );
    Failure::Told(SupplyError::new(SupplyReason::Misconfigured, message))
}
