//! One attempt at a video's captions: client after client, until one of them gives some.

use std::time::Duration;

use http::StatusCode;
use tokio::time::Instant;
use transcript_core::{
    archive::Wish,
    supplier::{Ask, Supplied, Watcher},
    transcript::{Segment, TrackInfo, Transcript},
};

use super::{
    NAME,
    clients::ClientIdentity,
    player::{self, Details, Verdict},
    refusal::Refusal,
    request, signals,
    tracks::{Choice, Track, TrackList},
};
use crate::http::{Answer, Request, Visit};

/// How long the default transcript may keep the wished one waiting.
const EXTRA_PATIENCE: Duration = Duration::from_secs(3);
/// How many tracks of one language are read until one has words.
const WORDLESS_MAX: usize = 3;

/// One attempt, through one exit as long as that is not blocked.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) ask: &'a Ask,
    pub(super) watcher: &'a dyn Watcher,
    pub(super) clients: &'a [ClientIdentity],
    pub(super) deadline: Instant,
    pub(super) visit: Visit,
    /// The mark that YouTube gave us in this attempt.
    pub(super) visitor: Option<String>,
}

/// Why there were no captions, and the exit that the answer came through which said so.
pub(super) struct Refused {
    pub(super) refusal: Refusal,
    exit: Option<usize>,
}

/// A client that was told of tracks, the best of which could not be had.
struct Spare<'a> {
    client: &'a ClientIdentity,
    details: Details,
    tracks: TrackList,
}

impl<'a> Call<'a> {
    /// Asks the clients in order.
    ///
    /// An answer that settles the matter ends it; of several others the most telling one is reported.
    pub(super) async fn run(&mut self) -> Result<Supplied, Refused> {
        let mut told: Vec<Refused> = Vec::new();
        let mut spares: Vec<Spare<'a>> = Vec::new();
        let clients = self.clients;
        for (done, client) in clients.iter().enumerate() {
            self.watcher.stage("tracks", done as u64, clients.len() as u64);
            let refusal = match self.player(client).await {
                Ok((details, tracks)) => match self.best(client, &details, &tracks).await {
                    Ok(supplied) => return Ok(supplied),
                    Err(refusal) => {
                        spares.push(Spare { client, details, tracks });
                        refusal
                    }
                },
                Err(refusal) => refusal,
            };
            tracing::debug!(client = %client, video = %self.ask.video, ?refusal, "no captions from this client");
            let refused = self.refused(refusal);
            if refused.refusal.is_conclusive() {
                return Err(refused);
            }
            told.push(refused);
        }
        // No client gives the best track: the next best that needs no proof of origin will do.
        for spare in spares {
            if !spare.best_is_gated(&self.ask.wish) {
                continue;
            }
            let open = spare.tracks.choose_instead(&self.ask.wish, |track| !track.gated);
            let Some(choice) = open else { continue };
            let refusal = match self.supplied(spare.client, &spare.details, &spare.tracks, choice).await {
                Ok(supplied) => return Ok(supplied),
                Err(refusal) => refusal,
            };
            let refused = self.refused(refusal);
            if refused.refusal.is_conclusive() {
                return Err(refused);
            }
            told.push(refused);
        }
        let none = Refused { refusal: Refusal::TooOld, exit: None };
        Err(told.into_iter().reduce(more_telling).unwrap_or(none))
    }

    pub(super) fn refused(&self, refusal: Refusal) -> Refused {
        Refused { refusal, exit: self.visit.exit() }
    }

    /// Lets the exit rest where a refusal shows that YouTube distrusts it. Returns whether there is another
    /// one to go on through.
    pub(super) fn is_distrusted(&mut self, refused: &Refused) -> bool {
        if !refused.refusal.is_distrust() {
            return false;
        }
        if let Some(time) = refused.refusal.silence() {
            self.visit.silence(refused.exit, request::PLATFORM, time);
        }
        self.visit.distrusted(refused.exit)
    }

