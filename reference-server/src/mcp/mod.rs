//! Model Context Protocol: tools for assistants.
//!
//! Over HTTP they use the service of this server ([`LocalService`]), on standard input and output the user's archive
//! ([`ArchiveService`]).
//!
//! A tool turns its arguments into calls of the [`Service`], and the result into text. The service decides what is
//! free, what a key pays for, and when. The tools that read lists, the results of a job and the search of the archive
//! use the parts behind it. A failure that a caller can act on is a tool result; only a message that is not a tool call
//! is a protocol error.

mod archive_search;
mod arguments;
mod caller;
mod cursor;
mod error;
mod jobs;
mod page;
mod passages;
mod result;
#[cfg(test)]
mod tests;
mod tools;
mod transcript;

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequestMethod, CallToolRequestParams, CallToolResponse, CallToolResult,
        ConstString, CustomRequest, CustomResult, ErrorCode, Implementation, ListToolsResult,
        PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use transcript_core::{accounts::Accounts, chat::Chat, headers, lookup::VideoReference};
use verbatim::{
    Verbatim,
    service::{ArchiveService, Caller, LocalService, Service, ServiceLookup, ServiceQuestion},
};

pub(crate) use archive_search::{ToolSearch, ToolSearchLimits};
use arguments::{
    AskVideoArgs, GetTranscriptArgs, ListLanguagesArgs, SearchArchiveArgs, SearchTranscriptArgs, check_types,
    read,
};
use caller::{caller, with_idempotency_key};
use error::ToolError;
use jobs::ToolJobs;
pub(crate) use passages::PassageCache;
use transcript::{PLACES, TranscriptQuery};

/// Limit of a message, in bytes.
pub(crate) const MESSAGE_MAX: usize = 64 * 1024;
/// Time for which a client may cache the tool list, in milliseconds.
/// The list changes with the server's version.
const TOOLS_TTL_MS: u64 = 60 * 60 * 1000;

/// MCP tools over one service. Clones share it.
#[derive(Clone)]
pub(crate) struct McpTools {
    service: Arc<dyn Service>,
    /// Searches transcripts.
    chat: Chat,
    passages: PassageCache,
    /// Places of the calls that work on a long transcript.
    places: Arc<Semaphore>,
    jobs: ToolJobs,
    /// `None` without a search of the archive.
    search: Option<ToolSearch>,
    all: Arc<[Tool]>,
}

transcript_core::debug_fields!(McpTools { service });

impl McpTools {
    /// Tools of a service over HTTP, whose accounts start jobs.
    pub(crate) fn for_service(
        service: LocalService,
        accounts: Accounts,
        chat: Chat,
        passages: PassageCache,
    ) -> Self {
        let service: Arc<dyn Service> = Arc::new(service);
        let transcripts = accounts.transcripts().clone();
        let jobs = ToolJobs::new(Arc::clone(&service), transcripts, Some(accounts));
        Self::new(service, chat, passages, jobs)
    }

    /// Tools over the user's archive.
    pub(crate) fn for_archive(verbatim: Verbatim) -> Self {
        let chat = verbatim.chat().clone();
        let passages = PassageCache::new(chat.clone());
        let transcripts = verbatim.transcripts().clone();
        let service: Arc<dyn Service> = Arc::new(ArchiveService::new(verbatim));
        let jobs = ToolJobs::new(Arc::clone(&service), transcripts, None);
        Self::new(service, chat, passages, jobs)
    }

    fn new(service: Arc<dyn Service>, chat: Chat, passages: PassageCache, jobs: ToolJobs) -> Self {
        let scope = match jobs.accounts {
            Some(_) => tools::ToolScope::Service,
            None => tools::ToolScope::Archive,
        };
        let (places, all) = (Arc::new(Semaphore::new(PLACES)), tools::all(scope).into());
        Self { service, chat, passages, places, jobs, search: None, all }
    }

