//! The cases of charges for what is at hand.

use std::sync::Arc;

use super::{Choices, at, at_ms, done, pages, refused, together};
use crate::{
    accounts::{ChargeOutcome, ChargeRequest, Charges, StepByStep},
    directory::{Account, Changed, Directory, NewKey, Redeem, Redeemed, Rotated, Token},
    error::ErrorKind,
    ids::{AccountId, GrantId, HoldId, KeyId, WalletId},
    ledger::{Balance, Grant, HoldOutcome, HoldRequest, HoldState, Ledger, Leg, Pool, Terms, audit},
    limits::{RateLimiter, Take, Taken},
    memory::{MemoryDirectory, MemoryLedger, MemoryRateLimiter},
};

/// Makes a test of every case of [`Charges`]; see [`crate::testing`].
#[macro_export]
macro_rules! charges_conformance {
    ($make:expr) => {
        $crate::conformance_cases! { $make; $crate::testing::charges::Charging; [$crate::testing::charges];
            a_charge_is_counted_and_spent
            a_key_that_opens_no_longer_is_stale
            a_full_limit_charges_nothing
            what_cannot_be_paid_is_counted
            pools_are_charged_in_the_order_of_the_terms
            the_same_charge_again_is_known
            the_same_id_for_another_charge_is_a_conflict
            an_overdue_hold_expires_before_a_charge
            a_charge_of_nothing_leaves_no_trace
            charges_out_of_bounds_change_nothing
            a_charge_is_three_steps_in_one
            charges_at_once_are_each_made_once
            charges_at_once_never_go_beyond_the_credits
            charges_at_once_never_go_beyond_the_limit
            the_same_charge_at_once_is_made_once
        }
    };
}

/// Charges, with the ports on whose rows they work.
pub trait Charging: Charges {
    /// The keys and accounts.
    fn directory(&self) -> &dyn Directory;
    /// The credits.
    fn ledger(&self) -> &dyn Ledger;
    /// The limits.
    fn limiter(&self) -> &dyn RateLimiter;
}

