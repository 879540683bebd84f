//! The caption tracks of a video, the choice for a track selector, and the resulting transcripts.

use std::{future::Future, time::Duration};

use transcript_core::{
    archive::TrackSelector,
    captions::{self, CaptionErrorKind, ParsedCaptions},
    supplier::{SupplyOutput, SupplyRequest},
    transcript::{Segment, TrackInfo, TrackKind, Transcript, VideoMetadata, best_track},
};

use super::{PlatformSession, SocialFailure};

/// How long the default transcript may delay the requested one.
const EXTRA_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum number of tracks that are read until one has text.
const TRACKS_TRIED_MAX: usize = 3;

/// Metadata of a video.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TrackDetails {
    pub(crate) title: Option<String>,
    pub(crate) author: Option<String>,
    pub(crate) duration_ms: Option<u64>,
    pub(crate) metadata: VideoMetadata,
}

/// A track with the URLs of its captions, in order of preference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SocialTrack {
    pub(crate) info: TrackInfo,
    pub(crate) addresses: Vec<String>,
}

/// All tracks of a video, in the platform's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SocialTracks(pub(crate) Vec<SocialTrack>);

impl SocialTracks {
    fn infos(&self) -> Vec<TrackInfo> {
        self.0.iter().map(|track| track.info.clone()).collect()
    }

    /// The tracks without machine translations; all if there are no others.
    fn originals(&self) -> Vec<TrackInfo> {
        let mut originals = self.infos();
        originals.retain(|track| track.kind != TrackKind::Translated);
        if originals.is_empty() { self.infos() } else { originals }
    }

    /// Index of the best track for a selector.
    fn choose(&self, selector: &TrackSelector) -> Option<usize> {
        best_track(self.0.iter().map(|track| &track.info), selector)
    }

    /// The best of the untried tracks that may replace `best`: never a translation.
    ///
    /// For a language it is in the language of `best`, because the result is archived permanently as the answer to the
    /// selector. As the default it may be in any.
    fn choose_instead(&self, selector: &TrackSelector, best: usize, tried: &[usize]) -> Option<usize> {
        let language = &self.0.get(best)?.info.language;
        let suits = |(index, track): &(usize, &SocialTrack)| {
            let has_language = selector.language().is_none() || language.matches(&track.info.language);
            !tried.contains(index) && track.info.kind != TrackKind::Translated && has_language
        };
        let suited: Vec<_> = self.0.iter().enumerate().filter(suits).collect();
        let next = best_track(suited.iter().map(|(_, track)| &track.info), selector)?;
        suited.get(next).map(|(index, _)| *index)
    }
}

/// Fetches the text of a track.
pub(crate) trait TrackFetcher: Sync {
    /// The segments at a track's URLs.
    fn fetch_segments(
        &self,
        session: &mut PlatformSession<'_>,
        track: &SocialTrack,
    ) -> impl Future<Output = Result<Vec<Segment>, SocialFailure>> + Send;
}

