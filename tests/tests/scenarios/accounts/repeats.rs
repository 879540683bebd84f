//! Requests that are repeated with an `Idempotency-Key`.

use transcript_core::{
    accounts::{StoredHeader, V1Admission, V1Endpoint},
    archive::view::{SegmentCursor, SegmentPageRequest, TranscriptView},
};

use super::*;

/// Requests admission with an idempotency key.
async fn admit(
    life: &ProcessLife,
    account: &SimAccount,
    route: V1Endpoint,
    idempotency_key: &str,
    body: &str,
) -> Result<V1Admission, V1Error> {
    account.admit(&life.accounts[0], route, Some(idempotency_key), body).await
}

fn replayed(entry: Result<V1Admission, V1Error>) -> StoredResponse {
    match entry {
        Ok(V1Admission::Replayed(reply)) => reply,
        other => panic!("no response was replayed: {other:?}"),
    }
}

fn admitted(entry: Result<V1Admission, V1Error>) -> RequestGuard {
    match entry {
        Ok(V1Admission::Admitted(guard)) => *guard,
        other => panic!("not admitted: {other:?}"),
    }
}

/// A response that is too long to be stored.
fn long_reply() -> StoredResponse {
    StoredResponse { body: vec![b'x'; 16 * 1024 + 1], ..reply("") }
}

fn is_marked(response: &StoredResponse) -> bool {
    response.headers.iter().any(|header| header.name == "idempotent-replayed")
}

/// Requests the video's transcript and delivers a response that is too long to be stored.
async fn deliver_long(
    life: &ProcessLife,
    account: &SimAccount,
    idempotency_key: &str,
    params: TranscriptParams,
) -> Result<StoredResponse, V1Error> {
    let (oracle, memo) = (&life.world.oracle, format!("transcript {}", video()));
    let paid = PaidCall::begin(oracle, &account.wallet, memo, Some(idempotency_key.to_owned()));
    let guard = admitted(admit(life, account, V1Endpoint::Transcript, idempotency_key, "body").await);
    let delivered = match life.accounts[0].delivery.transcript(guard, params).await {
        Ok(ready) => ready.deliver(long_reply()).await,
        Err(error) => Err(error),
    };
    paid.end(if delivered.is_ok() { CallEnd::Delivered } else { CallEnd::Refused });
    delivered
}

/// Creates an account that gets the video's transcript, which is archived then.
async fn begin_with_archived_video(life: ProcessLife) -> SimAccount {
    let account = new_account(&life).await;
    call(&life, &account, video()).await;
    account
}

/// Crashes a server when it settles the hold of a request; returns the idempotency key of the request.
fn crash_at_settle<F: Future>(world: &Arc<SimWorld>, request: impl Fn(ProcessLife, String) -> F) -> String {
    // Find the call that settles: a crash at it has no effect on the ledger.
    let died = (1..40).find(|call| {
        let crash = crate::simulation::store_gate::CrashPoint { call: *call, after_effect: false };
        let crash = crate::simulation::world::CrashPlan::AtCall(crash);
        let lived = world.run_process(1, Some(crash), |life| request(life, format!("k{call}")));
        lived.is_none() && world.gate.last_call() == "ledger.settle"
    });
    format!("k{}", died.expect("one call must settle"))
}

#[test]
fn repeat_gets_same_response_and_is_free() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let first = call_with(&life, &account, video(), Some("one")).await;
        assert_eq!(first, AccountAnswer::New { from_cache: false, left: Some(4) });
        for _ in 0..3 {
            assert_eq!(call_with(&life, &account, video(), Some("one")).await, AccountAnswer::Replayed);
        }
        assert_eq!(remaining(&life, &account).await, 4);
        let other = call_with(&life, &account, video(), Some("two")).await;
        assert_eq!(other, AccountAnswer::New { from_cache: true, left: Some(3) });
        advance(24 * 3_600 - 60).await;
        assert_eq!(call_with(&life, &account, video(), Some("one")).await, AccountAnswer::Replayed);
    });
}

#[test]
fn replay_equals_response_with_mark_and_without_notes() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let header =
            |name: &str, value: &str| StoredHeader { name: name.to_owned(), value: value.to_owned() };
        let guard = admitted(admit(&life, &account, V1Endpoint::Transcript, "k", "body").await);
        let call = begin_paid(&life, &account, &video());
        let ready = life.accounts[0].delivery.transcript(guard, by_id(&video())).await.unwrap();
        assert_eq!(ready.credits_remaining, Some(4));
        let headers = vec![header("x-credits-remaining", "4"), header("x-cache", "MISS")];
        let reply = StoredResponse { status: 201, headers: headers.clone(), body: vec![0, 159, 146, 150] };
        assert_eq!(ready.deliver(reply.clone()).await.as_ref(), Ok(&reply));
        call.end(CallEnd::Delivered);
        let again = replayed(admit(&life, &account, V1Endpoint::Transcript, "k", "body").await);
        let marked = [headers, vec![header("idempotent-replayed", "true")]].concat();
        assert_eq!(again, StoredResponse { headers: marked, ..reply });
    });
}

