//! `verbatim get`: a transcript on standard output.

use transcript_core::{
    lookup::{Availability, LookupAnswer},
    transcript::{LanguageTag, markdown, prose, srt, webvtt},
    video::VideoLink,
    wire::lookup::TranscriptResult,
};
use verbatim::{Found, Get, GetOutcome, Verbatim};

use super::{
    Failure,
    arguments::{self, Format},
    fetch_line::FetchLine,
    opening::open_archive_for,
    print, print_json, tell,
};
use crate::config::Settings;

/// Prints the transcript.
pub(super) async fn run(settings: &Settings, ask: arguments::Get) -> Result<(), Failure> {
    let (line, observer) = FetchLine::new();
    let verbatim = open_archive_for(settings, Some(observer)).await?;
    let outcome = line.during(verbatim.get(Get { link: ask.link, language: ask.lang.clone() })).await;
    let printed = match outcome {
        Ok(GetOutcome::Found(found)) => {
            tell_language(ask.lang.as_deref(), &found);
            let print = if ask.format == Format::Json { print_json } else { print };
            text(&verbatim, &found, ask.format).and_then(|text| print(&text))
        }
        Ok(GetOutcome::Missing(missing)) => Err(Failure::Missing(
            format!("{}: {}", missing.reason.as_str(), missing.message),
            missing.watch_url,
        )),
        Err(error) => Err(error.into()),
    };
    verbatim.close().await;
    printed
}

/// Says on standard error when the transcript is in another language than the one that was asked for, be it
/// one that matches: most forms do not tell.
fn tell_language(asked: Option<&str>, found: &Found) {
    let language = &found.stored.transcript.track.language;
    if let Some(asked) = asked
        && LanguageTag::parse(asked).is_ok_and(|asked| asked != *language)
    {
        tell(&format!("verbatim: the best match for {asked} is in {language}"));
    }
}

fn text(verbatim: &Verbatim, found: &Found, format: Format) -> Result<String, Failure> {
    let transcript = &found.stored.transcript;
    match format {
        Format::Text => Ok(prose(&transcript.segments)),
        Format::Md => Ok(markdown(transcript)),
        Format::Srt => Ok(srt(&transcript.segments)),
        Format::Vtt => Ok(webvtt(&transcript.segments)),
        Format::Json => {
            let video = &transcript.video;
            let answer = LookupAnswer {
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
            json.map(|json| json + "\n").map_err(|error| Failure::Fault(error.to_string()))
        }
    }
}
