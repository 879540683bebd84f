//! Payment options, the payment provider and the sandbox.

use std::{fmt, sync::Arc};

use transcript_core::{
    Clock, Random, Result,
    accounts::{
        AccountsOptions,
        payments::{PaymentDeps, PaymentProvider, Payments, Sandbox, SandboxDeps},
    },
};

use crate::{Verbatim, options::Options, storage::Stores};

/// Payment provider for packs and plans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PaymentOptions {
    /// No provider: nothing is sold.
    #[default]
    None,
    /// A built-in checkout without payment, for tests: every visitor of its pages gets free credits.
    ///
    /// Plans without a price have one of [`SAMPLE_PRICES`] there.
    Sandbox,
    /// Stripe (feature `upstream`).
    Stripe(StripeAccount),
}

/// Credentials of a Stripe account.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct StripeAccount {
    /// The secret key (`stripe.secret_key`).
    pub secret_key: String,
    /// Secrets that sign events (`stripe.webhook_secrets`); several during a rotation.
    pub webhook_secrets: Vec<String>,
    /// Address of the API; `None`: Stripe's own (`stripe.api_url`).
    pub api_url: Option<String>,
}

impl fmt::Debug for StripeAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StripeAccount").field("api_url", &self.api_url).finish_non_exhaustive()
    }
}

/// Prices in the sandbox of plans that have none, in US cents.
///
/// Nothing is paid, but partial refunds can be tested.
pub const SAMPLE_PRICES: [(transcript_core::directory::Plan, u64); 3] = [
    (transcript_core::directory::Plan::Starter, 900),
    (transcript_core::directory::Plan::Pro, 2_900),
    (transcript_core::directory::Plan::Scale, 9_900),
];

impl Verbatim {
    /// Sale of packs and plans, and fulfillment of paid orders.
    pub fn payments(&self) -> &Payments {
        &self.payments
    }

    /// The sandbox checkout, if it is in use; a server serves its pages.
    pub fn sandbox(&self) -> Option<&Sandbox> {
        self.sandbox.as_ref()
    }
}

/// Creates the payments over these stores, and the sandbox if it is in use.
pub(crate) async fn payments(
    options: &Options,
    stores: &Stores,
    clock: Arc<dyn Clock>,
    random: &dyn Random,
) -> Result<(Payments, Option<Sandbox>)> {
    let accounts = &options.accounts;
    let mut plans = accounts.plans;
    let mut sandbox = None;
    let checkout: Option<Arc<dyn PaymentProvider>> = match &options.checkout {
        PaymentOptions::None => None,
        PaymentOptions::Sandbox => {
            for (plan, cents) in SAMPLE_PRICES {
                plans.terms_mut(plan).price_cents.get_or_insert(cents);
            }
            let parts = SandboxDeps {
                orders: Arc::clone(&stores.orders),
                clock: Arc::clone(&clock),
                base_url: accounts.base_url.clone(),
            };
            let opened = Sandbox::open(parts, stores.secrets.as_ref(), random).await?;
            sandbox = Some(opened.clone());
            Some(Arc::new(opened))
        }
        PaymentOptions::Stripe(account) => Some(stripe(options, accounts, account)?),
    };
    let parts = PaymentDeps {
        orders: Arc::clone(&stores.orders),
        directory: Arc::clone(&stores.directory),
        ledger: Arc::clone(&stores.ledger),
        limiter: Arc::clone(&stores.limiter),
        provider: checkout,
        clock,
        plans,
    };
    Ok((Payments::new(parts), sandbox))
}

/// Checks the options of payments without network access.
pub(crate) fn check(options: &Options) -> Result<()> {
    match &options.checkout {
        PaymentOptions::Stripe(account) => stripe(options, &options.accounts, account).map(drop),
        PaymentOptions::None | PaymentOptions::Sandbox => Ok(()),
    }
}

#[cfg(feature = "upstream")]
fn stripe(
    options: &Options,
    accounts: &AccountsOptions,
    account: &StripeAccount,
) -> Result<Arc<dyn PaymentProvider>> {
    let checkout = upstream_reqwest::StripeProvider::new(upstream_reqwest::StripeOptions {
        secret_key: account.secret_key.clone(),
        webhook_secrets: account.webhook_secrets.clone(),
        api_url: account.api_url.clone(),
        ca_file: options.upstream.ca_file.clone(),
        base_url: accounts.base_url.clone(),
        plans: accounts.plans,
        ..upstream_reqwest::StripeOptions::default()
    })?;
    Ok(Arc::new(checkout))
}

#[cfg(not(feature = "upstream"))]
fn stripe(_: &Options, _: &AccountsOptions, _: &StripeAccount) -> Result<Arc<dyn PaymentProvider>> {
    Err(transcript_core::Error::new(
        transcript_core::ErrorKind::Unsupported,
        transcript_core::Retry::Never,
        "this build cannot make HTTP requests: it lacks the feature upstream",
    ))
}