#[test]
fn repeat_of_long_transcript_is_made_again_and_free() {
    run_scenario(with_credits([1, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let paid = begin_paid(&life, &account, &video());
        for is_repeat in [false, true, true] {
            let guard = admitted(admit(&life, &account, V1Endpoint::Transcript, "k", "body").await);
            let ready = life.accounts[0].delivery.transcript(guard, by_id(&video())).await.unwrap();
            assert_eq!((ready.from_cache, ready.credits_remaining), (is_repeat, Some(0)));
            let delivered = ready.deliver(long_reply()).await.unwrap();
            assert_eq!((delivered.body == long_reply().body, is_marked(&delivered)), (true, is_repeat));
        }
        paid.end(CallEnd::Delivered);
        let other = admit(&life, &account, V1Endpoint::Transcript, "k", "other").await;
        check_refused(other, 400, "used for another request");
        life.world.archive.withdraw(&video(), true, life.now()).await.unwrap();
        let gone = admit(&life, &account, V1Endpoint::Transcript, "k", "body").await;
        check_refused(gone, 404, "withdrawn");
        assert_eq!(remaining(&life, &account).await, 0);
    });
}

#[test]
fn unstored_response_is_not_replayed() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        for text in ["one", "two"] {
            let guard = admitted(admit(&life, &account, V1Endpoint::Subscribe, "k", "body").await);
            assert_eq!(guard.deliver_unstored(reply(text)).await, reply(text));
        }
        let guard = admitted(admit(&life, &account, V1Endpoint::Subscribe, "k", "body").await);
        guard.deliver(reply("three")).await.unwrap();
        assert_eq!(replayed(admit(&life, &account, V1Endpoint::Subscribe, "k", "body").await).body, b"three");
    });
}

#[test]
fn idempotency_key_is_bound_to_account_route_and_body() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let one = SimAccount::create(&life, "one@example.org").await;
        let two = SimAccount::create(&life, "two@example.org").await;
        let guard = admitted(admit(&life, &one, V1Endpoint::Subscribe, "k", "a").await);
        guard.deliver(reply("page")).await.unwrap();
        check_refused(
            admit(&life, &one, V1Endpoint::Subscribe, "k", "b").await,
            400,
            "used for another request",
        );
        for (account, route) in [(&two, V1Endpoint::Subscribe), (&one, V1Endpoint::BuyCredits)] {
            let guard = admitted(admit(&life, account, route, "k", "a").await);
            guard.reject(V1Error::not_found("none")).await;
        }
        replayed(admit(&life, &one, V1Endpoint::Subscribe, "k", "a").await);
        // A key is ignored by endpoints whose responses must not be stored.
        for _ in 0..2 {
            admitted(admit(&life, &one, V1Endpoint::RotateKey, "k", "").await);
            admitted(admit(&life, &one, V1Endpoint::Me, "k", "").await);
        }
    });
}

#[test]
fn malformed_idempotency_key_is_rejected() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        for bad in ["", "two words", "ünique", "tab\t", &"k".repeat(256)] {
            check_refused(admit(&life, &account, V1Endpoint::Chat, bad, "").await, 400, "Idempotency-Key: ");
        }
        admitted(admit(&life, &account, V1Endpoint::Chat, &"k".repeat(255), "").await);
    });
}

#[test]
fn concurrent_repeats_one_runs_and_others_conflict() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let calls = (0..12).map(|_| call_with(&life, &account, video(), Some("k")));
        let answers = futures_util::future::join_all(calls).await;
        let new = answers.iter().filter(|answer| matches!(answer, AccountAnswer::New { .. })).count();
        let conflicts = answers
            .iter()
            .filter(|answer| matches!(answer, AccountAnswer::Refused(V1Error::Conflict(_))))
            .count();
        assert_eq!((new, conflicts), (1, 11));
        assert_eq!(remaining(&life, &account).await, 4);
        assert_eq!(call_with(&life, &account, video(), Some("k")).await, AccountAnswer::Replayed);
    });
}

