//! The list of the archived transcripts.

use std::sync::Arc;

use transcript_core::{Page, PageRequest, ids::Cursor};

use crate::{
    call::{CallOptions, run},
    error::VerbatimError,
    transcript::Transcript,
    transcripts::Transcripts,
};

/// Default number of transcripts of a page.
const PAGE_LIMIT: u32 = 20;

/// A page of the archived transcripts.
#[derive(Clone, Debug, PartialEq, uniffi::Record)]
pub struct ArchivedPage {
    /// The transcripts, ordered by video; a page may have none.
    pub transcripts: Vec<Transcript>,
    /// Cursor of the next page; `None` at the end.
    pub next: Option<String>,
}

#[uniffi::export]
impl Transcripts {
    /// Reads a page of the archived transcripts: the first one, or that at a cursor of the page before.
    ///
    /// It fetches nothing. A page has at most `limit` transcripts, by default 20.
    ///
    /// # Errors
    /// `Corrupt` if a transcript cannot be read; failures of a store.
    #[uniffi::method(default(cursor = None, limit = None, call = None))]
    pub async fn archived_page(
        &self,
        cursor: Option<String>,
        limit: Option<u32>,
        call: Option<CallOptions>,
    ) -> Result<ArchivedPage, VerbatimError> {
        let lazy = Arc::clone(&self.lazy);
        run(call, async move {
            let page = PageRequest { after: cursor.map(Cursor::new), limit: limit.unwrap_or(PAGE_LIMIT) };
            let Page { items, next } = lazy.open().await?.tools().list_archived(page).await?;
            let transcripts = items.iter().map(|stored| Transcript::from_stored(stored, true)).collect();
            Ok(ArchivedPage { transcripts, next: next.map(|next| next.as_str().to_owned()) })
        })
        .await
    }
}
