//! `verbatim archive verify`: checks every stored transcript and repairs damage.

use serde::Serialize;
use tokio::task::JoinHandle;
use transcript_core::{
    archive::{DamagedTranscript, VerifyArchiveRequest},
    engine::FailureReason,
    ids::Cursor,
    page::PageRequest,
};
use verbatim::{GetOutcome, Verbatim};

use super::{
    CommandError,
    archive_arguments::{RepairAction, VerifyArgs},
    get::INTERRUPTED,
    ignore_closed,
    listing::array_part,
    print, print_json, print_stderr,
    progress::ProgressLine,
    shown,
};
use crate::serve::shutdown_signal;

/// Number of transcripts checked per progress report.
const PAGE: u32 = 200;
/// Longest reason that is printed, in characters.
const REASON_MAX: usize = 300;

/// Number of transcripts by result.
#[derive(Debug, Default)]
struct VerifyCounts {
    checked: u64,
    damaged: u64,
    /// Damaged ones that were repaired as requested.
    repaired: u64,
    /// Whether a signal has stopped the command.
    is_stopped: bool,
}

/// Row of the list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DamagedRow {
    platform: &'static str,
    video_id: String,
    language: Option<String>,
    revision: u32,
    #[serde(rename = "wishes")]
    selectors: Vec<String>,
    reason: String,
    deleted: bool,
    /// Whether its damaged selectors are set again.
    restored: bool,
    /// `None` if it was not fetched.
    refetched: Option<bool>,
    /// Why it could not be fetched.
    message: Option<String>,
}

pub(super) async fn run(verbatim: &Verbatim, args: &VerifyArgs) -> Result<(), CommandError> {
    let signal =
        shutdown_signal().map_err(|error| CommandError::Fault(format!("cannot handle signals: {error}")))?;
    let stop = tokio::spawn(async move {
        signal.await;
        print_stderr("stopping after this page; a second signal ends at once");
    });
    run_until(&stop, verbatim, args).await
}

/// Works until the end, or until the first page after the end of `stop`: its rows and its cursor are printed.
async fn run_until(
    stop: &JoinHandle<()>,
    verbatim: &Verbatim,
    args: &VerifyArgs,
) -> Result<(), CommandError> {
    let stats = verbatim.tools().stats().await.ok();
    let mut progress = ProgressLine::new("checked", stats.map(|stats| stats.transcripts));
    let mut counts = VerifyCounts::default();
    let mut after = args.after.clone().map(Cursor::new);
    loop {
        let before = counts.checked;
        let page = PageRequest { after: after.clone(), limit: page_limit(args, before) };
        let next = verify_page(verbatim, args, page, &mut counts, stop).await.inspect_err(|_| {
            if let Some(cursor) = after.as_ref().filter(|_| before > 0) {
                progress.note(&continuation(cursor));
            }
        })?;
        let Some(cursor) = next.as_ref().filter(|_| !counts.is_enough(args)) else {
            drop(progress);
            return report(args, &counts, next.as_ref());
        };
        progress.reach(counts.checked, &format!("{} damaged; --after {cursor}", counts.damaged));
        after = next;
    }
}

impl VerifyCounts {
    /// Whether the command ends, although transcripts may remain.
    fn is_enough(&self, args: &VerifyArgs) -> bool {
        self.is_stopped || args.limit.is_some_and(|limit| limit <= self.checked)
    }
}

/// How many transcripts the next page may have.
fn page_limit(args: &VerifyArgs, checked: u64) -> u32 {
    let left = args.limit.map_or(u64::MAX, |limit| limit.saturating_sub(checked));
    u32::try_from(left).unwrap_or(PAGE).min(PAGE)
}

/// Checks and prints one page; returns the next cursor.
async fn verify_page(
    verbatim: &Verbatim,
    args: &VerifyArgs,
    page: PageRequest,
    counts: &mut VerifyCounts,
    stop: &JoinHandle<()>,
) -> Result<Option<Cursor>, CommandError> {
    // No row is printed yet.
    let (is_first, delete_damaged) = (counts.damaged == 0, args.repair.is_some());
    let found = verbatim.tools().verify(VerifyArchiveRequest { page, delete_damaged }).await?;
    counts.checked += found.scanned;
    let mut rows = Vec::with_capacity(found.damaged.len());
    for damaged in &found.damaged {
        // After a signal nothing is fetched: the rows of what is deleted are printed.
        let row = match stop.is_finished() && needs_fetch(args, damaged) {
            true => DamagedRow {
                refetched: Some(false),
                message: Some("the command was stopped".to_owned()),
                ..DamagedRow::from(damaged)
            },
            false => repair(verbatim, args, damaged).await,
        };
        counts.damaged += 1;
        let is_refetched = row.refetched == Some(true) || (row.deleted && row.refetched.is_none());
        counts.repaired += u64::from(row.restored || is_refetched);
        rows.push(row);
    }
    counts.is_stopped = stop.is_finished();
    let is_last = found.next.is_none() || counts.is_enough(args);
    match args.json {
        true if rows.is_empty() && !is_last => {}
        true => ignore_closed(print_json(&array_part(rows.into_iter(), is_first, is_last)))?,
        false => ignore_closed(print(&rows.iter().map(DamagedRow::to_line).collect::<String>()))?,
    }
    Ok(found.next)
}

/// Whether what lookups miss is fetched again.
fn needs_fetch(args: &VerifyArgs, damaged: &DamagedTranscript) -> bool {
    let is_missing = (damaged.is_deleted || damaged.is_unselected) && !damaged.selectors.is_empty();
    args.repair == Some(RepairAction::Refetch) && is_missing
}

