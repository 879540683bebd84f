//! Shared state of the routes.

use std::{convert::Infallible, path::PathBuf, sync::Arc, time::Duration};

use axum::extract::FromRequestParts;
use http::{StatusCode, request::Parts};
use tokio::{
    sync::{Mutex, OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use transcript_core::{
    accounts::{
        Accounts,
        payments::{Payments, Sandbox},
    },
    archive::StoredTranscript,
    chat::Chat,
    lookup::{Lookup, Visitors},
};

use verbatim::{SearchService, Verbatim};

use crate::{
    altcha::AltchaProvider,
    api::{ByteBudget, ProblemResponse, ReservedBytes},
    config::SearchAccess,
    mail::delete_mails,
    page::{PageContext, site::Site, sitemap::Sitemap},
    response_cache::{ResponseCache, ResponseCacheOptions},
};

/// Documents, and files of jobs, that are written at the same time. More would only take CPU time from other work.
pub(crate) const DOCUMENT_WRITERS: usize = 2;
/// Memory of a document that is being written, as a multiple of the words, at most.
const DOCUMENT_MEMORY_FACTOR: usize = 16;

/// Searches of the archive at the same time: each holds one decoded transcript after another.
pub(crate) const SEARCH_PLACES: usize = 4;
/// Reads of archived transcripts at the same time by requests that fetch nothing: each decodes up to 5 MB.
const READ_PLACES: usize = 16;
/// Longest wait for a place among searches, and among reads.
const PLACE_WAIT_MAX: Duration = Duration::from_secs(10);

/// A quarter of the memory of large bodies is kept for requests of the v1 API: others may hold theirs for minutes.
const KEPT_DIVISOR: u64 = 4;

/// Shared state of the routes.
#[derive(Clone, Debug)]
pub(crate) struct AppState {
    /// The lookup API.
    pub(crate) lookup: Lookup,
    /// Visitors of the watch page.
    pub(crate) visitors: Visitors,
    /// The v1 API.
    pub(crate) accounts: Accounts,
    /// Chat about videos.
    pub(crate) chat: Chat,
    /// Plans and credit packs.
    pub(crate) payments: Payments,
    /// Sandbox checkout without real payments, if enabled.
    pub(crate) sandbox: Option<Sandbox>,
    /// Response cache of both APIs and the watch pages.
    pub(crate) bodies: Arc<ResponseCache>,
    /// Memory of large bodies that are not shared: the part of all requests.
    pub(crate) body_budget: ByteBudget,
    /// The same memory, with the part that is kept for requests of the v1 API.
    pub(crate) account_budget: ByteBudget,
    /// Places of the documents of watch pages that are being written.
    #[cfg(feature = "documents")]
    pub(crate) document_writers: Arc<Semaphore>,
    /// Places of the files of jobs that are being written: paid work does not wait for free documents.
    pub(crate) file_writers: Arc<Semaphore>,
    /// Search in the whole archive; `None` in states that have none.
    pub(crate) search: Option<SearchService>,
    /// `search.access`.
    pub(crate) search_access: SearchAccess,
    /// Places of the searches of the archive; see [`wait_for_place`].
    pub(crate) search_places: Arc<Semaphore>,
    /// Places of the reads of archived transcripts; see [`AppState::read_place`].
    read_places: Arc<Semaphore>,
    /// What all pages have in common.
    pub(crate) site: Arc<Site>,
    pub(crate) sitemap: Arc<Mutex<Sitemap>>,
    /// Folder of the mails that no mail server delivers; `None` in states that write no files.
    outbox_folder: Option<PathBuf>,
}

impl AppState {
    /// Creates the state with empty caches; `body_memory` is the memory of large bodies that are not shared, in bytes.
    pub(crate) fn new(
        lookup: Lookup,
        accounts: Accounts,
        chat: Chat,
        payments: Payments,
        sandbox: Option<Sandbox>,
        body_memory: u64,
        cache_options: ResponseCacheOptions,
    ) -> Self {
        let visitors = Visitors::new(lookup.clone(), Some(Arc::new(AltchaProvider)));
        let site = site_of(&lookup, Site::default());
        let kept = body_memory / KEPT_DIVISOR;
        let body_budget = ByteBudget::new(body_memory.saturating_sub(kept));
        let account_budget = body_budget.with_kept(kept);
        let budgets = (body_budget.clone(), account_budget.clone());
        let bodies = Arc::new(ResponseCache::new(lookup.clone(), budgets, cache_options));
        Self {
            lookup,
            visitors,
            accounts,
            chat,
            payments,
            sandbox,
            bodies,
            body_budget,
            account_budget,
            #[cfg(feature = "documents")]
            document_writers: Arc::new(Semaphore::new(DOCUMENT_WRITERS)),
            file_writers: Arc::new(Semaphore::new(DOCUMENT_WRITERS)),
            search: None,
            search_access: SearchAccess::Off,
            search_places: Arc::new(Semaphore::new(SEARCH_PLACES)),
            read_places: Arc::new(Semaphore::new(READ_PLACES)),
            site: Arc::new(site),
            sitemap: Arc::default(),
            outbox_folder: None,
        }
    }

    /// The state of a server whose mails may be in this folder.
    pub(crate) fn with_outbox_folder(self, folder: PathBuf) -> Self {
        Self { outbox_folder: Some(folder), ..self }
    }

    /// Deletes the mails to the address of a deleted account from the folder.
    pub(crate) async fn delete_outbox_mails(&self, email: &str) {
        let Some(folder) = self.outbox_folder.clone() else { return };
        let email = email.to_owned();
        let deleted = tokio::task::spawn_blocking(move || delete_mails(&folder, &email)).await;
        if let Err(error) = deleted.unwrap_or_else(|error| Err(std::io::Error::other(error))) {
            tracing::error!(%error, "mails of a deleted account not deleted");
        }
    }

    /// Waits for a place to read an archived transcript, which is held until the last clone of the permit is dropped.
    ///
    /// All that have the transcript keep a clone: a decoded transcript takes memory that nothing counts.
    ///
    /// # Errors
    /// 503 if no place becomes free in time.
    pub(crate) async fn read_place(&self) -> Result<Arc<OwnedSemaphorePermit>, ProblemResponse> {
        wait_for_place(&self.read_places).await.map(Arc::new).ok_or_else(|| {
            let detail = "The server is reading other transcripts. Retry in a few seconds.";
            ProblemResponse::new(StatusCode::SERVICE_UNAVAILABLE, detail)
        })
    }

    /// The state with a search for these callers.
    pub(crate) fn with_search(self, service: SearchService, access: SearchAccess) -> Self {
        Self { search: Some(service), search_access: access, ..self }
    }

    /// The state with this site. Cached pages depend on it, so it does not change in a running server.
    pub(crate) fn with_site(self, site: Site) -> Self {
        Self { site: Arc::new(site_of(&self.lookup, site)), ..self }
    }

    /// The state with the services of this handle, and the same caches: no cached body depends on their settings.
    pub(crate) fn with_services(&self, verbatim: &Verbatim) -> Self {
        let lookup = verbatim.lookup().clone();
        Self {
            visitors: Visitors::new(lookup.clone(), Some(Arc::new(AltchaProvider))),
            lookup,
            accounts: verbatim.accounts().clone(),
            payments: verbatim.payments().clone(),
            ..self.clone()
        }
    }
}

/// Writes a document of a transcript on a blocking thread, with this permit and within the budget.
///
/// # Errors
/// 503 if the memory does not become free in time, 500 if the work panics.
pub(crate) async fn write_document<T: Send + 'static>(
    permit: OwnedSemaphorePermit,
    budget: &ByteBudget,
    stored: StoredTranscript,
    write: impl FnOnce(&StoredTranscript) -> T + Send + 'static,
) -> Result<(T, Option<ReservedBytes>), ProblemResponse> {
    let bytes = stored.transcript.text_bytes().saturating_mul(DOCUMENT_MEMORY_FACTOR);
    let work = move || {
        // The work goes on if the caller disconnects, so it has the permit.
        let _permit = permit;
        write(&stored)
    };
    budget.build_elsewhere(bytes, work).await
}

impl FromRequestParts<AppState> for PageContext {
    type Rejection = Infallible;

    async fn from_request_parts(head: &mut Parts, app: &AppState) -> Result<Self, Infallible> {
        Ok(Self::from_head(head, &app.site))
    }
}

/// Waits for one of these places; `None` if none becomes free in time.
pub(crate) async fn wait_for_place(places: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    // The semaphore is never closed.
    timeout(PLACE_WAIT_MAX, Arc::clone(places).acquire_owned()).await.ok()?.ok()
}

/// The site with the options of the lookup that its pages show.
fn site_of(lookup: &Lookup, site: Site) -> Site {
    let options = lookup.options();
    Site {
        questions_per_day: options.questions_per_visitor_per_day,
        base_url: options.base_url.trim_end_matches('/').to_owned(),
        ..site
    }
}
