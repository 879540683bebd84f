//! The calls of a service: of a Verbatim server, or of the service in the process.

use std::{
    future::Future,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pyo3::{exceptions::PyValueError, prelude::*, types::PyDict};
use serde::Serialize;
use transcript_core::{
    Error, PageRequest,
    chat::{ChatRole, ChatTurn},
    ids::{Cursor, JobId},
    lookup::{AttributionTag, EntitlementProof, VideoReference},
    wire::{
        lookup::KeyRequest,
        v1::{BuyCreditsRequest, RegisterRequest, SubscribeRequest},
    },
};
use verbatim::service::{
    Caller, LocalService, ResponseMeta, Service, ServiceClient, ServiceLookup, ServiceOptions,
    ServiceQuestion, ServiceReply, ServiceResult, TextFormat, TextResponse, v1_transcript,
};

use crate::{
    batch::{self, Batch},
    exceptions::{BindingError, core_exception, link_error},
    jobs,
    languages::{Languages, first_available, look_up_first, text_first},
    lazy_open::LazyVerbatim,
    options,
    pending::PendingCall,
    runtime::PerProcess,
    transcript::Transcript,
};

/// Receiver of the calls.
enum Target {
    /// The service in the process.
    Local(Arc<LazyVerbatim>),
    /// A server. A forked child creates its own client, with its own connections.
    Server { options: ServiceOptions, client: Mutex<Option<PerProcess<Arc<ServiceClient>>>> },
}

/// A service and the key for its requests. Every call returns a [`PendingCall`].
#[pyclass(frozen, module = "verbatim_transcripts._native")]
pub(crate) struct Connection {
    target: Target,
    /// Locked briefly and only while attached to the interpreter.
    key: Mutex<Option<String>>,
    is_closed: Arc<AtomicBool>,
}

impl Connection {
    /// A connection to the service in the process.
    pub(crate) fn local(lazy: Arc<LazyVerbatim>, key: Option<String>) -> Self {
        Self { target: Target::Local(lazy), key: Mutex::new(key), is_closed: Arc::default() }
    }

    fn lock_key(&self) -> MutexGuard<'_, Option<String>> {
        self.key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The caller of a request.
    pub(crate) fn caller(&self) -> Caller {
        Caller { key: self.lock_key().clone(), ..Caller::default() }
    }

    /// The caller of a request that is charged once per idempotency key.
    fn caller_once(&self, idempotency_key: Option<String>) -> Caller {
        Caller { idempotency_key, ..self.caller() }
    }

    /// Refuses jobs of the service in the process: no process works on them unless its program starts that, which this
    /// package does not offer.
    fn check_jobs(&self, py: Python<'_>) -> PyResult<()> {
        match self.target {
            Target::Server { .. } => Ok(()),
            Target::Local(_) => {
                let error =
                    Error::unsupported("The service in the process does not work on jobs. Use a server.");
                Err(core_exception(py, &error))
            }
        }
    }

    /// Returns a call of the service, and the conversion of its reply to a Python object.
    fn call<T, E, F>(
        &self,
        py: Python<'_>,
        caller: Caller,
        call: impl FnOnce(Arc<dyn Service>, Caller) -> F + Send + 'static,
        make: impl FnOnce(Python<'_>, ServiceReply<T>) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<PendingCall>
    where
        T: Send + 'static,
        BindingError: From<E>,
        F: Future<Output = Result<ServiceReply<T>, E>> + Send + 'static,
    {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(BindingError::Closed.into_py_err(py));
        }
        Ok(match &self.target {
            Target::Local(lazy) => {
                let open = lazy.open(py)?;
                let work = async move { Ok(call(Arc::new(LocalService::from(&open.await?)), caller).await?) };
                PendingCall::new(work, make)
            }
            Target::Server { options, client } => {
                let client = server_client(py, options, client)?;
                PendingCall::new(async move { Ok(call(client, caller).await?) }, make)
            }
        })
    }

    /// Returns a call whose reply is JSON for Python.
    pub(crate) fn json<T, F>(
        &self,
        py: Python<'_>,
        caller: Caller,
        call: impl FnOnce(Arc<dyn Service>, Caller) -> F + Send + 'static,
    ) -> PyResult<PendingCall>
    where
        T: Serialize + Send + 'static,
        F: Future<Output = ServiceResult<T>> + Send + 'static,
    {
        self.call(py, caller, call, |py, ServiceReply { body, meta }| {
            Ok((json_object(py, &body)?, meta_dict(py, &meta)?).into_pyobject(py)?.into_any().unbind())
        })
    }
}

/// The client of this process.
fn server_client(
    py: Python<'_>,
    options: &ServiceOptions,
    client: &Mutex<Option<PerProcess<Arc<ServiceClient>>>>,
) -> PyResult<Arc<ServiceClient>> {
    let mut client = client.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(client) = client.as_ref().and_then(PerProcess::get) {
        return Ok(Arc::clone(client));
    }
    let created = Arc::new(ServiceClient::new(options).map_err(|error| client_exception(py, &error))?);
    *client = Some(PerProcess::new(Arc::clone(&created)));
    Ok(created)
}

/// The exception for an invalid argument of `Client`, whose names replace those of the settings.
fn client_exception(py: Python<'_>, error: &Error) -> PyErr {
    let message = error.message().replace("service.base_url", "base_url").replace("service.api_key", "key");
    core_exception(py, &error.clone().with_message(message))
}

pub(crate) fn json_object<'py>(py: Python<'py>, body: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let json = serde_json::to_string(body).map_err(|error| PyValueError::new_err(error.to_string()))?;
    py.import("json")?.call_method1("loads", (json,))
}

/// The metadata of a reply as a dictionary.
fn meta_dict<'py>(py: Python<'py>, meta: &ResponseMeta) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("request_id", meta.request_id.as_deref())?;
    dict.set_item("credits_remaining", meta.credits_remaining)?;
    dict.set_item("is_cached", meta.is_cached)?;
    dict.set_item("is_replayed", meta.is_replayed)?;
    dict.set_item("failure_detail", meta.failure_detail.as_deref())?;
    dict.set_item("retry_after", meta.retry_after.map(|wait| wait.as_secs_f64()))?;
    let rate = meta.rate.as_ref();
    dict.set_item("rate_remaining", rate.map(|rate| rate.remaining))?;
    dict.set_item("rate_reset", rate.map(|rate| rate.reset.as_secs_f64()))?;
    Ok(dict)
}

