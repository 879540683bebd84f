//! Records of API keys, accounts and verification tokens.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::KeyAccess;
use crate::{
    ids::{AccountId, KeyId, WalletId},
    names::names,
    time::Timestamp,
};

/// Record of a new key, without the key itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewKeyRecord {
    /// Public id of the key.
    pub id: KeyId,
    /// SHA-256 of the whole key: 32 bytes.
    pub digest: Vec<u8>,
    /// First characters of the key, by which a user recognises it.
    pub hint: String,
    /// Current time.
    pub now: Timestamp,
}

/// A key of the lookup API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookupKey {
    /// The key; its `now` is the time of creation.
    pub key: NewKeyRecord,
    /// Wallet of the key.
    pub wallet: WalletId,
    /// Label chosen by the owner.
    pub label: Option<String>,
    /// Email address of the owner, if given.
    pub email: Option<String>,
    /// Subject of the paid plan that entitles the key.
    pub subject: Option<String>,
    /// End of the proven entitlement.
    pub entitled_until: Option<Timestamp>,
    /// Expiry and quota, which an operator sets, and the requests so far.
    #[serde(default)]
    pub access: KeyAccess,
}

/// A key of the lookup API as operators see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeySummary {
    /// The key.
    pub key: LookupKey,
    /// Time of revocation; `None` if not revoked.
    pub revoked_at: Option<Timestamp>,
}

/// A further key of an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewAccountKey {
    /// The key; its `now` is the time of creation.
    pub key: NewKeyRecord,
    /// The account.
    pub account: AccountId,
    /// Name that the holder gave the key.
    pub name: String,
}

/// A live key of an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountKey {
    /// The key; its `now` is the time of creation.
    pub key: NewKeyRecord,
    /// Name that the holder gave it; `None` for a key that a mail issued.
    pub name: Option<String>,
    /// Time of the last request since its creation, as stored.
    pub last_used_at: Option<Timestamp>,
}

/// A plan of the v1 API (specification 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Plan {
    /// The plan of every new account.
    Free,
    /// The smallest paid plan.
    Starter,
    /// The middle paid plan.
    Pro,
    /// The largest paid plan.
    Scale,
}

names!(
    /// The smallest is first.
    Plan, from_wire {
        Free = "free",
        Starter = "starter",
        Pro = "pro",
        Scale = "scale",
    }
);

/// An account of the v1 API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Id of the account.
    pub id: AccountId,
    /// Number of changes, from 1.
    pub version: u64,
    /// Email address, in normal form; a name without `@` if an operator created the account without an address.
    pub email: String,
    /// Wallet of the account.
    pub wallet: WalletId,
    /// Plan of the account.
    pub plan: Plan,
    /// Start of its monthly periods.
    pub anchor: Timestamp,
    /// Latest paid period, also after its end.
    pub paid: Option<PaidPeriod>,
    /// Customer id at the payment provider.
    pub customer: Option<String>,
    /// Subscription id at the payment provider.
    pub subscription: Option<String>,
    /// Whether the operator blocked the account.
    pub blocked: bool,
    /// Until when the account may have a prepaid delivery; `None` if it never had one.
    #[serde(default)]
    pub prepaid_until: Option<Timestamp>,
}

/// A period of a plan that was paid for.
///
/// The figures stay as sold, whatever the settings are now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaidPeriod {
    /// Start of the period.
    pub from: Timestamp,
    /// End of the period, exclusive.
    pub through: Timestamp,
    /// Credits of the period: a month's, or the result of plan changes within it.
    pub credits: u64,
    /// Credits of a whole month of the plan, as sold.
    pub monthly_credits: u64,
    /// Anchor before this period; it applies again if the whole payment is refunded.
    pub anchor_before: Timestamp,
}

/// Owner of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyOwner {
    /// A key of the lookup API, which is its own owner.
    Lookup(LookupKey),
    /// A key of the v1 API.
    Account {
        /// The key.
        key: KeyId,
        /// The account of the key.
        account: Account,
    },
}

/// Reference to an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccountRef {
    /// By id.
    Id(AccountId),
    /// By email address, in normal form.
    Email(String),
    /// By customer id at the payment provider.
    Customer(String),
}

/// Outcome of adding a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AddKeyOutcome {
    /// The key is stored.
    Added,
    /// The subject has the maximum of live plus keys.
    SubjectFull {
        /// Time at which another key fits, unless keys are renewed; `None` if the maximum is 0.
        room_at: Option<Timestamp>,
    },
}

/// Outcome of adding a key to an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AddAccountKeyOutcome {
    /// The key is stored.
    Added,
    /// The account has the maximum of live keys.
    AccountFull,
    /// There is no such account.
    Missing,
}

/// Request to extend a key's entitlement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenewRequest {
    /// The key.
    pub key: KeyId,
    /// Subject of the proven paid plan.
    pub subject: String,
    /// End of the proven entitlement.
    pub until: Timestamp,
    /// Current time.
    pub now: Timestamp,
    /// Maximum of live plus keys per subject.
    pub live_per_subject: u32,
}

/// Record of a verification token, without the token itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerificationToken {
    /// SHA-256 of the token: 32 bytes.
    pub digest: Vec<u8>,
    /// Address that the token was sent to, in normal form.
    pub email: String,
    /// Expiry of the token.
    pub expires_at: Timestamp,
    /// Current time.
    pub now: Timestamp,
}

impl VerificationToken {
    /// How long the token of a mail is valid.
    pub const VALIDITY: Duration = Duration::from_secs(24 * 3_600);

    /// The latest expiry of a token that is valid at `now`: a clock that was ahead made those with a later one.
    pub fn expiry_max(now: Timestamp) -> Timestamp {
        now.expiry_max(Self::VALIDITY)
    }
}

/// Request to redeem a verification token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RedeemRequest {
    /// SHA-256 of the token.
    pub digest: Vec<u8>,
    /// Whether a person confirmed it by a click.
    pub confirmed: bool,
    /// Id of the account, if one is created.
    pub new_account: AccountId,
    /// Wallet of the account, if one is created.
    pub new_wallet: WalletId,
    /// New key of the account.
    pub key: NewKeyRecord,
}

/// Outcome of redeeming a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "one outcome of a rare call")]
pub enum RedeemOutcome {
    /// The key is issued.
    Issued {
        /// The account.
        account: Account,
        /// Whether the account was created by this redemption.
        first: bool,
    },
    /// The address has an account: a person must confirm before its old keys are revoked.
    NeedsConfirmation,
    /// The token is unknown, used or expired.
    Invalid,
}

/// Outcome of a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RotateOutcome {
    /// The new key replaced the old one.
    Rotated,
    /// The old key was no longer live.
    Stale,
}

/// Outcome of erasing an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EraseOutcome {
    /// The account is erased.
    Erased,
    /// Another call changed the account first; nothing was erased.
    Stale,
    /// There is no such account, or it was erased before.
    Missing,
}

/// Outcome of changing an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "one outcome of a rare call")]
pub enum UpdateOutcome {
    /// The account as stored now.
    Changed(Account),
    /// Another call changed the account first.
    Stale,
    /// There is no such account.
    Missing,
}
