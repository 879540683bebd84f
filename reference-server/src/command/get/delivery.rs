//! Where the transcripts of many videos go: files in a folder, or standard output.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
};

use serde_json::json;
use transcript_core::{
    archive::StoredTranscript, service::LookupReply, video::VideoId, wire::lookup::TranscriptResult,
};

use super::{
    super::{
        CommandError,
        arguments::OutputFormat,
        get_arguments::GetArgs,
        ignore_closed,
        output_file::{cannot_write, has_text, write_file},
        print, print_json,
        progress::{ProgressLine, can_redraw},
        shown,
    },
    file_name::NameTemplate,
    source::{Failure, QueuedVideo},
    text, with_segments,
};

/// Most names that are tried for one transcript.
const NAMES_MAX: usize = 1_000;
/// Longest title above a text, in characters.
const TITLE_MAX: usize = 200;

/// Outcome of one transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeliveryOutcome {
    /// It was written or printed.
    Written,
    /// Its file existed.
    Exists,
    /// Another link of the command has led to the same video.
    Repeated,
}

/// Destination of the transcripts.
#[derive(Debug)]
pub(super) enum GetDestination {
    Folder(FolderDestination),
    /// Standard output.
    Stdout,
}

/// Files in a folder.
#[derive(Debug)]
pub(super) struct FolderDestination {
    folder: PathBuf,
    template: NameTemplate,
    /// The videos of the names that this command has used, in lower case: many file systems ignore the case.
    names: HashMap<String, VideoId>,
    /// Whether the paths are printed: on a terminal with a progress bar they would only pass by.
    prints_paths: bool,
}

impl GetDestination {
    /// Creates the folder.
    pub(super) fn new(args: &GetArgs) -> Result<Self, CommandError> {
        let Some(folder) = &args.to else {
            if matches!(args.format, OutputFormat::Srt | OutputFormat::Vtt) {
                let message = "subtitles of several videos are several files: name a folder with --to";
                return Err(CommandError::Wrong(message.to_owned()));
            }
            return Ok(Self::Stdout);
        };
        let template = NameTemplate::parse(&args.name, args.format.extension())?;
        fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
        let prints_paths = !(io::stdout().is_terminal() && can_redraw());
        Ok(Self::Folder(FolderDestination {
            folder: folder.clone(),
            template,
            names: HashMap::new(),
            prints_paths,
        }))
    }

    /// Whether the transcripts themselves are printed.
    pub(super) fn is_stdout(&self) -> bool {
        matches!(self, Self::Stdout)
    }

    /// Delivers a transcript.
    pub(super) fn deliver(
        &mut self,
        args: &GetArgs,
        queued: &QueuedVideo,
        (result, stored): (TranscriptResult, &StoredTranscript),
        progress: &ProgressLine,
    ) -> Result<DeliveryOutcome, CommandError> {
        match self {
            Self::Folder(folder) => folder.deliver(args, queued, (result, stored), progress),
            Self::Stdout => {
                let print_all = || match args.format {
                    OutputFormat::Json => print_line(&with_segments(result, stored, args)),
                    _ => print(&below_heading(stored, &text(result, stored, args)?)),
                };
                progress.suspend(print_all).map(|()| DeliveryOutcome::Written)
            }
        }
    }

    /// Prints the line of a link without transcript, if the output has one for each link.
    pub(super) fn deliver_failure(
        &self,
        args: &GetArgs,
        failure: &Failure,
        reply: Option<LookupReply>,
        progress: &ProgressLine,
    ) -> Result<(), CommandError> {
        if !self.is_stdout() || args.format != OutputFormat::Json {
            return Ok(());
        }
        progress.suspend(|| match reply {
            Some(reply) => print_line(&reply.result),
            None => print_line(&json!({
                "url": failure.label, "available": false, "failureReason": failure.reason,
                "failureMessage": failure.message, "transcript": [],
            })),
        })
    }
}

impl FolderDestination {
    fn deliver(
        &mut self,
        args: &GetArgs,
        queued: &QueuedVideo,
        (result, stored): (TranscriptResult, &StoredTranscript),
        progress: &ProgressLine,
    ) -> Result<DeliveryOutcome, CommandError> {
        let video = &stored.transcript.video;
        let path = self.folder.join(self.template.fill(stored, queued.index));
        // Whether this or an earlier run fetched the transcript, its file is the same.
        let text = text(TranscriptResult { from_cache: true, ..result }, stored, args)?;
        for number in 0..NAMES_MAX {
            let file = numbered(&path, video, number, self.template.has_id(), args.format.extension());
            let key = file.to_string_lossy().to_lowercase();
            match self.names.get(&key) {
                Some(owner) if owner == video => return Ok(DeliveryOutcome::Repeated),
                Some(_) => continue,
                None => {}
            }
            if file.symlink_metadata().is_ok() {
                // A name with the id is of this video, even if its user has edited the file since.
                let is_same_video = number == 0 && self.template.has_id() && file.is_file();
                if !is_same_video && !has_text(&file, &text) {
                    continue;
                }
                self.names.insert(key, video.clone());
                return Ok(DeliveryOutcome::Exists);
            }
            write(&file, &text).map_err(|error| cannot_write(&file, &error))?;
            self.names.insert(key, video.clone());
            if self.prints_paths {
                ignore_closed(progress.suspend(|| print(&format!("{}\n", file.display()))))?;
            }
            return Ok(DeliveryOutcome::Written);
        }
        Err(CommandError::Fault(format!("{} exists {NAMES_MAX} times", path.display())))
    }
}

/// The path with the id of the video, if the name lacks it, and with a number, if that is not enough.
fn numbered(path: &Path, video: &VideoId, number: usize, has_id: bool, extension: &str) -> PathBuf {
    let mut name = path.file_name().map_or_else(OsString::new, ToOwned::to_owned);
    if number > 0 && !has_id {
        name.push(format!(" [{}]", video.id()));
    }
    let number = if has_id { number + 1 } else { number };
    if number > 1 {
        name.push(format!(" ({number})"));
    }
    name.push(format!(".{extension}"));
    path.with_file_name(name)
}

fn write(file: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    write_file(file, text, false)
}

/// The text below a line that names its video.
fn below_heading(stored: &StoredTranscript, text: &str) -> String {
    let address = stored.transcript.video.address();
    let heading = match stored.transcript.title.as_deref() {
        Some(title) => format!("{} ({address})", shown(title, TITLE_MAX)),
        None => address,
    };
    format!("==> {heading} <==\n{}\n\n", text.trim_end())
}

fn print_line(row: &impl serde::Serialize) -> Result<(), CommandError> {
    let line = serde_json::to_string(row).map_err(|error| CommandError::Fault(error.to_string()))?;
    print_json(&(line + "\n"))
}
