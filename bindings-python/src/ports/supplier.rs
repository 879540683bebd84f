//! Adapter from a Python object to the supplier port.

use std::{mem, sync::Arc, time::Duration};

use async_trait::async_trait;
use pyo3::{
    exceptions::{
        PyAssertionError, PyAttributeError, PyImportError, PyLookupError, PyNameError, PyNotImplementedError,
        PyRuntimeError, PyTypeError, PyValueError,
    },
    intern,
    prelude::*,
    sync::PyOnceLock,
    types::{PyList, PyTuple},
};
use transcript_core::{
    Clock,
    archive::TrackSelector,
    supplier::{
        self, Supplier, SupplierInfo, SupplierKind, SupplyError, SupplyMonitor, SupplyOutput, SupplyReason,
    },
    transcript::{LanguageTag, TrackKind},
    video::{Platform, VideoId, VideoLink},
};

use verbatim::{GetRequest, SystemClock};

use super::{call::PyTarget, has_method};
use crate::{
    components::Components, events, exception_cause, lifecycle::attached, options, transcript::Transcript,
};

/// A request to a supplier written in Python: video, language and remaining time.
#[pyclass(frozen, module = "verbatim_transcripts._native")]
pub(crate) struct SupplyRequest {
    /// The engine that calls the supplier.
    owner: u64,
    video: VideoId,
    selector: TrackSelector,
    seconds: f64,
    monitor: Arc<dyn SupplyMonitor>,
}

#[pymethods]
impl SupplyRequest {
    /// The platform: `YouTube`, `TikTok`, `Instagram` or `X`.
    #[getter]
    fn platform(&self) -> &'static str {
        self.video.platform().name()
    }

    /// The id of the video on its platform.
    #[getter]
    fn video_id(&self) -> &str {
        self.video.id()
    }

    /// The URL of the video.
    #[getter]
    fn url(&self) -> String {
        self.video.address()
    }

    /// The requested language as a BCP 47 tag; None for the default track: English, otherwise the spoken language.
    #[getter]
    fn lang(&self) -> Option<&str> {
        self.selector.language().map(LanguageTag::as_str)
    }

    /// Whether a machine translation into the language is accepted if the video has no other transcript in it.
    #[getter]
    fn translated(&self) -> bool {
        self.selector.takes(TrackKind::Translated)
    }

    /// Seconds until the deadline, measured at the start of the call.
    #[getter]
    fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Whether no caller waits any more. A long call polls it between its steps.
    #[getter]
    fn cancelled(&self) -> bool {
        self.monitor.is_cancelled()
    }

    /// Reports that a stage has reached `done` of `of`; `of` is 0 if unknown.
    #[pyo3(signature = (name, done=0, of=0))]
    fn stage(
        &self,
        py: Python<'_>,
        name: &str,
        #[pyo3(from_py_with = options::extract::<u64>)] done: u64,
        #[pyo3(from_py_with = options::extract::<u64>)] of: u64,
    ) {
        self.monitor.report_progress(name, done, of);
        // An async supplier runs on the event loop of the package.
        events::schedule(py);
    }

    fn __repr__(&self) -> String {
        format!("<SupplyRequest {} {} {}>", self.platform(), self.video_id(), self.selector)
    }
}

impl SupplyRequest {
    /// Rejects a fetch by a supplier for the transcript that it is supplying, which would wait for itself.
    ///
    /// # Errors
    /// `RuntimeError`.
    pub(crate) fn reject_own_transcript(py: Python<'_>, owner: u64, get: &GetRequest) -> PyResult<()> {
        static CURRENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let arguments = CURRENT
            .import(py, "verbatim_transcripts._callbacks", "current_arguments")?
            .call_method0(intern!(py, "get"))?;
        let Ok(request) = arguments.get_item(0).and_then(|request| Ok(request.cast_into::<Self>()?)) else {
            return Ok(());
        };
        let request = request.get();
        let is_same_video =
            VideoLink::parse(&get.link).is_ok_and(|link| link == VideoLink::Video(request.video.clone()));
        let mut languages = get.language.iter().chain(&get.other_languages);
        let is_same_selector = match request.selector.language() {
            None => get.language.is_none(),
            Some(requested) => {
                languages.any(|tag| LanguageTag::parse(tag).is_ok_and(|tag| tag == *requested))
            }
        };
        match request.owner == owner && is_same_video && is_same_selector {
            true => Err(PyRuntimeError::new_err(
                "a supplier cannot fetch the transcript that it is supplying: the call would wait for itself",
            )),
            false => Ok(()),
        }
    }
}

