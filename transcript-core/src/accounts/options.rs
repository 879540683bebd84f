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
#[derive(Clone, Copy, Debug, PartialEq, Eq, smart_default::SmartDefault)]
pub struct PlanTable {
    /// The plan of every new account.
    #[default(PlanTerms { credits: 200, requests_per_minute: 10, price_cents: None })]
    pub free: PlanTerms,
    /// The smallest paid plan.
    #[default(PlanTerms { credits: 2_000, requests_per_minute: 100, price_cents: None })]
    pub starter: PlanTerms,
    /// The middle paid plan.
    #[default(PlanTerms { credits: 10_000, requests_per_minute: 100, price_cents: None })]
    pub pro: PlanTerms,
    /// The largest paid plan.
    #[default(PlanTerms { credits: 50_000, requests_per_minute: 100, price_cents: None })]
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

/// Plans, prices and limits of the v1 API. The defaults are those of specification 3 and 8.
#[derive(Clone, Debug, smart_default::SmartDefault)]
pub struct AccountsOptions {
    /// The `{base_url}` of links in mails, without a trailing slash.
    #[default("http://127.0.0.1:8080")]
    pub base_url: String,
    /// The terms of each plan.
    pub plans: PlanTable,
    /// Whether credits can be bought; if so, an error for missing credits names the endpoint.
    ///
    /// Set by `Verbatim::open`.
    pub sells: bool,
    /// The price of a delivered transcript in credits (`credits.per_transcript`).
    #[default(1)]
    pub credits_per_transcript: u64,
    /// The price of an answered chat message in credits (`credits.per_message`).
    #[default(1)]
    pub credits_per_message: u64,
    /// How long an account with an overdue invoice keeps the rate limit of its plan (`checkout.grace`).
    #[default(Duration::from_secs(7 * 24 * 3600))]
    pub grace: Duration,
    /// Registrations per network per hour (`limits.register_per_network_per_hour`).
    #[default(5)]
    pub register_per_network_per_hour: u32,
    /// Verification mails to one address per hour, from all clients together. Of sign-in emails as many for each
    /// network, and six times as many in all.
    #[default(5)]
    pub register_per_address_per_hour: u32,
    /// Fetches of an account per hour that it abandoned or that found no transcript, and its questions that the chat
    /// model refused or answered unreadably (`limits.attempts_per_account_per_hour`).
    #[default(60)]
    pub attempts_per_account_per_hour: u32,
    /// New transcripts of all accounts together per UTC day (`limits.accounts_per_day`).
    #[default(10_000)]
    pub fetches_per_day: u64,
    /// Jobs of an account that have not ended (`limits.jobs_per_account`).
    #[default(10)]
    pub jobs_per_account: u32,
    /// Videos of a job (`limits.items_per_job`).
    #[default(5_000)]
    pub items_per_job: u32,
    /// Items of jobs that one process works on at the same time, at most half of them of one account
    /// (`limits.job_items_at_once`).
    #[default(32)]
    pub job_items_at_once: u32,
    /// Whether webhooks may be sent to http addresses and private hosts (`webhooks.allow_private`).
    pub private_webhooks: bool,
    /// Attempts to redeem a verification token, per network per minute.
    #[default(120)]
    pub verify_per_network_per_minute: u32,
}
