//! The directory in PostgreSQL: whose key it is, and what is known of accounts.

/// The columns of [`read_account`], of a table called `a`.
macro_rules! account_columns {
    () => {
        "a.id, a.version, a.email, a.wallet, a.plan, a.anchor, a.customer, a.subscription, a.blocked,
            a.paid_from, a.paid_through, a.paid_credits, a.paid_monthly_credits,
            a.paid_anchor_before"
    };
}

/// The columns of [`keys::lookup_key`], of a table called `k`.
macro_rules! key_columns {
    () => {
        "k.id, k.digest, k.hint, k.created_at, k.wallet, k.label, k.email, k.subject, k.entitled_until"
    };
}

pub(super) mod keys;
pub(super) mod redeem;

use async_trait::async_trait;
use sqlx::{PgConnection, Row, postgres::PgRow};
use transcript_core::{
    Error, Page, PageRequest, Result, Timestamp,
    directory::{
        Account, AccountRef, AddKey, Changed, Directory, Entitle, Erased, KeySummary, LookupKey, NewKey,
        Owner, PaidPeriod, Plan, Redeem, Redeemed, Rotated, Token,
    },
    ids::{AccountId, KeyId, WalletId},
};

use super::{
    PostgresStore,
    database::{Change, Read},
    text::{own, perhaps, read, read_perhaps},
};
use crate::{
    codec::{self, column, number},
    error::{Work, conflict, corrupt},
};

/// How many columns [`read_account`] reads.
const ACCOUNT_COLUMNS: usize = 14;
/// The length of a SHA-256.
const DIGEST_LENGTH: usize = 32;

const OWNER: &str = concat!(
    "SELECT ",
    account_columns!(),
    ", ",
    key_columns!(),
    " FROM keys k LEFT JOIN accounts a ON a.id = k.account
    WHERE k.digest = $1 AND k.revoked_at IS NULL AND a.erased_at IS NULL"
);
const KEYS: &str = concat!(
    "SELECT k.seq, k.revoked_at, ",
    key_columns!(),
    " FROM keys k WHERE k.account IS NULL AND k.seq > $1 ORDER BY k.seq LIMIT $2"
);
const BY_ID: &str =
    concat!("SELECT ", account_columns!(), " FROM accounts a WHERE a.id = $1 AND a.erased_at IS NULL");
const BY_EMAIL: &str = concat!("SELECT ", account_columns!(), " FROM accounts a WHERE a.email = $1");
const BY_CUSTOMER: &str = concat!("SELECT ", account_columns!(), " FROM accounts a WHERE a.customer = $1");
const ACCOUNTS: &str = concat!(
    "SELECT ",
    account_columns!(),
    ", a.seq FROM accounts a WHERE a.seq > $1 AND a.erased_at IS NULL ORDER BY a.seq LIMIT $2"
);
const CUSTOMER_TAKEN: &str = "SELECT 1 FROM accounts WHERE customer = $1 AND id <> $2";
const CHANGE: &str = "UPDATE accounts SET version = $2, plan = $3, anchor = $4, customer = $5,
        subscription = $6, blocked = $7, paid_from = $8, paid_through = $9, paid_credits = $10,
        paid_monthly_credits = $11, paid_anchor_before = $12
    WHERE id = $1";
/// The row stays, without anything of the person: its id must not come into use again.
const ERASE: &str = "UPDATE accounts SET version = version + 1, email = NULL, customer = NULL,
        subscription = NULL, erased_at = $2
    WHERE id = $1 AND erased_at IS NULL";
/// Runs before [`ERASE`], while the address is there.
const ERASE_TOKENS: &str = "DELETE FROM tokens WHERE email = (SELECT email FROM accounts WHERE id = $1)";
const ERASE_KEYS: &str = "DELETE FROM keys WHERE account = $1";

struct ChangeAccount(Account);

impl Change for ChangeAccount {
    type Outcome = Changed;
    // A repeat of a change that was made would hear that another one came first.
    const IS_REPEATABLE: bool = false;

