//! Keys, accounts and verification tokens.

use serde::{Deserialize, Serialize};

use crate::{
    ids::{AccountId, KeyId, WalletId},
    time::Timestamp,
};

/// A new key, without the key itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewKey {
    /// Its public name.
    pub id: KeyId,
    /// The SHA-256 of the whole key: 32 bytes.
    pub digest: Vec<u8>,
    /// The key's first characters, for people to tell their keys apart.
    pub hint: String,
    /// The present moment.
    pub now: Timestamp,
}

/// A key of Surface A.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookupKey {
    /// The key; its `now` is when it was made.
    pub key: NewKey,
    /// Its wallet.
    pub wallet: WalletId,
    /// What its owner calls it.
    pub label: Option<String>,
    /// Its owner's e-mail address, where one was given.
    pub email: Option<String>,
    /// Whose paid plan it is entitled by.
    pub subject: Option<String>,
    /// Until when that plan was proven.
    pub entitled_until: Option<Timestamp>,
}

/// A key of Surface A as operators see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeySummary {
    /// The key.
    pub key: LookupKey,
    /// When it was revoked, if it was.
    pub revoked_at: Option<Timestamp>,
}

/// A plan of Surface B (specification 3).
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

impl Plan {
    /// All of them, smallest first.
    pub const ALL: [Self; 4] = [Self::Free, Self::Starter, Self::Pro, Self::Scale];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Starter => "starter",
            Self::Pro => "pro",
            Self::Scale => "scale",
        }
    }

    /// The plan with this wire name.
    pub fn from_wire(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|plan| plan.as_str() == name)
    }
}

/// An account of Surface B.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Its id.
    pub id: AccountId,
    /// Counts its changes, from 1.
    pub version: u64,
    /// Its e-mail address, in normal form.
    pub email: String,
    /// Its wallet.
    pub wallet: WalletId,
    /// Its plan.
    pub plan: Plan,
    /// The moment by which its months are counted.
    pub anchor: Timestamp,
    /// The latest stretch of a plan that was paid for, also when it has ended.
    pub paid: Option<PaidPeriod>,
    /// The payment provider's name for it.
    pub customer: Option<String>,
    /// The payment provider's name for its subscription.
    pub subscription: Option<String>,
    /// Whether the operator blocked it.
    pub blocked: bool,
}

/// A stretch of a plan that was paid for, and what was sold with it.
///
/// The figures stay as they were sold, whatever the settings say by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaidPeriod {
    /// When it begins.
    pub from: Timestamp,
    /// When it ends; that moment is no longer in it.
    pub through: Timestamp,
    /// How many credits it gives in all: a month's, or what changes of the plan within it made of them.
    pub credits: u64,
    /// How many credits a whole month of the plan has, as it was sold.
    pub monthly_credits: u64,
    /// The moment by which months were counted before it: they are again when all its money goes back.
    pub anchor_before: Timestamp,
}

/// Whose key it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// A key of Surface A, its own owner.
    Lookup(LookupKey),
    /// A key of Surface B.
    Account {
        /// The key.
        key: KeyId,
        /// The account that it opens.
        account: Account,
    },
}

/// How an account is looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccountRef {
    /// By its id.
    Id(AccountId),
    /// By its e-mail address, in normal form.
    Email(String),
    /// By the payment provider's name for it.
    Customer(String),
}

/// What came of adding a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AddKey {
    /// It is stored.
    Added,
    /// Its subject has as many live plus keys as it may.
    SubjectFull {
        /// When there is room for one more, unless keys are renewed; none when the limit is 0.
        room_at: Option<Timestamp>,
    },
}

/// A request to put off the end of a key's entitlement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entitle {
    /// The key.
    pub key: KeyId,
    /// Whose paid plan was proven.
    pub subject: String,
    /// Until when.
    pub until: Timestamp,
    /// The present moment.
    pub now: Timestamp,
    /// How many live plus keys a subject may have.
    pub live_per_subject: u32,
}

/// A verification token, without the token itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// The token's SHA-256: 32 bytes.
    pub digest: Vec<u8>,
    /// The address that it was sent to, in normal form.
    pub email: String,
    /// When it ends.
    pub expires_at: Timestamp,
    /// The present moment.
    pub now: Timestamp,
}

/// A request to redeem a verification token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Redeem {
    /// The token's SHA-256.
    pub digest: Vec<u8>,
    /// Whether a person confirmed it by a click.
    pub confirmed: bool,
    /// The id of the account, should one be made.
    pub new_account: AccountId,
    /// The wallet of the account, should one be made.
    pub new_wallet: WalletId,
    /// The account's new key.
    pub key: NewKey,
}

/// What came of redeeming a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Redeemed {
    /// The key is issued.
    Issued {
        /// The account.
        account: Account,
        /// Whether it was made just now.
        first: bool,
    },
    /// The address has an account: a person must confirm before its old keys die.
    NeedsConfirmation,
    /// The token is unknown, used or expired.
    Invalid,
}

/// What came of a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rotated {
    /// The new key has taken the old one's place.
    Rotated,
    /// The old key was no longer live.
    Stale,
}

/// What came of erasing an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Erased {
    /// It is gone.
    Erased,
    /// Somebody else changed it first; it is as it was.
    Stale,
    /// There is no such account, or none any more.
    Missing,
}

/// What came of changing an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Changed {
    /// The account as it is stored now.
    Changed(Account),
    /// Somebody else changed it first.
    Stale,
    /// There is no such account.
    Missing,
}
