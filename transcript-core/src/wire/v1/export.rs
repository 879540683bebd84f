//! Export of what is stored about an account, for its owner.

use serde::{Deserialize, Serialize};

use super::AccountInfo;
use crate::{
    accounts::{AccountExport as Export, Order, OrderItem, Profile, Session, jobs::Job},
    directory::AccountKey,
    ledger::{Entry, rules::kind_name},
};

/// What is stored about an account, in this project's own form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct AccountExport {
    /// The account's id.
    pub id: String,
    /// The account, as `GET /api/v1/me` returns it.
    pub account: AccountInfo,
    /// Start of its monthly periods: RFC 3339, UTC.
    pub months_from: String,
    /// End of the time for which its plan is paid; `None` if it never was.
    pub paid_through: Option<String>,
    /// The payment provider's id of the customer.
    pub customer: Option<String>,
    /// The payment provider's id of the subscription.
    pub subscription: Option<String>,
    /// Whether the operator blocked it.
    pub blocked: bool,
    /// All entries of its credits, oldest first.
    pub statement: Vec<StatementLine>,
    /// All its orders, oldest first.
    pub orders: Vec<ExportedOrder>,
    /// Its API keys that work, oldest first.
    #[serde(default)]
    pub keys: Vec<ExportedKey>,
    /// The browsers that are signed in, the most recently used one first.
    #[serde(default)]
    pub sessions: Vec<ExportedSession>,
    /// Its jobs, the newest first. `GET /api/v1/jobs/{job}/results` has their items.
    #[serde(default)]
    pub jobs: Vec<ExportedJob>,
}

/// Browser session of an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct ExportedSession {
    /// Id of the session.
    pub id: String,
    /// The browser and its system.
    pub device: String,
    /// When it was opened: RFC 3339, UTC.
    pub created_at: String,
    /// When it was last used, to the hour.
    pub last_seen_at: String,
    /// When it ends unless it is used before.
    pub expires_at: String,
}

/// Job of an account, without its items.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct ExportedJob {
    /// Id of the job.
    pub id: String,
    /// Its state, as `GET /api/v1/jobs/{job}` returns it.
    pub status: String,
    /// When it was created: RFC 3339, UTC.
    pub created_at: String,
    /// When it ended; `None` before.
    pub ended_at: Option<String>,
    /// The address of its playlist, channel or search; `None` if its videos are links.
    pub list_url: Option<String>,
    /// Where its events are sent; `None` for nowhere.
    pub callback_url: Option<String>,
    /// Number of its items.
    pub items: u64,
    /// The credits that its items cost.
    pub credits: u64,
}

/// API key of an account, without the key itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct ExportedKey {
    /// Id of the key.
    pub id: String,
    /// Its first characters.
    pub hint: String,
    /// Its name; `None` for a key that a mail issued.
    pub name: Option<String>,
    /// When it was created: RFC 3339, UTC.
    pub created_at: String,
    /// When it was last used; `None` if it was not.
    pub last_used_at: Option<String>,
}

/// Order of an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct ExportedOrder {
    /// Id of the order.
    pub id: String,
    /// When it was made: RFC 3339, UTC.
    pub at: String,
    /// `pack` or `plan`.
    pub kind: String,
    /// Name of the pack or plan.
    pub item: String,
    /// Number of credits; for a plan, credits per month.
    pub credits: u64,
    /// Price in the currency's smallest unit; 0 if `paid_with` is set.
    pub amount_minor: u64,
    /// ISO 4217 code of the currency, in lower case.
    pub currency: String,
    /// `open`, `fulfilled`, `expired`, `refunded` or `disputed`.
    pub state: String,
    /// Credits in proportion to the returned amount; spent ones are not taken back.
    pub taken_back: u64,
    /// Id of the order whose payment paid this one, too.
    pub paid_with: Option<String>,
}

/// Entry of an account's credits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct StatementLine {
    /// When it was written: RFC 3339, UTC.
    pub at: String,
    /// Kind of the entry: `held`, `spent`, `charged`, `returned`, `expired`, `granted` or `revoked`.
    ///
    /// `charged` is held and spent in one step.
    pub step: String,
    /// Number of credits.
    pub credits: u64,
    /// The month of the credits; `None` for purchased ones.
    pub month: Option<String>,
    /// Purpose of the operation.
    pub memo: String,
}

impl From<&Export> for AccountExport {
    fn from(export: &Export) -> Self {
        let account = &export.view.account;
        let profile = Profile { email: account.email.clone(), credits: export.view.credits };
        Self {
            id: account.id.to_string(),
            account: AccountInfo::from(&profile),
            months_from: account.anchor.to_string(),
            paid_through: account.paid.map(|paid| paid.through.to_string()),
            customer: account.customer.clone(),
            subscription: account.subscription.clone(),
            blocked: account.blocked,
            // They may be millions: the caller adds them page by page.
            statement: Vec::new(),
            orders: export.orders.iter().map(ExportedOrder::from).collect(),
            keys: export.keys.iter().map(ExportedKey::from).collect(),
            sessions: export.sessions.iter().map(ExportedSession::from).collect(),
            jobs: export.jobs.iter().map(ExportedJob::from).collect(),
        }
    }
}

impl From<&Session> for ExportedSession {
    fn from(session: &Session) -> Self {
        Self {
            id: session.id.to_string(),
            device: session.device.clone(),
            created_at: session.created_at.to_string(),
            last_seen_at: session.last_seen_at.to_string(),
            expires_at: session.expires_at.to_string(),
        }
    }
}

impl From<&Job> for ExportedJob {
    fn from(job: &Job) -> Self {
        Self {
            id: job.id.to_string(),
            status: job.status.as_str().to_owned(),
            created_at: job.created_at.to_string(),
            ended_at: job.ended_at.map(|at| at.to_string()),
            list_url: job.list.as_ref().map(|list| list.list.address()),
            callback_url: job.callback_url.clone(),
            items: job.counts.total,
            credits: job.spent,
        }
    }
}

impl From<&AccountKey> for ExportedKey {
    fn from(live: &AccountKey) -> Self {
        Self {
            id: live.key.id.to_string(),
            hint: live.key.hint.clone(),
            name: live.name.clone(),
            created_at: live.key.now.to_string(),
            last_used_at: live.last_used_at.map(|at| at.to_string()),
        }
    }
}

impl From<&Order> for ExportedOrder {
    fn from(order: &Order) -> Self {
        let (kind, item) = match &order.item {
            OrderItem::Pack(name) => ("pack", name.as_str()),
            OrderItem::Plan(plan) => ("plan", plan.as_str()),
        };
        let paid_with = order.paid_with();
        Self {
            id: order.id.to_string(),
            at: order.created_at.to_string(),
            kind: kind.to_owned(),
            item: item.to_owned(),
            credits: order.credits,
            amount_minor: if paid_with.is_some() { 0 } else { order.amount_minor },
            currency: order.currency.clone(),
            state: order.state.as_str().to_owned(),
            taken_back: order.refunded_credits.last().copied().unwrap_or_default(),
            paid_with: paid_with.map(|id| id.to_string()),
        }
    }
}

impl From<&Entry> for StatementLine {
    fn from(entry: &Entry) -> Self {
        Self {
            at: entry.at.to_string(),
            step: kind_name(entry.kind).to_owned(),
            credits: entry.amount,
            month: entry.pool.bucket().map(|bucket| bucket.trim_start_matches("month/").to_owned()),
            memo: entry.memo.clone(),
        }
    }
}
