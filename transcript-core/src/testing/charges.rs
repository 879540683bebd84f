//! Conformance cases of the charge store.

use std::sync::Arc;

use super::{
    LimitModel, SeededRng, at, at_ms, call_concurrently, expect_error, expect_ok, ledger::LedgerModel,
    read_pages,
};
use crate::{
    accounts::{ChargeOutcome, ChargeRequest, ChargeStore, SequentialCharges},
    directory::{
        Account, Directory, NewKeyRecord, RedeemOutcome, RedeemRequest, RotateOutcome, UpdateOutcome,
        VerificationToken,
    },
    error::ErrorKind,
    ids::{AccountId, GrantId, HoldId, KeyId, WalletId},
    ledger::{Balance, GrantRequest, HoldOutcome, HoldRequest, HoldState, Ledger, Leg, Pool, Terms, audit},
    limits::{LimitOutcome, LimitRequest, RateLimiter},
    memory::MemoryDirectory,
};

/// Generates one test per case of [`ChargeStore`]; see [`crate::testing`].
#[macro_export]
macro_rules! charges_conformance {
    ($make:expr) => {
        $crate::conformance_cases! { $make; $crate::testing::charges::ChargeFixture; [$crate::testing::charges];
            charge_counts_request_and_spends_credits
            charge_with_dead_key_or_old_version_is_stale
            charge_over_rate_limit_spends_nothing
            insufficient_charge_counts_request
            charge_uses_pools_in_order_of_terms
            charge_repeated_is_spent_once
            charge_id_with_other_body_is_conflict
            overdue_hold_expires_before_charge
            charge_of_zero_writes_no_entry
            charge_out_of_bounds_changes_nothing
            charge_matches_sequential_calls
            concurrent_charges_are_each_made_once
            concurrent_charges_never_exceed_credits
            concurrent_charges_never_exceed_rate_limit
            concurrent_identical_charges_are_made_once
        }
    };
}

/// A charge store with the ports that share its rows.
pub trait ChargeFixture: ChargeStore {
    /// Directory of the keys and accounts.
    fn directory(&self) -> &dyn Directory;
    /// Ledger of the credits.
    fn ledger(&self) -> &dyn Ledger;
    /// Rate limiter of the requests.
    fn limiter(&self) -> &dyn RateLimiter;
}

impl<T: ChargeStore + Directory + Ledger + RateLimiter> ChargeFixture for T {
    fn directory(&self) -> &dyn Directory {
        self
    }

    fn ledger(&self) -> &dyn Ledger {
        self
    }

    fn limiter(&self) -> &dyn RateLimiter {
        self
    }
}

impl ChargeFixture for SequentialCharges {
    fn directory(&self) -> &dyn Directory {
        self.directory.as_ref()
    }

    fn ledger(&self) -> &dyn Ledger {
        self.ledger.as_ref()
    }

    fn limiter(&self) -> &dyn RateLimiter {
        self.limiter.as_ref()
    }
}

type ChargeTestStore = Arc<dyn ChargeFixture>;

/// Sequential charges on the models, as the reference.
fn model_store() -> ChargeTestStore {
    let (limiter, ledger) = (Arc::new(LimitModel::default()), Arc::new(LedgerModel::default()));
    Arc::new(SequentialCharges { directory: Arc::new(MemoryDirectory::default()), limiter, ledger })
}

fn digest(name: &str) -> Vec<u8> {
    name.bytes().chain(std::iter::repeat(0xA5)).take(32).collect()
}

fn new_key(name: &str) -> NewKeyRecord {
    NewKeyRecord { id: KeyId::new(name), digest: digest(name), hint: format!("vba_{name}"), now: at(0) }
}

/// Creates an account; its name, account id and key id are equal.
async fn account(store: &ChargeTestStore, name: &str) -> Account {
    let (token, email) = (digest(&format!("token {name}")), format!("{name}@example.org"));
    let put = VerificationToken { digest: token.clone(), email, expires_at: at(1_000), now: at(0) };
    expect_ok(store.directory().put_token(put).await);
    let redeem = RedeemRequest {
        digest: token,
        confirmed: false,
        new_account: AccountId::new(name),
        new_wallet: WalletId::new(format!("wallet of {name}")),
        key: new_key(name),
    };
    match expect_ok(store.directory().redeem(redeem).await) {
        RedeemOutcome::Issued { account, .. } => account,
        other => panic!("a new token creates an account; got {other:?}"),
    }
}

