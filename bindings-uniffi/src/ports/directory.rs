//! Keys and accounts of the app's.

use async_trait::async_trait;
use transcript_core::{
    Page, PageRequest, Result, Timestamp,
    directory::{
        Account, AccountRef, AddKey, Changed, Directory, Entitle, Erased, KeySummary, LookupKey, NewKey,
        Owner, PaidPeriod, Plan, Redeem, Redeemed, Rotated, Token,
    },
    ids::{AccountId, Cursor, KeyId, WalletId},
};

use super::Foreign;
use crate::error::VerbatimError;

/// A key that was made: only its digest is stored.
#[uniffi::remote(Record)]
pub struct NewKey {
    /// Its id.
    pub id: KeyId,
    /// The digest of the key: 32 bytes.
    pub digest: Vec<u8>,
    /// Its first characters, for display.
    pub hint: String,
    /// When it was made.
    pub now: Timestamp,
}

/// A key for look-ups.
#[uniffi::remote(Record)]
pub struct LookupKey {
    /// The key.
    pub key: NewKey,
    /// What it spends from.
    pub wallet: WalletId,
    /// A name for its owner.
    pub label: Option<String>,
    /// Its owner's address.
    pub email: Option<String>,
    /// Whom a proof of a paid plan named.
    pub subject: Option<String>,
    /// Until when that proof holds.
    pub entitled_until: Option<Timestamp>,
}

/// A key for look-ups, and whether it lives.
#[uniffi::remote(Record)]
pub struct KeySummary {
    /// The key.
    pub key: LookupKey,
    /// When it was revoked; none while it lives.
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

/// A time that was paid for.
#[uniffi::remote(Record)]
pub struct PaidPeriod {
    /// Its beginning.
    pub from: Timestamp,
    /// Its end.
    pub through: Timestamp,
    /// The credits that it has.
    pub credits: u64,
    /// The credits of each month.
    pub monthly_credits: u64,
    /// From when months were counted before.
    pub anchor_before: Timestamp,
}

/// An account.
#[uniffi::remote(Record)]
pub struct Account {
    /// Its id.
    pub id: AccountId,
    /// Counts its changes: a change names the one that it is made on.
    pub version: u64,
    /// Its owner's address, in normal form; no two accounts have the same.
    pub email: String,
    /// What it spends from.
    pub wallet: WalletId,
    /// Its plan.
    pub plan: Plan,
    /// From when its months are counted.
    pub anchor: Timestamp,
    /// The time that was paid for.
    pub paid: Option<PaidPeriod>,
    /// Its name at the payment provider; no two accounts have the same.
    pub customer: Option<String>,
    /// Its subscription there.
    pub subscription: Option<String>,
    /// Whether it may do nothing.
    pub blocked: bool,
}

/// How an account is named.
#[uniffi::remote(Enum)]
pub enum AccountRef {
    /// By its id.
    Id(AccountId),
    /// By its owner's address.
    Email(String),
    /// By its name at the payment provider.
    Customer(String),
}

/// What came of adding a key.
#[uniffi::remote(Enum)]
pub enum AddKey {
    /// It is there.
    Added,
    /// Its subject has as many live keys as it may.
    SubjectFull {
        /// When one of them ends.
        room_at: Option<Timestamp>,
    },
}

/// To renew a key by a proof of a paid plan.
#[uniffi::remote(Record)]
pub struct Entitle {
    /// The key.
    pub key: KeyId,
    /// Whom the proof names.
    pub subject: String,
    /// Until when it holds.
    pub until: Timestamp,
    /// The present moment.
    pub now: Timestamp,
    /// How many live keys a subject may have.
    pub live_per_subject: u32,
}

/// A token of a mail: only its digest is stored.
#[uniffi::remote(Record)]
pub struct Token {
    /// The digest of the token.
    pub digest: Vec<u8>,
    /// To whom it was sent.
    pub email: String,
    /// When it ends.
    pub expires_at: Timestamp,
    /// The present moment.
    pub now: Timestamp,
}

/// To redeem a token.
#[uniffi::remote(Record)]
pub struct Redeem {
    /// The digest of the token.
    pub digest: Vec<u8>,
    /// Whether a key that the account has may end.
    pub confirmed: bool,
    /// The id of the account, where it is new.
    pub new_account: AccountId,
    /// Its wallet, where it is new.
    pub new_wallet: WalletId,
    /// The account's key from then on.
    pub key: NewKey,
}

/// What came of replacing a key.
#[uniffi::remote(Enum)]
pub enum Rotated {
    /// It is replaced.
    Rotated,
    /// It was no account's living key.
    Stale,
}

/// What came of erasing an account.
#[uniffi::remote(Enum)]
pub enum Erased {
    /// It is erased.
    Erased,
    /// It was changed meanwhile.
    Stale,
    /// There is none.
    Missing,
}

/// Whose a key is.
#[derive(Clone, Debug, uniffi::Enum)]
pub enum KeyOwner {
    /// A key for look-ups.
    OfLookups {
        /// It.
        key: LookupKey,
    },
    /// An account's.
    OfAccount {
        /// The key.
        key_id: KeyId,
        /// The account.
        holder: Account,
    },
}

/// What came of redeeming a token.
#[derive(Clone, Debug, uniffi::Enum)]
pub enum Redemption {
    /// The key is the account's.
    Issued {
        /// The account.
        holder: Account,
        /// Whether it is new.
        first: bool,
    },
    /// The account has a key, which this would end.
    NeedsConfirmation,
    /// The token is none, or has ended or was redeemed.
    Invalid,
}

/// What came of changing an account.
#[derive(Clone, Debug, uniffi::Enum)]
pub enum AccountChange {
    /// It is changed.
    Done {
        /// How it is now.
        holder: Account,
    },
    /// It was changed meanwhile.
    Stale,
    /// There is none.
    Missing,
}

/// A part of the list of keys.
#[derive(Clone, Debug, uniffi::Record)]
pub struct KeyPage {
    /// The items, in order.
    pub items: Vec<KeySummary>,
    /// What to ask for to go on; none when there is no more.
    pub next: Option<Cursor>,
}

/// A part of the list of accounts.
#[derive(Clone, Debug, uniffi::Record)]
pub struct AccountPage {
    /// The items, in order.
    pub items: Vec<Account>,
    /// What to ask for to go on; none when there is no more.
    pub next: Option<Cursor>,
}

/// Keys, accounts and tokens. Each call is one transaction.
#[uniffi::export(rust, foreign)]
#[async_trait]
pub trait DirectoryStore: Send + Sync {
    /// Whose a living key is.
    async fn owner(&self, key_digest: Vec<u8>) -> Result<Option<KeyOwner>, VerbatimError>;
    /// Adds a key for look-ups.
    async fn add_key(&self, key: LookupKey, live_per_subject: u32) -> Result<AddKey, VerbatimError>;
    /// Renews a key by a proof of a paid plan; whether it could.
    async fn entitle(&self, ask: Entitle) -> Result<bool, VerbatimError>;
    /// Replaces an account's key.
    async fn rotate(&self, old_digest: Vec<u8>, new_key: NewKey) -> Result<Rotated, VerbatimError>;
    /// Ends a key for look-ups; whether there was one.
    async fn revoke_key(&self, key: KeyId, now: Timestamp) -> Result<bool, VerbatimError>;
    /// The keys for look-ups.
    async fn keys(&self, page: PageRequest) -> Result<KeyPage, VerbatimError>;
    /// Stores a token's digest.
    async fn put_token(&self, token: Token) -> Result<(), VerbatimError>;
    /// Redeems a token for a key of the account, which is made where it is not there.
    async fn redeem(&self, ask: Redeem) -> Result<Redemption, VerbatimError>;
    /// An account.
    async fn account(&self, who: AccountRef) -> Result<Option<Account>, VerbatimError>;
    /// Changes an account, if it is still at the version that is named.
    async fn change_account(&self, account: Account) -> Result<AccountChange, VerbatimError>;
    /// Erases an account and its keys, if it is still at this version.
    async fn erase_account(
        &self,
        id: AccountId,
        version: u64,
        now: Timestamp,
    ) -> Result<Erased, VerbatimError>;
    /// The accounts.
    async fn accounts(&self, page: PageRequest) -> Result<AccountPage, VerbatimError>;
}

#[async_trait]
impl Directory for Foreign<dyn DirectoryStore> {
    async fn owner(&self, key_digest: &[u8]) -> Result<Option<Owner>> {
        Ok(self.ask(self.store.owner(key_digest.to_vec())).await?.map(|owner| match owner {
            KeyOwner::OfLookups { key } => Owner::Lookup(key),
            KeyOwner::OfAccount { key_id, holder } => Owner::Account { key: key_id, account: holder },
        }))
    }

