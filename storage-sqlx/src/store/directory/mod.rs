//! The directory: keys and accounts.

/// The columns of [`read_account`], from a table with the alias `a`.
macro_rules! account_columns {
    () => {
        "a.id, a.version, a.email, a.wallet, a.plan, a.anchor, a.customer, a.subscription, a.blocked,
            a.paid_from, a.paid_through, a.paid_credits, a.paid_monthly_credits,
            a.paid_anchor_before, a.prepaid_until"
    };
}

/// The columns of [`keys::lookup_key`], from a table with the alias `k`.
macro_rules! key_columns {
    () => {
        "k.id, k.digest, k.hint, k.created_at, k.wallet, k.label, k.email, k.subject, k.entitled_until,
            k.expires_at, k.quota, k.quota_period, k.requests, k.last_request_at,
            k.day_start, k.day_requests, k.month_start, k.month_requests"
    };
}

pub(crate) mod key_access;
pub(crate) mod keys;
pub(crate) mod redeem;

use async_trait::async_trait;
use transcript_core::{
    Error, Page, PageRequest, Result, Timestamp,
    directory::{
        Account, AccountKey, AccountRef, AddAccountKeyOutcome, AddKeyOutcome, Directory, EraseOutcome,
        KeyAccessChange, KeyOwner, KeyRequests, KeySummary, LookupKey, NewAccountKey, NewKeyRecord,
        PaidPeriod, Plan, RedeemOutcome, RedeemRequest, RenewRequest, RotateOutcome, UpdateOutcome,
        VerificationToken,
    },
    ids::{AccountId, KeyId, WalletId},
};

use super::{Queues, Store};
use crate::{
    codec::{self, column, number},
    error::{DbResult, corrupt},
    sql::{Database, Row, Session, WriteTx, values},
};

/// Number of columns that [`read_account`] reads.
const ACCOUNT_COLUMNS: usize = 15;
/// Length of a SHA-256 digest in bytes.
const DIGEST_LENGTH: usize = 32;

const KEY_OWNER: &str = concat!(
    "SELECT ",
    account_columns!(),
    ", ",
    key_columns!(),
    " FROM keys k LEFT JOIN accounts a ON a.id = k.account
    WHERE k.digest = $1 AND k.revoked_at IS NULL AND a.erased_at IS NULL"
);
const LIST_KEYS: &str = concat!(
    "SELECT k.seq, k.revoked_at, ",
    key_columns!(),
    " FROM keys k WHERE k.account IS NULL AND k.seq > $1 ORDER BY k.seq LIMIT $2"
);
/// A successor has the counts of the key that it replaced: an earlier use is not its own.
const ACCOUNT_KEYS: &str = "SELECT id, digest, hint, created_at, label,
        CASE WHEN last_request_at >= created_at THEN last_request_at END
    FROM keys WHERE account = $1 AND revoked_at IS NULL ORDER BY seq";
const ACCOUNT_BY_ID: &str =
    concat!("SELECT ", account_columns!(), " FROM accounts a WHERE a.id = $1 AND a.erased_at IS NULL");
const ACCOUNT_BY_EMAIL: &str = concat!("SELECT ", account_columns!(), " FROM accounts a WHERE a.email = $1");
const ACCOUNT_BY_CUSTOMER: &str =
    concat!("SELECT ", account_columns!(), " FROM accounts a WHERE a.customer = $1");
const LIST_ACCOUNTS: &str = concat!(
    "SELECT ",
    account_columns!(),
    ", a.seq FROM accounts a WHERE a.seq > $1 AND a.erased_at IS NULL ORDER BY a.seq LIMIT $2"
);
const CUSTOMER_IN_USE: &str = "SELECT 1 FROM accounts WHERE customer = $1 AND id <> $2";
const UPDATE_ACCOUNT: &str = "UPDATE accounts SET version = $2, plan = $3, anchor = $4, customer = $5,
        subscription = $6, blocked = $7, paid_from = $8, paid_through = $9, paid_credits = $10,
        paid_monthly_credits = $11, paid_anchor_before = $12, prepaid_until = $13
    WHERE id = $1";
/// The row stays, without personal data: its id must not be reused.
const ERASE_ACCOUNT: &str = "UPDATE accounts SET version = version + 1, email = NULL, customer = NULL,
        subscription = NULL, erased_at = $2
    WHERE id = $1 AND erased_at IS NULL";
/// Runs before [`ERASE_ACCOUNT`], while the address is stored.
const ERASE_TOKENS: &str = "DELETE FROM tokens WHERE email = (SELECT email FROM accounts WHERE id = $1)";
const ERASE_KEYS: &str = "DELETE FROM keys WHERE account = $1";

/// Statements that must not scan tables, for the test of the query plans.
#[cfg(all(test, feature = "sqlite"))]
pub(crate) const INDEXED_STATEMENTS: [&str; 10] = [
    KEY_OWNER,
    ACCOUNT_KEYS,
    ACCOUNT_BY_ID,
    ACCOUNT_BY_EMAIL,
    ACCOUNT_BY_CUSTOMER,
    CUSTOMER_IN_USE,
    UPDATE_ACCOUNT,
    ERASE_ACCOUNT,
    ERASE_TOKENS,
    ERASE_KEYS,
];

