//! `verbatim get`: prints a transcript, or gets those of many videos.

mod delivery;
mod file_name;
mod link;
mod many;
mod source;
mod summary;

use std::time::Duration;

use transcript_core::{
    ErrorKind,
    archive::{
        StoredTranscript,
        view::{TranscriptView, write_text},
    },
    captions::TextFormat,
    transcript::{LanguageTag, Transcript},
    wire::lookup::{Segment, TranscriptResult},
};
use verbatim::{
    Batch, Options, Verbatim,
    service::{ArchiveService, Caller, Service, ServiceError, ServiceErrorKind, ServiceLookup},
};

use super::{
    CommandError, arguments::OutputFormat, fetch_status::FetchStatusLine, get_arguments::GetArgs,
    open::open_archive_with, print, print_json, print_stderr,
};
use crate::config::Settings;
use link::{GivenLink, LinkTarget, read_links};
pub(super) use summary::INTERRUPTED;

impl From<ServiceError> for CommandError {
    fn from(error: ServiceError) -> Self {
        match error.kind {
            ServiceErrorKind::Core(ErrorKind::Invalid) => Self::Wrong(error.message),
            _ => Self::Fault(error.message),
        }
    }
}

/// Prints the transcript of one video, or gets those of many.
pub(super) async fn run(settings: &Settings, args: GetArgs) -> Result<(), CommandError> {
    let language = args.lang.as_deref().map(LanguageTag::parse).transpose()?;
    check_view(&args)?;
    let limits = many::limits(&args)?;
    let links = read_links(&args)?;
    let link = match (links.as_slice(), &args.link, &args.to) {
        ([GivenLink { target: Err(error), .. }], Some(_), _) => {
            return Err(CommandError::Wrong(error.to_string()));
        }
        ([GivenLink { target: Ok(LinkTarget::Video(_)), .. }], Some(link), None) => link.clone(),
        _ => return many::run(settings, &args, links, limits).await,
    };
    one(settings, &args, link, language).await
}

/// Prints the transcript of one video.
async fn one(
    settings: &Settings,
    args: &GetArgs,
    link: String,
    language: Option<LanguageTag>,
) -> Result<(), CommandError> {
    let (line, observer) = FetchStatusLine::new();
    // After Ctrl-C the fetch ends and releases its lease, for which the next command would wait.
    let adapt = |options| Options { observer: Some(observer), detach_unpaid: false, ..options };
    let verbatim = open_archive_with(settings, adapt).await?;
    let batch = Batch::new(args.max_wait.unwrap_or(Duration::ZERO));
    let service = ArchiveService::new(verbatim.clone()).with_batch(batch);
    let lookup =
        ServiceLookup { language: language.clone(), translated: args.translated, ..ServiceLookup::url(link) };
    let caller = Caller::default();
    let work = async {
        tokio::select! {
            biased;
            reply = service.look_up(&caller, lookup) => Some(reply),
            Ok(()) = tokio::signal::ctrl_c() => None,
        }
    };
    let printed = match line.show_during(work).await {
        None => Err(CommandError::Reported(INTERRUPTED)),
        Some(Ok(reply)) => match reply.body.transcript {
            Some(stored) => {
                report_language(language.as_ref(), &stored.transcript);
                let print = if args.format == OutputFormat::Json { print_json } else { print };
                text(reply.body.result, &stored, args).and_then(|text| print(&text))
            }
            None => Err(missing(reply.body.result, reply.meta.failure_detail)),
        },
        Some(Err(error)) => Err(error.into()),
    };
    close(&verbatim).await;
    printed
}

/// Closes the archive. Ctrl-C, also a second one, ends the wait for fetches.
async fn close(verbatim: &Verbatim) {
    tokio::select! {
        () = verbatim.close() => {}
        Ok(()) = tokio::signal::ctrl_c() => {}
    }
}

fn missing(result: TranscriptResult, detail: Option<String>) -> CommandError {
    let reason = detail.or(result.failure_reason).unwrap_or_default();
    let message = result.failure_message.unwrap_or_default();
    CommandError::Missing(format!("{reason}: {message}"), result.watch_url)
}

/// Prints the language of the transcript on standard error if it differs from the requested one.
///
/// Most formats do not contain it.
fn report_language(requested: Option<&LanguageTag>, transcript: &Transcript) {
    let language = &transcript.track.language;
    if let Some(requested) = requested.filter(|requested| *requested != language) {
        print_stderr(&format!("verbatim: the best match for {requested} is in {language}"));
    }
}

/// Rejects options that the format cannot have.
fn check_view(args: &GetArgs) -> Result<(), CommandError> {
    let wrong = |message: &str| Err(CommandError::Wrong(message.to_owned()));
    if args.words && !matches!(args.format, OutputFormat::Json | OutputFormat::Vtt) {
        return wrong("--words needs --format json or --format vtt");
    }
    if args.frontmatter && !args.format.text_format().is_some_and(TextFormat::has_front_matter) {
        return wrong("--frontmatter needs --format md, text or vtt");
    }
    Ok(())
}

fn text(result: TranscriptResult, stored: &StoredTranscript, args: &GetArgs) -> Result<String, CommandError> {
    if let Some(format) = args.format.text_format() {
        let view = TranscriptView { words: args.words, ..TranscriptView::default() };
        return Ok(write_text(stored, format, view, args.frontmatter));
    }
    let json = serde_json::to_string_pretty(&with_segments(result, stored, args));
    json.map(|json| json + "\n").map_err(|error| CommandError::Fault(error.to_string()))
}

fn with_segments(result: TranscriptResult, stored: &StoredTranscript, args: &GetArgs) -> TranscriptResult {
    let segments = stored.transcript.segments.iter();
    let transcript = match args.words {
        true => segments.map(Segment::with_words).collect(),
        false => segments.map(Segment::from).collect(),
    };
    TranscriptResult { transcript, ..result }
}
