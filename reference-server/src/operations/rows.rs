//! Results of operations as JSON, for the command and the admin API.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use transcript_core::{
    accounts::{
        AccountView, PlanState, Profile, RevokedGrant,
        jobs::{Job, PauseReason},
    },
    admin::{AdminToken, AuditEntry},
    ledger::{PoolBalance, audit::BalanceMismatch},
    lookup::KeyWithUsage,
    wire::{lookup::KeyStatus, v1::AccountInfo},
};
use verbatim::{AuditFinding, AuditReport};

use super::{NewAccount, quota_text};

/// A key of the lookup API.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KeyRow {
    #[serde(flatten)]
    status: KeyStatus,
    hint: String,
    email: Option<String>,
    subject: Option<String>,
    entitled_until: Option<String>,
    revoked_at: Option<String>,
    /// When it expires.
    expires: Option<String>,
    /// Maximum number of requests, such as `1000/day`.
    quota: Option<String>,
    requests: RequestsRow,
}

/// The requests of a key.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RequestsRow {
    total: u64,
    today: u64,
    this_month: u64,
    last_at: Option<String>,
}

impl From<&KeyWithUsage> for KeyRow {
    fn from(key: &KeyWithUsage) -> Self {
        let requests = &key.requests;
        Self {
            status: KeyStatus::from(&key.status),
            hint: key.hint.clone(),
            email: key.email.clone(),
            subject: key.subject.clone(),
            entitled_until: key.entitled_until.map(|until| until.to_string()),
            revoked_at: key.revoked_at.map(|at| at.to_string()),
            expires: key.expires_at.map(|end| end.to_string()),
            quota: key.quota.as_ref().map(quota_text),
            requests: RequestsRow {
                total: requests.total,
                today: requests.day,
                this_month: requests.month,
                last_at: requests.last_at.map(|at| at.to_string()),
            },
        }
    }
}

/// An account.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AccountRow {
    id: String,
    #[serde(flatten)]
    account: AccountInfo,
    /// Plan state: `free`, `paid` or `grace`.
    state: &'static str,
    blocked: bool,
    months_from: String,
    paid_through: Option<String>,
    customer: Option<String>,
    subscription: Option<String>,
}

impl From<&AccountView> for AccountRow {
    fn from(view: &AccountView) -> Self {
        let account = &view.account;
        let profile = Profile { email: account.email.clone(), credits: view.credits };
        Self {
            id: account.id.to_string(),
            account: AccountInfo::from(&profile),
            state: match view.effective_plan.state {
                PlanState::Free => "free",
                PlanState::Paid => "paid",
                PlanState::Grace => "grace",
            },
            blocked: account.blocked,
            months_from: account.anchor.to_string(),
            paid_through: account.paid.map(|paid| paid.through.to_string()),
            customer: account.customer.clone(),
            subscription: account.subscription.clone(),
        }
    }
}

/// An account with its new key.
#[derive(Serialize, JsonSchema)]
pub(crate) struct NewAccountRow {
    /// The key, which is shown once.
    api_key: String,
    /// Why the credits are not granted; absent if they are. A grant with the id `start-ACCOUNT` grants them once.
    #[serde(skip_serializing_if = "Option::is_none")]
    ungranted: Option<String>,
    #[serde(flatten)]
    account: AccountRow,
}

impl From<&NewAccount> for NewAccountRow {
    fn from(new: &NewAccount) -> Self {
        let (api_key, ungranted) = (new.key.reveal().to_owned(), new.ungranted.clone());
        Self { api_key, ungranted, account: AccountRow::from(&new.view) }
    }
}

/// A revoked grant, with its account.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RevokedGrantRow {
    /// Credits that were taken back.
    revoked: u64,
    /// Credits of the grant that were spent or held, and are not taken back.
    shortfall: u64,
    #[serde(flatten)]
    account: AccountRow,
}

impl From<&RevokedGrant> for RevokedGrantRow {
    fn from(grant: &RevokedGrant) -> Self {
        let account = AccountRow::from(&grant.view);
        Self { revoked: grant.taken, shortfall: grant.shortfall, account }
    }
}