fn terms(limit: u64) -> Terms {
    let month = Pool::Allowance { bucket: "month/1".to_owned(), limit };
    Terms { pools: vec![month, Pool::Purchased], resets_at: None }
}

/// Charge of one credit; the plan has 5 credits and the limit is 3 requests a second.
fn charge_request(account: &Account, id: &str) -> ChargeRequest {
    ChargeRequest {
        key_digest: digest(account.id.as_str()),
        account: account.id.clone(),
        version: account.version,
        limit_request: LimitRequest {
            bucket: format!("api/{}", account.id),
            max: 3,
            window_ms: 1_000,
            cost: 1,
        },
        spend: HoldRequest {
            id: HoldId::new(id),
            legs: vec![Leg { wallet: account.wallet.clone(), terms: terms(5), amount: 1 }],
            now: at(10),
            expires_at: at(70),
            memo: "test".to_owned(),
        },
    }
}

/// The same charge with another limit and other credits.
fn with_limits(request: ChargeRequest, limit: u32, credits: u64) -> ChargeRequest {
    let mut request =
        ChargeRequest { limit_request: LimitRequest { max: limit, ..request.limit_request }, ..request };
    request.spend.legs[0].terms = terms(credits);
    request
}

async fn charge(store: &ChargeTestStore, request: ChargeRequest) -> ChargeOutcome {
    expect_ok(store.charge(request).await)
}

/// Remaining requests and credits; `None` if the charge was not made.
fn remaining_of(outcome: &ChargeOutcome) -> Option<(u32, u64)> {
    match outcome {
        ChargeOutcome::Accepted { remaining, spent: HoldOutcome::Held { balances }, .. } => {
            Some((*remaining, balances[0].available()))
        }
        _ => None,
    }
}

/// Remaining requests of an account with this limit, without using one.
async fn remaining(store: &ChargeTestStore, account: &Account, max: u32) -> u32 {
    let request = LimitRequest { max, cost: 0, ..charge_request(account, "").limit_request };
    match expect_ok(store.limiter().acquire(vec![request], at(10)).await) {
        LimitOutcome::Allowed { remaining, .. } => remaining,
        LimitOutcome::Limited { .. } => panic!("a request of cost 0 is never limited"),
    }
}

async fn balance(store: &ChargeTestStore, account: &Account, credits: u64) -> Balance {
    expect_ok(store.ledger().balance(&account.wallet, &terms(credits)).await)
}

/// Checks that the balances equal the sum of the entries.
async fn check_audit(store: &ChargeTestStore, account: &Account) {
    let ledger = store.ledger();
    let entries = read_pages(50, async |page| ledger.entries(&account.wallet, page).await).await;
    let wallets = read_pages(50, async |page| ledger.wallets(page).await).await;
    for stored in wallets.iter().filter(|balance| balance.wallet == account.wallet) {
        let differences = audit::compare(stored, &entries).expect("the ledger returns valid entries");
        assert!(differences.is_empty(), "balances equal the sum of the entries: {differences:?}");
    }
}

/// A charge counts towards the limit and spends credits.
pub async fn charge_counts_request_and_spends_credits(store: ChargeTestStore) {
    let account = account(&store, "a").await;
    let outcome = charge(&store, charge_request(&account, "h1")).await;
    assert_eq!(remaining_of(&outcome), Some((2, 4)), "remaining requests and credits: {outcome:?}");
    assert!(matches!(outcome, ChargeOutcome::Accepted { reset_ms: 1_000, .. }), "{outcome:?}");
    assert_eq!(remaining_of(&charge(&store, charge_request(&account, "h2")).await), Some((1, 3)));
    let pools = balance(&store, &account, 5).await.pools;
    assert_eq!((pools[0].spent, pools[0].held), (2, 0), "the credits are spent, not held");
    assert_eq!(remaining(&store, &account, 3).await, 1, "the limiter counts both charges");
    check_audit(&store, &account).await;
}

