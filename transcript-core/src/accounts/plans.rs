//! What a payment for a plan makes of an account: a pure function, told by what was paid for.

use std::time::Duration;

use super::Month;
use crate::{
    directory::{Account, PaidPeriod, Plan},
    time::Timestamp,
};

/// By how much our clock may lag behind the payment provider's: a period that begins within this time has
/// begun.
const CLOCKS_APART: Duration = Duration::from_secs(3600);

/// A stretch of a plan that is paid for, as the payment provider tells of the subscription now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanPayment {
    /// The plan; never the free one.
    pub plan: Plan,
    /// A month's credits, as they were sold.
    pub credits: u64,
    /// When the paid stretch begins.
    pub from: Timestamp,
    /// When it ends; later than it begins.
    pub through: Timestamp,
    /// When the payment took effect: the present moment.
    pub at: Timestamp,
}

/// The account after a payment for a plan. The same payment again changes nothing, nor does an older one.
///
/// - A first payment, or the next one of a subscription: the new period has a bucket of its own with the
///   plan's credits. What is left of the free month, or of the period before, ends.
/// - Another plan within the period that is paid for already: the same bucket, so that what was used stays
///   used. Its credits change by the difference of the plans for the rest of the period, as the price does.
/// - A period that begins before the paid one has ended: both become one, with one bucket. The old plan gives
///   its credits for the time before the new one, the new plan gives all of its own.
#[must_use]
pub fn after_payment(account: &Account, payment: &PlanPayment) -> Account {
    let PlanPayment { plan, credits, from, through, .. } = *payment;
    if plan == Plan::Free || through <= from {
        return account.clone();
    }
    let period = PaidPeriod { from, through, credits, monthly_credits: credits };
    let (anchor, paid) = match account.paid {
        None => (from, period),
        Some(old) if from < old.from || from < old.through && through < old.through => {
            return account.clone();
        }
        Some(old) if through == old.through && plan == account.plan => return account.clone(),
        Some(old) if through == old.through => {
            (account.anchor, changed_within(&old, account.anchor, payment))
        }
        Some(old) if from >= old.through && payment.at.plus(CLOCKS_APART) >= from => {
            // A month that goes on keeps its day: 28 February may be the 31st of a short month.
            let goes_on = Month::of(account.anchor, from).start == from;
            (if goes_on { account.anchor } else { from }, period)
        }
        Some(old) => (from, merged(&old, account.anchor, payment)),
    };
    Account { plan, anchor, paid: Some(paid), ..account.clone() }
}

/// The paid period after a change to another plan within it.
fn changed_within(old: &PaidPeriod, anchor: Timestamp, payment: &PlanPayment) -> PaidPeriod {
    let rest = share(old, anchor, payment.at);
    let given = rest.of(payment.credits);
    let taken = rest.of(old.monthly_credits);
    PaidPeriod {
        credits: old.credits.saturating_add(given).saturating_sub(taken),
        monthly_credits: payment.credits,
        ..*old
    }
}

/// One period of two that overlap, or of which the second was paid long before it begins.
fn merged(old: &PaidPeriod, anchor: Timestamp, payment: &PlanPayment) -> PaidPeriod {
    let taken = share(old, anchor, payment.from).of(old.monthly_credits);
    PaidPeriod {
        from: old.from,
        through: payment.through,
        credits: old.credits.saturating_sub(taken).saturating_add(payment.credits),
        monthly_credits: payment.credits,
    }
}

/// A part of a month.
struct Share {
    part_ms: u128,
    month_ms: u128,
}

impl Share {
    /// This part of a month's credits, rounded down.
    fn of(&self, credits: u64) -> u64 {
        let credits = u128::from(credits) * self.part_ms / self.month_ms;
        u64::try_from(credits).unwrap_or(u64::MAX)
    }
}

/// Which part of the last month of a paid period is left at a moment.
fn share(paid: &PaidPeriod, anchor: Timestamp, at: Timestamp) -> Share {
    // A period that two were merged into is longer than a month: its last one begins at the anchor.
    let month = paid.through.since(paid.from.max(anchor)).as_millis().max(1);
    Share { part_ms: paid.through.since(at).as_millis().min(month), month_ms: month }
}
