//! Settings of the APIs and of payments.

use super::{ALLOWANCE, DAY, MINUTE, NOTHING, RATE, SECOND, Setting, bounded, setting, unset};
use crate::config::{BaseUrl, JwkSet, PriceSetting, Secret};

/// Chat with models, which this build lacks.
#[cfg(not(feature = "chat-model"))]
pub(super) const CHAT: &[Setting] = &[];

#[cfg(feature = "chat-model")]
pub(super) const CHAT: &[Setting] = &[
    unset(
        "chat.base_url",
        |reader, all| all.chat.base_url = reader.text::<BaseUrl>(),
        "http or https address, `/v1` included",
        "A service with OpenAI's `/chat/completions` endpoint.",
        "\"http://127.0.0.1:11434/v1\"",
    ),
    unset(
        "chat.model",
        |reader, all| all.chat.model = reader.text::<String>(),
        "text",
        "Model name. Required if `chat.base_url` is set.",
        "\"llama3.2\"",
    ),
    unset(
        "chat.api_key",
        |reader, all| all.chat.api_key = reader.optional::<Secret>().map(String::from),
        "text without white space",
        "API key, if the service requires one. A secret; it is sent to that host only.",
        "\"sk-example\"",
    ),
    bounded(
        "chat.context_tokens",
        |reader, all| reader.small(&mut all.chat.context_tokens, 1_000..=10_000_000),
        "Context size of the model in tokens, its answer included.",
    ),
    bounded(
        "chat.timeout",
        |reader, all| reader.duration(&mut all.chat.timeout, SECOND..=10 * MINUTE),
        "Timeout of an answer, retries included.",
    ),
    unset(
        "chat.embedding_model",
        |reader, all| all.embedding_model = reader.optional(),
        "folder with `tokenizer.json` and `model.safetensors`",
        "A static embedding model in model2vec format: passages are found by meaning too. It is read at start and runs \
         within the process. Requires a build with the feature `static-embeddings`, which is on by default.",
        "\"/var/lib/verbatim/potion-multilingual-128M\"",
    ),
    unset(
        "chat.embeddings_url",
        |reader, all| all.embeddings.base_url = reader.text::<BaseUrl>(),
        "http or https address, `/v1` included",
        "In place of `chat.embedding_model`, a service with OpenAI's `/embeddings` endpoint. It receives the passages \
         of transcripts that are asked about, and the questions.",
        "\"http://127.0.0.1:8081/v1\"",
    ),
    unset(
        "chat.embeddings_model",
        |reader, all| all.embeddings.model = reader.text::<String>(),
        "text",
        "Model name. Required if `chat.embeddings_url` is set.",
        "\"multilingual-e5-small\"",
    ),
    unset(
        "chat.embeddings_api_key",
        |reader, all| all.embeddings.api_key = reader.optional::<Secret>().map(String::from),
        "text without white space",
        "API key, if the service requires one. A secret; it is sent to that host only.",
        "\"sk-example\"",
    ),
    unset(
        "chat.embeddings_question_prefix",
        |reader, all| all.embeddings.question_prefix = reader.text::<String>(),
        "text",
        "Text before each question and a space, for models that are trained with one.",
        "\"query:\"",
    ),
    unset(
        "chat.embeddings_passage_prefix",
        |reader, all| all.embeddings.passage_prefix = reader.text::<String>(),
        "text",
        "Text before each passage and a space, for models that are trained with one.",
        "\"passage:\"",
    ),
    bounded(
        "chat.embeddings_timeout",
        |reader, all| reader.duration(&mut all.embeddings.timeout, SECOND..=5 * MINUTE),
        "Timeout of the vectors of a transcript or a question, retries included; at most half of `chat.timeout`. \
         After it the search is by words.",
    ),
];

/// Search in the whole archive.
pub(super) const SEARCH: &[Setting] = &[
    unset(
        "search.access",
        |reader, all| all.server.search_access = reader.optional(),
        "`everyone`, `keys` or `off`",
        "Who may search the archive ([Search](search.md)). `off`: the archive is not indexed. Not set: everyone if \
         `server.listen` and `server.base_url` are loopback addresses, otherwise callers with an API key.",
        "\"everyone\"",
    ),
    bounded(
        "search.requests_per_minute",
        |reader, all| reader.small(&mut all.options.lookup.searches_per_minute, RATE),
        "Searches per API key and minute; without a key, per network.",
    )
    .reloadable(),
];

