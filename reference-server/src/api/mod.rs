//! What all requests and responses of both APIs share.

mod accept;
mod bearer;
mod body;
mod byte_budget;
mod client;
mod cookie;
mod cors;
mod encoding;
mod head;
mod header_name;
mod health;
mod host;
mod json;
mod origin;
mod path_name;
mod problem;
mod query;
mod rate_limit;
mod request_id;
mod search_query;
mod sse;
mod stored_response;
mod unanswered;
mod v1_error;
mod view_query;

#[cfg(feature = "mcp")]
pub(crate) use accept::accepts_json;
pub(crate) use accept::{wants_events, wants_json_lines, wants_page};
pub(crate) use bearer::{IDEMPOTENCY_KEY, INVALID_TOKEN, TOKEN_NEEDED, bearer, idempotency_key, proof};
pub(crate) use body::{
    BODY_MAX, CountedBody, ENCODED_BODY, RequestBody, ResponseBody, budgeted, counted, is_identity, read_body,
};
pub(crate) use byte_budget::{BUSY, BudgetedBytes, ByteBudget, ReservedBytes, UNRESERVED_RESPONSE_BYTES};
pub(crate) use client::ClientAddress;
pub(crate) use cookie::{add_cookie, cookie};
pub(crate) use cors::{CorsRule, cors};
pub(crate) use encoding::ContentEncoding;
pub(crate) use head::{HEAD_BYTES_MAX, READ_BYTES_MAX, check_head};
pub(crate) use header_name::{header_name, lower_case};
pub(crate) use health::{HEALTH_PATHS, Health, INTERFACE_VERSION, Version};
pub(crate) use host::{AllowedHosts, OTHER_HOST, PeerAddress, is_local};
pub(crate) use json::{JSON, SHOWN_NAME_MAX, is_form, is_json, json, json_bytes, json_object};
pub(crate) use origin::ResultOrigin;
pub(crate) use path_name::{PathName, path_name};
pub(crate) use problem::{NO_STORE, ProblemDetail, ProblemResponse, RETRY_AFTER_BUSY};
pub(crate) use query::{LookupQuery, ResponseFormat, parameter};
pub(crate) use rate_limit::rate_limit_headers;
pub(crate) use request_id::{RequestId, X_REQUEST_ID};
pub(crate) use search_query::{search_params, search_words};
pub(crate) use sse::{COMMENT, KEEPALIVE_INTERVAL, event, event_of_json, event_stream};
pub(crate) use stored_response::{into_response, reply};
pub(crate) use unanswered::UnansweredReason;
pub(crate) use v1_error::{V1ErrorResponse, X_CACHE, X_CREDITS_REMAINING, X_FAILURE_DETAIL};
pub(crate) use view_query::{check_spelling, flag, language, number, view};

/// Path of the lookup API's transcripts.
pub(crate) const TRANSCRIPT_PATH: &str = "/api/transcript";
/// Path of the page of a video.
pub(crate) const WATCH_PATH: &str = "/watch/{platform}/{id}";
/// Path prefix of the v1 API.
pub(crate) const V1_PREFIX: &str = "/api/v1";
pub(crate) const V1_TRANSCRIPT_PATH: &str = "/api/v1/transcript";
pub(crate) const V1_CHAT_PATH: &str = "/api/v1/chat";

/// The two names in a path that [`WATCH_PATH`] matches, as they are sent.
pub(crate) fn watch_names(path: &str) -> Option<(&str, &str)> {
    let (platform, id) = path.strip_prefix("/watch/")?.split_once('/')?;
    (!platform.is_empty() && !id.is_empty() && !id.contains('/')).then_some((platform, id))
}
