//! The Model Context Protocol: four tools for assistants, over HTTP ([`Service`]) and on standard input and output
//! ([`Local`]).
//!
//! No rule lives here. A tool turns its arguments into calls of the core, as a route does, and their answer into text:
//! what is free, what a key pays for, and when, the core decides. Everything that a caller can act on is told as the
//! tool's result; only what is no call of a tool is an error of the protocol.

mod answer;
mod arguments;
mod cursor;
mod local;
mod page;
mod service;
mod source;
#[cfg(test)]
mod tests;
mod tools;

use std::{fmt, panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, Implementation, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};
use serde_json::{Map, Value};

pub(crate) use local::Local;
pub(crate) use service::Service;
pub(crate) use source::Caller;

use arguments::{AskVideo, GetTranscript, ListLanguages, SearchTranscript, read};
use source::{No, Source, Wanted};

/// The largest message that is read, in bytes: a question is small, and so are all other arguments.
pub(crate) const MESSAGE_MAX: usize = 64 * 1024;
/// For how long a client may keep the list of tools, in milliseconds: it changes with the version of the server.
const TOOLS_TTL_MS: u64 = 60 * 60 * 1000;

/// The tools, over one source of transcripts. A clone is a handle to the same ones.
#[derive(Clone)]
pub(crate) struct Tools {
    source: Arc<dyn Source>,
    all: Arc<[Tool]>,
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tools").field("source", &self.source).finish_non_exhaustive()
    }
}

impl Tools {
    /// The tools of a service over HTTP.
    pub(crate) fn of_service(service: Service) -> Self {
        Self { source: Arc::new(service), all: tools::all(tools::Whose::Service).into() }
    }

    /// The tools over the user's own archive.
    pub(crate) fn of_archive(local: Local) -> Self {
        Self { source: Arc::new(local), all: tools::all(tools::Whose::Archive).into() }
    }

    /// Calls a tool; none when there is no such one.
    async fn call(&self, name: &str, given: Map<String, Value>, caller: Caller) -> Option<CallToolResult> {
        let result = match name {
            tools::GET_TRANSCRIPT => self.get_transcript(given, caller).await,
            tools::LIST_LANGUAGES => self.list_languages(given, caller).await,
            tools::ASK_VIDEO => self.ask_video(given, caller).await,
            tools::SEARCH_TRANSCRIPT => self.search_transcript(given, caller).await,
            _ => return None,
        };
        Some(result.unwrap_or_else(|no| answer::no(&no)))
    }

    async fn get_transcript(&self, given: Map<String, Value>, caller: Caller) -> Result<CallToolResult, No> {
        let wanted = read::<GetTranscript>(given)?;
        let (from, max_chars) = (wanted.cursor()?, wanted.max_chars()?);
        let timestamps = wanted.timestamps.unwrap_or(true);
        // Where a page was read before, the transcript is archived: what follows it has nothing fetched or charged.
        let got = self.source.transcript(wanted.wanted(from.is_none())?, caller).await?;
        let passages = self.source.chat().passages(Arc::clone(&got.stored.transcript)).await;
        let passages = passages.map_err(|error| No::of_error(&error))?;
        let page = page::page(&got.stored, &passages, from, max_chars, timestamps).map_err(No::bad)?;
        Ok(answer::transcript(&got, &page, from.is_none()))
    }

    async fn list_languages(&self, given: Map<String, Value>, caller: Caller) -> Result<CallToolResult, No> {
        let wanted = read::<ListLanguages>(given)?;
        let languages = self.source.languages(wanted.video, caller).await?;
        Ok(answer::languages(&languages))
    }

    async fn ask_video(&self, given: Map<String, Value>, caller: Caller) -> Result<CallToolResult, No> {
        let asked = read::<AskVideo>(given)?;
        let told = self.source.ask(asked.video, asked.question, caller).await?;
        Ok(answer::told(&told))
    }

    async fn search_transcript(
        &self,
        given: Map<String, Value>,
        caller: Caller,
    ) -> Result<CallToolResult, No> {
        let wanted = read::<SearchTranscript>(given)?;
        let limit = wanted.limit()?;
        let got = self
            .source
            .transcript(
                Wanted { may_fetch: true, ..Wanted::of(&wanted.video, wanted.lang.as_deref())? },
                caller,
            )
            .await?;
        let transcript = Arc::clone(&got.stored.transcript);
        let hits = self.source.chat().search(transcript, &wanted.query, limit).await;
        let hits = hits.map_err(|error| No::of_error(&error))?;
        Ok(answer::hits(&got, &wanted.query, &hits))
    }
}

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        let name = Implementation::new("verbatim", env!("CARGO_PKG_VERSION")).with_title("Verbatim");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(name)
            .with_instructions(tools::INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut list = ListToolsResult::with_all_items(self.all.to_vec()).with_ttl_ms(TOOLS_TTL_MS);
        list.cache_scope = Some(CacheScope::Public);
        Ok(list)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.all.iter().find(|tool| tool.name == name).cloned()
    }

    /// Calls a tool. A client that leaves or cancels takes the call along, as a connection that closes does a route.
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = Caller::of(&context.extensions);
        let call = self.call(&request.name, request.arguments.unwrap_or_default(), caller);
        let called = tokio::select! {
            // The panic hook has logged what and where.
            called = AssertUnwindSafe(call).catch_unwind() => called,
            () = context.ct.cancelled() => return Err(ErrorData::internal_error("The call was cancelled.", None)),
        };
        match called {
            Ok(Some(result)) => Ok(result.into()),
            Ok(None) => {
                let names: Vec<&str> = self.all.iter().map(|tool| tool.name.as_ref()).collect();
                let message = format!("There is no such tool. There are: {}.", names.join(", "));
                Err(ErrorData::invalid_params(message, None))
            }
            Err(_) => Ok(answer::no(&No::fault()).into()),
        }
    }
}