pub(super) const MAIL: &[Setting] = &[
    unset(
        "mail.smtp_url",
        |reader, all| all.mail.smtp_url = reader.optional(),
        "`smtps://USER:PASSWORD@HOST`, or `smtp://…` with `?tls=required` or `?tls=opportunistic`",
        "The mail server. Ports are 465 with `smtps`, 587 with a `tls` parameter, otherwise 25, unencrypted. \
         A path sets the EHLO name. A secret. Not set: mails are files in `DATA/outbox`.",
        "\"smtps://user:password@mail.example.org\"",
    ),
    unset(
        "mail.from",
        |reader, all| all.mail.from = reader.optional(),
        "address, or `Verbatim <no-reply@example.org>`",
        "Sender address. Required if `mail.smtp_url` is set.",
        "\"Verbatim <no-reply@example.org>\"",
    ),
];

pub(super) const WEBHOOKS: &[Setting] = &[setting(
    "webhooks.allow_private",
    |reader, all| reader.value(&mut all.options.accounts.private_webhooks),
    "`true` or `false`",
    "Whether the callback address of a job may be http, and its host a private one: for networks in which all account \
     holders may reach every host. Otherwise webhooks are sent over https to public addresses only.",
)
.reloadable()];

pub(super) const PAYMENTS: &[Setting] = &[
    unset(
        "stripe.secret_key",
        |reader, all| all.stripe.secret_key = reader.text::<Secret>(),
        "text without white space",
        "Stripe's secret key, `sk_…`, or a restricted one, `rk_…`. A secret.",
        "\"sk_test_example\"",
    ),
    setting(
        "stripe.webhook_secrets",
        |reader, all| reader.texts::<Secret>(&mut all.stripe.webhook_secrets),
        "list of `whsec_…`",
        "Signing secrets of Stripe's webhook events; several during a rotation. Secrets.",
    ),
    unset(
        "stripe.api_url",
        |reader, all| all.stripe.api_url = reader.optional::<BaseUrl>().map(String::from),
        "http or https address",
        "Address of Stripe's API, for tests. Not set: Stripe's own.",
        "\"https://api.stripe.com\"",
    ),
    unset(
        "checkout.sandbox",
        |reader, all| all.sandbox = reader.optional(),
        "`true` or `false`",
        "Whether the sandbox checkout, which takes no money, is open to callers on this machine. It requires \
         loopback addresses as `server.listen` and `server.base_url`, and refuses requests that passed a proxy \
         or a tunnel. Not set: open if these are loopback addresses and `server.trusted_proxies` is empty. \
         Always closed if Stripe is set.",
        "false",
    ),
    bounded(
        "checkout.grace",
        |reader, all| reader.duration(&mut all.options.accounts.grace, NOTHING..=90 * DAY),
        "How long an account with an overdue invoice keeps the rate limit of its plan.",
    )
    .reloadable(),
];

pub(super) const PLUS_KEYS: &[Setting] = &[
    unset(
        "entitlement.keys",
        |reader, all| all.entitlement.keys = reader.text::<JwkSet>(),
        "a JSON Web Key Set, or the path of a file that has one",
        "Keys that verify entitlements. Not set: entitlements are not accepted and every key is free. A \
         secret.",
        r#"'{"keys":[{"kty":"OKP","crv":"Ed25519","alg":"EdDSA","kid":"shop-1","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}'"#,
    )
    .reloadable(),
    unset(
        "entitlement.audience",
        |reader, all| all.entitlement.audience = reader.optional(),
        "text",
        "Required `aud` of an entitlement. Not set: not checked.",
        "\"verbatim\"",
    )
    .reloadable(),
    unset(
        "entitlement.issuer",
        |reader, all| all.entitlement.issuer = reader.optional(),
        "text",
        "Required `iss` of an entitlement. Not set: not checked.",
        "\"https://shop.example.org\"",
    )
    .reloadable(),
];

