//! Requests that are repeated with an `Idempotency-Key`.

use transcript_core::accounts::{Entry, Header, Route};

use super::*;

/// What comes of a call with an idempotency key, at the door.
async fn enter(
    life: &Life,
    account: &SimAccount,
    route: Route,
    repeat: &str,
    body: &str,
) -> Result<Entry, Refused> {
    account.enter(&life.accounts[0], route, Some(repeat), body).await
}

fn replayed(entry: Result<Entry, Refused>) -> Reply {
    match entry {
        Ok(Entry::Replayed(reply)) => reply,
        other => panic!("no reply is repeated: {other:?}"),
    }
}

fn admitted(entry: Result<Entry, Refused>) -> Visit {
    match entry {
        Ok(Entry::Admitted(visit)) => visit,
        other => panic!("nobody is let in: {other:?}"),
    }
}

#[test]
fn a_repeat_gets_the_same_answer_and_costs_nothing() {
    play(plan([5, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let first = call_with(&life, &account, video(), Some("one")).await;
        assert_eq!(first, Answer::New { from_cache: false, left: Some(4) });
        for _ in 0..3 {
            assert_eq!(call_with(&life, &account, video(), Some("one")).await, Answer::Replayed);
        }
        assert_eq!(remaining(&life, &account).await, 4);
        let other = call_with(&life, &account, video(), Some("two")).await;
        assert_eq!(other, Answer::New { from_cache: true, left: Some(3) });
        pass(24 * 3_600 - 60).await;
        assert_eq!(call_with(&life, &account, video(), Some("one")).await, Answer::Replayed);
    });
}

#[test]
fn a_reply_is_repeated_as_it_was_with_a_mark_and_without_our_notes() {
    play(plan([5, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let header = |name: &str, value: &str| Header { name: name.to_owned(), value: value.to_owned() };
        let mut visit = admitted(enter(&life, &account, Route::Chat, "k", "body").await);
        let call = PaidCall::begin(&life.world.oracle, &account.wallet, "chat".to_owned(), None);
        assert_eq!(visit.hold(1, "chat").await, Ok(4));
        let headers = vec![header("x-credits-remaining", "4"), header("x-cache", "MISS")];
        let reply = Reply { status: 201, headers: headers.clone(), body: vec![0, 159, 146, 150] };
        assert_eq!(visit.deliver(reply.clone()).await.as_ref(), Ok(&reply));
        call.end(CallEnd::Delivered);
        let again = replayed(enter(&life, &account, Route::Chat, "k", "body").await);
        let marked = [headers, vec![header("idempotent-replayed", "true")]].concat();
        assert_eq!(again, Reply { headers: marked, ..reply });
    });
}

#[test]
fn what_is_worth_nothing_the_next_time_is_not_repeated() {
    play(plan([5, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        for text in ["one", "two"] {
            let visit = admitted(enter(&life, &account, Route::Subscribe, "k", "body").await);
            assert_eq!(visit.deliver_once(reply(text)).await, reply(text));
        }
        let visit = admitted(enter(&life, &account, Route::Subscribe, "k", "body").await);
        visit.deliver(reply("three")).await.unwrap();
        assert_eq!(replayed(enter(&life, &account, Route::Subscribe, "k", "body").await).body, b"three");
    });
}

#[test]
fn an_idempotency_key_is_bound_to_account_route_and_body() {
    play(plan([5, 0, 0, 0]), |life| async move {
        let one = SimAccount::made(&life, "one@example.org").await;
        let two = SimAccount::made(&life, "two@example.org").await;
        let visit = admitted(enter(&life, &one, Route::Subscribe, "k", "a").await);
        visit.deliver(reply("page")).await.unwrap();
        check_refused(enter(&life, &one, Route::Subscribe, "k", "b").await, 400, "used for another request");
        for (account, route) in [(&two, Route::Subscribe), (&one, Route::BuyCredits)] {
            let visit = admitted(enter(&life, account, route, "k", "a").await);
            visit.refuse(Refused::NotFound("none".to_owned())).await;
        }
        replayed(enter(&life, &one, Route::Subscribe, "k", "a").await);
        // It means nothing where a reply must not be kept.
        for _ in 0..2 {
            admitted(enter(&life, &one, Route::RotateKey, "k", "").await);
            admitted(enter(&life, &one, Route::Me, "k", "").await);
        }
    });
}

#[test]
fn a_malformed_idempotency_key_is_refused() {
    play(plan([5, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        for bad in ["", "two words", "ünique", "tab\t", &"k".repeat(256)] {
            check_refused(enter(&life, &account, Route::Chat, bad, "").await, 400, "Idempotency-Key: ");
        }
        admitted(enter(&life, &account, Route::Chat, &"k".repeat(255), "").await);
    });
}

#[test]
fn one_of_many_at_once_works_and_the_others_are_told() {
    play(plan([5, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let calls = (0..12).map(|_| call_with(&life, &account, video(), Some("k")));
        let answers = futures_util::future::join_all(calls).await;
        let new = answers.iter().filter(|answer| matches!(answer, Answer::New { .. })).count();
        let told =
            answers.iter().filter(|answer| matches!(answer, Answer::Refused(Refused::Conflict(_)))).count();
        assert_eq!((new, told), (1, 11));
        assert_eq!(remaining(&life, &account).await, 4);
        assert_eq!(call_with(&life, &account, video(), Some("k")).await, Answer::Replayed);
    });
}

#[test]
fn a_refusal_is_not_repeated() {
    play(plan([1, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        captions_do(
            &life,
            &[Act::fail(transcript_core::supplier::SupplyReason::Timeout), Act::give(&["en"])],
        );
        let failed = call_with(&life, &account, video(), Some("k")).await;
        assert!(matches!(failed, Answer::Refused(Refused::Internal(_))), "{failed:?}");
        let again = call_with(&life, &account, video(), Some("k")).await;
        assert_eq!(again, Answer::New { from_cache: false, left: Some(0) });
    });
}

#[test]
fn long_work_keeps_its_key_and_its_credits() {
    let mut patient = plan([1, 0, 0, 0]);
    patient.engine.wait = Duration::from_secs(280);
    play(patient, |life| async move {
        let account = new_account(&life).await;
        captions_do(&life, &[Act::give(&["en"]).after(Duration::from_secs(200))]);
        let (life, account) = (&life, &account);
        let late = async {
            pass(150).await;
            let other = call_with(life, account, video(), Some("k")).await;
            assert!(matches!(other, Answer::Refused(Refused::Conflict(_))), "{other:?}");
            assert_eq!(remaining(life, account).await, 0);
        };
        let (answer, ()) = tokio::join!(call_with(life, account, video(), Some("k")), late);
        assert_eq!(answer, Answer::New { from_cache: false, left: Some(0) });
    });
}

/// Whoever stored the reply dies before it is paid: the next one who gets it pays, once.
#[test]
fn a_reply_whose_giver_died_is_paid_by_its_repeat() {
    for late in [false, true] {
        // What the dead held is not there for their successors.
        let world = World::new(plan([40, 0, 0, 0]));
        let begin = |life| async move {
            let account = new_account(&life).await;
            call(&life, &account, video()).await;
            account
        };
        let account = world.live(1, None, begin).unwrap();
        // Dies in the middle of the settlement, which does not take effect.
        let died = (1..40).find(|call| {
            let crash = crate::simulation::gate::CrashPoint { call: *call, after_effect: false };
            let death = crate::simulation::world::Death::AtCall(crash);
            let account = account.clone();
            let repeat = format!("k{call}");
            let lived = world.live(1, Some(death), |life| async move {
                call_with(&life, &account, video(), Some(&repeat)).await
            });
            lived.is_none() && world.gate.last_call() == "ledger.settle"
        });
        let repeat = format!("k{}", died.expect("one call settles"));
        world.live(1, None, |life| async move {
            let before = life.world.oracle.sums(&account.wallet).spent;
            if late {
                pass(120).await;
                life.world.ledger.expire(life.now(), 100).await.unwrap();
            }
            for _ in 0..2 {
                assert_eq!(call_with(&life, &account, video(), Some(&repeat)).await, Answer::Replayed);
            }
            let paid = life.world.oracle.sums(&account.wallet).spent - before;
            assert_eq!(paid, u64::from(!late), "an expired hold is the operator's loss");
            end_all(&life).await;
        });
        assert!(world.oracle.wrongs().is_empty(), "{}", world.oracle.wrongs().join("\n"));
    }
}

/// What was taken down is not told again, and nobody pays for being told so.
#[test]
fn the_words_of_a_withdrawn_video_are_not_repeated() {
    play(plan([5, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let first = call_with(&life, &account, video(), Some("k")).await;
        assert_eq!(first, Answer::New { from_cache: false, left: Some(4) });
        assert_eq!(call_with(&life, &account, video(), Some("k")).await, Answer::Replayed);
        life.world.archive.withdraw(&video(), true, life.now()).await.unwrap();
        for repeat in ["k", "another"] {
            let gone = call_with(&life, &account, video(), Some(repeat)).await;
            let Answer::Refused(refused) = gone else { panic!("{repeat}: {gone:?}") };
            check_refused(Err::<(), _>(refused), 404, "withdrawn");
        }
        assert_eq!(remaining(&life, &account).await, 4);
        life.world.archive.withdraw(&video(), false, life.now()).await.unwrap();
        assert_eq!(call_with(&life, &account, video(), Some("k")).await, Answer::Replayed);
    });
}

/// Whoever works on it dies: after its lease the next one works, and pays once.
#[test]
fn an_attempt_whose_worker_died_is_made_again() {
    let world = World::new(plan([1, 0, 0, 0]));
    let account = world.live(1, None, |life| async move { new_account(&life).await }).unwrap();
    let death = crate::simulation::world::Death::After(Duration::from_millis(400));
    let dying = account.clone();
    let lived =
        world.live(1, Some(death), |life| async move { call_with(&life, &dying, video(), Some("k")).await });
    assert_eq!(lived, None);
    world.live(1, None, |life| async move {
        let early = call_with(&life, &account, video(), Some("k")).await;
        assert!(matches!(early, Answer::Refused(Refused::Conflict(_))), "{early:?}");
        pass(60).await;
        let answer = call_with(&life, &account, video(), Some("k")).await;
        assert_eq!(answer, Answer::New { from_cache: false, left: Some(0) });
        end_all(&life).await;
    });
    assert!(world.oracle.wrongs().is_empty(), "{}", world.oracle.wrongs().join("\n"));
}
