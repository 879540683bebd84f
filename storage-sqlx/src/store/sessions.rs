//! Sessions and sign-in links.

use async_trait::async_trait;
use transcript_core::{
    Error, Result, Timestamp,
    accounts::{NewSession, RedeemLinkRequest, Session, SessionStore, SignInLink},
    ids::{AccountId, SessionId},
};

use super::{Queues, Store, directory::check_digest};
use crate::{
    error::DbResult,
    sql::{Database, Row, Session as DbSession, Statement, WriteTx, sql, values},
};

const DELETE_EXPIRED_SESSIONS: &str = "DELETE FROM sessions WHERE digest IN (
        SELECT digest FROM sessions WHERE expires_at <= $1 ORDER BY expires_at LIMIT 16
    )";
const DELETE_EXPIRED_LINKS: &str = "DELETE FROM sign_in_links WHERE digest IN (
        SELECT digest FROM sign_in_links WHERE expires_at <= $1 ORDER BY expires_at LIMIT 16
    )";
const ADD_SESSION: &str = "INSERT INTO sessions
    (digest, id, account, device, created_at, last_seen_at, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (digest) DO NOTHING";
const FIND_SESSION: &str = "SELECT id, account, device, created_at, last_seen_at, expires_at
    FROM sessions WHERE digest = $1 AND expires_at > $2";
const SESSION_ID: &str = "SELECT id FROM sessions WHERE digest = $1";
/// Keeps the new session ($3) also if a clock that was ahead wrote later uses of others.
const DELETE_ABOVE_LIMIT: &str =
    "DELETE FROM sessions WHERE account = $1 AND digest <> $3 AND digest NOT IN (
        SELECT digest FROM sessions WHERE account = $1 AND digest <> $3
        ORDER BY last_seen_at DESC, digest LIMIT $2
    )";
const TOUCH_SESSION: Statement = sql! {
    sqlite: "UPDATE sessions SET last_seen_at = max(last_seen_at, $2), expires_at = max(expires_at, $3)
        WHERE digest = $1",
    postgres: "UPDATE sessions
        SET last_seen_at = greatest(last_seen_at, $2), expires_at = greatest(expires_at, $3)
        WHERE digest = $1",
};
const LIST_SESSIONS: &str = "SELECT id, account, device, created_at, last_seen_at, expires_at
    FROM sessions WHERE account = $1 AND expires_at > $2 ORDER BY last_seen_at DESC, id LIMIT 1000";
const REVOKE_SESSION: &str = "DELETE FROM sessions WHERE id = $1 AND account = $2";
const REVOKE_SESSIONS: &str = "DELETE FROM sessions WHERE account = $1 AND id <> $2";
const DELETE_LINKS: &str = "DELETE FROM sign_in_links WHERE account = $1";
const PUT_LINK: &str = "INSERT INTO sign_in_links (digest, account, expires_at) VALUES ($1, $2, $3)
    ON CONFLICT (digest) DO NOTHING";
const LINK_ACCOUNT: &str = "SELECT account FROM sign_in_links WHERE digest = $1";
/// Only one of concurrent redemptions changes the row.
const USE_LINK: &str = "UPDATE sign_in_links SET used_for = $2
    WHERE digest = $1 AND used_for IS NULL AND expires_at > $3 AND expires_at <= $4";
const FIND_REDEEMED: &str = "SELECT s.id, s.account, s.device, s.created_at, s.last_seen_at, s.expires_at
    FROM sign_in_links l JOIN sessions s ON s.digest = l.used_for WHERE l.digest = $1 AND l.used_for = $2";

/// Statements that must not scan tables, for the test of the query plans.
#[cfg(all(test, feature = "sqlite"))]
pub(crate) const INDEXED_STATEMENTS: [&str; 15] = [
    DELETE_EXPIRED_SESSIONS,
    DELETE_EXPIRED_LINKS,
    ADD_SESSION,
    FIND_SESSION,
    SESSION_ID,
    DELETE_ABOVE_LIMIT,
    TOUCH_SESSION.sqlite,
    LIST_SESSIONS,
    REVOKE_SESSION,
    REVOKE_SESSIONS,
    DELETE_LINKS,
    PUT_LINK,
    LINK_ACCOUNT,
    USE_LINK,
    FIND_REDEEMED,
];

impl WriteTx for NewSession {
    type Outcome = ();

    async fn run<S: DbSession>(&self, db: &mut S) -> DbResult<()> {
        db.execute(DELETE_EXPIRED_SESSIONS, &values![self.session.created_at.as_millis()]).await?;
        add(db, self).await
    }
}

/// Stores a session, and ends those above the limit of its account.
async fn add<S: DbSession>(db: &mut S, new: &NewSession) -> DbResult<()> {
    let Session { id, account, device, created_at, last_seen_at, expires_at } = &new.session;
    let row = values![
        &new.digest,
        id.as_str(),
        account.as_str(),
        device,
        created_at.as_millis(),
        last_seen_at.as_millis(),
        expires_at.as_millis(),
    ];
    if db.execute(ADD_SESSION, &row).await? == 0 {
        let stored = db.only_row(SESSION_ID, &values![&new.digest]).await?;
        return match stored.get::<&str>(0)? == id.as_str() {
            true => Ok(()),
            false => Err(Error::conflict("the digest belongs to another session").into()),
        };
    }
    let others_max = new.account_max.saturating_sub(1);
    db.execute(DELETE_ABOVE_LIMIT, &values![account.as_str(), others_max, &new.digest]).await?;
    Ok(())
}

