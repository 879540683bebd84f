//! The newest of more matches than an index ranks.

use std::time::Duration;

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
/// from one window of time after another, each with fewer matches, the newest window first.
pub(super) async fn candidates(
    index: &dyn ArchiveIndex,
    request: &CandidateRequest,
    now: Timestamp,
) -> Result<CandidatePage> {
    let mut page = index.candidates(request).await?;
    if request.sort == SearchSort::Relevance || page.is_exact {
        return Ok(page);
    }
    page.items.clear();
    let mut window = request.clone();
    let oldest = request.query.after;
    let mut months = 1;
    for _ in 0..WINDOWS_MAX {
        let end = request_end(&window, now);
        let start = (months < MONTHS_MAX).then(|| end.minus(MONTH * months));
        let start = start.filter(|start| oldest.is_none_or(|oldest| *start > oldest));
        window.query.after = start.or(oldest);
        let found = index.candidates(&window).await?;
        if !found.is_exact && months > 1 {
            months /= 2;
            continue;
        }
        window.offset = window.offset.saturating_sub(u32::try_from(found.total).unwrap_or(u32::MAX));
        window.limit = window.limit.saturating_sub(u32::try_from(found.items.len()).unwrap_or(u32::MAX));
        page.items.extend(found.items);
        if start.is_none() || window.limit == 0 {
            break;
        }
        window.query.before = start;
        months = (months * 2).min(MONTHS_MAX);
    }
    Ok(page)
}

/// The end of a window. The newest one has no end, so that it has videos that are yet to come.
fn request_end(window: &CandidateRequest, now: Timestamp) -> Timestamp {
    window.query.before.map_or(now, |before| before.min(now))
}
