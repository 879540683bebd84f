//! The order store.

use async_trait::async_trait;
use transcript_core::{
    Page, PageRequest, Result, Timestamp,
    accounts::{Order, OrderItem, OrderState, OrderStore},
    directory::Plan,
    ids::{AccountId, Cursor, OrderId},
};

use super::{Queues, Store};
use crate::{
    codec::{column, json, number, one_more},
    error::{DbResult, corrupt},
    sql::{Database, Row, Session, WriteTx, values},
};

const OPEN_ORDER: &str = "INSERT INTO orders
    (id, version, account, item_kind, item, credits, amount_minor, currency, state, payment, created_at,
    taken_back, returned_minor, language, paid_minor)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) ON CONFLICT (id) DO NOTHING";
/// The columns that [`read`] reads.
macro_rules! order_columns {
    () => {
        "version, account, item_kind, item, credits, amount_minor, currency, state, payment, created_at, \
         taken_back, id, returned_minor, language, paid_minor"
    };
}

const FIND_ORDER: &str = concat!("SELECT ", order_columns!(), " FROM orders WHERE id = $1");
const ORDERS_OF_ACCOUNT: &str = concat!(
    "SELECT ",
    order_columns!(),
    " FROM orders WHERE account = $1 AND (created_at, id) > ($2, $3) ORDER BY created_at, id LIMIT $4"
);
const UNSETTLED_ORDERS: &str = concat!(
    "SELECT ",
    order_columns!(),
    " FROM orders WHERE state = 'open' AND (created_at, id) > ($1, $2) ORDER BY created_at, id LIMIT $3"
);
/// Item, account and price never change.
const UPDATE_ORDER: &str =
    "UPDATE orders SET version = version + 1, state = $3, payment = $4, taken_back = $5, returned_minor = $6,
    paid_minor = $7 WHERE id = $1 AND version = $2";

/// Stores an order with one statement; reads the existing order only if that statement stores nothing.
struct OpenOrderTx(Order);

impl WriteTx for OpenOrderTx {
    type Outcome = ();
    const NEEDS_TRANSACTION: bool = false;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<()> {
        let Self(order) = self;
        if insert(db, order).await? > 0 {
            return Ok(());
        }
        let stored = read(&mut db.only_row(FIND_ORDER, &values![order.id.as_str()]).await?)?;
        Ok(order.check_same(&stored)?)
    }
}

/// Stores a new order; returns the number of stored rows.
async fn insert<S: Session>(db: &mut S, order: &Order) -> DbResult<u64> {
    let (item_kind, item) = match &order.item {
        OrderItem::Pack(name) => ("pack", name.as_str()),
        OrderItem::Plan(plan) => ("plan", plan.as_str()),
    };
    let row = values![
        order.id.as_str(),
        column(order.version)?,
        order.account.as_str(),
        item_kind,
        item,
        column(order.credits)?,
        column(order.amount_minor)?,
        &order.currency,
        order.state.as_str(),
        order.payment.as_ref(),
        order.created_at.as_millis(),
        json(&order.refunded_credits)?,
        column(order.returned_minor)?,
        order.language.as_ref(),
        order.paid_minor.map(column).transpose()?,
    ];
    db.execute(OPEN_ORDER, &row).await
}

#[async_trait]
impl<D: Database, Q: Queues> OrderStore for Store<D, Q> {
    async fn open(&self, order: Order) -> Result<()> {
        order.check_new()?;
        self.database.run(OpenOrderTx(order)).await
    }

    async fn order(&self, id: &OrderId) -> Result<Option<Order>> {
        self.database.find_first(FIND_ORDER, &values![id.as_str()], read).await
    }

    async fn update(&self, order: Order, expected_version: u64) -> Result<bool> {
        let (version, refunds) = (column(expected_version)?, json(&order.refunded_credits)?);
        let (returned, paid) = (column(order.returned_minor)?, order.paid_minor.map(column).transpose()?);
        let row = values![
            order.id.as_str(),
            version,
            order.state.as_str(),
            order.payment.as_ref(),
            refunds,
            returned,
            paid
        ];
        // A retry after a successful update would find a newer version and report a conflict.
        Ok(self.database.execute_once(UPDATE_ORDER, &row).await? > 0)
    }

    async fn list_open(&self, page: PageRequest) -> Result<Page<Order>> {
        let (created_at, id) = cursor_position(page.after.as_ref())?;
        let bounds = values![created_at, id, one_more(&page)];
        Ok(Page::cut(self.database.find(UNSETTLED_ORDERS, &bounds, read).await?, &page, cursor))
    }

    async fn list_for_account(&self, account: &AccountId, page: PageRequest) -> Result<Page<Order>> {
        let (created_at, id) = cursor_position(page.after.as_ref())?;
        let bounds = values![account.as_str(), created_at, id, one_more(&page)];
        Ok(Page::cut(self.database.find(ORDERS_OF_ACCOUNT, &bounds, read).await?, &page, cursor))
    }
}

/// The cursor of a page that ends with this order.
fn cursor(order: &Order) -> String {
    Cursor::time_and_id(order.created_at, &order.id)
}

/// Time and id of the last order before a page.
fn cursor_position(after: Option<&Cursor>) -> Result<(i64, &str)> {
    after.map_or(Ok((-1, "")), Cursor::to_time_and_id)
}

fn read(row: &mut Row) -> DbResult<Order> {
    let unknown = || corrupt("a stored order has an unknown item or state");
    let item = match row.get(2)? {
        "pack" => OrderItem::Pack(row.take(3)?),
        _ => OrderItem::Plan(Plan::from_wire(row.get(3)?).ok_or_else(unknown)?),
    };
    Ok(Order {
        id: OrderId::new(row.take::<String>(11)?),
        version: number(row.take(0)?)?,
        account: AccountId::new(row.take::<String>(1)?),
        item,
        credits: number(row.take(4)?)?,
        amount_minor: number(row.take(5)?)?,
        currency: row.take(6)?,
        state: OrderState::from_name(row.get(7)?).ok_or_else(unknown)?,
        payment: row.take(8)?,
        returned_minor: number(row.take(12)?)?,
        created_at: Timestamp::from_millis(row.take(9)?),
        refunded_credits: serde_json::from_str(row.get(10)?)
            .map_err(|_| corrupt("the refunds of a stored order are not a list of numbers"))?,
        language: row.take(13)?,
        paid_minor: row.take::<Option<i64>>(14)?.map(number).transpose()?,
    })
}
