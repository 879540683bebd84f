//! Client of a Verbatim server for the lookup API and the v1 API, over the facade's typed client.

use std::{
    future::Future,
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use pyo3::{exceptions::PyValueError, prelude::*, types::PyDict};
use serde::Serialize;
use transcript_core::{
    accounts::TranscriptParams,
    lookup::AttributionTag,
    wire::{
        lookup::KeyRequest,
        v1::{
            BuyCreditsRequest, ChatQuestion, ChatRole, ChatTurn, RegisterRequest, SubscribeRequest,
            VideoTranscript,
        },
    },
};
use verbatim::service::{
    IdempotencyKey, ResponseMeta, SERVICE_SUPPLIER, ServiceClient, ServiceError, ServiceLookup,
    ServiceOptions, ServiceReply, TextFormat, TextResponse,
};

use crate::{
    exceptions::{BindingError, core_exception},
    pending::PendingCall,
    runtime::PerProcess,
    transcript::Transcript,
};

/// A server and the key for its requests. Every call returns a [`PendingCall`].
#[pyclass(frozen, module = "verbatim_transcripts._native")]
pub(crate) struct RemoteConnection {
    options: Mutex<ServiceOptions>,
    /// Locked briefly and only while attached to the interpreter.
    client: Mutex<Option<PerProcess<ServiceClient>>>,
}

impl RemoteConnection {
    /// The client of this process; a forked child creates its own, with its own connections.
    fn client(&self, py: Python<'_>) -> PyResult<ServiceClient> {
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = client.as_ref().and_then(PerProcess::get) {
            return Ok(client.clone());
        }
        let options = self.options.lock().unwrap_or_else(PoisonError::into_inner);
        let created = ServiceClient::new(&options).map_err(|error| core_exception(py, &error))?;
        *client = Some(PerProcess::new(created.clone()));
        Ok(created)
    }

    /// Returns a call whose response body is JSON for Python.
    fn json<T, F>(&self, py: Python<'_>, call: impl FnOnce(ServiceClient) -> F) -> PyResult<PendingCall>
    where
        T: Serialize + Send + 'static,
        F: Future<Output = Result<ServiceReply<T>, ServiceError>> + Send + 'static,
    {
        let work = call(self.client(py)?);
        let work = async move { Ok(work.await?) };
        Ok(PendingCall::new(work, |py, ServiceReply { body, meta }| {
            let json =
                serde_json::to_string(&body).map_err(|error| PyValueError::new_err(error.to_string()))?;
            let object = py.import("json")?.call_method1("loads", (json,))?;
            Ok((object, meta_dict(py, &meta)?).into_pyobject(py)?.into_any().unbind())
        }))
    }
}

/// The header data of a response as a dictionary.
fn meta_dict<'py>(py: Python<'py>, meta: &ResponseMeta) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("request_id", meta.request_id.as_deref())?;
    dict.set_item("credits_remaining", meta.credits_remaining)?;
    dict.set_item("is_cached", meta.is_cached)?;
    dict.set_item("is_replayed", meta.is_replayed)?;
    dict.set_item("retry_after", meta.retry_after.map(|wait| wait.as_secs_f64()))?;
    let rate = meta.rate.as_ref();
    dict.set_item("rate_remaining", rate.map(|rate| rate.remaining))?;
    dict.set_item("rate_reset", rate.map(|rate| rate.reset.as_secs_f64()))?;
    Ok(dict)
}

fn parse_idempotency_key(value: Option<String>) -> Result<Option<IdempotencyKey>, BindingError> {
    value.map(IdempotencyKey::new).transpose().map_err(BindingError::from)
}

/// The transcript of a v1 response.
pub(crate) fn v1_transcript(
    body: VideoTranscript,
    is_cached: Option<bool>,
) -> Result<Transcript, BindingError> {
    let transcript = body.into_transcript(SERVICE_SUPPLIER);
    let transcript = transcript.map_err(|reason| BindingError::Service(ServiceError::Unreadable(reason)))?;
    Ok(Transcript::from_core(transcript, is_cached.unwrap_or(false)))
}

