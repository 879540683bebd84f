//! The tool that searches the whole archive.

use std::sync::Arc;

use rmcp::model::CallToolResult;
use serde_json::json;
use tokio::sync::Semaphore;
use transcript_core::{
    ErrorKind,
    lookup::{Lookup, LookupOptions, SearchAdmission},
    search::{SearchPage, SearchParams},
    transcript::{LanguageTag, format_timestamp},
    video::VideoLink,
};
use verbatim::{SearchService, service::Caller};

use super::{
    arguments::SearchArchiveArgs,
    error::ToolError,
    result::{DATA, LINE_MAX, PASSAGE_MAX, good, line, quoted, within},
};
use crate::{config::SearchAccess, state::wait_for_place};

/// The message of a search without a place.
const BUSY: &str = "The server is working on other searches.";

/// The search of the archive, and who may use it.
#[derive(Clone, Debug)]
pub(crate) struct ToolSearch {
    pub(crate) service: SearchService,
    /// `None` for the user's own archive, which has no limits.
    pub(crate) limits: Option<ToolSearchLimits>,
}

/// Limits of callers over HTTP.
#[derive(Clone, Debug)]
pub(crate) struct ToolSearchLimits {
    pub(crate) lookup: Lookup,
    pub(crate) access: SearchAccess,
    /// Those of all searches of the server.
    pub(crate) places: Arc<Semaphore>,
}

impl ToolSearch {
    pub(super) async fn call(
        &self,
        args: SearchArchiveArgs,
        caller: &Caller,
    ) -> Result<CallToolResult, ToolError> {
        let limit = args.limit()?;
        let language = args.lang.as_deref().map(LanguageTag::parse).transpose();
        let language = language.map_err(|error| ToolError::invalid(format!("lang: {error}")))?;
        let params = SearchParams {
            query: args.query,
            language,
            limit: u32::try_from(limit).unwrap_or(u32::MAX),
            cursor: args.cursor,
            with_segments: false,
            with_unfiltered: true,
            ..SearchParams::default()
        };
        self.admit(caller).await?;
        let _place = match &self.limits {
            Some(limits) => Some(wait_for_place(&limits.places).await.ok_or_else(|| ToolError::busy(BUSY))?),
            None => None,
        };
        let page = self.service.search(&params).await.map_err(|error| match error.kind() {
            ErrorKind::Invalid => {
                ToolError::invalid("cursor: not a cursor of this search: omit it to start with the best")
            }
            _ => error.into(),
        })?;
        let options = self.limits.as_ref().map(|limits| limits.lookup.options());
        Ok(hits(&params.query, &page, options))
    }

    async fn admit(&self, caller: &Caller) -> Result<(), ToolError> {
        let Some(ToolSearchLimits { lookup, access, .. }) = &self.limits else { return Ok(()) };
        let needs_key = *access != SearchAccess::Everyone;
        match lookup.admit_search(caller.key.clone(), caller.client, needs_key).await? {
            SearchAdmission::Admitted => Ok(()),
            SearchAdmission::KeyNeeded { .. } => Err(ToolError::refused(
                401,
                "The search of the archive needs a valid API key of this server.",
            )),
            SearchAdmission::Limited { retry_after_ms } => {
                let wait = std::time::Duration::from_millis(retry_after_ms);
                Err(ToolError::refused_until(429, "Too many searches within a minute.", Some(wait)))
            }
        }
    }
}

/// The videos that match, with their moments.
fn hits(query: &str, page: &SearchPage, options: Option<&LookupOptions>) -> CallToolResult {
    let query = quoted(query);
    let mut text = match page.hits.len() {
        0 => format!("No archived transcript matches {query}.\n"),
        shown => format!("{shown} of {} found for {query}. {DATA}\n", page.total),
    };
    if let Some(suggestion) = &page.suggestion {
        text.push_str(&format!("Did the user mean {}?\n", quoted(suggestion)));
    }
    if let Some(unfiltered) = &page.without_filters {
        text.push_str(&format!(
            "Without the filters, {} matches in {}.\n",
            quoted(&unfiltered.query),
            unfiltered.total
        ));
    }
    for hit in &page.hits {
        let transcript = &hit.stored.transcript;
        let name = transcript.title.clone().unwrap_or_else(|| transcript.video.to_string());
        let author = transcript.author.as_deref().map(|author| format!(", by {}", line(author)));
        text.push_str(&format!(
            "\n{}{} ({})\n{}\n",
            within(&line(&name), LINE_MAX),
            author.unwrap_or_default(),
            transcript.track.language,
            transcript.video.address()
        ));
        if let Some(options) = options {
            let watch_url = options.watch_url(&VideoLink::Video(transcript.video.clone()), None);
            text.push_str(&format!("Watch page: {watch_url}\n"));
        }
        for moment in &hit.moments {
            let seconds = moment.start_ms / 1_000;
            text.push_str(&format!(
                "[{}] {}\n    {}\n",
                format_timestamp(seconds),
                within(&moment.text, PASSAGE_MAX),
                transcript.video.address_at(seconds)
            ));
        }
    }
    if let Some(next) = &page.next {
        text.push_str(&format!(
            "\nMore follow: call again with the same arguments and \"cursor\": \"{next}\"."
        ));
    }
    good(
        text,
        [
            ("verbatim/total", json!(page.total.value)),
            ("verbatim/total_is_exact", json!(page.total.is_exact)),
            ("verbatim/next_cursor", json!(page.next)),
        ],
    )
}
