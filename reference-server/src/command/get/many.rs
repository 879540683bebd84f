//! The transcripts of many videos.

use std::{
    collections::HashMap,
    io::{self, IsTerminal},
    pin::pin,
};

use transcript_core::{
    Clock, Error, ErrorKind, Timestamp,
    engine::FailureReason,
    service::{Caller, LookupReply},
};
use verbatim::{
    Batch, GetOutcome, GetRequest, Options, StreamedOutcome, SystemClock, TranscriptStream,
    UnavailableTranscript, Verbatim, service::ArchiveService,
};

use super::{
    super::{
        CommandError, get_arguments::GetArgs, open::open_archive_with, print_stderr, progress::ProgressLine,
    },
    close,
    delivery::{DeliveryOutcome, GetDestination},
    link::{GivenLink, LinkTarget},
    source::{Failure, ListLimits, QueuedVideo, SourceItem, VideoSource},
    summary::Summary,
};
use crate::config::Settings;

/// Videos that wait for their fetch: a list is read ahead up to here, so that the total is known early.
const WAITING_MAX: usize = 10_000;

/// Gets the transcripts of all links.
pub(super) async fn run(
    settings: &Settings,
    args: &GetArgs,
    links: Vec<GivenLink>,
    limits: ListLimits,
) -> Result<(), CommandError> {
    let destination = GetDestination::new(args)?;
    // After Ctrl-C nothing is fetched further.
    let adapt = |options| Options { detach_unpaid: false, ..options };
    let verbatim = open_archive_with(settings, adapt).await?;
    let batch = args.max_wait.map_or_else(Batch::default, Batch::new);
    let mut work = GetMany {
        args,
        service: ArchiveService::new(verbatim.clone()),
        summary: Summary::new(destination.is_stdout()),
        progress: progress(&links, &destination),
        destination,
        source: VideoSource::new(verbatim.clone(), batch.clone(), links, limits),
        stream: stream(&verbatim, batch, args),
        waiting: HashMap::new(),
        total: 0,
    };
    let done = work.run().await;
    let GetMany { summary, progress, stream, .. } = work;
    drop((progress, stream));
    print_stderr(summary.table().trim_end());
    close(&verbatim).await;
    done?;
    summary.exit_status().map_or(Ok(()), |status| Err(CommandError::Reported(status)))
}

/// The progress. Where the transcripts themselves appear on the terminal, a bar would be in their way.
fn progress(links: &[GivenLink], destination: &GetDestination) -> ProgressLine {
    let has_lists = links.iter().any(|link| matches!(link.target, Ok(LinkTarget::List(_))));
    let mut progress = ProgressLine::new("done", (!has_lists).then_some(links.len() as u64));
    if destination.is_stdout() && io::stdout().is_terminal() {
        progress.remove_bar();
    }
    progress
}

fn stream(verbatim: &Verbatim, batch: Batch, args: &GetArgs) -> TranscriptStream {
    let stream = verbatim.get_many(Vec::<GetRequest>::new()).with_batch(batch);
    if args.to.is_some() { stream } else { stream.in_order() }
}

pub(super) fn limits(args: &GetArgs) -> Result<ListLimits, CommandError> {
    let limit = args.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let since = args.since.as_deref().map(parse_since).transpose()?;
    Ok(ListLimits { limit, since })
}

/// Parses a date, a time, or an age.
fn parse_since(text: &str) -> Result<Timestamp, CommandError> {
    let age = || humantime::parse_duration(text).ok();
    let since = Timestamp::parse_time_or_date(text)
        .or_else(|| age().map(|age| SystemClock::default().now().minus(age)));
    since.ok_or_else(|| {
        CommandError::Wrong(format!("--since {text}: use a date such as 2026-01-31, or an age such as 30d"))
    })
}

/// A run of the command.
struct GetMany<'a> {
    args: &'a GetArgs,
    service: ArchiveService,
    source: VideoSource,
    stream: TranscriptStream,
    /// The requests without a result, by their index in the stream.
    waiting: HashMap<usize, QueuedVideo>,
    destination: GetDestination,
    summary: Summary,
    progress: ProgressLine,
    /// Number of items of the source.
    total: usize,
}

