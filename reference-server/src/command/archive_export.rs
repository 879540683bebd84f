//! `verbatim archive export`: archived transcripts as files.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;
use transcript_core::{
    page::{PAGE_LIMIT, PageRequest},
    transcript::{markdown, prose, srt, webvtt},
    video::VideoId,
};
use verbatim::{Archived, Verbatim, withdrawal_to_json};

use super::{
    Failure, WITHDRAWN, archive::unknown, archive_arguments::Export, arguments::Format, print,
    progress::Progress, tell,
};

/// What became of the files.
#[derive(Debug, Default)]
struct Written {
    new: u64,
    same: u64,
    kept: u64,
}

/// Writes the files, and tells the name of each.
pub(super) async fn run(verbatim: &Verbatim, ask: &Export) -> Result<(), Failure> {
    let mut written = Written::default();
    let mut missing = None;
    if ask.all {
        export_all(verbatim, ask, &mut written).await?;
    } else {
        let mut progress = Progress::new("exported", Some(ask.links.len() as u64));
        for link in &ask.links {
            let video = verbatim.show(link).await?;
            if video.withdrawn && ask.format == Format::Json {
                export_withdrawal(ask, &video.video, &mut written, &progress)?;
            } else if video.archived.is_empty() {
                progress.note(&format!("nothing is archived of {}", video.video));
                missing.get_or_insert_with(|| unknown(&video));
            }
            export(ask, &video.video, &video.archived, &mut written, &progress)?;
            progress.step(&video.video.to_string());
        }
    }
    tell(&format!("{} files written, {} were there already", written.new, written.same));
    if written.kept > 0 {
        return Err(Failure::Fault(format!(
            "{} files exist with another content and stay as they are; --force overwrites them",
            written.kept
        )));
    }
    missing.map_or(Ok(()), Err)
}

/// Exports all videos, page by page: their tracks come together. Then the withdrawals, which only our own JSON
/// can say: else whoever imports the files would serve what was taken down.
async fn export_all(verbatim: &Verbatim, ask: &Export, written: &mut Written) -> Result<(), Failure> {
    let mut progress = Progress::new("exported", Some(verbatim.stats().await?.videos));
    let mut page = PageRequest::first();
    let mut last: Option<VideoId> = None;
    loop {
        let tracks = verbatim.archive().page(page).await?;
        for track in tracks.items {
            if last.as_ref() == Some(&track.video) {
                continue;
            }
            let archived = verbatim.archived(&track.video).await?;
            export(ask, &track.video, &archived, written, &progress)?;
            progress.step(&track.video.to_string());
            last = Some(track.video);
        }
        match tracks.next {
            Some(next) => page = PageRequest { after: Some(next), limit: PAGE_LIMIT },
            None => break,
        }
    }
    if ask.format != Format::Json {
        return Ok(());
    }
    let mut page = PageRequest::first();
    loop {
        let withdrawn = verbatim.archive().withdrawn(page).await?;
        for video in withdrawn.items {
            export_withdrawal(ask, &video, written, &progress)?;
        }
        match withdrawn.next {
            Some(next) => page = PageRequest { after: Some(next), limit: PAGE_LIMIT },
            None => return Ok(()),
        }
    }
}

/// Writes the file that says that a video is withdrawn; nothing of its words.
fn export_withdrawal(
    ask: &Export,
    video: &VideoId,
    written: &mut Written,
    progress: &Progress,
) -> Result<(), Failure> {
    let folder = folder_of(ask, video)?;
    let is_words = |file: io::Result<fs::DirEntry>| {
        file.is_ok_and(|file| {
            file.file_name() != WITHDRAWN && !file.file_name().as_encoded_bytes().starts_with(b".")
        })
    };
    if fs::read_dir(&folder).is_ok_and(|mut files| files.any(is_words)) {
        progress.note(&format!("{} has files from before {video} was withdrawn", folder.display()));
    }
    put(ask, &folder, WITHDRAWN, &withdrawal_to_json(video)?, written, progress)
}

fn export(
    ask: &Export,
    video: &VideoId,
    archived: &[Archived],
    written: &mut Written,
    progress: &Progress,
) -> Result<(), Failure> {
    if archived.is_empty() {
        return Ok(());
    }
    let folder = folder_of(ask, video)?;
    let withdrawal = folder.join(WITHDRAWN);
    if ask.force && withdrawal.is_file() {
        fs::remove_file(&withdrawal).map_err(|error| cannot_write(&withdrawal, &error))?;
    } else if withdrawal.is_file() {
        written.kept += 1;
        progress
            .note(&format!("{} says that {video} is withdrawn, which it is no more", withdrawal.display()));
    }
    for one in archived {
        let (text, ending) = rendered(one, ask.format)?;
        put(ask, &folder, &format!("{}.{ending}", one.name()), &text, written, progress)?;
    }
    Ok(())
}

/// The folder of a video's files, which is there now.
fn folder_of(ask: &Export, video: &VideoId) -> Result<PathBuf, Failure> {
    // Both are letters, digits, `-` and `_` only.
    let folder = ask.to.join(video.platform().as_str()).join(video.id());
    fs::create_dir_all(&folder).map_err(|error| cannot_write(&folder, &error))?;
    Ok(folder)
}

/// Writes one file, unless it is there already.
fn put(
    ask: &Export,
    folder: &Path,
    name: &str,
    text: &str,
    written: &mut Written,
    progress: &Progress,
) -> Result<(), Failure> {
    let file = folder.join(name);
    if !ask.force && file.symlink_metadata().is_ok() {
        if is_same(&file, text) {
            written.same += 1;
        } else {
            written.kept += 1;
            progress.note(&format!("{} exists with another content", file.display()));
        }
        return Ok(());
    }
    write(&file, folder, text, ask.force).map_err(|error| cannot_write(&file, &error))?;
    written.new += 1;
    print(&format!("{}\n", file.display()))
}

/// The transcript in its form, and the ending of a file's name.
fn rendered(archived: &Archived, format: Format) -> Result<(String, &'static str), Failure> {
    let transcript = &archived.stored.transcript;
    Ok(match format {
        Format::Json => (archived.to_json()?, "json"),
        Format::Text => (prose(&transcript.segments), "txt"),
        Format::Md => (markdown(transcript), "md"),
        Format::Srt => (srt(&transcript.segments), "srt"),
        Format::Vtt => (webvtt(&transcript.segments), "vtt"),
    })
}

fn is_same(file: &Path, text: &str) -> bool {
    let same_length = file.metadata().is_ok_and(|found| found.is_file() && found.len() == text.len() as u64);
    same_length && fs::read(file).is_ok_and(|found| found == text.as_bytes())
}

/// Writes a file whole or not at all.
fn write(file: &Path, folder: &Path, text: &str, overwrite: bool) -> io::Result<()> {
    let mut draft = new_file(folder)?;
    draft.write_all(text.as_bytes())?;
    let done = if overwrite { draft.persist(file) } else { draft.persist_noclobber(file) };
    done.map(drop).map_err(|error| error.error)
}

/// A file without its name yet, with the rights that any new file has.
fn new_file(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".verbatim-").suffix(".part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::Fault(format!("{} cannot be written: {error}", PathBuf::from(path).display()))
}