/// The transcript for the selector and, if different, the default transcript.
pub(crate) async fn supplied(
    session: &mut PlatformSession<'_>,
    fetcher: &impl TrackFetcher,
    request: &SupplyRequest,
    source: &str,
    details: &TrackDetails,
    tracks: &SocialTracks,
) -> Result<SupplyOutput, SocialFailure> {
    let none = || match request.selector.language() {
        Some(_) if !tracks.0.is_empty() => SocialFailure::NoLanguage(tracks.originals()),
        // A machine translation is never the default.
        _ => SocialFailure::NoCaptions,
    };
    let best = tracks.choose(&request.selector).ok_or_else(none)?;
    let default = match request.selector.language() {
        None => None,
        Some(_) => tracks.choose(&TrackSelector::Default).filter(|default| *default != best),
    };
    let of = 1 + u64::from(default.is_some());
    session.stage("captions", 0, of);
    let transcript = |track: &TrackInfo, segments| Transcript {
        video: request.video.clone(),
        title: details.title.clone(),
        author: details.author.clone(),
        duration_ms: details.duration_ms,
        track: track.clone(),
        source: source.to_owned(),
        segments,
    };
    let (index, segments) = first_with_text(session, fetcher, tracks, &request.selector, best).await?;
    let mut found: Vec<_> =
        tracks.0.get(index).map(|track| transcript(&track.info, segments)).into_iter().collect();
    if let Some(default) = default.filter(|default| *default != index).and_then(|index| tracks.0.get(index)) {
        session.stage("captions", 1, of);
        // The requested transcript is complete: a failure of the default one must not discard or delay it.
        let deadline = session.shorten_deadline(EXTRA_TIMEOUT);
        if let Ok(segments) = fetcher.fetch_segments(session, default).await {
            found.push(transcript(&default.info, segments));
        }
        session.restore_deadline(deadline);
    }
    session.stage("captions", of, of);
    let metadata = details.metadata.clone().cleaned(details.duration_ms);
    Ok(SupplyOutput { transcripts: found, known_tracks: tracks.infos(), metadata })
}

/// The text of the best track; if it is empty, that of its substitute.
async fn first_with_text(
    session: &mut PlatformSession<'_>,
    fetcher: &impl TrackFetcher,
    tracks: &SocialTracks,
    selector: &TrackSelector,
    best: usize,
) -> Result<(usize, Vec<Segment>), SocialFailure> {
    let mut index = best;
    let mut tried = Vec::new();
    loop {
        let Some(track) = tracks.0.get(index) else { return Err(SocialFailure::NoCaptions) };
        let failure = match fetcher.fetch_segments(session, track).await {
            Ok(segments) => return Ok((index, segments)),
            Err(failure) => failure,
        };
        tried.push(index);
        let next = tracks.choose_instead(selector, best, &tried);
        // A substitute for a track that is temporarily unreadable would be archived permanently.
        match next.filter(|_| failure == SocialFailure::EmptyCaptions && tried.len() < TRACKS_TRIED_MAX) {
            Some(next) => index = next,
            None => return Err(failure),
        }
    }
}

/// Parses a caption body in any supported format.
pub(crate) fn read(body: &[u8]) -> Result<Vec<Segment>, SocialFailure> {
    let parsed = captions::parse_with_report(body).map_err(|error| match error.kind() {
        CaptionErrorKind::NoCues => SocialFailure::EmptyCaptions,
        _ => SocialFailure::UnreadableCaptions(error.message().trim_end_matches('.').to_owned()),
    })?;
    match missing_part(body, &parsed) {
        Some(what) => Err(SocialFailure::IncompleteCaptions(what.to_owned())),
        None => Ok(parsed.segments),
    }
}

/// Why captions of a platform are not whole, as a clause; `None` if they are.
///
/// They are archived permanently, and a part that no parser reads is a sign of a new format or a cut response. U+FFFD
/// that the platform wrote itself is its text.
pub(crate) fn missing_part(body: &[u8], parsed: &ParsedCaptions) -> Option<&'static str> {
    if parsed.left_out.count > 0 {
        return Some("the times or the text of some lines have an unknown format");
    }
    let is_lossy = parsed.unreadable.count > 0 && std::str::from_utf8(body).is_err();
    is_lossy.then_some("they are not UTF-8")
}

#[cfg(test)]
mod tests {
    use transcript_core::transcript::LanguageTag;

    use super::*;

    fn tracks(list: &[(&str, TrackKind, bool)]) -> SocialTracks {
        let track = |(language, kind, original): &(&str, TrackKind, bool)| {
            let info = TrackInfo::new(LanguageTag::parse(language).unwrap(), *kind);
            SocialTrack { info: TrackInfo { original: *original, ..info }, addresses: Vec::new() }
        };
        SocialTracks(list.iter().map(track).collect())
    }

