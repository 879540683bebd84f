//! Directory of keys and accounts of the app.

use async_trait::async_trait;
use transcript_core::{
    Page, PageRequest, Result, Timestamp,
    directory::{
        self as core, Account, AccountRef, AddKeyOutcome, Directory, EraseOutcome, KeyAccess, KeySummary,
        LookupKey, NewKeyRecord, PaidPeriod, PeriodRequests, Plan, RedeemOutcome, RedeemRequest,
        RenewRequest, RequestCounts, RequestQuota, RotateOutcome, VerificationToken,
    },
    ids::{AccountId, Cursor, KeyId, WalletId},
    ledger::terms::AllowancePeriod,
};

use super::ForeignStore;
use crate::error::VerbatimError;

/// A new API key: only its digest is stored.
#[uniffi::remote(Record)]
pub struct NewKeyRecord {
    /// Id of the key.
    pub id: KeyId,
    /// Digest of the key: 32 bytes.
    pub digest: Vec<u8>,
    /// First characters of the key, for display.
    pub hint: String,
    /// Current time.
    pub now: Timestamp,
}

/// A key of the lookup API.
#[uniffi::remote(Record)]
pub struct LookupKey {
    /// The key.
    pub key: NewKeyRecord,
    /// Wallet of the key.
    pub wallet: WalletId,
    /// Label for the owner.
    pub label: Option<String>,
    /// Email address of the owner.
    pub email: Option<String>,
    /// Subject of the proof of a paid plan.
    pub subject: Option<String>,
    /// Expiry of the entitlement.
    pub entitled_until: Option<Timestamp>,
    /// Expiry, quota and requests of the key.
    pub access: KeyAccess,
}

/// Expiry, quota and requests of a key.
#[uniffi::remote(Record)]
pub struct KeyAccess {
    /// Expiry of the key.
    pub expires_at: Option<Timestamp>,
    /// Maximum number of requests.
    pub quota: Option<RequestQuota>,
    /// Requests so far.
    pub requests: RequestCounts,
}

/// Maximum number of requests in a period.
#[uniffi::remote(Record)]
pub struct RequestQuota {
    /// The maximum.
    pub max: u64,
    /// The period, in UTC.
    pub period: AllowancePeriod,
}

/// Calendar period in UTC.
#[uniffi::remote(Enum)]
pub enum AllowancePeriod {
    /// Month.
    Month,
    /// Day.
    Day,
}

/// Counts of requests.
#[uniffi::remote(Record)]
pub struct RequestCounts {
    /// All requests.
    pub total: u64,
    /// Time of the last request.
    pub last_at: Option<Timestamp>,
    /// Those of the latest day with a request.
    pub day: PeriodRequests,
    /// Those of the latest month with a request.
    pub month: PeriodRequests,
}

/// Requests within one day or month.
#[uniffi::remote(Record)]
pub struct PeriodRequests {
    /// Start of the period.
    pub start: Option<Timestamp>,
    /// Number of requests.
    pub count: u64,
}

/// A key of the lookup API, with its revocation.
#[uniffi::remote(Record)]
pub struct KeySummary {
    /// The key.
    pub key: LookupKey,
    /// Time of revocation; `None` for a live key.
    pub revoked_at: Option<Timestamp>,
}

/// An account's plan.
#[uniffi::remote(Enum)]
pub enum Plan {
    /// Free.
    Free,
    /// Starter.
    Starter,
    /// Pro.
    Pro,
    /// Scale.
    Scale,
}

/// A paid period.
#[uniffi::remote(Record)]
pub struct PaidPeriod {
    /// Start.
    pub from: Timestamp,
    /// End.
    pub through: Timestamp,
    /// Credits of the period.
    pub credits: u64,
    /// Credits per month.
    pub monthly_credits: u64,
    /// The account's anchor before the period.
    pub anchor_before: Timestamp,
}

/// An account.
#[uniffi::remote(Record)]
pub struct Account {
    /// Id of the account.
    pub id: AccountId,
    /// Version for optimistic locking: each update states the version that it changes.
    pub version: u64,
    /// Normalized email address; unique.
    pub email: String,
    /// Wallet of the account.
    pub wallet: WalletId,
    /// Plan of the account.
    pub plan: Plan,
    /// Start of the billing months.
    pub anchor: Timestamp,
    /// The paid period.
    pub paid: Option<PaidPeriod>,
    /// Customer id at the payment provider; unique.
    pub customer: Option<String>,
    /// Subscription id at the payment provider.
    pub subscription: Option<String>,
    /// Whether the account is blocked.
    pub blocked: bool,
    /// Until when the account may have a prepaid delivery.
    pub prepaid_until: Option<Timestamp>,
}

