//! A Python object as a supplier.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use pyo3::{
    exceptions::{PyRuntimeError, PyTypeError, PyValueError},
    intern,
    prelude::*,
    sync::PyOnceLock,
    types::{PyList, PyTuple},
};
use transcript_core::{
    archive::Wish,
    supplier::{self, Supplied, Supplier, SupplierCard, SupplierKind, SupplyError, SupplyReason, Watcher},
    transcript::LanguageTag,
    video::{Platform, VideoId, VideoLink},
};

use super::call::Asked;
use crate::{ends::attached, raised, transcript::Transcript};

/// What a supplier written in Python is asked: for which video, in which language, and who wants it.
#[pyclass(frozen, module = "verbatim._native")]
pub(crate) struct Ask {
    /// Whose supplier is asked.
    owner: u64,
    video: VideoId,
    wish: Wish,
    seconds: f64,
    watcher: Arc<dyn Watcher>,
}

#[pymethods]
impl Ask {
    /// The platform: `video_site`, `short_video`, `reels` or `microblog`.
    #[getter]
    fn platform(&self) -> &'static str {
        self.video.platform().as_str()
    }

    /// The video's id on its platform.
    #[getter]
    fn video_id(&self) -> &str {
        self.video.id()
    }

    /// The video's address.
    #[getter]
    fn url(&self) -> String {
        self.video.address()
    }

    /// The wished language as a BCP 47 tag; None for the default: English, else the spoken language.
    #[getter]
    fn lang(&self) -> Option<&str> {
        match &self.wish {
            Wish::Default => None,
            Wish::Language(tag) => Some(tag.as_str()),
        }
    }

    /// How many seconds there were for it when it was asked.
    #[getter]
    fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Whether nobody wants the answer any more. Long work asks between its steps.
    #[getter]
    fn cancelled(&self) -> bool {
        self.watcher.cancelled()
    }

    /// Tells that the work reached `done` of `of` in a stage; `of` is 0 when nobody knows.
    #[pyo3(signature = (name, done=0, of=0))]
    fn stage(&self, name: &str, done: u64, of: u64) {
        self.watcher.stage(name, done, of);
    }

    fn __repr__(&self) -> String {
        format!("<Ask {} {}>", self.video, self.wish)
    }
}

impl Ask {
    /// Refuses a call out of a supplier that would wait for the supplier's own answer.
    ///
    /// # Errors
    /// `RuntimeError`.
    pub(crate) fn refuse_within(
        py: Python<'_>,
        owner: u64,
        link: &str,
        language: Option<&str>,
    ) -> PyResult<()> {
        static WITHIN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let arguments = WITHIN.import(py, "verbatim._calls", "within")?.call_method0(intern!(py, "get"))?;
        let Ok(ask) = arguments.get_item(0).and_then(|ask| Ok(ask.cast_into::<Self>()?)) else {
            return Ok(());
        };
        let ask = ask.get();
        let is_same_video =
            VideoLink::parse(link).is_ok_and(|link| link == VideoLink::Video(ask.video.clone()));
        let is_same_wish = match (&ask.wish, language) {
            (Wish::Default, None) => true,
            (Wish::Language(wished), Some(tag)) => LanguageTag::parse(tag).is_ok_and(|tag| tag == *wished),
            _ => false,
        };
        match ask.owner == owner && is_same_video && is_same_wish {
            true => Err(PyRuntimeError::new_err(
                "a supplier cannot ask for the transcript that it is asked for: it would wait for itself",
            )),
            false => Ok(()),
        }
    }
}

/// A Python object as a supplier: it has a `name` and a method `supply`.
pub(crate) struct PySupplier {
    /// Who asks it.
    owner: u64,
    asked: Asked,
    card: SupplierCard,
}

impl fmt::Debug for PySupplier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PySupplier").field("name", &self.card.name).finish_non_exhaustive()
    }
}

impl PySupplier {
    /// Reads who the supplier is.
    ///
    /// # Errors
    /// `TypeError` or `ValueError`, saying what it lacks.
    pub(crate) fn new(owner: u64, object: Bound<'_, PyAny>) -> PyResult<Self> {
        let class = object.get_type();
        let lacks = |what: &str| PyTypeError::new_err(format!("the supplier {class} must have {what}"));
        let name = object.getattr("name").ok().and_then(|name| name.extract::<String>().ok());
        let name = name.filter(|name| !name.is_empty()).ok_or_else(|| lacks("a name: str"))?;
        if !object.getattr("supply").is_ok_and(|method| method.is_callable()) {
            return Err(lacks("a method supply(ask)"));
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
                        "a supplier's kind is 'captions', 'speech' or 'remote'",
                    ));
                }
            },
        };
        Ok(Self { owner, asked: Asked::new(object), card: SupplierCard { name, platforms, kind } })
    }
}

