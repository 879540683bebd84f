//! Mails in the file whose rows cannot be read.

use crate::{common::outbox::check_unreadable_mail, opening::run};

#[tokio::test]
async fn unreadable_mail_delays_no_other_mail() {
    let (store, folder) = crate::store().await;
    let file = folder.path().join("verbatim.db");
    check_unreadable_mail(&*store, async |statement: &str| run(&file, statement)).await;
}
