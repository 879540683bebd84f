//! The order store in PostgreSQL.

use async_trait::async_trait;
use sqlx::{PgConnection, Row, postgres::PgRow};
use transcript_core::{
    Error, Page, PageRequest, Result, Timestamp,
    accounts::{Order, OrderItem, OrderState, OrderStore},
    directory::Plan,
    ids::{AccountId, Cursor, OrderId},
};

use super::{
    PostgresStore,
    database::{BoundQuery, ReadQuery, WriteTx},
    text::{encode, encode_optional, read as read_text, read_optional},
};
use crate::{
    codec::{column, json, number, one_more, page_of},
    error::{DbResult, conflict, corrupt},
};

const OPEN_ORDER: &str = "INSERT INTO orders
    (id, version, account, item_kind, item, credits, amount_minor, currency, state, payment, created_at,
    taken_back)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (id) DO NOTHING";
const FIND_ORDER: &str =
    "SELECT version, account, item_kind, item, credits, amount_minor, currency, state, payment,
    created_at, taken_back, id FROM orders WHERE id = $1";
const ORDERS_OF_ACCOUNT: &str =
    "SELECT version, account, item_kind, item, credits, amount_minor, currency, state, payment,
    created_at, taken_back, id FROM orders
    WHERE account = $1 AND (created_at, id) > ($2, $3) ORDER BY created_at, id LIMIT $4";
const UNSETTLED_ORDERS: &str =
    "SELECT version, account, item_kind, item, credits, amount_minor, currency, state, payment,
    created_at, taken_back, id FROM orders
    WHERE state = 'open' AND (created_at, id) > ($1, $2) ORDER BY created_at, id LIMIT $3";
/// Item, account and price never change.
const UPDATE_ORDER: &str =
    "UPDATE orders SET version = version + 1, state = $3, payment = $4, taken_back = $5
    WHERE id = $1 AND version = $2";

/// Stores an order with one statement; reads the existing order only if that statement stores nothing.
struct OpenOrderTx(Order);

impl WriteTx for OpenOrderTx {
    type Outcome = ();
    const IS_SINGLE_STATEMENT: bool = true;

    async fn run(&self, db: &mut PgConnection) -> DbResult<()> {
        let Self(order) = self;
        if insert_query(order)?.execute(&mut *db).await?.rows_affected() > 0 {
            return Ok(());
        }
        let stored = sqlx::query(FIND_ORDER).bind(encode(order.id.as_str())).fetch_one(db).await?;
        let stored = read(&stored)?;
        // The same order, with the progress of the stored one.
        let requested = Order {
            version: stored.version,
            state: stored.state,
            payment: stored.payment.clone(),
            refunded_credits: stored.refunded_credits.clone(),
            ..order.clone()
        };
        if requested == stored {
            Ok(())
        } else {
            Err(conflict("the order id belongs to another order").into())
        }
    }
}

struct UpdateOrderTx {
    order: Order,
    expected_version: u64,
}

impl WriteTx for UpdateOrderTx {
    type Outcome = bool;
    const IS_SINGLE_STATEMENT: bool = true;
    // A retry after a successful update would find a newer version and report a conflict.
    const IS_IDEMPOTENT: bool = false;

    async fn run(&self, db: &mut PgConnection) -> DbResult<bool> {
        let Self { order, expected_version } = self;
        let update =
            sqlx::query(UPDATE_ORDER).bind(encode(order.id.as_str())).bind(column(*expected_version)?);
        let update = update.bind(order.state.as_str()).bind(encode_optional(order.payment.as_deref()));
        let update = update.bind(json(&order.refunded_credits)?);
        Ok(update.execute(db).await?.rows_affected() > 0)
    }
}

fn insert_query(order: &Order) -> Result<BoundQuery> {
    let (item_kind, item) = match &order.item {
        OrderItem::Pack(name) => ("pack", name.as_str()),
        OrderItem::Plan(plan) => ("plan", plan.as_str()),
    };
    Ok(sqlx::query(OPEN_ORDER)
        .bind(encode(order.id.as_str()))
        .bind(column(order.version)?)
        .bind(encode(order.account.as_str()))
        .bind(item_kind)
        .bind(encode(item))
        .bind(column(order.credits)?)
        .bind(column(order.amount_minor)?)
        .bind(encode(&order.currency))
        .bind(order.state.as_str())
        .bind(encode_optional(order.payment.as_deref()))
        .bind(order.created_at.as_millis())
        .bind(json(&order.refunded_credits)?))
}

#[async_trait]
impl OrderStore for PostgresStore {
    async fn open(&self, order: Order) -> Result<()> {
        if order.version != 1 {
            return Err(Error::invalid("a new order must have version 1"));
        }
        self.database.run(OpenOrderTx(order)).await
    }

    async fn order(&self, id: &OrderId) -> Result<Option<Order>> {
        self.database.find_first(ReadQuery::new(FIND_ORDER).text(id.as_str()), read).await
    }

    async fn update(&self, order: Order, expected_version: u64) -> Result<bool> {
        self.database.run(UpdateOrderTx { order, expected_version }).await
    }

    async fn list_open(&self, page: PageRequest) -> Result<Page<Order>> {
        let (created_at, id) = cursor_position(page.after.as_ref())?;
        let query = ReadQuery::new(UNSETTLED_ORDERS).number(created_at).text(&id).number(one_more(&page));
        Ok(page_of(self.database.find(query, read).await?, &page, cursor))
    }

    async fn list_for_account(&self, account: &AccountId, page: PageRequest) -> Result<Page<Order>> {
        let (created_at, id) = cursor_position(page.after.as_ref())?;
        let query = ReadQuery::new(ORDERS_OF_ACCOUNT).text(account.as_str()).number(created_at).text(&id);
        let query = query.number(one_more(&page));
        Ok(page_of(self.database.find(query, read).await?, &page, cursor))
    }
}

/// The cursor of a page that ends with this order.
fn cursor(order: &Order) -> String {
    format!("{}/{}", order.created_at.as_millis(), order.id)
}

/// Time and id of the last order before a page.
fn cursor_position(after: Option<&Cursor>) -> Result<(i64, String)> {
    let Some(cursor) = after else { return Ok((-1, String::new())) };
    let parts = cursor.as_str().split_once('/');
    let cursor_position = parts.and_then(|(created_at, id)| Some((created_at.parse().ok()?, id.to_owned())));
    cursor_position.ok_or_else(|| Error::invalid("the cursor is not from this store"))
}

fn read(row: &PgRow) -> DbResult<Order> {
    let unknown = || corrupt("a stored order has an unknown item or state");
    let item = match row.try_get(2)? {
        "pack" => OrderItem::Pack(read_text(row, 3)?),
        _ => OrderItem::Plan(Plan::from_wire(row.try_get(3)?).ok_or_else(unknown)?),
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
        payment: read_optional(row, 8)?,
        created_at: Timestamp::from_millis(row.try_get(9)?),
        refunded_credits: serde_json::from_str(row.try_get(10)?)
            .map_err(|_| corrupt("the refunds of a stored order are not a list of numbers"))?,
    })
}
