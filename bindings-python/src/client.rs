//! A client of a Verbatim server: both surfaces, over the facade's typed client.

use std::{
    future::Future,
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use pyo3::{exceptions::PyValueError, prelude::*, types::PyDict};
use serde::Serialize;
use transcript_core::{
    accounts::TranscriptAsk,
    lookup::SourceTag,
    wire::{
        lookup::KeyRequest,
        v1::{BuyCredits, ChatQuestion, ChatRole, ChatTurn, Register, Subscribe, VideoTranscript},
    },
};
use verbatim::service::{
    Answered, Facts, IdempotencyKey, LookupRequest, SERVICE_SUPPLIER, ServiceClient, ServiceError,
    ServiceOptions, TextAnswer, TextFormat,
};

use crate::{
    fault::{Fault, of_core},
    pending::Pending,
    runtime::OfProcess,
    transcript::Transcript,
};

/// A server and the key with which it is asked. Every call gives a [`Pending`].
#[pyclass(frozen, module = "verbatim._native")]
pub(crate) struct Server {
    options: Mutex<ServiceOptions>,
    /// Locked for moments only, by who holds the interpreter.
    client: Mutex<Option<OfProcess<ServiceClient>>>,
}

impl Server {
    /// The client of this process; a child's own, with connections of its own.
    fn client(&self, py: Python<'_>) -> PyResult<ServiceClient> {
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = client.as_ref().and_then(OfProcess::get) {
            return Ok(client.clone());
        }
        let options = self.options.lock().unwrap_or_else(PoisonError::into_inner);
        let made = ServiceClient::new(&options).map_err(|error| of_core(py, &error))?;
        *client = Some(OfProcess::new(made.clone()));
        Ok(made)
    }

    /// A call whose answer is JSON for Python.
    fn json<T, F>(&self, py: Python<'_>, call: impl FnOnce(ServiceClient) -> F) -> PyResult<Pending>
    where
        T: Serialize + Send + 'static,
        F: Future<Output = Result<Answered<T>, ServiceError>> + Send + 'static,
    {
        let work = call(self.client(py)?);
        let work = async move { Ok(work.await?) };
        Ok(Pending::new(work, |py, Answered { body, facts }| {
            let json =
                serde_json::to_string(&body).map_err(|error| PyValueError::new_err(error.to_string()))?;
            let object = py.import("json")?.call_method1("loads", (json,))?;
            Ok((object, said(py, &facts)?).into_pyobject(py)?.into_any().unbind())
        }))
    }
}

/// What an answer's headers say.
fn said<'py>(py: Python<'py>, facts: &Facts) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("request_id", facts.request_id.as_deref())?;
    dict.set_item("credits_remaining", facts.credits_remaining)?;
    dict.set_item("is_cached", facts.is_cached)?;
    dict.set_item("is_replayed", facts.is_replayed)?;
    dict.set_item("retry_after", facts.retry_after.map(|wait| wait.as_secs_f64()))?;
    let rate = facts.rate.as_ref();
    dict.set_item("rate_remaining", rate.map(|rate| rate.remaining))?;
    dict.set_item("rate_reset", rate.map(|rate| rate.reset.as_secs_f64()))?;
    Ok(dict)
}

fn name(given: Option<String>) -> Result<Option<IdempotencyKey>, Fault> {
    given.map(IdempotencyKey::new).transpose().map_err(Fault::from)
}

/// The words of an answer for credits.
pub(crate) fn bought(body: VideoTranscript, is_cached: Option<bool>) -> Result<Transcript, Fault> {
    let read = body.into_transcript(SERVICE_SUPPLIER);
    let inner = read.map_err(|what| Fault::Service(ServiceError::Unreadable(what)))?;
    Ok(Transcript::plain(inner, is_cached.unwrap_or(false)))
}

#[pymethods]
impl Server {
    #[new]
    fn new(
        py: Python<'_>,
        base_url: String,
        key: Option<String>,
        timeout: f64,
        retries: u32,
        ca_file: Option<PathBuf>,
    ) -> PyResult<Self> {
        let timeout = Duration::try_from_secs_f64(timeout).ok().filter(|timeout| !timeout.is_zero());
        let timeout = timeout.ok_or_else(|| PyValueError::new_err("timeout must be seconds, more than 0"))?;
        let options =
            ServiceOptions { api_key: key, ca_file, timeout, retries, ..ServiceOptions::new(base_url) };
        ServiceClient::new(&options).map_err(|error| of_core(py, &error))?;
        Ok(Self { options: Mutex::new(options), client: Mutex::new(None) })
    }

    /// Goes on with another key.
    fn use_key(&self, py: Python<'_>, key: String) -> PyResult<()> {
        let client = self.client(py)?.with_key(&key).map_err(|error| of_core(py, &error))?;
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = Some(OfProcess::new(client));
        self.options.lock().unwrap_or_else(PoisonError::into_inner).api_key = Some(key);
        Ok(())
    }

