//! `OpenAPI` 3.1 document of both APIs.
//!
//! Schemas are derived from the wire types, allowed values from the enumerations that the server parses, numbers from
//! the settings, and examples are values of the wire types. So the document cannot differ from the server.

mod examples;
mod operations;
mod parameters;
mod responses;
mod samples;
mod schemas;
mod v1;

use serde_json::{Value, json};
use transcript_core::{accounts::AccountsOptions, lookup::LookupOptions};

/// Version of the lookup API (specification 9).
pub(crate) const INTERFACE_VERSION: &str = "2.0.0";

/// Document of a service with these settings.
pub(crate) fn document(options: &LookupOptions, accounts: &AccountsOptions) -> Value {
    json!({
        "openapi": "3.1.1",
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "info": {
            "title": "Verbatim: video transcripts",
            "summary": "Timestamped transcripts of YouTube, TikTok, Instagram and X videos.",
            "description": DESCRIPTION,
            "version": INTERFACE_VERSION,
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" }
        },
        "servers": [{ "url": options.base_url.trim_end_matches('/'), "description": "This service." }],
        "tags": [
            { "name": "transcripts", "description": "Lookup of transcripts." },
            { "name": "keys", "description": "Creation and status of API keys." },
            { "name": "accounts", "description": "The v1 API: accounts with credits, transcripts and chat." },
            { "name": "payments", "description": "Plans and credit packs, paid on a hosted page." },
            { "name": "service", "description": "Health, version and documentation of the service." }
        ],
        "paths": operations::paths(options, accounts),
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
    })
}

/// Description of the whole document.
const DESCRIPTION: &str = "An archived transcript is returned to every caller, without a key and free of charge. A \
         video that is not archived is transcribed at once if the request has an API key, and charged to the key's \
         allowance. Without a key the response has the address of the watch page (`watchUrl`), on which a person can \
         read or request the transcript. Relay only words that the service returned.\n\n\
         `/api/v1` is the v1 API, for accounts with credits: `POST /api/v1/register` creates an account. Its errors \
         are `{error, code}`, its fields are in snake case, it answers HEAD with 405, and it rejects unknown \
         fields.\n\n\
         All other errors are problem details (RFC 9457). In the JSON form a lookup without a transcript is not an \
         error: it is a 200 with `available: false` and a `failureReason`.\n\n\
         Every path answers OPTIONS with 204 and `Allow`, and other unsupported methods with 405 and `Allow`. Paths \
         that are not listed here return 404, except the front page, what web pages load and send, and `/mcp`, \
         the endpoint of the Model Context Protocol. Unknown parameters are ignored; so are unknown fields outside \
         the v1 API.";
