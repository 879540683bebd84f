//! `verbatim get`: prints a transcript.

use transcript_core::{
    ErrorKind,
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
    let lookup = ServiceLookup { language: language.clone(), ..ServiceLookup::url(args.link) };
    let printed = match line.show_during(service.look_up(&Caller::default(), lookup)).await {
        Ok(reply) => match reply.body.transcript {
            Some(stored) => {
                report_language(language.as_ref(), &stored.transcript);
                let print = if args.format == OutputFormat::Json { print_json } else { print };
                text(reply.body.result, &stored.transcript, args.format).and_then(|text| print(&text))
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

fn text(
    result: TranscriptResult,
    transcript: &Transcript,
    format: OutputFormat,
) -> Result<String, CommandError> {
    if let Some(format) = format.text_format() {
        return Ok(format.format(transcript));
    }
    let segments = transcript.segments.iter().map(Segment::from).collect();
    let json = serde_json::to_string_pretty(&TranscriptResult { transcript: segments, ..result });
    json.map(|json| json + "\n").map_err(|error| CommandError::Fault(error.to_string()))
}
