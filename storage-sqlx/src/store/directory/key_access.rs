//! Expiry, quota and requests of keys.

use transcript_core::{
    Result, Timestamp,
    directory::{
        FieldChange, KeyAccess, KeyAccessChange, KeyRequests, PeriodRequests, RequestCounts, RequestQuota,
    },
    ids::KeyId,
    ledger::terms::AllowancePeriod,
};

use crate::{
    codec::{column, number},
    error::{DbResult, corrupt},
    sql::{Database, Row, Session, Statement, WriteTx, sql, values},
};

const CHANGE_ACCESS: &str = "UPDATE keys
    SET expires_at = CASE WHEN $2 THEN expires_at ELSE $3 END,
        quota = CASE WHEN $4 THEN quota ELSE $5 END,
        quota_period = CASE WHEN $4 THEN quota_period ELSE $6 END
    WHERE id = $1 AND account IS NULL AND revoked_at IS NULL";

/// The assignments of one period.
macro_rules! add_period {
    ($start:literal, $count:literal, $new_start:literal, $new_count:literal) => {
        concat!(
            $count,
            " = CASE WHEN keys.",
            $start,
            " > ",
            $new_start,
            " THEN keys.",
            $count,
            " WHEN keys.",
            $start,
            " = ",
            $new_start,
            " THEN keys.",
            $count,
            " + ",
            $new_count,
            " ELSE ",
            $new_count,
            " END, ",
            $start,
            " = CASE WHEN keys.",
            $start,
            " > ",
            $new_start,
            " THEN keys.",
            $start,
            " ELSE ",
            $new_start,
            " END"
        )
    };
}

/// The assignments that add requests. A period before the stored one adds to the total only.
macro_rules! add_requests {
    (
        $requests:literal, $last:literal, [$day:literal, $day_requests:literal],
        [$month:literal, $month_requests:literal]
    ) => {
        concat!(
            "requests = keys.requests + ",
            $requests,
            ", last_request_at = CASE WHEN keys.last_request_at > ",
            $last,
            " THEN keys.last_request_at ELSE ",
            $last,
            " END, ",
            add_period!("day_start", "day_requests", $day, $day_requests),
            ", ",
            add_period!("month_start", "month_requests", $month, $month_requests)
        )
    };
}

/// The columns of [`counts`].
macro_rules! count_columns {
    () => {
        "keys.requests, keys.last_request_at, keys.day_start, keys.day_requests, keys.month_start,
            keys.month_requests"
    };
}

/// In a file for one key, on a server for all of them.
const ADD_REQUESTS: Statement = sql! {
    sqlite: concat!(
        "UPDATE keys SET ",
        add_requests!("$2", "$3", ["$4", "$5"], ["$6", "$7"]),
        " WHERE id = $1 RETURNING keys.id, ",
        count_columns!()
    ),
    postgres: concat!(
        "UPDATE keys SET ",
        add_requests!("n.requests", "n.last", ["n.day", "n.day_requests"], ["n.month", "n.month_requests"]),
        " FROM unnest($1::TEXT[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[])
            n (id, requests, last, day, day_requests, month, month_requests)
        WHERE keys.id = n.id RETURNING keys.id, ",
        count_columns!()
    ),
};

/// Statements that must not scan tables, for the test of the query plans.
#[cfg(all(test, feature = "sqlite"))]
pub(crate) const INDEXED_STATEMENTS: [&str; 2] = [CHANGE_ACCESS, ADD_REQUESTS.sqlite];

/// Changes expiry and quota of a live key.
pub(super) async fn change<D: Database>(database: &D, key: &KeyId, change: KeyAccessChange) -> Result<bool> {
    let quota = change.quota.apply(None);
    let row = values![
        key.as_str(),
        change.expires_at == FieldChange::Keep,
        change.expires_at.apply(None).map(Timestamp::as_millis),
        change.quota == FieldChange::Keep,
        quota.map(|quota| column(quota.max)).transpose()?,
        quota.map(|quota| quota.period.as_str()),
    ];
    Ok(database.execute(CHANGE_ACCESS, &row).await? > 0)
}