/// Fetches a deleted transcript again, and those of a video without a selector, if requested.
async fn repair(verbatim: &Verbatim, args: &VerifyArgs, damaged: &DamagedTranscript) -> DamagedRow {
    let mut row = DamagedRow::from(damaged);
    if !needs_fetch(args, damaged) {
        return row;
    }
    let mut is_final = true;
    for selector in &damaged.selectors {
        let missing = match verbatim.tools().refetch(&damaged.video, selector).await {
            Ok(GetOutcome::Found(_)) => None,
            Ok(GetOutcome::Missing(missing)) => {
                is_final &= matches!(missing.reason, FailureReason::NoCaptions | FailureReason::ConfigError);
                Some(missing.message)
            }
            // The transcript is deleted already, so its row must be printed.
            Err(error) => {
                is_final = false;
                Some(error.to_string())
            }
        };
        row.refetched = Some(row.refetched != Some(false) && missing.is_none());
        row.message = row.message.or(missing);
    }
    // The stored text may be one that was replaced: it is served only if there is no other.
    if damaged.is_unselected && row.refetched == Some(false) && is_final {
        match verbatim.tools().restore_selectors(&damaged.video).await {
            Ok(is_restored) => row.restored = is_restored,
            Err(error) => row.message = Some(error.to_string()),
        }
    }
    row
}

impl From<&DamagedTranscript> for DamagedRow {
    fn from(damaged: &DamagedTranscript) -> Self {
        Self {
            platform: damaged.video.platform().as_str(),
            video_id: damaged.video.id().to_owned(),
            language: damaged.language.as_ref().map(ToString::to_string),
            revision: damaged.revision,
            selectors: damaged.selectors.iter().map(|selector| selector.as_str().to_owned()).collect(),
            reason: damaged.reason.clone(),
            deleted: damaged.is_deleted,
            restored: damaged.is_restored,
            refetched: None,
            message: None,
        }
    }
}

impl DamagedRow {
    fn to_line(&self) -> String {
        let language = self.language.as_deref().unwrap_or("unknown language");
        let reason = shown(&self.reason, REASON_MAX);
        let message = shown(self.message.as_deref().unwrap_or_default(), REASON_MAX);
        let effect = match (self.deleted, self.refetched) {
            (false, None) if self.restored => "; its selectors are set again".to_owned(),
            (false, None) => String::new(),
            (false, Some(true)) => "; fetched again".to_owned(),
            (false, Some(false)) if self.restored => {
                format!("; not fetched again: {message}; the stored text is served")
            }
            (false, Some(false)) => format!("; not fetched again: {message}"),
            (true, None) => "; deleted".to_owned(),
            (true, Some(true)) => "; deleted and fetched again".to_owned(),
            (true, Some(false)) => format!("; deleted, but not fetched again: {message}"),
        };
        format!(
            "{}/{} {language} revision {}: {reason}{effect}\n",
            self.platform, self.video_id, self.revision
        )
    }
}

/// Prints the totals; an error if damage remains.
fn report(args: &VerifyArgs, counts: &VerifyCounts, next: Option<&Cursor>) -> Result<(), CommandError> {
    let VerifyCounts { checked, damaged, repaired, is_stopped } = *counts;
    let damage = match damaged {
        0 => "none is damaged".to_owned(),
        damaged if args.repair.is_some() => {
            format!("{damaged} were damaged, {repaired} of them are repaired")
        }
        damaged => format!("{damaged} are damaged"),
    };
    print_stderr(&format!("{checked} transcripts checked, {damage}"));
    if let Some(cursor) = next {
        print_stderr(&continuation(cursor));
    }
    if damaged == repaired {
        let is_complete = !is_stopped || next.is_none();
        return if is_complete { Ok(()) } else { Err(CommandError::Reported(INTERRUPTED)) };
    }
    Err(CommandError::Fault(match args.repair {
        None => {
            "--repair delete deletes damaged transcripts and sets damaged selectors again; --repair refetch also \
                 fetches what lookups miss then"
                .to_owned()
        }
        Some(_) => format!("{} transcripts could not be repaired", damaged - repaired),
    }))
}

fn continuation(cursor: &Cursor) -> String {
    format!("continue with --after {cursor}")
}

#[cfg(test)]
mod tests {
    use verbatim::{ImportRequest, Options};

    use super::*;

    #[tokio::test]
    async fn verify_stopped_ends_after_page_unless_complete() {
        let verbatim = Verbatim::open(Options::default().without_suppliers()).await.unwrap();
        let stop = tokio::spawn(async {});
        while !stop.is_finished() {
            tokio::task::yield_now().await;
        }
        let args = VerifyArgs { repair: None, after: None, limit: None, json: false };
        for (count, exit) in [(PAGE, None), (PAGE + 1, Some(INTERRUPTED))] {
            for number in 0..count {
                let request = ImportRequest {
                    link: format!("https://youtu.be/{number:011}"),
                    captions: b"WEBVTT\n\n00:01.000 --> 00:02.000\nWords.\n".to_vec(),
                    language: Some("en".to_owned()),
                    ..ImportRequest::default()
                };
                verbatim.tools().import(request).await.unwrap();
            }
            let status = match run_until(&stop, &verbatim, &args).await {
                Ok(()) => None,
                Err(CommandError::Reported(status)) => Some(status),
                Err(error) => panic!("{error}"),
            };
            assert_eq!(status, exit, "{count}");
        }
    }
}