    async fn make(&self, db: &mut PgConnection) -> Work<Changed> {
        let Self(account) = self;
        let id = own(account.id.as_str());
        let Some(stored) = sqlx::query(BY_ID).bind(id.clone()).fetch_optional(&mut *db).await? else {
            return Ok(Changed::Missing);
        };
        let stored = read_account(&stored)?;
        if stored.version != account.version {
            return Ok(Changed::Stale);
        }
        if let Some(customer) = &account.customer {
            let taken = sqlx::query(CUSTOMER_TAKEN).bind(own(customer)).bind(id.clone());
            if taken.fetch_optional(&mut *db).await?.is_some() {
                return Err(conflict("the customer is another account's").into());
            }
        }
        let changed = Account {
            version: stored.version.saturating_add(1),
            email: stored.email,
            wallet: stored.wallet,
            ..account.clone()
        };
        let change = sqlx::query(CHANGE)
            .bind(id)
            .bind(column(changed.version)?)
            .bind(changed.plan.as_str())
            .bind(changed.anchor.as_millis())
            .bind(perhaps(changed.customer.as_deref()))
            .bind(perhaps(changed.subscription.as_deref()))
            .bind(changed.blocked)
            .bind(changed.paid.map(|paid| paid.from.as_millis()))
            .bind(changed.paid.map(|paid| paid.through.as_millis()))
            .bind(changed.paid.map(|paid| column(paid.credits)).transpose()?)
            .bind(changed.paid.map(|paid| column(paid.monthly_credits)).transpose()?)
            .bind(changed.paid.map(|paid| paid.anchor_before.as_millis()));
        change.execute(db).await?;
        Ok(Changed::Changed(changed))
    }
}

struct Erase {
    id: AccountId,
    version: u64,
    now: Timestamp,
}

impl Change for Erase {
    type Outcome = Erased;
    const IS_REPEATABLE: bool = false;

    async fn make(&self, db: &mut PgConnection) -> Work<Erased> {
        let id = own(self.id.as_str());
        let stored = sqlx::query(BY_ID).bind(id.clone()).fetch_optional(&mut *db).await?;
        let Some(stored) = stored.as_ref().map(read_account).transpose()? else {
            return Ok(Erased::Missing);
        };
        if stored.version != self.version {
            return Ok(Erased::Stale);
        }
        sqlx::query(ERASE_TOKENS).bind(id.clone()).execute(&mut *db).await?;
        sqlx::query(ERASE_KEYS).bind(id.clone()).execute(&mut *db).await?;
        sqlx::query(ERASE).bind(id).bind(self.now.as_millis()).execute(db).await?;
        Ok(Erased::Erased)
    }
}

#[async_trait]
impl Directory for PostgresStore {
    async fn owner(&self, key_digest: &[u8]) -> Result<Option<Owner>> {
        self.database.find_first(Read::new(OWNER).bytes(key_digest), owner).await
    }

    async fn add_key(&self, key: LookupKey, live_per_subject: u32) -> Result<AddKey> {
        check_digest(&key.key.digest)?;
        let numbers = self.database.clone();
        self.database.make(keys::Add { key, live_per_subject, numbers }).await
    }

    async fn entitle(&self, ask: Entitle) -> Result<bool> {
        self.database.make(ask).await
    }

    async fn rotate(&self, old_digest: &[u8], new: NewKey) -> Result<Rotated> {
        check_digest(&new.digest)?;
        let (old_digest, numbers) = (old_digest.to_vec(), self.database.clone());
        self.database.make(keys::Rotate { old_digest, new, numbers }).await
    }

    async fn revoke_key(&self, key: &KeyId, now: Timestamp) -> Result<bool> {
        self.database.make(keys::RevokeKey { key: key.clone(), now }).await
    }

    async fn keys(&self, page: PageRequest) -> Result<Page<KeySummary>> {
        let after = codec::numbered(page.after.as_ref())?;
        let ask = Read::new(KEYS).number(after).number(codec::one_more(&page));
        let found = self.database.find(ask, |row| {
            let revoked_at = row.try_get::<Option<i64>, _>(1)?.map(Timestamp::from_millis);
            Ok((row.try_get::<i64, _>(0)?, KeySummary { key: keys::lookup_key(row, 2)?, revoked_at }))
        });
        let found = codec::page_of(found.await?, &page, |(seq, _)| seq.to_string());
        Ok(Page { items: found.items.into_iter().map(|(_, key)| key).collect(), next: found.next })
    }

