//! The rules against the model that moves one credit at a time.

use proptest::prelude::*;
use serde::{Serialize, de::DeserializeOwned};

use super::*;
use crate::{
    error::ErrorKind,
    ids::{GrantId, HoldId},
    ledger::{Entry, GrantOutcome, GrantRequest},
    testing::ledger::{LedgerModel, LedgerWalk, WalkStep, contents, outcome_text},
};

fn outcome(step: &impl LedgerStep<Outcome: std::fmt::Debug>, rows: &mut LedgerRows) -> String {
    outcome_text(step.check().and_then(|()| step.apply(rows)))
}

/// Applies a step to rows that contain the whole ledger.
fn apply(step: &WalkStep, rows: &mut LedgerRows) -> String {
    match step.clone() {
        WalkStep::Hold(request) => outcome(&HoldStep { request, spend: false }, rows),
        WalkStep::Spend(request) => outcome(&HoldStep { request, spend: true }, rows),
        WalkStep::Settle(request) => outcome(&request, rows),
        WalkStep::Extend(id, expires_at) => outcome(&ExtendRequest { id, expires_at }, rows),
        WalkStep::Grant(request) => outcome(&request, rows),
        WalkStep::Revoke(request) => outcome(&request, rows),
        WalkStep::Expire(now, limit) => outcome(&ExpireRequest { now, limit }, rows),
    }
}

/// Balances and entries of the rows, as [`contents`] returns those of a store.
fn rows_contents(rows: &LedgerRows) -> Vec<(Balance, Vec<Entry>)> {
    let mut wallets: Vec<&str> = rows.pools.iter().map(|row| row.wallet.as_str()).collect();
    wallets.sort_unstable();
    wallets.dedup();
    let of_wallet = |wallet: &str| {
        let mut pools: Vec<PoolBalance> =
            rows.pools.iter().filter(|row| row.wallet == wallet).map(PoolRow::balance).collect();
        pools.sort_by(|a, b| a.pool.bucket().cmp(&b.pool.bucket()));
        let entries = rows.entries.iter().filter(|row| row.wallet == wallet).map(|row| row.entry(0));
        (Balance { wallet: WalletId::new(wallet), pools }, entries.collect())
    };
    wallets.into_iter().map(of_wallet).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn rules_match_model_on_any_walk(seed in any::<u64>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (model, mut rows, mut walk) = (LedgerModel::default(), LedgerRows::default(), LedgerWalk::new(seed));
        for _ in 0..150 {
            let step = walk.next_step();
            let expected = runtime.block_on(step.run(&model));
            prop_assert_eq!(apply(&step, &mut rows), expected, "{:?}", step);
        }
        prop_assert_eq!(rows_contents(&rows), runtime.block_on(contents(&model)));
    }
}

#[test]
fn serialized_rows_continue_their_ledger() {
    fn copy<T: Serialize + DeserializeOwned>(row: &T) -> T {
        serde_json::from_slice(&serde_json::to_vec(row).unwrap()).unwrap()
    }
    let (now, wallet, mut rows) = (Timestamp::from_millis(1), WalletId::new("w"), LedgerRows::default());
    let grant =
        GrantRequest { id: GrantId::new("g"), wallet: wallet.clone(), amount: 5, now, memo: String::new() };
    let terms = Terms { pools: vec![Pool::Purchased], resets_at: None };
    let hold = HoldRequest {
        id: HoldId::new("h"),
        legs: vec![Leg { wallet, terms, amount: 2 }],
        now,
        expires_at: Timestamp::from_millis(60),
        memo: String::new(),
    };
    assert!(matches!(grant.apply(&mut rows).unwrap(), GrantOutcome::Granted { .. }));
    assert!(matches!(rows.hold(&hold).unwrap(), HoldOutcome::Held { .. }));
    let changes = rows.changes().unwrap();
    let entries: Vec<EntryRow> = changes.entries.iter().map(copy).collect();
    assert_eq!(entries.iter().map(|row| row.amount).collect::<Vec<_>>(), [5, 2]);
    let mut restored = LedgerRows::new(
        changes.pools.into_iter().map(copy).collect(),
        changes.holds.into_iter().map(copy).collect(),
        changes.transfers.into_iter().map(copy).collect(),
    );
    assert!(restored.changes().is_none(), "a loaded row is unchanged");
    assert_eq!(grant.apply(&mut restored).unwrap(), GrantOutcome::Exists);
    let settlement = SettleRequest { id: HoldId::new("h"), spent: vec![1], now };
    assert!(matches!(restored.settle(&settlement).unwrap(), SettleOutcome::Settled { .. }));
    for state in [HoldRowState::Open, HoldRowState::Closed, HoldRowState::Expired] {
        assert_eq!(serde_json::to_value(state).unwrap(), state.name());
    }
    for kind in [TransferKind::Grant, TransferKind::Revocation] {
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
    }
}

#[test]
fn rejected_settlement_changes_no_row() {
    let (pools, shares) = (Vec::new(), |amount| vec![ShareRow { bucket: "day".to_owned(), cap: 9, amount }]);
    let leg =
        |wallet: &str, amount| LegRow { wallet: wallet.to_owned(), amount, spent: 0, shares: shares(amount) };
    let hold = HoldRow {
        id: "h".to_owned(),
        state: HoldRowState::Open,
        expires_at: 60,
        memo: String::new(),
        legs: vec![leg("a", 3), leg("b", 2)],
        touched: false,
    };
    let mut rows = LedgerRows::new(pools, vec![hold], Vec::new());
    let request = SettleRequest { id: HoldId::new("h"), spent: vec![3, 3], now: Timestamp::from_millis(1) };
    assert_eq!(rows.settle(&request).unwrap_err().kind(), ErrorKind::Invalid);
    assert!(rows.changes().is_none());
    assert_eq!(rows.holds[0].legs[0].spent, 0);
}

#[test]
fn contradicting_rows_are_corrupt() {
    let pool = PoolRow::fresh("w", &Pool::Purchased);
    let share = ShareRow { bucket: String::new(), cap: 0, amount: 2 };
    let leg = LegRow { wallet: "w".to_owned(), amount: 2, spent: 0, shares: vec![share] };
    let (id, state) = ("h".to_owned(), HoldRowState::Open);
    let hold = HoldRow { id, state, expires_at: 60, memo: String::new(), legs: vec![leg], touched: false };
    let mut rows = LedgerRows::new(vec![pool], vec![hold], Vec::new());
    let request = SettleRequest { id: HoldId::new("h"), spent: vec![1], now: Timestamp::from_millis(1) };
    assert_eq!(rows.settle(&request).unwrap_err().kind(), ErrorKind::Corrupt);
}
