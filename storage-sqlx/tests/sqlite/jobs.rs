//! Jobs in the file whose rows cannot be read.

use crate::{
    common::jobs::{
        check_unreadable_event, check_unreadable_job, check_unreadable_job_in_lists, check_unreadable_list,
        check_unreadable_pause,
    },
    opening::run,
};

#[tokio::test]
async fn unreadable_list_delays_no_other_list() {
    let (store, folder) = crate::store().await;
    let file = folder.path().join("verbatim.db");
    check_unreadable_list(&*store, async |statement: &str| run(&file, statement)).await;
}

#[tokio::test]
async fn unreadable_job_delays_no_other_job() {
    let (store, folder) = crate::store().await;
    let file = folder.path().join("verbatim.db");
    check_unreadable_job(&*store, async |statement: &str| run(&file, statement)).await;
}

#[tokio::test]
async fn unreadable_pause_delays_no_other_check() {
    let (store, folder) = crate::store().await;
    let file = folder.path().join("verbatim.db");
    check_unreadable_pause(&*store, async |statement: &str| run(&file, statement)).await;
}

#[tokio::test]
async fn unreadable_job_is_left_out_of_lists() {
    let (store, folder) = crate::store().await;
    let file = folder.path().join("verbatim.db");
    check_unreadable_job_in_lists(&*store, async |statement: &str| run(&file, statement)).await;
}

#[tokio::test]
async fn unreadable_event_delays_no_other_event() {
    let (store, folder) = crate::store().await;
    let file = folder.path().join("verbatim.db");
    check_unreadable_event(&*store, async |statement: &str| run(&file, statement)).await;
}
