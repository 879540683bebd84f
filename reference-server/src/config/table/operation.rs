//! Settings of the web pages, of operators' access, and of logs.

use transcript_core::limits::LIMIT_MAX;

use super::{Setting, bounded, checks, setting, unset};

pub(super) const ADMIN_API: &[Setting] = &[unset(
    "admin.listen",
    |reader, all| all.server.admin = reader.optional(),
    "port, or IP address and port",
    "Separate listener for the admin API; a port alone is on 127.0.0.1. Requests need a token of `verbatim \
     admin-tokens create`. It is plain HTTP: keep it on a private address.",
    "\"127.0.0.1:9465\"",
)];

pub(super) const WEB_PAGES: &[Setting] = &[
    unset(
        "pages.status_url",
        |reader, all| all.pages.status = reader.optional(),
        "http or https address, or `mailto:…`",
        "Link in the footer: state of the service.",
        "\"https://status.example.org\"",
    ),
    unset(
        "pages.privacy_url",
        |reader, all| all.pages.privacy = reader.optional(),
        "http or https address, or `mailto:…`",
        "Link in the footer: privacy statement.",
        "\"https://example.org/privacy\"",
    ),
    unset(
        "pages.terms_url",
        |reader, all| all.pages.terms = reader.optional(),
        "http or https address, or `mailto:…`",
        "Link in the footer: terms of use.",
        "\"https://example.org/terms\"",
    ),
    unset(
        "pages.imprint_url",
        |reader, all| all.pages.imprint = reader.optional(),
        "http or https address, or `mailto:…`",
        "Link in the footer: who operates the service.",
        "\"https://example.org/imprint\"",
    ),
    unset(
        "pages.contact_url",
        |reader, all| all.pages.contact = reader.optional(),
        "http or https address, or `mailto:…`",
        "Link in the footer and on error pages: contact, also for takedown requests.",
        "\"mailto:help@example.org\"",
    ),
    unset(
        "pages.messages",
        |reader, all| all.pages.messages = reader.optional(),
        "path of a folder",
        "Message files of the operator, `*.toml`: further languages of the pages, or other words of a known one \
         ([Web pages](pages.md#languages)).",
        "\"/etc/verbatim/messages\"",
    ),
    setting(
        "pages.index",
        |reader, all| reader.value(&mut all.pages.index),
        "`none`, `site` or `transcripts`",
        "Pages that search engines may list: none; the front page, the prices and the documentation; or also the \
         archived transcripts, which are then listed in `/sitemap.xml`.",
    ),
    bounded(
        "pages.questions_per_day",
        |reader, all| reader.small(&mut all.options.lookup.questions_per_visitor_per_day, 0..=LIMIT_MAX),
        "Questions that a visitor may ask per UTC day on the page of a transcript. 0: the pages have no field for \
         questions.",
    ),
    bounded(
        "pages.questions_per_network_per_day",
        |reader, all| reader.small(&mut all.options.lookup.questions_per_network_per_day, 0..=LIMIT_MAX),
        "The same for all visitors of a network.",
    ),
    bounded(
        "pages.questions_per_service_per_day",
        |reader, all| reader.small(&mut all.options.lookup.questions_per_service_per_day, 0..=LIMIT_MAX),
        "Questions of all visitors per UTC day that may be answered by the chat model. Questions without JavaScript \
         are answered with passages of the transcript, and do not count here.",
    ),
];

/// Logs, metrics and traces.
pub(super) const LOGS: &[Setting] = &[
    unset(
        "metrics.listen",
        |reader, all| all.log.metrics = reader.optional(),
        "IP address and port",
        "Separate listener for Prometheus: `/metrics`, and also `/healthz` and `/readyz`. It has no \
         authentication: keep it on a private address.",
        "\"127.0.0.1:9464\"",
    ),
    unset(
        "traces.endpoint",
        |reader, all| {
            all.log.traces = reader.optional();
            checks::check_traces(reader, all);
        },
        "http address, with its path",
        "Collector of traces as OTLP over HTTP: `http://127.0.0.1:4318/v1/traces`. Requires a build with the \
         feature `otel`.",
        "\"http://127.0.0.1:4318/v1/traces\"",
    ),
    bounded(
        "traces.sample_ratio",
        |reader, all| reader.ratio(&mut all.log.traces_sample_ratio),
        "Share of requests that are traced, chosen at random. 1: all.",
    ),
    setting(
        "log.format",
        |reader, all| reader.value(&mut all.log.format),
        "`text` or `json`",
        "Format of log lines, on standard error: plain text, or one JSON object a line.",
    ),
    setting(
        "log.level",
        |reader, all| reader.value(&mut all.log.level),
        "`error`, `warn`, `info`, `debug` or `trace`",
        "Lowest level that is logged. Requests are logged at `info`, successful health checks at `debug`.",
    )
    .reloadable(),
];