pub(super) const LIMITS: &[Setting] = &[
    bounded(
        "limits.free_per_month",
        |reader, all| reader.number(&mut all.options.lookup.free_per_month, ALLOWANCE),
        "New transcripts per free key and month.",
    )
    .reloadable(),
    bounded(
        "limits.plus_per_day",
        |reader, all| reader.number(&mut all.options.lookup.plus_per_day, ALLOWANCE),
        "New transcripts per plus key and day.",
    )
    .reloadable(),
    bounded(
        "limits.plus_keys_per_subject",
        |reader, all| reader.small(&mut all.options.lookup.plus_keys_per_subject, 0..=1_000),
        "Live plus keys per subscriber.",
    )
    .reloadable(),
    bounded(
        "limits.visitor_per_day",
        |reader, all| reader.number(&mut all.options.lookup.visitor_per_day, ALLOWANCE),
        "New transcripts per visitor of the watch page and UTC day, after the browser has passed the \
         challenge ([Web pages](pages.md)). With `0` the page has no button.",
    )
    .reloadable(),
    bounded(
        "limits.visitor_per_network_per_day",
        |reader, all| reader.number(&mut all.options.lookup.visitor_per_network_per_day, ALLOWANCE),
        "The same limit per visitor's network, which also holds for visitors that delete their cookies: an \
         IPv4 address, or an IPv6 /64, whose /48 has four times the limit. Failed attempts count.",
    )
    .reloadable(),
    bounded(
        "limits.service_per_day",
        |reader, all| reader.number(&mut all.options.lookup.service_per_day, ALLOWANCE),
        "New transcripts per day of all keys of the lookup API and all visitors together. A failed fetch \
         counts if it reached an upstream.",
    )
    .reloadable(),
    bounded(
        "limits.accounts_per_day",
        |reader, all| reader.number(&mut all.options.accounts.fetches_per_day, ALLOWANCE),
        "New transcripts per day of all accounts of the v1 API together. A failed fetch counts if it reached an \
         upstream.",
    )
    .reloadable(),
    bounded(
        "limits.misses_per_network_per_minute",
        |reader, all| reader.small(&mut all.options.lookup.misses_per_network_per_minute, RATE),
        "Lookups without a key of videos that are not archived, per network and minute.",
    )
    .reloadable(),
    bounded(
        "limits.tool_calls_per_network_per_minute",
        |reader, all| reader.small(&mut all.options.lookup.tool_calls_per_network_per_minute, RATE),
        "Calls of `get_transcript`, `search_transcript` and `list_languages` at `/mcp` without a valid key, \
         and documents of `/watch/…/pdf` and `/watch/…/docx`, per network and minute. A document counts as one \
         for each 64 KiB of its words.",
    )
    .reloadable(),
    bounded(
        "limits.attempts_per_key_per_hour",
        |reader, all| reader.small(&mut all.options.lookup.attempts_per_key_per_hour, RATE),
        "Failed attempts per API key and hour.",
    )
    .reloadable(),
    bounded(
        "limits.attempts_per_account_per_hour",
        |reader, all| reader.small(&mut all.options.accounts.attempts_per_account_per_hour, RATE),
        "Fetches per account of the v1 API and hour that found no transcript or that the client did not wait \
         for, and questions that the chat model refused or answered unreadably.",
    )
    .reloadable(),
    bounded(
        "limits.jobs_per_account",
        |reader, all| reader.small(&mut all.options.accounts.jobs_per_account, 1..=1_000),
        "Unfinished jobs (`POST /api/v1/jobs`) per account of the v1 API.",
    )
    .reloadable(),
    bounded(
        "limits.items_per_job",
        |reader, all| reader.small(&mut all.options.accounts.items_per_job, 1..=5_000),
        "Videos of a job.",
    )
    .reloadable(),
    bounded(
        "limits.job_items_at_once",
        |reader, all| reader.small(&mut all.options.accounts.job_items_at_once, 1..=1_000),
        "Videos of jobs that a server works on at the same time, at most half of them of one account. The \
         limits of the sources hold as well.",
    )
    .reloadable(),
    bounded(
        "limits.mint_per_network_per_day",
        |reader, all| reader.small(&mut all.options.lookup.mint_per_network_per_day, RATE),
        "New keys (`POST /api/keys`) per network and day.",
    )
    .reloadable(),
    bounded(
        "limits.register_per_network_per_hour",
        |reader, all| reader.small(&mut all.options.accounts.register_per_network_per_hour, RATE),
        "Registrations and requests to sign in per network and hour. One address receives at most 5 \
         verification emails an hour, and of sign-in emails 5 for each network and 30 in all.",
    )
    .reloadable(),
    bounded(
        "limits.fetches",
        |reader, all| reader.small(&mut all.options.waiting_fetches, 1..=100_000),
        "Fetches that may wait for each supplier. A further one is refused with `Retry-After` and costs nothing. \
         Keys, accounts and networks take turns, paying ones first.",
    ),
    bounded(
        "limits.wait",
        |reader, all| reader.duration(&mut all.options.wait, SECOND / 10..=5 * MINUTE),
        "How long a request waits for a new transcript. Longer work continues, and the response says when to \
         retry: `/api/transcript` in a `Retry-After` header, the v1 API in its message.",
    ),
];

