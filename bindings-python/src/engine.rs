//! Transcripts from an archive and suppliers.

use std::{pin::pin, sync::Arc};

use pyo3::{
    prelude::*,
    pyclass::{PyTraverseError, PyVisit},
    types::{PyDict, PyString},
};
use transcript_core::{
    PageRequest,
    archive::ArchivedTrack,
    ids::{Cursor, GrantId},
    transcript::LanguageTag,
};
use verbatim::{
    GetOutcome, GetRequest, ImportEffect, ImportOutcome, ImportRequest, RefreshOutcome, SearchRequest,
    withdrawal_to_json,
};

use crate::{
    archive_search::{self, SearchParams},
    batch::Batch,
    components::Components,
    connection::Connection,
    events,
    exceptions::{BindingError, core_exception},
    languages::Languages,
    lazy_open::LazyVerbatim,
    options,
    pending::{self, PendingCall},
    ports::{PyMailer, SupplyRequest},
    segment::seconds,
    transcript::Transcript,
    video_list,
};

/// An archive and suppliers. Every call returns a [`PendingCall`], except the most frequent one, [`Engine::get_now`].
#[pyclass(frozen, module = "verbatim_transcripts._native")]
pub(crate) struct Engine {
    /// Identifies this engine to its custom suppliers.
    number: u64,
    /// What the garbage collector traverses.
    components: Components,
    lazy: Arc<LazyVerbatim>,
}

/// The request of a call with these arguments.
///
/// # Errors
/// `ValueError` for a timeout that is no number of seconds, or an empty list of languages.
fn get_request(
    link: String,
    languages: Option<Languages>,
    translated: bool,
    fetch: bool,
    timeout: Option<f64>,
) -> PyResult<GetRequest> {
    let mut others = languages.map_or(Ok(Vec::new()), Languages::into_list)?.into_iter();
    Ok(GetRequest {
        link,
        language: others.next(),
        other_languages: others.collect(),
        translated,
        archived_only: !fetch,
        timeout: timeout.map(|timeout| options::duration("timeout", timeout)).transpose()?,
    })
}

/// Checks the arguments that all links of a batch have in common, before its first result.
///
/// # Errors
/// As [`get_request`]; `InvalidInput` for a malformed language.
#[pyfunction]
pub(crate) fn _check_call(
    py: Python<'_>,
    languages: Option<Languages>,
    translated: bool,
    fetch: bool,
    #[pyo3(from_py_with = options::extract::<Option<f64>>)] timeout: Option<f64>,
) -> PyResult<()> {
    let request = get_request(String::new(), languages, translated, fetch, timeout)?;
    let mut tags = request.language.iter().chain(&request.other_languages);
    let checked = tags.try_for_each(|tag| LanguageTag::parse(tag).map(drop));
    checked.map_err(|error| core_exception(py, &error))
}

/// A transcript as a Python object.
fn to_object(py: Python<'_>, transcript: Transcript) -> PyResult<Py<PyAny>> {
    Ok(Bound::new(py, transcript)?.into_any().unbind())
}

fn py_none(py: Python<'_>) -> Py<PyAny> {
    py.None()
}

fn found_transcript(outcome: GetOutcome) -> Result<Transcript, BindingError> {
    match outcome {
        GetOutcome::Found(found) => Ok(Transcript::from_stored(&found.stored, found.from_cache)),
        GetOutcome::Missing(missing) => Err(BindingError::Missing(Box::new(missing))),
    }
}