    fn look_up(&self, py: Python<'_>, link: String, src: Option<String>) -> PyResult<Pending> {
        let client = self.client(py)?;
        let request = LookupRequest { src: tag(src)?, ..LookupRequest::url(link) };
        let work = async move {
            let mut answer = client.look_up(&request).await?;
            let words = answer.take_transcript()?;
            let Answered { body, facts } = answer;
            Ok((words.map(|words| Transcript::plain(words, body.from_cache)), body, facts))
        };
        Ok(Pending::new(work, |py, (words, body, facts)| {
            let words = words.map(|words| Bound::new(py, words)).transpose()?;
            let json =
                serde_json::to_string(&body).map_err(|error| PyValueError::new_err(error.to_string()))?;
            let object = py.import("json")?.call_method1("loads", (json,))?;
            Ok((words, object, said(py, &facts)?).into_pyobject(py)?.into_any().unbind())
        }))
    }

    fn text(&self, py: Python<'_>, link: String, format: &str, src: Option<String>) -> PyResult<Pending> {
        let client = self.client(py)?;
        let request = LookupRequest { src: tag(src)?, ..LookupRequest::url(link) };
        let format = TextFormat::ALL.into_iter().find(|known| known.as_str() == format).ok_or_else(|| {
            PyValueError::new_err(format!("format must be 'text', 'md', 'srt' or 'vtt', not {format:?}"))
        })?;
        let work = async move { Ok(client.look_up_text(&request, format).await?.body) };
        Ok(Pending::new(work, |py, answer| {
            let told = match answer {
                TextAnswer::Text(text) => (Some(text), None, None, false),
                TextAnswer::Missing { is_allowance_spent, message, watch_url } => {
                    (None, Some(message), Some(watch_url), is_allowance_spent)
                }
            };
            Ok(told.into_pyobject(py)?.into_any().unbind())
        }))
    }

    fn create_key(
        &self,
        py: Python<'_>,
        label: Option<String>,
        email: Option<String>,
        entitlement: Option<String>,
    ) -> PyResult<Pending> {
        let request = KeyRequest { label, email };
        self.json(py, |client| async move { client.create_key(&request, entitlement.as_deref()).await })
    }

    fn key_status(&self, py: Python<'_>, entitlement: Option<String>) -> PyResult<Pending> {
        self.json(py, |client| async move { client.key_status(entitlement.as_deref()).await })
    }

    fn register(&self, py: Python<'_>, email: String) -> PyResult<Pending> {
        self.json(py, |client| async move { client.register(&Register { email }).await })
    }

    fn verify(&self, py: Python<'_>, token: String, confirmed: bool) -> PyResult<Pending> {
        self.json(py, move |client| async move {
            if confirmed { client.verify_confirmed(&token).await } else { client.verify(&token).await }
        })
    }

    fn me(&self, py: Python<'_>) -> PyResult<Pending> {
        self.json(py, |client| async move { client.me().await })
    }

    fn rotate_key(&self, py: Python<'_>) -> PyResult<Pending> {
        self.json(py, |client| async move { client.rotate_key().await })
    }

    fn transcript(
        &self,
        py: Python<'_>,
        link: String,
        lang: Option<String>,
        idempotency_key: Option<String>,
    ) -> PyResult<Pending> {
        let client = self.client(py)?;
        let ask = TranscriptAsk { url: Some(link), lang, video_id: None };
        let work = async move {
            let Answered { body, facts } = client.transcript(&ask, name(idempotency_key)?).await?;
            Ok((bought(body, facts.is_cached)?, facts))
        };
        Ok(Pending::new(work, |py, (transcript, facts)| {
            let transcript = Bound::new(py, transcript)?;
            Ok((transcript, said(py, &facts)?).into_pyobject(py)?.into_any().unbind())
        }))
    }

    fn chat(
        &self,
        py: Python<'_>,
        video_id: String,
        message: String,
        history: Vec<(String, String)>,
        idempotency_key: Option<String>,
    ) -> PyResult<Pending> {
        let turn = |(role, content): (String, String)| match role.as_str() {
            "user" => Ok(ChatTurn { role: ChatRole::User, content }),
            "assistant" => Ok(ChatTurn { role: ChatRole::Assistant, content }),
            _ => Err(PyValueError::new_err(format!("a role is 'user' or 'assistant', not {role:?}"))),
        };
        let history = history.into_iter().map(turn).collect::<PyResult<Vec<_>>>()?;
        let conversation_history = (!history.is_empty()).then_some(history);
        let question = ChatQuestion { video_id, message, conversation_history };
        let name = name(idempotency_key).map_err(|fault| fault.into_py_err(py))?;
        self.json(py, |client| async move { client.chat(&question, name).await })
    }

    fn subscribe(&self, py: Python<'_>, plan: String, idempotency_key: Option<String>) -> PyResult<Pending> {
        let name = name(idempotency_key).map_err(|fault| fault.into_py_err(py))?;
        self.json(py, |client| async move { client.subscribe(&Subscribe { plan }, name).await })
    }

    fn buy_credits(
        &self,
        py: Python<'_>,
        pack: String,
        idempotency_key: Option<String>,
    ) -> PyResult<Pending> {
        let name = name(idempotency_key).map_err(|fault| fault.into_py_err(py))?;
        self.json(py, |client| async move { client.buy_credits(&BuyCredits { pack }, name).await })
    }
}

/// The attribution tag of this name.
pub(crate) fn tag(name: Option<String>) -> PyResult<Option<SourceTag>> {
    let Some(name) = name else { return Ok(None) };
    let known = SourceTag::from_wire(&name);
    known.map(Some).ok_or_else(|| PyValueError::new_err(format!("there is no attribution tag {name:?}")))
}
