//! The rules against the model that moves one credit at a time.

use proptest::prelude::*;

use super::*;
use crate::{
    ids::HoldId,
    ledger::Entry,
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
