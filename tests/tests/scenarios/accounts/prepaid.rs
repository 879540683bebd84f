//! Which deliveries a prepaid delivery pays for, and for how long.

use futures_util::future::join_all;
use transcript_core::{PageRequest, ledger::EntryKind, time::LEASE_MAX};

use super::{
    abandoned::{abandon, request},
    *,
};

#[test]
fn used_prepaid_delivery_pays_for_no_other_one() {
    run_scenario(with_credits([2, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let request = request(&life, &account, None);
        abandon(&request).await;
        let prepaid = AccountAnswer::New { from_cache: true, left: Some(1) };
        assert_eq!(request.send(None).await, Some(prepaid));
        life.world.gate.set_faults(FaultPlan::StoreDown { stores: "ledger.settle" });
        let recovery = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            life.world.gate.set_faults(FaultPlan::NoFaults);
        };
        let (charged, ()) = tokio::join!(request.send(None), recovery);
        assert_eq!(charged, Some(AccountAnswer::New { from_cache: true, left: Some(0) }));
    });
}

/// Another request joins the fetch of a request that took a hold back, and uses its prepaid delivery first.
#[test]
fn hold_that_was_taken_back_pays_for_one_delivery() {
    run_scenario(with_credits([3, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        script_captions(&life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(9))]);
        assert_eq!(request(&life, &account, None).send(Some(Duration::from_secs(2))).await, None);
        advance(1).await;
        let (keyed, other) = (request(&life, &account, Some("k")), request(&life, &account, None));
        let (keyed, other) = tokio::join!(keyed.send(None), other.send(None));
        for answer in [keyed, other] {
            assert!(matches!(answer, Some(AccountAnswer::New { .. })), "{answer:?}");
        }
        advance(10).await;
        assert_eq!((fetch_count(&life, &video()), remaining(&life, &account).await), (1, 1));
    });
}

#[test]
fn request_does_not_use_prepaid_delivery_that_its_own_hold_pays() {
    // The ledger fails when the delivery is removed, and recovers at various times after that.
    for recovery_ms in (3_000..4_000).step_by(25) {
        run_scenario(with_credits([3, 0, 0, 0]), |life| async move {
            let account = new_account(&life).await;
            let request = request(&life, &account, None);
            abandon(&request).await;
            assert!(request.send(None).await.is_some(), "the account had a prepaid delivery");
            life.world.archive.delete(&video()).await.unwrap();
            script_captions(&life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(5))]);
            assert_eq!(request.send(Some(Duration::from_secs(2))).await, None);
            advance(1).await;
            let outage = async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                life.world.gate.set_faults(FaultPlan::StoreDown { stores: "ledger.hold" });
                tokio::time::sleep(Duration::from_millis(1_000 + recovery_ms)).await;
                life.world.gate.set_faults(FaultPlan::NoFaults);
            };
            let (answer, ()) = tokio::join!(request.send(None), outage);
            assert_eq!(answer, Some(AccountAnswer::New { from_cache: false, left: Some(1) }));
            advance(60).await;
            let entries = life.world.ledger.entries(&account.wallet, PageRequest::first()).await.unwrap();
            assert!(entries.items.iter().all(|entry| entry.kind != EntryKind::Returned), "{entries:?}");
        });
    }
}

#[test]
fn prepaid_delivery_needs_no_credits() {
    for idempotency_key in [None, Some("k")] {
        run_scenario(with_credits([1, 0, 0, 0]), |life| async move {
            let account = new_account(&life).await;
            let request = request(&life, &account, idempotency_key);
            abandon(&request).await;
            let delivered = AccountAnswer::New { from_cache: true, left: Some(0) };
            assert_eq!(request.send(None).await, Some(delivered));
            let again = call(&life, &account, video()).await;
            assert!(matches!(again, AccountAnswer::Refused(V1Error::PaymentRequired { .. })), "{again:?}");
        });
    }
}

#[test]
fn prepaid_delivery_is_used_once_by_concurrent_calls() {
    run_scenario(with_credits([40, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        abandon(&request(&life, &account, None)).await;
        let calls = (0..16).map(|n| {
            let key = (n % 2 == 0).then(|| format!("k{n}"));
            let (life, account) = (&life, &account);
            async move { call_with(life, account, video(), key.as_deref()).await }
        });
        for answer in join_all(calls).await {
            assert!(matches!(answer, AccountAnswer::New { from_cache: true, .. }), "{answer:?}");
        }
        assert_eq!(
            remaining(&life, &account).await,
            40 - 16,
            "17 deliveries are paid, of which 16 were made"
        );
    });
}

#[test]
fn prepaid_delivery_ends_after_a_day() {
    run_scenario(with_credits([2, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        script_captions(&life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(5))]);
        assert_eq!(request(&life, &account, None).send(Some(Duration::from_secs(2))).await, None);
        advance(25 * 3_600).await;
        let answer = call(&life, &account, video()).await;
        assert_eq!(answer, AccountAnswer::New { from_cache: true, left: Some(0) });
    });
}

#[test]
fn prepaid_delivery_outlasts_sweeps_of_holds() {
    run_scenario(with_credits([1, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        script_captions(&life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(5))]);
        assert_eq!(request(&life, &account, None).send(Some(Duration::from_secs(2))).await, None);
        for _ in 0..80 {
            advance(900).await;
            life.world.ledger.shorten_holds(life.now().plus(LEASE_MAX)).await.unwrap();
            life.world.ledger.expire(life.now(), 100).await.unwrap();
        }
        let answer = call(&life, &account, video()).await;
        assert_eq!(answer, AccountAnswer::New { from_cache: true, left: Some(0) });
    });
}