struct UpdateAccountTx(Account);

impl WriteTx for UpdateAccountTx {
    type Outcome = UpdateOutcome;
    // The repetition of a completed update would find a newer version.
    const IS_IDEMPOTENT: bool = false;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<UpdateOutcome> {
        let Self(account) = self;
        let id = account.id.as_str();
        let Some(mut stored) = db.row(ACCOUNT_BY_ID, &values![id]).await? else {
            return Ok(UpdateOutcome::Missing);
        };
        let stored = read_account(&mut stored)?;
        if stored.version != account.version {
            return Ok(UpdateOutcome::Stale);
        }
        if let Some(customer) = &account.customer
            && db.row(CUSTOMER_IN_USE, &values![customer, id]).await?.is_some()
        {
            return Err(Error::conflict("the customer id belongs to another account").into());
        }
        let changed = Account {
            version: stored.version.saturating_add(1),
            email: stored.email,
            wallet: stored.wallet,
            ..account.clone()
        };
        let row = values![
            id,
            column(changed.version)?,
            changed.plan.as_str(),
            changed.anchor.as_millis(),
            changed.customer.as_ref(),
            changed.subscription.as_ref(),
            changed.blocked,
            changed.paid.map(|paid| paid.from.as_millis()),
            changed.paid.map(|paid| paid.through.as_millis()),
            changed.paid.map(|paid| column(paid.credits)).transpose()?,
            changed.paid.map(|paid| column(paid.monthly_credits)).transpose()?,
            changed.paid.map(|paid| paid.anchor_before.as_millis()),
            changed.prepaid_until.map(Timestamp::as_millis),
        ];
        db.execute(UPDATE_ACCOUNT, &row).await?;
        Ok(UpdateOutcome::Changed(changed))
    }
}

struct EraseAccountTx {
    id: AccountId,
    version: u64,
    now: Timestamp,
}

impl WriteTx for EraseAccountTx {
    type Outcome = EraseOutcome;
    const IS_IDEMPOTENT: bool = false;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<EraseOutcome> {
        let id = self.id.as_str();
        let Some(mut stored) = db.row(ACCOUNT_BY_ID, &values![id]).await? else {
            return Ok(EraseOutcome::Missing);
        };
        if read_account(&mut stored)?.version != self.version {
            return Ok(EraseOutcome::Stale);
        }
        db.execute(ERASE_TOKENS, &values![id]).await?;
        db.execute(ERASE_KEYS, &values![id]).await?;
        db.execute(ERASE_ACCOUNT, &values![id, self.now.as_millis()]).await?;
        Ok(EraseOutcome::Erased)
    }
}

#[async_trait]
impl<D: Database, Q: Queues> Directory for Store<D, Q> {
    async fn key_owner(&self, key_digest: &[u8]) -> Result<Option<KeyOwner>> {
        self.database.find_first(KEY_OWNER, &values![key_digest], owner).await
    }

    async fn add_key(&self, key: LookupKey, live_per_subject: u32) -> Result<AddKeyOutcome> {
        check_digest(&key.key.digest)?;
        self.database.run(keys::AddLookupKeyTx { key, live_per_subject }).await
    }

    async fn renew_entitlement(&self, request: RenewRequest) -> Result<bool> {
        self.database.run(request).await
    }

    async fn rotate(&self, old_digest: &[u8], new: NewKeyRecord) -> Result<RotateOutcome> {
        check_digest(&new.digest)?;
        self.database.run(keys::RotateKeyTx { old_digest: old_digest.to_vec(), new }).await
    }

    async fn add_account_key(&self, new: NewAccountKey, live_max: u32) -> Result<AddAccountKeyOutcome> {
        check_digest(&new.key.digest)?;
        self.database.run(keys::AddAccountKeyTx { new, live_max }).await
    }

    async fn account_keys(&self, account: &AccountId) -> Result<Vec<AccountKey>> {
        let read = |row: &mut Row| {
            let key = NewKeyRecord {
                id: KeyId::new(row.take::<String>(0)?),
                digest: row.take(1)?,
                hint: row.take(2)?,
                now: Timestamp::from_millis(row.take(3)?),
            };
            let last_used_at = row.take::<Option<i64>>(5)?.map(Timestamp::from_millis);
            Ok(AccountKey { key, name: row.take(4)?, last_used_at })
        };
        self.database.find(ACCOUNT_KEYS, &values![account.as_str()], read).await
    }

    async fn revoke_key(&self, key: &KeyId, now: Timestamp) -> Result<bool> {
        let key = values![key.as_str(), now.as_millis()];
        Ok(self.database.execute_once(keys::REVOKE_KEY, &key).await? > 0)
    }

    async fn change_key_access(&self, key: &KeyId, change: KeyAccessChange) -> Result<bool> {
        key_access::change(&self.database, key, change).await
    }

