//! What people with accounts do in a simulation, and what their answers must be like.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::timeout;
use transcript_core::{
    accounts::{
        Accounts, AtHand, Call, Credits, Entry, Header, Refused, Reply, Route, TranscriptAsk, Verification,
        Visit,
    },
    archive::{Found, Wish},
    directory::{AccountRef, Plan, Token, key::Key},
    ids::{AccountId, GrantId, WalletId},
    transcript::LanguageTag,
    video::VideoId,
};

use super::{
    dice::Dice,
    oracle::{CallEnd, PaidCall},
    paying::{Paid, buy, check_paid, pay},
    world::Life,
};

/// An account of a simulation, as its owner knows it.
#[derive(Clone, Debug)]
pub(crate) struct SimAccount {
    pub(crate) email: String,
    pub(crate) id: AccountId,
    pub(crate) wallet: WalletId,
    /// The key that was shown last.
    key: Arc<Mutex<String>>,
    /// What was paid for.
    paid: Arc<Mutex<Paid>>,
}

/// One thing that somebody does with an account.
#[derive(Clone, Debug)]
pub(crate) enum AccountOp {
    Transcript {
        video: VideoId,
        lang: Option<&'static str>,
        repeat: Option<String>,
        give_up: Option<Duration>,
    },
    Me,
    Rotate,
    Register,
    Recover {
        confirmed: bool,
    },
    Grant {
        amount: u64,
    },
    Pay {
        plan: Plan,
    },
    Buy,
    Block {
        blocked: bool,
    },
}

impl SimAccount {
    /// Makes an account, as its owner would: with the token of a mail. The weather must be calm.
    pub(crate) async fn made(life: &Life, email: &str) -> Self {
        let token = issue_token(life, email).await.unwrap();
        let verified = life.accounts[0].verify(&token, false, None).await.unwrap();
        let Verification::Issued(issued) = verified else { panic!("a new address needs no confirmation") };
        let who = AccountRef::Email(email.to_owned());
        let account = life.world.directory.account(&who).await.unwrap().unwrap();
        let key = Arc::new(Mutex::new(issued.key.reveal().to_owned()));
        let (id, wallet, paid) = (account.id, account.wallet, Arc::default());
        Self { email: email.to_owned(), id, wallet, key, paid }
    }

    /// Its credits, as its owner is told them. The weather must be calm.
    pub(crate) async fn credits(&self, life: &Life) -> Credits {
        let visit = self.visit(&life.accounts[0], Route::Me).await.unwrap();
        life.accounts[0].me(visit).await.unwrap().credits
    }

