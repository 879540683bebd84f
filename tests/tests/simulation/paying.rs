//! What people pay for in a simulation: packs and plans, through the rules of payments and a provider whose
//! events are heard late, twice, or not before the end.

use std::collections::BTreeSet;

use tokio::time::timeout;
use transcript_core::{
    PageRequest,
    accounts::{
        OrderState, PlanPayment, after_payments,
        payments::{BuyOutcome, Heard, Pack, Subject, SubscribeOutcome},
    },
    directory::{Account, AccountRef, Plan},
    ids::OrderId,
    ledger::EntryKind,
};

use super::{
    accounts::{SimAccount, patience},
    world::Life,
};
use crate::payments::shop::call;

/// How much of a pack's price goes back at once, in cents, so that it can be spent whole in the end.
const BACK: u64 = 1_198;
/// What is left of a pack of 1,000 credits for 1,200 cents then: 1,000 - floor(1,000 × 1,198 ÷ 1,200).
const LEFT: u64 = 2;

/// What somebody paid for.
#[derive(Debug, Default)]
pub(crate) struct Paid {
    /// The events that tell of it; each may come again.
    events: Vec<Subject>,
    packs: Vec<OrderId>,
    refunded: BTreeSet<OrderId>,
    plans: Vec<OrderId>,
}

/// A plan is paid: a first month, or another plan from now on.
pub(crate) async fn pay(life: &Life, engine: usize, account: &SimAccount, plan: Plan, number: u64) {
    let (payments, most) = (&life.payments[engine % life.payments.len()], patience(life));
    let Some(buyer) = buyer(life, account).await else { return };
    let id = OrderId::new(format!("plan-{number}"));
    let Ok(Ok(SubscribeOutcome::Opened(sold))) = timeout(most, payments.subscribe(&buyer, plan, id)).await
    else {
        return;
    };
    let events = life.world.provider.pay_at(&sold.order, life.now(), None, false);
    account.paid(|paid| {
        paid.plans.push(sold.order.clone());
        paid.events.extend(events.clone());
    });
    if hear(life, engine, &events).await {
        life.world.oracle.reach("paid a plan");
    }
}

/// A pack is paid, and most of its money goes back.
pub(crate) async fn buy(life: &Life, engine: usize, account: &SimAccount, number: u64) {
    let (payments, most) = (&life.payments[engine % life.payments.len()], patience(life));
    let Some(buyer) = buyer(life, account).await else { return };
    let (id, pack) = (OrderId::new(format!("pack-{number}")), Pack::from_wire("1k").unwrap());
    let Ok(Ok(BuyOutcome::Opened(sold))) = timeout(most, payments.buy(&buyer, pack, id)).await else {
        return;
    };
    let paid = life.world.provider.pay_at(&sold.order, life.now(), None, false);
    account.paid(|all| {
        all.packs.push(sold.order.clone());
        all.events.extend(paid.clone());
    });
    let is_heard = hear(life, engine, &paid).await;
    let back = refund(life, account, &sold.order);
    if is_heard && hear(life, engine + 1, &back).await {
        life.world.oracle.reach("bought a pack");
    }
}

/// Most of a pack's money goes back, once.
fn refund(life: &Life, account: &SimAccount, order: &OrderId) -> Vec<Subject> {
    let is_first = account.paid(|paid| paid.refunded.insert(order.clone()));
    if is_first { life.world.provider.refund(order, BACK) } else { Vec::new() }
}

async fn buyer(life: &Life, account: &SimAccount) -> Option<Account> {
    let who = AccountRef::Id(account.id.clone());
    timeout(patience(life), life.world.directory.account(&who)).await.ok()?.ok()?
}

/// Delivers events, the last one first; whether all were acknowledged.
async fn hear(life: &Life, engine: usize, events: &[Subject]) -> bool {
    let (payments, mut all) = (&life.payments[engine % life.payments.len()], true);
    for event in events.iter().rev() {
        let heard = timeout(patience(life), payments.hear(call(event))).await;
        all &= matches!(heard, Ok(Ok(Heard::About(_))));
    }
    all
}

/// After all: every event is delivered once more, and everything that was paid was given, once.
pub(crate) async fn check_paid(life: &Life, account: &SimAccount) {
    let (oracle, provider) = (&life.world.oracle, &life.world.provider);
    let (events, packs, plans) =
        account.paid(|paid| (paid.events.clone(), paid.packs.clone(), paid.plans.clone()));
    for pack in &packs {
        refund(life, account, pack);
    }
    if !hear(life, 0, &events).await {
        oracle.wrong("in calm weather an event is not acknowledged");
    }
    let stored = buyer(life, account).await.unwrap();
    let months: Vec<PlanPayment> =
        provider.months(account.id.as_str()).iter().map(|month| month_of(life, month)).collect();
    let anchor = stored.paid.map_or(stored.anchor, |paid| paid.anchor_before);
    let nobody = Account { plan: Plan::Free, paid: None, anchor, ..stored.clone() };
    let expect = after_payments(&nobody, &months, life.now());
    if (stored.plan, stored.paid) != (expect.plan, expect.paid) {
        oracle.wrong(format_args!("{months:?} were paid and gave {stored:?}"));
    }
    let entries = life.world.ledger.entries(&account.wallet, PageRequest::first()).await.unwrap().items;
    for (order, state) in packs
        .iter()
        .map(|pack| (pack, OrderState::Refunded))
        .chain(plans.iter().map(|plan| (plan, OrderState::Fulfilled)))
    {
        let found = life.world.orders.order(order).await.unwrap().unwrap();
        if found.state != state {
            oracle.wrong(format_args!("a paid order came to {found:?}"));
        }
        let granted: u64 = entries
            .iter()
            .filter(|entry| entry.kind == EntryKind::Granted && entry.cause == order.as_str())
            .map(|entry| entry.amount)
            .sum();
        let (sold, back) = match state {
            OrderState::Refunded => (1_000, vec![1_000 - LEFT]),
            _ => (0, Vec::new()),
        };
        if (granted, &found.taken_back) != (sold, &back) {
            oracle.wrong(format_args!("{granted} credits were granted for {found:?}"));
        }
    }
}

fn month_of(life: &Life, invoice: &transcript_core::accounts::payments::PaidInvoice) -> PlanPayment {
    PlanPayment {
        plan: invoice.plan,
        credits: life.world.plan.accounts.plans.of(invoice.plan).credits,
        credits_back: 0,
        from: invoice.period_start,
        through: invoice.period_end,
    }
}
