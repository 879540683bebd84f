//! Jobs in PostgreSQL whose rows cannot be read.

use sqlx::AssertSqlSafe;
use verbatim_tests_postgres::TestDatabase;

use crate::{
    common::jobs::{
        check_unreadable_event, check_unreadable_job, check_unreadable_job_in_lists, check_unreadable_list,
        check_unreadable_pause,
    },
    opening::foreign_connection,
};

pub(crate) async fn run(database: &TestDatabase<'_>, statement: &str) {
    let mut connection = foreign_connection(database).await;
    sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut connection).await.unwrap();
}

#[tokio::test]
async fn unreadable_list_delays_no_other_list() {
    let (store, database) = crate::store().await;
    check_unreadable_list(&*store, async |statement: &str| run(&database, statement).await).await;
}

#[tokio::test]
async fn unreadable_job_delays_no_other_job() {
    let (store, database) = crate::store().await;
    check_unreadable_job(&*store, async |statement: &str| run(&database, statement).await).await;
}

#[tokio::test]
async fn unreadable_pause_delays_no_other_check() {
    let (store, database) = crate::store().await;
    check_unreadable_pause(&*store, async |statement: &str| run(&database, statement).await).await;
}

#[tokio::test]
async fn unreadable_job_is_left_out_of_lists() {
    let (store, database) = crate::store().await;
    check_unreadable_job_in_lists(&*store, async |statement: &str| run(&database, statement).await).await;
}

#[tokio::test]
async fn unreadable_event_delays_no_other_event() {
    let (store, database) = crate::store().await;
    check_unreadable_event(&*store, async |statement: &str| run(&database, statement).await).await;
}
