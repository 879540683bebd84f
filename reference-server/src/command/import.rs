//! `verbatim import`: transcripts from files and folders into the archive.

mod folder;
mod info;
mod name;
mod told;

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use transcript_core::{
    Error, ErrorKind,
    transcript::{LanguageTag, TrackKind},
    video::VideoId,
};
use verbatim::{Admit, DRAFT_BYTES_MAX, Draft, Effect, Imported, Verbatim};

use super::{
    Failure, arguments, open_archive, open_archive_to_look, print, print_json, progress::Progress, tell,
};
use crate::config::Settings;
pub(super) use folder::WITHDRAWN;
use info::{Info, Infos};
use name::Name;

/// Imports the files and tells what became of them.
pub(super) async fn run(settings: &Settings, ask: arguments::Import) -> Result<(), Failure> {
    let language = ask.lang.as_deref().map(LanguageTag::parse).transpose()?;
    let is_one = matches!(ask.paths.as_slice(), [path] if !path.is_dir());
    if !is_one && (ask.video.is_some() || ask.title.is_some() || ask.author.is_some()) {
        let message = "--video, --title and --author are about one file; name one, and no folder";
        return Err(Failure::Wrong(message.to_owned()));
    }
    let files = if is_one { ask.paths.clone() } else { folder::files(&ask.paths)? };
    let verbatim =
        if ask.dry_run { open_archive_to_look(settings).await? } else { open_archive(settings).await? };
    let done = import(&verbatim, &ask, language, &files, is_one).await;
    verbatim.close().await;
    done
}

async fn import(
    verbatim: &Verbatim,
    ask: &arguments::Import,
    language: Option<LanguageTag>,
    files: &[PathBuf],
    is_one: bool,
) -> Result<(), Failure> {
    let video = match &ask.video {
        Some(link) => Some(verbatim.known_video(link).await?),
        None => None,
    };
    let work = Work { verbatim, ask, video, language, infos: Infos::default() };
    match files {
        [file] if is_one => work.single(file).await,
        files => work.many(files).await,
    }
}

/// Why a file was not imported.
enum Trouble {
    /// The file is at fault: the others are imported all the same.
    File(Error),
    /// The archive is: nothing can be imported.
    Archive(Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Invalid | ErrorKind::Conflict => Self::File(error),
            _ => Self::Archive(error),
        }
    }
}

/// How many files came to what.
#[derive(Debug, Default)]
struct Counts {
    imported: u64,
    kept: u64,
    unchanged: u64,
    failed: u64,
    left_out: u64,
    unreadable: u64,
    withdrawn: u64,
}

impl Counts {
    fn count(&mut self, imported: &Imported) {
        self.left_out = self.left_out.saturating_add(imported.left_out.count);
        self.unreadable = self.unreadable.saturating_add(imported.unreadable.count);
        if let Some(effect) = imported.withdrawal {
            self.withdrawn += u64::from(effect == Effect::Added);
            return;
        }
        let any = |effects: &[Effect]| imported.wishes.iter().any(|wish| effects.contains(&wish.effect));
        if any(&[Effect::Added, Effect::Replaced]) {
            self.imported += 1;
        } else if any(&[Effect::Kept]) {
            self.kept += 1;
        } else {
            self.unchanged += 1;
        }
    }

    /// All of it in one line.
    fn told(&self, files: usize, dry_run: bool) -> String {
        let Self { imported, kept, unchanged, failed, left_out, unreadable, withdrawn } = self;
        let would = if dry_run { "would be " } else { "" };
        let mut line = format!(
            "{files} files: {imported} transcripts {would}imported, {unchanged} were archived already, \
             {kept} kept as they were archived, {failed} files failed"
        );
        if *withdrawn > 0 {
            line.push_str(&format!("; {withdrawn} videos {would}withdrawn"));
        }
        if left_out + unreadable > 0 {
            line.push_str(&format!("; {left_out} cues left out, {unreadable} characters unreadable"));
        }
        line
    }
}

struct Work<'a> {
    verbatim: &'a Verbatim,
    ask: &'a arguments::Import,
    video: Option<VideoId>,
    language: Option<LanguageTag>,
    infos: Infos,
}