/// Reference to an account.
#[uniffi::remote(Enum)]
pub enum AccountRef {
    /// Id of the account.
    Id(AccountId),
    /// Email address of the account.
    Email(String),
    /// Customer id at the payment provider.
    Customer(String),
}

/// Outcome of adding a key.
#[uniffi::remote(Enum)]
pub enum AddKeyOutcome {
    /// The key is stored.
    Added,
    /// The subject has the maximum of live keys.
    SubjectFull {
        /// Time at which the first of them expires.
        room_at: Option<Timestamp>,
    },
}

/// Request to renew the entitlement of a key.
#[uniffi::remote(Record)]
pub struct RenewRequest {
    /// The key.
    pub key: KeyId,
    /// Subject of the proof.
    pub subject: String,
    /// Expiry of the entitlement.
    pub until: Timestamp,
    /// Current time.
    pub now: Timestamp,
    /// Maximum of live keys per subject.
    pub live_per_subject: u32,
}

/// Verification token of a mail: only its digest is stored.
#[uniffi::remote(Record)]
pub struct VerificationToken {
    /// Digest of the token.
    pub digest: Vec<u8>,
    /// Recipient of the mail.
    pub email: String,
    /// Expiry.
    pub expires_at: Timestamp,
    /// Current time.
    pub now: Timestamp,
}

/// Request to redeem a token.
#[uniffi::remote(Record)]
pub struct RedeemRequest {
    /// Digest of the token.
    pub digest: Vec<u8>,
    /// Whether an existing key may be replaced.
    pub confirmed: bool,
    /// Id for the account, if it is new.
    pub new_account: AccountId,
    /// Wallet for the account, if it is new.
    pub new_wallet: WalletId,
    /// New key of the account.
    pub key: NewKeyRecord,
}

/// Outcome of replacing a key.
#[uniffi::remote(Enum)]
pub enum RotateOutcome {
    /// The key is replaced.
    Rotated,
    /// The old key is not a live key of an account.
    Stale,
}

/// Outcome of erasing an account.
#[uniffi::remote(Enum)]
pub enum EraseOutcome {
    /// The account is erased.
    Erased,
    /// Another call changed the account first.
    Stale,
    /// There is no such account.
    Missing,
}

/// Owner of an API key.
#[derive(Clone, Debug, uniffi::Enum)]
pub enum KeyOwner {
    /// A key of the lookup API.
    Lookup {
        /// The key.
        key: LookupKey,
    },
    /// A key of the v1 API.
    V1 {
        /// The key.
        key: KeyId,
        /// The account of the key.
        account: Account,
    },
}

/// Outcome of redeeming a token.
#[uniffi::remote(Enum)]
pub enum RedeemOutcome {
    /// The key is issued.
    Issued {
        /// The account.
        account: Account,
        /// Whether the account is new.
        first: bool,
    },
    /// The account has a key, and `confirmed` is false.
    NeedsConfirmation,
    /// The token is unknown, used or expired.
    Invalid,
}

/// Outcome of updating an account.
#[derive(Clone, Debug, uniffi::Enum)]
#[expect(clippy::large_enum_variant, reason = "converted once, at the boundary")]
pub enum UpdateOutcome {
    /// The account is updated.
    Changed {
        /// The account as stored now.
        account: Account,
    },
    /// Another call changed the account first.
    Stale,
    /// There is no such account.
    Missing,
}

/// Page of keys.
#[derive(Clone, Debug, uniffi::Record)]
pub struct KeyPage {
    /// The items, in order.
    pub items: Vec<KeySummary>,
    /// Cursor of the next page; `None` at the end.
    pub next: Option<Cursor>,
}

/// Page of accounts.
#[derive(Clone, Debug, uniffi::Record)]
pub struct AccountPage {
    /// The items, in order.
    pub items: Vec<Account>,
    /// Cursor of the next page; `None` at the end.
    pub next: Option<Cursor>,
}