impl Engine {
    /// Reads the archive, unless the caller just did, and then calls the suppliers.
    ///
    /// A call of a batch waits for paused suppliers.
    fn fetch(
        &self,
        py: Python<'_>,
        request: Arc<GetRequest>,
        archive_first: bool,
        batch: Option<verbatim::Batch>,
    ) -> PyResult<PendingCall> {
        SupplyRequest::reject_own_transcript(py, self.number, &request)?;
        let open = self.lazy.open_with_cache(py)?;
        let work = async move {
            let (verbatim, cache) = open.await?;
            if let Some(cache) = cache.filter(|_| archive_first)
                && let Some(archived) = cache.get(&request).await
            {
                return Ok(Transcript::from_archive(archived));
            }
            // Most of this future's size is for transcripts that are not archived: boxed, it is moved only then.
            let request = Arc::unwrap_or_clone(request);
            found_transcript(match batch {
                Some(batch) => Box::pin(batch.get(&verbatim, request)).await?,
                None => Box::pin(verbatim.get(request)).await?,
            })
        };
        Ok(PendingCall::new(work, to_object))
    }
}

#[pymethods]
impl Engine {
    #[new]
    fn new(keywords: &Bound<'_, PyDict>) -> PyResult<Self> {
        let mailer = keywords.get_item("mailer")?.filter(|mailer| !mailer.is_none());
        let mut components = Components::new();
        let mailer = mailer.map(|mailer| PyMailer::new(mailer, &mut components)).transpose()?;
        let mailer = mailer.map(|mailer| Arc::new(mailer) as _);
        events::start_logging(keywords.py())?;
        let (options, number) = options::read(keywords, &mut components)?;
        if options.detach_unpaid {
            // Fetches of a service use its components after the last reference to it, and settle with its ledger.
            components.clear();
        }
        Ok(Self { number, components, lazy: Arc::new(LazyVerbatim::new(options, mailer)) })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.components.iter().try_for_each(|component| component.traverse(visit))
    }

    fn __clear__(&self) {
        self.components.iter().for_each(|component| component.clear());
    }

    /// Whether the engine is closed.
    #[getter]
    fn is_closed(&self) -> bool {
        self.lazy.is_closed()
    }

    /// Same result as `get(..).wait()`. The archive is read on this thread, without a task. A supplier that requests
    /// its own transcript is therefore rejected only if the transcript is not archived.
    fn get_now(
        &self,
        py: Python<'_>,
        link: String,
        languages: Option<Languages>,
        translated: bool,
        fetch: bool,
        #[pyo3(from_py_with = options::extract::<Option<f64>>)] timeout: Option<f64>,
    ) -> PyResult<Py<PyAny>> {
        let request = get_request(link, languages, translated, fetch, timeout)?;
        let Some((cache, runtimes)) = self.lazy.cache(py) else {
            return self.fetch(py, Arc::new(request), true, None)?.wait(py);
        };
        if let Some(archived) = cache.peek(&request) {
            return to_object(py, Transcript::from_archive(archived));
        }
        let request = Arc::new(request);
        let archived = pending::wait_for(py, runtimes, pin!(cache.get(&request)))?;
        match archived {
            Some(archived) => to_object(py, Transcript::from_archive(archived)),
            None => self.fetch(py, request, false, None)?.wait(py),
        }
    }

    #[pyo3(signature = (link, languages, translated, fetch, timeout, batch=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments in Python")]
    fn get(
        &self,
        py: Python<'_>,
        link: String,
        languages: Option<Languages>,
        translated: bool,
        fetch: bool,
        #[pyo3(from_py_with = options::extract::<Option<f64>>)] timeout: Option<f64>,
        batch: Option<&Bound<'_, Batch>>,
    ) -> PyResult<PendingCall> {
        let request = Arc::new(get_request(link, languages, translated, fetch, timeout)?);
        match self.lazy.cache(py).and_then(|(cache, _)| cache.peek(&request)) {
            Some(archived) => Ok(PendingCall::ready(to_object(py, Transcript::from_archive(archived))?)),
            None => self.fetch(py, request, true, batch.map(|batch| batch.get().waits.clone())),
        }
    }

