//! What callers and operators do in a simulation, and what their answers must be like.

use std::{net::IpAddr, sync::Arc, time::Duration};

use tokio::time::timeout;
use transcript_core::{
    archive::Wish,
    engine::{Fetch, Outcome},
    lookup::{
        Availability, CreateKey, CreateKeyOutcome, FailureReason, Lookup, LookupAnswer, LookupAsk, Origin,
        Reference, SourceTag,
    },
    video::{Platform, VideoId},
};

use super::{
    dice::Dice,
    oracle::{Visit, VisitEnd, wishes},
    world::{Life, SimKey, linked_video},
};

/// One thing that somebody does.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    LookUp {
        caller: Caller,
        target: Target,
        peek: bool,
        give_up: Option<Duration>,
    },
    /// The engine itself, without a payment.
    Fetch {
        video: VideoId,
        wish: Wish,
        give_up: Option<Duration>,
    },
    CreateKey {
        client: Option<IpAddr>,
    },
    KeyStatus {
        key: SimKey,
    },
    Withdraw {
        video: VideoId,
        withdrawn: bool,
    },
    Forget {
        video: VideoId,
    },
    /// The sweep of overdue holds.
    Sweep {
        limit: u32,
    },
}

/// Who looks something up.
#[derive(Clone, Debug)]
pub(crate) enum Caller {
    Nobody(Option<IpAddr>),
    Stranger(&'static str),
    Key(SimKey),
}

/// What is looked up: how it is named, and which video it is.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) reference: Reference,
    pub(crate) video: VideoId,
    /// Whether it is a short link, which may fail by itself.
    pub(crate) short: bool,
}

impl Target {
    pub(crate) fn of(video: VideoId) -> Self {
        let reference = match video.platform() {
            Platform::VideoSite => Reference::Id(video.id().to_owned()),
            _ => Reference::Url(video.address()),
        };
        Self { reference, video, short: false }
    }

    pub(crate) fn short(code: &str) -> Self {
        let reference = Reference::Url(format!("https://vm.tiktok.com/{code}/"));
        Self { reference, video: linked_video(), short: true }
    }
}

/// The videos of every simulation: two on the long-form site, one that short links mean, one on a
/// platform without a supplier.
pub(crate) fn videos() -> Vec<VideoId> {
    let of = |platform, id| VideoId::new(platform, id).unwrap();
    let first = of(Platform::VideoSite, "videoNumber");
    vec![first, of(Platform::VideoSite, "other-video"), linked_video(), of(Platform::Reels, "CReel-0")]
}

/// What is no key of the service: mistyped, of the other surface, unknown.
const STRANGERS: [&str; 3] =
    ["vbk_mistyped", "vba_0000000000000000000000000000003Xujou", "vbk_ABCDEFGHIJKLMNOPQRSTUVWXYZabcd3hWSuT"];

impl Op {
    /// What chance makes somebody do, with any video or always with one.
    pub(crate) fn drawn(dice: &Dice, keys: &[SimKey], one: Option<&VideoId>) -> Self {
        let video = one.unwrap_or(dice.pick(&videos())).clone();
        match dice.below(40) {
            0..=27 => {
                let caller = match dice.below(10) {
                    0 => Caller::Nobody(client(dice)),
                    1 => Caller::Stranger(dice.pick::<&str>(&STRANGERS)),
                    _ => Caller::Key(dice.pick(keys).clone()),
                };
                let short = dice.pick(&["ZMplain1", "ZMslow11", "ZMbad111", "ZMgone11"]);
                let target = if dice.chance(150) { Target::short(short) } else { Target::of(video) };
                Self::LookUp { caller, target, peek: dice.chance(60), give_up: give_up(dice) }
            }
            28..=31 => {
                let wish = dice.pick(&wishes()).clone();
                Self::Fetch { video, wish, give_up: give_up(dice) }
            }
            32 => Self::CreateKey { client: client(dice) },
            33 => Self::KeyStatus { key: dice.pick(keys).clone() },
            34 | 35 => Self::Withdraw { video, withdrawn: dice.chance(500) },
            36 => Self::Forget { video },
            _ => Self::Sweep { limit: 1 + dice.below(20) as u32 },
        }
    }

