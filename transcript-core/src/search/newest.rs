//! The newest of more matches than an index ranks.

use std::collections::HashSet;

use super::{
    ArchiveIndex, CANDIDATES_MAX, Candidate, CandidatePage, CandidateRequest, SearchSort, months::month_start,
};
use crate::{error::Result, time::Timestamp};

/// Months of the longest window.
const MONTHS_MAX: u32 = 1_024;
/// Most windows of a search.
const WINDOWS_MAX: usize = 64;

/// The candidates of a request.
///
/// An index ranks a part of very many matches, which need not be the newest ones. Sorted by date, the candidates then
/// come from one window of calendar months after another, the newest first: months are terms, by which an index narrows
/// a search before it ranks. More matches than it ranks may remain in one month.
pub(super) async fn candidates(
    index: &dyn ArchiveIndex,
    request: &CandidateRequest,
    now: Timestamp,
) -> Result<CandidatePage> {
    if request.sort == SearchSort::Relevance {
        return index.candidates(request).await;
    }
    // All are read from the newest one: a video with several dates is in several windows.
    let limit = request.offset.saturating_add(request.limit).min(CANDIDATES_MAX);
    let all = CandidateRequest { offset: 0, limit, ..request.clone() };
    let page = index.candidates(&all).await?;
    let items = match page.is_exact || request.offset >= limit {
        true => page.items,
        false => newest(index, all, now).await?,
    };
    Ok(CandidatePage { items: items.into_iter().skip(request.offset as usize).collect(), ..page })
}

/// The newest candidates of a request, up to its limit.
async fn newest(
    index: &dyn ArchiveIndex,
    mut window: CandidateRequest,
    now: Timestamp,
) -> Result<Vec<Candidate>> {
    let (oldest, limit) = (window.query.after, window.limit as usize);
    let (mut known, mut newest, mut months) = (HashSet::new(), Vec::new(), 1);
    for _ in 0..WINDOWS_MAX {
        // The newest window has no end, so that it has videos that are yet to come.
        let last_moment = |before: Timestamp| Timestamp::from_millis(before.as_millis().saturating_sub(1));
        let last = window.query.before.map_or(now, |before| last_moment(before).min(now));
        let start = (months < MONTHS_MAX).then(|| month_start(last, months - 1)).flatten();
        let start = start.filter(|start| oldest.is_none_or(|oldest| *start > oldest));
        window.query.after = start.or(oldest);
        let found = index.candidates(&window).await?;
        if !found.is_exact && months > 1 {
            months /= 2;
            continue;
        }
        newest.extend(found.items.into_iter().filter(|candidate| known.insert(candidate.video.clone())));
        if start.is_none() || newest.len() >= limit {
            break;
        }
        window.query.before = start;
        months = (months * 2).min(MONTHS_MAX);
    }
    newest.truncate(limit);
    Ok(newest)
}