    async fn add_key(&self, key: LookupKey, live_per_subject: u32) -> Result<AddKey> {
        self.ask(self.store.add_key(key, live_per_subject)).await
    }

    async fn entitle(&self, ask: Entitle) -> Result<bool> {
        self.ask(self.store.entitle(ask)).await
    }

    async fn rotate(&self, old_digest: &[u8], new: NewKey) -> Result<Rotated> {
        self.ask(self.store.rotate(old_digest.to_vec(), new)).await
    }

    async fn revoke_key(&self, key: &KeyId, now: Timestamp) -> Result<bool> {
        self.ask(self.store.revoke_key(key.clone(), now)).await
    }

    async fn keys(&self, page: PageRequest) -> Result<Page<KeySummary>> {
        let KeyPage { items, next } = self.ask(self.store.keys(page)).await?;
        Ok(Page { items, next })
    }

    async fn put_token(&self, token: Token) -> Result<()> {
        self.ask(self.store.put_token(token)).await
    }

    async fn redeem(&self, ask: Redeem) -> Result<Redeemed> {
        Ok(match self.ask(self.store.redeem(ask)).await? {
            Redemption::Issued { holder, first } => Redeemed::Issued { account: holder, first },
            Redemption::NeedsConfirmation => Redeemed::NeedsConfirmation,
            Redemption::Invalid => Redeemed::Invalid,
        })
    }

    async fn account(&self, who: &AccountRef) -> Result<Option<Account>> {
        self.ask(self.store.account(who.clone())).await
    }

    async fn change_account(&self, account: Account) -> Result<Changed> {
        Ok(match self.ask(self.store.change_account(account)).await? {
            AccountChange::Done { holder } => Changed::Changed(holder),
            AccountChange::Stale => Changed::Stale,
            AccountChange::Missing => Changed::Missing,
        })
    }

    async fn erase_account(&self, id: &AccountId, version: u64, now: Timestamp) -> Result<Erased> {
        self.ask(self.store.erase_account(id.clone(), version, now)).await
    }

    async fn accounts(&self, page: PageRequest) -> Result<Page<Account>> {
        let AccountPage { items, next } = self.ask(self.store.accounts(page)).await?;
        Ok(Page { items, next })
    }
}