    /// Does it, and tells the oracle what was wrong with the answer.
    pub(crate) async fn act(self, life: Life, engine: usize, fair: bool) {
        let lookup = life.lookups[engine % life.lookups.len()].clone();
        match self {
            Self::LookUp { caller, target, peek, give_up } => {
                let visit = Asking { life: &life, lookup: &lookup, caller, target, peek, fair };
                visit.ask(give_up).await;
            }
            Self::Fetch { video, wish, give_up } => fetch(&life, &lookup, video, wish, give_up).await,
            Self::CreateKey { client } => create_key(&life, &lookup, client).await,
            Self::KeyStatus { key } => {
                match timeout(life.patience(), lookup.key_status(&key.text, None)).await {
                    Ok(Ok(Some(status))) if status.usage.used <= status.usage.allowance => {}
                    Ok(Err(_)) => {}
                    other => life.world.oracle.wrong(format_args!("the status of a live key is {other:?}")),
                }
            }
            // Whether the store obeys is the weather's business; what took effect, the oracle hears.
            Self::Withdraw { video, withdrawn } => {
                let call = life.world.archive.withdraw(&video, withdrawn, life.now());
                let _ = timeout(life.patience(), call).await;
            }
            Self::Forget { video } => {
                let _ = timeout(life.patience(), life.world.archive.forget(&video)).await;
            }
            Self::Sweep { limit } => {
                let _ = timeout(life.patience(), life.world.ledger.expire(life.now(), limit)).await;
            }
        }
    }
}

fn client(dice: &Dice) -> Option<IpAddr> {
    let address = dice.pick(&["", "192.0.2.1", "2001:db8::1", "2001:db8:0:1::1"]);
    address.parse().ok()
}

fn give_up(dice: &Dice) -> Option<Duration> {
    dice.chance(250).then(|| Duration::from_millis(dice.below(6_000)))
}

/// One look-up with what is expected of it.
pub(crate) struct Asking<'a> {
    pub(crate) life: &'a Life,
    pub(crate) lookup: &'a Lookup,
    pub(crate) caller: Caller,
    pub(crate) target: Target,
    pub(crate) peek: bool,
    /// Whether no store ever fails.
    pub(crate) fair: bool,
}

impl Asking<'_> {
    /// Asks and judges the answer; none when the caller gave up, or the reference led nowhere.
    pub(crate) async fn ask(&self, give_up: Option<Duration>) -> Option<LookupAnswer> {
        let oracle = &self.life.world.oracle;
        let (key, client) = match &self.caller {
            Caller::Nobody(client) => (None, *client),
            Caller::Stranger(text) => (Some((*text).to_owned()), None),
            Caller::Key(key) => (Some(key.text.clone()), None),
        };
        let src = Some(SourceTag::McpOther);
        let ask = LookupAsk {
            reference: self.target.reference.clone(),
            src,
            key,
            proof: None,
            client,
            default_only: false,
        };
        let video = &self.target.video;
        let visit = match &self.caller {
            Caller::Key(key) => Some(Visit::begin(oracle, &key.wallet, video)),
            Caller::Nobody(_) | Caller::Stranger(_) => None,
        };
        let call = async {
            match self.peek {
                true => self.lookup.peek(ask).await,
                false => self.lookup.look_up(ask).await,
            }
        };
        let answer = timeout(give_up.unwrap_or(self.life.patience()), call).await;
        match answer {
            Ok(Ok(answer)) => {
                self.life.world.gate.trace(|| format!("answer: {}", summary(&answer)));
                let end = self.judge(&answer);
                if let Some(visit) = visit {
                    visit.end(end);
                }
                Some(answer)
            }
            Ok(Err(bad)) => {
                if !self.target.short {
                    oracle.wrong(format_args!("a good reference was refused: {bad}"));
                }
                None
            }
            Err(_) => {
                if give_up.is_none() {
                    oracle.wrong(format_args!("nobody answered a look-up of {video} in time"));
                }
                None
            }
        }
    }

    fn is_key(&self) -> bool {
        matches!(self.caller, Caller::Key(_))
    }

    fn judge(&self, answer: &LookupAnswer) -> VisitEnd {
        let oracle = &self.life.world.oracle;
        let wrong =
            |what: &str| oracle.wrong(format_args!("{what}: {} to {:?}", summary(answer), self.caller));
        if !answer.watch_url.starts_with("https://verbatim.example/watch/") {
            wrong("a watch address elsewhere");
        }
        if self.fair && answer.key.is_some() != self.is_key() {
            wrong("a key object for nobody, or none for a key");
        }
        if answer.key.is_some_and(|usage| usage.used > usage.allowance) {
            wrong("more used than allowed");
        }
        match &answer.availability {
            Availability::Available { stored, from_cache } => {
                oracle.answered(&self.target.video, stored);
                oracle.reach(if *from_cache { "archived" } else { "new" });
                if !from_cache && (!self.is_key() || self.peek) {
                    wrong("something new for someone who may not have it");
                }
                if *from_cache { VisitEnd::Free } else { VisitEnd::New }
            }
            Availability::Unavailable { reason, message, retry_after, .. } => {
                oracle.reach(reason.as_str());
                if message.contains("left alone for now") {
                    oracle.reach("left alone for now");
                }
                let named = retry_after.is_some_and(|wait| wait <= Duration::from_secs(300));
                if message.contains("still being transcribed") && !named {
                    wrong("work that goes on, without a time to ask again");
                }
                if !self.may_be(*reason) {
                    wrong("a reason that cannot be");
                }
                if self.fair && message.contains("storage") {
                    wrong("a store that failed in fair weather");
                }
                let goes_on = ["still being transcribed", "took too long: please"];
                let Some(text) = goes_on.iter().find(|text| message.contains(*text)) else {
                    return VisitEnd::Free;
                };
                oracle.reach(text);
                VisitEnd::OpenEnded
            }
        }
    }

    /// Whether a look-up like this can have failed for this reason.
    fn may_be(&self, reason: FailureReason) -> bool {
        use FailureReason::*;
        match reason {
            // Only the watch page has visitors.
            Allowance => false,
            KeyAllowance | DailyCap | RateLimited => self.is_key() && !self.peek,
            ConfigError => self.is_key() && !self.peek,
            NeedsVerification => !self.is_key() || self.peek,
            FairUse => !self.peek,
            FetchError => !self.fair || self.target.short || (self.is_key() && !self.peek),
            NoCaptions => true,
        }
    }
}

