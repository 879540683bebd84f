//! Operations of simulated account owners, and checks of the responses.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::timeout;
use transcript_core::{
    accounts::{
        Accounts, CachedCharge, CreditBalance, RequestGuard, StoredHeader, StoredResponse, TranscriptParams,
        V1Admission, V1Endpoint, V1Error, V1Request, VerifyOutcome,
    },
    archive::{FindOutcome, TrackSelector},
    directory::{AccountRef, Plan, VerificationToken, api_key::ApiKey},
    ids::{AccountId, GrantId, WalletId},
    transcript::LanguageTag,
    video::VideoId,
};

use super::{
    oracle::{CallEnd, PaidCall},
    payments::{SimPayment, buy, check_fulfilled, pay},
    seeded_rng::SeededRng,
    world::ProcessLife,
};

/// A simulated account with its owner's view of it.
#[derive(Clone, Debug)]
pub(crate) struct SimAccount {
    pub(crate) email: String,
    pub(crate) id: AccountId,
    pub(crate) wallet: WalletId,
    /// The most recently issued key.
    key: Arc<Mutex<String>>,
    /// Orders and provider events of this account.
    paid: Arc<Mutex<SimPayment>>,
}

/// One operation on an account.
#[derive(Clone, Debug)]
pub(crate) enum AccountOp {
    Transcript {
        video: VideoId,
        lang: Option<&'static str>,
        idempotency_key: Option<String>,
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
    /// Creates an account through a verification token. Requires a fault-free plan.
    pub(crate) async fn create(life: &ProcessLife, email: &str) -> Self {
        let token = issue_token(life, email).await.unwrap();
        let verified = life.accounts[0].keys.verify(&token, false, None).await.unwrap();
        let VerifyOutcome::Issued(issued) = verified else { panic!("a new address needs no confirmation") };
        let account_ref = AccountRef::Email(email.to_owned());
        let account = life.world.directory.account(&account_ref).await.unwrap().unwrap();
        let key = Arc::new(Mutex::new(issued.key.reveal().to_owned()));
        let (id, wallet, paid) = (account.id, account.wallet, Arc::default());
        Self { email: email.to_owned(), id, wallet, key, paid }
    }

    /// Returns the credits that the v1 API reports. Requires a fault-free plan.
    pub(crate) async fn credits(&self, life: &ProcessLife) -> CreditBalance {
        let guard = self.admit_unkeyed(&life.accounts[0], V1Endpoint::Me).await.unwrap();
        life.accounts[0].credits.profile(guard).await.unwrap().credits
    }

    /// Calls `work` with the payments of this account.
    pub(crate) fn paid<T>(&self, work: impl FnOnce(&mut SimPayment) -> T) -> T {
        work(&mut self.paid.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn key(&self) -> String {
        self.key.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn store_key(&self, key: &ApiKey) {
        *self.key.lock().unwrap_or_else(PoisonError::into_inner) = key.reveal().to_owned();
    }

    /// Requests admission to an endpoint with the current key.
    pub(crate) async fn admit(
        &self,
        accounts: &Accounts,
        route: V1Endpoint,
        idempotency_key: Option<&str>,
        body: &str,
    ) -> Result<V1Admission, V1Error> {
        let call = V1Request {
            route,
            bearer: Some(self.key()),
            idempotency_key: idempotency_key.map(str::to_owned),
            body: body.as_bytes().to_vec(),
        };
        accounts.admission.admit(call).await
    }

    /// Requests admission to an endpoint without an idempotency key.
    pub(crate) async fn admit_unkeyed(
        &self,
        accounts: &Accounts,
        route: V1Endpoint,
    ) -> Result<RequestGuard, V1Error> {
        accounts.admission.admit_unkeyed(route, Some(&self.key())).await
    }
}

/// Stores a verification token for an address and returns its text.
pub(crate) async fn issue_token(life: &ProcessLife, email: &str) -> transcript_core::Result<String> {
    use transcript_core::Random as _;
    let bytes = life.world.random.bytes(32);
    let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let stored = VerificationToken {
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

/// A stored response of the kind that the server makes for a transcript.
pub(crate) fn reply(text: &str) -> StoredResponse {
    let header = StoredHeader { name: "content-type".to_owned(), value: "application/json".to_owned() };
    StoredResponse { status: 200, headers: vec![header], body: text.as_bytes().to_vec() }
}

/// Result of a transcript call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AccountAnswer {
    New { from_cache: bool, left: Option<u64> },
    Replayed,
    Refused(V1Error),
}

/// One transcript call with its expectations.
pub(crate) struct PaidRequest<'a> {
    pub(crate) life: &'a ProcessLife,
    pub(crate) accounts: &'a Accounts,
    pub(crate) account: &'a SimAccount,
    pub(crate) video: VideoId,
    pub(crate) lang: Option<&'static str>,
    pub(crate) idempotency_key: Option<String>,
}

impl PaidRequest<'_> {
    /// Sends the call and checks the response; `None` when the client disconnected.
    pub(crate) async fn send(&self, give_up: Option<Duration>) -> Option<AccountAnswer> {
        let oracle = &self.life.world.oracle;
        let memo = format!("transcript {}", self.video);
        // An abandoned request frees its key, which may then name a request for another transcript.
        let request = self.idempotency_key.as_ref().map(|key| format!("{key} {:?}", self.lang));
        let call = PaidCall::begin(oracle, &self.account.wallet, memo, request);
        match timeout(give_up.unwrap_or(call_timeout(self.life)), self.answer()).await {
            Ok(answer) => {
                self.life.world.gate.trace(|| format!("answer: {answer:?}"));
                call.end(match &answer {
                    AccountAnswer::New { .. } | AccountAnswer::Replayed => CallEnd::Delivered,
                    // The fetch goes on, and is charged when the transcript is archived.
                    AccountAnswer::Refused(refused) if is_in_progress(refused) => CallEnd::OpenEnded,
                    AccountAnswer::Refused(_) => CallEnd::Refused,
                });
                if let AccountAnswer::Refused(refused) = &answer {
                    self.check_error(refused);
                }
                Some(answer)
            }
            Err(_) => {
                if give_up.is_none() {
                    oracle.report(format_args!("a call for {} exceeded its timeout", self.video));
                }
                None
            }
        }
    }

    async fn answer(&self) -> AccountAnswer {
        let oracle = &self.life.world.oracle;
        let body = format!("video_id={}&lang={:?}", self.video.id(), self.lang);
        let idempotency_key = self.idempotency_key.as_deref();
        if idempotency_key.is_none()
            && let Some(answer) = self.answer_cached().await
        {
            return answer;
        }
        let guard =
            match self.account.admit(self.accounts, V1Endpoint::Transcript, idempotency_key, &body).await {
                Ok(V1Admission::Admitted(guard)) => *guard,
                Ok(V1Admission::Replayed(reply)) => {
                    oracle.reach("replayed");
                    if reply.body != self.video.id().as_bytes() {
                        oracle.report("a replayed response differs from the first one");
                    }
                    if reply.headers.iter().any(|header| header.name.starts_with(':')) {
                        oracle.report("a replayed response exposes internal header notes");
                    }
                    return AccountAnswer::Replayed;
                }
                Err(refused) => return AccountAnswer::Refused(refused),
            };
        let request = TranscriptParams {
            video_id: Some(self.video.id().to_owned()),
            url: None,
            lang: self.lang.map(str::to_owned),
            ..TranscriptParams::default()
        };
        let ready = match self.accounts.delivery.transcript(guard, request).await {
            Ok(ready) => ready,
            Err(refused) => return AccountAnswer::Refused(refused),
        };
        oracle.check_response(&self.video, &ready.stored);
        let (from_cache, left) = (ready.from_cache, ready.credits_remaining);
        match ready.deliver(reply(self.video.id())).await {
            Ok(_) => AccountAnswer::New { from_cache, left },
            Err(refused) => AccountAnswer::Refused(refused),
        }
    }

    /// Answers from the archive as the server does: only for the default track, if it is English.
    async fn answer_cached(&self) -> Option<AccountAnswer> {
        let oracle = &self.life.world.oracle;
        let found = self.accounts.transcripts().find(&self.video, &TrackSelector::Default).await;
        let Ok(FindOutcome::Transcript(stored)) = found else { return None };
        let is_english = stored.transcript.track.language == LanguageTag::english();
        if self.lang.is_some() || !is_english {
            return None;
        }
        let key = self.account.key();
        let charges = &self.accounts.cached_charges;
        let charged = match charges.known_caller(Some(&key)).await {
            Ok(caller) => charges.charge(caller, &self.video).await,
            Err(refused) => Err(refused),
        };
        Some(match charged.transpose()? {
            Ok(CachedCharge { paid: Ok(left), .. }) => {
                oracle.reach("charged from cache");
                oracle.check_response(&self.video, &stored);
                AccountAnswer::New { from_cache: true, left }
            }
            Ok(CachedCharge { paid: Err(refused), .. }) | Err(refused) => AccountAnswer::Refused(refused),
        })
    }

    fn check_error(&self, refused: &V1Error) {
        let oracle = &self.life.world.oracle;
        oracle.reach(format_args!("refused {}", refused.code()));
        if refused.message().is_empty() {
            oracle.report("an error without a message");
        }
        if matches!(refused, V1Error::Conflict(_)) && self.idempotency_key.is_none() {
            oracle.report(format_args!("a conflict without an idempotency key: {refused}"));
        }
    }
}

/// Whether the fetch of a call goes on after its error.
pub(crate) fn is_in_progress(refused: &V1Error) -> bool {
    refused.message().contains("still being transcribed")
}

/// Longest duration of a call: admission, transcript and delivery.
pub(crate) fn call_timeout(life: &ProcessLife) -> Duration {
    let engine = &life.world.config.engine;
    engine.wait_timeout + engine.store_timeout * 12 + Duration::from_secs(2)
}

impl AccountOp {
    /// A random operation.
    pub(crate) fn random(rng: &SeededRng, video: &VideoId, hour: i64) -> Self {
        match rng.below(30) {
            0..=17 => {
                // Responses are stored for a day, so a key of the same quarter of a day has not expired.
                let name = |n: u64| format!("{}-{n}-{}", video.id(), hour / 6);
                Self::Transcript {
                    video: video.clone(),
                    lang: *rng.pick(&[None, None, Some("en"), Some("fr")]),
                    idempotency_key: rng.chance(500).then(|| name(rng.below(3))),
                    give_up: rng.chance(250).then(|| Duration::from_millis(rng.below(6_000))),
                }
            }
            18 | 19 => Self::Me,
            20 | 21 => Self::Rotate,
            22 => Self::Register,
            23 | 24 => Self::Recover { confirmed: rng.chance(600) },
            25 | 26 => match rng.below(5) {
                0 | 1 => Self::Buy,
                amount => Self::Grant { amount },
            },
            27 | 28 => Self::Pay { plan: *rng.pick(&[Plan::Starter, Plan::Pro, Plan::Scale]) },
            _ => Self::Block { blocked: rng.chance(300) },
        }
    }

    /// Performs the operation and reports violations to the oracle.
    pub(crate) async fn act(self, life: ProcessLife, engine: usize, account: SimAccount, number: u64) {
        let accounts = life.accounts[engine % life.accounts.len()].clone();
        let limit = call_timeout(&life);
        match self {
            Self::Transcript { video, lang, idempotency_key, give_up } => {
                let (life, account, accounts) = (&life, &account, &accounts);
                PaidRequest { life, accounts, account, video, lang, idempotency_key }.send(give_up).await;
            }
            Self::Me => {
                let me = async {
                    let guard = account.admit_unkeyed(&accounts, V1Endpoint::Me).await?;
                    accounts.credits.profile(guard).await
                };
                if let Ok(Ok(profile)) = timeout(limit, me).await
                    && profile.credits.remaining > profile.credits.total
                {
                    life.world.oracle.report(format_args!("remaining credits exceed the total: {profile:?}"));
                }
            }
            Self::Rotate => rotate(&life, &accounts, &account).await,
            Self::Register => {
                let _ = timeout(limit, accounts.keys.register(&account.email, None)).await;
            }
            Self::Recover { confirmed } => recover(&life, &accounts, &account, confirmed).await,
            Self::Grant { amount } => {
                let id = format!("grant {number}");
                let grant = accounts.admin.grant(account.id.as_str(), GrantId::new(id.clone()), amount, "");
                if let Ok(Ok(_)) = timeout(limit, grant).await {
                    life.world.oracle.on_granted(&account.wallet, &id, amount);
                }
            }
            Self::Pay { plan } => pay(&life, engine, &account, plan, number).await,
            Self::Buy => buy(&life, engine, &account, number).await,
            Self::Block { blocked } => {
                let _ = timeout(limit, accounts.admin.set_blocked(account.id.as_str(), blocked)).await;
            }
        }
    }
}

async fn rotate(life: &ProcessLife, accounts: &Accounts, account: &SimAccount) {
    let old = account.key();
    let rotate = async {
        let guard = account.admit_unkeyed(accounts, V1Endpoint::RotateKey).await?;
        accounts.keys.rotate(guard).await
    };
    match timeout(call_timeout(life), rotate).await {
        Ok(Ok(new)) => {
            account.store_key(&new);
            life.world.oracle.reach("rotated");
            if life.world.oracle.is_live(&digest(&old)) {
                life.world.oracle.report("a rotated key is still live");
            }
        }
        Ok(Err(_)) => {}
        Err(_) => life.world.oracle.report("a rotation exceeded its timeout"),
    }
}

async fn recover(life: &ProcessLife, accounts: &Accounts, account: &SimAccount, confirmed: bool) {
    let Ok(Ok(token)) = timeout(call_timeout(life), issue_token(life, &account.email)).await else { return };
    let old = account.key();
    let was_live = life.world.oracle.is_live(&digest(&old));
    match timeout(call_timeout(life), accounts.keys.verify(&token, confirmed, None)).await {
        Ok(Ok(VerifyOutcome::Issued(issued))) => {
            account.store_key(&issued.key);
            life.world.oracle.reach("recovered");
            if !confirmed || issued.is_new_account || (was_live && life.world.oracle.is_live(&digest(&old))) {
                life.world.oracle.report("a verified known address got a wrong outcome or kept its old key");
            }
        }
        Ok(Ok(VerifyOutcome::NeedsConfirmation)) if !confirmed => {}
        Ok(Ok(VerifyOutcome::NeedsConfirmation)) => {
            life.world.oracle.report("a confirmed token requires confirmation");
        }
        Ok(Err(_)) => {}
        Err(_) => life.world.oracle.report("a verification exceeded its timeout"),
    }
}

/// Final check: the owner recovers the account and can spend exactly the reported credits.
pub(crate) async fn check_final(life: &ProcessLife, account: &SimAccount, video: &VideoId) {
    let (accounts, oracle) = (&life.accounts[0], &life.world.oracle);
    check_fulfilled(life, account).await;
    accounts.admin.set_blocked(account.id.as_str(), false).await.unwrap();
    recover(life, accounts, account, true).await;
    life.world.archive.withdraw(video, false, life.now()).await.unwrap();
    life.world.archive.delete(video).await.unwrap();
    let credits = account.credits(life).await;
    oracle.check_credits(&account.wallet, credits, accounts.options(), life.now());
    let request =
        PaidRequest { life, accounts, account, video: video.clone(), lang: None, idempotency_key: None };
    let calls = (0..credits.remaining + 2).map(|_| request.send(None));
    let answers = futures_util::future::join_all(calls).await;
    let delivered = answers.iter().filter(|answer| matches!(answer, Some(AccountAnswer::New { .. }))).count();
    let refused = answers.iter().filter(|answer| {
        matches!(answer, Some(AccountAnswer::Refused(V1Error::PaymentRequired { credits_remaining: 0, .. })))
    });
    if (delivered as u64, refused.count()) != (credits.remaining, 2) {
        oracle.report(format_args!("{} credits resulted in {answers:?}", credits.remaining));
    }
    let credits = account.credits(life).await;
    oracle.check_credits(&account.wallet, credits, accounts.options(), life.now());
}
