//! `verbatim get`: prints a transcript.

use transcript_core::{
    captions::{write_srt, write_webvtt},
    lookup::{Availability, LookupResponse},
    transcript::{LanguageTag, markdown, prose},
    video::VideoLink,
    wire::lookup::TranscriptResult,
};
use verbatim::{FoundTranscript, GetOutcome, GetRequest, Verbatim};

use super::{
    CommandError,
    arguments::{self, OutputFormat},
    fetch_status::FetchStatusLine,
    open::open_archive_with_observer,
    print, print_json, print_stderr,
};
use crate::config::Settings;

/// Prints the transcript.
pub(super) async fn run(settings: &Settings, args: arguments::GetArgs) -> Result<(), CommandError> {
    let (line, observer) = FetchStatusLine::new();
    let verbatim = open_archive_with_observer(settings, Some(observer)).await?;
    let outcome =
        line.show_during(verbatim.get(GetRequest { link: args.link, language: args.lang.clone() })).await;
    let printed = match outcome {
        Ok(GetOutcome::Found(found)) => {
            report_language(args.lang.as_deref(), &found);
            let print = if args.format == OutputFormat::Json { print_json } else { print };
            text(&verbatim, &found, args.format).and_then(|text| print(&text))
        }
        Ok(GetOutcome::Missing(missing)) => Err(CommandError::Missing(
            format!("{}: {}", missing.reason.as_str(), missing.message),
            missing.watch_url,
        )),
        Err(error) => Err(error.into()),
    };
    verbatim.close().await;
    printed
}

/// Prints the language of the transcript on standard error if it differs from the requested one.
///
/// Most formats do not contain it.
fn report_language(requested: Option<&str>, found: &FoundTranscript) {
    let language = &found.stored.transcript.track.language;
    if let Some(requested) = requested
        && LanguageTag::parse(requested).is_ok_and(|requested| requested != *language)
    {
        print_stderr(&format!("verbatim: the best match for {requested} is in {language}"));
    }
}

fn text(verbatim: &Verbatim, found: &FoundTranscript, format: OutputFormat) -> Result<String, CommandError> {
    let transcript = &found.stored.transcript;
    match format {
        OutputFormat::Text => Ok(prose(&transcript.segments)),
        OutputFormat::Md => Ok(markdown(transcript)),
        OutputFormat::Srt => Ok(write_srt(&transcript.segments)),
        OutputFormat::Vtt => Ok(write_webvtt(&transcript.segments)),
        OutputFormat::Json => {
            let video = &transcript.video;
            let answer = LookupResponse {
                platform: video.platform(),
                video_id: video.id().to_owned(),
                watch_url: verbatim.lookup().options().watch_url(&VideoLink::Video(video.clone()), None),
                key: None,
                availability: Availability::Available {
                    stored: found.stored.clone(),
                    from_cache: found.from_cache,
                },
            };
            let json = serde_json::to_string_pretty(&TranscriptResult::from(&answer));
            json.map(|json| json + "\n").map_err(|error| CommandError::Fault(error.to_string()))
        }
    }
}
