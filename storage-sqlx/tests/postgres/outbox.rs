//! Mails in PostgreSQL whose rows cannot be read.

use crate::{common::outbox::check_unreadable_mail, jobs::run};

#[tokio::test]
async fn unreadable_mail_delays_no_other_mail() {
    let (store, database) = crate::store().await;
    check_unreadable_mail(&*store, async |statement: &str| run(&database, statement).await).await;
}
