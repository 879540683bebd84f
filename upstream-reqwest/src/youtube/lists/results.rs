//! Reads a response with a page of the results of a search. No I/O, and total.
//!
//! A page has one or many sections, and the token of the next page beside them. Among the results are shelves,
//! advertisements and corrections of the words, whose videos are no results.

use serde_json::Value;
use transcript_core::Timestamp;

use super::page::{BrowseOutcome, ITEMS_MAX, ListEntries, alert};
use crate::json::{field, items};

/// Maximum number of sections of a page.
const SECTIONS_MAX: usize = 200;
/// Items of a section that are no results. Items of other unknown kinds make a page without videos unreadable.
const BESIDE_RESULTS: [&str; 17] = [
    "adSlotRenderer",
    "cardRenderer",
    "channelRenderer",
    "clarificationRenderer",
    "didYouMeanRenderer",
    "gridShelfViewModel",
    "horizontalCardListRenderer",
    "includingResultsForRenderer",
    "infoPanelContainerRenderer",
    "playlistRenderer",
    "promotedSparklesWebRenderer",
    "promotedVideoRenderer",
    "radioRenderer",
    "reelShelfRenderer",
    "searchPyvRenderer",
    "shelfRenderer",
    "showingResultsForRenderer",
];
/// The item in place of results if there are none.
const NO_RESULTS: &str = "backgroundPromoRenderer";

/// Reads a response to a request for a page of a search.
pub(super) fn read_results(response: &Value, is_first: bool, now: Timestamp) -> BrowseOutcome {
    let first = field(field(response, "contents"), "twoColumnSearchResultsRenderer");
    let first = field(field(field(first, "primaryContents"), "sectionListRenderer"), "contents");
    let commands = items(response, "onResponseReceivedCommands", ITEMS_MAX);
    let further = commands
        .map(|command| field(field(command, "appendContinuationItemsAction"), "continuationItems"))
        .filter(|array| array.is_array());
    let arrays: Vec<&Value> = further.chain(first.is_array().then_some(first)).collect();
    if arrays.is_empty() {
        return match alert(response) {
            Some(alert) => BrowseOutcome::Alert(alert),
            // A further page without an action is the end.
            None if !is_first && field(response, "responseContext").is_object() => {
                BrowseOutcome::Entries(ListEntries::default())
            }
            None => BrowseOutcome::Unknown,
        };
    }
    let sections = arrays.iter().flat_map(|array| array.as_array().into_iter().flatten()).take(SECTIONS_MAX);
    let found = sections.flat_map(|section| match field(field(section, "itemSectionRenderer"), "contents") {
        Value::Array(contents) => contents.as_slice(),
        _ => std::slice::from_ref(section),
    });
    let mut has_none = false;
    let results = found.filter(|item| {
        let is = |kind: &str| !field(item, kind).is_null();
        has_none |= is(NO_RESULTS);
        !is(NO_RESULTS) && !BESIDE_RESULTS.iter().any(|kind| is(kind))
    });
    let mut entries = ListEntries::default();
    let kinds = entries.add(results, now);
    let is_proven_empty = has_none || kinds.has_message;
    let is_unproven = is_first && entries.token.is_none() && !is_proven_empty;
    if entries.videos.is_empty() && (kinds.has_unknown || is_unproven) {
        return BrowseOutcome::Unknown;
    }
    BrowseOutcome::Entries(entries)
}
