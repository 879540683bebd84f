//! Transcripts out of an archive and from suppliers.

use std::{pin::pin, sync::Arc};

use pyo3::{
    prelude::*,
    types::{PyDict, PyString},
};
use transcript_core::ids::GrantId;
use verbatim::{Effect, Get, GetOutcome, Import, Imported, Refreshed, Search};

use crate::{
    desk::Desk,
    fault::Fault,
    opener::Opener,
    options,
    pending::{self, Pending},
    ports::{Ask, PyMailer},
    segment::seconds,
    transcript::Transcript,
};

/// An archive and suppliers. Every call gives a [`Pending`], but for what a script asks most often ([`Engine::get_now`]).
#[pyclass(frozen, module = "verbatim._native")]
pub(crate) struct Engine {
    /// By which its suppliers know it.
    number: u64,
    opener: Arc<Opener>,
}

/// A transcript as the object that Python sees.
fn object(py: Python<'_>, transcript: Transcript) -> PyResult<Py<PyAny>> {
    Ok(Bound::new(py, transcript)?.into_any().unbind())
}

fn none(py: Python<'_>) -> Py<PyAny> {
    py.None()
}

fn found(outcome: GetOutcome) -> Result<Transcript, Fault> {
    match outcome {
        GetOutcome::Found(found) => Ok(Transcript::of(&found.stored, found.from_cache)),
        GetOutcome::Missing(missing) => Err(Fault::Missing(Box::new(missing))),
    }
}

impl Engine {
    /// Asks the archive, unless it was asked a moment ago, and then the suppliers.
    fn asked(&self, py: Python<'_>, ask: Arc<Get>, archive_first: bool) -> PyResult<Pending> {
        Ask::refuse_within(py, self.number, &ask.link, ask.language.as_deref())?;
        let open = self.opener.open_with_at_hand(py)?;
        let work = async move {
            let (parts, at_hand) = open.await?;
            if let Some(at_hand) = at_hand.filter(|_| archive_first)
                && let Some(archived) = at_hand.archived(&ask).await
            {
                return Ok(Transcript::archived(archived));
            }
            // Most of what this would be is for what is not archived: it is made, and moved, only then.
            found(Box::pin(parts.get(Arc::unwrap_or_clone(ask))).await?)
        };
        Ok(Pending::new(work, object))
    }
}

#[pymethods]
impl Engine {
    #[new]
    fn new(keywords: &Bound<'_, PyDict>) -> PyResult<Self> {
        let mailer = keywords.get_item("mailer")?.filter(|mailer| !mailer.is_none());
        let mailer = mailer.map(|mailer| Arc::new(PyMailer::new(mailer)) as _);
        let (options, number) = options::read(keywords)?;
        Ok(Self { number, opener: Arc::new(Opener::new(options, mailer)) })
    }

    /// Whether it was closed.
    #[getter]
    fn is_closed(&self) -> bool {
        self.opener.is_closed()
    }

    /// What `get(..).wait()` gives. The archive is asked at once, without the detours of work that may take time; so a
    /// supplier that asks for what it is asked for is refused only where nothing of it is archived.
    fn get_now(&self, py: Python<'_>, link: String, language: Option<String>) -> PyResult<Py<PyAny>> {
        let ask = Arc::new(Get { link, language });
        let Some((at_hand, runtimes)) = self.opener.at_hand(py) else {
            return self.asked(py, ask, true)?.wait(py);
        };
        let mut archived = at_hand.peek(&ask);
        if archived.is_none() {
            archived = pending::wait_for(py, runtimes, pin!(at_hand.archived(&ask)))?;
        }
        match archived {
            Some(archived) => object(py, Transcript::archived(archived)),
            None => self.asked(py, ask, false)?.wait(py),
        }
    }

    fn get(&self, py: Python<'_>, link: String, language: Option<String>) -> PyResult<Pending> {
        let ask = Arc::new(Get { link, language });
        match self.opener.at_hand(py).and_then(|(at_hand, _)| at_hand.peek(&ask)) {
            Some(archived) => Ok(Pending::there(object(py, Transcript::archived(archived))?)),
            None => self.asked(py, ask, true),
        }
    }

