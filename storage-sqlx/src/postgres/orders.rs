//! Orders in PostgreSQL.

use async_trait::async_trait;
use sqlx::{PgConnection, Row, postgres::PgRow};
use transcript_core::{
    Error, Page, PageRequest, Result, Timestamp,
    accounts::{Item, Order, OrderState, Orders},
    directory::Plan,
    ids::{AccountId, Cursor, OrderId},
};

use super::{
    PostgresStore,
    database::{Ask, Change, Read},
    text::{own, perhaps, read as read_text, read_perhaps},
};
use crate::{
    codec::{column, json, number, one_more, page_of},
    error::{Work, conflict, corrupt},
};

const OPEN: &str = "INSERT INTO orders
    (id, version, account, item_kind, item, credits, amount_minor, currency, state, payment, created_at,
    taken_back)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (id) DO NOTHING";
const ORDER: &str =
    "SELECT version, account, item_kind, item, credits, amount_minor, currency, state, payment,
    created_at, taken_back, id FROM orders WHERE id = $1";
const OF_ACCOUNT: &str =
    "SELECT version, account, item_kind, item, credits, amount_minor, currency, state, payment,
    created_at, taken_back, id FROM orders
    WHERE account = $1 AND (created_at, id) > ($2, $3) ORDER BY created_at, id LIMIT $4";
const UNSETTLED: &str =
    "SELECT version, account, item_kind, item, credits, amount_minor, currency, state, payment,
    created_at, taken_back, id FROM orders
    WHERE state = 'open' AND (created_at, id) > ($1, $2) ORDER BY created_at, id LIMIT $3";
/// What was sold, to whom and at what price stays as it was opened.
const UPDATE: &str = "UPDATE orders SET version = version + 1, state = $3, payment = $4, taken_back = $5
    WHERE id = $1 AND version = $2";

/// One statement that writes; what is there already is read only where it does not.
struct Open(Order);

impl Change for Open {
    type Outcome = ();
    const IS_STEP: bool = true;

    async fn make(&self, db: &mut PgConnection) -> Work<()> {
        let Self(order) = self;
        if opening(order)?.execute(&mut *db).await?.rows_affected() > 0 {
            return Ok(());
        }
        let stored = sqlx::query(ORDER).bind(own(order.id.as_str())).fetch_one(db).await?;
        let stored = read(&stored)?;
        // The same order, as far along as the stored one is.
        let same = Order {
            version: stored.version,
            state: stored.state,
            payment: stored.payment.clone(),
            taken_back: stored.taken_back.clone(),
            ..order.clone()
        };
        if same == stored { Ok(()) } else { Err(conflict("the id is another order's").into()) }
    }
}

struct Update {
    order: Order,
    expected_version: u64,
}

impl Change for Update {
    type Outcome = bool;
    const IS_STEP: bool = true;
    // A repeat of an update that was made would hear that another one came first.
    const IS_REPEATABLE: bool = false;

    async fn make(&self, db: &mut PgConnection) -> Work<bool> {
        let Self { order, expected_version } = self;
        let update = sqlx::query(UPDATE).bind(own(order.id.as_str())).bind(column(*expected_version)?);
        let update = update.bind(order.state.as_str()).bind(perhaps(order.payment.as_deref()));
        let update = update.bind(json(&order.taken_back)?);
        Ok(update.execute(db).await?.rows_affected() > 0)
    }
}

fn opening(order: &Order) -> Result<Ask> {
    let (item_kind, item) = match &order.item {
        Item::Pack(name) => ("pack", name.as_str()),
        Item::Plan(plan) => ("plan", plan.as_str()),
    };
    Ok(sqlx::query(OPEN)
        .bind(own(order.id.as_str()))
        .bind(column(order.version)?)
        .bind(own(order.account.as_str()))
        .bind(item_kind)
        .bind(own(item))
        .bind(column(order.credits)?)
        .bind(column(order.amount_minor)?)
        .bind(own(&order.currency))
        .bind(order.state.as_str())
        .bind(perhaps(order.payment.as_deref()))
        .bind(order.created_at.as_millis())
        .bind(json(&order.taken_back)?))
}

#[async_trait]
impl Orders for PostgresStore {
    async fn open(&self, order: Order) -> Result<()> {
        if order.version != 1 {
            return Err(Error::invalid("a new order is of version 1"));
        }
        self.database.make(Open(order)).await
    }

    async fn order(&self, id: &OrderId) -> Result<Option<Order>> {
        self.database.find_first(Read::new(ORDER).text(id.as_str()), read).await
    }

    async fn update(&self, order: Order, expected_version: u64) -> Result<bool> {
        self.database.make(Update { order, expected_version }).await
    }

    async fn unsettled(&self, page: PageRequest) -> Result<Page<Order>> {
        let (moment, id) = place(page.after.as_ref())?;
        let ask = Read::new(UNSETTLED).number(moment).text(&id).number(one_more(&page));
        Ok(page_of(self.database.find(ask, read).await?, &page, cursor))
    }

    async fn of_account(&self, account: &AccountId, page: PageRequest) -> Result<Page<Order>> {
        let (moment, id) = place(page.after.as_ref())?;
        let ask = Read::new(OF_ACCOUNT).text(account.as_str()).number(moment).text(&id);
        let ask = ask.number(one_more(&page));
        Ok(page_of(self.database.find(ask, read).await?, &page, cursor))
    }
}

/// Where a page ends with this order.
fn cursor(order: &Order) -> String {
    format!("{}/{}", order.created_at.as_millis(), order.id)
}

/// Moment and id of the last order before a page.
fn place(after: Option<&Cursor>) -> Result<(i64, String)> {
    let Some(cursor) = after else { return Ok((-1, String::new())) };
    let parts = cursor.as_str().split_once('/');
    let place = parts.and_then(|(moment, id)| Some((moment.parse().ok()?, id.to_owned())));
    place.ok_or_else(|| Error::invalid("this is no cursor of this store"))
}

fn read(row: &PgRow) -> Work<Order> {
    let unknown = || corrupt("a stored order has an item or a state that nobody knows");
    let item = match row.try_get(2)? {
        "pack" => Item::Pack(read_text(row, 3)?),
        _ => Item::Plan(Plan::from_wire(row.try_get(3)?).ok_or_else(unknown)?),
    };
    Ok(Order {
        id: OrderId::new(read_text(row, 11)?),
        version: number(row.try_get(0)?)?,
        account: AccountId::new(read_text(row, 1)?),
        item,
        credits: number(row.try_get(4)?)?,
        amount_minor: number(row.try_get(5)?)?,
        currency: read_text(row, 6)?,
        state: OrderState::from_name(row.try_get(7)?).ok_or_else(unknown)?,
        payment: read_perhaps(row, 8)?,
        created_at: Timestamp::from_millis(row.try_get(9)?),
        taken_back: serde_json::from_str(row.try_get(10)?)
            .map_err(|_| corrupt("what was taken back of a stored order is no list of numbers"))?,
    })
}
