//! The tracks of a video, which one answers a wish, and the transcripts that come of it.

use std::{future::Future, time::Duration};

use transcript_core::{
    archive::Wish,
    captions::{self, CaptionErrorKind},
    supplier::{Ask, Supplied},
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript, best_track},
};

use super::{Errand, Refusal};

/// How long the default transcript may keep the wished one waiting.
const EXTRA_PATIENCE: Duration = Duration::from_secs(3);
/// How many tracks are read until one has words.
const TRIES_MAX: usize = 3;

/// What a platform says of the video itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Details {
    pub(crate) title: Option<String>,
    pub(crate) author: Option<String>,
    pub(crate) duration_ms: Option<u64>,
}

/// A track, and where its captions are, in the order in which they are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Track {
    pub(crate) info: TrackInfo,
    pub(crate) addresses: Vec<String>,
}

/// All tracks of a video, in the platform's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tracks(pub(crate) Vec<Track>);

impl Tracks {
    fn infos(&self) -> Vec<TrackInfo> {
        self.0.iter().map(|track| track.info.clone()).collect()
    }

    /// All languages, each once. A translation is one of them: it can be had by its name.
    fn languages(&self) -> Vec<LanguageTag> {
        let mut languages: Vec<LanguageTag> = Vec::new();
        for track in &self.0 {
            if !languages.contains(&track.info.language) {
                languages.push(track.info.language.clone());
            }
        }
        languages
    }

    /// The place of what answers a wish best.
    fn choose(&self, wish: &Wish) -> Option<usize> {
        best_track(self.0.iter().map(|track| &track.info), wish)
    }

    /// What answers a wish in place of `best`, among those that were not tried: in its language, and no
    /// translation. Whatever is found is archived for good, so it must be what the wish means, too.
    fn choose_instead(&self, wish: &Wish, best: usize, tried: &[usize]) -> Option<usize> {
        let language = &self.0.get(best)?.info.language;
        let places: Vec<usize> = (0..self.0.len()).filter(|place| !tried.contains(place)).collect();
        let suits = |place: &usize| {
            self.0.get(*place).filter(|track| {
                track.info.kind != TrackKind::Translated && language.matches(&track.info.language)
            })
        };
        let suited: Vec<_> = places.into_iter().filter(|place| suits(place).is_some()).collect();
        let infos = suited.iter().filter_map(|place| self.0.get(*place)).map(|track| &track.info);
        suited.get(best_track(infos, wish)?).copied()
    }
}

/// Whoever can fetch the words of a track.
pub(crate) trait Words: Sync {
    /// The words behind a track's addresses.
    fn words(
        &self,
        errand: &mut Errand<'_>,
        track: &Track,
    ) -> impl Future<Output = Result<Vec<Segment>, Refusal>> + Send;
}

/// The transcript that answers the wish and, where that is another one, the default transcript.
pub(crate) async fn supplied(
    errand: &mut Errand<'_>,
    words: &impl Words,
    ask: &Ask,
    source: &str,
    details: &Details,
    tracks: &Tracks,
) -> Result<Supplied, Refusal> {
    let none = || match &ask.wish {
        Wish::Language(_) if !tracks.0.is_empty() => Refusal::NoLanguage(tracks.languages()),
        // A machine translation is nobody's default.
        _ => Refusal::NoCaptions,
    };
    let best = tracks.choose(&ask.wish).ok_or_else(none)?;
    let default = match ask.wish {
        Wish::Default => None,
        Wish::Language(_) => tracks.choose(&Wish::Default).filter(|default| *default != best),
    };
    let of = 1 + u64::from(default.is_some());
    errand.stage("captions", 0, of);
    let transcript = |track: &TrackInfo, segments| Transcript {
        video: ask.video.clone(),
        title: details.title.clone(),
        author: details.author.clone(),
        duration_ms: details.duration_ms,
        track: track.clone(),
        source: source.to_owned(),
        segments,
    };
    let (place, segments) = first_with_words(errand, words, tracks, &ask.wish, best).await?;
    let mut found: Vec<_> =
        tracks.0.get(place).map(|track| transcript(&track.info, segments)).into_iter().collect();
    if let Some(default) = default.filter(|default| *default != place).and_then(|place| tracks.0.get(place)) {
        errand.stage("captions", 1, of);
        // What was wished is there: that the other one fails is no reason to lose it, or to wait long.
        let deadline = errand.hurry(EXTRA_PATIENCE);
        if let Ok(segments) = words.words(errand, default).await {
            found.push(transcript(&default.info, segments));
        }
        errand.relax(deadline);
    }
    errand.stage("captions", of, of);
    Ok(Supplied { tracks: found, known_tracks: tracks.infos() })
}

