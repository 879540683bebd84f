//! `OpenAPI` 3.1 document of both APIs.
//!
//! Schemas are derived from the wire types, allowed values from the enumerations that the server parses, numbers from
//! the settings, and examples are values of the wire types. So the document cannot differ from the server. The
//! operations are beside their handlers, in the list that the router is made from.

mod samples;
mod schemas;

use serde_json::{Value, json};
use transcript_core::{accounts::AccountsOptions, lookup::LookupOptions};

use crate::{
    api::INTERFACE_VERSION,
    routes::{
        ENDPOINTS,
        document::{DocumentOptions, add_common_responses, with_common_fields},
    },
};

/// Document of a service with these settings.
pub(crate) fn document(options: &LookupOptions, accounts: &AccountsOptions) -> Value {
    let base_url = options.base_url.trim_end_matches('/');
    let paths = paths(options, accounts);
    with_common_fields(json!({
        // Samples of the guides, which are pages of the documentation.
        "x-guideSamples": samples::guides(&paths, base_url),
        "info": {
            "title": "Verbatim: video transcripts",
            "summary": "Timestamped transcripts of YouTube, TikTok, Instagram and X videos.",
            "description": description(),
            "version": INTERFACE_VERSION,
            "contact": { "name": "Operator of this service", "url": base_url }
        },
        "servers": [{ "url": base_url, "description": "This service." }],
        "tags": [
            { "name": "accounts", "description": "The v1 API: accounts with credits, transcripts and chat." },
            { "name": "jobs", "description": "Transcripts of many videos, fetched in the background." },
            { "name": "keys", "description": "Creation and status of API keys." },
            { "name": "payments", "description": "Plans and credit packs, paid on a hosted page." },
            { "name": "service", "description": "Health, version and documentation of the service." },
            { "name": "transcripts", "description": "Lookup of transcripts." }
        ],
        "paths": paths,
        "components": {
            "schemas": schemas::all(),
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key of the lookup API (`vbk_…`). Send it in this header only, never in a \
                                    link."
                },
                "account": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key of an account (`vba_…`). Send it in this header only, never in a link. \
                                    Use it on servers, not in web pages."
                }
            }
        }
    }))
}

/// All paths with their operations.
fn paths(options: &LookupOptions, accounts: &AccountsOptions) -> Value {
    let settings = DocumentOptions { lookup: options, accounts };
    let mut paths = json!({});
    for endpoint in ENDPOINTS {
        let Some(operation) = endpoint.operation else { continue };
        let mut operation = operation(&settings);
        add_common_responses(endpoint.path, endpoint.method, &mut operation);
        if INTERNAL.iter().any(|id| operation["operationId"] == *id) {
            operation["x-internal"] = true.into();
        }
        paths[endpoint.path][endpoint.method.as_str().to_ascii_lowercase()] = operation;
    }
    samples::add(&mut paths, &options.base_url);
    paths
}

/// Operations that only the pages, payment providers and tools of the service call. The reference lists them last.
const INTERNAL: [&str; 9] = [
    "getDocs",
    "getDocsOfOperation",
    "getGuide",
    "getLlmsTxt",
    "getOpenApi",
    "getSandboxPage",
    "getVersion",
    "pressSandboxButton",
    "takeStripeEvent",
];

/// Description of the whole document, of what this build has.
fn description() -> String {
    if cfg!(feature = "mcp") { DESCRIPTION.to_owned() } else { DESCRIPTION.replace(MCP_CLAUSE, "") }
}

/// What the description says of the endpoint for assistants.
const MCP_CLAUSE: &str = ", and `/mcp`, the endpoint of the Model Context Protocol";

/// Description of the whole document, with all features.
const DESCRIPTION: &str = "An archived transcript is returned to every caller, without a key and free of charge. A \
         video that is not archived is transcribed at once if the request has an API key, and charged to the key's \
         allowance. Without a key the response has the address of the watch page (`watchUrl`), on which a person can \
         read or request the transcript. Relay only words that the service returned.\n\n\
         `/api/v1` is the v1 API, for accounts with credits: `POST /api/v1/register` creates an account. Its errors \
         are `{error, code}`, its fields are in snake case, it answers HEAD with 405, and it rejects unknown \
         fields.\n\n\
         All other errors are problem details (RFC 9457). In the JSON form a lookup without a transcript is not an \
         error: it is a 200 with `available: false` and a `failureReason`.\n\n\
         Every path that is listed here answers OPTIONS with 204 and `Allow`, outside the v1 API also HEAD where it \
         has GET, and other methods with 405 and `Allow`. Paths that are not listed here return 404, except the web \
         pages (such as `/`, `/search`, `/pricing`, `/register` and `/account`) with what they load and send, \
         `/robots.txt` and the sitemaps, the probes `/healthz` and `/readyz`, and `/mcp`, the endpoint of the Model \
         Context Protocol. Unknown parameters are ignored, unless they are another spelling of a known one; so are \
         unknown fields outside the v1 API.\n\n\
         An extension is what was added within version 2.0.0 of the lookup API and within the v1 API. It is as stable \
         as the rest.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn description_has_clause_of_optional_endpoint() {
        assert_eq!(DESCRIPTION.matches(MCP_CLAUSE).count(), 1);
    }
}
