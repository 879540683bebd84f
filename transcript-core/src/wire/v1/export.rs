//! Everything that is kept about an account, as its owner gets it.

use serde::{Deserialize, Serialize};

use super::Me;
use crate::{
    accounts::{AccountExport as Export, Profile},
    ledger::{Entry, EntryKind},
};

/// Everything that is kept about an account: our own form, for people who ask for their data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountExport {
    /// The account's id.
    pub id: String,
    /// The account, as `GET /api/v1/me` tells it.
    pub account: Me,
    /// From when its months are counted: RFC 3339, UTC.
    pub months_from: String,
    /// Until when its plan was paid for, where it ever was.
    pub paid_through: Option<String>,
    /// The payment provider's name for it.
    pub customer: Option<String>,
    /// The payment provider's name for its subscription.
    pub subscription: Option<String>,
    /// Whether the operator blocked it.
    pub blocked: bool,
    /// Every step of its credits, oldest first.
    pub statement: Vec<StatementLine>,
}

/// One step of an account's credits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementLine {
    /// When: RFC 3339, UTC.
    pub at: String,
    /// `held`, `spent`, `returned`, `expired`, `granted` or `revoked`.
    pub step: String,
    /// How many credits.
    pub credits: u64,
    /// The month whose credits they are; none for purchased ones.
    pub month: Option<String>,
    /// What it was for.
    pub memo: String,
}

impl From<&Export> for AccountExport {
    fn from(export: &Export) -> Self {
        let account = &export.view.account;
        let profile = Profile { email: account.email.clone(), credits: export.view.credits };
        Self {
            id: account.id.to_string(),
            account: Me::from(&profile),
            months_from: account.anchor.to_string(),
            paid_through: account.paid.map(|paid| paid.through.to_string()),
            customer: account.customer.clone(),
            subscription: account.subscription.clone(),
            blocked: account.blocked,
            statement: export.entries.iter().map(StatementLine::from).collect(),
        }
    }
}

impl From<&Entry> for StatementLine {
    fn from(entry: &Entry) -> Self {
        let step = match entry.kind {
            EntryKind::Held => "held",
            EntryKind::Spent => "spent",
            EntryKind::Returned => "returned",
            EntryKind::Expired => "expired",
            EntryKind::Granted => "granted",
            EntryKind::Revoked { .. } => "revoked",
        };
        Self {
            at: entry.at.to_string(),
            step: step.to_owned(),
            credits: entry.amount,
            month: entry.pool.bucket().map(|bucket| bucket.trim_start_matches("month/").to_owned()),
            memo: entry.memo.clone(),
        }
    }
}
