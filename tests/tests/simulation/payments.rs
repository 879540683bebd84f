//! Simulated purchases: packs and plans, through the payment rules and a provider whose events arrive
//! late, twice, or not before the end.

use std::collections::BTreeSet;

use tokio::time::timeout;
use transcript_core::{
    PageRequest,
    accounts::{
        OrderState, PlanPayment, apply_payments,
        payments::{BuyOutcome, Pack, ProviderObject, SubscribeOutcome, WebhookOutcome},
    },
    directory::{Account, AccountRef, Plan},
    ids::OrderId,
    ledger::EntryKind,
};

use super::{
    accounts::{SimAccount, call_timeout},
    world::ProcessLife,
};
use crate::payments::fixture::call;

/// Amount of a pack's price that is refunded at once, in cents, so that the rest can be spent at the end.
const REFUND_CENTS: u64 = 1_198;
/// Remaining credits of a pack of 1,000 for 1,200 cents: 1,000 - floor(1,000 × 1,198 ÷ 1,200).
const CREDITS_LEFT: u64 = 2;

/// Purchases of one account.
#[derive(Debug, Default)]
pub(crate) struct SimPayment {
    /// The provider events; each may be delivered again.
    events: Vec<ProviderObject>,
    packs: Vec<OrderId>,
    refunded: BTreeSet<OrderId>,
    plans: Vec<OrderId>,
}

/// Pays a plan: a first month, or a change of plan.
pub(crate) async fn pay(life: &ProcessLife, engine: usize, account: &SimAccount, plan: Plan, number: u64) {
    let (payments, limit) = (&life.payments[engine % life.payments.len()], call_timeout(life));
    let Some(buyer) = buyer(life, account).await else { return };
    let id = OrderId::new(format!("plan-{number}"));
    let Ok(Ok(SubscribeOutcome::Opened(sold))) = timeout(limit, payments.subscribe(&buyer, plan, id)).await
    else {
        return;
    };
    let events = life.world.provider.pay_at(&sold.order, life.now(), None, false);
    account.paid(|paid| {
        paid.plans.push(sold.order.clone());
        paid.events.extend(events.clone());
    });
    if deliver(life, engine, &events).await {
        life.world.oracle.reach("paid a plan");
    }
}

/// Pays a pack and refunds most of its price.
pub(crate) async fn buy(life: &ProcessLife, engine: usize, account: &SimAccount, number: u64) {
    let (payments, limit) = (&life.payments[engine % life.payments.len()], call_timeout(life));
    let Some(buyer) = buyer(life, account).await else { return };
    let (id, pack) = (OrderId::new(format!("pack-{number}")), Pack::from_wire("1k").unwrap());
    let Ok(Ok(BuyOutcome::Opened(sold))) = timeout(limit, payments.buy(&buyer, pack, id)).await else {
        return;
    };
    let paid = life.world.provider.pay_at(&sold.order, life.now(), None, false);
    account.paid(|all| {
        all.packs.push(sold.order.clone());
        all.events.extend(paid.clone());
    });
    let acknowledged = deliver(life, engine, &paid).await;
    let refund_events = refund(life, account, &sold.order);
    if acknowledged && deliver(life, engine + 1, &refund_events).await {
        life.world.oracle.reach("bought a pack");
    }
}

/// Refunds most of a pack's price, once.
fn refund(life: &ProcessLife, account: &SimAccount, order: &OrderId) -> Vec<ProviderObject> {
    let is_first = account.paid(|paid| paid.refunded.insert(order.clone()));
    if is_first { life.world.provider.refund(order, REFUND_CENTS) } else { Vec::new() }
}

async fn buyer(life: &ProcessLife, account: &SimAccount) -> Option<Account> {
    let account_ref = AccountRef::Id(account.id.clone());
    timeout(call_timeout(life), life.world.directory.account(&account_ref)).await.ok()?.ok()?
}

/// Delivers events in reverse order; returns whether all were acknowledged.
async fn deliver(life: &ProcessLife, engine: usize, events: &[ProviderObject]) -> bool {
    let (payments, mut all) = (&life.payments[engine % life.payments.len()], true);
    for event in events.iter().rev() {
        let outcome = timeout(call_timeout(life), payments.handle_webhook(call(event))).await;
        all &= matches!(outcome, Ok(Ok(WebhookOutcome::Events(_))));
    }
    all
}

/// Final check: delivers every event once more; every paid order must be fulfilled exactly once.
pub(crate) async fn check_fulfilled(life: &ProcessLife, account: &SimAccount) {
    let (oracle, provider) = (&life.world.oracle, &life.world.provider);
    let (events, packs, plans) =
        account.paid(|paid| (paid.events.clone(), paid.packs.clone(), paid.plans.clone()));
    for pack in &packs {
        refund(life, account, pack);
    }
    if !deliver(life, 0, &events).await {
        oracle.report("an event was not acknowledged without injected faults");
    }
    let stored = buyer(life, account).await.unwrap();
    let months: Vec<PlanPayment> =
        provider.months(account.id.as_str()).iter().map(|month| month_of(life, month)).collect();
    let anchor = stored.paid.map_or(stored.anchor, |paid| paid.anchor_before);
    let free_account = Account { plan: Plan::Free, paid: None, anchor, ..stored.clone() };
    let expect = apply_payments(&free_account, &months, life.now());
    if (stored.plan, stored.paid) != (expect.plan, expect.paid) {
        oracle.report(format_args!("{months:?} were paid and resulted in {stored:?}"));
    }
    let entries = life.world.ledger.entries(&account.wallet, PageRequest::first()).await.unwrap().items;
    for (order, state) in packs
        .iter()
        .map(|pack| (pack, OrderState::Refunded))
        .chain(plans.iter().map(|plan| (plan, OrderState::Fulfilled)))
    {
        let found = life.world.orders.order(order).await.unwrap().unwrap();
        if found.state != state {
            oracle.report(format_args!("a paid order ended as {found:?}"));
        }
        let granted: u64 = entries
            .iter()
            .filter(|entry| entry.kind == EntryKind::Granted && entry.cause == order.as_str())
            .map(|entry| entry.amount)
            .sum();
        let (sold, revoked) = match state {
            OrderState::Refunded => (1_000, vec![1_000 - CREDITS_LEFT]),
            _ => (0, Vec::new()),
        };
        if (granted, &found.refunded_credits) != (sold, &revoked) {
            oracle.report(format_args!("{granted} credits were granted for {found:?}"));
        }
    }
}

fn month_of(life: &ProcessLife, invoice: &transcript_core::accounts::payments::PaidInvoice) -> PlanPayment {
    PlanPayment {
        plan: invoice.plan,
        credits: life.world.config.accounts.plans.terms(invoice.plan).credits,
        refunded_credits: 0,
        from: invoice.period_start,
        through: invoice.period_end,
    }
}
