//! Conformance case of all operations in random order, compared with the model.

use super::{model::LedgerModel, *};
use crate::{error::Result, testing::SeededRng, time::Timestamp};

const WALLETS: [&str; 4] = ["w0", "w1", "w2", "service"];

/// An operation of a random walk.
#[derive(Clone, Debug)]
pub(crate) enum WalkStep {
    Hold(HoldRequest),
    Spend(HoldRequest),
    Settle(SettleRequest),
    Extend(HoldId, Timestamp),
    Grant(GrantRequest),
    Revoke(RevokeRequest),
    Expire(Timestamp, u32),
}

/// An endless sequence of operations, the same for the same seed.
///
/// Ids repeat, amounts exceed pools, holds expire, limits and periods change, and the clock steps back.
#[derive(Debug)]
pub(crate) struct LedgerWalk {
    rng: SeededRng,
    now: i64,
    holds: Vec<HoldRequest>,
    grants: Vec<GrantRequest>,
    revocations: Vec<RevokeRequest>,
}

impl LedgerWalk {
    pub(crate) fn new(seed: u64) -> Self {
        let (holds, grants, revocations) = (Vec::new(), Vec::new(), Vec::new());
        Self { rng: SeededRng::new(seed), now: 0, holds, grants, revocations }
    }

    pub(crate) fn next_step(&mut self) -> WalkStep {
        self.now += self.rng.below(9) as i64 - 2;
        match self.rng.below(16) {
            0..=3 => WalkStep::Hold(self.hold()),
            4..=6 => WalkStep::Spend(self.hold()),
            7..=9 => WalkStep::Settle(self.settle()),
            10 => WalkStep::Extend(self.hold_id(), at(self.now + self.rng.below(25) as i64)),
            11 | 12 => WalkStep::Grant(self.grant()),
            13 | 14 => WalkStep::Revoke(self.revoke()),
            _ => WalkStep::Expire(at(self.now), self.rng.below(4) as u32),
        }
    }

    /// Terms as plans have them, with limits and periods that change.
    pub(crate) fn terms(&mut self) -> Terms {
        let month = bucket(&format!("month/{}", self.now.div_euclid(150)), 4 + self.rng.below(14));
        let day = bucket(&format!("day/{}", self.now.div_euclid(60)), self.rng.below(8));
        terms(&match self.rng.below(6) {
            0 => vec![month],
            1 => vec![Pool::Purchased],
            2 => vec![Pool::Purchased, month],
            3 => vec![day, month, Pool::Purchased],
            _ => vec![month, Pool::Purchased],
        })
    }

    /// One of the last earlier requests.
    fn one_of<T: Clone>(&mut self, earlier: fn(&Self) -> &[T]) -> Option<T> {
        let back = self.rng.below(8) as usize;
        let earlier = earlier(self);
        earlier.iter().rev().nth(back).or(earlier.last()).cloned()
    }

    fn hold(&mut self) -> HoldRequest {
        let (now, expires_at) = (at(self.now), at(self.now + 1 + self.rng.below(30) as i64));
        let (repeat, repeated) = (self.rng.below(12), self.one_of(|walk| &walk.holds));
        if let (0, Some(known)) = (repeat, repeated.clone()) {
            return HoldRequest { now, expires_at, ..known };
        }
        let (first, count) = (self.rng.below(4) as usize, [1, 1, 1, 2, 3][self.rng.below(5) as usize]);
        let legs = (first..first + count).map(|index| {
            let (terms, amount) = (self.terms(), self.rng.below(7));
            leg(WALLETS[index % WALLETS.len()], terms, amount)
        });
        let legs: Vec<Leg> = legs.collect();
        let mut hold = HoldRequest { now, expires_at, ..request(&format!("h{}", self.holds.len()), &legs) };
        if let (1, Some(known)) = (repeat, repeated) {
            hold.id = known.id;
        }
        self.holds.push(hold.clone());
        hold
    }

    /// Mostly one of the last holds.
    fn hold_id(&mut self) -> HoldId {
        HoldId::new(format!("h{}", (self.holds.len() as u64).saturating_sub(self.rng.below(10))))
    }

    fn settle(&mut self) -> SettleRequest {
        let id = self.hold_id();
        let known = self.holds.iter().rfind(|hold| hold.id == id).cloned();
        let legs = known.map_or(Vec::new(), |hold| hold.legs);
        // One in some twenty settlements spends a credit too many, or has an amount too many.
        let mut spent: Vec<u64> = legs.iter().map(|leg| self.rng.below(leg.amount + 1)).collect();
        match self.rng.below(20) {
            0 => spent.iter_mut().for_each(|amount| *amount += 1),
            1 => spent.push(0),
            2..=8 => spent = legs.iter().map(|leg| leg.amount).collect(),
            _ => {}
        }
        SettleRequest { id, spent, now: at(self.now) }
    }

    fn grant(&mut self) -> GrantRequest {
        let (repeat, repeated) = (self.rng.below(8), self.one_of(|walk| &walk.grants));
        let (wallet, amount) = (WALLETS[self.rng.below(4) as usize], self.rng.below(10));
        let id = format!("g{}", self.grants.len());
        let grant = GrantRequest { now: at(self.now), ..grant_request(&id, wallet, amount) };
        match (repeat, repeated) {
            (0, Some(known)) => known,
            (1, Some(known)) => GrantRequest { id: known.id, ..grant },
            _ => {
                self.grants.push(grant.clone());
                grant
            }
        }
    }