/// An admin token.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TokenRow {
    name: String,
    created_at: String,
    revoked_at: Option<String>,
}

impl From<&AdminToken> for TokenRow {
    fn from(token: &AdminToken) -> Self {
        Self {
            name: token.name.clone(),
            created_at: token.created_at.to_string(),
            revoked_at: token.revoked_at.map(|at| at.to_string()),
        }
    }
}

/// An entry of the audit log.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AuditRow {
    id: String,
    at: String,
    operator: String,
    interface: &'static str,
    operation: String,
    subject: Option<String>,
    detail: Option<String>,
    /// `done`, or why not; none while it runs, or if its end was not recorded.
    result: Option<String>,
    ended_at: Option<String>,
}

impl From<&AuditEntry> for AuditRow {
    fn from(entry: &AuditEntry) -> Self {
        Self {
            id: entry.id.to_string(),
            at: entry.at.to_string(),
            operator: entry.operator.clone(),
            interface: entry.interface.as_str(),
            operation: entry.operation.clone(),
            subject: entry.subject.clone(),
            detail: entry.detail.clone(),
            result: entry.result.as_ref().map(|result| result.text.clone()),
            ended_at: entry.result.as_ref().map(|result| result.at.to_string()),
        }
    }
}

/// A job of an account.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JobRow {
    id: String,
    /// Id of the account.
    account: String,
    status: &'static str,
    /// Why it is paused.
    pause_reason: Option<&'static str>,
    /// Address of the list whose videos are its items.
    list: Option<String>,
    created_at: String,
    total: u64,
    queued: u64,
    running: u64,
    done: u64,
    failed: u64,
    /// Credits that it cost so far.
    spent: u64,
}

impl From<&Job> for JobRow {
    fn from(job: &Job) -> Self {
        Self {
            id: job.id.to_string(),
            account: job.account.to_string(),
            status: job.status.as_str(),
            pause_reason: job.pause_reason.map(PauseReason::as_str),
            list: job.list.as_ref().map(|list| list.list.address()),
            created_at: job.created_at.to_string(),
            total: job.counts.total,
            queued: job.counts.queued(),
            running: job.counts.running,
            done: job.counts.done,
            failed: job.counts.failed,
            spent: job.spent,
        }
    }
}

/// Name of the pool that differs.
pub(crate) fn pool_name(difference: &BalanceMismatch) -> String {
    let pool = difference.stored.as_ref().or(difference.recomputed.as_ref());
    match pool.and_then(|pool| pool.pool.bucket()) {
        Some(bucket) => format!("allowance {bucket}"),
        None => "purchased credits".to_owned(),
    }
}

/// The audit of the ledger.
pub(crate) fn audit_report_json(audit: &AuditReport) -> Value {
    let side = |balance: Option<&PoolBalance>| {
        balance.map(|pool| json!({ "spent": pool.spent, "held": pool.held, "granted": pool.granted }))
    };
    let differences = audit.disagreements.iter().map(|disagreement| match disagreement {
        AuditFinding::Balance { wallet, difference } => json!({
            "wallet": wallet.as_str(),
            "kind": "balance",
            "pool": pool_name(difference),
            "stored": side(difference.stored.as_ref()),
            "recomputed": side(difference.recomputed.as_ref()),
        }),
        AuditFinding::Overdraw { wallet, entry } => {
            json!({ "wallet": wallet.as_str(), "kind": "entry", "entry": entry })
        }
        AuditFinding::OrphanHold { wallet } => json!({ "wallet": wallet.as_str(), "kind": "baseless" }),
        AuditFinding::Unstable { wallet } => json!({ "wallet": wallet.as_str(), "kind": "restless" }),
    });
    json!({
        "walletsChecked": audit.wallets,
        "entries": audit.entries,
        "openHolds": audit.open_holds,
        "spent": audit.spent,
        "held": audit.held,
        "granted": audit.granted,
        "differences": differences.collect::<Vec<_>>(),
    })
}