    /// The tools with a search of the archive.
    pub(crate) fn with_search(self, search: ToolSearch) -> Self {
        let all = self.all.iter().cloned().chain([tools::search_archive()]).collect();
        Self { search: Some(search), all, ..self }
    }

    /// Calls a tool; `None` if the name is unknown.
    async fn call(
        &self,
        name: &str,
        mut arguments: Map<String, Value>,
        caller: &Caller,
    ) -> Option<CallToolResult> {
        let tool = self.all.iter().find(|tool| tool.name == name)?;
        if let Err(error) = check_types(&tool.input_schema, &mut arguments) {
            return Some(result::failure(&error));
        }
        let result = match name {
            tools::ASK_VIDEO => self.ask_video(arguments, caller).await,
            tools::GET_TRANSCRIPT | tools::LIST_LANGUAGES | tools::SEARCH_TRANSCRIPT => {
                self.read_for_free(name, arguments, caller).await
            }
            tools::SEARCH_ARCHIVE => self.search_archive(arguments, caller).await?,
            _ => self.jobs.call(name, arguments, caller).await?,
        };
        Some(result.unwrap_or_else(|error| result::failure(&error)))
    }

    /// Calls a tool that is free for archived transcripts, and therefore limited.
    async fn read_for_free(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        caller: &Caller,
    ) -> Result<CallToolResult, ToolError> {
        self.service.admit_tool_call(caller).await?;
        match name {
            tools::GET_TRANSCRIPT => self.get_transcript(arguments, caller).await,
            tools::LIST_LANGUAGES => self.list_languages(arguments, caller).await,
            _ => self.search_transcript(arguments, caller).await,
        }
    }

    async fn get_transcript(
        &self,
        arguments: Map<String, Value>,
        caller: &Caller,
    ) -> Result<CallToolResult, ToolError> {
        let args = read::<GetTranscriptArgs>(arguments)?;
        let (from, max_chars) = (args.cursor()?, args.max_chars()?);
        let timestamps = args.timestamps.unwrap_or(true);
        // Later pages are read from the archive: they fetch and charge nothing.
        let got = self.transcript(args.query(from.is_none())?, caller).await?;
        let passages = self.passages.get(&got.stored).await?;
        let page =
            page::page(&got.stored, &passages, from, max_chars, timestamps).map_err(ToolError::invalid)?;
        Ok(result::transcript(&got, &page, from.is_none()))
    }

    /// Searches the archive; `None` without a search.
    async fn search_archive(
        &self,
        arguments: Map<String, Value>,
        caller: &Caller,
    ) -> Option<Result<CallToolResult, ToolError>> {
        let search = self.search.as_ref()?;
        Some(match read::<SearchArchiveArgs>(arguments) {
            Ok(args) => search.call(args, caller).await,
            Err(error) => Err(error),
        })
    }

    async fn list_languages(
        &self,
        arguments: Map<String, Value>,
        caller: &Caller,
    ) -> Result<CallToolResult, ToolError> {
        let args = read::<ListLanguagesArgs>(arguments)?;
        let reply = self.service.tracks(caller, ServiceLookup::url(args.video)).await?;
        let (lookup, tracks) = (reply.body.lookup, reply.body.tracks);
        match lookup.transcript {
            Some(stored) => Ok(result::languages(&stored.transcript, &tracks, &lookup.result.watch_url)),
            None => {
                let error = ToolError::missing(lookup.result, &reply.meta);
                Err(if caller.key.is_some() { error.for_key_holder() } else { error })
            }
        }
    }