    /// The tracks of a video as `(language, kind, name, original, archived)`.
    fn languages(
        &self,
        py: Python<'_>,
        link: String,
        fetch: bool,
        #[pyo3(from_py_with = options::extract::<Option<f64>>)] timeout: Option<f64>,
    ) -> PyResult<PendingCall> {
        let request = get_request(link, None, true, fetch, timeout)?;
        SupplyRequest::reject_own_transcript(py, self.number, &request)?;
        let open = self.lazy.open(py)?;
        let work = async move {
            let tracks = open.await?.tools().tracks(request).await?;
            tracks.map_err(|missing| BindingError::Missing(Box::new(missing)))
        };
        Ok(PendingCall::new(work, |py, tracks| {
            let tracks = tracks.into_iter().map(|ArchivedTrack { track, revision, .. }| {
                let kind = track.kind.as_str();
                (track.language.as_str().to_owned(), kind, track.name, track.original, revision.is_some())
            });
            Ok(tracks.collect::<Vec<_>>().into_pyobject(py)?.into_any().unbind())
        }))
    }

    fn refresh(
        &self,
        py: Python<'_>,
        link: String,
        language: Option<String>,
        translated: bool,
    ) -> PyResult<PendingCall> {
        let request = GetRequest { link, language, translated, ..GetRequest::default() };
        SupplyRequest::reject_own_transcript(py, self.number, &request)?;
        let open = self.lazy.open_to_change(py)?;
        let work = async move {
            let (verbatim, _guard) = open.await?;
            match verbatim.tools().refresh(request).await? {
                RefreshOutcome::Changed(stored) => Ok((true, Transcript::from_stored(&stored, false))),
                RefreshOutcome::Unchanged(stored) => Ok((false, Transcript::from_stored(&stored, false))),
                RefreshOutcome::Missing(missing) => Err(BindingError::Missing(Box::new(missing))),
            }
        };
        Ok(PendingCall::new(work, |py, (is_changed, transcript)| {
            Ok((to_object(py, transcript)?, is_changed).into_pyobject(py)?.into_any().unbind())
        }))
    }

    #[expect(clippy::too_many_arguments, reason = "keyword arguments in Python")]
    fn import_(
        &self,
        py: Python<'_>,
        link: String,
        captions: Vec<u8>,
        language: Option<String>,
        title: Option<String>,
        author: Option<String>,
        generated: bool,
        replace: bool,
    ) -> PyResult<PendingCall> {
        let open = self.lazy.open_to_change(py)?;
        let import = ImportRequest { link, captions, language, title, author, generated, replace };
        let work = async move {
            let (verbatim, _guard) = open.await?;
            Ok(verbatim.tools().import(import).await?)
        };
        Ok(PendingCall::new(work, |py, imported| import_tuple(py, &imported)))
    }

    fn search(
        &self,
        py: Python<'_>,
        query: String,
        language: Option<String>,
        #[pyo3(from_py_with = options::extract::<u32>)] limit: u32,
    ) -> PyResult<PendingCall> {
        let open = self.lazy.open(py)?;
        let work =
            async move { Ok(open.await?.tools().search(SearchRequest { query, language, limit }).await?) };
        Ok(PendingCall::new(work, |py, hits| {
            let hits: PyResult<Vec<_>> = hits
                .into_iter()
                .map(|hit| {
                    let transcript = Bound::new(py, Transcript::from_stored(&hit.stored, true))?;
                    let (start, end) = (seconds(hit.start_ms), seconds(hit.end_ms));
                    (transcript, hit.text, start, end, hit.url).into_pyobject(py)
                })
                .collect();
            Ok(hits?.into_pyobject(py)?.into_any().unbind())
        }))
    }

    /// One page of a search of the whole archive; see [`archive_search::page_object`].
    fn search_videos(
        &self,
        py: Python<'_>,
        params: &Bound<'_, SearchParams>,
        cursor: Option<String>,
    ) -> PyResult<PendingCall> {
        let params = params.get().at(cursor);
        let open = self.lazy.open(py)?;
        let work = async move { Ok(open.await?.search().search(&params).await?) };
        Ok(PendingCall::new(work, |py, page| archive_search::page_object(py, &page)))
    }