/// An answer in one line.
pub(crate) fn summary(answer: &LookupAnswer) -> String {
    let (platform, id) = (answer.platform, &answer.video_id);
    match &answer.availability {
        Availability::Available { stored, from_cache } => {
            format!("{platform}/{id} {} cache={from_cache}", stored.transcript.segments[0].text)
        }
        Availability::Unavailable { reason, message, .. } => {
            format!("{platform}/{id} {} ({message})", reason.as_str())
        }
    }
}

async fn fetch(life: &Life, lookup: &Lookup, video: VideoId, wish: Wish, give_up: Option<Duration>) {
    let oracle = Arc::clone(&life.world.oracle);
    let call = lookup.transcripts().get(Fetch { video: video.clone(), wish, payment: None });
    let patience = life.world.plan.engine.wait + Duration::from_secs(1);
    match timeout(give_up.unwrap_or(patience), call).await {
        Ok(Outcome::Archived(stored) | Outcome::Fetched(stored)) => {
            oracle.answered(&video, &stored);
        }
        Ok(Outcome::Refused { .. }) => oracle.wrong("a fetch for nothing was refused for its payment"),
        Ok(_) => {}
        Err(_) if give_up.is_none() => oracle.wrong("the engine did not answer in time"),
        Err(_) => {}
    }
}

async fn create_key(life: &Life, lookup: &Lookup, client: Option<IpAddr>) {
    let oracle = &life.world.oracle;
    let origin = Origin::Network(client);
    // Two calls, of which the second is repeated.
    let patience = life.world.plan.engine.store * 6 + Duration::from_secs(2);
    match timeout(patience, lookup.create_key(CreateKey { label: None, email: None, proof: None, origin }))
        .await
    {
        Ok(Ok(CreateKeyOutcome::Created(created))) => {
            if created.status.usage.used != 0 {
                oracle.wrong("a new key has used something");
            }
            let status = timeout(life.patience(), lookup.key_status(created.key.reveal(), None)).await;
            if !matches!(status, Ok(Ok(Some(_)) | Err(_))) {
                oracle.wrong("a key that was shown is not live");
            }
        }
        Ok(Ok(CreateKeyOutcome::Limited { .. }) | Err(_)) => {}
        Ok(Ok(CreateKeyOutcome::Bad(bad))) => oracle.wrong(bad),
        Ok(Ok(CreateKeyOutcome::SubjectFull { .. })) => {
            oracle.wrong("a key of no subject met a subject's limit")
        }
        Err(_) => oracle.wrong("nobody answered a wish for a key in time"),
    }
}
