//! Orders in SQLite.

use async_trait::async_trait;
use sqlx::{Row, SqliteConnection, sqlite::SqliteRow};
use transcript_core::{
    Error, Result, Timestamp,
    accounts::{Item, Order, OrderState, Orders},
    directory::Plan,
    ids::{AccountId, OrderId},
};

use super::{SqliteStore, readers::Ask, writer::Change};
use crate::{
    codec::{column, number},
    error::{Work, conflict, corrupt},
};

const OPEN: &str = "INSERT INTO orders
    (id, version, account, item_kind, item, credits, amount_minor, currency, state, payment, created_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT (id) DO NOTHING";
const ORDER: &str =
    "SELECT version, account, item_kind, item, credits, amount_minor, currency, state, payment,
    created_at FROM orders WHERE id = ?1";
/// What was sold, to whom and at what price stays as it was opened.
const UPDATE: &str = "UPDATE orders SET version = version + 1, state = ?3, payment = ?4
    WHERE id = ?1 AND version = ?2";

struct Open(Order);

impl Change for Open {
    type Outcome = ();

    async fn make(&self, db: &mut SqliteConnection) -> Work<()> {
        let Self(order) = self;
        if opening(order)?.execute(&mut *db).await?.rows_affected() > 0 {
            return Ok(());
        }
        let stored = sqlx::query(ORDER).bind(order.id.as_str().to_owned()).fetch_one(db).await?;
        let stored = read(&order.id, &stored)?;
        // The same order, as far along as the stored one is.
        let same = Order {
            version: stored.version,
            state: stored.state,
            payment: stored.payment.clone(),
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

    async fn make(&self, db: &mut SqliteConnection) -> Work<bool> {
        let Self { order, expected_version } = self;
        let update = sqlx::query(UPDATE).bind(order.id.as_str().to_owned()).bind(column(*expected_version)?);
        let update = update.bind(order.state.as_str()).bind(order.payment.clone());
        Ok(update.execute(db).await?.rows_affected() > 0)
    }
}

fn opening(order: &Order) -> Result<Ask> {
    let (item_kind, item) = match &order.item {
        Item::Pack(name) => ("pack", name.as_str()),
        Item::Plan(plan) => ("plan", plan.as_str()),
    };
    Ok(sqlx::query(OPEN)
        .bind(order.id.as_str().to_owned())
        .bind(column(order.version)?)
        .bind(order.account.as_str().to_owned())
        .bind(item_kind)
        .bind(item.to_owned())
        .bind(column(order.credits)?)
        .bind(column(order.amount_minor)?)
        .bind(order.currency.clone())
        .bind(order.state.as_str())
        .bind(order.payment.clone())
        .bind(order.created_at.as_millis()))
}

#[async_trait]
impl Orders for SqliteStore {
    async fn open(&self, order: Order) -> Result<()> {
        if order.version != 1 {
            return Err(Error::invalid("a new order is of version 1"));
        }
        self.database.make(Open(order)).await
    }

    async fn order(&self, id: &OrderId) -> Result<Option<Order>> {
        let ask = || sqlx::query(ORDER).bind(id.as_str().to_owned());
        Ok(self.database.find(ask, |row| read(id, row)).await?.into_iter().next())
    }

    async fn update(&self, order: Order, expected_version: u64) -> Result<bool> {
        self.database.make(Update { order, expected_version }).await
    }
}

fn read(id: &OrderId, row: &SqliteRow) -> Work<Order> {
    let unknown = || corrupt("a stored order has an item or a state that nobody knows");
    let item = match row.try_get(2)? {
        "pack" => Item::Pack(row.try_get(3)?),
        _ => Item::Plan(Plan::from_wire(row.try_get(3)?).ok_or_else(unknown)?),
    };
    Ok(Order {
        id: id.clone(),
        version: number(row.try_get(0)?)?,
        account: AccountId::new(row.try_get::<String, _>(1)?),
        item,
        credits: number(row.try_get(4)?)?,
        amount_minor: number(row.try_get(5)?)?,
        currency: row.try_get(6)?,
        state: OrderState::from_name(row.try_get(7)?).ok_or_else(unknown)?,
        payment: row.try_get(8)?,
        created_at: Timestamp::from_millis(row.try_get(9)?),
    })
}
