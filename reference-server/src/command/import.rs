//! `verbatim import`: imports caption files and folders.

mod folder;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod info;
mod name;
mod report;

use std::{
    io, mem,
    path::{Path, PathBuf},
};

use transcript_core::{
    Error, ErrorKind,
    transcript::{LanguageTag, TrackKind},
    video::VideoId,
};
use verbatim::{DRAFT_BYTES_MAX, ImportDraft, ImportDraftRequest, ImportEffect, ImportOutcome, Verbatim};

use super::{
    CommandError, arguments, bounded_file, ignore_closed, open_archive, open_archive_read_only, print,
    print_json, print_stderr, progress::ProgressLine,
};
use crate::config::Settings;
pub(super) use folder::WITHDRAWN;
use info::{InfoFile, InfoFiles};
use name::CaptionFileName;

/// Imports the files and reports the result.
pub(super) async fn run(settings: &Settings, args: arguments::ImportArgs) -> Result<(), CommandError> {
    let language = args.lang.as_deref().map(LanguageTag::parse).transpose()?;
    let is_one = matches!(args.paths.as_slice(), [path] if !path.is_dir());
    if !is_one && (args.video.is_some() || args.title.is_some() || args.author.is_some()) {
        let message = "--video, --title and --author apply to one file; name one file and no folder";
        return Err(CommandError::Wrong(message.to_owned()));
    }
    let is_stdin = matches!(args.paths.as_slice(), [path] if path == Path::new("-"));
    let files = if is_stdin { args.paths.clone() } else { folder::files(&args.paths)? };
    let verbatim =
        if args.dry_run { open_archive_read_only(settings).await? } else { open_archive(settings).await? };
    let done = import(&verbatim, &args, language, &files, is_one).await;
    verbatim.close().await;
    done
}

async fn import(
    verbatim: &Verbatim,
    args: &arguments::ImportArgs,
    language: Option<LanguageTag>,
    files: &[PathBuf],
    is_one: bool,
) -> Result<(), CommandError> {
    let video = match &args.video {
        Some(link) => Some(verbatim.tools().known_video(link).await?),
        None => None,
    };
    let work = ImportWork { verbatim, args, video, language, infos: InfoFiles::default() };
    match files {
        [file] if is_one => work.single(file).await,
        files => work.many(files).await,
    }
}

/// Reason why a file was not imported.
enum ImportFailure {
    /// The file is invalid, or its video is damaged; the other files are imported.
    File(Error),
    /// The archive failed, or an option is wrong; nothing can be imported.
    Command(Error),
}

impl From<Error> for ImportFailure {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Invalid | ErrorKind::Conflict | ErrorKind::Corrupt => Self::File(error),
            _ => Self::Command(error),
        }
    }
}

/// Number of files by result.
#[derive(Debug, Default)]
struct ImportCounts {
    imported: u64,
    kept: u64,
    unchanged: u64,
    failed: u64,
    left_out: u64,
    unreadable: u64,
    withdrawn: u64,
}

impl ImportCounts {
    fn count(&mut self, imported: &ImportOutcome) {
        self.left_out = self.left_out.saturating_add(imported.left_out.count);
        self.unreadable = self.unreadable.saturating_add(imported.unreadable.count);
        if let Some(effect) = imported.withdrawal {
            self.withdrawn += u64::from(effect == ImportEffect::Added);
            return;
        }
        let any = |effects: &[ImportEffect]| {
            imported.selectors.iter().any(|selector| effects.contains(&selector.effect))
        };
        if any(&[ImportEffect::Added, ImportEffect::Replaced]) {
            self.imported += 1;
        } else if any(&[ImportEffect::Kept]) {
            self.kept += 1;
        } else {
            self.unchanged += 1;
        }
    }

