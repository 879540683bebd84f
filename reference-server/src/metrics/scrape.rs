//! The figures as text, with what is looked up for whoever asks.

use std::{fmt, sync::Arc, time::Duration};

use prometheus_client::{
    collector::Collector,
    encoding::{
        DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeLabelSet, NoLabelSet, text::encode,
    },
    metrics::{MetricType, info::Info},
    registry::{Registry, Unit},
};
use transcript_core::engine::Load;
use verbatim::Verbatim;

use super::{CameFrom, Metrics, Surface, process::Process};
use crate::{log::Log, ready::Readiness, routes::App};

/// How long a store may take to say how much waits in it.
const WITHIN: Duration = Duration::from_secs(2);

/// Where figures are looked up.
#[derive(Debug)]
pub(crate) struct Sources {
    /// What is counted.
    pub(crate) metrics: Arc<Metrics>,
    /// The working parts.
    pub(crate) verbatim: Verbatim,
    /// The caches of ready bodies.
    pub(crate) app: App,
    /// Whether the stores answer.
    pub(crate) readiness: Arc<Readiness>,
    /// The log, whose queue may overflow.
    pub(crate) log: Log,
}

/// What was looked up.
#[derive(Debug)]
struct Seen {
    metrics: Arc<Metrics>,
    load: Load,
    /// None when the store did not say.
    mails: Option<u64>,
    main_answers: bool,
    archive_answers: bool,
    is_ready: bool,
    /// What the caches of ready bodies hold: entries, bytes, and how many bytes they may.
    caches: [(Surface, u64, u64, u64); 2],
    lines_dropped: u64,
    process: Process,
}

impl Sources {
    /// Every figure as text, in the form of `OpenMetrics`.
    ///
    /// # Errors
    /// The encoder's.
    pub(crate) async fn text(&self) -> Result<String, fmt::Error> {
        let (state, mails) = tokio::join!(self.readiness.state(), async {
            tokio::time::timeout(WITHIN, self.verbatim.waiting_mails()).await.ok()?.ok()
        });
        let (bodies, ready) = (self.app.bodies.kept(), self.app.ready.kept());
        let seen = Seen {
            metrics: Arc::clone(&self.metrics),
            load: self.verbatim.transcripts().load(),
            mails,
            main_answers: state.main.is_ok(),
            archive_answers: state.archive.is_ok(),
            is_ready: state.is_ready(),
            caches: [
                (Surface::Lookup, bodies.entries, bodies.bytes, bodies.bytes_max),
                (Surface::V1, ready.entries, ready.bytes, ready.bytes_max),
            ],
            lines_dropped: self.log.lines_dropped(),
            process: Process::now(),
        };
        let mut registry = Registry::default();
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("verbatim_build", "The version that runs", version);
        self.metrics.heard.show(&mut registry);
        registry.register_collector(Box::new(seen));
        let mut text = String::with_capacity(16 * 1024);
        encode(&mut text, &registry)?;
        Ok(text)
    }
}

/// Writes families one after the other. A name is one of ours, unless it is one that every process has.
struct Writer<'a>(DescriptorEncoder<'a>);

fn full(name: &str) -> String {
    if name.starts_with("process_") { name.to_owned() } else { format!("verbatim_{name}") }
}

impl Writer<'_> {
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

    /// A counter without labels.
    fn counter(&mut self, (name, help): (&str, &str), value: f64) -> fmt::Result {
        let name = full(name);
        let mut one = self.0.encode_descriptor(&name, help, None, MetricType::Counter)?;
        one.encode_counter::<NoLabelSet, _, f64>(&value, None)
    }

    /// A gauge without labels; nothing where there is no value.
    fn gauge(&mut self, (name, help): (&str, &str), unit: Option<&Unit>, value: Option<f64>) -> fmt::Result {
        let Some(value) = value else { return Ok(()) };
        let name = full(name);
        self.0.encode_descriptor(&name, help, unit, MetricType::Gauge)?.encode_gauge(&value)
    }
}

impl Collector for Seen {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut to = Writer(encoder);
        self.answers(&mut to)?;
        self.ledger(&mut to)?;
        self.queues(&mut to)?;
        self.stores(&mut to)?;
        self.process(&mut to)
    }
}