/// A Python object as a supplier, with a `name` and a method `supply`.
pub(crate) struct PySupplier {
    /// The engine that calls it.
    owner: u64,
    target: PyTarget,
    info: SupplierInfo,
}

transcript_core::debug_fields!(PySupplier |this| { name: this.info.name });

impl PySupplier {
    /// Reads the attributes of the supplier.
    ///
    /// # Errors
    /// `TypeError` or `ValueError`, naming the missing or invalid attribute.
    pub(crate) fn new(owner: u64, object: Bound<'_, PyAny>, components: &mut Components) -> PyResult<Self> {
        let class = object.get_type();
        let missing = |what: &str| PyTypeError::new_err(format!("the supplier {class} must have {what}"));
        let name = object.getattr("name").ok().and_then(|name| name.extract::<String>().ok());
        let name = name.filter(|name| !name.is_empty()).ok_or_else(|| missing("a name: str"))?;
        if !has_method(&object, "supply") {
            return Err(missing("a method supply(request)"));
        }
        let platforms = match object.getattr("platforms").ok() {
            None => Platform::ALL.to_vec(),
            Some(names) => {
                names.extract::<Vec<String>>()?.iter().map(|name| platform(name)).collect::<PyResult<_>>()?
            }
        };
        let kind = match object.getattr("kind").ok().map(|kind| kind.extract::<String>()).transpose()? {
            None => SupplierKind::Captions,
            Some(kind) => match kind.as_str() {
                "captions" => SupplierKind::Captions,
                "speech" => SupplierKind::Speech,
                "remote" => SupplierKind::Remote,
                _ => {
                    return Err(PyValueError::new_err(
                        "a supplier's kind must be 'captions', 'speech' or 'remote'",
                    ));
                }
            },
        };
        let target = PyTarget::new(object, components);
        Ok(Self { owner, target, info: SupplierInfo { name, platforms, kind } })
    }
}

/// The platform with this name.
fn platform(name: &str) -> PyResult<Platform> {
    Platform::parse(name).ok_or_else(|| {
        let names = Platform::ALL.map(Platform::name).join(", ");
        PyValueError::new_err(format!("unknown platform {name:?}; platforms: {names}"))
    })
}

#[async_trait]
impl Supplier for PySupplier {
    fn info(&self) -> SupplierInfo {
        self.info.clone()
    }

    fn is_custom(&self) -> bool {
        true
    }

    async fn supply(
        &self,
        request: supplier::SupplyRequest,
        monitor: Arc<dyn SupplyMonitor>,
    ) -> Result<SupplyOutput, SupplyError> {
        let now = Clock::now(&SystemClock::default());
        let seconds = request.deadline.since(now).as_secs_f64();
        let request = SupplyRequest {
            owner: self.owner,
            video: request.video,
            selector: request.selector,
            seconds,
            monitor,
        };
        let name = self.info.name.clone();
        let is_remote = self.info.kind == SupplierKind::Remote;
        let result = self.target.call(
            "supply",
            move |py| PyTuple::new(py, [Bound::new(py, request)?]),
            move |value| read_transcripts(value, &name, is_remote),
        );
        match result.await {
            Ok(Some(output)) => Ok(output),
            Ok(None) => Err(SupplyError::new(SupplyReason::NoCaptions, "The video has no captions.")),
            Err(error) => Err(to_supply_error(&self.info.name, error)),
        }
    }
}

/// The transcripts that a supplier returned, with metadata and tracks of the video; `None` for `None`.
fn read_transcripts(value: &Bound<'_, PyAny>, name: &str, is_remote: bool) -> PyResult<Option<SupplyOutput>> {
    let mut output = SupplyOutput::default();
    if value.is_none() {
        return Ok(None);
    }
    // A transcript is a sequence too, of its segments.
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        for item in value.try_iter()? {
            add_transcript(&mut output, &item?, name, is_remote)?;
        }
    } else {
        add_transcript(&mut output, value, name, is_remote)?;
    }
    Ok(Some(output))
}