    fn refresh(&self, py: Python<'_>, link: String, language: Option<String>) -> PyResult<Pending> {
        Ask::refuse_within(py, self.number, &link, language.as_deref())?;
        let open = self.opener.open_to_change(py)?;
        let work = async move {
            let (parts, _changing) = open.await?;
            match parts.refresh(Get { link, language }).await? {
                Refreshed::Changed(stored) => Ok((true, Transcript::of(&stored, false))),
                Refreshed::Unchanged(stored) => Ok((false, Transcript::of(&stored, false))),
                Refreshed::Missing(missing) => Err(Fault::Missing(Box::new(missing))),
            }
        };
        Ok(Pending::new(work, |py, (is_changed, transcript)| {
            Ok((object(py, transcript)?, is_changed).into_pyobject(py)?.into_any().unbind())
        }))
    }

    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
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
    ) -> PyResult<Pending> {
        let open = self.opener.open_to_change(py)?;
        let import = Import { link, captions, language, title, author, generated, replace };
        let work = async move {
            let (parts, _changing) = open.await?;
            Ok(parts.import(import).await?)
        };
        Ok(Pending::new(work, |py, imported| told(py, &imported)))
    }

    fn search(
        &self,
        py: Python<'_>,
        query: String,
        language: Option<String>,
        limit: u32,
    ) -> PyResult<Pending> {
        let open = self.opener.open(py)?;
        let work = async move { Ok(open.await?.search(Search { query, language, limit }).await?) };
        Ok(Pending::new(work, |py, hits| {
            let hits: PyResult<Vec<_>> = hits
                .into_iter()
                .map(|hit| {
                    let transcript = Bound::new(py, Transcript::of(&hit.stored, true))?;
                    let (start, end) = (seconds(hit.start_ms), seconds(hit.end_ms));
                    (transcript, hit.text, start, end, hit.url).into_pyobject(py)
                })
                .collect();
            Ok(hits?.into_pyobject(py)?.into_any().unbind())
        }))
    }

    fn forget(&self, py: Python<'_>, link: String) -> PyResult<Pending> {
        let open = self.opener.open_to_change(py)?;
        let work = async move {
            let (parts, _changing) = open.await?;
            let video = parts.known_video(&link).await?;
            Ok(parts.delete(&video).await?)
        };
        Ok(Pending::new(work, |py, ()| Ok(none(py))))
    }

    fn stats(&self, py: Python<'_>) -> PyResult<Pending> {
        let open = self.opener.open(py)?;
        let work = async move { Ok(open.await?.stats().await?) };
        Ok(Pending::new(work, |py, stats| {
            let dict = PyDict::new(py);
            dict.set_item("transcripts", stats.transcripts)?;
            dict.set_item("videos", stats.videos)?;
            Ok(dict.into_any().unbind())
        }))
    }

    /// Credits for an account, once for each id: `(email, credits left)`.
    fn grant(
        &self,
        py: Python<'_>,
        who: String,
        credits: u64,
        id: String,
        memo: String,
    ) -> PyResult<Pending> {
        let open = self.opener.open(py)?;
        let work = async move {
            let parts = open.await?;
            let view = parts.accounts().grant(&who, GrantId::of_operator(id), credits, &memo).await?;
            Ok((view.account.email, view.credits.remaining))
        };
        Ok(Pending::new(work, |py, told| Ok(told.into_pyobject(py)?.into_any().unbind())))
    }

    /// One caller of the service, with this key.
    fn desk(&self, key: Option<String>) -> Desk {
        Desk::new(Arc::clone(&self.opener), key)
    }

    fn close(&self, py: Python<'_>) -> PyResult<Pending> {
        Ok(Pending::new(self.opener.close(py)?, |py, ()| Ok(none(py))))
    }
}

/// What an import did, as `(language, segments, effect, unreadable, left out)`.
fn told(py: Python<'_>, imported: &Imported) -> PyResult<Py<PyAny>> {
    let name = match imported.effect() {
        Effect::Added => "added",
        Effect::Replaced => "replaced",
        Effect::Kept => "kept",
        Effect::Unchanged => "unchanged",
    };
    let language = PyString::new(py, imported.language.as_str());
    let counts = (imported.unreadable.count, imported.left_out.count);
    let all = (language, imported.segments, name, counts.0, counts.1);
    Ok(all.into_pyobject(py)?.into_any().unbind())
}