    /// Looks at, or notes, what was paid for.
    pub(crate) fn paid<T>(&self, work: impl FnOnce(&mut Paid) -> T) -> T {
        work(&mut self.paid.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn key(&self) -> String {
        self.key.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn is_shown(&self, key: &Key) {
        *self.key.lock().unwrap_or_else(PoisonError::into_inner) = key.reveal().to_owned();
    }

    /// Comes in at an endpoint with the key that was shown last.
    pub(crate) async fn enter(
        &self,
        accounts: &Accounts,
        route: Route,
        repeat: Option<&str>,
        body: &str,
    ) -> Result<Entry, Refused> {
        let call = Call {
            route,
            bearer: Some(self.key()),
            idempotency_key: repeat.map(str::to_owned),
            body: body.as_bytes().to_vec(),
        };
        accounts.enter(call).await
    }

    /// Comes in where nothing is ever repeated.
    pub(crate) async fn visit(&self, accounts: &Accounts, route: Route) -> Result<Visit, Refused> {
        match self.enter(accounts, route, None, "").await? {
            Entry::Admitted(visit) => Ok(visit),
            Entry::Replayed(_) => panic!("a call without an idempotency key was repeated"),
        }
    }
}

/// Makes a token for an address, as whoever sends the mail does.
pub(crate) async fn issue_token(life: &Life, email: &str) -> transcript_core::Result<String> {
    use transcript_core::Random as _;
    let bytes = life.world.random.bytes(32);
    let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let stored = Token {
        digest: digest(&token),
        email: email.to_owned(),
        expires_at: life.now().plus(Duration::from_secs(24 * 3_600)),
        now: life.now(),
    };
    life.world.directory.put_token(stored).await?;
    Ok(token)
}

fn digest(text: &str) -> Vec<u8> {
    ring::digest::digest(&ring::digest::SHA256, text.as_bytes()).as_ref().to_vec()
}

/// A reply as the server would make one of a transcript.
pub(crate) fn reply(text: &str) -> Reply {
    let header = Header { name: "content-type".to_owned(), value: "application/json".to_owned() };
    Reply { status: 200, headers: vec![header], body: text.as_bytes().to_vec() }
}

/// How a call for a transcript was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    New { from_cache: bool, left: Option<u64> },
    Replayed,
    Refused(Refused),
}

/// One call for a transcript with what is expected of it.
pub(crate) struct PaidAsking<'a> {
    pub(crate) life: &'a Life,
    pub(crate) accounts: &'a Accounts,
    pub(crate) account: &'a SimAccount,
    pub(crate) video: VideoId,
    pub(crate) lang: Option<&'static str>,
    pub(crate) repeat: Option<String>,
}

impl PaidAsking<'_> {
    /// Asks and judges the answer; none when the caller gave up.
    pub(crate) async fn ask(&self, give_up: Option<Duration>) -> Option<Answer> {
        let oracle = &self.life.world.oracle;
        let memo = format!("transcript {}", self.video);
        let call = PaidCall::begin(oracle, &self.account.wallet, memo, self.repeat.clone());
        match timeout(give_up.unwrap_or(patience(self.life)), self.answer()).await {
            Ok(answer) => {
                self.life.world.gate.trace(|| format!("answer: {answer:?}"));
                call.end(match &answer {
                    Answer::New { .. } | Answer::Replayed => CallEnd::Delivered,
                    Answer::Refused(_) => CallEnd::Refused,
                });
                if let Answer::Refused(refused) = &answer {
                    self.judge(refused);
                }
                Some(answer)
            }
            Err(_) => {
                if give_up.is_none() {
                    oracle.wrong(format_args!("nobody answered a call for {} in time", self.video));
                }
                None
            }
        }
    }

    async fn answer(&self) -> Answer {
        let oracle = &self.life.world.oracle;
        let body = format!("video_id={}&lang={:?}", self.video.id(), self.lang);
        let repeat = self.repeat.as_deref();
        if repeat.is_none()
            && let Some(answer) = self.at_hand().await
        {
            return answer;
        }
        let visit = match self.account.enter(self.accounts, Route::Transcript, repeat, &body).await {
            Ok(Entry::Admitted(visit)) => visit,
            Ok(Entry::Replayed(reply)) => {
                oracle.reach("replayed");
                if reply.body != self.video.id().as_bytes() {
                    oracle.wrong("a repeated reply is not the one that was given");
                }
                if reply.headers.iter().any(|header| header.name.starts_with(':')) {
                    oracle.wrong("a repeated reply tells our own notes");
                }
                return Answer::Replayed;
            }
            Err(refused) => return Answer::Refused(refused),
        };
        let ask = TranscriptAsk {
            video_id: Some(self.video.id().to_owned()),
            url: None,
            lang: self.lang.map(str::to_owned),
        };
        let ready = match self.accounts.transcript(visit, ask).await {
            Ok(ready) => ready,
            Err(refused) => return Answer::Refused(refused),
        };
        oracle.answered(&self.video, &ready.stored);
        let (from_cache, left) = (ready.from_cache, ready.credits_remaining);
        match ready.deliver(reply(self.video.id())).await {
            Ok(_) => Answer::New { from_cache, left },
            Err(refused) => Answer::Refused(refused),
        }
    }

