//! Events for Python: log records of the core, exceptions of custom components, and calls of event hooks.
//!
//! Any thread may record an event. Python receives it on a thread of Python: the one that waits for a call, or one of
//! `verbatim_transcripts/_callbacks.py`.

use std::{
    cell::Cell,
    collections::VecDeque,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, Once,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use pyo3::{prelude::*, types::PyDict};
use tokio::runtime::Handle;
use tracing::{
    Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
    subscriber::Interest,
};
use transcript_core::{
    engine::{BreakerEvent, EngineObserver, FetchStage, SupplierCall},
    video::Platform,
};

use crate::{
    components::{ComponentSlot, Components},
    lifecycle::attached,
};

/// Bound of the events that wait for Python; further ones are dropped.
const EVENTS_MAX: usize = 4_096;
/// How often a thread tries to lock the queue. A child that was forked while another thread held it never can.
const LOCK_TRIES_MAX: u32 = 1_000;
/// How long a call waits for hooks and handlers that another thread runs. One of them may wait for the call itself.
pub(crate) const DELIVERY_WAIT_MAX: Duration = Duration::from_secs(1);
/// Levels of the Python module `logging`.
const DEBUG: u8 = 10;
const INFO: u8 = 20;
const WARNING: u8 = 30;
const ERROR: u8 = 40;

static QUEUE: Mutex<VecDeque<Event>> = Mutex::new(VecDeque::new());
static LENGTH: AtomicUsize = AtomicUsize::new(0);
static IS_SCHEDULED: AtomicBool = AtomicBool::new(false);
/// Number of threads that pass events to Python.
static DELIVERIES: AtomicUsize = AtomicUsize::new(0);
thread_local! {
    /// Whether this thread passes events to Python.
    static IS_DELIVERING: Cell<bool> = const { Cell::new(false) };
}
/// Whether the logger accepts debug records.
static IS_VERBOSE: AtomicBool = AtomicBool::new(false);

/// The value of a field.
#[derive(Debug, IntoPyObject)]
enum FieldValue {
    Text(String),
    Count(u64),
    Number(i64),
    Seconds(f64),
    Flag(bool),
    Missing(Option<bool>),
}

type EventFields = Vec<(&'static str, FieldValue)>;

/// An event that waits for Python.
struct Event {
    /// The hook of an engine; `None` for the logger.
    hook: Option<Arc<ComponentSlot>>,
    level: u8,
    name: String,
    fields: EventFields,
    error: Option<PyErr>,
}

/// Locks the queue, unless that takes too long.
fn lock_queue() -> Option<MutexGuard<'static, VecDeque<Event>>> {
    for _ in 0..LOCK_TRIES_MAX {
        match QUEUE.try_lock() {
            Ok(queue) => return Some(queue),
            Err(std::sync::TryLockError::Poisoned(queue)) => return Some(queue.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => thread::yield_now(),
        }
    }
    None
}

fn push(event: Event) {
    let Some(mut queue) = lock_queue() else { return };
    if queue.len() >= EVENTS_MAX {
        return;
    }
    queue.push_back(event);
    LENGTH.store(queue.len(), Ordering::Release);
    drop(queue);
    if let Ok(runtime) = Handle::try_current()
        && !IS_SCHEDULED.swap(true, Ordering::AcqRel)
    {
        // Attaching can block for long: not on a runtime thread.
        runtime.spawn_blocking(|| {
            // An interpreter that exits gets no events on other threads.
            if attached(start_delivery).is_none_or(|started| started.is_err()) {
                IS_SCHEDULED.store(false, Ordering::Release);
            }
        });
    }
}

/// Passes the recorded events to Python on a thread of `_callbacks.py`.
fn start_delivery(py: Python<'_>) -> PyResult<()> {
    let deliver = py.import("verbatim_transcripts._native")?.getattr("_deliver_events")?;
    py.import("verbatim_transcripts._callbacks")?.call_method1("_run", (deliver,)).map(drop)
}

/// Passes the recorded events to Python. Called on a thread of Python.
#[pyfunction]
pub(crate) fn _deliver_events(py: Python<'_>) {
    IS_SCHEDULED.store(false, Ordering::Release);
    deliver_queue(py, true);
}

/// Drops the events of the parent after a fork.
pub(crate) fn clear_after_fork() {
    IS_SCHEDULED.store(false, Ordering::Release);
    LENGTH.store(0, Ordering::Release);
    DELIVERIES.store(0, Ordering::Release);
    if let Some(mut queue) = lock_queue() {
        queue.clear();
    }
}

/// As [`_deliver_events`], after each call and at exit. Then no event of the call is left, unless a hook takes too
/// long.
pub(crate) fn flush(py: Python<'_>) {
    // A hook may wait for the caller, so another thread runs it; at the exit of the interpreter there may be none.
    let is_left = !deliver_queue(py, false);
    if is_left && !schedule(py) {
        deliver_queue(py, true);
    }
    // A hook that makes a call does not wait for itself.
    if !IS_DELIVERING.get() && (is_left || DELIVERIES.load(Ordering::Acquire) > 0) {
        py.detach(|| wait_for_deliveries(is_left));
        // The thread that was to deliver them may not have started.
        if is_left && !schedule(py) {
            deliver_queue(py, true);
        }
    }
}

/// Lets another thread deliver the recorded events.
///
/// Returns whether it does: for the thread of an event loop, or of a plain call, which a slow hook would block.
pub(crate) fn schedule(py: Python<'_>) -> bool {
    let is_empty = LENGTH.load(Ordering::Acquire) == 0;
    if !is_empty && !IS_SCHEDULED.swap(true, Ordering::AcqRel) && start_delivery(py).is_err() {
        IS_SCHEDULED.store(false, Ordering::Release);
        return false;
    }
    true
}

/// Whether no event is left; otherwise another thread delivers them, as with [`schedule`].
pub(crate) fn is_flushed(py: Python<'_>) -> bool {
    let has_events = has_events();
    schedule(py);
    // A hook that makes a call does not wait for itself.
    IS_DELIVERING.get() || !has_events
}

/// Whether an event waits for Python, or a thread passes one to it.
fn has_events() -> bool {
    LENGTH.load(Ordering::Acquire) > 0 || DELIVERIES.load(Ordering::Acquire) > 0
}

/// Waits for the hooks and handlers that other threads run or, if events are left to them, will run, unless that takes
/// too long.
fn wait_for_deliveries(is_left: bool) {
    let start = Instant::now();
    let is_waiting = || DELIVERIES.load(Ordering::Acquire) > 0 || (is_left && has_events());
    while is_waiting() && start.elapsed() < DELIVERY_WAIT_MAX {
        thread::sleep(Duration::from_millis(1));
    }
}

/// A thread that passes events to Python.
struct DeliveryGuard {
    /// Whether the thread did so already: a hook makes a call.
    was_delivering: bool,
}

impl DeliveryGuard {
    fn new() -> Self {
        DELIVERIES.fetch_add(1, Ordering::AcqRel);
        Self { was_delivering: IS_DELIVERING.replace(true) }
    }
}

impl Drop for DeliveryGuard {
    fn drop(&mut self) {
        IS_DELIVERING.set(self.was_delivering);
        // A fork in a hook resets the count.
        let _was_zero =
            DELIVERIES.fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| count.checked_sub(1));
    }
}

/// Passes the recorded events to Python on this thread.
///
/// Returns `false`, and leaves them all, if one is for a hook and hooks may not run.
fn deliver_queue(py: Python<'_>, may_run_hooks: bool) -> bool {
    if LENGTH.load(Ordering::Acquire) == 0 {
        return true;
    }
    // Before the queue is empty, so that another thread sees the one or the other.
    let _guard = DeliveryGuard::new();
    let Some(mut queue) = lock_queue() else { return true };
    if !may_run_hooks && queue.iter().any(|event| event.hook.is_some()) {
        return false;
    }
    LENGTH.store(0, Ordering::Release);
    let events = std::mem::take(&mut *queue);
    drop(queue);
    for event in events {
        // `deliver` catches the exceptions of hooks and handlers, and an interrupt must not lose a result.
        if let Err(error) = deliver(py, event) {
            error.write_unraisable(py, None);
        }
    }
    true
}

fn deliver(py: Python<'_>, event: Event) -> PyResult<()> {
    let hook = event.hook.map(|hook| hook.get(py));
    if matches!(hook, Some(None)) {
        // It was deleted with its engine.
        return Ok(());
    }
    let fields = PyDict::new(py);
    for (name, value) in event.fields {
        fields.set_item(name, value)?;
    }
    let error = event.error.map(|error| error.into_value(py));
    let arguments = (hook.flatten(), event.level, event.name, fields, error);
    py.import("verbatim_transcripts._events")?.call_method1("deliver", arguments).map(drop)
}

/// Records an exception of a custom component.
pub(crate) fn record_exception(py: Python<'_>, component: &str, name: &str, error: &PyErr) {
    // `KeyboardInterrupt` and the like are raised at the caller.
    if !error.is_instance_of::<pyo3::exceptions::PyException>(py) {
        return;
    }
    let fields = vec![
        ("component", FieldValue::Text(component.to_owned())),
        ("name", FieldValue::Text(name.to_owned())),
    ];
    let error = Some(error.clone_ref(py));
    push(Event {
        hook: None,
        level: ERROR,
        name: "exception in a custom component".to_owned(),
        fields,
        error,
    });
}

/// Sends the log records of the core to the Python logger; reads the level of the logger.
pub(crate) fn start_logging(py: Python<'_>) -> PyResult<()> {
    static START: Once = Once::new();
    START.call_once(|| {
        // The subscriber of this module only: another native module has its own.
        let _is_set = tracing::subscriber::set_global_default(PythonSubscriber);
    });
    let is_verbose = py.import("verbatim_transcripts._events")?.call_method0("is_verbose")?.is_truthy()?;
    IS_VERBOSE.store(is_verbose, Ordering::Relaxed);
    Ok(())
}

/// Records the events of the core; spans are not used.
struct PythonSubscriber;

impl Subscriber for PythonSubscriber {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        match metadata.is_event() {
            true if *metadata.level() <= Level::INFO => Interest::always(),
            true if *metadata.level() == Level::DEBUG => Interest::sometimes(),
            _ => Interest::never(),
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Other crates log nothing that concerns the user at this level.
        let is_ours = ["transcript_core", "upstream_reqwest", "verbatim"]
            .iter()
            .any(|name| metadata.target().starts_with(name));
        metadata.is_event()
            && is_ours
            && (*metadata.level() <= Level::INFO || IS_VERBOSE.load(Ordering::Relaxed))
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut fields = LogFields { message: String::new(), fields: Vec::new() };
        event.record(&mut fields);
        let level = match *event.metadata().level() {
            Level::ERROR => ERROR,
            Level::WARN => WARNING,
            Level::INFO => INFO,
            _ => DEBUG,
        };
        let LogFields { message: name, fields } = fields;
        push(Event { hook: None, level, name, fields, error: None });
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// The message and the fields of a log record.
struct LogFields {
    message: String,
    fields: EventFields,
}

impl Visit for LogFields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.fields.push((field.name(), FieldValue::Seconds(value)));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.fields.push((field.name(), FieldValue::Number(value)));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.fields.push((field.name(), FieldValue::Count(value)));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.fields.push((field.name(), FieldValue::Flag(value)));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.push((field.name(), FieldValue::Text(value.to_owned())));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        match field.name() {
            "message" => self.message = text,
            name @ ("platform" | "video") => {
                self.fields.push((name, FieldValue::Text(with_platform_name(text))))
            }
            name => self.fields.push((name, FieldValue::Text(text))),
        }
    }
}

/// A platform, or a video after its platform, with the name for people in place of that on the wire.
fn with_platform_name(text: String) -> String {
    let (platform, video) = text.split_once('/').map_or((text.as_str(), None), |(name, id)| (name, Some(id)));
    match (Platform::from_wire(platform), video) {
        (None, _) => text,
        (Some(platform), None) => platform.name().to_owned(),
        (Some(platform), Some(video)) => format!("{}/{video}", platform.name()),
    }
}

/// Passes the events of one engine to a Python callable.
pub(crate) struct PyObserver(Arc<ComponentSlot>);

transcript_core::debug_fields!(PyObserver {});

impl PyObserver {
    pub(crate) fn new(hook: Bound<'_, PyAny>, components: &mut Components) -> Self {
        Self(ComponentSlot::new(hook, components))
    }

    fn push(&self, name: &str, fields: EventFields) {
        let (hook, name) = (Some(Arc::clone(&self.0)), name.to_owned());
        push(Event { hook, level: INFO, name, fields, error: None });
    }
}

fn text(value: impl Into<String>) -> FieldValue {
    FieldValue::Text(value.into())
}

impl EngineObserver for PyObserver {
    fn on_stage(&self, stage: FetchStage) {
        let fields = vec![
            ("supplier", text(stage.supplier)),
            ("platform", text(stage.video.platform().name())),
            ("video_id", text(stage.video.id())),
            ("stage", text(stage.name)),
            ("done", FieldValue::Count(stage.done)),
            ("total", FieldValue::Count(stage.total)),
        ];
        self.push("stage", fields);
    }

    fn on_breaker(&self, event: BreakerEvent) {
        let mut fields = vec![("supplier", text(event.supplier)), ("platform", text(event.platform.name()))];
        let Some(cooldown) = event.cooldown else { return self.push("breaker_closed", fields) };
        fields.push(("reason", text(cooldown.reason.as_str())));
        fields.push(("until", text(cooldown.expires_at.to_string())));
        fields.push(("consecutive", FieldValue::Count(cooldown.consecutive.into())));
        self.push("breaker_opened", fields);
    }

    fn on_supplier_call(&self, call: SupplierCall) {
        let reason = call.failure.as_ref();
        let fields = vec![
            ("supplier", text(call.supplier)),
            ("platform", text(call.platform.name())),
            ("reason", reason.map_or(FieldValue::Missing(None), |reason| text(reason.as_str()))),
            ("attempted", FieldValue::Flag(call.attempted)),
            ("seconds", FieldValue::Seconds(call.elapsed.as_secs_f64())),
        ];
        self.push("supplier_call", fields);
    }
}
