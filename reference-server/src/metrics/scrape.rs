//! Exposition of all metrics as text; gauges of queues, stores and caches are read on each scrape.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use prometheus_client::{
    collector::Collector,
    encoding::{
        DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeLabelSet, NoLabelSet, text::encode,
    },
    metrics::{MetricType, info::Info},
    registry::{Registry, Unit},
};
use transcript_core::{accounts::jobs::JobFigures, engine::Load};
use verbatim::{StoreFigures, Verbatim};

use super::{AnswerRoute, Metrics, process::ProcessFigures};
use crate::{
    api::{ResultOrigin, UnansweredReason},
    log::LogQueue,
    routes::{Readiness, ReadinessState},
    state::AppState,
};

/// Timeout of the query for queued mails.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct MetricsSources {
    /// Counters and families.
    pub(crate) metrics: Arc<Metrics>,
    /// The facade, for load and queued mails.
    pub(crate) verbatim: Verbatim,
    /// The routes' state, for the response cache.
    pub(crate) app: AppState,
    /// Health of the stores.
    pub(crate) readiness: Arc<Readiness>,
    /// The log queue, for dropped lines.
    pub(crate) log: LogQueue,
}

/// Values read for one scrape.
#[derive(Debug)]
struct MetricsSnapshot {
    metrics: Arc<Metrics>,
    load: Load,
    /// `None` if the store did not respond in time.
    mails: Option<u64>,
    /// Empty if the store did not respond in time.
    jobs: Vec<JobFigures>,
    /// `None` if the store did not respond in time.
    webhooks: Option<u64>,
    readiness: ReadinessState,
    stores: Vec<StoreFigures>,
    /// Entries and bytes of the response cache by API, and its limit in bytes, which both share.
    caches: [(AnswerRoute, u64, u64, u64); 2],
    /// Responses that were sent although the archive could not be read.
    stale_responses: u64,
    /// Bytes of large bodies, and their limit.
    bodies: (u64, u64),
    lines_dropped: u64,
    process: ProcessFigures,
}

impl MetricsSources {
    /// All metrics in the `OpenMetrics` text format.
    ///
    /// # Errors
    /// An error of the encoder.
    pub(crate) async fn text(&self) -> Result<String, fmt::Error> {
        let accounts = self.verbatim.accounts();
        let (jobs, webhooks) = (accounts.jobs.store(), accounts.webhooks.store());
        let (state, mails, jobs, webhooks) = tokio::join!(
            self.readiness.state(),
            async { tokio::time::timeout(STORE_TIMEOUT, self.verbatim.waiting_mails()).await.ok()?.ok() },
            async { tokio::time::timeout(STORE_TIMEOUT, jobs.figures()).await.ok()?.ok() },
            async { tokio::time::timeout(STORE_TIMEOUT, webhooks.count_waiting_events()).await.ok()?.ok() }
        );
        let (lookup, v1) = (self.app.bodies.usage(false), self.app.bodies.usage(true));
        let bytes_max = self.app.bodies.bytes_max();
        let snapshot = MetricsSnapshot {
            metrics: Arc::clone(&self.metrics),
            load: self.verbatim.transcripts().load(),
            mails,
            jobs: jobs.unwrap_or_default(),
            webhooks,
            readiness: state,
            stores: self.verbatim.store_figures(),
            caches: [
                (AnswerRoute::Lookup, lookup.entries, lookup.bytes, bytes_max),
                (AnswerRoute::V1, v1.entries, v1.bytes, bytes_max),
            ],
            stale_responses: self.app.bodies.stale_responses(),
            bodies: self.app.account_budget.usage(),
            lines_dropped: self.log.lines_dropped(),
            process: ProcessFigures::now(),
        };
        let mut registry = Registry::default();
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("verbatim_build", "Version of the server", version);
        self.metrics.observer.show(&mut registry);
        registry.register_collector(Box::new(snapshot));
        let mut text = String::with_capacity(16 * 1024);
        encode(&mut text, &registry)?;
        Ok(text)
    }
}

/// Writes metric families. Names get the prefix `verbatim_`, except those of `process_`.
struct FamilyWriter<'a>(DescriptorEncoder<'a>);