    /// As the server answers what it has ready: the video's default, where it is archived and English.
    async fn at_hand(&self) -> Option<Answer> {
        let oracle = &self.life.world.oracle;
        let found = self.accounts.parts().transcripts.find(&self.video, &Wish::Default).await;
        let Ok(Found::Transcript(stored)) = found else { return None };
        let is_english = stored.transcript.track.language == LanguageTag::english();
        if self.lang.is_some() || !is_english {
            return None;
        }
        let key = self.account.key();
        Some(match self.accounts.charge_at_hand(Some(&key), &self.video).await {
            Ok(AtHand { paid: Ok(left), .. }) => {
                oracle.reach("charged at hand");
                oracle.answered(&self.video, &stored);
                Answer::New { from_cache: true, left }
            }
            Ok(AtHand { paid: Err(refused), .. }) | Err(refused) => Answer::Refused(refused),
        })
    }

    fn judge(&self, refused: &Refused) {
        let oracle = &self.life.world.oracle;
        oracle.reach(format_args!("refused {}", refused.code()));
        if refused.message().is_empty() {
            oracle.wrong("a refusal without a sentence");
        }
        if matches!(refused, Refused::Conflict(_)) && self.repeat.is_none() {
            oracle.wrong(format_args!("a conflict without an idempotency key: {refused}"));
        }
    }
}

/// How long a call may take at most: at the door, for the transcript, and until it is delivered.
pub(crate) fn patience(life: &Life) -> Duration {
    let engine = &life.world.plan.engine;
    engine.wait + engine.store * 12 + Duration::from_secs(2)
}

impl AccountOp {
    /// What chance makes the owner of an account do.
    pub(crate) fn drawn(dice: &Dice, video: &VideoId, hour: i64) -> Self {
        match dice.below(30) {
            0..=17 => {
                // Kept for a day: a name of this quarter of it cannot have been forgotten.
                let name = |n: u64| format!("{}-{n}-{}", video.id(), hour / 6);
                Self::Transcript {
                    video: video.clone(),
                    lang: *dice.pick(&[None, None, Some("en"), Some("fr")]),
                    repeat: dice.chance(500).then(|| name(dice.below(3))),
                    give_up: dice.chance(250).then(|| Duration::from_millis(dice.below(6_000))),
                }
            }
            18 | 19 => Self::Me,
            20 | 21 => Self::Rotate,
            22 => Self::Register,
            23 | 24 => Self::Recover { confirmed: dice.chance(600) },
            25 | 26 => match dice.below(5) {
                0 | 1 => Self::Buy,
                amount => Self::Grant { amount },
            },
            27 | 28 => Self::Pay { plan: *dice.pick(&[Plan::Starter, Plan::Pro, Plan::Scale]) },
            _ => Self::Block { blocked: dice.chance(300) },
        }
    }

    /// Does it, and tells the oracle what was wrong with the answer.
    pub(crate) async fn act(self, life: Life, engine: usize, account: SimAccount, number: u64) {
        let accounts = life.accounts[engine % life.accounts.len()].clone();
        let most = patience(&life);
        match self {
            Self::Transcript { video, lang, repeat, give_up } => {
                let (life, account, accounts) = (&life, &account, &accounts);
                PaidAsking { life, accounts, account, video, lang, repeat }.ask(give_up).await;
            }
            Self::Me => {
                let me = async {
                    let visit = account.visit(&accounts, Route::Me).await?;
                    accounts.me(visit).await
                };
                if let Ok(Ok(profile)) = timeout(most, me).await
                    && profile.credits.remaining > profile.credits.total
                {
                    life.world.oracle.wrong(format_args!("more is left than there is: {profile:?}"));
                }
            }
            Self::Rotate => rotate(&life, &accounts, &account).await,
            Self::Register => {
                let _ = timeout(most, accounts.register(&account.email, None)).await;
            }
            Self::Recover { confirmed } => recover(&life, &accounts, &account, confirmed).await,
            Self::Grant { amount } => {
                let id = format!("grant {number}");
                let grant = accounts.grant(account.id.as_str(), GrantId::new(id.clone()), amount, "");
                if let Ok(Ok(_)) = timeout(most, grant).await {
                    life.world.oracle.granted(&account.wallet, &id, amount);
                }
            }
            Self::Pay { plan } => pay(&life, engine, &account, plan, number).await,
            Self::Buy => buy(&life, engine, &account, number).await,
            Self::Block { blocked } => {
                let _ = timeout(most, accounts.set_blocked(account.id.as_str(), blocked)).await;
            }
        }
    }
}

