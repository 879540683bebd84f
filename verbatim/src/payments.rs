//! Who takes the money, and asking about what no event told.

use std::{fmt, sync::Arc};

use transcript_core::{
    Clock, Random, Result,
    accounts::{
        AccountsOptions,
        payments::{Checkout, PaymentParts, Payments, Sandbox, SandboxParts},
    },
};

use crate::{Verbatim, options::Options, storage::Stores};

/// Who takes the money for packs and plans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CheckoutOptions {
    /// Nobody: nothing is sold.
    #[default]
    None,
    /// A checkout of our own in which nobody pays, for trying things out: whoever can open its pages gets
    /// credits for nothing. Plans without a price have one of [`SAMPLE_PRICES`] there.
    Sandbox,
    /// Stripe (feature `upstream`).
    Stripe(StripeAccount),
}

/// How one is known to Stripe.
#[derive(Clone, PartialEq, Eq)]
pub struct StripeAccount {
    /// The secret key (`stripe.secret_key`).
    pub secret_key: String,
    /// What events are signed with (`stripe.webhook_secrets`); several during a rotation.
    pub webhook_secrets: Vec<String>,
    /// Where the interface is; none: at Stripe's own address (`stripe.api_url`).
    pub api_url: Option<String>,
}

impl fmt::Debug for StripeAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StripeAccount").field("api_url", &self.api_url).finish_non_exhaustive()
    }
}

/// What plans cost in the sandbox where they have no price, in US cents: nobody pays it, but refunds of a part
/// can be tried out.
pub const SAMPLE_PRICES: [(transcript_core::directory::Plan, u64); 3] = [
    (transcript_core::directory::Plan::Starter, 900),
    (transcript_core::directory::Plan::Pro, 2_900),
    (transcript_core::directory::Plan::Scale, 9_900),
];

impl Verbatim {
    /// Selling packs and plans, and giving what was paid for.
    pub fn payments(&self) -> &Payments {
        &self.payments
    }

    /// The checkout in which nobody pays, where it is the one in use: a server shows its pages.
    pub fn sandbox(&self) -> Option<&Sandbox> {
        self.sandbox.as_ref()
    }
}

/// Payments over these stores, and the sandbox where it is in use.
pub(crate) async fn payments(
    options: &Options,
    stores: &Stores,
    clock: Arc<dyn Clock>,
    random: &dyn Random,
) -> Result<(Payments, Option<Sandbox>)> {
    let accounts = &options.accounts;
    let mut plans = accounts.plans;
    let mut sandbox = None;
    let checkout: Option<Arc<dyn Checkout>> = match &options.checkout {
        CheckoutOptions::None => None,
        CheckoutOptions::Sandbox => {
            for (plan, cents) in SAMPLE_PRICES {
                plans.of_mut(plan).price_cents.get_or_insert(cents);
            }
            let parts = SandboxParts {
                orders: Arc::clone(&stores.orders),
                clock: Arc::clone(&clock),
                base_url: accounts.base_url.clone(),
            };
            let opened = Sandbox::open(parts, stores.secrets.as_ref(), random).await?;
            sandbox = Some(opened.clone());
            Some(Arc::new(opened))
        }
        CheckoutOptions::Stripe(account) => Some(stripe(options, accounts, account)?),
    };
    let parts = PaymentParts {
        orders: Arc::clone(&stores.orders),
        directory: Arc::clone(&stores.directory),
        ledger: Arc::clone(&stores.ledger),
        limiter: Arc::clone(&stores.limiter),
        checkout,
        clock,
        plans,
    };
    Ok((Payments::new(parts), sandbox))
}

/// Whether the options of payments are sound; asks nobody.
pub(crate) fn check(options: &Options) -> Result<()> {
    match &options.checkout {
        CheckoutOptions::Stripe(account) => stripe(options, &options.accounts, account).map(drop),
        CheckoutOptions::None | CheckoutOptions::Sandbox => Ok(()),
    }
}

#[cfg(feature = "upstream")]
fn stripe(
    options: &Options,
    accounts: &AccountsOptions,
    account: &StripeAccount,
) -> Result<Arc<dyn Checkout>> {
    let checkout = upstream_reqwest::StripeCheckout::new(upstream_reqwest::StripeOptions {
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
fn stripe(_: &Options, _: &AccountsOptions, _: &StripeAccount) -> Result<Arc<dyn Checkout>> {
    Err(transcript_core::Error::new(
        transcript_core::ErrorKind::Unsupported,
        transcript_core::Retry::Never,
        "this build reaches nobody over HTTP: it lacks the feature upstream",
    ))
}
