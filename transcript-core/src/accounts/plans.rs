//! What payments for plans make of an account: a pure function of what was paid.

use std::time::Duration;

use super::Month;
use crate::{
    directory::{Account, PaidPeriod, Plan},
    time::Timestamp,
};

/// By how much our clock may lag behind the payment provider's: a period that begins within this time has
/// begun.
const CLOCKS_APART: Duration = Duration::from_secs(3600);

/// A stretch of a plan that was paid for, and whose money did not go back whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanPayment {
    /// The plan; never the free one.
    pub plan: Plan,
    /// A whole month's credits of the plan, as they were sold.
    pub credits: u64,
    /// How many credits a refund in part took back.
    pub credits_back: u64,
    /// When the stretch begins; for a change of the plan within a month that is paid already, the moment of
    /// the change.
    pub from: Timestamp,
    /// When it ends; that moment is no longer in it.
    pub through: Timestamp,
}

/// The account after these payments for its subscription, in any order. Those whose time is over may be
/// missing. The same payments again change nothing.
///
/// - A first payment, or the next one of a subscription: the new period has a bucket of its own, with the
///   plan's credits. What is left of the free month, or of the period before, ends.
/// - Another plan for the rest of a period that is paid already: the same bucket, so that what was used
///   stays used. Its credits change by the difference of the plans for that rest, as the price does.
/// - A period that begins before the paid one has ended: both become one, with one bucket. The old plan gives
///   its credits for the time before the new one began, the new one gives all of its own.
///
/// So switching back and forth gives exactly what the time on each plan is worth, and never resets what was
/// used. Without a payment the account stays as it is: a paid period ends by itself.
#[must_use]
pub fn after_payments(account: &Account, payments: &[PlanPayment], now: Timestamp) -> Account {
    // A month that has begun does not end because a clock was put back: what was used in it stays used.
    let now = account.paid.map_or(now, |paid| now.max(paid.from));
    let mut paid: Vec<PlanPayment> = payments.to_vec();
    paid.retain(|payment| payment.plan != Plan::Free && payment.from < payment.through);
    paid.sort_unstable_by_key(|payment| (payment.from, payment.through, payment.plan));
    paid.dedup();
    let Some(Run { plan, anchor, mut period }) = Run::of(&paid, account.anchor, now) else {
        return account.clone();
    };
    if let Some(known) = account.paid
        && known.from < period.from
        && period.from < known.through
    {
        // It began with a payment whose time is over, and which is no longer told: it goes on as it began,
        // with what that payment gave.
        paid.retain(|payment| payment.through <= known.through);
        let told = Run::of(&paid, account.anchor, now).map_or(0, |run| run.period.credits);
        let untold = known.credits.saturating_sub(told);
        period = PaidPeriod { from: known.from, credits: period.credits.saturating_add(untold), ..period };
    }
    period.anchor_before = anchor_before(account, &period);
    Account { plan, anchor, paid: Some(period), ..account.clone() }
}

/// What an account's months were counted from before a paid stretch began, which may be the one that it has.
pub(super) fn anchor_before(account: &Account, period: &PaidPeriod) -> Timestamp {
    match account.paid {
        Some(known) if known.from < period.through && period.from < known.through => known.anchor_before,
        _ => account.anchor,
    }
}

/// The paid period that payments add up to, one by one in the order of time.
struct Run {
    plan: Plan,
    /// When the latest month began, or what the months are counted from when it goes on.
    anchor: Timestamp,
    period: PaidPeriod,
}

impl Run {
    /// What payments in the order of time add up to; none when there are none.
    fn of(paid: &[PlanPayment], anchor: Timestamp, now: Timestamp) -> Option<Self> {
        paid.iter().fold(None, |run: Option<Self>, payment| {
            Some(match run {
                None => Self::begin(payment, anchor),
                Some(run) => run.and_then(payment, now),
            })
        })
    }

    /// A period of its own.
    fn begin(payment: &PlanPayment, anchor: Timestamp) -> Self {
        let PlanPayment { plan, credits, credits_back, from, through } = *payment;
        // A month that goes on keeps its day: 28 February may be the 31st of a short month.
        let goes_on = anchor <= from && Month::of(anchor, from).start == from;
        let period = PaidPeriod {
            from,
            through,
            credits: credits.saturating_sub(credits_back),
            monthly_credits: credits,
            anchor_before: anchor,
        };
        Self { plan, anchor: if goes_on { anchor } else { from }, period }
    }

    fn and_then(self, payment: &PlanPayment, now: Timestamp) -> Self {
        let PlanPayment { plan, credits, credits_back, from, through } = *payment;
        let old = self.period;
        // What begins later is the successor, also where its month ends earlier: one from 31 August 09:00 ends on
        // 30 September 09:00, one from 30 August 18:00 at 18:00 of that day.
        if from >= old.through && now.plus(CLOCKS_APART) >= from {
            return Self::begin(payment, self.anchor);
        }
        // What is left of the old month is the new plan's; when that is all that was paid for, it gives no
        // more than that.
        let rest = self.rest(from);
        let within = through == old.through;
        let given = if within { rest.of(credits) } else { credits };
        let period = PaidPeriod {
            from: old.from,
            through,
            credits: old
                .credits
                .saturating_sub(rest.of(old.monthly_credits))
                .saturating_add(given)
                .saturating_sub(credits_back),
            monthly_credits: credits,
            anchor_before: old.anchor_before,
        };
        Self { plan, anchor: if within { self.anchor } else { from }, period }
    }

    /// Which part of the latest month is left at a moment.
    fn rest(&self, at: Timestamp) -> Share {
        let month_ms = self.period.through.since(self.period.from.max(self.anchor)).as_millis().max(1);
        Share { part_ms: self.period.through.since(at).as_millis().min(month_ms), month_ms }
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

#[cfg(test)]
mod tests;