    /// The video's player data, as one client is told it.
    async fn player(&mut self, client: &ClientIdentity) -> Result<(Details, TrackList), Refusal> {
        self.check_cancelled()?;
        let request = request::player(client, &self.ask.video, self.visitor.as_deref());
        let answer = self.send(&request).await?;
        if let Some(refusal) = answer.location.as_ref().and_then(signals::detour) {
            return Err(refusal);
        }
        let told = player::interpret(&answer.body, &self.ask.video);
        if told.visitor.is_some() {
            self.visitor = told.visitor;
        }
        match (told.verdict, answer.status) {
            (Verdict::Tracks { details, tracks }, status) if status.is_success() => Ok((details, tracks)),
            (Verdict::Refused(Refusal::NotPlayerData), StatusCode::FORBIDDEN) => Err(Refusal::Forbidden),
            (Verdict::Refused(Refusal::NotPlayerData) | Verdict::Tracks { .. }, status)
                if !status.is_success() =>
            {
                Err(Refusal::BadRequest(status.as_u16()))
            }
            (Verdict::Refused(refusal), _) => Err(refusal),
            (Verdict::Tracks { .. }, _) => Err(Refusal::NotPlayerData),
        }
    }

    /// The track that answers the wish best, unless it wants a proof of origin.
    async fn best(
        &mut self,
        client: &ClientIdentity,
        details: &Details,
        tracks: &TrackList,
    ) -> Result<Supplied, Refusal> {
        match tracks.choose(&self.ask.wish) {
            None => Err(Refusal::NoLanguage(tracks.languages())),
            Some(choice) if choice.gated => Err(Refusal::Gated),
            Some(choice) => self.supplied(client, details, tracks, choice).await,
        }
    }

    /// The transcript of a choice and, where that is another one, the default transcript.
    async fn supplied(
        &mut self,
        client: &ClientIdentity,
        details: &Details,
        tracks: &TrackList,
        choice: Choice,
    ) -> Result<Supplied, Refusal> {
        let default = match self.ask.wish {
            Wish::Default => None,
            Wish::Language(_) => tracks.choose(&Wish::Default),
        };
        let default = default.filter(|default| *default != choice && !default.gated);
        let of = 1 + u64::from(default.is_some());
        self.watcher.stage("captions", 0, of);
        let (choice, segments) = self.words(client, tracks, choice).await?;
        let mut found = vec![self.transcript(details, choice.info, segments)];
        if let Some(default) = default {
            self.watcher.stage("captions", 1, of);
            // What was wished is there: that the other one fails is no reason to lose it, or to wait long.
            let end = self.deadline.min(Instant::now() + EXTRA_PATIENCE);
            match self.captions_at_once(client, &default, end).await {
                Ok(segments) => found.push(self.transcript(details, default.info, segments)),
                Err(refusal) => {
                    let refused = self.refused(refusal);
                    self.is_distrusted(&refused);
                }
            }
        }
        self.watcher.stage("captions", of, of);
        Ok(Supplied { tracks: found, known_tracks: tracks.infos() })
    }

    /// The words of a choice; where it has none, those of another track of its language.
    async fn words(
        &mut self,
        client: &ClientIdentity,
        tracks: &TrackList,
        choice: Choice,
    ) -> Result<(Choice, Vec<Segment>), Refusal> {
        let mut choice = choice;
        let mut wordless = Vec::new();
        loop {
            match self.captions(client, &choice).await {
                Err(Refusal::NoWords) if wordless.len() + 1 < WORDLESS_MAX => wordless.push(choice.address),
                result => return result.map(|segments| (choice, segments)),
            }
            let untried = |track: &Track| !wordless.contains(&track.address);
            let open = tracks.choose_instead(&self.ask.wish, |track| untried(track) && !track.gated);
            choice = match open {
                Some(open) => open,
                None if tracks.choose_instead(&self.ask.wish, untried).is_some() => {
                    return Err(Refusal::Gated);
                }
                None => return Err(Refusal::NoWords),
            };
        }
    }

    fn transcript(&self, details: &Details, track: TrackInfo, segments: Vec<Segment>) -> Transcript {
        Transcript {
            video: self.ask.video.clone(),
            title: details.title.clone(),
            author: details.author.clone(),
            duration_ms: details.duration_ms,
            track,
            source: NAME.to_owned(),
            segments,
        }
    }

    pub(super) async fn send(&mut self, request: &Request) -> Result<Answer, Refusal> {
        self.visit.send(request, self.deadline).await.map_err(Refusal::Fault)
    }

    pub(super) fn check_cancelled(&self) -> Result<(), Refusal> {
        if self.watcher.cancelled() { Err(Refusal::Cancelled) } else { Ok(()) }
    }
}

impl Spare<'_> {
    fn best_is_gated(&self, wish: &Wish) -> bool {
        self.tracks.choose(wish).is_some_and(|best| best.gated)
    }
}

/// The more telling of two refusals; the earlier one of equals, since the clients are in order of trust.
pub(super) fn more_telling(one: Refused, other: Refused) -> Refused {
    if other.refusal.weight() > one.refusal.weight() { other } else { one }
}
