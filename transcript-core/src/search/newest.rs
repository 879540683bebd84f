//! The newest of more matches than an index ranks.

use std::collections::HashSet;

use super::{ArchiveIndex, CANDIDATES_MAX, CandidatePage, CandidateRequest, SearchSort, months::month_start};
use crate::{error::Result, time::Timestamp};

/// Months of the longest window.
const MONTHS_MAX: u32 = 1_024;
/// Most windows of a search.
const WINDOWS_MAX: usize = 64;

/// The candidates of a request.
///
/// An index ranks a part of very many matches, which need not be the newest ones. Sorted by date, the candidates then come
/// from one window of calendar months after another, the newest first: months are terms, by which an index narrows a
/// search before it ranks. More matches than it ranks may remain in one month.
pub(super) async fn candidates(
    index: &dyn ArchiveIndex,
    request: &CandidateRequest,
    now: Timestamp,
) -> Result<CandidatePage> {
    if request.sort == SearchSort::Relevance {
        return index.candidates(request).await;
    }
    // All are read from the newest one: a video with several dates is in several windows.
    let wanted = request.offset.saturating_add(request.limit).min(CANDIDATES_MAX);
    let mut window = CandidateRequest { offset: 0, limit: wanted, ..request.clone() };
    let mut page = index.candidates(&window).await?;
    let wanted = wanted as usize;
    if !page.is_exact && (request.offset as usize) < wanted {
        let (mut known, mut newest) = (HashSet::new(), Vec::new());
        let mut months = 1;
        for _ in 0..WINDOWS_MAX {
            // The newest window has no end, so that it has videos that are yet to come.
            let last = window
                .query
                .before
                .map_or(now, |before| Timestamp::from_millis(before.as_millis().saturating_sub(1)).min(now));
            let start = (months < MONTHS_MAX).then(|| month_start(last, months - 1)).flatten();
            let start = start.filter(|start| request.query.after.is_none_or(|oldest| *start > oldest));
            window.query.after = start.or(request.query.after);
            let found = index.candidates(&window).await?;
            if !found.is_exact && months > 1 {
                months /= 2;
                continue;
            }
            newest.extend(found.items.into_iter().filter(|candidate| known.insert(candidate.video.clone())));
            if start.is_none() || newest.len() >= wanted {
                break;
            }
            window.query.before = start;
            months = (months * 2).min(MONTHS_MAX);
        }
        newest.truncate(wanted);
        page.items = newest;
    }
    page.items = page.items.into_iter().skip(request.offset as usize).collect();
    Ok(page)
}