#[pymethods]
impl RemoteConnection {
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
        let timeout = timeout
            .ok_or_else(|| PyValueError::new_err("timeout must be a number of seconds greater than 0"))?;
        let options =
            ServiceOptions { api_key: key, ca_file, timeout, retries, ..ServiceOptions::new(base_url) };
        ServiceClient::new(&options).map_err(|error| core_exception(py, &error))?;
        Ok(Self { options: Mutex::new(options), client: Mutex::new(None) })
    }

    /// Replaces the key.
    fn use_key(&self, py: Python<'_>, key: String) -> PyResult<()> {
        let client = self.client(py)?.with_key(&key).map_err(|error| core_exception(py, &error))?;
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = Some(PerProcess::new(client));
        self.options.lock().unwrap_or_else(PoisonError::into_inner).api_key = Some(key);
        Ok(())
    }

    fn lookup(&self, py: Python<'_>, link: String, src: Option<String>) -> PyResult<PendingCall> {
        let client = self.client(py)?;
        let request = ServiceLookup { src: parse_tag(src)?, ..ServiceLookup::url(link) };
        let work = async move {
            let mut response = client.look_up(&request).await?;
            let transcript = response.take_transcript()?;
            let ServiceReply { body, meta } = response;
            Ok((transcript.map(|transcript| Transcript::from_core(transcript, body.from_cache)), body, meta))
        };
        Ok(PendingCall::new(work, |py, (transcript, body, meta)| {
            let transcript = transcript.map(|transcript| Bound::new(py, transcript)).transpose()?;
            let json =
                serde_json::to_string(&body).map_err(|error| PyValueError::new_err(error.to_string()))?;
            let object = py.import("json")?.call_method1("loads", (json,))?;
            Ok((transcript, object, meta_dict(py, &meta)?).into_pyobject(py)?.into_any().unbind())
        }))
    }

    fn get_text(
        &self,
        py: Python<'_>,
        link: String,
        format: &str,
        src: Option<String>,
    ) -> PyResult<PendingCall> {
        let client = self.client(py)?;
        let request = ServiceLookup { src: parse_tag(src)?, ..ServiceLookup::url(link) };
        let format = TextFormat::ALL.into_iter().find(|known| known.as_str() == format).ok_or_else(|| {
            PyValueError::new_err(format!("format must be 'text', 'md', 'srt' or 'vtt', not {format:?}"))
        })?;
        let work = async move { Ok(client.look_up_text(&request, format).await?.body) };
        Ok(PendingCall::new(work, |py, response| {
            let fields = match response {
                TextResponse::Text(text) => (Some(text), None, None, false),
                TextResponse::Missing { is_allowance_spent, message, watch_url } => {
                    (None, Some(message), Some(watch_url), is_allowance_spent)
                }
            };
            Ok(fields.into_pyobject(py)?.into_any().unbind())
        }))
    }

    fn create_key(
        &self,
        py: Python<'_>,
        label: Option<String>,
        email: Option<String>,
        entitlement: Option<String>,
    ) -> PyResult<PendingCall> {
        let request = KeyRequest { label, email };
        self.json(py, |client| async move { client.create_key(&request, entitlement.as_deref()).await })
    }

    fn key_status(&self, py: Python<'_>, entitlement: Option<String>) -> PyResult<PendingCall> {
        self.json(py, |client| async move { client.key_status(entitlement.as_deref()).await })
    }

    fn register(&self, py: Python<'_>, email: String) -> PyResult<PendingCall> {
        self.json(py, |client| async move { client.register(&RegisterRequest { email }).await })
    }

    fn verify(&self, py: Python<'_>, token: String, confirmed: bool) -> PyResult<PendingCall> {
        self.json(py, move |client| async move {
            if confirmed { client.verify_confirmed(&token).await } else { client.verify(&token).await }
        })
    }

    fn me(&self, py: Python<'_>) -> PyResult<PendingCall> {
        self.json(py, |client| async move { client.me().await })
    }

    fn rotate_key(&self, py: Python<'_>) -> PyResult<PendingCall> {
        self.json(py, |client| async move { client.rotate_key().await })
    }

    fn transcript(
        &self,
        py: Python<'_>,
        link: String,
        lang: Option<String>,
        idempotency_key: Option<String>,
    ) -> PyResult<PendingCall> {
        let client = self.client(py)?;
        let params = TranscriptParams { url: Some(link), lang, video_id: None };
        let work = async move {
            let ServiceReply { body, meta } =
                client.transcript(&params, parse_idempotency_key(idempotency_key)?).await?;
            Ok((v1_transcript(body, meta.is_cached)?, meta))
        };
        Ok(PendingCall::new(work, |py, (transcript, meta)| {
            let transcript = Bound::new(py, transcript)?;
            Ok((transcript, meta_dict(py, &meta)?).into_pyobject(py)?.into_any().unbind())
        }))
    }

    fn chat(
        &self,
        py: Python<'_>,
        video_id: String,
        message: String,
        history: Vec<(String, String)>,
        idempotency_key: Option<String>,
    ) -> PyResult<PendingCall> {
        let to_turn = |(role, content): (String, String)| match role.as_str() {
            "user" => Ok(ChatTurn { role: ChatRole::User, content }),
            "assistant" => Ok(ChatTurn { role: ChatRole::Assistant, content }),
            _ => Err(PyValueError::new_err(format!("a role must be 'user' or 'assistant', not {role:?}"))),
        };
        let history = history.into_iter().map(to_turn).collect::<PyResult<Vec<_>>>()?;
        let conversation_history = (!history.is_empty()).then_some(history);
        let question = ChatQuestion { video_id, message, conversation_history };
        let idempotency_key =
            parse_idempotency_key(idempotency_key).map_err(|error| error.into_py_err(py))?;
        self.json(py, |client| async move { client.chat(&question, idempotency_key).await })
    }

    fn subscribe(
        &self,
        py: Python<'_>,
        plan: String,
        idempotency_key: Option<String>,
    ) -> PyResult<PendingCall> {
        let idempotency_key =
            parse_idempotency_key(idempotency_key).map_err(|error| error.into_py_err(py))?;
        self.json(
            py,
            |client| async move { client.subscribe(&SubscribeRequest { plan }, idempotency_key).await },
        )
    }

    fn buy_credits(
        &self,
        py: Python<'_>,
        pack: String,
        idempotency_key: Option<String>,
    ) -> PyResult<PendingCall> {
        let idempotency_key =
            parse_idempotency_key(idempotency_key).map_err(|error| error.into_py_err(py))?;
        self.json(py, |client| async move {
            client.buy_credits(&BuyCreditsRequest { pack }, idempotency_key).await
        })
    }
}

/// The attribution tag with this name.
pub(crate) fn parse_tag(name: Option<String>) -> PyResult<Option<AttributionTag>> {
    let Some(name) = name else { return Ok(None) };
    let tag = AttributionTag::from_wire(&name);
    tag.map(Some).ok_or_else(|| PyValueError::new_err(format!("unknown attribution tag {name:?}")))
}