#[pymethods]
impl Connection {
    /// A connection to a server.
    #[new]
    fn new(
        py: Python<'_>,
        base_url: String,
        key: Option<String>,
        #[pyo3(from_py_with = options::extract::<f64>)] timeout: f64,
        #[pyo3(from_py_with = options::extract::<u32>)] retries: u32,
        #[pyo3(from_py_with = options::optional_path)] ca_file: Option<PathBuf>,
    ) -> PyResult<Self> {
        let timeout = Duration::try_from_secs_f64(timeout).ok().filter(|timeout| !timeout.is_zero());
        let timeout = timeout
            .ok_or_else(|| PyValueError::new_err("timeout must be a number of seconds greater than 0"))?;
        let ca_file = ca_file.or_else(options::environment_ca_file);
        let proxy_variables = options::environment_proxy();
        let options =
            ServiceOptions { ca_file, proxy_variables, timeout, retries, ..ServiceOptions::new(base_url) };
        let client = ServiceClient::new(&options).map_err(|error| client_exception(py, &error))?;
        if let Some(key) = &key {
            client.check_key(key).map_err(|error| client_exception(py, &error))?;
        }
        let client = Mutex::new(Some(PerProcess::new(Arc::new(client))));
        Ok(Self {
            target: Target::Server { options, client },
            key: Mutex::new(key),
            is_closed: Arc::default(),
        })
    }