/// Counts of these results, with their labels.
fn by_result<const N: usize>(
    results: [&'static str; N],
    counts: &[AtomicU64; N],
) -> impl Iterator<Item = ([(&'static str, &'static str); 1], u64)> {
    results.into_iter().zip(counts).map(|(result, count)| ([("result", result)], count.load(Relaxed)))
}

fn full(name: &str) -> String {
    if name.starts_with("process_") { name.to_owned() } else { format!("verbatim_{name}") }
}

impl FamilyWriter<'_> {
    fn counters<L: EncodeLabelSet, V: EncodeCounterValue>(
        &mut self,
        (name, help): (&str, &str),
        values: impl IntoIterator<Item = (L, V)>,
    ) -> fmt::Result {
        let name = full(name);
        let mut family = self.0.encode_descriptor(&name, help, None, MetricType::Counter)?;
        for (labels, value) in values {
            family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, f64>(&value, None)?;
        }
        Ok(())
    }

    fn gauges<L: EncodeLabelSet, V: EncodeGaugeValue>(
        &mut self,
        (name, help): (&str, &str),
        unit: Option<&Unit>,
        values: impl IntoIterator<Item = (L, V)>,
    ) -> fmt::Result {
        let name = full(name);
        let mut family = self.0.encode_descriptor(&name, help, unit, MetricType::Gauge)?;
        for (labels, value) in values {
            family.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    /// Writes a counter without labels.
    fn counter(&mut self, (name, help): (&str, &str), value: f64) -> fmt::Result {
        let name = full(name);
        let mut one = self.0.encode_descriptor(&name, help, None, MetricType::Counter)?;
        one.encode_counter::<NoLabelSet, _, f64>(&value, None)
    }

    /// Writes a gauge without labels, or nothing if the value is `None`.
    fn gauge(&mut self, (name, help): (&str, &str), unit: Option<&Unit>, value: Option<f64>) -> fmt::Result {
        let Some(value) = value else { return Ok(()) };
        let name = full(name);
        self.0.encode_descriptor(&name, help, unit, MetricType::Gauge)?.encode_gauge(&value)
    }
}

impl Collector for MetricsSnapshot {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut to = FamilyWriter(encoder);
        self.answers(&mut to)?;
        self.ledger(&mut to)?;
        self.queues(&mut to)?;
        self.stores(&mut to)?;
        self.reloads(&mut to)?;
        self.process(&mut to)
    }
}

impl MetricsSnapshot {
    fn answers(&self, to: &mut FamilyWriter<'_>) -> fmt::Result {
        let metrics = &self.metrics;
        let routes = || {
            [&metrics.lookup, &metrics.v1_transcript, &metrics.watch_page, &metrics.unmatched]
                .into_iter()
                .chain(metrics.others.iter())
        };
        let requests = ("http_requests", "Responses to requests, by route and status");
        let statuses = routes().flat_map(|route| {
            let labels = |status| [("route", route.name().to_owned()), ("status", status)];
            route.statuses().map(move |(status, count)| (labels(status), count))
        });
        to.counters(requests, statuses)?;
        let help = "Time to the first byte of the response, by route";
        let mut family = to.0.encode_descriptor(
            "verbatim_http_request_duration",
            help,
            Some(&Unit::Seconds),
            MetricType::Histogram,
        )?;
        for route in routes() {
            let (sum, count, buckets) = route.seconds();
            if count > 0 {
                let labels = [("route", route.name())];
                family.encode_family(&labels)?.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
            }
        }
        let connections = metrics.connections.load(Relaxed) as f64;
        to.gauge(("http_connections", "Open connections"), None, Some(connections))?;
        let from = AnswerRoute::ALL.into_iter().zip(&metrics.answers).flat_map(|(api, counts)| {
            ResultOrigin::ALL.into_iter().zip(counts).map(move |(from, count)| {
                ([("api", api.as_str()), ("from", from.as_str())], count.load(Relaxed))
            })
        });
        let help = "Transcript responses, by origin; all but fetched and nothing are hits of the archive";
        to.counters(("transcript_answers", help), from)?;
        let unanswered = AnswerRoute::ALL.into_iter().zip(&metrics.unanswered).flat_map(|(api, counts)| {
            UnansweredReason::names().zip(counts).map(move |(reason, count)| {
                ([("api", api.as_str()), ("reason", reason)], count.load(Relaxed))
            })
        });
        to.counters(("unanswered_lookups", "Responses without a transcript, by reason"), unanswered)
    }

    fn ledger(&self, to: &mut FamilyWriter<'_>) -> fmt::Result {
        let observer = &self.metrics.observer;
        let operations = observer
            .operations()
            .map(|(kind, result, count)| ([("step", kind.as_str()), ("result", result.as_str())], count));
        to.counters(("ledger_operations", "Ledger operations, by kind and result"), operations)?;
        let amounts = observer.amounts().map(|(kind, amount)| ([("step", kind.as_str())], amount));
        to.counters(("ledger_amount", "Amount moved by ledger operations with the result done"), amounts)
    }

    fn queues(&self, to: &mut FamilyWriter<'_>) -> fmt::Result {
        let load = &self.load;
        let count = |count: u64| Some(count as f64);
        to.gauge(("fetches", "Running fetches"), None, count(load.fetches))?;
        let help = "Waiters that share running fetches, beyond the first of each";
        to.gauge(("fetch_callers", help), None, count(load.callers))?;
        let each = |of: fn(&transcript_core::engine::SupplierLoad) -> u32| {
            load.suppliers.iter().map(move |one| ([("supplier", one.supplier.as_str())], i64::from(of(one))))
        };
        let active = ("supplier_active", "Videos in work at a supplier");
        to.gauges(active, None, each(|one| one.active))?;
        let queued = ("supplier_queued", "Videos that wait for a permit of a supplier");
        to.gauges(queued, None, each(|one| one.queued))?;
        let refused =
            load.suppliers.iter().map(|one| ([("supplier", one.supplier.as_str())], one.refused as f64));
        to.counters(("fetches_refused", "Fetches refused because too many waited for a supplier"), refused)?;
        let help = "Queued mails, up to 10000; absent if the store does not respond";
        to.gauge(("mail_queued", help), None, self.mails.map(|mails| mails as f64))?;
        let attempts = by_result(["sent", "failed", "abandoned"], &self.metrics.mails);
        to.counters(("mail_attempts", "Attempts to send a mail, by result"), attempts)?;
        let jobs = self.jobs.iter().map(|found| ([("status", found.status.as_str())], found.jobs as f64));
        to.gauges(("jobs", "Unfinished jobs of all servers on the storage, by state"), None, jobs)?;
        let items = self.jobs.iter().flat_map(|found| {
            let labels = |item| [("job_status", found.status.as_str()), ("status", item)];
            [(labels("queued"), found.queued_items as f64), (labels("running"), found.running_items as f64)]
        });
        let help = "Items of unfinished jobs, by state of the job and of the item";
        to.gauges(("job_items", help), None, items)?;
        let help =
            "Events of jobs that are still to be sent, up to 10000; absent if the store does not respond";
        to.gauge(("webhooks_queued", help), None, self.webhooks.map(|events| events as f64))?;
        let attempts = by_result(["delivered", "failed", "abandoned"], &self.metrics.webhooks);
        to.counters(("webhook_attempts", "Attempts to send a webhook, by result"), attempts)?;
        let purges = by_result(["done", "failed"], &self.metrics.purges);
        to.counters(("cache_purges", "Videos in calls of the purge hook, by result"), purges)?;
        let [compacted, saved] = &self.metrics.compacted;
        let read = |counter: &AtomicU64| counter.load(Relaxed) as f64;
        let moved = ("archive_compacted", "Transcripts moved to cold storage by the background job");
        to.counter(moved, read(compacted))?;
        to.counter(("archive_compaction_saved_bytes", "Bytes that this saved"), read(saved))?;
        let indexed = ("search_indexed_videos", "Changed videos that the search indexer indexed");
        to.counter(indexed, read(&self.metrics.indexed_videos))?;
        let built = ("search_index_tracks", "Tracks that the build of the search index has read");
        to.gauge(built, None, Some(read(&self.metrics.index_tracks)))?;
        let complete = ("search_index_complete", "Whether the build of the search index has ended");
        to.gauge(complete, None, Some(read(&self.metrics.index_complete)))?;
        let dropped = ("log_lines_dropped", "Dropped log lines");
        to.counter(dropped, self.lines_dropped as f64)
    }

    fn stores(&self, to: &mut FamilyWriter<'_>) -> fmt::Result {
        let states = [("main", self.readiness.main), ("archive", self.readiness.archive)];
        let answers = states.map(|(store, state)| ([("store", store)], i64::from(state.is_readable())));
        to.gauges(("store_answers", "Whether a store can be read"), None, answers)?;
        let writable = states.map(|(store, state)| ([("store", store)], i64::from(state.is_writable())));
        to.gauges(("store_writable", "Whether a store can be written"), None, writable)?;
        let errors = self.stores.iter().flat_map(|one| {
            let labels = |kind| [("store", one.store), ("kind", kind)];
            one.errors.iter().map(move |(kind, count)| (labels(*kind), *count))
        });
        to.counters(("store_errors", "Failed calls of a store, by kind"), errors)?;
        let free =
            self.stores.iter().filter_map(|one| Some(([("store", one.store)], one.free_bytes? as f64)));
        to.gauges(("store_free", "Free space of a store's disk"), Some(&Unit::Bytes), free)?;
        let ready = f64::from(u8::from(self.readiness.is_ready()));
        to.gauge(("ready", "Whether /readyz returns 200"), None, Some(ready))?;
        let caches = || self.caches.iter();
        let label = |api: AnswerRoute| [("api", api.as_str())];
        let entries = caches().map(|(api, entries, _, _)| (label(*api), *entries as f64));
        to.gauges(("ready_bodies", "Entries of the response caches"), None, entries)?;
        let bytes = caches().map(|(api, _, bytes, _)| (label(*api), *bytes as f64));
        to.gauges(("ready_bodies_size", "Size of the response caches"), Some(&Unit::Bytes), bytes)?;
        let most = caches().map(|(api, _, _, most)| (label(*api), *most as f64));
        to.gauges(("ready_bodies_limit", "Size limit of the response caches"), Some(&Unit::Bytes), most)?;
        let help = "Cached responses sent while the archive could not be read";
        to.counter(("stale_responses", help), self.stale_responses as f64)?;
        let (bodies, bodies_max) = self.bodies;
        let help = "Memory of large bodies, without those made for the caches";
        to.gauge(("body_memory", help), Some(&Unit::Bytes), Some(bodies as f64))?;
        to.gauge(("body_memory_limit", "Limit of this memory"), Some(&Unit::Bytes), Some(bodies_max as f64))
    }

    fn reloads(&self, to: &mut FamilyWriter<'_>) -> fmt::Result {
        let reloads = &self.metrics.reloads;
        let results = reloads.results().map(|(result, count)| ([("result", result)], count));
        to.counters(("config_reloads", "Reloads of the settings, by result"), results)?;
        let successful = f64::from(u8::from(reloads.is_last_successful()));
        let help = "Whether the last reload of the settings succeeded";
        to.gauge(("config_last_reload_successful", help), None, Some(successful))
    }

    fn process(&self, to: &mut FamilyWriter<'_>) -> fmt::Result {
        let ProcessFigures { resident_bytes, cpu_seconds, open_fds, max_fds, start_time } = self.process;
        let figure = |figure: Option<u64>| figure.map(|figure| figure as f64);
        if let Some(seconds) = cpu_seconds {
            let cpu = ("process_cpu_seconds", "CPU time, in seconds");
            to.counter(cpu, seconds)?;
        }
        let memory = ("process_resident_memory", "Resident memory");
        to.gauge(memory, Some(&Unit::Bytes), figure(resident_bytes))?;
        to.gauge(("process_open_fds", "Open file descriptors"), None, figure(open_fds))?;
        to.gauge(("process_max_fds", "Limit of open file descriptors"), None, figure(max_fds))?;
        let start = ("process_start_time", "Start time of the process, since 1970");
        to.gauge(start, Some(&Unit::Seconds), Some(start_time))
    }
}
