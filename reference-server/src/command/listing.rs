//! Paged lists, as a table or a JSON array.

use std::future::Future;

use serde::Serialize;
use transcript_core::{Page, PageRequest, Result};

use super::{CommandError, print, print_json};

/// Prints every page of a list as soon as it is read.
///
/// JSON items have the type `R`. `table` formats a page; its second argument is whether headings come first.
pub(super) async fn print_all<R, T, F>(
    is_json: bool,
    page: impl Fn(PageRequest) -> F,
    table: impl Fn(&[T], bool) -> String,
) -> std::result::Result<(), CommandError>
where
    R: Serialize + for<'a> From<&'a T>,
    F: Future<Output = Result<Page<T>>>,
{
    let mut request = PageRequest::first();
    let mut is_first = true;
    loop {
        let found = page(request).await?;
        match is_json {
            true => print_json(&array_part(found.items.iter().map(R::from), is_first, found.next.is_none()))?,
            false => print(&table(&found.items, is_first))?,
        }
        is_first = false;
        match found.next {
            Some(after) => request = PageRequest { after: Some(after), ..PageRequest::first() },
            None => return Ok(()),
        }
    }
}

/// Formats items of a JSON array that is written in parts.
pub(super) fn array_part<R: Serialize>(
    rows: impl Iterator<Item = R>,
    is_first: bool,
    is_last: bool,
) -> String {
    let mut text = String::from(if is_first { "[" } else { "" });
    for (number, row) in rows.enumerate() {
        text.push_str(if is_first && number == 0 { "\n" } else { ",\n" });
        // Serialization of texts and numbers cannot fail.
        text.push_str(&serde_json::to_string(&row).unwrap_or_default());
    }
    text.push_str(if is_last { "\n]\n" } else { "" });
    text
}

/// Removes the milliseconds of a timestamp.
pub(super) fn seconds(moment: &str) -> String {
    moment.split_once('.').map_or_else(|| moment.to_owned(), |(whole, _)| format!("{whole}Z"))
}