    async fn ask_video(
        &self,
        arguments: Map<String, Value>,
        caller: &Caller,
    ) -> Result<CallToolResult, ToolError> {
        let args = read::<AskVideoArgs>(arguments)?;
        if args.idempotency_key.is_some() && self.jobs.accounts.is_none() {
            return Err(ToolError::refused(
                400,
                "idempotency_key is an argument of a server: nothing is charged here.",
            ));
        }
        let reference = VideoReference::Url(args.video);
        let question = ServiceQuestion { reference, message: args.question, history: Vec::new() };
        let caller = with_idempotency_key(caller, args.idempotency_key);
        let answer = self.service.chat(&caller, question).await.map_err(|error| {
            let names = [("message", "question"), (headers::IDEMPOTENCY_KEY, "idempotency_key")];
            ToolError::from(error).rename_arguments(&names)
        })?;
        Ok(result::answer(&answer))
    }

    /// The result of a call with these unreadable parameters: wrong arguments are an error of the tool.
    ///
    /// # Errors
    /// The protocol error for a call without the name of a tool, or with another unreadable parameter.
    fn reject_unreadable(&self, params: Option<&Value>) -> Result<CallToolResult, ErrorData> {
        let parameter = |name: &str| params.and_then(|params| params.get(name));
        let Some(name) = parameter("name").and_then(Value::as_str) else {
            return Err(ErrorData::invalid_params("name: it must be the name of a tool.", None));
        };
        if !self.all.iter().any(|tool| tool.name == name) {
            return Err(self.unknown_tool());
        }
        match parameter("arguments") {
            None | Some(Value::Null | Value::Object(_)) => {
                Err(ErrorData::invalid_params("params: a value besides the arguments is invalid.", None))
            }
            Some(_) => Ok(result::failure(&ToolError::invalid("arguments: it must be an object"))),
        }
    }

    fn unknown_tool(&self) -> ErrorData {
        let names: Vec<&str> = self.all.iter().map(|tool| tool.name.as_ref()).collect();
        ErrorData::invalid_params(format!("Unknown tool. Tools: {}.", names.join(", ")), None)
    }

    async fn search_transcript(
        &self,
        arguments: Map<String, Value>,
        caller: &Caller,
    ) -> Result<CallToolResult, ToolError> {
        let args = read::<SearchTranscriptArgs>(arguments)?;
        let limit = args.limit()?;
        let query = TranscriptQuery::new(&args.video, args.lang.as_deref(), true)?;
        let got = self.transcript(query, caller).await?;
        let passages = self.passages.get(&got.stored).await?;
        let hits = self.chat.search(passages, &args.query, limit).await?;
        Ok(result::hits(&got, &args.query, &hits))
    }
}

/// Names of the tools of a server. The last one is there only with a search of the archive.
pub(crate) fn tool_names() -> Vec<String> {
    let tools = tools::all(tools::ToolScope::Service).into_iter().chain([tools::search_archive()]);
    tools.map(|tool| tool.name.into_owned()).collect()
}

impl ServerHandler for McpTools {
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

    /// Calls a tool.
    /// A client that disconnects or cancels drops the call, as a closed connection drops a route's handler.
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = caller(&context.extensions);
        let call = self.call(&request.name, request.arguments.unwrap_or_default(), &caller);
        let called = tokio::select! {
            // The panic hook has logged the message and location.
            called = AssertUnwindSafe(call).catch_unwind() => called,
            () = context.ct.cancelled() => return Err(ErrorData::internal_error("The call was cancelled.", None)),
        };
        match called {
            Ok(Some(result)) => Ok(result.into()),
            Ok(None) => Err(self.unknown_tool()),
            Err(_) => Ok(result::failure(&ToolError::fault()).into()),
        }
    }

    /// Answers a call of a tool that the library cannot read. It rejects other unknown messages.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method != CallToolRequestMethod::VALUE {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None));
        }
        let mut result = self.reject_unreadable(request.params.as_ref())?;
        // For earlier revisions the library removes it, but not from a custom result.
        let version = context.protocol_version();
        if version.is_none_or(|version| version.as_str() < ProtocolVersion::V_2026_07_28.as_str()) {
            result.result_type = None;
        }
        Ok(CustomResult::new(serde_json::to_value(result).unwrap_or_default()))
    }
}
