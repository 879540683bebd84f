//! Registration, verification and account.

use serde::{Deserialize, Serialize};

#[cfg(feature = "openapi")]
use crate::directory::Plan;
use crate::{
    accounts::{BLOCKED, IssuedAccountKey, Profile},
    debug_fields,
    directory::api_key::ApiKey,
};

/// The body of `POST /api/v1/register`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "Register"))]
#[serde(deny_unknown_fields)]
pub struct RegisterRequest {
    /// The email address that the verification link is sent to.
    #[cfg_attr(feature = "openapi", schemars(extend("format" = "email")))]
    pub email: String,
}

// The address must not reach logs.
crate::display::debug_as!(RegisterRequest, |_this| "RegisterRequest(…)");

/// Response of `POST /api/v1/register`: the same for known and unknown addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "The verification email is on its way.", rename = "Registered")
)]
pub struct RegisterResponse {
    /// True.
    pub success: bool,
    /// What to do next.
    pub message: String,
}

/// Response of `/api/v1/verify`, the only one that shows the key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "A new key. Only this response shows it.", rename = "Verified")
)]
pub struct VerifyResponse {
    /// True.
    pub success: bool,
    /// The key.
    #[cfg_attr(feature = "openapi", schemars(regex(pattern = r"^vba_[0-9A-Za-z]{36}$")))]
    pub api_key: String,
    /// The current credits of the account.
    pub credits: u64,
    /// The account's plan.
    #[cfg_attr(feature = "openapi", schemars(extend("enum" = Plan::ALL.map(Plan::as_str))))]
    pub plan: String,
    /// Extension: why the key cannot be used yet, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
}

debug_fields!(VerifyResponse { credits, plan });

impl From<&IssuedAccountKey> for VerifyResponse {
    fn from(issued: &IssuedAccountKey) -> Self {
        Self {
            success: true,
            api_key: issued.key.reveal().to_owned(),
            // Zero if the ledger is unavailable: the key must be shown nevertheless.
            credits: issued.credits_remaining.unwrap_or(0),
            plan: issued.plan.as_str().to_owned(),
            notice: issued.is_blocked.then(|| BLOCKED.to_owned()),
        }
    }
}

/// Account (specification 2.7), the response of `GET /api/v1/me`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "An account and its remaining credits.", rename = "Me")
)]
pub struct AccountInfo {
    /// The account's email address; its name if the operator created it without an address.
    pub email: String,
    /// The plan's name.
    #[cfg_attr(feature = "openapi", schemars(extend("enum" = Plan::ALL.map(Plan::as_str))))]
    pub plan: String,
    /// The credits that can be spent now.
    pub credits_remaining: u64,
    /// The plan's credits for this period, plus purchased ones left at its start or bought since.
    pub credits_total: u64,
    /// When the plan's credits renew: RFC 3339, UTC.
    #[cfg_attr(feature = "openapi", schemars(extend("format" = "date-time")))]
    pub resets_at: String,
}

debug_fields!(AccountInfo { plan, credits_remaining });

impl From<&Profile> for AccountInfo {
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

/// Response of `POST /api/v1/rotate-key`, the only one that shows the new key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(
        description = "A new key; the old one is invalid. Only this response shows it.",
        rename = "KeyRotated"
    )
)]
pub struct RotateKeyResponse {
    /// True.
    pub success: bool,
    /// The new key.
    #[cfg_attr(feature = "openapi", schemars(regex(pattern = r"^vba_[0-9A-Za-z]{36}$")))]
    pub api_key: String,
}

crate::display::debug_as!(RotateKeyResponse, |_this| "RotateKeyResponse(…)");

impl From<&ApiKey> for RotateKeyResponse {
    fn from(key: &ApiKey) -> Self {
        Self { success: true, api_key: key.reveal().to_owned() }
    }
}