/// Adds a transcript with its metadata and tracks; metadata of an earlier transcript stays.
fn add_transcript(
    output: &mut SupplyOutput,
    item: &Bound<'_, PyAny>,
    name: &str,
    is_remote: bool,
) -> PyResult<()> {
    let object = item.cast::<Transcript>().map_err(|_| {
        let class = item.get_type();
        PyTypeError::new_err(format!(
            "a supplier must return a Transcript, a list or tuple of them, or None, not {class}"
        ))
    })?;
    let details = object.get().details(item.py())?;
    let mut transcript = transcript_core::transcript::Transcript::clone(object.get().inner(item.py())?);
    // A remote service names its own source.
    if !is_remote {
        name.clone_into(&mut transcript.source);
    }
    for track in details.tracks.iter().chain([&transcript.track]) {
        if !output.known_tracks.iter().any(|known| known.is_same(track)) {
            output.known_tracks.push(track.clone());
        }
    }
    output.metadata = mem::take(&mut output.metadata).or(&details.metadata);
    output.transcripts.push(transcript);
    Ok(())
}

/// Maps a Python exception to a supply error.
///
/// `SupplyError` names its reason. Any other exception may pass, unless it is one that a bug raises: libraries have
/// their own classes for failed connections.
fn to_supply_error(name: &str, error: PyErr) -> SupplyError {
    let read = attached(|py| {
        let value = error.value(py);
        let message = format!("The supplier {name} raised {error}.");
        let attribute = |name: &str| value.getattr(name).ok();
        let reason = attribute("reason").and_then(|reason| reason.extract::<String>().ok());
        let retry_after = attribute("retry_after").and_then(|retry_after| retry_after.extract::<f64>().ok());
        let retry_after = retry_after.and_then(|retry_after| Duration::try_from_secs_f64(retry_after).ok());
        let class =
            py.import("verbatim_transcripts._errors").and_then(|errors| errors.getattr("SupplyError"));
        let is_supply_error = class.is_ok_and(|class| value.is_instance(&class).unwrap_or(false));
        let reason = reason.filter(|_| is_supply_error);
        let failure = match reason.and_then(|reason| reason_named(&reason, retry_after)) {
            Some(reason) => SupplyError::new(reason, value.to_string()),
            // Neither says anything about the platform: it neither opens nor closes a breaker.
            None => {
                events::record_exception(py, "supplier", name, &error);
                let failure = SupplyError::new(SupplyReason::PlatformFault, message);
                // A `SupplyError` here has an unknown reason.
                if is_supply_error || is_bug(py, &error) { failure.defect() } else { failure.video_only() }
            }
        };
        let failure = failure.with_cause(exception_cause::to_cause(py, &error));
        match retry_after {
            Some(retry_after) => failure.with_retry_after(retry_after),
            None => failure,
        }
    });
    read.unwrap_or_else(|| SupplyError::new(SupplyReason::Cancelled, "The interpreter is exiting."))
}

/// Whether an exception is one that a bug raises, and not a failed request.
fn is_bug(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyTypeError>(py)
        || error.is_instance_of::<PyAttributeError>(py)
        || error.is_instance_of::<PyNameError>(py)
        || error.is_instance_of::<PyLookupError>(py)
        || error.is_instance_of::<PyImportError>(py)
        || error.is_instance_of::<PyAssertionError>(py)
        || error.is_instance_of::<PyNotImplementedError>(py)
}

/// The reason with this name, of those that a supplier can report.
fn reason_named(name: &str, retry_after: Option<Duration>) -> Option<SupplyReason> {
    use SupplyReason as Reason;
    let start = retry_after.map(|wait| Clock::now(&SystemClock::default()).plus(wait));
    let reasons = [
        Reason::NoCaptions,
        Reason::NoLanguage(Vec::new()),
        Reason::Private,
        Reason::Removed,
        Reason::Region,
        Reason::Age,
        Reason::Members,
        Reason::Payment,
        Reason::Login,
        Reason::Live,
        Reason::Upcoming(start),
        Reason::Throttled(retry_after),
        Reason::BotCheck,
        Reason::OtherVideo,
        Reason::Timeout,
        Reason::Unreachable,
        Reason::PlatformFault,
        Reason::Unreadable,
        Reason::Stale,
        Reason::Misconfigured,
    ];
    reasons.into_iter().find(|reason| reason.as_str() == name)
}
