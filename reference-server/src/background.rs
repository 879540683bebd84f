//! Work that a server does beside its requests.

use std::{path::Path, sync::Arc};

use transcript_core::{
    Result,
    accounts::mail::{MailTexts, Mailer},
};
use verbatim::{JobHandle, Verbatim};

use crate::metrics::Metrics;

/// Starts the work behind the APIs: jobs of accounts and their webhooks, payments if anything is for sale, and the
/// search index if it may be searched.
///
/// # Errors
/// The file of certificates, which webhooks trust too, cannot be read.
pub(crate) fn start(
    verbatim: &Verbatim,
    metrics: &Arc<Metrics>,
    ca_file: Option<&Path>,
    has_search: bool,
) -> Result<Vec<JobHandle>> {
    let counters = Arc::clone(metrics);
    let webhooks =
        verbatim.start_webhooks(ca_file, Arc::new(move |result| counters.count_webhook(result)))?;
    let indexer = has_search.then(|| {
        let counters = Arc::clone(metrics);
        verbatim.search().start(Arc::new(move |progress| counters.count_indexing(progress)))
    });
    let started = [verbatim.start_sweep(), indexer, Some(verbatim.start_jobs()), Some(webhooks)];
    Ok(started.into_iter().flatten().collect())
}

/// Starts the mail sender, with these texts.
pub(crate) fn start_mail(
    verbatim: &Verbatim,
    metrics: &Arc<Metrics>,
    texts: Vec<MailTexts>,
    mailer: Arc<dyn Mailer>,
) -> JobHandle {
    let counters = Arc::clone(metrics);
    verbatim.start_mail_in(texts, mailer, Arc::new(move |result| counters.count_mail(result)))
}
