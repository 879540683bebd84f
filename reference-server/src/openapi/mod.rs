//! The `OpenAPI` 3.1 document of both surfaces, made from the types and names that the answers are made of.
//!
//! Schemas are derived from the wire types, allowed values come from the enumerations that the server reads
//! them with, figures come from the settings, and examples are wire values: none of them can drift.

mod examples;
mod operations;
mod parameters;
mod responses;
mod samples;
mod schemas;
mod v1;

use serde_json::{Value, json};
use transcript_core::{accounts::AccountsOptions, lookup::LookupOptions};

/// The version that Surface A declares (specification 9).
pub(crate) const INTERFACE_VERSION: &str = "2.0.0";

/// The document of a service with these settings.
pub(crate) fn document(options: &LookupOptions, accounts: &AccountsOptions) -> Value {
    json!({
        "openapi": "3.1.1",
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "info": {
            "title": "Verbatim: video transcripts",
            "summary": "A link to a video in, its spoken words with times out.",
            "description": DESCRIPTION,
            "version": INTERFACE_VERSION,
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" }
        },
        "servers": [{ "url": options.base_url.trim_end_matches('/'), "description": "This service." }],
        "tags": [
            { "name": "transcripts", "description": "Looking transcripts up." },
            { "name": "keys", "description": "Making keys, and what is left of their allowances." },
            { "name": "accounts", "description": "The v1 API: accounts with credits, and transcripts for them." },
            { "name": "payments", "description": "Plans and packs of credits, paid for on a hosted page." },
            { "name": "service", "description": "About the service itself." }
        ],
        "paths": operations::paths(options, accounts),
        "components": {
            "schemas": schemas::all(),
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key, which begins with `vbk_`. It is sent in this header only, never in a \
                                    link."
                },
                "account": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An account's API key, which begins with `vba_`. It is sent in this header only, \
                                    never in a link, and belongs on servers, not into pages."
                }
            }
        }
    })
}

/// What holds for all operations.
const DESCRIPTION: &str = "An archived transcript is returned to anyone, without a key and without a charge. A video that is \
         not archived is transcribed on the spot when the request carries an API key, and is charged to that \
         key's allowance; without a key the answer names the page on which a person can read the transcript \
         (`watchUrl`). Relay only words that the service returned.\n\n\
         Below `/api/v1` lies a second API, for accounts with credits: `POST /api/v1/register` begins one. Its \
         errors are `{error, code}`, its fields have underscores, HEAD is a 405 there, and a field that it does \
         not know is refused.\n\n\
         Elsewhere errors are problem details (RFC 9457). In the JSON form a look-up that finds no transcript is no \
         error: it is a 200 with `available: false` and a `failureReason`.\n\n\
         Every address answers OPTIONS with 204 and `Allow`, and a method that it does not have with 405 and \
         `Allow`. An address that is not listed here answers 404, except for the front page and what pages for \
         people load and send; but `/mcp` speaks the Model Context Protocol. Unknown parameters are ignored, and unknown \
         fields outside the v1 API.";