    async fn put_token(&self, token: Token) -> Result<()> {
        check_digest(&token.digest)?;
        self.database.make(token).await
    }

    async fn redeem(&self, ask: Redeem) -> Result<Redeemed> {
        check_digest(&ask.key.digest)?;
        let numbers = self.database.clone();
        self.database.make(redeem::Redemption { ask, numbers }).await
    }

    async fn account(&self, who: &AccountRef) -> Result<Option<Account>> {
        let (statement, name) = match who {
            AccountRef::Id(id) => (BY_ID, id.as_str()),
            AccountRef::Email(email) => (BY_EMAIL, email.as_str()),
            AccountRef::Customer(customer) => (BY_CUSTOMER, customer.as_str()),
        };
        self.database.find_first(Read::new(statement).text(name), read_account).await
    }

    async fn change_account(&self, account: Account) -> Result<Changed> {
        self.database.make(ChangeAccount(account)).await
    }

    async fn erase_account(&self, id: &AccountId, version: u64, now: Timestamp) -> Result<Erased> {
        self.database.make(Erase { id: id.clone(), version, now }).await
    }

    async fn accounts(&self, page: PageRequest) -> Result<Page<Account>> {
        let after = codec::numbered(page.after.as_ref())?;
        let ask = Read::new(ACCOUNTS).number(after).number(codec::one_more(&page));
        let found =
            self.database.find(ask, |row| Ok((row.try_get::<i64, _>(ACCOUNT_COLUMNS)?, read_account(row)?)));
        let found = codec::page_of(found.await?, &page, |(seq, _)| seq.to_string());
        Ok(Page { items: found.items.into_iter().map(|(_, account)| account).collect(), next: found.next })
    }
}

fn check_digest(digest: &[u8]) -> Result<()> {
    if digest.len() == DIGEST_LENGTH { Ok(()) } else { Err(Error::invalid("a digest has 32 bytes")) }
}

/// Whose key it is, of a row of [`OWNER`].
fn owner(row: &PgRow) -> Work<Owner> {
    if row.try_get::<Option<&str>, _>(0)?.is_none() {
        return Ok(Owner::Lookup(keys::lookup_key(row, ACCOUNT_COLUMNS)?));
    }
    Ok(Owner::Account { key: KeyId::new(read(row, ACCOUNT_COLUMNS)?), account: read_account(row)? })
}

/// The account in the first columns of a row.
fn read_account(row: &PgRow) -> Work<Account> {
    Ok(Account {
        id: AccountId::new(read(row, 0)?),
        version: number(row.try_get(1)?)?,
        email: read(row, 2)?,
        wallet: WalletId::new(read(row, 3)?),
        plan: Plan::from_wire(row.try_get(4)?).ok_or_else(|| corrupt("a stored plan has no known name"))?,
        anchor: Timestamp::from_millis(row.try_get(5)?),
        customer: read_perhaps(row, 6)?,
        subscription: read_perhaps(row, 7)?,
        blocked: row.try_get(8)?,
        paid: paid_period(row)?,
    })
}

/// The paid stretch of an account; all of its columns are there, or it has none.
fn paid_period(row: &PgRow) -> Work<Option<PaidPeriod>> {
    let [from, through, credits, monthly]: [Option<i64>; 4] =
        [row.try_get(9)?, row.try_get(10)?, row.try_get(11)?, row.try_get(12)?];
    let (Some(from), Some(through), Some(credits), Some(monthly)) = (from, through, credits, monthly) else {
        return Ok(None);
    };
    // A stretch that an older program stored says nothing: months go on as they are counted.
    let before = row.try_get::<Option<i64>, _>(13)?.map_or_else(|| row.try_get(5), Ok)?;
    Ok(Some(PaidPeriod {
        from: Timestamp::from_millis(from),
        through: Timestamp::from_millis(through),
        credits: number(credits)?,
        monthly_credits: number(monthly)?,
        anchor_before: Timestamp::from_millis(before),
    }))
}
