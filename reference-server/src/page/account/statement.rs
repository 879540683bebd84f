//! The statement: what credits were spent on and added for.

use std::{collections::HashMap, fmt::Write as _};

use maud::{Markup, html};
use transcript_core::{
    Page,
    accounts::{Memo, OrderItem, payments::Pack},
    ledger::{Entry, EntryKind, Pool},
    video::VideoId,
};

use super::{AccountPage, account_page_with_query, date_and_time};
use crate::page::{PageContext, query_parameter};

/// First line of the CSV file.
pub(crate) const CSV_HEADER: &str = "time,kind,credits,source,purpose,id\r\n";

/// Titles of archived videos.
pub(crate) type VideoTitles = HashMap<VideoId, String>;

/// Page of the statement, newest first. `before` is the position of its address; `None` is the first page.
pub(crate) fn statement(
    context: &PageContext,
    page: &Page<Entry>,
    titles: &VideoTitles,
    before: Option<&str>,
) -> Markup {
    let text = |key| context.text(key);
    let query = before.map(|before| query_parameter("before", before)).unwrap_or_default();
    account_page_with_query(
        context,
        AccountPage::Statement,
        "account.statement",
        &query,
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
                        tbody { @for entry in &page.items { (row(context, entry, titles)) } }
                    }
                }
            }
            p.pages {
                @if before.is_some() { a href=(context.href("account/statement")) { (text("statement.newest")) } }
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

fn row(context: &PageContext, entry: &Entry, titles: &VideoTitles) -> Markup {
    html! {
        tr {
            td { (date_and_time(entry.at)) }
            td { (purpose(context, &entry.memo, titles)) }
            td { (context.text(kind_message(entry.kind))) }
            td.number { bdi dir="ltr" { (sign(entry.kind)) (context.number(entry.amount)) } }
        }
    }
}

/// The purpose of an entry in words. A memo that is not of this service is shown as it is.
fn purpose(context: &PageContext, memo: &str, titles: &VideoTitles) -> Markup {
    let words = Memo::parse(memo).and_then(|purpose| purpose_words(context, &purpose, titles));
    words.unwrap_or_else(|| html! { bdi { (memo) } })
}

/// A purpose in words; `None` for a pack that is no longer sold.
fn purpose_words(context: &PageContext, memo: &Memo, titles: &VideoTitles) -> Option<Markup> {
    Some(match memo {
        Memo::Transcript(video) => {
            context.markup("statement.transcript", &[("video", video_link(context, video, titles))])
        }
        Memo::Question(video) => {
            context.markup("statement.question", &[("video", video_link(context, video, titles))])
        }
        Memo::Sale(item) => {
            let item = item_words(context, item)?;
            html! { (item) }
        }
        Memo::Refund(item) => {
            let item = item_words(context, item)?;
            html! { (context.fill("statement.refund", &[("item", &item)])) }
        }
    })
}

/// Link to the page of a video, with its title if that is known.
fn video_link(context: &PageContext, video: &VideoId, titles: &VideoTitles) -> Markup {
    html! {
        a href=(context.href(&format!("watch/{video}"))) {
            @match titles.get(video) {
                Some(title) => bdi { (title) },
                None => bdi dir="ltr" { (video.platform().name()) " " (video.id()) },
            }
        }
    }
}

/// A pack or plan in words; `None` for an unknown pack.
fn item_words(context: &PageContext, item: &OrderItem) -> Option<String> {
    Some(match item {
        OrderItem::Plan(plan) => context.fill("statement.plan", &[("plan", plan.as_str())]),
        OrderItem::Pack(name) => {
            let pack = Pack::from_wire(name)?;
            context.fill("orders.credits", &[("count", &context.number(pack.credits))])
        }
    })
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

/// What a formula begins with, also in the full-width forms.
const FORMULA: [char; 10] = ['=', '+', '-', '@', '|', '%', '＝', '＋', '－', '＠'];

/// A quoted field. A spreadsheet would run what begins like a formula, so an apostrophe precedes it.
///
/// Where another character separates cells, a spreadsheet splits also within the quotation marks.
pub(crate) fn csv_field(text: &str) -> String {
    let is_skipped = |c: char| c.is_whitespace() || c == '"';
    let mut field = String::with_capacity(text.len() + 2);
    field.push('"');
    if text.starts_with(['\t', '\r', '\n']) {
        field.push('\'');
    }
    for cell in text.split_inclusive([';', ',', '\t', '\r', '\n']) {
        if cell.trim_start_matches(is_skipped).starts_with(FORMULA) {
            field.push('\'');
        }
        field.push_str(&cell.replace('"', "\"\""));
    }
    field.push('"');
    field
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
            ("\t=1", "\"'\t'=1\""),
            ("\nx", "\"'\nx\""),
            (" =1", "\"' =1\""),
            ("x;=HYPERLINK(\"x\")", "\"x;'=HYPERLINK(\"\"x\"\")\""),
            ("a,+1\t@b\r\n-c", "\"a,'+1\t'@b\r\n'-c\""),
            ("x; \"=1", "\"x;' \"\"=1\""),
            ("＝1;＋1", "\"'＝1;'＋1\""),
            ("－1,＠1", "\"'－1,'＠1\""),
            ("https://www.tiktok.com/@a?x=1+2;b=-1", "\"https://www.tiktok.com/@a?x=1+2;b=-1\""),
            ("", "\"\""),
        ] {
            assert_eq!(csv_field(text), field);
        }
    }

    #[test]
    fn statement_purposes_are_in_words() {
        let context = PageContext::for_test("/account/statement");
        let link =
            "<a href=\"../watch/video_site/L1ghth0use1\"><bdi dir=\"ltr\">YouTube L1ghth0use1</bdi></a>";
        let named = "<a href=\"../watch/video_site/dQw4w9WgXcQ\"><bdi>A &lt;talk&gt;</bdi></a>";
        let video = VideoId::from_name("video_site/dQw4w9WgXcQ").unwrap();
        let titles = VideoTitles::from([(video, "A <talk>".to_owned())]);
        for (memo, words) in [
            ("transcript video_site/L1ghth0use1", format!("Transcript of {link}")),
            ("chat video_site/L1ghth0use1", format!("Question about {link}")),
            ("transcript video_site/dQw4w9WgXcQ", format!("Transcript of {named}")),
            ("pack 2k", "2,000 credits".to_owned()),
            ("plan starter", "Plan starter".to_owned()),
            ("refund of pack 1k", "Refund: 1,000 credits".to_owned()),
            ("pack <b>", "<bdi>pack &lt;b&gt;</bdi>".to_owned()),
            ("chat a/b?c", "<bdi>chat a/b?c</bdi>".to_owned()),
        ] {
            assert_eq!(purpose(&context, memo, &titles).into_string(), words);
        }
    }
}