/// A dead key, another account's key or a changed account is stale, and nothing is done.
pub async fn charge_with_dead_key_or_old_version_is_stale(store: ChargeTestStore) {
    let directory = store.directory();
    let [rotated, revoked, changed, erased, other] =
        ["rotated", "revoked", "changed", "erased", "other"].map(str::to_owned);
    let mut accounts = Vec::new();
    for name in [&rotated, &revoked, &changed, &erased, &other] {
        let account = account(&store, name).await;
        assert!(
            remaining_of(&charge(&store, charge_request(&account, &format!("{name} 1"))).await).is_some()
        );
        accounts.push(account);
    }
    assert_eq!(expect_ok(directory.rotate(&digest(&rotated), new_key("new")).await), RotateOutcome::Rotated);
    assert!(expect_ok(directory.revoke_key(&KeyId::new(&*revoked), at(5)).await));
    let blocked = Account { blocked: true, ..accounts[2].clone() };
    let UpdateOutcome::Changed(blocked) = expect_ok(directory.update_account(blocked).await) else {
        panic!("an account is updated by its latest version")
    };
    expect_ok(directory.erase_account(&accounts[3].id, accounts[3].version, at(5)).await);
    for account in &accounts[..4] {
        let outcome = charge(&store, charge_request(account, &format!("{} 2", account.id))).await;
        assert!(matches!(outcome, ChargeOutcome::Stale), "{}: {outcome:?}", account.id);
        assert_eq!(remaining(&store, account, 3).await, 2, "the request is not counted");
        assert_eq!(balance(&store, account, 5).await.pools[0].spent, 1, "no credits are spent");
    }
    let current = charge(&store, charge_request(&blocked, "changed 3")).await;
    assert_eq!(remaining_of(&current), Some((1, 3)), "the current version is charged: {current:?}");
    let renewed = ChargeRequest { key_digest: digest("new"), ..charge_request(&accounts[0], "rotated 3") };
    assert_eq!(remaining_of(&charge(&store, renewed).await), Some((1, 3)), "the new key is valid");
    let of_other = ChargeRequest { key_digest: digest(&other), ..charge_request(&blocked, "changed 4") };
    assert!(matches!(charge(&store, of_other).await, ChargeOutcome::Stale), "another's key");
    let unknown = ChargeRequest { key_digest: digest("unknown"), ..charge_request(&accounts[4], "other 2") };
    assert!(matches!(charge(&store, unknown).await, ChargeOutcome::Stale), "unknown key");
}

/// A full limit returns `Limited`, and nothing is spent.
pub async fn charge_over_rate_limit_spends_nothing(store: ChargeTestStore) {
    let account = account(&store, "a").await;
    for n in 0..3 {
        assert!(remaining_of(&charge(&store, charge_request(&account, &format!("h{n}"))).await).is_some());
    }
    let outcome = charge(&store, charge_request(&account, "h3")).await;
    assert!(matches!(outcome, ChargeOutcome::Limited { retry_after_ms: 1_000 }), "{outcome:?}");
    assert_eq!(balance(&store, &account, 5).await.pools[0].spent, 3, "nothing is spent");
    let mut later = charge_request(&account, "h3");
    later.spend.now = at_ms(11_000);
    assert_eq!(
        remaining_of(&charge(&store, later).await),
        Some((2, 1)),
        "the charge succeeds after the wait, and the id is unused"
    );
}

/// An insufficient charge counts towards the limit but spends nothing.
pub async fn insufficient_charge_counts_request(store: ChargeTestStore) {
    let account = account(&store, "a").await;
    let mut large = charge_request(&account, "h1");
    large.spend.legs[0].amount = 6;
    let ChargeOutcome::Accepted {
        remaining: 2, spent: HoldOutcome::Insufficient { leg: 0, balance }, ..
    } = charge(&store, large).await
    else {
        panic!("an insufficient charge is counted")
    };
    assert_eq!(balance.available(), 5, "it returns the available credits");
    assert_eq!(
        remaining_of(&charge(&store, charge_request(&account, "h1")).await),
        Some((1, 4)),
        "its id is unused"
    );
}

/// Plan credits are spent before purchased credits, also within one charge.
pub async fn charge_uses_pools_in_order_of_terms(store: ChargeTestStore) {
    let account = account(&store, "a").await;
    let grant = GrantRequest {
        id: GrantId::new("g"),
        wallet: account.wallet.clone(),
        amount: 10,
        now: at(0),
        memo: String::new(),
    };
    let _ = expect_ok(store.ledger().grant(grant).await);
    for (id, amount, spent) in [("h1", 3, [3, 0]), ("h2", 4, [5, 2]), ("h3", 8, [5, 10])] {
        let mut request = charge_request(&account, id);
        request.spend.legs[0].amount = amount;
        assert!(remaining_of(&charge(&store, request).await).is_some(), "{id}");
        let pools = balance(&store, &account, 5).await.pools;
        assert_eq!([pools[0].spent, pools[1].spent], spent, "{id}");
    }
    check_audit(&store, &account).await;
}