    /// Closes the connections of a server. Later calls raise `ClosedError`.
    fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        if let Target::Server { client, .. } = &self.target {
            *client.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    /// Whether it is closed.
    #[getter]
    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Replaces the key.
    fn use_key(&self, py: Python<'_>, key: String) -> PyResult<()> {
        if let Target::Server { options, client } = &self.target {
            let client = server_client(py, options, client)?;
            client.check_key(&key).map_err(|error| client_exception(py, &error))?;
        }
        *self.lock_key() = Some(key);
        Ok(())
    }

    /// The lookup in the first available language. With a batch it waits while the server refuses it.
    #[pyo3(signature = (link, languages, src, batch=None))]
    fn lookup(
        &self,
        py: Python<'_>,
        link: String,
        languages: Option<Languages>,
        src: Option<String>,
        batch: Option<&Bound<'_, Batch>>,
    ) -> PyResult<PendingCall> {
        let (waits, is_closed) = (Batch::waits_of(batch), Arc::clone(&self.is_closed));
        let languages = Languages::parse_tags(py, languages)?;
        let caller = Caller { src: parse_tag(py, src)?, ..self.caller() };
        let lookup = ServiceLookup { words: true, description: true, ..ServiceLookup::url(link.as_str()) };
        self.call(
            py,
            caller,
            |service, caller| async move {
                let look_up = || look_up_first(service.as_ref(), &caller, lookup.clone(), languages.clone());
                batch::call_service(&waits, &is_closed, &link, look_up, |reply| {
                    reply.result.failure_reason.as_deref()
                })
                .await
            },
            |py, ServiceReply { body, meta }| {
                let transcript = body
                    .transcript
                    .map(|stored| Bound::new(py, Transcript::from_stored(&stored, body.result.from_cache)));
                let fields = (transcript.transpose()?, json_object(py, &body.result)?, meta_dict(py, &meta)?);
                Ok(fields.into_pyobject(py)?.into_any().unbind())
            },
        )
    }

    fn get_text(
        &self,
        py: Python<'_>,
        link: String,
        format: &str,
        languages: Option<Languages>,
        src: Option<String>,
    ) -> PyResult<PendingCall> {
        let languages = Languages::parse_tags(py, languages)?;
        let format = TextFormat::from_wire(format).ok_or_else(|| {
            PyValueError::new_err(format!("format must be 'text', 'md', 'srt' or 'vtt', not {format:?}"))
        })?;
        let caller = Caller { src: parse_tag(py, src)?, ..self.caller() };
        let lookup = ServiceLookup::url(link.as_str());
        self.call(
            py,
            caller,
            move |service, caller| async move {
                let reply = text_first(service.as_ref(), &caller, lookup, format, languages).await;
                reply.map_err(|error| link_error(&link, error))
            },
            |py, reply| {
                let ResponseMeta { retry_after, failure_detail, .. } = reply.meta;
                let wait = retry_after.map(|wait| wait.as_secs_f64());
                let fields = match reply.body {
                    TextResponse::Text(text) => (Some(text), None, None, false, None, None),
                    TextResponse::Missing { is_allowance_spent, message, watch_url } => {
                        (None, Some(message), Some(watch_url), is_allowance_spent, failure_detail, wait)
                    }
                };
                Ok(fields.into_pyobject(py)?.into_any().unbind())
            },
        )
    }

    fn create_key(
        &self,
        py: Python<'_>,
        label: Option<String>,
        email: Option<String>,
        entitlement: Option<String>,
    ) -> PyResult<PendingCall> {
        let request = KeyRequest { label, email };
        let caller = Caller { proof: entitlement.map(EntitlementProof::new), ..self.caller() };
        self.json(py, caller, |service, caller| async move { service.create_key(&caller, request).await })
    }

    fn key_status(&self, py: Python<'_>, entitlement: Option<String>) -> PyResult<PendingCall> {
        let caller = Caller { proof: entitlement.map(EntitlementProof::new), ..self.caller() };
        self.json(py, caller, |service, caller| async move { service.key_status(&caller).await })
    }

    fn register(&self, py: Python<'_>, email: String) -> PyResult<PendingCall> {
        let request = RegisterRequest { email };
        self.json(
            py,
            self.caller(),
            |service, caller| async move { service.register(&caller, request).await },
        )
    }

    fn verify(&self, py: Python<'_>, token: String, confirmed: bool) -> PyResult<PendingCall> {
        self.json(py, self.caller(), move |service, caller| async move {
            service.verify(&caller, token, confirmed).await
        })
    }

    fn me(&self, py: Python<'_>) -> PyResult<PendingCall> {
        self.json(py, self.caller(), |service, caller| async move { service.me(&caller).await })
    }

    fn rotate_key(&self, py: Python<'_>) -> PyResult<PendingCall> {
        self.json(py, self.caller(), |service, caller| async move { service.rotate_key(&caller).await })
    }

    /// The transcript in the first available language: `(transcript, metadata)`. A batch is that of [`Self::lookup`].
    #[pyo3(signature = (link, languages, idempotency_key, batch=None))]
    fn transcript(
        &self,
        py: Python<'_>,
        link: String,
        languages: Option<Languages>,
        idempotency_key: Option<String>,
        batch: Option<&Bound<'_, Batch>>,
    ) -> PyResult<PendingCall> {
        let (waits, is_closed) = (Batch::waits_of(batch), Arc::clone(&self.is_closed));
        let languages = languages.map_or(Ok(Vec::new()), Languages::into_list)?;
        if idempotency_key.is_some() && languages.len() > 1 {
            return Err(PyValueError::new_err(
                "an idempotency_key belongs to one language: pass one as lang",
            ));
        }
        self.call(
            py,
            self.caller_once(idempotency_key),
            |service, caller| async move {
                let fetch = || first_available(service.as_ref(), &caller, link.clone(), languages.clone());
                let reply = batch::call_service(&waits, &is_closed, &link, fetch, |_| None).await;
                reply.map(|ServiceReply { body, meta }| {
                    let is_cached = meta.is_cached.unwrap_or(false);
                    let details = Arc::clone(&body.details);
                    let body = Transcript::from_core(v1_transcript(body), details, is_cached);
                    ServiceReply { body, meta }
                })
            },
            |py, ServiceReply { body, meta }| {
                let transcript = Bound::new(py, body)?;
                Ok((transcript, meta_dict(py, &meta)?).into_pyobject(py)?.into_any().unbind())
            },
        )
    }

    fn chat(
        &self,
        py: Python<'_>,
        link: String,
        message: String,
        history: Vec<(String, String)>,
        idempotency_key: Option<String>,
    ) -> PyResult<PendingCall> {
        let to_turn = |(role, content): (String, String)| match ChatRole::from_name(&role) {
            Some(role) => Ok(ChatTurn { role, content }),
            None => Err(PyValueError::new_err(format!("a role must be 'user' or 'assistant', not {role:?}"))),
        };
        let history = history.into_iter().map(to_turn).collect::<PyResult<Vec<_>>>()?;
        let question = ServiceQuestion { reference: VideoReference::Url(link.clone()), message, history };
        let caller = self.caller_once(idempotency_key);
        self.json(py, caller, |service, caller| async move {
            service.chat(&caller, question).await.map_err(|error| link_error(&link, error))
        })
    }

    fn subscribe(
        &self,
        py: Python<'_>,
        plan: String,
        idempotency_key: Option<String>,
    ) -> PyResult<PendingCall> {
        let (request, caller) = (SubscribeRequest { plan }, self.caller_once(idempotency_key));
        self.json(py, caller, |service, caller| async move { service.subscribe(&caller, request).await })
    }

    fn buy_credits(
        &self,
        py: Python<'_>,
        pack: String,
        idempotency_key: Option<String>,
    ) -> PyResult<PendingCall> {
        let (request, caller) = (BuyCreditsRequest { pack }, self.caller_once(idempotency_key));
        self.json(py, caller, |service, caller| async move { service.buy_credits(&caller, request).await })
    }

    /// Starts a job from the JSON of its request.
    fn start_job(
        &self,
        py: Python<'_>,
        request: &str,
        idempotency_key: Option<String>,
    ) -> PyResult<PendingCall> {
        self.check_jobs(py)?;
        let (request, caller) = (jobs::read_request(py, request)?, self.caller_once(idempotency_key));
        self.json(py, caller, |service, caller| async move { service.start_job(&caller, request).await })
    }

    fn job(&self, py: Python<'_>, id: String) -> PyResult<PendingCall> {
        self.check_jobs(py)?;
        let id = JobId::new(id);
        self.json(py, self.caller(), |service, caller| async move { service.job(&caller, &id).await })
    }

    fn jobs(&self, py: Python<'_>, after: Option<String>, limit: u32) -> PyResult<PendingCall> {
        self.check_jobs(py)?;
        let page = PageRequest { after: after.map(Cursor::new), limit };
        self.json(py, self.caller(), |service, caller| async move { service.jobs(&caller, page).await })
    }

    /// A page of the results of a job; see [`jobs::results_object`].
    fn job_results(
        &self,
        py: Python<'_>,
        id: String,
        after: Option<String>,
        limit: u32,
    ) -> PyResult<PendingCall> {
        self.check_jobs(py)?;
        let (id, page) = (JobId::new(id), PageRequest { after: after.map(Cursor::new), limit });
        self.call(
            py,
            self.caller(),
            |service, caller| async move {
                let ServiceReply { body, meta } = service.job_results(&caller, &id, page).await?;
                jobs::read_results(body).map(|body| ServiceReply { body, meta })
            },
            |py, ServiceReply { body, .. }| jobs::results_object(py, body),
        )
    }

    fn cancel_job(&self, py: Python<'_>, id: String) -> PyResult<PendingCall> {
        self.check_jobs(py)?;
        let id = JobId::new(id);
        self.json(py, self.caller(), |service, caller| async move { service.cancel_job(&caller, &id).await })
    }

    fn job_deliveries(&self, py: Python<'_>, id: String) -> PyResult<PendingCall> {
        self.check_jobs(py)?;
        let id = JobId::new(id);
        self.json(
            py,
            self.caller(),
            |service, caller| async move { service.job_deliveries(&caller, &id).await },
        )
    }

    fn webhook_secret(&self, py: Python<'_>) -> PyResult<PendingCall> {
        self.check_jobs(py)?;
        self.json(py, self.caller(), |service, caller| async move { service.webhook_secret(&caller).await })
    }

    fn rotate_webhook_secret(&self, py: Python<'_>) -> PyResult<PendingCall> {
        self.check_jobs(py)?;
        self.json(
            py,
            self.caller(),
            |service, caller| async move { service.rotate_webhook_secret(&caller).await },
        )
    }
}

/// The attribution tag with this name.
fn parse_tag(py: Python<'_>, name: Option<String>) -> PyResult<Option<AttributionTag>> {
    let tag = name.as_deref().map(AttributionTag::parse).transpose();
    tag.map_err(|error| core_exception(py, &error))
}
