//! Every case of the conformance suite, each on a new database or file.

mod admin {
    transcript_core::admin_conformance!(crate::store().await);
}

mod archive {
    transcript_core::archive_conformance!(crate::archive().await);
}

mod charges {
    transcript_core::charges_conformance!(crate::store().await);
}

mod directory {
    transcript_core::directory_conformance!(crate::store().await);
    transcript_core::key_access_conformance!(crate::store().await);
}

mod ledger {
    transcript_core::ledger_conformance!(crate::store().await);
}

mod limits {
    transcript_core::limits_conformance!(crate::store().await);
}

mod orders {
    transcript_core::orders_conformance!(crate::store().await);
}

mod outbox {
    transcript_core::outbox_conformance!(crate::store().await);
}

mod jobs {
    transcript_core::jobs_conformance!(crate::store().await);
}

mod job_lists {
    transcript_core::job_lists_conformance!(crate::store().await);
}

mod replies {
    transcript_core::idempotency_conformance!(crate::store().await);
}

#[cfg(feature = "search")]
mod search_index {
    transcript_core::search_index_conformance!(crate::search_index().await);
}

mod secrets {
    transcript_core::secrets_conformance!(crate::store().await);
}

mod sessions {
    transcript_core::sessions_conformance!(crate::store().await);
}

mod webhooks {
    transcript_core::webhooks_conformance!(crate::store().await);
}
