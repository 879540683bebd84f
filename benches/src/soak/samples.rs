//! What the soak records: the server's resources, and the latency and status of each request.

use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter},
    fs,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, Result};

/// Resources of the server at one time.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessSample {
    after: Duration,
    /// Memory that is no file's, in MiB.
    pub(super) anonymous_mib: f64,
    pub(super) descriptors: f64,
}

impl ProcessSample {
    pub(super) fn read(process: u32, after: Duration) -> Result<Self> {
        let anonymous_mib = crate::process::status_mib(process, "RssAnon:")?;
        let descriptors = fs::read_dir(format!("/proc/{process}/fd")).context("descriptors")?.count() as f64;
        Ok(Self { after, anonymous_mib, descriptors })
    }
}

impl Display for ProcessSample {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let minutes = self.after.as_secs_f64() / 60.0;
        write!(f, "{minutes:6.1} min: {:6.1} MiB, {} descriptors", self.anonymous_mib, self.descriptors)
    }
}

/// The slope of a figure over the samples, by least squares.
pub(super) fn slope_per_hour(samples: &[ProcessSample], figure: impl Fn(&ProcessSample) -> f64) -> f64 {
    let hours = |sample: &ProcessSample| sample.after.as_secs_f64() / 3_600.0;
    let count = samples.len() as f64;
    let mean_hours = samples.iter().map(hours).sum::<f64>() / count;
    let mean = samples.iter().map(&figure).sum::<f64>() / count;
    let covariance: f64 =
        samples.iter().map(|sample| (hours(sample) - mean_hours) * (figure(sample) - mean)).sum();
    let variance: f64 = samples.iter().map(|sample| (hours(sample) - mean_hours).powi(2)).sum();
    covariance / variance
}

/// Latencies of one minute, in milliseconds.
type MinuteLatencies = BTreeMap<&'static str, Vec<f64>>;

#[derive(Debug, Default)]
pub(super) struct RequestLog(Mutex<LoggedRequests>);

#[derive(Debug, Default)]
struct LoggedRequests {
    current: MinuteLatencies,
    minutes: Vec<MinuteLatencies>,
    statuses: BTreeMap<(&'static str, String), u64>,
    unexpected: u64,
}

impl RequestLog {
    fn with<T>(&self, action: impl FnOnce(&mut LoggedRequests) -> T) -> T {
        action(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records a response, or what happened instead of one.
    pub(super) fn record(
        &self,
        kind: &'static str,
        outcome: String,
        latency: Duration,
        is_expected: bool,
        details: impl FnOnce() -> String,
    ) {
        if !is_expected {
            println!("UNEXPECTED {kind}: {outcome} {}", details());
        }
        self.with(|log| {
            log.current.entry(kind).or_default().push(latency.as_secs_f64() * 1_000.0);
            *log.statuses.entry((kind, outcome)).or_default() += 1;
            log.unexpected += u64::from(!is_expected);
        });
    }

    /// Ends a minute; returns its p99 of each kind.
    pub(super) fn end_minute(&self) -> String {
        self.with(|log| {
            let minute = std::mem::take(&mut log.current);
            let p99s: Vec<_> =
                minute.iter().map(|(kind, all)| format!("{kind} {:.1}", p99(all.clone()))).collect();
            log.minutes.push(minute);
            format!("p99 in ms: {}", p99s.join(", "))
        })
    }

    pub(super) fn unexpected(&self) -> u64 {
        self.with(|log| log.unexpected)
    }

    /// The number of requests of each kind and outcome.
    pub(super) fn statuses(&self) -> String {
        self.with(|log| {
            let counts =
                log.statuses.iter().map(|((kind, outcome), count)| format!("{kind} {outcome}: {count}"));
            counts.collect::<Vec<_>>().join("\n")
        })
    }

    /// The p99 of each kind in the first and the last tenth of the minutes.
    pub(super) fn ends(&self) -> Vec<(&'static str, [f64; 2])> {
        self.with(|log| {
            let tenth = log.minutes.len().div_ceil(10);
            let (first, last) = (&log.minutes[..tenth], &log.minutes[log.minutes.len() - tenth..]);
            let kinds = log.minutes.first().into_iter().flat_map(BTreeMap::keys).copied();
            let of = |minutes: &[MinuteLatencies], kind| {
                p99(minutes.iter().filter_map(|minute| minute.get(kind)).flatten().copied().collect())
            };
            kinds.map(|kind| (kind, [of(first, kind), of(last, kind)])).collect()
        })
    }
}

fn p99(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() * 99 / 100).copied().unwrap_or(f64::NAN)
}