    async fn add_key_requests(&self, requests: Vec<KeyRequests>) -> Result<Vec<KeyRequests>> {
        self.database.run(key_access::AddKeyRequestsTx(requests)).await
    }

    async fn keys(&self, page: PageRequest) -> Result<Page<KeySummary>> {
        let after = codec::numbered(page.after.as_ref())?;
        let bounds = values![after, codec::one_more(&page)];
        let found = self.database.find(LIST_KEYS, &bounds, |row| {
            let revoked_at = row.take::<Option<i64>>(1)?.map(Timestamp::from_millis);
            Ok((row.take::<i64>(0)?, KeySummary { key: keys::lookup_key(row, 2)?, revoked_at }))
        });
        let found = Page::cut(found.await?, &page, |(seq, _)| seq.to_string());
        Ok(Page { items: found.items.into_iter().map(|(_, key)| key).collect(), next: found.next })
    }

    async fn put_token(&self, token: VerificationToken) -> Result<()> {
        check_digest(&token.digest)?;
        self.database.run(token).await
    }

    async fn redeem(&self, request: RedeemRequest) -> Result<RedeemOutcome> {
        check_digest(&request.key.digest)?;
        self.database.run(request).await
    }

    async fn account(&self, who: &AccountRef) -> Result<Option<Account>> {
        let (statement, name) = match who {
            AccountRef::Id(id) => (ACCOUNT_BY_ID, id.as_str()),
            AccountRef::Email(email) => (ACCOUNT_BY_EMAIL, email.as_str()),
            AccountRef::Customer(customer) => (ACCOUNT_BY_CUSTOMER, customer.as_str()),
        };
        self.database.find_first(statement, &values![name], read_account).await
    }

    async fn update_account(&self, account: Account) -> Result<UpdateOutcome> {
        self.database.run(UpdateAccountTx(account)).await
    }

    async fn erase_account(&self, id: &AccountId, version: u64, now: Timestamp) -> Result<EraseOutcome> {
        self.database.run(EraseAccountTx { id: id.clone(), version, now }).await
    }

    async fn accounts(&self, page: PageRequest) -> Result<Page<Account>> {
        let after = codec::numbered(page.after.as_ref())?;
        let bounds = values![after, codec::one_more(&page)];
        let found = self
            .database
            .find(LIST_ACCOUNTS, &bounds, |row| Ok((row.take::<i64>(ACCOUNT_COLUMNS)?, read_account(row)?)));
        let found = Page::cut(found.await?, &page, |(seq, _)| seq.to_string());
        Ok(Page { items: found.items.into_iter().map(|(_, account)| account).collect(), next: found.next })
    }
}

pub(super) fn check_digest(digest: &[u8]) -> Result<()> {
    if digest.len() == DIGEST_LENGTH { Ok(()) } else { Err(Error::invalid("a digest must have 32 bytes")) }
}

/// Decodes the key's owner from a row of [`KEY_OWNER`].
fn owner(row: &mut Row) -> DbResult<KeyOwner> {
    if row.get::<Option<&str>>(0)?.is_none() {
        return Ok(KeyOwner::Lookup(keys::lookup_key(row, ACCOUNT_COLUMNS)?));
    }
    Ok(KeyOwner::Account {
        key: KeyId::new(row.take::<String>(ACCOUNT_COLUMNS)?),
        account: read_account(row)?,
    })
}

/// Decodes the account in the first columns of a row.
fn read_account(row: &mut Row) -> DbResult<Account> {
    Ok(Account {
        id: AccountId::new(row.take::<String>(0)?),
        version: number(row.take(1)?)?,
        email: row.take(2)?,
        wallet: WalletId::new(row.take::<String>(3)?),
        plan: Plan::from_wire(row.get(4)?).ok_or_else(|| corrupt("a stored plan is unknown"))?,
        anchor: Timestamp::from_millis(row.get(5)?),
        customer: row.take(6)?,
        subscription: row.take(7)?,
        blocked: row.take(8)?,
        paid: paid_period(row)?,
        prepaid_until: row.get::<Option<i64>>(14)?.map(Timestamp::from_millis),
    })
}

/// The paid period of an account. `None` unless all of its columns are set.
fn paid_period(row: &Row) -> DbResult<Option<PaidPeriod>> {
    let [from, through, credits, monthly]: [Option<i64>; 4] =
        [row.get(9)?, row.get(10)?, row.get(11)?, row.get(12)?];
    let (Some(from), Some(through), Some(credits), Some(monthly)) = (from, through, credits, monthly) else {
        return Ok(None);
    };
    // Older versions stored no previous anchor: the current one applies then.
    let before = row.get::<Option<i64>>(13)?.map_or_else(|| row.get(5), Ok)?;
    Ok(Some(PaidPeriod {
        from: Timestamp::from_millis(from),
        through: Timestamp::from_millis(through),
        credits: number(credits)?,
        monthly_credits: number(monthly)?,
        anchor_before: Timestamp::from_millis(before),
    }))
}
