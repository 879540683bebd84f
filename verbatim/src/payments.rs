//! Payment options, the payment provider and the sandbox.

use std::sync::Arc;

use transcript_core::{
    Clock, Random, Result,
    accounts::payments::{PaymentDeps, PaymentProvider, Payments, Sandbox, SandboxDeps},
};

use crate::{main_stores::MainStores, options::Options};

/// Payment provider for packs and plans.
#[derive(Clone, Debug, Default)]
pub enum PaymentOptions {
    /// No provider: nothing is sold.
    #[default]
    None,
    /// A built-in checkout without payment, for tests: every visitor of its pages gets free credits.
    ///
    /// Plans without a price have one of [`SAMPLE_PRICES`] there.
    Sandbox,
    /// Stripe (feature `upstream`). The plans and the address of this service are those of [`Options::accounts`].
    #[cfg(feature = "upstream")]
    Stripe(Box<upstream_reqwest::StripeOptions>),
}

/// Prices in the sandbox of plans that have none, in US cents.
///
/// Nothing is paid, but partial refunds can be tested.
pub const SAMPLE_PRICES: [(transcript_core::directory::Plan, u64); 3] = [
    (transcript_core::directory::Plan::Starter, 900),
    (transcript_core::directory::Plan::Pro, 2_900),
    (transcript_core::directory::Plan::Scale, 9_900),
];

/// Creates the payments over these stores, and the sandbox if it is in use.
pub(crate) async fn payments(
    options: &Options,
    stores: &MainStores,
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
                orders: Arc::clone(&stores.accounts.orders),
                clock: Arc::clone(&clock),
                base_url: accounts.base_url.clone(),
            };
            let opened = Sandbox::open(parts, stores.secrets.as_ref(), random).await?;
            sandbox = Some(opened.clone());
            Some(Arc::new(opened))
        }
        #[cfg(feature = "upstream")]
        PaymentOptions::Stripe(account) => Some(Arc::new(stripe(options, account)?)),
    };
    let parts = PaymentDeps {
        orders: Arc::clone(&stores.accounts.orders),
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
        #[cfg(feature = "upstream")]
        PaymentOptions::Stripe(account) => stripe(options, account).map(drop),
        PaymentOptions::None | PaymentOptions::Sandbox => Ok(()),
    }
}

#[cfg(feature = "upstream")]
fn stripe(
    options: &Options,
    account: &upstream_reqwest::StripeOptions,
) -> Result<upstream_reqwest::StripeProvider> {
    upstream_reqwest::StripeProvider::new(upstream_reqwest::StripeOptions {
        ca_file: account.ca_file.clone().or_else(|| options.upstream.ca_file.clone()),
        base_url: options.accounts.base_url.clone(),
        plans: options.accounts.plans,
        ..account.clone()
    })
}