    fn selector(tag: &str) -> TrackSelector {
        TrackSelector::Language(LanguageTag::parse(tag).unwrap())
    }

    use TrackKind::{Generated, Human, Translated};

    #[test]
    fn translation_is_neither_default_nor_substitute() {
        let list = tracks(&[("en", Translated, false), ("vi", Generated, true), ("vi", Human, true)]);
        assert_eq!(list.choose(&TrackSelector::Default), Some(2));
        let translation = |tag| TrackSelector::in_language(LanguageTag::parse(tag).unwrap(), true);
        assert_eq!(list.choose(&selector("en")), None);
        assert_eq!(list.choose(&translation("en")), Some(0));
        assert_eq!(list.choose(&translation("en-GB")), None);
        assert_eq!(list.originals().len(), 2);
        assert_eq!(list.choose_instead(&TrackSelector::Default, 2, &[2]), Some(1));
        assert_eq!(list.choose_instead(&TrackSelector::Default, 2, &[1, 2]), None);
        assert_eq!(list.choose_instead(&translation("en"), 0, &[0]), None);
        let only = tracks(&[("en", Translated, false)]);
        assert_eq!(only.choose(&TrackSelector::Default), None);
        assert_eq!(only.originals().len(), 1);
    }

    #[test]
    fn substitute_of_default_may_have_other_language() {
        let list = tracks(&[("en", Human, false), ("de", Generated, true), ("en", Generated, false)]);
        assert_eq!(list.choose_instead(&TrackSelector::Default, 0, &[0]), Some(2));
        assert_eq!(list.choose_instead(&TrackSelector::Default, 0, &[0, 2]), Some(1));
        assert_eq!(list.choose_instead(&selector("en"), 0, &[0, 2]), None);
    }

    #[test]
    fn caption_format_is_detected_by_content() {
        assert_eq!(read(b"WEBVTT\n\n00:01.000 --> 00:02.000\nhi\n").unwrap().len(), 1);
        assert_eq!(read(b"1\n00:00:01,000 --> 00:00:02,000\nhi\n").unwrap().len(), 1);
        assert_eq!(read(b"{\"utterances\":[{\"text\":\"hi\",\"start_time\":1}]}").unwrap().len(), 1);
        assert_eq!(read(b"WEBVTT\n\n"), Err(SocialFailure::EmptyCaptions));
        assert!(matches!(read(b"<html></html>"), Err(SocialFailure::UnreadableCaptions(_))));
        assert!(matches!(read(b""), Err(SocialFailure::UnreadableCaptions(_))));
    }

    #[test]
    fn captions_with_lost_words_are_unreadable() {
        let first = "WEBVTT\n\n00:01.000 --> 00:02.000\nhi\n\n";
        for rest in [
            "00:0x.000 --> 00:04.000\nlost\n",
            "00:03.000 --> 00:0",
            "00:03.0",
            "00:0",
            "<html>Bad gateway</html>\n",
        ] {
            let body = format!("{first}{rest}");
            assert!(matches!(read(body.as_bytes()), Err(SocialFailure::IncompleteCaptions(_))), "{rest:?}");
        }
        for body in [
            &b"WEBVTT\n\n00:01.000 --> 00:02.000\ncaf\xE9 \xFCber\n"[..],
            b"WEBVTT\n\n00:01.000 --> 00:02.000\nhi \xC3",
        ] {
            assert!(matches!(read(body), Err(SocialFailure::IncompleteCaptions(_))), "{body:?}");
        }
        for rest in [
            "00:03.000 --> 00:04.000\nplatform's own \u{FFFD}\n",
            "NOTE end\n",
            "text after a blank line\n",
            "12:30\n",
            "12:30\n\n00:03.000 --> 00:04.000\nbye",
            "<!-- end -->\n",
            "00:03.000 --> 00:04.000\n\n",
        ] {
            assert!(read(format!("{first}{rest}").as_bytes()).is_ok(), "{rest:?}");
        }
    }
}
