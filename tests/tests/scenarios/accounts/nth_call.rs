//! Runs each story with a fault or a crash at the n-th storage call, for n = 1, 2, …
//!
//! Each time no account is charged twice or for nothing, no credit is lost, each account has one key, and the
//! service works again.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use transcript_core::{
    accounts::{CreateAccountKeyOutcome, V1Endpoint},
    directory::Plan as AccountPlan,
    ids::GrantId,
};

use super::*;
use crate::simulation::{
    accounts::{AccountOp, check_final},
    fault_plan::{InjectedFault, every_nth_call},
    store_gate::CrashPoint,
    world::CrashPlan,
};

/// State at the start of a story: an account with two credits, one without, and an archived video.
#[derive(Clone, Debug)]
struct AccountFixture {
    rich: SimAccount,
    poor: SimAccount,
}

/// One run of a story.
#[derive(Clone, Debug)]
struct AccountCase {
    life: ProcessLife,
    fixture: AccountFixture,
}

type AccountStory = for<'a> fn(&'a AccountCase) -> BoxFuture<'a, ()>;

impl AccountCase {
    async fn request_transcript(
        &self,
        account: &SimAccount,
        video: VideoId,
        idempotency_key: Option<&str>,
    ) -> Option<AccountAnswer> {
        let (life, accounts) = (&self.life, &self.life.accounts[0]);
        let idempotency_key = idempotency_key.map(str::to_owned);
        PaidRequest { life, accounts, account, video, lang: None, idempotency_key }.send(None).await
    }

    async fn perform(&self, op: AccountOp) {
        op.act(self.life.clone(), 0, self.fixture.rich.clone(), 1).await;
    }
}

/// Runs a story with a fault at the n-th storage call; returns whether the fault was injected.
fn run_story(story: AccountStory, n: u64, injected: InjectedFault) -> bool {
    let mut config = with_credits([2, 3, 4, 5]);
    config.engine.lease_poll = Duration::from_secs(2);
    let world = SimWorld::new(config);
    let fixture = world.run_process(1, None, set_up).expect("the setup must not crash");
    let (case_world, case_fixture) = (Arc::clone(&world), fixture.clone());
    let case = |life: ProcessLife| async move {
        story(&AccountCase { life, fixture: case_fixture }).await;
        case_world.gate.fault_injected()
    };
    let was_injected = match injected {
        InjectedFault::Fault(fault) => {
            world.gate.set_faults(FaultPlan::Nth { n, fault });
            world.run_process(2, None, case).expect("the run must not crash")
        }
        InjectedFault::Crash { after_effect } => {
            let crash = CrashPlan::AtCall(CrashPoint { call: n, after_effect });
            world.run_process(2, Some(crash), case).is_none()
        }
    };
    world.gate.set_faults(FaultPlan::NoFaults);
    world.run_process(1, None, |life| async move {
        end_all(&life).await;
        script_captions(&life, &[SupplierStep::give(&["en"])]);
        for account in [&fixture.rich, &fixture.poor] {
            check_final(&life, account, &other_video()).await;
        }
        end_all(&life).await;
    });
    let violations = world.oracle.violations();
    assert!(violations.is_empty(), "call {n}, {injected:?}:\n{}", violations.join("\n"));
    was_injected
}

async fn set_up(life: ProcessLife) -> AccountFixture {
    let rich = SimAccount::create(&life, "rich@example.org").await;
    let poor = SimAccount::create(&life, "poor@example.org").await;
    for left in [1, 0] {
        let answer = call(&life, &poor, other_video()).await;
        assert!(matches!(answer, AccountAnswer::New { left: Some(n), .. } if n == left));
    }
    AccountFixture { rich, poor }
}

/// Runs a story with later and later faults, until the fault comes after the last call.
fn check_story(story: AccountStory) {
    every_nth_call(1..=1_998, |n, injected| run_story(story, n, injected));
}

#[test]
fn new_transcript_survives_each_fault() {
    check_story(|case| {
        async {
            case.request_transcript(&case.fixture.rich, video(), None).await;
        }
        .boxed()
    });
}

#[test]
fn archived_transcript_survives_each_fault() {
    check_story(|case| {
        async {
            case.request_transcript(&case.fixture.rich, other_video(), None).await;
        }
        .boxed()
    });
}

#[test]
fn new_transcript_repeated_survives_each_fault() {
    check_story(|case| {
        async {
            case.request_transcript(&case.fixture.rich, video(), Some("k")).await;
            case.request_transcript(&case.fixture.rich, video(), Some("k")).await;
        }
        .boxed()
    });
}