impl Seen {
    fn answers(&self, to: &mut Writer<'_>) -> fmt::Result {
        let metrics = &self.metrics;
        let routes = || {
            [&metrics.lookup, &metrics.v1_transcript, &metrics.nowhere]
                .into_iter()
                .chain(metrics.others.iter())
        };
        let requests = ("http_requests", "Answers to requests, by route and status");
        let statuses = routes().flat_map(|route| {
            let labels = |status| [("route", route.name().to_owned()), ("status", status)];
            route.statuses().map(move |(status, count)| (labels(status), count))
        });
        to.counters(requests, statuses)?;
        let help = "How long it took until an answer began, by route";
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
        let connections = metrics.connections.load(std::sync::atomic::Ordering::Relaxed) as f64;
        to.gauge(("http_connections", "Connections that are open"), None, Some(connections))?;
        let from = Surface::ALL.into_iter().zip(&metrics.answers).flat_map(|(surface, counts)| {
            CameFrom::ALL.into_iter().zip(counts).map(move |(from, count)| {
                let labels = [("surface", surface.as_str()), ("from", from.as_str())];
                (labels, count.load(std::sync::atomic::Ordering::Relaxed))
            })
        });
        let help = "Look-ups of transcripts, by where the answer came from; all but fetched and nothing are hits of the \
                    archive";
        to.counters(("transcript_answers", help), from)
    }

    fn ledger(&self, to: &mut Writer<'_>) -> fmt::Result {
        let heard = &self.metrics.heard;
        let steps = heard
            .steps()
            .map(|(kind, result, count)| ([("step", kind.as_str()), ("result", result.as_str())], count));
        to.counters(("ledger_steps", "Steps that the ledger was asked for, by what came of them"), steps)?;
        let amounts = heard.amounts().map(|(kind, amount)| ([("step", kind.as_str())], amount));
        to.counters(("ledger_amount", "What the steps of the ledger that were taken moved"), amounts)
    }

    fn queues(&self, to: &mut Writer<'_>) -> fmt::Result {
        let load = &self.load;
        let count = |count: u64| Some(count as f64);
        to.gauge(("fetches", "Fetches that are under way"), None, count(load.fetches))?;
        let help = "Callers who wait for a fetch beside the one for whom it is made";
        to.gauge(("fetch_callers", help), None, count(load.callers))?;
        let each = |of: fn(&transcript_core::engine::SupplierLoad) -> u32| {
            load.suppliers.iter().map(move |one| ([("supplier", one.supplier.as_str())], i64::from(of(one))))
        };
        let at_work = ("supplier_at_work", "Videos with which a supplier works");
        to.gauges(at_work, None, each(|one| one.at_work))?;
        let in_line = ("supplier_in_line", "Videos that wait for a place at a supplier");
        to.gauges(in_line, None, each(|one| one.in_line))?;
        let help = "Mails that wait to be sent, up to 10000; absent when the store does not say";
        to.gauge(("mail_waiting", help), None, self.mails.map(|mails| mails as f64))?;
        let dropped = ("log_lines_dropped", "Lines of the log for which there was no room");
        to.counter(dropped, self.lines_dropped as f64)
    }

    fn stores(&self, to: &mut Writer<'_>) -> fmt::Result {
        let answers = [("main", self.main_answers), ("archive", self.archive_answers)];
        let answers = answers.map(|(store, answers)| ([("store", store)], i64::from(answers)));
        to.gauges(("store_answers", "Whether a store answered when it was last asked"), None, answers)?;
        let ready = f64::from(u8::from(self.is_ready));
        to.gauge(("ready", "Whether the server wants requests, as /readyz says"), None, Some(ready))?;
        let caches = || self.caches.iter();
        let label = |surface: Surface| [("surface", surface.as_str())];
        let entries = caches().map(|(surface, entries, _, _)| (label(*surface), *entries as f64));
        to.gauges(("ready_bodies", "Ready bodies that are kept"), None, entries)?;
        let bytes = caches().map(|(surface, _, bytes, _)| (label(*surface), *bytes as f64));
        to.gauges(("ready_bodies_size", "What they take"), Some(&Unit::Bytes), bytes)?;
        let most = caches().map(|(surface, _, _, most)| (label(*surface), *most as f64));
        to.gauges(("ready_bodies_limit", "What they may take"), Some(&Unit::Bytes), most)
    }

    fn process(&self, to: &mut Writer<'_>) -> fmt::Result {
        let Process { resident_bytes, cpu_seconds, open_fds, max_fds, began } = self.process;
        let figure = |figure: Option<u64>| figure.map(|figure| figure as f64);
        if let Some(seconds) = cpu_seconds {
            let cpu = ("process_cpu_seconds", "Time on processors, in seconds");
            to.counter(cpu, seconds)?;
        }
        let memory = ("process_resident_memory", "Memory in use");
        to.gauge(memory, Some(&Unit::Bytes), figure(resident_bytes))?;
        to.gauge(("process_open_fds", "Open files and connections"), None, figure(open_fds))?;
        to.gauge(("process_max_fds", "How many of them there may be"), None, figure(max_fds))?;
        let start = ("process_start_time", "When the process began, since 1970");
        to.gauge(start, Some(&Unit::Seconds), Some(began))
    }
}