    fn revoke(&mut self) -> RevokeRequest {
        let (repeat, repeated) = (self.rng.below(10), self.one_of(|walk| &walk.revocations));
        let of_grant = match self.one_of(|walk| &walk.grants) {
            Some(grant) if self.rng.below(16) > 0 => grant.id,
            _ => GrantId::new("unknown"),
        };
        let (id, amount) = (format!("r{}", self.revocations.len()), 1 + self.rng.below(6));
        let revocation =
            RevokeRequest { now: at(self.now), ..revoke_request(&id, of_grant.as_str(), amount) };
        match (repeat, repeated) {
            (0, Some(known)) => known,
            (1, Some(known)) => RevokeRequest { id: known.id, ..revocation },
            (2, _) => RevokeRequest { id: of_grant, ..revocation },
            _ => {
                self.revocations.push(revocation.clone());
                revocation
            }
        }
    }
}

/// The outcome, or the kind of the error, as text to compare.
pub(crate) fn outcome_text(outcome: Result<impl std::fmt::Debug>) -> String {
    format!("{:?}", outcome.map_err(|error| error.kind()))
}

impl WalkStep {
    /// Runs the step; returns its outcome as text.
    pub(crate) async fn run(&self, store: &dyn Ledger) -> String {
        match self.clone() {
            Self::Hold(request) => outcome_text(store.hold(request).await),
            Self::Spend(request) => outcome_text(store.spend(request).await),
            Self::Settle(request) => outcome_text(store.settle(request).await),
            Self::Extend(id, expires_at) => outcome_text(store.extend(&id, expires_at).await),
            Self::Grant(request) => outcome_text(store.grant(request).await),
            Self::Revoke(request) => outcome_text(store.revoke(request).await),
            Self::Expire(now, limit) => outcome_text(store.expire(now, limit).await),
        }
    }
}

/// Wallets with their pools in one order, and their entries without numbers.
pub(crate) async fn contents(store: &dyn Ledger) -> Vec<(Balance, Vec<Entry>)> {
    let mut all = Vec::new();
    for mut balance in read_pages(PAGE_LIMIT, async |page| store.wallets(page).await).await {
        balance.pools.sort_by(|a, b| a.pool.bucket().cmp(&b.pool.bucket()));
        let mut entries =
            read_pages(PAGE_LIMIT, async |page| store.entries(&balance.wallet, page).await).await;
        entries.iter_mut().for_each(|entry| entry.seq = 0);
        all.push((balance, entries));
    }
    all
}

/// Compares every outcome and balance of a random walk with the model.
pub(crate) async fn check_walk(store: &dyn Ledger, seed: u64, steps: usize) {
    let model = LedgerModel::default();
    let mut walk = LedgerWalk::new(seed);
    for index in 0..steps {
        let step = walk.next_step();
        let (got, expected) = (step.run(store).await, step.run(&model).await);
        assert_eq!(got, expected, "seed {seed}, step {index} has the model's outcome: {step:?}");
        let wallet = WalletId::new(WALLETS[index % WALLETS.len()]);
        let (terms, since) = (walk.terms(), at(walk.now - 100));
        let got = outcome_text(store.balance_since(&wallet, &terms, since).await);
        let expected = outcome_text(model.balance_since(&wallet, &terms, since).await);
        assert_eq!(got, expected, "seed {seed}, step {index} leaves the model's balance: {step:?}");
        if index % 50 == 49 || index + 1 == steps {
            assert_eq!(contents(store).await, contents(&model).await, "seed {seed}, step {index}: {step:?}");
        }
    }
}

/// Operations in random order have the outcomes, balances and entries of the model.
pub async fn random_walk_matches_model(store: LedgerStore) {
    check_walk(store.as_ref(), 1, 400).await;
    check_audit(&store).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{memory::MemoryLedger, testing::ledger_cases};

    #[tokio::test]
    async fn memory_ledger_matches_model() {
        for seed in 100..140 {
            check_walk(&MemoryLedger::default(), seed, 250).await;
        }
    }

    #[tokio::test]
    async fn walk_reaches_every_outcome() {
        let (model, mut walk) = (LedgerModel::default(), LedgerWalk::new(1));
        let mut outcomes = Vec::new();
        for _ in 0..400 {
            outcomes.push(walk.next_step().run(&model).await);
        }
        for name in [
            "Held",
            "Insufficient",
            "Exists { state: Open",
            "Exists { state: Settled",
            "Exists { state: Expired",
            "Conflict",
            "Settled {",
            "HoldNotFound",
            "Invalid",
            "NotFound",
            "Granted",
            "Ok(Exists)",
            "Revoked",
            "Exists { taken",
            "GrantNotFound",
            "shortfall: 1",
            "Ok(Open",
            "Ok(Expired)",
            "Ok(Settled",
            "Ok(1)",
        ] {
            assert!(outcomes.iter().any(|outcome| outcome.contains(name)), "{name}");
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn model_passes_conformance_suite() {
        // These hold or grant the largest amount, of which the model would write every single credit.
        let large = ["hold_out_of_bounds_changes_nothing", "grant_and_revoke_out_of_bounds_change_nothing"];
        for case in ledger_cases() {
            let name = case.name;
            if !large.contains(&name) {
                assert_eq!(case.run(Arc::new(LedgerModel::default())).await, None, "{name}");
            }
        }
    }
}
