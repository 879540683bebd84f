//! Every case of the conformance suite, each on a new database or file.

macro_rules! all_conformance {
    ($store:expr, $archive:expr, $search_index:expr) => {
        mod admin {
            transcript_core::admin_conformance!($store);
        }

        mod archive {
            transcript_core::archive_conformance!($archive);
        }

        mod charges {
            transcript_core::charges_conformance!($store);
        }

        mod directory {
            transcript_core::directory_conformance!($store);
            transcript_core::key_access_conformance!($store);
        }

        mod ledger {
            transcript_core::ledger_conformance!($store);
        }

        mod limits {
            transcript_core::limits_conformance!($store);
        }

        mod orders {
            transcript_core::orders_conformance!($store);
        }

        mod outbox {
            transcript_core::outbox_conformance!($store);
        }

        mod jobs {
            transcript_core::jobs_conformance!($store);
        }

        mod job_lists {
            transcript_core::job_lists_conformance!($store);
        }

        mod replies {
            transcript_core::idempotency_conformance!($store);
        }

        #[cfg(feature = "search")]
        mod search_index {
            transcript_core::search_index_conformance!($search_index);
        }

        mod secrets {
            transcript_core::secrets_conformance!($store);
        }

        mod sessions {
            transcript_core::sessions_conformance!($store);
        }

        mod webhooks {
            transcript_core::webhooks_conformance!($store);
        }
    };
}

all_conformance!(crate::store().await, crate::archive().await, crate::search_index().await);