#[test]
fn error_response_is_not_replayed() {
    run_scenario(with_credits([1, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        script_captions(
            &life,
            &[
                SupplierStep::fail(transcript_core::supplier::SupplyReason::Timeout),
                SupplierStep::give(&["en"]),
            ],
        );
        let failed = call_with(&life, &account, video(), Some("k")).await;
        assert!(matches!(failed, AccountAnswer::Refused(V1Error::Unavailable(_))), "{failed:?}");
        let again = call_with(&life, &account, video(), Some("k")).await;
        assert_eq!(again, AccountAnswer::New { from_cache: false, left: Some(0) });
    });
}

#[test]
fn long_fetch_keeps_idempotency_lease_and_hold() {
    let mut long_wait = with_credits([1, 0, 0, 0]);
    long_wait.engine.wait_timeout = Duration::from_secs(280);
    run_scenario(long_wait, |life| async move {
        let account = new_account(&life).await;
        script_captions(&life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(200))]);
        let (life, account) = (&life, &account);
        let late = async {
            advance(150).await;
            let other = call_with(life, account, video(), Some("k")).await;
            assert!(matches!(other, AccountAnswer::Refused(V1Error::Conflict(_))), "{other:?}");
            assert_eq!(remaining(life, account).await, 0);
        };
        let (answer, ()) = tokio::join!(call_with(life, account, video(), Some("k")), late);
        assert_eq!(answer, AccountAnswer::New { from_cache: false, left: Some(0) });
    });
}

/// A client disconnects while its credit is held. The key stays in use until the credit is back, so a retry can pay.
#[test]
fn disconnect_during_hold_releases_credit_before_key() {
    run_scenario(with_credits([1, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let delay = Duration::from_secs(1);
        life.world.gate.set_faults(FaultPlan::SlowStore { stores: "ledger.", delay });
        let request = PaidRequest {
            life: &life,
            accounts: &life.accounts[0],
            account: &account,
            video: video(),
            lang: None,
            idempotency_key: Some("k".to_owned()),
        };
        // The hold takes effect after 1 s, and its answer comes after 2 s.
        assert_eq!(request.send(Some(Duration::from_millis(1_500))).await, None);
        // The release of the hold has begun; its effect comes after 1 s.
        tokio::time::sleep(Duration::from_millis(100)).await;
        life.world.gate.set_faults(FaultPlan::NoFaults);
        let mut conflicts = 0;
        let answer = loop {
            match request.send(None).await {
                Some(AccountAnswer::Refused(V1Error::Conflict(_))) => conflicts += 1,
                answer => break answer,
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        assert_eq!(answer, Some(AccountAnswer::New { from_cache: false, left: Some(0) }));
        assert!(conflicts > 10, "the release takes 2 s: {conflicts}");
    });
}

/// A server stores the response and crashes before the settle: the next replay pays, once, also if the delivery of
/// another video to the account is prepaid.
#[test]
fn response_unpaid_after_crash_is_paid_by_replay() {
    for (late, has_prepaid) in [(false, false), (true, false), (false, true), (true, true)] {
        // Amounts held by crashed servers are not available to their successors.
        let world = SimWorld::new(with_credits([40, 0, 0, 0]));
        let begin = |life| async move {
            let account = begin_with_archived_video(ProcessLife::clone(&life)).await;
            if has_prepaid {
                let (accounts, video) = (&life.accounts[0], other_video());
                let account = &account;
                let other =
                    PaidRequest { life: &life, accounts, account, video, lang: None, idempotency_key: None };
                abandoned::abandon(&other).await;
            }
            account
        };
        let account = world.run_process(1, None, begin).unwrap();
        let idempotency_key = crash_at_settle(&world, |life, key| {
            let account = account.clone();
            async move { call_with(&life, &account, video(), Some(&key)).await }
        });
        world.run_process(1, None, |life| async move {
            let before = life.world.oracle.sums(&account.wallet).spent;
            if late {
                advance(120).await;
                life.world.ledger.expire(life.now(), 100).await.unwrap();
            }
            for _ in 0..2 {
                assert_eq!(
                    call_with(&life, &account, video(), Some(&idempotency_key)).await,
                    AccountAnswer::Replayed
                );
            }
            let paid = life.world.oracle.sums(&account.wallet).spent - before;
            assert_eq!(paid, u64::from(!late), "an expired hold is the operator's loss");
            end_all(&life).await;
        });
        assert!(world.oracle.violations().is_empty(), "{}", world.oracle.violations().join("\n"));
    }
}

/// A server stores that a long transcript was delivered and crashes before the settle: a repeat pays when it is
/// delivered, once, and one that fails is free.
#[test]
fn long_transcript_unpaid_after_crash_is_paid_by_delivered_repeat() {
    let world = SimWorld::new(with_credits([40, 0, 0, 0]));
    let account = world.run_process(1, None, begin_with_archived_video).unwrap();
    let idempotency_key = crash_at_settle(&world, |life, key| {
        let account = account.clone();
        async move { deliver_long(&life, &account, &key, by_id(&video())).await }
    });
    world.run_process(1, None, |life| async move {
        let spent = || life.world.oracle.sums(&account.wallet).spent;
        let before = spent();
        let page = SegmentPageRequest { cursor: SegmentCursor::parse("00000000-0"), chars_max: 1_000 };
        let view = TranscriptView { page: Some(page), ..TranscriptView::default() };
        let replaced = TranscriptParams { view, ..by_id(&video()) };
        check_refused(deliver_long(&life, &account, &idempotency_key, replaced).await, 400, "cursor: ");
        assert_eq!(spent(), before, "a repeat that failed was charged");
        for _ in 0..2 {
            let again = deliver_long(&life, &account, &idempotency_key, by_id(&video())).await.unwrap();
            assert_eq!((is_marked(&again), spent() - before), (true, 1));
        }
        end_all(&life).await;
    });
    assert!(world.oracle.violations().is_empty(), "{}", world.oracle.violations().join("\n"));
}

/// A withdrawn transcript is not replayed, and the rejected replay is free.
#[test]
fn withdrawn_transcript_is_not_replayed() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let first = call_with(&life, &account, video(), Some("k")).await;
        assert_eq!(first, AccountAnswer::New { from_cache: false, left: Some(4) });
        assert_eq!(call_with(&life, &account, video(), Some("k")).await, AccountAnswer::Replayed);
        life.world.archive.withdraw(&video(), true, life.now()).await.unwrap();
        for idempotency_key in ["k", "another"] {
            let gone = call_with(&life, &account, video(), Some(idempotency_key)).await;
            let AccountAnswer::Refused(refused) = gone else { panic!("{idempotency_key}: {gone:?}") };
            check_refused(Err::<(), _>(refused), 404, "withdrawn");
        }
        assert_eq!(remaining(&life, &account).await, 4);
        life.world.archive.withdraw(&video(), false, life.now()).await.unwrap();
        assert_eq!(call_with(&life, &account, video(), Some("k")).await, AccountAnswer::Replayed);
    });
}