pub(super) const ABSENCES: &[Setting] = &[
    bounded(
        "absence.no_captions",
        |reader, all| reader.duration(&mut all.options.absence.no_captions, NOTHING..=365 * DAY),
        "No captions, no speech, or not in the requested language; and short links without a target.",
    ),
    bounded(
        "absence.gone",
        |reader, all| reader.duration(&mut all.options.absence.gone, NOTHING..=365 * DAY),
        "Private, removed, blocked in this region, or paid.",
    ),
    bounded(
        "absence.login",
        |reader, all| reader.duration(&mut all.options.absence.login, NOTHING..=365 * DAY),
        "Age limit, login required, members only, or live now.",
    ),
];

/// The setting `plans.{plan}.{field}`; for a price with the dollars of the sandbox.
macro_rules! plan {
    ($plan:ident, credits) => {
        bounded(
            concat!("plans.", stringify!($plan), ".credits"),
            |reader, all| reader.number(&mut all.options.accounts.plans.$plan.credits, ALLOWANCE),
            concat!("Credits per month of the plan `", stringify!($plan), "`."),
        )
        .reloadable()
    };
    ($plan:ident, requests_per_minute) => {
        bounded(
            concat!("plans.", stringify!($plan), ".requests_per_minute"),
            |reader, all| reader.small(&mut all.options.accounts.plans.$plan.requests_per_minute, RATE),
            "Requests to the v1 API in any minute, for all endpoints together.",
        )
        .reloadable()
    };
    ($plan:ident, price_usd, $dollars:literal) => {
        unset(
            concat!("plans.", stringify!($plan), ".price_usd"),
            |reader, all| {
                all.options.accounts.plans.$plan.price_cents =
                    reader.optional().map(|PriceSetting { cents }| cents)
            },
            "dollars, from 0.01 to 100000, with two decimals at most",
            concat!(
                "Price per month. Without a price the plan is for sale only in the sandbox, for ",
                $dollars,
                " dollars."
            ),
            concat!("\"", $dollars, ".00\""),
        )
        .reloadable()
    };
}

pub(super) const PLANS_AND_PRICES: &[Setting] = &[
    bounded(
        "plans.free.credits",
        |reader, all| reader.number(&mut all.options.accounts.plans.free.credits, ALLOWANCE),
        "Credits per month of the plan `free`. Every new account has this plan.",
    )
    .reloadable(),
    bounded(
        "plans.free.requests_per_minute",
        |reader, all| reader.small(&mut all.options.accounts.plans.free.requests_per_minute, RATE),
        "Requests to the v1 API in any minute, for all endpoints together.",
    )
    .reloadable(),
    plan!(starter, credits),
    plan!(starter, requests_per_minute),
    plan!(starter, price_usd, "9"),
    plan!(pro, credits),
    plan!(pro, requests_per_minute),
    plan!(pro, price_usd, "29"),
    plan!(scale, credits),
    plan!(scale, requests_per_minute),
    plan!(scale, price_usd, "99"),
    bounded(
        "credits.per_transcript",
        |reader, all| reader.number(&mut all.options.accounts.credits_per_transcript, 0..=1_000),
        "Credits per delivered transcript.",
    )
    .reloadable(),
    bounded(
        "credits.per_message",
        |reader, all| reader.number(&mut all.options.accounts.credits_per_message, 0..=1_000),
        "Credits per answered question.",
    )
    .reloadable(),
];