    /// The page at a position of the list with this canonical address; see [`video_list::page_object`].
    ///
    /// A call of a batch waits for a platform that throttles.
    fn video_page(
        &self,
        py: Python<'_>,
        address: String,
        since_ms: Option<i64>,
        position: Option<String>,
        batch: Option<&Bound<'_, Batch>>,
    ) -> PyResult<PendingCall> {
        let open = self.lazy.open(py)?;
        let waits = Batch::waits_of(batch);
        let work =
            async move { video_list::read_page(&open.await?, &waits, address, since_ms, position).await };
        Ok(PendingCall::new(work, video_list::page_object))
    }

    /// One page of the archived transcripts: `(transcripts, cursor of the next page or None)`.
    fn archived(&self, py: Python<'_>, after: Option<String>, limit: u32) -> PyResult<PendingCall> {
        let open = self.lazy.open(py)?;
        let page = PageRequest { after: after.map(Cursor::new), limit };
        let work = async move { Ok(open.await?.tools().list_archived(page).await?) };
        Ok(PendingCall::new(work, |py, page| {
            let transcripts =
                page.items.iter().map(|stored| Bound::new(py, Transcript::from_stored(stored, true)));
            let transcripts = transcripts.collect::<PyResult<Vec<_>>>()?;
            let next = page.next.map(|cursor| cursor.as_str().to_owned());
            Ok((transcripts, next).into_pyobject(py)?.into_any().unbind())
        }))
    }

    /// One page of the exports: `([(platform, video, name, transcript, JSON)], [exception of an unreadable transcript],
    /// cursor of the next page or None)`.
    fn exports(&self, py: Python<'_>, after: Option<String>, limit: u32) -> PyResult<PendingCall> {
        let open = self.lazy.open(py)?;
        let page = PageRequest { after: after.map(Cursor::new), limit };
        let work = async move { Ok(open.await?.tools().list_exports(page).await?) };
        Ok(PendingCall::new(work, |py, page| {
            let exports = page.items.iter().flat_map(|video| &video.archived).map(|export| {
                let video = &export.stored.transcript.video;
                let transcript = Bound::new(py, Transcript::from_stored(&export.stored, true))?;
                let json = export.to_json().map_err(|error| core_exception(py, &error))?;
                (video.platform().as_str(), video.id(), export.name(), transcript, json).into_pyobject(py)
            });
            let exports = exports.collect::<PyResult<Vec<_>>>()?;
            let unreadable = page.items.iter().flat_map(|video| &video.unreadable);
            let unreadable: Vec<_> =
                unreadable.map(|track| core_exception(py, &track.error).into_value(py)).collect();
            let next = page.next.map(|cursor| cursor.as_str().to_owned());
            Ok((exports, unreadable, next).into_pyobject(py)?.into_any().unbind())
        }))
    }

    /// One page of the withdrawn videos: `([(platform, video, JSON)], cursor of the next page or None)`.
    fn withdrawals(&self, py: Python<'_>, after: Option<String>, limit: u32) -> PyResult<PendingCall> {
        let open = self.lazy.open(py)?;
        let page = PageRequest { after: after.map(Cursor::new), limit };
        let work = async move { Ok(open.await?.archive().list_withdrawn(page).await?) };
        Ok(PendingCall::new(work, |py, page| {
            let withdrawals = page.items.iter().map(|video| {
                let json = withdrawal_to_json(video).map_err(|error| core_exception(py, &error))?;
                (video.platform().as_str(), video.id(), json).into_pyobject(py)
            });
            let withdrawals = withdrawals.collect::<PyResult<Vec<_>>>()?;
            let next = page.next.map(|cursor| cursor.as_str().to_owned());
            Ok((withdrawals, next).into_pyobject(py)?.into_any().unbind())
        }))
    }

