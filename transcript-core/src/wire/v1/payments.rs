//! Checkout of plans and credit packs.

use serde::{Deserialize, Serialize};

#[cfg(feature = "openapi")]
use crate::directory::Plan;

/// The body of `POST /api/v1/subscribe`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "Subscribe"))]
#[serde(deny_unknown_fields)]
pub struct SubscribeRequest {
    /// The plan.
    #[cfg_attr(
        feature = "openapi",
        schemars(extend("enum" = [Plan::Starter, Plan::Pro, Plan::Scale].map(Plan::as_str)))
    )]
    pub plan: String,
}

/// Response of `POST /api/v1/subscribe`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "The payment page of the plan.")
)]
pub struct PlanCheckout {
    /// True.
    pub success: bool,
    /// The address of the hosted payment page.
    #[cfg_attr(feature = "openapi", schemars(extend("format" = "uri")))]
    pub checkout_url: String,
}

/// Body of `POST /api/v1/buy-credits` (specification 2.8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "The body of `POST /api/v1/buy-credits`.", rename = "BuyCredits")
)]
#[serde(deny_unknown_fields)]
pub struct BuyCreditsRequest {
    /// The pack.
    #[cfg_attr(feature = "openapi", schemars(extend("enum" = ["1k", "2k", "5k", "10k", "25k", "50k"])))]
    pub pack: String,
}

/// Response of `POST /api/v1/buy-credits`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "The payment page of the credit pack.")
)]
pub struct CreditsCheckout {
    /// The address of the hosted payment page.
    #[cfg_attr(feature = "openapi", schemars(extend("format" = "uri")))]
    pub checkout_url: String,
    /// The pack.
    pub pack: String,
    /// The credits in the pack.
    pub credits: u64,
    /// The price in US dollars.
    #[cfg_attr(feature = "openapi", schemars(range(min = 0.0)))]
    pub price_usd: f64,
}

/// Response to an event of the payment provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(
        description = "The payment state was read from the payment provider again, and the changes were applied.",
        rename = "EventTaken"
    )
)]
pub struct WebhookAck {
    /// True.
    pub received: bool,
}
