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

/// Formats the rows of a table, and its headings before them.
///
/// A column is its heading and its width, negative for one that is aligned to the right.
pub(super) fn table<const N: usize>(
    columns: [(&str, isize); N],
    with_heading: bool,
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let mut text = String::new();
    let headings = with_heading.then(|| columns.map(|(heading, _)| heading.to_owned()));
    for row in headings.into_iter().chain(rows) {
        let cells = columns.iter().zip(&row).map(|((_, width), cell)| match width.unsigned_abs() {
            size if *width < 0 => format!("{cell:>size$}"),
            size => format!("{cell:size$}"),
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_columns_are_aligned_and_lines_trimmed() {
        let columns = [("ID", 4), ("DONE", -6), ("NAME", 0)];
        let rows = [["é", "1/2", "Ann B."], ["longer", "3", ""]].map(|row| row.map(str::to_owned));
        let lines = "ID      DONE  NAME\né        1/2  Ann B.\nlonger       3\n";
        assert_eq!(table(columns, true, rows.clone()), lines);
        assert_eq!(table(columns, false, rows), lines.split_once('\n').unwrap().1);
    }
}