impl GetMany<'_> {
    /// Works until everything is done, or Ctrl-C.
    async fn run(&mut self) -> Result<(), CommandError> {
        let mut interrupt = pin!(tokio::signal::ctrl_c());
        loop {
            if self.source.is_done() && self.waiting.is_empty() {
                return Ok(());
            }
            let is_listing = !self.source.is_done() && self.waiting.len() < WAITING_MAX;
            tokio::select! {
                biased;
                Ok(()) = &mut interrupt => {
                    self.summary.is_interrupted = true;
                    return Ok(());
                }
                Some(outcome) = self.stream.next(), if !self.waiting.is_empty() => self.finish(outcome)?,
                item = self.source.next(), if is_listing => self.take(item)?,
            }
        }
    }

    fn take(&mut self, item: Option<SourceItem>) -> Result<(), CommandError> {
        match item {
            None => {}
            Some(SourceItem::Note(note)) => self.progress.note(&note),
            Some(SourceItem::Repeated) => {
                self.total += 1;
                self.finished(DeliveryOutcome::Repeated, "");
            }
            Some(SourceItem::Failed(failure)) => {
                self.total += 1;
                self.fail(&failure, None)?;
            }
            Some(SourceItem::Video(queued)) => {
                self.total += 1;
                let GetArgs { lang, translated, .. } = self.args;
                let (link, language) = (queued.address.clone(), lang.clone());
                let request = GetRequest { link, language, translated: *translated, ..GetRequest::default() };
                self.waiting.insert(self.stream.push(request), queued);
            }
        }
        let remaining = self.source.remaining();
        let total = self.total.saturating_add(remaining.unwrap_or_default());
        self.progress.set_total(total as u64, remaining.is_some());
        Ok(())
    }

    /// Delivers a result.
    fn finish(&mut self, outcome: StreamedOutcome) -> Result<(), CommandError> {
        let Some(queued) = self.waiting.remove(&outcome.index) else { return Ok(()) };
        let outcome = match outcome.result {
            Ok(outcome) => outcome,
            Err(error) => return self.fail(&failure_of_error(queued, error)?, None),
        };
        let failure = match &outcome {
            GetOutcome::Found(_) => None,
            GetOutcome::Missing(missing) => Some(failure_of_missing(&queued, missing)),
        };
        let LookupReply { result, transcript } =
            self.service.reply(&queued.address, &Caller::default(), outcome);
        match (transcript, failure) {
            (Some(stored), _) => {
                let name = stored.transcript.title.as_deref().unwrap_or(&queued.label).to_owned();
                let delivered =
                    self.destination.deliver(self.args, &queued, (result, &stored), &self.progress)?;
                self.finished(delivered, &name);
                Ok(())
            }
            (None, Some(failure)) => self.fail(&failure, Some(LookupReply { result, transcript: None })),
            (None, None) => Ok(()),
        }
    }

    fn finished(&mut self, outcome: DeliveryOutcome, name: &str) {
        self.summary.count(outcome);
        self.progress.step(name);
    }

    fn fail(&mut self, failure: &Failure, reply: Option<LookupReply>) -> Result<(), CommandError> {
        let Failure { label, reason, message, .. } = failure;
        self.summary.count_failure(failure);
        self.progress.note(&format!("{label}: {reason}: {message}"));
        self.progress.fail(label);
        self.destination.deliver_failure(self.args, failure, reply, &self.progress)
    }
}

fn failure_of_missing(queued: &QueuedVideo, missing: &UnavailableTranscript) -> Failure {
    let reason = missing.detail.clone().unwrap_or_else(|| missing.reason.as_str().to_owned());
    let may_pass = matches!(missing.reason, FailureReason::RateLimited | FailureReason::FetchError);
    Failure { label: queued.label.clone(), reason, message: missing.message.clone(), may_pass }
}

/// A failure of one video.
///
/// # Errors
/// The error, if all other videos would have it too.
fn failure_of_error(queued: QueuedVideo, error: Error) -> Result<Failure, CommandError> {
    let reason = match error.kind() {
        // A short link that leads to no video.
        ErrorKind::Invalid => "invalid_url",
        _ if error.is_unreadable() => "damaged",
        _ => return Err(error.into()),
    };
    Ok(Failure::lasting(queued.label, reason, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_is_a_date_or_an_age() {
        let date = Timestamp::parse("2026-01-31T00:00:00Z");
        assert_eq!(parse_since("2026-01-31").ok(), date);
        assert_eq!(parse_since("2026-01-31T01:00:00+01:00").ok(), date);
        let (week, day) = (parse_since("7d").unwrap(), parse_since("1d").unwrap());
        assert!(week < day && date.is_some_and(|date| date < week));
        assert!(parse_since("yesterday").unwrap_err().to_string().contains("--since yesterday"));
    }
}
