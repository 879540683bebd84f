//! The payment provider and the sandbox.

use std::sync::Arc;

use transcript_core::{
    Random, Result,
    accounts::{
        Outbox, PlanTable,
        payments::{PaymentDeps, PaymentProvider, Payments, Sandbox, SandboxDeps},
    },
};

use crate::{
    main_stores::MainStores,
    options::{Options, PaymentOptions},
    system::SystemClock,
};

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
    outbox: Arc<dyn Outbox>,
    clock: &Arc<SystemClock>,
    random: &dyn Random,
) -> Result<(Payments, Option<Sandbox>)> {
    let sandbox = match &options.checkout {
        PaymentOptions::Sandbox => {
            let parts = SandboxDeps {
                orders: Arc::clone(&stores.accounts.orders),
                clock: Arc::clone(clock) as _,
                base_url: options.accounts.base_url.clone(),
            };
            Some(Sandbox::open(parts, stores.secrets.as_ref(), random).await?)
        }
        _ => None,
    };
    let parts = PaymentDeps {
        orders: Arc::clone(&stores.accounts.orders),
        directory: Arc::clone(&stores.directory),
        ledger: Arc::clone(&stores.ledger),
        outbox,
        limiter: Arc::clone(&stores.limiter),
        provider: provider(options, sandbox.as_ref())?,
        clock: Arc::clone(clock) as _,
        plans: plans(options),
    };
    Ok((Payments::new(parts), sandbox))
}

/// The same payments with the plans of these options.
pub(crate) fn change_plans(
    payments: &Payments,
    sandbox: Option<&Sandbox>,
    options: &Options,
) -> Result<Payments> {
    Ok(payments.with_plans(provider(options, sandbox)?, plans(options)))
}

fn provider(options: &Options, sandbox: Option<&Sandbox>) -> Result<Option<Arc<dyn PaymentProvider>>> {
    Ok(match &options.checkout {
        PaymentOptions::None => None,
        PaymentOptions::Sandbox => sandbox.map(|sandbox| Arc::new(sandbox.clone()) as _),
        #[cfg(feature = "upstream")]
        PaymentOptions::Stripe(account) => Some(Arc::new(stripe(options, account)?)),
    })
}

/// The plans, with a price in the sandbox for each.
fn plans(options: &Options) -> PlanTable {
    let mut plans = options.accounts.plans;
    if matches!(options.checkout, PaymentOptions::Sandbox) {
        for (plan, cents) in SAMPLE_PRICES {
            plans.terms_mut(plan).price_cents.get_or_insert(cents);
        }
    }
    plans
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
