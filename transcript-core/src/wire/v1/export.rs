//! Everything that is kept about an account, as its owner gets it.

use serde::{Deserialize, Serialize};

use super::Me;
use crate::{
    accounts::{AccountExport as Export, Item, Order, Profile},
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
    /// All that it ordered, oldest first.
    pub orders: Vec<ExportedOrder>,
}

/// One order of an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportedOrder {
    /// Its id.
    pub id: String,
    /// When: RFC 3339, UTC.
    pub at: String,
    /// `pack` or `plan`.
    pub kind: String,
    /// The name of the pack or plan.
    pub item: String,
    /// How many credits; for a plan, how many a month.
    pub credits: u64,
    /// The price in the currency's smallest unit.
    pub amount_minor: u64,
    /// The currency's ISO 4217 code, in lower case.
    pub currency: String,
    /// `open`, `fulfilled`, `expired`, `refunded` or `disputed`.
    pub state: String,
    /// How many of the credits were taken back after refunds.
    pub taken_back: u64,
}

/// One step of an account's credits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementLine {
    /// When: RFC 3339, UTC.
    pub at: String,
    /// `held`, `spent`, `charged` (held and spent in one step), `returned`, `expired`, `granted` or `revoked`.
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
            orders: export.orders.iter().map(ExportedOrder::from).collect(),
        }
    }
}

impl From<&Order> for ExportedOrder {
    fn from(order: &Order) -> Self {
        let (kind, item) = match &order.item {
            Item::Pack(name) => ("pack", name.as_str()),
            Item::Plan(plan) => ("plan", plan.as_str()),
        };
        Self {
            id: order.id.to_string(),
            at: order.created_at.to_string(),
            kind: kind.to_owned(),
            item: item.to_owned(),
            credits: order.credits,
            amount_minor: order.amount_minor,
            currency: order.currency.clone(),
            state: order.state.as_str().to_owned(),
            taken_back: order.taken_back.last().copied().unwrap_or_default(),
        }
    }
}

impl From<&Entry> for StatementLine {
    fn from(entry: &Entry) -> Self {
        let step = match entry.kind {
            EntryKind::Held => "held",
            EntryKind::Spent => "spent",
            EntryKind::Charged => "charged",
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