#[test]
fn archived_transcript_repeated_survives_each_fault() {
    check_story(|case| {
        async {
            case.request_transcript(&case.fixture.rich, other_video(), Some("k")).await;
            case.request_transcript(&case.fixture.rich, other_video(), Some("k")).await;
        }
        .boxed()
    });
}

#[test]
fn failure_repeated_survives_each_fault() {
    check_story(|case| {
        async {
            let timeout = SupplierStep::fail(transcript_core::supplier::SupplyReason::Timeout);
            script_captions(&case.life, &[timeout, SupplierStep::give(&["en"])]);
            case.request_transcript(&case.fixture.rich, video(), Some("k")).await;
            case.request_transcript(&case.fixture.rich, video(), Some("k")).await;
        }
        .boxed()
    });
}

#[test]
fn more_calls_than_credits_survive_each_fault() {
    check_story(|case| {
        async {
            let (rich, poor) = (&case.fixture.rich, &case.fixture.poor);
            tokio::join!(
                case.request_transcript(rich, video(), None),
                case.request_transcript(rich, other_video(), None),
                case.request_transcript(rich, video(), Some("k")),
                case.request_transcript(poor, video(), None),
            );
        }
        .boxed()
    });
}

#[test]
fn disconnected_caller_survives_each_fault() {
    check_story(|case| {
        async {
            let (life, accounts) = (&case.life, &case.life.accounts[0]);
            let (account, idempotency_key) = (&case.fixture.rich, Some("k".to_owned()));
            let request =
                PaidRequest { life, accounts, account, video: video(), lang: None, idempotency_key };
            request.send(Some(Duration::from_millis(500))).await;
            advance(5).await;
            request.send(None).await;
        }
        .boxed()
    });
}

#[test]
fn rotation_and_recovery_survive_each_fault() {
    check_story(|case| {
        async {
            case.perform(AccountOp::Rotate).await;
            case.perform(AccountOp::Register).await;
            case.perform(AccountOp::Recover { confirmed: false }).await;
            case.perform(AccountOp::Recover { confirmed: true }).await;
            case.perform(AccountOp::Rotate).await;
        }
        .boxed()
    });
}

#[test]
fn plan_and_grant_survive_each_fault() {
    check_story(|case| {
        async {
            case.perform(AccountOp::Pay { plan: AccountPlan::Starter }).await;
            case.perform(AccountOp::Grant { amount: 2 }).await;
            case.perform(AccountOp::Pay { plan: AccountPlan::Scale }).await;
            case.perform(AccountOp::Me).await;
            case.request_transcript(&case.fixture.rich, other_video(), None).await;
        }
        .boxed()
    });
}

/// A checkout page, which costs no credits.
#[test]
fn free_call_repeated_survives_each_fault() {
    check_story(|case| {
        async {
            for _ in 0..2 {
                let rich = &case.fixture.rich;
                let entry = rich.admit(&case.life.accounts[0], V1Endpoint::BuyCredits, Some("k"), "1k").await;
                if let Ok(transcript_core::accounts::V1Admission::Admitted(guard)) = entry {
                    let _ = guard.deliver(reply("page")).await;
                }
            }
        }
        .boxed()
    });
}

/// Grants with the same id count once.
#[test]
fn grant_repeated_counts_once_under_each_fault() {
    check_story(|case| {
        async {
            let rich = &case.fixture.rich;
            for _ in 0..3 {
                let granted =
                    case.life.accounts[0].admin.grant(&rich.email, GrantId::new("gift"), 2, "").await;
                if let Ok(view) = granted {
                    assert_eq!(view.credits.remaining, 4);
                }
            }
        }
        .boxed()
    });
}

/// The same form creates one key beside the first, and shows it again; a revoked key is dead.
#[test]
fn further_key_is_created_once_under_each_fault() {
    check_story(|case| {
        async {
            let keys = &case.life.accounts[0].keys;
            let shown = case.life.accounts[0].admin.show(case.fixture.rich.id.as_str()).await;
            let Ok(account) = shown.map(|view| view.account) else { return };
            let mut created = Vec::new();
            for _ in 0..3 {
                if let Ok(CreateAccountKeyOutcome::Created(key)) =
                    keys.create(&account, "laptop", "form").await
                {
                    assert!(case.life.world.oracle.is_live(&key.digest()), "a created key works");
                    created.push(key);
                }
            }
            assert!(created.iter().all(|key| *key == created[0]), "the form created several keys");
            let Ok(live) = keys.list(&account.id).await else { return };
            assert!(live.len() <= 2, "{live:?}");
            for named in live.iter().filter(|live| live.name.is_some()) {
                if keys.revoke(&account.id, &named.key.id).await.is_ok() {
                    assert!(!case.life.world.oracle.is_live(&named.key.digest), "a revoked key is dead");
                }
            }
        }
        .boxed()
    });
}