async fn rotate(life: &Life, accounts: &Accounts, account: &SimAccount) {
    let old = account.key();
    let rotate = async {
        let visit = account.visit(accounts, Route::RotateKey).await?;
        accounts.rotate(visit).await
    };
    match timeout(patience(life), rotate).await {
        Ok(Ok(new)) => {
            account.is_shown(&new);
            life.world.oracle.reach("rotated");
            if life.world.oracle.is_live(&digest(&old)) {
                life.world.oracle.wrong("a key that was rotated away is live");
            }
        }
        Ok(Err(_)) => {}
        Err(_) => life.world.oracle.wrong("nobody answered a rotation in time"),
    }
}

async fn recover(life: &Life, accounts: &Accounts, account: &SimAccount, confirmed: bool) {
    let Ok(Ok(token)) = timeout(patience(life), issue_token(life, &account.email)).await else { return };
    let old = account.key();
    let was_live = life.world.oracle.is_live(&digest(&old));
    match timeout(patience(life), accounts.verify(&token, confirmed, None)).await {
        Ok(Ok(Verification::Issued(issued))) => {
            account.is_shown(&issued.key);
            life.world.oracle.reach("recovered");
            if !confirmed || issued.first || (was_live && life.world.oracle.is_live(&digest(&old))) {
                life.world.oracle.wrong("a token of a known address took more than it may, or less");
            }
        }
        Ok(Ok(Verification::NeedsConfirmation)) if !confirmed => {}
        Ok(Ok(Verification::NeedsConfirmation)) => {
            life.world.oracle.wrong("a confirmed token needs confirmation");
        }
        Ok(Err(_)) => {}
        Err(_) => life.world.oracle.wrong("nobody answered a verification in time"),
    }
}

/// After all: the owner comes back with a new key, is told what there is, and can spend it to the last credit
/// and not beyond.
pub(crate) async fn check_after_all(life: &Life, account: &SimAccount, video: &VideoId) {
    let (accounts, oracle) = (&life.accounts[0], &life.world.oracle);
    check_paid(life, account).await;
    accounts.set_blocked(account.id.as_str(), false).await.unwrap();
    recover(life, accounts, account, true).await;
    life.world.archive.withdraw(video, false, life.now()).await.unwrap();
    life.world.archive.forget(video).await.unwrap();
    let credits = account.credits(life).await;
    oracle.check_credits(&account.wallet, credits, accounts.options(), life.now());
    let asking = PaidAsking { life, accounts, account, video: video.clone(), lang: None, repeat: None };
    let calls = (0..credits.remaining + 2).map(|_| asking.ask(None));
    let answers = futures_util::future::join_all(calls).await;
    let delivered = answers.iter().filter(|answer| matches!(answer, Some(Answer::New { .. }))).count();
    let refused = answers.iter().filter(|answer| {
        matches!(answer, Some(Answer::Refused(Refused::PaymentRequired { credits_remaining: 0, .. })))
    });
    if (delivered as u64, refused.count()) != (credits.remaining, 2) {
        oracle.wrong(format_args!("{} credits gave {answers:?}", credits.remaining));
    }
    let credits = account.credits(life).await;
    oracle.check_credits(&account.wallet, credits, accounts.options(), life.now());
}
