//! Registering, verifying, and what an account has.

use std::fmt;

use serde::{Deserialize, Serialize};

#[cfg(feature = "openapi")]
use crate::directory::Plan;
use crate::{
    accounts::{BLOCKED, NewAccountKey, Profile},
    directory::key::Key,
};

/// The body of `POST /api/v1/register`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Register {
    /// The e-mail address that the verification link is sent to.
    #[cfg_attr(feature = "openapi", schemars(extend("format" = "email")))]
    pub email: String,
}

impl fmt::Debug for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Whose address it is stays out of logs.
        f.write_str("Register(…)")
    }
}

/// The answer of `POST /api/v1/register`: the same for known and unknown addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "The verification mail is on its way.")
)]
pub struct Registered {
    /// True.
    pub success: bool,
    /// What to do next.
    pub message: String,
}

/// The answer of `/api/v1/verify`: the only time that the key is shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "A new key. Only this answer ever shows it.")
)]
pub struct Verified {
    /// True.
    pub success: bool,
    /// The key itself.
    #[cfg_attr(feature = "openapi", schemars(regex(pattern = r"^vba_[0-9A-Za-z]{36}$")))]
    pub api_key: String,
    /// The credits that the account has now.
    pub credits: u64,
    /// The account's plan.
    #[cfg_attr(feature = "openapi", schemars(extend("enum" = Plan::ALL.map(Plan::as_str))))]
    pub plan: String,
    /// Why the key opens nothing yet, where that is so: our extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
}

impl fmt::Debug for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verified")
            .field("credits", &self.credits)
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}

impl From<&NewAccountKey> for Verified {
    fn from(issued: &NewAccountKey) -> Self {
        Self {
            success: true,
            api_key: issued.key.reveal().to_owned(),
            // Told as none when the ledger is away in this moment: the key must be shown all the same.
            credits: issued.credits_remaining.unwrap_or(0),
            plan: issued.plan.as_str().to_owned(),
            notice: issued.is_blocked.then(|| BLOCKED.to_owned()),
        }
    }
}

/// The account (specification 2.7), the answer of `GET /api/v1/me`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "An account and what is left of its credits.")
)]
pub struct Me {
    /// The account's e-mail address.
    #[cfg_attr(feature = "openapi", schemars(extend("format" = "email")))]
    pub email: String,
    /// The plan's name.
    #[cfg_attr(feature = "openapi", schemars(extend("enum" = Plan::ALL.map(Plan::as_str))))]
    pub plan: String,
    /// The credits that can be spent now.
    pub credits_remaining: u64,
    /// The plan's credits for this period, and those bought that it began with or that came since.
    pub credits_total: u64,
    /// When the plan's credits come back: RFC 3339, UTC.
    #[cfg_attr(feature = "openapi", schemars(extend("format" = "date-time")))]
    pub resets_at: String,
}

impl fmt::Debug for Me {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Me")
            .field("plan", &self.plan)
            .field("credits_remaining", &self.credits_remaining)
            .finish_non_exhaustive()
    }
}

impl From<&Profile> for Me {
    fn from(profile: &Profile) -> Self {
        Self {
            email: profile.email.clone(),
            plan: profile.credits.plan.as_str().to_owned(),
            credits_remaining: profile.credits.remaining,
            credits_total: profile.credits.total,
            resets_at: profile.credits.resets_at.to_string(),
        }
    }
}

/// The answer of `POST /api/v1/rotate-key`: the only time that the new key is shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "A new key; the old one is dead. Only this answer ever shows it.")
)]
pub struct KeyRotated {
    /// True.
    pub success: bool,
    /// The new key itself.
    #[cfg_attr(feature = "openapi", schemars(regex(pattern = r"^vba_[0-9A-Za-z]{36}$")))]
    pub api_key: String,
}

impl fmt::Debug for KeyRotated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyRotated(…)")
    }
}

impl From<&Key> for KeyRotated {
    fn from(key: &Key) -> Self {
        Self { success: true, api_key: key.reveal().to_owned() }
    }
}
