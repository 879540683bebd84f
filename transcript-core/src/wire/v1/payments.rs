//! Asking for a checkout page.

use serde::{Deserialize, Serialize};

#[cfg(feature = "openapi")]
use crate::directory::Plan;

/// The body of `POST /api/v1/subscribe`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Subscribe {
    /// The plan.
    #[cfg_attr(
        feature = "openapi",
        schemars(extend("enum" = [Plan::Starter, Plan::Pro, Plan::Scale].map(Plan::as_str)))
    )]
    pub plan: String,
}

/// The answer of `POST /api/v1/subscribe`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "Where the plan is paid for.")
)]
pub struct PlanCheckout {
    /// True.
    pub success: bool,
    /// The address of the hosted payment page.
    #[cfg_attr(feature = "openapi", schemars(extend("format" = "uri")))]
    pub checkout_url: String,
}

/// The body of `POST /api/v1/buy-credits` (specification 2.8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "The body of `POST /api/v1/buy-credits`.")
)]
#[serde(deny_unknown_fields)]
pub struct BuyCredits {
    /// The pack.
    #[cfg_attr(feature = "openapi", schemars(extend("enum" = ["1k", "2k", "5k", "10k", "25k", "50k"])))]
    pub pack: String,
}

/// The answer of `POST /api/v1/buy-credits`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "Where the credits are paid for.")
)]
pub struct CreditsCheckout {
    /// The address of the hosted payment page.
    #[cfg_attr(feature = "openapi", schemars(extend("format" = "uri")))]
    pub checkout_url: String,
    /// The pack.
    pub pack: String,
    /// How many credits it has.
    pub credits: u64,
    /// What it costs, in US dollars.
    #[cfg_attr(feature = "openapi", schemars(range(min = 0.0)))]
    pub price_usd: f64,
}

/// The answer to an event of the payment provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(
        description = "What the event is about was asked after, and all that follows from it was done."
    )
)]
pub struct EventTaken {
    /// True.
    pub received: bool,
}