impl<T: Charges + Directory + Ledger + RateLimiter> Charging for T {
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

impl Charging for StepByStep {
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

type Store = Arc<dyn Charging>;

/// Charges in memory.
fn in_memory() -> Store {
    Arc::new(StepByStep {
        directory: Arc::new(MemoryDirectory::default()),
        limiter: Arc::new(MemoryRateLimiter::default()),
        ledger: Arc::new(MemoryLedger::default()),
    })
}

fn digest(name: &str) -> Vec<u8> {
    name.bytes().chain(std::iter::repeat(0xA5)).take(32).collect()
}

fn new_key(name: &str) -> NewKey {
    NewKey { id: KeyId::new(name), digest: digest(name), hint: format!("vba_{name}"), now: at(0) }
}

/// An account with this name, whose key has the same one.
async fn account(store: &Store, name: &str) -> Account {
    let (token, email) = (digest(&format!("token {name}")), format!("{name}@example.org"));
    let put = Token { digest: token.clone(), email, expires_at: at(1_000), now: at(0) };
    done(store.directory().put_token(put).await);
    let redeem = Redeem {
        digest: token,
        confirmed: false,
        new_account: AccountId::new(name),
        new_wallet: WalletId::new(format!("wallet of {name}")),
        key: new_key(name),
    };
    match done(store.directory().redeem(redeem).await) {
        Redeemed::Issued { account, .. } => account,
        other => panic!("a fresh token makes an account; it was {other:?}"),
    }
}

fn terms(limit: u64) -> Terms {
    let month = Pool::Allowance { bucket: "month/1".to_owned(), limit };
    Terms { pools: vec![month, Pool::Purchased], resets_at: None }
}

/// A charge of one credit, of five that there are, and of a limit of three in a second.
fn ask(account: &Account, id: &str) -> ChargeRequest {
    ChargeRequest {
        key_digest: digest(account.id.as_str()),
        account: account.id.clone(),
        version: account.version,
        take: Take { bucket: format!("api/{}", account.id), count: 3, per_ms: 1_000, cost: 1 },
        spend: HoldRequest {
            id: HoldId::new(id),
            legs: vec![Leg { wallet: account.wallet.clone(), terms: terms(5), amount: 1 }],
            now: at(10),
            expires_at: at(70),
            memo: "test".to_owned(),
        },
    }
}

/// The same with a limit and credits for so many.
fn wide(ask: ChargeRequest, limit: u32, credits: u64) -> ChargeRequest {
    let mut ask = ChargeRequest { take: Take { count: limit, ..ask.take }, ..ask };
    ask.spend.legs[0].terms = terms(credits);
    ask
}

async fn charge(store: &Store, ask: ChargeRequest) -> ChargeOutcome {
    done(store.charge(ask).await)
}

/// How many requests and how many credits are left; none when it was not charged.
fn left(outcome: &ChargeOutcome) -> Option<(u32, u64)> {
    match outcome {
        ChargeOutcome::Counted { remaining, spent: HoldOutcome::Held { balances }, .. } => {
            Some((*remaining, balances[0].available()))
        }
        _ => None,
    }
}

/// How much of the limit is left, without taking of it.
async fn remaining(store: &Store, take: &Take) -> u32 {
    match done(store.limiter().take(vec![Take { cost: 0, ..take.clone() }], at(10)).await) {
        Taken::Allowed { remaining, .. } => remaining,
        Taken::Limited { .. } => panic!("asking is never refused"),
    }
}

async fn balance(store: &Store, account: &Account, credits: u64) -> Balance {
    done(store.ledger().balance(&account.wallet, &terms(credits)).await)
}

/// Balances are what the entries add up to.
async fn audited(store: &Store, account: &Account) {
    let ledger = store.ledger();
    let entries = pages(50, async |page| ledger.entries(&account.wallet, page).await).await;
    let wallets = pages(50, async |page| ledger.wallets(page).await).await;
    for stored in wallets.iter().filter(|balance| balance.wallet == account.wallet) {
        let differences = audit::compare(stored, &entries).expect("entries that a ledger may contain");
        assert!(differences.is_empty(), "balances are what the entries add up to: {differences:?}");
    }
}

/// A charge counts for the limit, and spends.
pub async fn a_charge_is_counted_and_spent(store: Store) {
    let account = account(&store, "a").await;
    let outcome = charge(&store, ask(&account, "h1")).await;
    assert_eq!(left(&outcome), Some((2, 4)), "what is left of both: {outcome:?}");
    assert!(matches!(outcome, ChargeOutcome::Counted { reset_ms: 1_000, .. }), "{outcome:?}");
    assert_eq!(left(&charge(&store, ask(&account, "h2")).await), Some((1, 3)));
    let pools = balance(&store, &account, 5).await.pools;
    assert_eq!((pools[0].spent, pools[0].held), (2, 0), "it is spent, not held");
    assert_eq!(remaining(&store, &ask(&account, "").take).await, 1, "the limiter knows of it");
    audited(&store, &account).await;
}

/// A key that is dead, another's, or of an account that has changed, is stale, and nothing is done.
pub async fn a_key_that_opens_no_longer_is_stale(store: Store) {
    let directory = store.directory();
    let [rotated, revoked, changed, erased, other] =
        ["rotated", "revoked", "changed", "erased", "other"].map(str::to_owned);
    let mut accounts = Vec::new();
    for name in [&rotated, &revoked, &changed, &erased, &other] {
        let account = account(&store, name).await;
        assert!(left(&charge(&store, ask(&account, &format!("{name} 1"))).await).is_some());
        accounts.push(account);
    }
    assert_eq!(done(directory.rotate(&digest(&rotated), new_key("new")).await), Rotated::Rotated);
    assert!(done(directory.revoke_key(&KeyId::new(&*revoked), at(5)).await));
    let blocked = Account { blocked: true, ..accounts[2].clone() };
    let Changed::Changed(blocked) = done(directory.change_account(blocked).await) else {
        panic!("an account is changed by who read it last")
    };
    done(directory.erase_account(&accounts[3].id, accounts[3].version, at(5)).await);
    for account in &accounts[..4] {
        let outcome = charge(&store, ask(account, &format!("{} 2", account.id))).await;
        assert!(matches!(outcome, ChargeOutcome::Stale), "{}: {outcome:?}", account.id);
        assert_eq!(remaining(&store, &ask(account, "").take).await, 2, "it is not counted");
        assert_eq!(balance(&store, account, 5).await.pools[0].spent, 1, "it is not charged");
    }
    let anew = charge(&store, ask(&blocked, "changed 3")).await;
    assert_eq!(left(&anew), Some((1, 3)), "with the present version it is charged: {anew:?}");
    let renewed = ChargeRequest { key_digest: digest("new"), ..ask(&accounts[0], "rotated 3") };
    assert_eq!(left(&charge(&store, renewed).await), Some((1, 3)), "the new key opens");
    let of_other = ChargeRequest { key_digest: digest(&other), ..ask(&blocked, "changed 4") };
    assert!(matches!(charge(&store, of_other).await, ChargeOutcome::Stale), "another's key");
    let unknown = ChargeRequest { key_digest: digest("nobody"), ..ask(&accounts[4], "other 2") };
    assert!(matches!(charge(&store, unknown).await, ChargeOutcome::Stale), "nobody's key");
}

/// A limit that is full refuses, and nothing is spent.
pub async fn a_full_limit_charges_nothing(store: Store) {
    let account = account(&store, "a").await;
    for n in 0..3 {
        assert!(left(&charge(&store, ask(&account, &format!("h{n}"))).await).is_some());
    }
    let outcome = charge(&store, ask(&account, "h3")).await;
    assert!(matches!(outcome, ChargeOutcome::Limited { retry_after_ms: 1_000 }), "{outcome:?}");
    assert_eq!(balance(&store, &account, 5).await.pools[0].spent, 3, "nothing is spent");
    let mut later = ask(&account, "h3");
    later.spend.now = at_ms(11_000);
    assert_eq!(left(&charge(&store, later).await), Some((2, 1)), "waiting suffices, and the id is fresh");
}

/// What the credits do not suffice for counts for the limit, and is not spent.
pub async fn what_cannot_be_paid_is_counted(store: Store) {
    let account = account(&store, "a").await;
    let mut large = ask(&account, "h1");
    large.spend.legs[0].amount = 6;
    let ChargeOutcome::Counted { remaining: 2, spent: HoldOutcome::Refused { leg: 0, balance }, .. } =
        charge(&store, large).await
    else {
        panic!("a refusal is counted")
    };
    assert_eq!(balance.available(), 5, "it tells what there is");
    assert_eq!(left(&charge(&store, ask(&account, "h1")).await), Some((1, 4)), "its id is fresh");
}

/// The plan's credits go before those that were bought, also within one charge.
pub async fn pools_are_charged_in_the_order_of_the_terms(store: Store) {
    let account = account(&store, "a").await;
    let grant = Grant {
        id: GrantId::new("g"),
        wallet: account.wallet.clone(),
        amount: 10,
        now: at(0),
        memo: String::new(),
    };
    done(store.ledger().grant(grant).await);
    for (id, amount, spent) in [("h1", 3, [3, 0]), ("h2", 4, [5, 2]), ("h3", 8, [5, 10])] {
        let mut ask = ask(&account, id);
        ask.spend.legs[0].amount = amount;
        assert!(left(&charge(&store, ask).await).is_some(), "{id}");
        let pools = balance(&store, &account, 5).await.pools;
        assert_eq!([pools[0].spent, pools[1].spent], spent, "{id}");
    }
    audited(&store, &account).await;
}

/// A charge that is repeated is not spent again; the limit counts it.
pub async fn the_same_charge_again_is_known(store: Store) {
    let account = account(&store, "a").await;
    charge(&store, ask(&account, "h1")).await;
    let ChargeOutcome::Counted { remaining, spent: HoldOutcome::Known { state, balances }, .. } =
        charge(&store, ask(&account, "h1")).await
    else {
        panic!("a known id is known")
    };
    assert_eq!((remaining, state), (1, HoldState::Closed { spent: vec![1] }));
    assert_eq!(balances[0].available(), 4, "it was spent once");
    audited(&store, &account).await;
}

/// An id that was used for something else is a conflict.
pub async fn the_same_id_for_another_charge_is_a_conflict(store: Store) {
    let (a, b) = (account(&store, "a").await, account(&store, "b").await);
    charge(&store, ask(&a, "h1")).await;
    let outcome = charge(&store, ask(&b, "h1")).await;
    let is_conflict = matches!(outcome, ChargeOutcome::Counted { spent: HoldOutcome::Conflict, .. });
    assert!(is_conflict, "{outcome:?}");
    assert_eq!(balance(&store, &b, 5).await.pools[0].used(), 0);
}

/// The overdue holds of the wallet expire first, as before a hold.
pub async fn an_overdue_hold_expires_before_a_charge(store: Store) {
    let account = account(&store, "a").await;
    let mut held = ask(&account, "held").spend;
    (held.legs[0].amount, held.now, held.expires_at) = (5, at(0), at(10));
    done(store.ledger().hold(held).await);
    assert_eq!(left(&charge(&store, ask(&account, "h1")).await), Some((2, 4)), "what it held is there again");
    audited(&store, &account).await;
}

/// A charge of no credits leaves no trace in a wallet, but is counted.
pub async fn a_charge_of_nothing_leaves_no_trace(store: Store) {
    let account = account(&store, "a").await;
    let mut nothing = ask(&account, "h1");
    nothing.spend.legs[0].amount = 0;
    assert_eq!(left(&charge(&store, nothing).await), Some((2, 5)));
    let entries = pages(50, async |page| store.ledger().entries(&account.wallet, page).await).await;
    assert!(entries.is_empty(), "{entries:?}");
}

/// What is outside the bounds is refused, and nothing is done.
pub async fn charges_out_of_bounds_change_nothing(store: Store) {
    let account = account(&store, "a").await;
    let good = ask(&account, "h1");
    let no_limit = ChargeRequest { take: Take { count: 0, ..good.take.clone() }, ..good.clone() };
    let mut no_leg = good.clone();
    no_leg.spend.legs.clear();
    for bad in [no_limit, no_leg] {
        refused(store.charge(bad).await, ErrorKind::Invalid, "a request has its bounds");
    }
    assert_eq!(left(&charge(&store, good).await), Some((2, 4)));
}

/// Whatever comes one after another, it is what directory, limiter and ledger say one after another.
pub async fn a_charge_is_three_steps_in_one(store: Store) {
    let steps = in_memory();
    let names = ["a", "b", "c"];
    let (mut accounts, mut mirrored) = (Vec::new(), Vec::new());
    for name in names {
        accounts.push(account(&store, name).await);
        mirrored.push(account(&steps, name).await);
    }
    assert_eq!(accounts, mirrored);
    let mut choices = Choices::new(7);
    for n in 0..400_u64 {
        let who = &accounts[choices.below(3) as usize];
        let id = if choices.below(8) == 0 { choices.below(n + 1) } else { n };
        let mut ask = wide(ask(who, &format!("h{id}")), 4 + choices.below(2) as u32, 20 + n / 8);
        ask.spend.now = at_ms(10_000 + (n * 90 + choices.below(60)) as i64);
        ask.spend.legs[0].amount = choices.below(3);
        if choices.below(4) == 0 {
            ask.spend.legs[0].terms.pools.reverse();
        }
        if choices.below(16) == 0 {
            ask.version += 1;
        }
        let (got, expect) = (charge(&store, ask.clone()).await, charge(&steps, ask.clone()).await);
        assert_eq!(format!("{got:?}"), format!("{expect:?}"), "charge {n}: {ask:?}");
    }
    for account in &accounts {
        assert_eq!(balance(&store, account, 70).await, balance(&steps, account, 70).await);
        audited(&store, account).await;
    }
}

/// Charges of many accounts at the same time are each made once, and have their own outcomes.
pub async fn charges_at_once_are_each_made_once(store: Store) {
    let mut accounts = Vec::new();
    for n in 0..12 {
        accounts.push(account(&store, &format!("a{n}")).await);
    }
    let stale = Account { version: accounts[11].version + 1, ..accounts[11].clone() };
    let asks = (0..240).map(|n| {
        let who = if n % 12 == 11 { &stale } else { &accounts[n % 12] };
        wide(ask(who, &format!("h{n}")), 1_000, 1_000)
    });
    let outcomes = together(asks.map(|ask| {
        let store = Arc::clone(&store);
        async move { charge(&store, ask).await }
    }))
    .await;
    for (n, outcome) in outcomes.iter().enumerate() {
        match n % 12 {
            11 => assert!(matches!(outcome, ChargeOutcome::Stale), "{outcome:?}"),
            _ => assert!(left(outcome).is_some(), "{outcome:?}"),
        }
    }
    for (n, account) in accounts.iter().enumerate() {
        let spent = balance(&store, account, 1_000).await.pools[0].spent;
        assert_eq!(spent, if n == 11 { 0 } else { 20 }, "account {n}");
        audited(&store, account).await;
    }
}

/// Charges of one account at the same time end where its credits do, and each tells another rest.
pub async fn charges_at_once_never_go_beyond_the_credits(store: Store) {
    let account = account(&store, "a").await;
    let outcomes = together((0..90).map(|n| {
        let (store, ask) = (Arc::clone(&store), wide(ask(&account, &format!("h{n}")), 1_000, 40));
        async move { charge(&store, ask).await }
    }))
    .await;
    // Who was counted first need not have been charged first.
    let mut credits: Vec<u64> = outcomes.iter().filter_map(left).map(|(_, credits)| credits).collect();
    credits.sort_unstable();
    assert_eq!(credits, (0..40).collect::<Vec<_>>(), "each credit is spent once");
    let is_refused = |outcome: &&ChargeOutcome| {
        matches!(outcome, ChargeOutcome::Counted { spent: HoldOutcome::Refused { .. }, .. })
    };
    assert_eq!(outcomes.iter().filter(is_refused).count(), 50, "the others are refused");
    assert_eq!(remaining(&store, &wide(ask(&account, ""), 1_000, 1).take).await, 910, "and counted");
    audited(&store, &account).await;
}

/// Charges of one account at the same time end where its limit does.
pub async fn charges_at_once_never_go_beyond_the_limit(store: Store) {
    let account = account(&store, "a").await;
    let outcomes = together((0..90).map(|n| {
        let (store, ask) = (Arc::clone(&store), wide(ask(&account, &format!("h{n}")), 30, 1_000));
        async move { charge(&store, ask).await }
    }))
    .await;
    assert_eq!(outcomes.iter().filter_map(left).count(), 30, "as many as the limit lets through");
    let is_limited = |outcome: &&ChargeOutcome| matches!(outcome, ChargeOutcome::Limited { .. });
    assert_eq!(outcomes.iter().filter(is_limited).count(), 60, "the others are told to wait");
    assert_eq!(balance(&store, &account, 1_000).await.pools[0].spent, 30, "and are not charged");
    audited(&store, &account).await;
}

/// One charge that is made many times at the same time is spent once.
pub async fn the_same_charge_at_once_is_made_once(store: Store) {
    let account = account(&store, "a").await;
    let outcomes = together((0..20).map(|_| {
        let (store, ask) = (Arc::clone(&store), wide(ask(&account, "h"), 1_000, 1_000));
        async move { charge(&store, ask).await }
    }))
    .await;
    assert_eq!(outcomes.iter().filter_map(left).count(), 1, "it is spent once");
    let is_known = |outcome: &&ChargeOutcome| {
        matches!(outcome, ChargeOutcome::Counted { spent: HoldOutcome::Known { .. }, .. })
    };
    assert_eq!(outcomes.iter().filter(is_known).count(), 19, "the others are told so");
    assert_eq!(balance(&store, &account, 1_000).await.pools[0].spent, 1);
    audited(&store, &account).await;
}

#[cfg(test)]
mod conformance {
    crate::charges_conformance!(super::in_memory());
}
