//! Every case of the core's conformance suite, each on a fresh database.

mod archive {
    transcript_core::archive_conformance!(crate::archive().await);
}

mod charges {
    transcript_core::charges_conformance!(crate::store().await);
}

mod directory {
    transcript_core::directory_conformance!(crate::store().await);
}

mod ledger {
    transcript_core::ledger_conformance!(crate::store().await);
}

/// The same, with spends that wait for each other.
mod ledger_together {
    transcript_core::ledger_conformance!(crate::together::store().await);
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

mod replies {
    transcript_core::replies_conformance!(crate::store().await);
}

mod secrets {
    transcript_core::secrets_conformance!(crate::store().await);
}
