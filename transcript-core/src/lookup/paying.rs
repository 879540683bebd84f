//! Who pays for a new transcript on Surface A, with which legs, and what a spent one is answered (design 3, 4).

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;

use super::{
    Availability, FailureReason, Lookup,
    visitor::Visitor,
    way::{absent, failed, stores_away, unsupplied, withdrawn},
};
use crate::{
    archive::Wish,
    directory::LookupKey,
    engine::{Fetch, InVain, OnFailure, Outcome, Payment, PaymentLeg},
    error::Result,
    ids::WalletId,
    ledger::{
        Leg, Terms,
        terms::{self, Period},
    },
    limits::Take,
    time::Timestamp,
    video::{Platform, VideoId},
};

/// The wallet of the daily cap.
const SERVICE_WALLET: &str = "service";

/// Who pays.
#[derive(Clone, Copy, Debug)]
pub(super) enum Spender<'a> {
    /// A key, of its allowance.
    Key(&'a LookupKey),
    /// A visitor of the watch page, of their own allowance and their network's.
    Visitor(&'a Visitor),
}

impl Lookup {
    /// Has the default transcript fetched, at the cost of 1 of the spender's allowance and of the daily cap.
    /// Returns also whether a transcript in another language would be a better answer.
    pub(super) async fn fetch(
        &self,
        video: &VideoId,
        spender: Spender<'_>,
        patience: Duration,
        counted: bool,
    ) -> Result<(Availability, bool)> {
        let transcripts = &self.parts.transcripts;
        if !transcripts.covers(video.platform()) {
            return Ok((unsupplied(video.platform()), true));
        }
        // A short link that was followed is this look-up's attempt already, be it the last one.
        if let Spender::Key(key) = spender
            && !counted
            && let Some(refusal) = self.failed_too_often(key).await?
        {
            return Ok((refusal, true));
        }
        let payment = Some(self.payment(video, spender, counted));
        let fetch = Fetch { video: video.clone(), wish: Wish::Default, payment };
        let outcome = transcripts.get_unknown_within(fetch, patience).await;
        // While the work goes on, the answer that it will be charged for is still to come.
        let is_over = !matches!(outcome, Outcome::StillWorking(_) | Outcome::Withdrawn);
        let answer = self.outcome(outcome, video.platform(), spender);
        let others_help = is_over && matches!(answer, Availability::Unavailable { .. });
        Ok((answer, others_help))
    }

    /// What succeeds is bounded by the allowance, what fails by the count of failures or by what the network may
    /// spend, and what nobody was asked for costs nothing.
    fn payment(&self, video: &VideoId, spender: Spender<'_>, counted: bool) -> Payment {
        let now = self.parts.clock.now();
        let options = &self.parts.options;
        let mut legs = match spender {
            Spender::Key(key) => vec![leg(key.wallet.clone(), self.key_terms(key, now), OnFailure::Return)],
            Spender::Visitor(visitor) => {
                let own = terms::allowance(Period::Day, options.visitor_per_day, now);
                vec![leg(visitor.wallet(), own, OnFailure::Return)]
            }
        };
        if let Spender::Visitor(visitor) = spender {
            // Whoever throws their cookie away keeps their network: what was asked in vain is counted there.
            legs.extend(self.network_wallets(visitor.client, now).into_iter().map(|(wallet, limit)| {
                leg(wallet, terms::allowance(Period::Day, limit, now), OnFailure::SpendOnceAsked)
            }));
        }
        let service = terms::allowance(Period::Day, options.service_per_day, now);
        legs.push(leg(WalletId::new(SERVICE_WALLET), service, OnFailure::SpendOnceAsked));
        let in_vain = match spender {
            Spender::Key(key) if !counted => {
                let attempt = self.attempt(key);
                let count: Arc<dyn InVain> = Arc::new(CountAttempt { lookup: self.clone(), attempt });
                Some(count)
            }
            Spender::Key(_) | Spender::Visitor(_) => None,
        };
        Payment { legs, memo: format!("transcript {video}"), in_vain }
    }

    /// What the engine's outcome is on Surface A.
    fn outcome(&self, outcome: Outcome, platform: Platform, spender: Spender<'_>) -> Availability {
        let now = self.parts.clock.now();
        match outcome {
            Outcome::Archived(stored) => Availability::Available { stored, from_cache: true },
            Outcome::Fetched(stored) => Availability::Available { stored, from_cache: false },
            Outcome::Absent(absence) => absent(absence, now),
            Outcome::Withdrawn => withdrawn(),
            Outcome::Failed(failure) => failed(&failure, now),
            Outcome::Refused { leg, .. } => self.spent(leg, spender, now),
            Outcome::Unsupplied => unsupplied(platform),
            Outcome::StillWorking(still) => {
                let none = Availability::none(FailureReason::FetchError, still.sentence(None));
                none.again_after(Some(still.again_after)).in_detail("still_working")
            }
            Outcome::Broken(error) => stores_away(&error),
        }
    }

    /// What is told when a leg is spent.
    fn spent(&self, leg: u32, spender: Spender<'_>, now: Timestamp) -> Availability {
        const FREE: &str = "(archived transcripts stay free)";
        let networks = |visitor: &Visitor| self.networks.names(visitor.client, now).len();
        let tomorrow = || Period::Day.ends(now).since(now);
        match (spender, usize::try_from(leg).unwrap_or(usize::MAX)) {
            (Spender::Key(key), 0) => {
                let terms = self.key_terms(key, now);
                let until = terms.resets_at.map_or(String::new(), |at| format!(" until {at}"));
                let message = format!("This key's allowance of new transcripts is spent{until} {FREE}.");
                Availability::none(FailureReason::KeyAllowance, message)
            }
            (Spender::Visitor(_), 0) => {
                let message = match self.parts.options.visitor_per_day {
                    1 => {
                        format!("You have had your new transcript of today: more after midnight UTC {FREE}.")
                    }
                    count => {
                        format!(
                            "You have had your {count} new transcripts of today: more after midnight UTC {FREE}."
                        )
                    }
                };
                Availability::none(FailureReason::Allowance, message).again_after(Some(tomorrow()))
            }
            (Spender::Visitor(visitor), leg) if leg <= networks(visitor) => {
                let message = format!(
                    "Your network has asked for as many new transcripts today as it may: more after midnight UTC {FREE}."
                );
                Availability::none(FailureReason::FairUse, message).again_after(Some(tomorrow()))
            }
            _ => Availability::none(
                FailureReason::DailyCap,
                "The service has made as many new transcripts today as it may: please try again after midnight UTC.",
            ),
        }
    }
}

fn leg(wallet: WalletId, terms: Terms, on_failure: OnFailure) -> PaymentLeg {
    PaymentLeg { leg: Leg { wallet, terms, amount: 1 }, on_failure }
}

/// Counts an attempt of a key in vain.
#[derive(Debug)]
struct CountAttempt {
    lookup: Lookup,
    attempt: Take,
}

#[async_trait]
impl InVain for CountAttempt {
    async fn asked_in_vain(&self) {
        // A limiter that is away is no reason to withhold the answer.
        let _ = self.lookup.limited(vec![self.attempt.clone()], self.lookup.parts.clock.now()).await;
    }
}
