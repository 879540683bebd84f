//! Payment of a new transcript in the lookup API: payer, legs and refusals (specification 11, 12).

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;

use super::{
    Availability, FailureReason, Lookup,
    flow::{
        absence_response, no_supplier_response, store_failure_response, supply_failure_response,
        withdrawn_response,
    },
    visitor::Visitor,
};
use crate::{
    archive::TrackSelector,
    directory::LookupKey,
    engine::{FailedAttemptHook, FetchOutcome, FetchPayment, FetchRequest, OnFailure, PaymentLeg},
    error::Result,
    ids::WalletId,
    ledger::{
        Leg, Terms,
        terms::{self, AllowancePeriod},
    },
    limits::LimitRequest,
    time::Timestamp,
    video::{Platform, VideoId},
};

/// The wallet of the daily cap.
const SERVICE_WALLET: &str = "service";

/// The payer of a new transcript.
#[derive(Clone, Copy, Debug)]
pub(super) enum LookupPayer<'a> {
    /// A key, with its allowance.
    Key(&'a LookupKey),
    /// A visitor of the watch page, with their own allowance and their network's.
    Visitor(&'a Visitor),
}

impl Lookup {
    /// Fetches the default transcript, for 1 of the payer's allowance and 1 of the daily cap.
    ///
    /// Also returns whether a transcript in another language would be a better response.
    pub(super) async fn fetch(
        &self,
        video: &VideoId,
        payer: LookupPayer<'_>,
        wait_timeout: Duration,
        counted: bool,
    ) -> Result<(Availability, bool)> {
        let transcripts = &self.deps.transcripts;
        if !transcripts.has_supplier(video.platform()) {
            return Ok((no_supplier_response(video.platform()), true));
        }
        // Resolving a short link was already counted as this lookup's attempt, even if it was the last one.
        if let LookupPayer::Key(key) = payer
            && !counted
            && let Some(refusal) = self.check_failed_attempts(key).await?
        {
            return Ok((refusal, true));
        }
        let payment = Some(self.payment(video, payer, counted));
        let fetch = FetchRequest { video: video.clone(), selector: TrackSelector::Default, payment };
        let outcome = transcripts.fetch_missing_within(fetch, wait_timeout).await;
        // While the work goes on, the transcript that the caller will be charged for is still to come.
        let is_over = !matches!(outcome, FetchOutcome::InProgress(_) | FetchOutcome::Withdrawn);
        let answer = self.outcome(outcome, video.platform(), payer);
        let other_language_helps = is_over && matches!(answer, Availability::Unavailable { .. });
        Ok((answer, other_language_helps))
    }

    /// The payment of a fetch.
    ///
    /// The allowance limits successes; the count of failed attempts or the network's allowance limits failures. Without
    /// an attempt nothing is charged.
    fn payment(&self, video: &VideoId, payer: LookupPayer<'_>, counted: bool) -> FetchPayment {
        let now = self.deps.clock.now();
        let options = &self.deps.options;
        let mut legs = match payer {
            LookupPayer::Key(key) => {
                vec![leg(key.wallet.clone(), self.key_terms(key, now), OnFailure::Return)]
            }
            LookupPayer::Visitor(visitor) => {
                let visitor_terms = terms::allowance(AllowancePeriod::Day, options.visitor_per_day, now);
                vec![leg(visitor.wallet(), visitor_terms, OnFailure::Return)]
            }
        };
        if let LookupPayer::Visitor(visitor) = payer {
            // A visitor that deletes the cookie keeps the network: failed attempts are counted there.
            legs.extend(self.network_wallets(visitor.client, now).into_iter().map(|(wallet, limit)| {
                leg(wallet, terms::allowance(AllowancePeriod::Day, limit, now), OnFailure::SpendIfAttempted)
            }));
        }
        let service = terms::allowance(AllowancePeriod::Day, options.service_per_day, now);
        legs.push(leg(WalletId::new(SERVICE_WALLET), service, OnFailure::SpendIfAttempted));
        let failure_hook = match payer {
            LookupPayer::Key(key) if !counted => {
                let attempt = self.attempt_limit_request(key);
                let count: Arc<dyn FailedAttemptHook> =
                    Arc::new(CountFailedAttempt { lookup: self.clone(), attempt });
                Some(count)
            }
            LookupPayer::Key(_) | LookupPayer::Visitor(_) => None,
        };
        FetchPayment { legs, memo: format!("transcript {video}"), failure_hook }
    }

    /// The response for the engine's outcome.
    fn outcome(&self, outcome: FetchOutcome, platform: Platform, payer: LookupPayer<'_>) -> Availability {
        let now = self.deps.clock.now();
        match outcome {
            FetchOutcome::Archived(stored) => Availability::Available { stored, from_cache: true },
            FetchOutcome::Fetched(stored) => Availability::Available { stored, from_cache: false },
            FetchOutcome::Absent(absence) => absence_response(absence, now),
            FetchOutcome::Withdrawn => withdrawn_response(),
            FetchOutcome::SupplyFailed(failure) => supply_failure_response(&failure, now),
            FetchOutcome::Refused { leg, .. } => self.refusal(leg, payer, now),
            FetchOutcome::NoSupplier => no_supplier_response(platform),
            FetchOutcome::InProgress(work) => {
                let none = Availability::none(FailureReason::FetchError, work.message(None));
                none.with_retry_after(Some(work.retry_after)).with_detail("still_working")
            }
            FetchOutcome::StoreFailed(error) => store_failure_response(&error),
        }
    }

    /// The refusal when a leg is spent.
    fn refusal(&self, leg: u32, payer: LookupPayer<'_>, now: Timestamp) -> Availability {
        const FREE: &str = "Archived transcripts stay free.";
        let networks = |visitor: &Visitor| self.networks.digests(visitor.client, now).len();
        let tomorrow = || AllowancePeriod::Day.end(now).since(now);
        match (payer, usize::try_from(leg).unwrap_or(usize::MAX)) {
            (LookupPayer::Key(key), 0) => {
                let terms = self.key_terms(key, now);
                let until = terms.resets_at.map_or(String::new(), |at| format!("; it resets at {at}"));
                let message =
                    format!("This API key has used its allowance of new transcripts{until}. {FREE}");
                Availability::none(FailureReason::KeyAllowance, message)
            }
            (LookupPayer::Visitor(_), 0) => {
                let message = match self.deps.options.visitor_per_day {
                    1 => {
                        format!(
                            "You have used your new transcript for today. Try again after midnight UTC. {FREE}"
                        )
                    }
                    count => {
                        format!(
                            "You have used your {count} new transcripts for today. Try again after midnight UTC. \
                             {FREE}"
                        )
                    }
                };
                Availability::none(FailureReason::Allowance, message).with_retry_after(Some(tomorrow()))
            }
            (LookupPayer::Visitor(visitor), leg) if leg <= networks(visitor) => {
                let message = format!(
                    "Your network has used its new transcripts for today. Try again after midnight UTC. {FREE}"
                );
                Availability::none(FailureReason::FairUse, message).with_retry_after(Some(tomorrow()))
            }
            _ => Availability::none(
                FailureReason::DailyCap,
                "The service has reached its daily limit of new transcripts. Try again after midnight UTC.",
            ),
        }
    }
}

fn leg(wallet: WalletId, terms: Terms, on_failure: OnFailure) -> PaymentLeg {
    PaymentLeg { leg: Leg { wallet, terms, amount: 1 }, on_failure }
}

/// Counts a failed attempt of a key.
#[derive(Debug)]
struct CountFailedAttempt {
    lookup: Lookup,
    attempt: LimitRequest,
}

#[async_trait]
impl FailedAttemptHook for CountFailedAttempt {
    async fn on_failed_attempt(&self) {
        // The response must not depend on an available limiter.
        let _ = self.lookup.check_limits(vec![self.attempt.clone()], self.lookup.deps.clock.now()).await;
    }
}
