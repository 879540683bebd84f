//! Operations of simulated lookup callers and operators, and checks of the responses.

use std::{net::IpAddr, sync::Arc, time::Duration};

use tokio::time::timeout;
use transcript_core::{
    archive::TrackSelector,
    engine::{FetchOutcome, FetchRequest, NoTranscript},
    lookup::{
        AttributionTag, Availability, CreateKeyOutcome, FailureReason, KeyOrigin, Lookup, LookupRequest,
        LookupResponse, VideoReference,
    },
    video::{Platform, VideoId},
};

use super::{
    oracle::{LookupCall, LookupEnd, all_selectors},
    seeded_rng::SeededRng,
    world::{ProcessLife, SimKey, key_request, linked_video},
};

/// One operation.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    LookUp {
        caller: SimCaller,
        target: Target,
        peek: bool,
        give_up: Option<Duration>,
    },
    /// A call of the engine without a payment.
    Fetch {
        video: VideoId,
        selector: TrackSelector,
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
    Delete {
        video: VideoId,
    },
    /// Expiry of overdue holds.
    Sweep {
        limit: u32,
    },
}

/// The caller of a lookup.
#[derive(Clone, Debug)]
pub(crate) enum SimCaller {
    Anonymous(Option<IpAddr>),
    InvalidKey(&'static str),
    Key(SimKey),
}

/// The target of a lookup: its reference and the video behind it.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) reference: VideoReference,
    pub(crate) video: VideoId,
    /// Whether it is a short link, whose resolution may fail.
    pub(crate) short: bool,
}

impl Target {
    pub(crate) fn new(video: VideoId) -> Self {
        let reference = match video.platform() {
            Platform::YouTube => VideoReference::Id(video.id().to_owned()),
            _ => VideoReference::Url(video.address()),
        };
        Self { reference, video, short: false }
    }

    pub(crate) fn short(code: &str) -> Self {
        let reference = VideoReference::Url(format!("https://vm.tiktok.com/{code}/"));
        Self { reference, video: linked_video(), short: true }
    }
}

/// The videos of every simulation: two of YouTube, the target of the short links, and one of a platform
/// without a supplier.
pub(crate) fn videos() -> Vec<VideoId> {
    let id_of = |platform, id| VideoId::new(platform, id).unwrap();
    let first = id_of(Platform::YouTube, "videoNumber");
    vec![
        first,
        id_of(Platform::YouTube, "other-video"),
        linked_video(),
        id_of(Platform::Instagram, "CReel-0"),
    ]
}

/// Texts that are no valid key of the lookup API: mistyped, of the v1 API, unknown.
const INVALID_KEYS: [&str; 3] =
    ["vbk_mistyped", "vba_0000000000000000000000000000003Xujou", "vbk_ABCDEFGHIJKLMNOPQRSTUVWXYZabcd3hWSuT"];

impl Op {
    /// A random operation, on a random video or on `one`.
    pub(crate) fn random(rng: &SeededRng, keys: &[SimKey], one: Option<&VideoId>) -> Self {
        let video = one.unwrap_or(rng.pick(&videos())).clone();
        match rng.below(40) {
            0..=27 => {
                let caller = match rng.below(10) {
                    0 => SimCaller::Anonymous(client(rng)),
                    1 => SimCaller::InvalidKey(rng.pick::<&str>(&INVALID_KEYS)),
                    _ => SimCaller::Key(rng.pick(keys).clone()),
                };
                let short = rng.pick(&["ZMplain1", "ZMslow11", "ZMbad111", "ZMgone11"]);
                let target = if rng.chance(150) { Target::short(short) } else { Target::new(video) };
                Self::LookUp { caller, target, peek: rng.chance(60), give_up: give_up(rng) }
            }
            28..=31 => {
                let selector = rng.pick(&all_selectors()).clone();
                Self::Fetch { video, selector, give_up: give_up(rng) }
            }
            32 => Self::CreateKey { client: client(rng) },
            33 => Self::KeyStatus { key: rng.pick(keys).clone() },
            34 | 35 => Self::Withdraw { video, withdrawn: rng.chance(500) },
            36 => Self::Delete { video },
            _ => Self::Sweep { limit: 1 + rng.below(20) as u32 },
        }
    }