/// The platform with this wire name.
pub(crate) fn platform(name: &str) -> PyResult<Platform> {
    Platform::from_wire(name).ok_or_else(|| {
        let names = Platform::ALL.map(Platform::as_str).join(", ");
        PyValueError::new_err(format!("there is no platform {name:?}: it is one of {names}"))
    })
}

#[async_trait]
impl Supplier for PySupplier {
    fn card(&self) -> SupplierCard {
        self.card.clone()
    }

    async fn supply(&self, ask: supplier::Ask, watcher: Arc<dyn Watcher>) -> Result<Supplied, SupplyError> {
        let now = verbatim::SystemClock::default();
        let seconds = ask.deadline.since(transcript_core::Clock::now(&now)).as_secs_f64();
        let ask = Ask { owner: self.owner, video: ask.video, wish: ask.wish, seconds, watcher };
        let name = self.card.name.clone();
        let is_remote = self.card.kind == SupplierKind::Remote;
        let given = self.asked.call(
            "supply",
            move |py| PyTuple::new(py, [Bound::new(py, ask)?]),
            move |given| tracks(given, &name, is_remote),
        );
        match given.await {
            Ok(Some(tracks)) => {
                let known_tracks = tracks.iter().map(|track| track.track.clone()).collect();
                Ok(Supplied { tracks, known_tracks })
            }
            Ok(None) => Err(SupplyError::new(SupplyReason::NoCaptions, "The video has no captions.")),
            Err(error) => Err(failure(&self.card.name, error)),
        }
    }
}

/// The transcripts that a supplier returned; none for None.
fn tracks(
    given: &Bound<'_, PyAny>,
    name: &str,
    is_remote: bool,
) -> PyResult<Option<Vec<transcript_core::transcript::Transcript>>> {
    let wrong = |what: &Bound<'_, PyAny>| {
        let what = what.get_type();
        PyTypeError::new_err(format!("a supplier returns a Transcript, a list of them or None, not {what}"))
    };
    let read = |item: &Bound<'_, PyAny>| {
        let transcript = item.cast::<Transcript>().map_err(|_| wrong(item))?;
        let mut transcript =
            transcript_core::transcript::Transcript::clone(transcript.get().inner(item.py())?);
        // Another service names who answered there.
        if !is_remote {
            name.clone_into(&mut transcript.source);
        }
        Ok(transcript)
    };
    if given.is_none() {
        return Ok(None);
    }
    match given.cast::<PyList>() {
        Ok(list) => list.iter().map(|item| read(&item)).collect::<PyResult<Vec<_>>>().map(Some),
        Err(_) => read(given).map(|track| Some(vec![track])),
    }
}

/// The failure that an exception is. `SupplyFailed` names its reason; any other is the supplier's own fault.
fn failure(name: &str, error: PyErr) -> SupplyError {
    let read = attached(|py| {
        let value = error.value(py);
        let sentence = format!("The supplier {name} raised {error}.");
        let attribute = |name: &str| value.getattr(name).ok();
        let reason = attribute("reason").and_then(|reason| reason.extract::<String>().ok());
        let after = attribute("retry_after").and_then(|after| after.extract::<f64>().ok());
        let after = after.and_then(|after| Duration::try_from_secs_f64(after).ok());
        let class = py.import("verbatim._errors").and_then(|errors| errors.getattr("SupplyFailed"));
        let is_told = class.is_ok_and(|class| value.is_instance(&class).unwrap_or(false));
        let failure = match reason.filter(|_| is_told).and_then(|reason| of_name(&reason, after)) {
            Some(reason) => SupplyError::new(reason, value.to_string()),
            None => SupplyError::new(SupplyReason::PlatformFault, sentence),
        };
        raised::keep(failure.message(), error.clone_ref(py));
        match after {
            Some(after) => failure.again_after(after),
            None => failure,
        }
    });
    read.unwrap_or_else(|| SupplyError::new(SupplyReason::Cancelled, "The program is on its way out."))
}

/// The reason with this name, of those that a supplier can tell.
fn of_name(name: &str, after: Option<Duration>) -> Option<SupplyReason> {
    use SupplyReason as Reason;
    let plain = [
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
        Reason::Upcoming(None),
        Reason::Throttled(after),
        Reason::BotCheck,
        Reason::OtherVideo,
        Reason::Timeout,
        Reason::Unreachable,
        Reason::PlatformFault,
        Reason::Unreadable,
        Reason::Stale,
        Reason::Misconfigured,
    ];
    plain.into_iter().find(|reason| reason.as_str() == name)
}