impl Work<'_> {
    /// One file: its own error is the command's.
    async fn single(mut self, file: &Path) -> Result<(), Failure> {
        let mut done = Vec::new();
        let result = self.import(file, &mut done).await;
        let dry_run = self.ask.dry_run;
        for imported in &done {
            match self.ask.json {
                true => print_json(&told::in_json(file, imported, dry_run))?,
                false => print(&told::in_sentences(imported, dry_run))?,
            }
        }
        result.map_err(|trouble| match trouble {
            Trouble::File(error) => {
                let message = format!("{}: {error}", file.display());
                Error::new(error.kind(), error.retry(), message).into()
            }
            Trouble::Archive(error) => error.into(),
        })
    }

    /// Many files: what is wrong with one is told, and the others are imported.
    async fn many(mut self, files: &[PathBuf]) -> Result<(), Failure> {
        let verb = if self.ask.dry_run { "read" } else { "imported" };
        let mut progress = Progress::new(verb, Some(files.len() as u64));
        let mut counts = Counts::default();
        for file in files {
            let mut done = Vec::new();
            let result = self.import(file, &mut done).await;
            for imported in &done {
                counts.count(imported);
                if self.ask.json {
                    print_json(&told::in_json(file, imported, self.ask.dry_run))?;
                } else if self.ask.dry_run {
                    print(&format!("{}: {}", file.display(), told::in_sentences(imported, true)))?;
                } else {
                    for flaw in told::flaws(imported) {
                        progress.note(&format!("{}: {flaw}", file.display()));
                    }
                }
            }
            match result {
                Ok(()) => {}
                Err(Trouble::File(error)) => {
                    counts.failed += 1;
                    progress.note(&format!("{}: {error}", file.display()));
                }
                Err(Trouble::Archive(error)) => return Err(error.into()),
            }
            progress.step(&file.display().to_string());
        }
        drop(progress);
        let told = counts.told(files.len(), self.ask.dry_run);
        if self.ask.json {
            tell(&told)
        } else {
            print(&format!("{told}\n"))?
        }
        match counts.failed {
            0 => Ok(()),
            1 => Err(Failure::Fault("one file could not be imported".to_owned())),
            failed => Err(Failure::Fault(format!("{failed} files could not be imported"))),
        }
    }

    /// Imports all transcripts of a file, and adds to `done` what became of each.
    async fn import(&mut self, file: &Path, done: &mut Vec<Imported>) -> Result<(), Trouble> {
        let body = read(file).map_err(|error| Trouble::File(Error::invalid(unreadable(&error))))?;
        let drafts = Draft::read(&body)?;
        drop(body);
        let name = Name::read(file);
        for mut draft in drafts {
            if let Some(video) = &self.video {
                draft.be_of(video.clone())?;
            }
            self.complete(&mut draft, file, &name)?;
            let admit = Admit { draft, replace: self.ask.replace, dry_run: self.ask.dry_run };
            done.push(self.verbatim.admit(admit).await?);
        }
        Ok(())
    }

    /// Adds what the flags, the file beside it and the file's name say, in this order of trust behind
    /// what the file itself says; but flags are always right.
    fn complete(&mut self, draft: &mut Draft, file: &Path, name: &Name) -> Result<(), Error> {
        let info = self.infos.beside(file, name);
        if draft.video.is_none() {
            draft.video = info.and_then(Info::video).or_else(|| name.video.clone());
        }
        let is_of_info = |video: &Option<VideoId>| info.is_some_and(|info| info.video() == *video);
        if let Some(info) = info.filter(|_| is_of_info(&draft.video)) {
            draft.title = draft.title.take().or_else(|| info.title());
            draft.author = draft.author.take().or_else(|| info.author());
            draft.duration_ms = draft.duration_ms.or_else(|| info.duration_ms());
            if let Some(track) = name.key.as_deref().and_then(|key| info.track(key))
                && be_in(draft, &track.language)
            {
                draft.kind = draft.kind.or(Some(track.kind));
                draft.original |= track.original;
            }
        }
        if let Some(language) = &name.language
            && be_in(draft, language)
        {
            draft.original |= name.is_original;
            draft.kind = draft.kind.or(name.is_original.then_some(TrackKind::Generated));
        }
        if let Some(language) = &self.language {
            draft.be_in(language.clone());
        }
        if self.ask.generated {
            draft.kind = Some(TrackKind::Generated);
        }
        draft.describe(self.ask.title.as_deref(), self.ask.author.as_deref())
    }
}

/// Whether a draft is in this language as far as is known: it is from now on, if it did not say.
fn be_in(draft: &mut Draft, language: &LanguageTag) -> bool {
    draft.language.get_or_insert_with(|| language.clone()).matches(language)
}

/// The file, or standard input.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    let too_large = || io::Error::other(format!("it is larger than {DRAFT_BYTES_MAX} bytes"));
    let mut bytes = Vec::new();
    let limit = DRAFT_BYTES_MAX as u64 + 1;
    if file == Path::new("-") {
        io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
    } else {
        let file = File::open(file)?;
        if file.metadata()?.len() >= limit {
            return Err(too_large());
        }
        file.take(limit).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 >= limit { Err(too_large()) } else { Ok(bytes) }
}

fn unreadable(error: &io::Error) -> String {
    format!("it cannot be read: {error}")
}
