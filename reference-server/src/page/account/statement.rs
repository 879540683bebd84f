//! The statement: what credits were spent on and added for.

use std::fmt::Write as _;

use maud::{Markup, html};
use transcript_core::{
    Page,
    ledger::{Entry, EntryKind, Pool},
};

use super::{AccountPage, account_page, date_and_time};
use crate::page::PageContext;

/// First line of the CSV file.
pub(crate) const CSV_HEADER: &str = "time,kind,credits,source,purpose,id\r\n";

/// Page of the statement, newest first.
pub(crate) fn statement(context: &PageContext, page: &Page<Entry>, is_first: bool) -> Markup {
    let text = |key| context.text(key);
    account_page(
        context,
        AccountPage::Statement,
        "account.statement",
        html! {
            p { a href=(context.href("account/statement.csv")) { (text("statement.csv")) } }
            @if page.items.is_empty() {
                p { (text("statement.empty")) }
            } @else {
                div.scroll tabindex="0" role="region" aria-label=(text("account.statement")) {
                    table {
                        thead {
                            tr {
                                th scope="col" { (text("statement.time")) }
                                th scope="col" { (text("statement.purpose")) }
                                th scope="col" { (text("statement.kind")) }
                                th.number scope="col" { (text("account.credits")) }
                            }
                        }
                        tbody { @for entry in &page.items { (row(context, entry)) } }
                    }
                }
            }
            p.pages {
                @if !is_first { a href=(context.href("account/statement")) { (text("statement.newest")) } }
                @if let Some(next) = &page.next {
                    " "
                    a href=(context.href(&format!("account/statement?before={}", next.as_str()))) {
                        (text("statement.older"))
                    }
                }
            }
            p.hint { (text("statement.hint")) }
        },
    )
}

fn row(context: &PageContext, entry: &Entry) -> Markup {
    html! {
        tr {
            td { (date_and_time(entry.at)) }
            td { (purpose(context, entry)) }
            td { (context.text(kind_message(entry.kind))) }
            td.number { (sign(entry.kind)) (context.number(entry.amount)) }
        }
    }
}

/// The purpose of an entry; a transcript with a link to its page.
fn purpose(context: &PageContext, entry: &Entry) -> Markup {
    match entry.memo.strip_prefix("transcript ") {
        Some(video) if is_video(video) => html! {
            a href=(context.href(&format!("watch/{video}"))) { (entry.memo) }
        },
        _ => html! { (entry.memo) },
    }
}

/// Whether a memo names a video: a platform and an id that need no escaping in an address.
fn is_video(name: &str) -> bool {
    let is_safe = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    name.split_once('/').is_some_and(|(platform, id)| is_safe(platform) && is_safe(id))
}

fn kind_message(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Held => "statement.held",
        EntryKind::Spent | EntryKind::Charged => "statement.spent",
        EntryKind::Returned | EntryKind::Expired => "statement.returned",
        EntryKind::Granted => "statement.granted",
        EntryKind::Revoked { .. } => "statement.revoked",
    }
}

/// The sign of an amount: reserved credits are taken when they are held, and not again when they are spent.
fn sign(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Held | EntryKind::Charged | EntryKind::Revoked { .. } => "−",
        EntryKind::Returned | EntryKind::Expired | EntryKind::Granted => "+",
        EntryKind::Spent => "",
    }
}

/// Adds the line of an entry to the CSV file.
pub(crate) fn csv_row(entry: &Entry, rows: &mut String) {
    let source = match &entry.pool {
        Pool::Allowance { bucket, .. } => bucket.as_str(),
        Pool::Purchased => "purchased",
    };
    let kind = match entry.kind {
        EntryKind::Held => "reserved",
        EntryKind::Spent => "reserved and spent",
        EntryKind::Charged => "spent",
        EntryKind::Returned | EntryKind::Expired => "returned",
        EntryKind::Granted => "added",
        EntryKind::Revoked { .. } => "taken back",
    };
    // Writing to a string does not fail.
    let _ = write!(
        rows,
        "{},{kind},{},{},{},{}\r\n",
        entry.at,
        entry.amount,
        csv_field(source),
        csv_field(&entry.memo),
        csv_field(&entry.cause)
    );
}

/// A quoted field. A spreadsheet would run one that begins like a formula, so an apostrophe precedes it.
pub(crate) fn csv_field(text: &str) -> String {
    let is_formula = text.trim_start().starts_with(['=', '+', '-', '@', '|', '%', '\t', '\r'])
        || text.starts_with(['\t', '\r', '\n']);
    let apostrophe = if is_formula { "'" } else { "" };
    format!("\"{apostrophe}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_fields_are_quoted_and_never_formulas() {
        for (text, field) in [
            ("transcript youtube/a", "\"transcript youtube/a\""),
            ("a \"b\", c\r\nd", "\"a \"\"b\"\", c\r\nd\""),
            ("=HYPERLINK(\"x\")", "\"'=HYPERLINK(\"\"x\"\")\""),
            ("+1", "\"'+1\""),
            ("-1", "\"'-1\""),
            ("@SUM(1)", "\"'@SUM(1)\""),
            ("\t=1", "\"'\t=1\""),
            (" =1", "\"' =1\""),
            ("", "\"\""),
        ] {
            assert_eq!(csv_field(text), field);
        }
    }

    #[test]
    fn statement_links_videos_only() {
        for video in ["youtube/L1ghth0use1", "x/123", "tiktok/a-b_c"] {
            assert!(is_video(video), "{video}");
        }
        for text in ["youtube", "youtube/", "/a", "youtube/a?b", "youtube/../a", "youtube/a/b", "a b/c"] {
            assert!(!is_video(text), "{text}");
        }
    }
}