    /// Performs the operation and reports violations to the oracle.
    pub(crate) async fn act(self, life: ProcessLife, engine: usize, fair: bool) {
        let lookup = life.lookups[engine % life.lookups.len()].clone();
        match self {
            Self::LookUp { caller, target, peek, give_up } => {
                if peek {
                    read_body(&life, &lookup, &target).await;
                }
                let request = SimRequest { life: &life, lookup: &lookup, caller, target, peek, fair };
                request.send(give_up).await;
            }
            Self::Fetch { video, selector, give_up } => fetch(&life, &lookup, video, selector, give_up).await,
            Self::CreateKey { client } => create_key(&life, &lookup, client).await,
            Self::KeyStatus { key } => {
                match timeout(life.call_timeout(), lookup.keys().status(&key.text, None)).await {
                    Ok(Ok(Some(status))) if status.usage.used <= status.usage.allowance => {}
                    Ok(Err(_)) => {}
                    other => {
                        life.world.oracle.report(format_args!("unexpected status of a live key: {other:?}"))
                    }
                }
            }
            // The fault plan decides whether the store executes the call; the gate reports effects to the oracle.
            Self::Withdraw { video, withdrawn } => {
                let call = life.world.archive.withdraw(&video, withdrawn, life.now());
                let _ = timeout(life.call_timeout(), call).await;
            }
            Self::Delete { video } => {
                let _ = timeout(life.call_timeout(), life.world.archive.delete(&video)).await;
            }
            Self::Sweep { limit } => {
                let _ = timeout(life.call_timeout(), life.world.ledger.expire(life.now(), limit)).await;
            }
        }
    }
}

fn client(rng: &SeededRng) -> Option<IpAddr> {
    let address = rng.pick(&["", "192.0.2.1", "2001:db8::1", "2001:db8:0:1::1"]);
    address.parse().ok()
}

fn give_up(rng: &SeededRng) -> Option<Duration> {
    rng.chance(250).then(|| Duration::from_millis(rng.below(6_000)))
}

/// One lookup with its expectations.
pub(crate) struct SimRequest<'a> {
    pub(crate) life: &'a ProcessLife,
    pub(crate) lookup: &'a Lookup,
    pub(crate) caller: SimCaller,
    pub(crate) target: Target,
    pub(crate) peek: bool,
    /// Whether stores never fail.
    pub(crate) fair: bool,
}

