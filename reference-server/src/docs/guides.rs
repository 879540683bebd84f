//! `/docs/guides/{name}`: guides to the APIs.

use maud::{Markup, html};
use serde_json::Value;
use transcript_core::{
    accounts::{AccountsOptions, NumberFormat},
    lookup::LookupOptions,
};

use super::{
    markdown::{MarkdownContext, markdown},
    shell, string,
};
use crate::page::PageContext;

#[derive(Debug)]
pub(super) struct Guide {
    /// Last part of its path.
    pub(super) name: &'static str,
    /// What it is about, in a few words.
    pub(super) summary: &'static str,
    pub(super) source: &'static str,
}

impl Guide {
    /// Its title: the first heading.
    pub(super) fn title(&self) -> &'static str {
        self.source.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or_default()
    }

    /// Its text, without the rows of tables that link to a guide which this build lacks, and without the entries of
    /// changes that no version has.
    fn text(&self) -> String {
        let has_guide = |line: &str| cfg!(feature = "mcp") || !line.contains("](guide:assistants)");
        let (mut is_unreleased, mut is_entry) = (false, false);
        let is_shown = |line: &&str| {
            if line.starts_with("## ") {
                (is_unreleased, is_entry) = (line.starts_with("## [Unreleased]"), false);
            }
            is_entry |= is_unreleased && line.starts_with("### ");
            !is_entry && has_guide(line)
        };
        self.source.split_inclusive('\n').filter(is_shown).collect()
    }
}

/// Declares guides whose text is in `guides/`.
macro_rules! guides {
    ($($(#[$attribute:meta])? $name:literal: $summary:literal,)*) => {
        /// All guides, in reading order.
        static GUIDES: &[Guide] = &[$($(#[$attribute])? Guide {
            name: $name,
            summary: $summary,
            source: include_str!(concat!("guides/", $name, ".md")),
        }),*];
    };
}

guides! {
    "quick-start": "From no key to a transcript in your program, on one page.",
    "which-api": "The lookup API, the v1 API, jobs or a library.",
    "errors": "Every failure: its status, whether it costs anything, and whether a retry helps.",
    "limits": "Allowances, rate limits and the headers that report them.",
    "languages": "Languages, translations and formats.",
    "long-videos": "Pages, chunks and waiting for work that takes long.",
    "chat": "Questions about a video, and answers that stream.",
    "idempotency": "Requests that can be repeated without being charged twice.",
    "jobs": "Transcripts of many videos in the background.",
    "webhooks": "Events of jobs at an address of yours, and how to verify them.",
    #[cfg(feature = "mcp")]
    "assistants": "Claude, Cursor, VS Code, Codex and other assistants.",
    "libraries": "Python, Rust, Kotlin and Swift.",
}

/// Changes of the versions.
static CHANGELOG: Guide = Guide {
    name: "changelog",
    summary: "What has changed, by version.",
    source: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../CHANGELOG.md")),
};

/// Guides and changelog.
pub(super) fn all() -> impl Iterator<Item = &'static Guide> {
    GUIDES.iter().chain([&CHANGELOG])
}

/// Renders a guide; `None` if it does not exist.
pub(crate) fn guide(
    context: &PageContext,
    document: &Value,
    options: (&LookupOptions, &AccountsOptions),
    name: &str,
) -> Option<Markup> {
    let guide = all().find(|guide| guide.name == name)?;
    let values = values(document, options);
    let body = markdown(MarkdownContext { page: context, document, values: &values }, &guide.text());
    let tab = format!("{} – {}", guide.title(), string(&document["info"]["title"]));
    Some(shell::page(
        context,
        document,
        (&tab, guide.summary),
        &format!("guides/{name}"),
        html! { (body) (next(context, guide)) },
    ))
}

fn next(context: &PageContext, guide: &Guide) -> Markup {
    let after = GUIDES.iter().position(|one| one.name == guide.name).and_then(|at| GUIDES.get(at + 1));
    html! {
        @if let Some(after) = after {
            footer {
                a.next rel="next" href=(context.href(&format!("docs/guides/{}", after.name))) { (after.title()) " →" }
            }
        }
    }
}

/// Values of this server that guides name.
fn values(
    document: &Value,
    (lookup, accounts): (&LookupOptions, &AccountsOptions),
) -> Vec<(&'static str, String)> {
    let (free, paid) = (&accounts.plans.free, &accounts.plans.starter);
    let numbers = [
        ("free_per_month", lookup.free_per_month),
        ("plus_per_day", lookup.plus_per_day),
        ("visitor_per_day", lookup.visitor_per_day),
        ("service_per_day", lookup.service_per_day),
        ("misses", lookup.misses_per_network_per_minute.into()),
        ("tool_calls", lookup.tool_calls_per_network_per_minute.into()),
        ("searches", lookup.searches_per_minute.into()),
        ("attempts", lookup.attempts_per_key_per_hour.into()),
        ("new_keys", lookup.mint_per_network_per_day.into()),
        ("free_credits", free.credits),
        ("free_requests", free.requests_per_minute.into()),
        ("paid_requests", paid.requests_per_minute.into()),
        ("transcript_credits", accounts.credits_per_transcript),
        ("message_credits", accounts.credits_per_message),
        ("job_items", accounts.items_per_job.into()),
        ("jobs", accounts.jobs_per_account.into()),
    ];
    let format = NumberFormat::default();
    let numbers = numbers.into_iter().map(|(name, number)| (name, format.number(number)));
    let texts = [
        ("base_url", string(&document["servers"][0]["url"]).to_owned()),
        // As the header has it.
        ("free_policy", free.requests_per_minute.to_string()),
    ];
    texts.into_iter().chain(numbers).collect()
}