/// Store of keys, accounts and verification tokens. Each call is one transaction.
#[uniffi::export(rust, foreign)]
#[async_trait]
pub trait DirectoryStore: Send + Sync {
    /// Owner of a live key.
    async fn key_owner(&self, key_digest: Vec<u8>) -> Result<Option<KeyOwner>, VerbatimError>;
    /// Adds a key of the lookup API.
    async fn add_key(&self, key: LookupKey, live_per_subject: u32) -> Result<AddKeyOutcome, VerbatimError>;
    /// Renews the entitlement of a key; false if there is no such live key.
    async fn renew_entitlement(&self, request: RenewRequest) -> Result<bool, VerbatimError>;
    /// Replaces the key of an account.
    async fn rotate(
        &self,
        old_digest: Vec<u8>,
        new_key: NewKeyRecord,
    ) -> Result<RotateOutcome, VerbatimError>;
    /// Revokes a key of the lookup API; false if there is no such live key.
    async fn revoke_key(&self, key: KeyId, now: Timestamp) -> Result<bool, VerbatimError>;
    /// Lists the keys of the lookup API.
    async fn keys(&self, page: PageRequest) -> Result<KeyPage, VerbatimError>;
    /// Stores the digest of a token.
    async fn put_token(&self, token: VerificationToken) -> Result<(), VerbatimError>;
    /// Redeems a token for a key of the account, which is created if it does not exist.
    async fn redeem(&self, request: RedeemRequest) -> Result<RedeemOutcome, VerbatimError>;
    /// Finds an account.
    async fn account(&self, reference: AccountRef) -> Result<Option<Account>, VerbatimError>;
    /// Updates an account if its version is unchanged.
    async fn update_account(&self, account: Account) -> Result<UpdateOutcome, VerbatimError>;
    /// Erases an account and its keys if its version is unchanged.
    async fn erase_account(
        &self,
        id: AccountId,
        version: u64,
        now: Timestamp,
    ) -> Result<EraseOutcome, VerbatimError>;
    /// Lists the accounts.
    async fn accounts(&self, page: PageRequest) -> Result<AccountPage, VerbatimError>;
}

#[async_trait]
impl Directory for ForeignStore<dyn DirectoryStore> {
    async fn key_owner(&self, key_digest: &[u8]) -> Result<Option<core::KeyOwner>> {
        Ok(self.call(self.store.key_owner(key_digest.to_vec())).await?.map(|owner| match owner {
            KeyOwner::Lookup { key } => core::KeyOwner::Lookup(key),
            KeyOwner::V1 { key, account } => core::KeyOwner::Account { key, account },
        }))
    }

    async fn add_key(&self, key: LookupKey, live_per_subject: u32) -> Result<AddKeyOutcome> {
        self.call(self.store.add_key(key, live_per_subject)).await
    }

    async fn renew_entitlement(&self, request: RenewRequest) -> Result<bool> {
        self.call(self.store.renew_entitlement(request)).await
    }

    async fn rotate(&self, old_digest: &[u8], new: NewKeyRecord) -> Result<RotateOutcome> {
        self.call(self.store.rotate(old_digest.to_vec(), new)).await
    }

    async fn revoke_key(&self, key: &KeyId, now: Timestamp) -> Result<bool> {
        self.call(self.store.revoke_key(key.clone(), now)).await
    }

    async fn keys(&self, page: PageRequest) -> Result<Page<KeySummary>> {
        let after = page.after.clone();
        let KeyPage { items, next } = self.call(self.store.keys(page)).await?;
        self.page(after, items, next)
    }

    async fn put_token(&self, token: VerificationToken) -> Result<()> {
        self.call(self.store.put_token(token)).await
    }

    async fn redeem(&self, request: RedeemRequest) -> Result<RedeemOutcome> {
        self.call(self.store.redeem(request)).await
    }

    async fn account(&self, reference: &AccountRef) -> Result<Option<Account>> {
        self.call(self.store.account(reference.clone())).await
    }

    async fn update_account(&self, account: Account) -> Result<core::UpdateOutcome> {
        Ok(match self.call(self.store.update_account(account)).await? {
            UpdateOutcome::Changed { account } => core::UpdateOutcome::Changed(account),
            UpdateOutcome::Stale => core::UpdateOutcome::Stale,
            UpdateOutcome::Missing => core::UpdateOutcome::Missing,
        })
    }

    async fn erase_account(&self, id: &AccountId, version: u64, now: Timestamp) -> Result<EraseOutcome> {
        self.call(self.store.erase_account(id.clone(), version, now)).await
    }

    async fn accounts(&self, page: PageRequest) -> Result<Page<Account>> {
        let after = page.after.clone();
        let AccountPage { items, next } = self.call(self.store.accounts(page)).await?;
        self.page(after, items, next)
    }
}
