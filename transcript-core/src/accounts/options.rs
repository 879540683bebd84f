//! Settings of the v1 API.

use std::time::Duration;

use crate::directory::Plan;

/// Credits, rate limit and price of a plan (`plans.{name}.…`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanTerms {
    /// Credits per month.
    pub credits: u64,
    /// Requests in any 60 seconds, over all authenticated endpoints.
    pub requests_per_minute: u32,
    /// The price of a month in US cents; `None`: the plan is not for sale.
    pub price_cents: Option<u64>,
}

/// The terms of all plans (specification 3).
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
    pub fn terms(&self, plan: Plan) -> &PlanTerms {
        match plan {
            Plan::Free => &self.free,
            Plan::Starter => &self.starter,
            Plan::Pro => &self.pro,
            Plan::Scale => &self.scale,
        }
    }

    /// Mutable access to the terms of a plan.
    pub fn terms_mut(&mut self, plan: Plan) -> &mut PlanTerms {
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

/// Plans, prices and limits of the v1 API. The defaults are those of specification 3 and 8.
#[derive(Clone, Debug)]
pub struct AccountsOptions {
    /// The `{base_url}` of links in mails, without a trailing slash.
    pub base_url: String,
    /// The terms of each plan.
    pub plans: PlanTable,
    /// Whether credits can be bought; if so, an error for missing credits names the endpoint.
    ///
    /// Set by `Verbatim::open`.
    pub sells: bool,
    /// The price of a delivered transcript in credits (`credits.per_transcript`).
    pub credits_per_transcript: u64,
    /// The price of an answered chat message in credits (`credits.per_message`).
    pub credits_per_message: u64,
    /// How long an account with an overdue invoice keeps the rate limit of its plan (`checkout.grace`).
    pub grace: Duration,
    /// Registrations per network per hour (`limits.register_per_network_per_hour`).
    pub register_per_network_per_hour: u32,
    /// Mails to one address per hour, from all clients together.
    pub register_per_address_per_hour: u32,
    /// Fetches of an account per hour that it abandoned or that found no transcript
    /// (`limits.attempts_per_account_per_hour`).
    pub attempts_per_account_per_hour: u32,
    /// New transcripts of all accounts together per UTC day (`limits.accounts_per_day`).
    pub fetches_per_day: u64,
    /// Attempts to redeem a verification token, per network per minute.
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
            attempts_per_account_per_hour: 60,
            fetches_per_day: 10_000,
            verify_per_network_per_minute: 120,
        }
    }
}
