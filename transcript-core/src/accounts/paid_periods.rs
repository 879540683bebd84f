//! The paid period of an account: a pure function of its payments.

use std::time::Duration;

use super::BillingMonth;
use crate::{
    directory::{Account, PaidPeriod, Plan},
    time::Timestamp,
};

/// The largest lag of this server's clock behind the payment provider's.
/// A period that begins within this time counts as begun.
const CLOCK_LAG_MAX: Duration = Duration::from_secs(3600);

/// A period of a plan that was paid for and not fully refunded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanPayment {
    /// The plan; never the free one.
    pub plan: Plan,
    /// The plan's credits for a whole month, as sold.
    pub credits: u64,
    /// The credits taken back by partial refunds.
    pub refunded_credits: u64,
    /// When the period begins; for a change of plan within a paid month, the time of the change.
    pub from: Timestamp,
    /// When it ends, exclusive.
    pub through: Timestamp,
}

/// Applies the payments of an account's subscription, in any order, to the account.
///
/// Payments of past periods may be missing. The same payments again change nothing.
///
/// - A first payment, or the next one of a subscription: the new period has its own bucket, with the plan's
///   credits. Credits left of the free month or of the previous period expire.
/// - Another plan for the rest of a paid period: the same bucket, so that used credits stay used. The credits
///   change by the difference of the plans for that rest, as the price does.
/// - A period that begins before the paid one has ended: both become one period with one bucket. The old plan
///   gives its credits for the time before the new one began, the new one gives all its credits.
///
/// So switching back and forth gives exactly what the time on each plan is worth, and never resets used
/// credits. Without payments the account stays as it is: a paid period expires without a write.
#[must_use]
pub fn apply_payments(account: &Account, payments: &[PlanPayment], now: Timestamp) -> Account {
    // A period that has begun does not end when a clock is set back: its used credits stay used.
    let now = account.paid.map_or(now, |paid| now.max(paid.from));
    let mut paid: Vec<PlanPayment> = payments.to_vec();
    paid.retain(|payment| payment.plan != Plan::Free && payment.from < payment.through);
    paid.sort_unstable_by_key(|payment| (payment.from, payment.through, payment.plan));
    paid.dedup();
    let Some(PeriodRun { plan, anchor, mut period }) = PeriodRun::from_payments(&paid, account.anchor, now)
    else {
        return account.clone();
    };
    if let Some(previous) = account.paid
        && previous.from < period.from
        && period.from < previous.through
    {
        // The period began with a past payment that the provider no longer lists: keep its start, and the
        // credits of that payment.
        paid.retain(|payment| payment.through <= previous.through);
        let listed_credits =
            PeriodRun::from_payments(&paid, account.anchor, now).map_or(0, |run| run.period.credits);
        let unlisted_credits = previous.credits.saturating_sub(listed_credits);
        period = PaidPeriod {
            from: previous.from,
            credits: period.credits.saturating_add(unlisted_credits),
            ..period
        };
    }
    period.anchor_before = anchor_before(account, &period);
    Account { plan, anchor, paid: Some(period), ..account.clone() }
}

/// The anchor of the account's months before a paid period began, which may be its current one.
pub(super) fn anchor_before(account: &Account, period: &PaidPeriod) -> Timestamp {
    match account.paid {
        Some(previous) if previous.from < period.through && period.from < previous.through => {
            previous.anchor_before
        }
        _ => account.anchor,
    }
}

/// The paid period that results from payments in order of time.
struct PeriodRun {
    plan: Plan,
    /// The start of the latest month, or the anchor that it continues.
    anchor: Timestamp,
    period: PaidPeriod,
}

impl PeriodRun {
    /// The period of payments in order of time; `None` without payments.
    fn from_payments(paid: &[PlanPayment], anchor: Timestamp, now: Timestamp) -> Option<Self> {
        paid.iter().fold(None, |run: Option<Self>, payment| {
            Some(match run {
                None => Self::new(payment, anchor),
                Some(run) => run.extend(payment, now),
            })
        })
    }

    /// A period of one payment.
    fn new(payment: &PlanPayment, anchor: Timestamp) -> Self {
        let PlanPayment { plan, credits, refunded_credits, from, through } = *payment;
        // A continued month keeps its anchor: 28 February may be the "31st" of a short month.
        let is_continued = anchor <= from && BillingMonth::new(anchor, from).start == from;
        let period = PaidPeriod {
            from,
            through,
            credits: credits.saturating_sub(refunded_credits),
            monthly_credits: credits,
            anchor_before: anchor,
        };
        Self { plan, anchor: if is_continued { anchor } else { from }, period }
    }

    fn extend(self, payment: &PlanPayment, now: Timestamp) -> Self {
        let PlanPayment { plan, credits, refunded_credits, from, through } = *payment;
        let old = self.period;
        // A period that begins later is the successor, also if its month ends earlier: a month from 31 August 09:00
        // ends on 30 September 09:00, one from 30 August 18:00 ends at 18:00 of that day.
        if from >= old.through && now.plus(CLOCK_LAG_MAX) >= from {
            return Self::new(payment, self.anchor);
        }
        // The rest of the old month belongs to the new plan. If only that rest was paid for, it gives the plan's
        // credits in proportion.
        let rest = self.remaining_share(from);
        let ends_together = through == old.through;
        let granted = if ends_together { rest.apply(credits) } else { credits };
        let period = PaidPeriod {
            from: old.from,
            through,
            credits: old
                .credits
                .saturating_sub(rest.apply(old.monthly_credits))
                .saturating_add(granted)
                .saturating_sub(refunded_credits),
            monthly_credits: credits,
            anchor_before: old.anchor_before,
        };
        Self { plan, anchor: if ends_together { self.anchor } else { from }, period }
    }

    /// The part of the latest month that is left at `at`.
    fn remaining_share(&self, at: Timestamp) -> PeriodShare {
        let month_ms = self.period.through.since(self.period.from.max(self.anchor)).as_millis().max(1);
        PeriodShare { part_ms: self.period.through.since(at).as_millis().min(month_ms), month_ms }
    }
}

/// A fraction of a month.
struct PeriodShare {
    part_ms: u128,
    month_ms: u128,
}

impl PeriodShare {
    /// This fraction of a month's credits, rounded down.
    fn apply(&self, credits: u64) -> u64 {
        let credits = u128::from(credits) * self.part_ms / self.month_ms;
        u64::try_from(credits).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests;