/// A repeated charge is not spent again, but counts towards the limit.
pub async fn charge_repeated_is_spent_once(store: ChargeTestStore) {
    let account = account(&store, "a").await;
    charge(&store, charge_request(&account, "h1")).await;
    let ChargeOutcome::Accepted { remaining, spent: HoldOutcome::Exists { state, balances }, .. } =
        charge(&store, charge_request(&account, "h1")).await
    else {
        panic!("a repeated id exists")
    };
    assert_eq!((remaining, state), (1, HoldState::Settled { spent: vec![1] }));
    assert_eq!(balances[0].available(), 4, "it was spent once");
    check_audit(&store, &account).await;
}

/// An id that was used for another charge is a conflict.
pub async fn charge_id_with_other_body_is_conflict(store: ChargeTestStore) {
    let (a, b) = (account(&store, "a").await, account(&store, "b").await);
    charge(&store, charge_request(&a, "h1")).await;
    let outcome = charge(&store, charge_request(&b, "h1")).await;
    let is_conflict = matches!(outcome, ChargeOutcome::Accepted { spent: HoldOutcome::Conflict, .. });
    assert!(is_conflict, "{outcome:?}");
    assert_eq!(balance(&store, &b, 5).await.pools[0].used(), 0);
}

/// Overdue holds of the wallet expire first, as before a hold.
pub async fn overdue_hold_expires_before_charge(store: ChargeTestStore) {
    let account = account(&store, "a").await;
    let mut held = charge_request(&account, "held").spend;
    (held.legs[0].amount, held.now, held.expires_at) = (5, at(0), at(10));
    let _ = expect_ok(store.ledger().hold(held).await);
    assert_eq!(
        remaining_of(&charge(&store, charge_request(&account, "h1")).await),
        Some((2, 4)),
        "the expired amount is available again"
    );
    check_audit(&store, &account).await;
}

/// A charge of 0 credits writes no entry, but is counted.
pub async fn charge_of_zero_writes_no_entry(store: ChargeTestStore) {
    let account = account(&store, "a").await;
    let mut nothing = charge_request(&account, "h1");
    nothing.spend.legs[0].amount = 0;
    assert_eq!(remaining_of(&charge(&store, nothing).await), Some((2, 5)));
    let entries = read_pages(50, async |page| store.ledger().entries(&account.wallet, page).await).await;
    assert!(entries.is_empty(), "{entries:?}");
}

/// A request outside the bounds is invalid, and nothing is done.
pub async fn charge_out_of_bounds_changes_nothing(store: ChargeTestStore) {
    let account = account(&store, "a").await;
    let good = charge_request(&account, "h1");
    let no_limit = ChargeRequest {
        limit_request: LimitRequest { max: 0, ..good.limit_request.clone() },
        ..good.clone()
    };
    let mut no_leg = good.clone();
    no_leg.spend.legs.clear();
    for bad in [no_limit, no_leg] {
        expect_error(store.charge(bad).await, ErrorKind::Invalid, "requests outside the bounds are invalid");
    }
    assert_eq!(remaining_of(&charge(&store, good).await), Some((2, 4)));
}

/// A charge has the same outcome as separate calls to directory, limiter and ledger.
pub async fn charge_matches_sequential_calls(store: ChargeTestStore) {
    let steps = model_store();
    let names = ["a", "b", "c"];
    let (mut accounts, mut mirrored) = (Vec::new(), Vec::new());
    for name in names {
        accounts.push(account(&store, name).await);
        mirrored.push(account(&steps, name).await);
    }
    assert_eq!(accounts, mirrored);
    let mut rng = SeededRng::new(7);
    for n in 0..400_u64 {
        let payer = &accounts[rng.below(3) as usize];
        let id = if rng.below(8) == 0 { rng.below(n + 1) } else { n };
        let mut request =
            with_limits(charge_request(payer, &format!("h{id}")), 4 + rng.below(2) as u32, 20 + n / 8);
        request.spend.now = at_ms(10_000 + (n * 90 + rng.below(60)) as i64);
        request.spend.legs[0].amount = rng.below(3);
        if rng.below(4) == 0 {
            request.spend.legs[0].terms.pools.reverse();
        }
        if rng.below(16) == 0 {
            request.version += 1;
        }
        if rng.below(8) == 0 {
            let mut held = request.spend.clone();
            (held.id, held.expires_at) = (HoldId::new(format!("held {n}")), at_ms(10_300 + n as i64 * 90));
            for store in [&store, &steps] {
                let _ = expect_ok(store.ledger().hold(held.clone()).await);
            }
        }
        let (got, expect) = (charge(&store, request.clone()).await, charge(&steps, request.clone()).await);
        assert_eq!(format!("{got:?}"), format!("{expect:?}"), "charge {n}: {request:?}");
    }
    for account in &accounts {
        assert_eq!(balance(&store, account, 70).await, balance(&steps, account, 70).await);
        check_audit(&store, account).await;
    }
}