    /// Returns the summary line.
    fn report(&self, files: usize, dry_run: bool) -> String {
        let Self { imported, kept, unchanged, failed, left_out, unreadable, withdrawn } = self;
        let would = if dry_run { "would be " } else { "" };
        let label = if files == 1 { "file" } else { "files" };
        let mut line = format!(
            "{files} {label}: {imported} transcripts {would}imported, {unchanged} unchanged, \
             {kept} kept (the archive has another text; --replace replaces it), {failed} failed"
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

struct ImportWork<'a> {
    verbatim: &'a Verbatim,
    args: &'a arguments::ImportArgs,
    video: Option<VideoId>,
    language: Option<LanguageTag>,
    infos: InfoFiles,
}

impl ImportWork<'_> {
    /// Imports one file; its error is the command's error.
    async fn single(mut self, file: &Path) -> Result<(), CommandError> {
        let mut done = Vec::new();
        let result = self.import(file, &mut done).await;
        let dry_run = self.args.dry_run;
        for imported in &done {
            ignore_closed(match self.args.json {
                true => print_json(&report::to_json(file, imported, dry_run)),
                false => print(&report::to_text(imported, dry_run)),
            })?;
        }
        result.map_err(|failure| match failure {
            ImportFailure::File(error) => CommandError::Fault(format!("{}: {error}", file.display())),
            ImportFailure::Command(error) => error.into(),
        })
    }

    /// Imports many files; the error of a file is printed and the others are imported.
    async fn many(mut self, files: &[PathBuf]) -> Result<(), CommandError> {
        let verb = if self.args.dry_run { "read" } else { "imported" };
        let mut progress = ProgressLine::new(verb, Some(files.len() as u64));
        let mut counts = ImportCounts::default();
        for file in files {
            let mut done = Vec::new();
            let result = self.import(file, &mut done).await;
            for imported in &done {
                counts.count(imported);
                if self.args.json {
                    ignore_closed(print_json(&report::to_json(file, imported, self.args.dry_run)))?;
                } else if self.args.dry_run {
                    let text = report::to_text(imported, true);
                    ignore_closed(print(&format!("{}: {text}", file.display())))?;
                } else {
                    for flaw in report::flaws(imported) {
                        progress.note(&format!("{}: {flaw}", file.display()));
                    }
                }
            }
            match result {
                Ok(()) => {}
                Err(ImportFailure::File(error)) => {
                    counts.failed += 1;
                    progress.note(&format!("{}: {error}", file.display()));
                }
                Err(ImportFailure::Command(error)) => return Err(error.into()),
            }
            progress.step(&file.display().to_string());
        }
        drop(progress);
        let report = counts.report(files.len(), self.args.dry_run);
        if self.args.json {
            print_stderr(&report)
        } else {
            ignore_closed(print(&format!("{report}\n")))?
        }
        match counts.failed {
            0 => Ok(()),
            1 => Err(CommandError::Fault("one file could not be imported".to_owned())),
            failed => Err(CommandError::Fault(format!("{failed} files could not be imported"))),
        }
    }

    /// Imports all transcripts of a file and appends their outcomes to `done`.
    async fn import(&mut self, file: &Path, done: &mut Vec<ImportOutcome>) -> Result<(), ImportFailure> {
        let body = bounded_file::read(file, DRAFT_BYTES_MAX as u64);
        let body = body.map_err(|error| ImportFailure::File(Error::invalid(unreadable(&error))))?;
        let name = CaptionFileName::read(file);
        let drafts = ImportDraft::read_in(&body, self.language.as_ref().or(name.language.as_ref()))?;
        drop(body);
        for mut draft in drafts {
            if let Some(video) = &self.video {
                draft.set_video(video.clone())?;
            }
            self.complete(&mut draft, file, &name);
            draft
                .set_metadata(self.args.title.as_deref(), self.args.author.as_deref())
                .map_err(ImportFailure::Command)?;
            let request =
                ImportDraftRequest { draft, replace: self.args.replace, dry_run: self.args.dry_run };
            done.push(self.verbatim.tools().import_draft(request).await?);
        }
        Ok(())
    }

    /// Completes a draft.
    ///
    /// Flags override everything; otherwise the file itself is trusted most, then the `.info.json` next to it, then
    /// the file name.
    fn complete(&mut self, draft: &mut ImportDraft, file: &Path, name: &CaptionFileName) {
        let info = self.infos.find(file, name);
        if draft.video.is_none() {
            draft.video = info.and_then(InfoFile::video).or_else(|| name.video.clone());
        }
        let is_of_info = |video: &Option<VideoId>| info.is_some_and(|info| info.video() == *video);
        if let Some(info) = info.filter(|_| is_of_info(&draft.video)) {
            draft.title = draft.title.take().or_else(|| info.title());
            draft.author = draft.author.take().or_else(|| info.author());
            draft.duration_ms = draft.duration_ms.or_else(|| info.duration_ms());
            draft.metadata = mem::take(&mut draft.metadata).or(info.metadata());
            if let Some(track) = name.key.as_deref().and_then(|key| info.track(key))
                && set_or_match_language(draft, &track.language)
            {
                draft.kind = draft.kind.or(Some(track.kind));
                draft.original |= track.original;
            }
        }
        if let Some(language) = &name.language
            && set_or_match_language(draft, language)
        {
            draft.original |= name.is_original;
            draft.kind = draft.kind.or(name.kind);
        }
        if let Some(language) = &self.language {
            draft.set_language(language.clone());
        }
        if self.args.generated {
            draft.kind = Some(TrackKind::Generated);
        }
    }
}

/// Sets the language of a draft without one; returns whether the draft is in this language.
fn set_or_match_language(draft: &mut ImportDraft, language: &LanguageTag) -> bool {
    draft.language.get_or_insert_with(|| language.clone()).matches(language)
}

fn unreadable(error: &io::Error) -> String {
    format!("it cannot be read: {error}")
}
