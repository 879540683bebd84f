//! Admin tokens and the audit log.

use async_trait::async_trait;
use transcript_core::{
    Error, Page, PageRequest, Result, Timestamp,
    admin::{AdminStore, AdminToken, AuditEntry, AuditId, AuditResult, NewAdminToken, OperatorInterface},
};

use super::{Queues, Store, directory::check_digest};
use crate::{
    codec,
    error::{DbResult, corrupt},
    sql::{Database, Row, Session, WriteTx, values},
};

const ADD_TOKEN: &str = "INSERT INTO admin_tokens (name, digest, created_at) VALUES ($1, $2, $3)
    ON CONFLICT (name) DO NOTHING";
const TOKEN_DIGEST: &str = "SELECT digest FROM admin_tokens WHERE name = $1";
const DIGEST_IN_USE: &str = "SELECT 1 FROM admin_tokens WHERE digest = $1 AND name <> $2";
const TOKEN_NAME: &str = "SELECT name FROM admin_tokens WHERE digest = $1 AND revoked_at IS NULL";
const REVOKE_TOKEN: &str = "UPDATE admin_tokens SET revoked_at = $2 WHERE name = $1 AND revoked_at IS NULL";
const LIST_TOKENS: &str = "SELECT name, created_at, revoked_at FROM admin_tokens WHERE name > $1
    ORDER BY name LIMIT $2";
const BEGIN_ENTRY: &str =
    "INSERT INTO audit_log (seq, id, at, operator, interface, operation, subject, detail)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (id) DO NOTHING";
const END_ENTRY: &str = "UPDATE audit_log SET ended_at = $2, result = $3, subject = coalesce(subject, $4)
    WHERE id = $1 AND result IS NULL";
const LIST_ENTRIES: &str =
    "SELECT seq, id, at, operator, interface, operation, subject, detail, ended_at, result
    FROM audit_log WHERE seq < $1 ORDER BY seq DESC LIMIT $2";

/// Statements that must not scan tables, for the test of the query plans.
#[cfg(all(test, feature = "sqlite"))]
pub(crate) const INDEXED_STATEMENTS: [&str; 9] = [
    ADD_TOKEN,
    TOKEN_DIGEST,
    DIGEST_IN_USE,
    TOKEN_NAME,
    REVOKE_TOKEN,
    LIST_TOKENS,
    BEGIN_ENTRY,
    END_ENTRY,
    LIST_ENTRIES,
];

impl WriteTx for NewAdminToken {
    type Outcome = bool;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<bool> {
        if db.row(DIGEST_IN_USE, &values![&self.digest, &self.name]).await?.is_some() {
            return Err(Error::conflict("the digest belongs to another admin token").into());
        }
        db.execute(ADD_TOKEN, &values![&self.name, &self.digest, self.now.as_millis()]).await?;
        let stored = db.only_row(TOKEN_DIGEST, &values![&self.name]).await?;
        Ok(stored.get::<&[u8]>(0)? == self.digest)
    }
}

struct BeginAuditTx(AuditEntry);

impl WriteTx for BeginAuditTx {
    type Outcome = ();

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<()> {
        let AuditEntry { id, at, operator, interface, operation, subject, detail, result: _ } = &self.0;
        let row = values![
            db.next_number(*at),
            id.as_str(),
            at.as_millis(),
            operator,
            interface.as_str(),
            operation,
            subject.as_ref(),
            detail.as_ref(),
        ];
        db.execute(BEGIN_ENTRY, &row).await?;
        Ok(())
    }
}

#[async_trait]
impl<D: Database, Q: Queues> AdminStore for Store<D, Q> {
    async fn add_admin_token(&self, token: NewAdminToken) -> Result<bool> {
        check_digest(&token.digest)?;
        self.database.run(token).await
    }

    async fn admin_name(&self, digest: &[u8]) -> Result<Option<String>> {
        self.database.find_first(TOKEN_NAME, &values![digest], |row| row.take(0)).await
    }

    async fn revoke_admin_token(&self, name: &str, now: Timestamp) -> Result<bool> {
        let token = values![name, now.as_millis()];
        Ok(self.database.execute_once(REVOKE_TOKEN, &token).await? > 0)
    }

    async fn admin_tokens(&self, page: PageRequest) -> Result<Page<AdminToken>> {
        let after = page.after.as_ref().map_or("", |cursor| cursor.as_str());
        let bounds = values![after, codec::one_more(&page)];
        let found = self.database.find(LIST_TOKENS, &bounds, |row| {
            Ok(AdminToken {
                name: row.take(0)?,
                created_at: Timestamp::from_millis(row.take(1)?),
                revoked_at: row.take::<Option<i64>>(2)?.map(Timestamp::from_millis),
            })
        });
        Ok(Page::cut(found.await?, &page, |token| token.name.clone()))
    }

    async fn begin_audit(&self, entry: AuditEntry) -> Result<()> {
        self.database.run(BeginAuditTx(entry)).await
    }

    async fn end_audit(&self, id: &AuditId, result: AuditResult, subject: Option<String>) -> Result<()> {
        let row = values![id.as_str(), result.at.as_millis(), &result.text, subject.as_ref()];
        self.database.execute(END_ENTRY, &row).await?;
        Ok(())
    }

    async fn audit_log(&self, page: PageRequest) -> Result<Page<AuditEntry>> {
        let before = codec::numbered_before(page.after.as_ref())?;
        let bounds = values![before, codec::one_more(&page)];
        let found =
            self.database.find(LIST_ENTRIES, &bounds, |row| Ok((row.take::<i64>(0)?, read_entry(row)?)));
        let found = Page::cut(found.await?, &page, |(seq, _)| seq.to_string());
        Ok(Page { items: found.items.into_iter().map(|(_, entry)| entry).collect(), next: found.next })
    }
}

/// Decodes an entry from the second column on.
fn read_entry(row: &mut Row) -> DbResult<AuditEntry> {
    let ended_at = row.take::<Option<i64>>(8)?.map(Timestamp::from_millis);
    let text = row.take::<Option<String>>(9)?;
    Ok(AuditEntry {
        id: AuditId::new(row.take::<String>(1)?),
        at: Timestamp::from_millis(row.take(2)?),
        operator: row.take(3)?,
        interface: OperatorInterface::from_wire(row.get(4)?)
            .ok_or_else(|| corrupt("an entry of the audit log has an unknown interface"))?,
        operation: row.take(5)?,
        subject: row.take(6)?,
        detail: row.take(7)?,
        result: ended_at.zip(text).map(|(at, text)| AuditResult { at, text }),
    })
}