/// The text of a deleted transcript is not replayed, and the rejected replay is free.
#[test]
fn deleted_transcript_is_not_replayed() {
    // The second one may be no default track.
    for lang in [None, Some("fr")] {
        run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
            let account = new_account(&life).await;
            script_captions(&life, &[SupplierStep::give_one_of(&[lang.unwrap_or("en"), "de"])]);
            let (accounts, idempotency_key) = (&life.accounts[0], Some("k".to_owned()));
            let (life, account, video) = (&life, &account, video());
            let request = PaidRequest { life, accounts, account, video, lang, idempotency_key };
            let first = request.send(None).await;
            assert_eq!(first, Some(AccountAnswer::New { from_cache: false, left: Some(4) }));
            assert_eq!(request.send(None).await, Some(AccountAnswer::Replayed));
            life.world.archive.delete(&request.video).await.unwrap();
            let Some(AccountAnswer::Refused(refused)) = request.send(None).await else {
                panic!("a deleted transcript was replayed")
            };
            check_refused(Err::<(), _>(refused), 404, "deleted");
            assert_eq!(remaining(life, account).await, 4);
        });
    }
}

/// The worker of a request crashes: after its lease the next request works, and pays once.
#[test]
fn request_after_worker_crash_runs_again() {
    let world = SimWorld::new(with_credits([1, 0, 0, 0]));
    let account = world.run_process(1, None, |life| async move { new_account(&life).await }).unwrap();
    let crash = crate::simulation::world::CrashPlan::After(Duration::from_millis(400));
    let dying = account.clone();
    let lived = world.run_process(1, Some(crash), |life| async move {
        call_with(&life, &dying, video(), Some("k")).await
    });
    assert_eq!(lived, None);
    world.run_process(1, None, |life| async move {
        let early = call_with(&life, &account, video(), Some("k")).await;
        assert!(matches!(early, AccountAnswer::Refused(V1Error::Conflict(_))), "{early:?}");
        advance(60).await;
        let answer = call_with(&life, &account, video(), Some("k")).await;
        assert_eq!(answer, AccountAnswer::New { from_cache: false, left: Some(0) });
        end_all(&life).await;
    });
    assert!(world.oracle.violations().is_empty(), "{}", world.oracle.violations().join("\n"));
}