/// Adds requests to the counts of keys.
pub(super) struct AddKeyRequestsTx(pub(super) Vec<KeyRequests>);

impl WriteTx for AddKeyRequestsTx {
    type Outcome = Vec<KeyRequests>;
    const NEEDS_TRANSACTION: bool = false;
    const IS_IDEMPOTENT: bool = false;

    /// A crash of the machine may lose counts as well as one of the process.
    #[cfg(feature = "sqlite")]
    fn needs_sync(&self, _: &Self::Outcome) -> bool {
        false
    }

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<Vec<KeyRequests>> {
        let mut rows = Vec::with_capacity(self.0.len());
        if S::IS_REMOTE {
            rows = db.rows(ADD_REQUESTS, &columns(&self.0)?).await?;
        } else {
            for KeyRequests { key, counts } in &self.0 {
                let [total, last_at, day, day_count, month, month_count] = numbers(counts)?;
                let row = values![key.as_str(), total, last_at, day, day_count, month, month_count];
                rows.extend(db.row(ADD_REQUESTS, &row).await?);
            }
        }
        let decode = |row: &mut Row| {
            Ok(KeyRequests { key: KeyId::new(row.take::<String>(0)?), counts: counts(row, 1)? })
        };
        rows.iter_mut().map(decode).collect()
    }
}

/// The counts as columns, in the order of [`count_columns`].
fn numbers(counts: &RequestCounts) -> Result<[i64; 6]> {
    let millis = |time: Option<Timestamp>| time.map_or(0, Timestamp::as_millis);
    let RequestCounts { total, last_at, day, month } = counts;
    Ok([
        column(*total)?,
        millis(*last_at),
        millis(day.start),
        column(day.count)?,
        millis(month.start),
        column(month.count)?,
    ])
}

/// The requests as one list per parameter, in the order of the keys: all servers lock them in that order.
fn columns(requests: &[KeyRequests]) -> Result<[crate::sql::Value<'_>; 7]> {
    let mut sorted: Vec<_> = requests.iter().collect();
    sorted.sort_by(|a, b| a.key.cmp(&b.key));
    let rows = sorted.iter().map(|one| numbers(&one.counts)).collect::<Result<Vec<_>>>()?;
    let column = |index: usize| rows.iter().filter_map(|row| row.get(index).copied()).collect::<Vec<i64>>();
    let ids: Vec<&str> = sorted.iter().map(|one| one.key.as_str()).collect();
    Ok(values![ids, column(0), column(1), column(2), column(3), column(4), column(5)])
}

/// Decodes expiry, quota and counts from this column on.
pub(super) fn key_access(row: &mut Row, first: usize) -> DbResult<KeyAccess> {
    let quota = match (row.get::<Option<i64>>(first + 1)?, row.get::<Option<&str>>(first + 2)?) {
        (Some(max), Some(period)) => Some(RequestQuota {
            max: number(max)?,
            period: AllowancePeriod::from_wire(period)
                .ok_or_else(|| corrupt("a stored quota has an unknown period"))?,
        }),
        _ => None,
    };
    Ok(KeyAccess {
        expires_at: row.get::<Option<i64>>(first)?.map(Timestamp::from_millis),
        quota,
        requests: counts(row, first + 3)?,
    })
}

/// Decodes counts from this column on.
fn counts(row: &mut Row, first: usize) -> DbResult<RequestCounts> {
    let time = |row: &Row, index: usize| -> DbResult<Option<Timestamp>> {
        Ok(row.get::<Option<i64>>(first + index)?.map(Timestamp::from_millis))
    };
    let count = |row: &Row, index: usize| -> DbResult<u64> { Ok(number(row.get(first + index)?)?) };
    Ok(RequestCounts {
        total: count(row, 0)?,
        last_at: time(row, 1)?,
        day: PeriodRequests { start: time(row, 2)?, count: count(row, 3)? },
        month: PeriodRequests { start: time(row, 4)?, count: count(row, 5)? },
    })
}
