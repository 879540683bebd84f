//! The newest of more matches than an index ranks.

use std::{collections::HashSet, time::Duration};

use super::{ArchiveIndex, CandidatePage, CandidateRequest, SearchSort};
use crate::{error::Result, time::Timestamp};

/// The unit of a window, and the longest window.
const MONTH: Duration = Duration::from_secs(30 * 86_400);
const MONTHS_MAX: u32 = 1_024;
/// Most windows of a search.
const WINDOWS_MAX: usize = 64;

/// The candidates of a request.
///
/// An index ranks a part of very many matches, which need not be the newest ones. Sorted by date, the candidates then come
/// from one window of time after another, the newest first, each with fewer matches if a month has them.
pub(super) async fn candidates(
    index: &dyn ArchiveIndex,
    request: &CandidateRequest,
    now: Timestamp,
) -> Result<CandidatePage> {
    let page = index.candidates(request).await?;
    if request.sort == SearchSort::Relevance || page.is_exact {
        return Ok(page);
    }
    // Each window is read from its beginning: a video with several dates is in several.
    let wanted = request.offset.saturating_add(request.limit) as usize;
    let (mut known, mut newest) = (HashSet::new(), Vec::new());
    let mut window = CandidateRequest { offset: 0, ..request.clone() };
    let mut months = 1;
    for _ in 0..WINDOWS_MAX {
        // The newest window has no end, so that it has videos that are yet to come.
        let end = window.query.before.map_or(now, |before| before.min(now));
        let start = (months < MONTHS_MAX).then(|| end.minus(MONTH * months));
        let start = start.filter(|start| request.query.after.is_none_or(|oldest| *start > oldest));
        window.query.after = start.or(request.query.after);
        window.limit = u32::try_from(wanted.saturating_sub(newest.len())).unwrap_or(u32::MAX);
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
    let items = newest.into_iter().skip(request.offset as usize).collect();
    Ok(CandidatePage { items, ..page })
}