struct RevokeSessionsTx {
    account: AccountId,
    except: Option<SessionId>,
}

impl WriteTx for RevokeSessionsTx {
    type Outcome = u64;
    // A repetition would report fewer.
    const IS_IDEMPOTENT: bool = false;

    async fn run<S: DbSession>(&self, db: &mut S) -> DbResult<u64> {
        let except = self.except.as_ref().map_or("", SessionId::as_str);
        db.execute(DELETE_LINKS, &values![self.account.as_str()]).await?;
        db.execute(REVOKE_SESSIONS, &values![self.account.as_str(), except]).await
    }
}

impl WriteTx for SignInLink {
    type Outcome = ();

    async fn run<S: DbSession>(&self, db: &mut S) -> DbResult<()> {
        db.execute(DELETE_EXPIRED_LINKS, &values![self.now.as_millis()]).await?;
        let link = values![&self.digest, self.account.as_str(), self.expires_at.as_millis()];
        db.execute(PUT_LINK, &link).await?;
        let stored = db.only_row(LINK_ACCOUNT, &values![&self.digest]).await?;
        match stored.get::<&str>(0)? == self.account.as_str() {
            true => Ok(()),
            false => Err(Error::conflict("the link's digest is stored for another account").into()),
        }
    }
}

impl WriteTx for RedeemLinkRequest {
    type Outcome = Option<Session>;

    async fn run<S: DbSession>(&self, db: &mut S) -> DbResult<Option<Session>> {
        let now = self.now.as_millis();
        let expiry_max = SignInLink::expiry_max(self.now).as_millis();
        if db.execute(USE_LINK, &values![&self.link, &self.digest, now, expiry_max]).await? == 0 {
            let repeated = db.row(FIND_REDEEMED, &values![&self.link, &self.digest]).await?;
            return repeated.map(|mut row| read(&mut row)).transpose();
        }
        let mut link = db.only_row(LINK_ACCOUNT, &values![&self.link]).await?;
        let session = Session {
            id: self.session.clone(),
            account: AccountId::new(link.take::<String>(0)?),
            device: self.device.clone(),
            created_at: self.now,
            last_seen_at: self.now,
            expires_at: self.expires_at,
        };
        db.execute(DELETE_EXPIRED_SESSIONS, &values![now]).await?;
        let (digest, account_max) = (self.digest.clone(), self.account_max);
        add(db, &NewSession { digest, session: session.clone(), account_max }).await?;
        Ok(Some(session))
    }
}

#[async_trait]
impl<D: Database, Q: Queues> SessionStore for Store<D, Q> {
    async fn open_session(&self, session: NewSession) -> Result<()> {
        check_digest(&session.digest)?;
        self.database.run(session).await
    }

    async fn session(&self, digest: &[u8], now: Timestamp) -> Result<Option<Session>> {
        self.database.find_first(FIND_SESSION, &values![digest, now.as_millis()], read).await
    }

    async fn touch_session(&self, digest: &[u8], now: Timestamp, expires_at: Timestamp) -> Result<bool> {
        let session = values![digest, now.as_millis(), expires_at.as_millis()];
        Ok(self.database.execute(TOUCH_SESSION, &session).await? > 0)
    }

    async fn sessions(&self, account: &AccountId, now: Timestamp) -> Result<Vec<Session>> {
        self.database.find(LIST_SESSIONS, &values![account.as_str(), now.as_millis()], read).await
    }

    async fn revoke_session(&self, account: &AccountId, session: &SessionId) -> Result<bool> {
        let session = values![session.as_str(), account.as_str()];
        Ok(self.database.execute_once(REVOKE_SESSION, &session).await? > 0)
    }

    async fn revoke_sessions(&self, account: &AccountId, except: Option<&SessionId>) -> Result<u64> {
        self.database.run(RevokeSessionsTx { account: account.clone(), except: except.cloned() }).await
    }

    async fn put_link(&self, link: SignInLink) -> Result<()> {
        check_digest(&link.digest)?;
        self.database.run(link).await
    }

    async fn redeem_link(&self, request: RedeemLinkRequest) -> Result<Option<Session>> {
        check_digest(&request.digest)?;
        self.database.run(request).await
    }
}

fn read(row: &mut Row) -> DbResult<Session> {
    Ok(Session {
        id: SessionId::new(row.take::<String>(0)?),
        account: AccountId::new(row.take::<String>(1)?),
        device: row.take(2)?,
        created_at: Timestamp::from_millis(row.take(3)?),
        last_seen_at: Timestamp::from_millis(row.take(4)?),
        expires_at: Timestamp::from_millis(row.take(5)?),
    })
}