/// The words of the best track; where it has none, those of another track of its language.
async fn first_with_words(
    errand: &mut Errand<'_>,
    words: &impl Words,
    tracks: &Tracks,
    wish: &Wish,
    best: usize,
) -> Result<(usize, Vec<Segment>), Refusal> {
    let mut place = best;
    let mut tried = Vec::new();
    loop {
        let Some(track) = tracks.0.get(place) else { return Err(Refusal::NoCaptions) };
        let refusal = match words.words(errand, track).await {
            Ok(segments) => return Ok((place, segments)),
            Err(refusal) => refusal,
        };
        tried.push(place);
        let next = tracks.choose_instead(wish, best, &tried);
        // What another track gives in place of one that only could not be read would be archived for good.
        match next.filter(|_| refusal == Refusal::NoWords && tried.len() < TRIES_MAX) {
            Some(next) => place = next,
            None => return Err(refusal),
        }
    }
}

/// The words in a caption body, whatever its form.
pub(crate) fn read(body: &[u8]) -> Result<Vec<Segment>, Refusal> {
    captions::parse(body).map_err(|error| match error.kind() {
        CaptionErrorKind::NoCues => Refusal::NoWords,
        _ => Refusal::UnreadableCaptions(error.message().trim_end_matches('.').to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracks(list: &[(&str, TrackKind, bool)]) -> Tracks {
        let track = |(language, kind, original): &(&str, TrackKind, bool)| {
            let info = TrackInfo::new(LanguageTag::parse(language).unwrap(), *kind);
            Track { info: TrackInfo { original: *original, ..info }, addresses: Vec::new() }
        };
        Tracks(list.iter().map(track).collect())
    }

    fn wish(tag: &str) -> Wish {
        Wish::Language(LanguageTag::parse(tag).unwrap())
    }

    use TrackKind::{Generated, Human, Translated};

    #[test]
    fn a_translation_is_never_the_default_nor_stands_in_for_another() {
        let list = tracks(&[("en", Translated, false), ("vi", Generated, true), ("vi", Human, true)]);
        assert_eq!(list.choose(&Wish::Default), Some(2));
        assert_eq!(list.choose(&wish("en")), Some(0));
        assert_eq!(list.choose(&wish("en-GB")), None);
        assert_eq!(list.choose_instead(&Wish::Default, 2, &[2]), Some(1));
        assert_eq!(list.choose_instead(&Wish::Default, 2, &[1, 2]), None);
        assert_eq!(list.choose_instead(&wish("en"), 0, &[0]), None);
        let only = tracks(&[("en", Translated, false)]);
        assert_eq!(only.choose(&Wish::Default), None);
        assert_eq!(only.languages().len(), 1);
    }

    #[test]
    fn bodies_are_read_by_their_content() {
        assert_eq!(read(b"WEBVTT\n\n00:01.000 --> 00:02.000\nhi\n").unwrap().len(), 1);
        assert_eq!(read(b"1\n00:00:01,000 --> 00:00:02,000\nhi\n").unwrap().len(), 1);
        assert_eq!(read(b"{\"utterances\":[{\"text\":\"hi\",\"start_time\":1}]}").unwrap().len(), 1);
        assert_eq!(read(b"WEBVTT\n\n"), Err(Refusal::NoWords));
        assert!(matches!(read(b"<html></html>"), Err(Refusal::UnreadableCaptions(_))));
        assert!(matches!(read(b""), Err(Refusal::UnreadableCaptions(_))));
    }
}