/// Concurrent charges of many accounts are each made once, with their own outcomes.
pub async fn concurrent_charges_are_each_made_once(store: ChargeTestStore) {
    let mut accounts = Vec::new();
    for n in 0..12 {
        accounts.push(account(&store, &format!("a{n}")).await);
    }
    let stale = Account { version: accounts[11].version + 1, ..accounts[11].clone() };
    let requests = (0..240).map(|n| {
        let payer = if n % 12 == 11 { &stale } else { &accounts[n % 12] };
        with_limits(charge_request(payer, &format!("h{n}")), 1_000, 1_000)
    });
    let outcomes =
        call_concurrently(&store, requests, |store, request| async move { charge(&store, request).await })
            .await;
    for (n, outcome) in outcomes.iter().enumerate() {
        match n % 12 {
            11 => assert!(matches!(outcome, ChargeOutcome::Stale), "{outcome:?}"),
            _ => assert!(remaining_of(outcome).is_some(), "{outcome:?}"),
        }
    }
    for (n, account) in accounts.iter().enumerate() {
        let spent = balance(&store, account, 1_000).await.pools[0].spent;
        assert_eq!(spent, if n == 11 { 0 } else { 20 }, "account {n}");
        check_audit(&store, account).await;
    }
}

/// Concurrent charges of one account stop at its credits, and each returns another balance.
pub async fn concurrent_charges_never_exceed_credits(store: ChargeTestStore) {
    let account = account(&store, "a").await;
    let outcomes = call_concurrently(&store, 0..90, |store, n| {
        let request = with_limits(charge_request(&account, &format!("h{n}")), 1_000, 40);
        async move { charge(&store, request).await }
    })
    .await;
    // The order of counting need not be the order of charging.
    let mut credits: Vec<u64> =
        outcomes.iter().filter_map(remaining_of).map(|(_, credits)| credits).collect();
    credits.sort_unstable();
    assert_eq!(credits, (0..40).collect::<Vec<_>>(), "each credit is spent once");
    let is_insufficient = |outcome: &&ChargeOutcome| {
        matches!(outcome, ChargeOutcome::Accepted { spent: HoldOutcome::Insufficient { .. }, .. })
    };
    assert_eq!(outcomes.iter().filter(is_insufficient).count(), 50, "the others are insufficient");
    assert_eq!(remaining(&store, &account, 1_000).await, 910, "all are counted");
    check_audit(&store, &account).await;
}

/// Concurrent charges of one account stop at its rate limit.
pub async fn concurrent_charges_never_exceed_rate_limit(store: ChargeTestStore) {
    let account = account(&store, "a").await;
    let outcomes = call_concurrently(&store, 0..90, |store, n| {
        let request = with_limits(charge_request(&account, &format!("h{n}")), 30, 1_000);
        async move { charge(&store, request).await }
    })
    .await;
    assert_eq!(outcomes.iter().filter_map(remaining_of).count(), 30, "as many as the limit admits");
    let is_limited = |outcome: &&ChargeOutcome| matches!(outcome, ChargeOutcome::Limited { .. });
    assert_eq!(outcomes.iter().filter(is_limited).count(), 60, "the others are limited");
    assert_eq!(balance(&store, &account, 1_000).await.pools[0].spent, 30, "limited requests are not charged");
    check_audit(&store, &account).await;
}

/// Concurrent repeats of one charge are spent once.
pub async fn concurrent_identical_charges_are_made_once(store: ChargeTestStore) {
    let account = account(&store, "a").await;
    let outcomes = call_concurrently(&store, 0..20, |store, _| {
        let request = with_limits(charge_request(&account, "h"), 1_000, 1_000);
        async move { charge(&store, request).await }
    })
    .await;
    assert_eq!(outcomes.iter().filter_map(remaining_of).count(), 1, "it is spent once");
    let exists = |outcome: &&ChargeOutcome| {
        matches!(outcome, ChargeOutcome::Accepted { spent: HoldOutcome::Exists { .. }, .. })
    };
    assert_eq!(outcomes.iter().filter(exists).count(), 19, "the others exist");
    assert_eq!(balance(&store, &account, 1_000).await.pools[0].spent, 1);
    check_audit(&store, &account).await;
}

#[cfg(test)]
mod conformance {
    crate::charges_conformance!(super::model_store());
}
