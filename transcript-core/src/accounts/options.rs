//! The settings of Surface B.

use std::time::Duration;

use crate::directory::Plan;

/// What a plan gives and costs (`plans.{name}.…`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanTerms {
    /// Credits a month.
    pub credits: u64,
    /// Requests in any 60 seconds, over all authenticated endpoints.
    pub requests_per_minute: u32,
    /// The price of a month in US cents; none: it is not for sale.
    pub price_cents: Option<u64>,
}

/// The terms of all plans (specification 3; design 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanTable {
    /// The plan of every new account.
    pub free: PlanTerms,
    /// The smallest paid plan.
    pub starter: PlanTerms,
    /// The middle paid plan.
    pub pro: PlanTerms,
    /// The largest paid plan.
    pub scale: PlanTerms,
}

impl PlanTable {
    /// The terms of a plan.
    pub fn of(&self, plan: Plan) -> &PlanTerms {
        match plan {
            Plan::Free => &self.free,
            Plan::Starter => &self.starter,
            Plan::Pro => &self.pro,
            Plan::Scale => &self.scale,
        }
    }

    /// The terms of a plan, to be set.
    pub fn of_mut(&mut self, plan: Plan) -> &mut PlanTerms {
        match plan {
            Plan::Free => &mut self.free,
            Plan::Starter => &mut self.starter,
            Plan::Pro => &mut self.pro,
            Plan::Scale => &mut self.scale,
        }
    }
}

impl Default for PlanTable {
    fn default() -> Self {
        let plan =
            |credits, requests_per_minute| PlanTerms { credits, requests_per_minute, price_cents: None };
        Self {
            free: plan(200, 10),
            starter: plan(2_000, 100),
            pro: plan(10_000, 100),
            scale: plan(50_000, 100),
        }
    }
}

/// Plans, prices and limits of Surface B; the defaults are the specification's (section 8) and the design's.
#[derive(Clone, Debug)]
pub struct AccountsOptions {
    /// The `{base_url}` of the links in mails, without a slash at its end.
    pub base_url: String,
    /// What each plan gives and costs.
    pub plans: PlanTable,
    /// Whether credits can be bought: callers who have too few are told where. `Verbatim::open` decides it.
    pub sells: bool,
    /// What a transcript costs when it is delivered (`credits.per_transcript`).
    pub credits_per_transcript: u64,
    /// What a chat message costs when it is answered (`credits.per_message`).
    pub credits_per_message: u64,
    /// How long an account whose invoice is overdue keeps the rate limit of its plan (`checkout.grace`).
    pub grace: Duration,
    /// Registrations per network in any hour (`limits.register_per_network_per_hour`).
    pub register_per_network_per_hour: u32,
    /// Mails to one address in any hour, whoever asks for them.
    pub register_per_address_per_hour: u32,
    /// Attempts to redeem a verification token per network in any minute.
    pub verify_per_network_per_minute: u32,
}

impl Default for AccountsOptions {
    fn default() -> Self {
        Self {
            base_url: "http://127.0.0.1:8080".to_owned(),
            plans: PlanTable::default(),
            sells: false,
            credits_per_transcript: 1,
            credits_per_message: 1,
            grace: Duration::from_secs(7 * 24 * 3600),
            register_per_network_per_hour: 5,
            register_per_address_per_hour: 5,
            verify_per_network_per_minute: 120,
        }
    }
}
