//! `verbatim get`: prints a transcript.

use transcript_core::{
    ErrorKind,
    archive::{
        StoredTranscript,
        view::{TranscriptView, write_text},
    },
    transcript::{LanguageTag, Transcript},
    wire::lookup::{Segment, TranscriptResult},
};
use verbatim::{
    Batch,
    service::{ArchiveService, Caller, Service, ServiceError, ServiceErrorKind, ServiceLookup},
};

use super::{
    CommandError,
    arguments::{self, OutputFormat},
    fetch_status::FetchStatusLine,
    open::open_archive_with_observer,
    print, print_json, print_stderr,
};
use crate::config::Settings;

impl From<ServiceError> for CommandError {
    fn from(error: ServiceError) -> Self {
        match error.kind {
            ServiceErrorKind::Core(ErrorKind::Invalid) => Self::Wrong(error.message),
            _ => Self::Fault(error.message),
        }
    }
}

/// Prints the transcript.
pub(super) async fn run(settings: &Settings, args: arguments::GetArgs) -> Result<(), CommandError> {
    let language = args.lang.as_deref().map(LanguageTag::parse).transpose()?;
    let (line, observer) = FetchStatusLine::new();
    let verbatim = open_archive_with_observer(settings, Some(observer)).await?;
    let service = ArchiveService::new(verbatim.clone()).with_batch(Batch::new(args.max_wait));
    check_view(&args)?;
    let lookup = ServiceLookup {
        language: language.clone(),
        translated: args.translated,
        ..ServiceLookup::url(args.link.clone())
    };
    let printed = match line.show_during(service.look_up(&Caller::default(), lookup)).await {
        Ok(reply) => match reply.body.transcript {
            Some(stored) => {
                report_language(language.as_ref(), &stored.transcript);
                let print = if args.format == OutputFormat::Json { print_json } else { print };
                text(reply.body.result, &stored, &args).and_then(|text| print(&text))
            }
            None => Err(missing(reply.body.result)),
        },
        Err(error) => Err(error.into()),
    };
    verbatim.close().await;
    printed
}

fn missing(result: TranscriptResult) -> CommandError {
    let reason = result.failure_reason.unwrap_or_default();
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
fn check_view(args: &arguments::GetArgs) -> Result<(), CommandError> {
    let wrong = |message: &str| Err(CommandError::Wrong(message.to_owned()));
    if args.words && !matches!(args.format, OutputFormat::Json | OutputFormat::Vtt) {
        return wrong("--words needs --format json or --format vtt");
    }
    if args.frontmatter && args.format != OutputFormat::Md {
        return wrong("--frontmatter needs --format md");
    }
    Ok(())
}

fn text(
    result: TranscriptResult,
    stored: &StoredTranscript,
    args: &arguments::GetArgs,
) -> Result<String, CommandError> {
    if let Some(format) = args.format.text_format() {
        let view = TranscriptView { words: args.words, ..TranscriptView::default() };
        return Ok(write_text(stored, format, view, args.frontmatter));
    }
    let segments = stored.transcript.segments.iter();
    let segments = match args.words {
        true => segments.map(Segment::with_words).collect(),
        false => segments.map(Segment::from).collect(),
    };
    let json = serde_json::to_string_pretty(&TranscriptResult { transcript: segments, ..result });
    json.map(|json| json + "\n").map_err(|error| CommandError::Fault(error.to_string()))
}