    /// The number of archived videos that no list has; 0 in memory, where no row is damaged.
    fn unlisted_videos(&self, py: Python<'_>) -> PyResult<PendingCall> {
        let (open, is_in_memory) = (self.lazy.open(py)?, self.lazy.is_in_memory());
        let work = async move {
            let verbatim = open.await?;
            Ok(if is_in_memory { 0 } else { verbatim.tools().unlisted_videos().await? })
        };
        Ok(PendingCall::new(work, |py, count: u64| Ok(count.into_pyobject(py)?.into_any().unbind())))
    }

    /// Imports all transcripts of a body that names their videos.
    fn import_all(&self, py: Python<'_>, body: Vec<u8>, replace: bool) -> PyResult<PendingCall> {
        let open = self.lazy.open_to_change(py)?;
        let work = async move {
            let (verbatim, _guard) = open.await?;
            Ok(verbatim.tools().import_all(&body, replace).await?)
        };
        Ok(PendingCall::new(work, |py, outcomes| {
            let outcomes = outcomes.iter().map(|outcome| import_tuple(py, outcome));
            Ok(outcomes.collect::<PyResult<Vec<_>>>()?.into_pyobject(py)?.into_any().unbind())
        }))
    }

    fn delete(&self, py: Python<'_>, link: String) -> PyResult<PendingCall> {
        let open = self.lazy.open_to_change(py)?;
        let work = async move {
            let (verbatim, _guard) = open.await?;
            let video = verbatim.tools().known_video(&link).await?;
            Ok(verbatim.tools().delete(&video).await?)
        };
        Ok(PendingCall::new(work, |py, ()| Ok(py_none(py))))
    }

    fn stats(&self, py: Python<'_>) -> PyResult<PendingCall> {
        let open = self.lazy.open(py)?;
        let work = async move { Ok(open.await?.tools().stats().await?) };
        Ok(PendingCall::new(work, |py, stats| {
            let dict = PyDict::new(py);
            dict.set_item("transcripts", stats.transcripts)?;
            dict.set_item("videos", stats.videos)?;
            Ok(dict.into_any().unbind())
        }))
    }

    /// Grants credits to an account, once per id: `(email, remaining credits)`.
    fn grant(
        &self,
        py: Python<'_>,
        account: String,
        #[pyo3(from_py_with = options::extract::<u64>)] credits: u64,
        id: String,
        memo: String,
    ) -> PyResult<PendingCall> {
        let open = self.lazy.open(py)?;
        let work = async move {
            let verbatim = open.await?;
            let (admin, id) = (&verbatim.accounts().admin, GrantId::operator_grant(id));
            let view = admin.grant(&account, id, credits, &memo).await?;
            Ok((view.account.email, view.credits.remaining))
        };
        Ok(PendingCall::new(work, |py, balance| Ok(balance.into_pyobject(py)?.into_any().unbind())))
    }

    /// Connects a client of the service with this key.
    fn connect(&self, key: Option<String>) -> Connection {
        Connection::local(Arc::clone(&self.lazy), key)
    }

    fn close(&self, py: Python<'_>) -> PyResult<PendingCall> {
        Ok(PendingCall::new(self.lazy.close(py)?, |py, ()| Ok(py_none(py))))
    }
}

/// An import outcome as `(language, segments, effect, unreadable, left out)`.
fn import_tuple(py: Python<'_>, imported: &ImportOutcome) -> PyResult<Py<PyAny>> {
    let name = match imported.withdrawal.unwrap_or_else(|| imported.effect()) {
        ImportEffect::Added => "added",
        ImportEffect::Replaced => "replaced",
        ImportEffect::Kept => "kept",
        ImportEffect::Unchanged => "unchanged",
    };
    let language = PyString::new(py, imported.language.as_str());
    let counts = (imported.unreadable.count, imported.left_out.count);
    let all = (language, imported.segments, name, counts.0, counts.1);
    Ok(all.into_pyobject(py)?.into_any().unbind())
}