impl SimRequest<'_> {
    /// Sends the lookup and checks the response.
    ///
    /// `None` when the caller disconnected, or the reference did not resolve.
    pub(crate) async fn send(&self, give_up: Option<Duration>) -> Option<LookupResponse> {
        let oracle = &self.life.world.oracle;
        let (key, client) = match &self.caller {
            SimCaller::Anonymous(client) => (None, *client),
            SimCaller::InvalidKey(text) => (Some((*text).to_owned()), None),
            SimCaller::Key(key) => (Some(key.text.clone()), None),
        };
        let src = Some(AttributionTag::McpOther);
        let request = LookupRequest { src, key, client, ..LookupRequest::new(self.target.reference.clone()) };
        let video = &self.target.video;
        let lookup_call = match &self.caller {
            SimCaller::Key(key) => Some(LookupCall::begin(oracle, &key.wallet, video)),
            SimCaller::Anonymous(_) | SimCaller::InvalidKey(_) => None,
        };
        let call = async {
            match self.peek {
                true => self.lookup.look_up_archived(request).await,
                false => self.lookup.look_up(request).await,
            }
        };
        let answer = timeout(give_up.unwrap_or(self.life.call_timeout()), call).await;
        match answer {
            Ok(Ok(answer)) => {
                self.life.world.gate.trace(|| format!("answer: {}", summary(&answer)));
                let end = self.check_response(&answer);
                if let Some(lookup_call) = lookup_call {
                    lookup_call.end(end);
                }
                Some(answer)
            }
            Ok(Err(bad)) => {
                if !self.target.short {
                    oracle.report(format_args!("a valid reference was rejected: {bad}"));
                }
                None
            }
            Err(_) => {
                if give_up.is_none() {
                    oracle.report(format_args!("a lookup of {video} exceeded its timeout"));
                }
                None
            }
        }
    }

    fn is_key(&self) -> bool {
        matches!(self.caller, SimCaller::Key(_))
    }

    fn check_response(&self, answer: &LookupResponse) -> LookupEnd {
        let oracle = &self.life.world.oracle;
        let report =
            |what: &str| oracle.report(format_args!("{what}: {} to {:?}", summary(answer), self.caller));
        if !answer.watch_url.starts_with("https://verbatim.example/watch/") {
            report("unexpected watch URL");
        }
        if self.fair && answer.key.is_some() != self.is_key() {
            report("key usage without a key, or a key without usage");
        }
        if answer.key.is_some_and(|usage| usage.used > usage.allowance) {
            report("usage above the allowance");
        }
        match &answer.availability {
            Availability::Available { stored, from_cache } => {
                oracle.check_response(&self.target.video, stored);
                oracle.reach(if *from_cache { "archived" } else { "new" });
                if !from_cache && (!self.is_key() || self.peek) {
                    report("a new transcript for a caller that must not get one");
                }
                if *from_cache { LookupEnd::Free } else { LookupEnd::New }
            }
            Availability::Unavailable(NoTranscript { reason, message, retry_after, .. }) => {
                oracle.reach(reason.as_str());
                if message.contains("is paused") {
                    oracle.reach("is paused");
                }
                let has_retry_time = retry_after.is_some_and(|wait| wait <= Duration::from_secs(300));
                if message.contains("still being transcribed") && !has_retry_time {
                    report("running work without a retry time");
                }
                if !self.is_possible(*reason) {
                    report("impossible failure reason");
                }
                if self.fair && message.contains("storage") {
                    report("a store failure without injected faults");
                }
                let running_texts = ["still being transcribed", "lookup took too long"];
                let Some(text) = running_texts.iter().find(|text| message.contains(*text)) else {
                    return LookupEnd::Free;
                };
                oracle.reach(text);
                LookupEnd::OpenEnded
            }
        }
    }

    /// Whether this lookup can fail for this reason.
    fn is_possible(&self, reason: FailureReason) -> bool {
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

/// A response in one line.
pub(crate) fn summary(answer: &LookupResponse) -> String {
    let (platform, id) = (answer.platform, &answer.video_id);
    match &answer.availability {
        Availability::Available { stored, from_cache } => {
            format!("{platform}/{id} {} cache={from_cache}", stored.transcript.segments[0].text)
        }
        Availability::Unavailable(NoTranscript { reason, message, .. }) => {
            format!("{platform}/{id} {} ({message})", reason.as_str())
        }
    }
}

/// Reads the archived response that is sent without decoding.
async fn read_body(life: &ProcessLife, lookup: &Lookup, target: &Target) {
    let oracle = &life.world.oracle;
    match timeout(life.call_timeout(), lookup.archived_response(&target.reference, None)).await {
        Ok(Some(archived)) => oracle.check_body(&target.video, &archived.body),
        Ok(None) => {}
        Err(_) => oracle.report("a read of a stored body exceeded its timeout"),
    }
}

async fn fetch(
    life: &ProcessLife,
    lookup: &Lookup,
    video: VideoId,
    selector: TrackSelector,
    give_up: Option<Duration>,
) {
    let oracle = Arc::clone(&life.world.oracle);
    let call = lookup.transcripts().get(FetchRequest { video: video.clone(), selector, payer: None });
    let call_timeout = life.world.config.engine.wait_timeout + Duration::from_secs(1);
    match timeout(give_up.unwrap_or(call_timeout), call).await {
        Ok(FetchOutcome::Archived(stored) | FetchOutcome::Fetched(stored)) => {
            oracle.check_response(&video, &stored);
        }
        Ok(FetchOutcome::Refused(_)) => oracle.report("a fetch without payment was refused for its payment"),
        Ok(_) => {}
        Err(_) if give_up.is_none() => oracle.report("an engine call exceeded its timeout"),
        Err(_) => {}
    }
}

async fn create_key(life: &ProcessLife, lookup: &Lookup, client: Option<IpAddr>) {
    let oracle = &life.world.oracle;
    // Two store calls, the second of which is retried.
    let call_timeout = life.world.config.engine.store_timeout * 6 + Duration::from_secs(2);
    let request = key_request(KeyOrigin::Network(client));
    match timeout(call_timeout, lookup.keys().create(request)).await {
        Ok(Ok(CreateKeyOutcome::Created(created))) => {
            if created.status.usage.used != 0 {
                oracle.report("a new key has usage");
            }
            let status = timeout(life.call_timeout(), lookup.keys().status(created.key.reveal(), None)).await;
            if !matches!(status, Ok(Ok(Some(_)) | Err(_))) {
                oracle.report("an issued key is not live");
            }
        }
        Ok(Ok(CreateKeyOutcome::Limited { .. }) | Err(_)) => {}
        Ok(Ok(CreateKeyOutcome::Invalid(bad))) => oracle.report(bad),
        Ok(Ok(CreateKeyOutcome::SubjectFull { .. })) => {
            oracle.report("a key without a subject hit the limit per subject")
        }
        Err(_) => oracle.report("a key creation exceeded its timeout"),
    }
}
