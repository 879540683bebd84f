//! The calls of a connection.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::Duration,
};

use pyo3::{exceptions::PyValueError, prelude::*};
use transcript_core::{
    PageRequest,
    chat::{ChatRole, ChatTurn},
    directory::api_key::ApiKind,
    ids::{Cursor, JobId},
    lookup::{AttributionTag, EntitlementProof, VideoReference},
    search,
    wire::{
        lookup::KeyRequest,
        v1::{BuyCreditsRequest, RegisterRequest, SubscribeRequest},
    },
};
use verbatim::service::{
    Caller, ResponseMeta, Service, ServiceClient, ServiceLookup, ServiceOptions, ServiceQuestion,
    ServiceReply, TextFormat, TextResponse, buy_in_order, derive_idempotency_key, fetch_text_in_order,
    look_up_in_order, v1_transcript,
};

use super::{Connection, ConnectionKey, Target, client_exception, json_object, meta_dict, server_client};
use crate::{
    archive_search::SearchParams,
    batch::{self, Batch},
    exceptions::{core_exception, link_error},
    jobs,
    languages::Languages,
    options,
    pending::PendingCall,
    runtime::PerProcess,
    transcript::Transcript,
};

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
        Ok(Self::with_target(Target::Server { options, client }, key))
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

    /// Replaces the key, also for the next requests of calls that wait and have a key of the same API.
    fn use_key(&self, py: Python<'_>, key: String) -> PyResult<()> {
        if let Target::Server { options, client } = &self.target {
            let client = server_client(py, options, client)?;
            client.check_key(&key).map_err(|error| client_exception(py, &error))?;
        }
        ConnectionKey::replace(&mut self.lock_key(), key);
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
        let caller = Caller { src: parse_tag(py, src)?, ..Caller::default() };
        let lookup = ServiceLookup { words: true, description: true, ..ServiceLookup::url(link.as_str()) };
        self.call(
            py,
            self.request_caller(caller, batch.map(|_| ApiKind::Lookup)),
            |service, caller| async move {
                let caller = || caller.current();
                let look_up =
                    || look_up_in_order(service.as_ref(), caller, lookup.clone(), languages.clone());
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
        let caller = Caller { src: parse_tag(py, src)?, ..Caller::default() };
        let lookup = ServiceLookup::url(link.as_str());
        self.call(
            py,
            self.request_caller(caller, None),
            move |service, caller| async move {
                let caller = || caller.current();
                let reply = fetch_text_in_order(service.as_ref(), caller, lookup, format, languages).await;
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

    /// One page of a search in the whole archive: its JSON as Python objects, and the metadata of the reply.
    fn search(
        &self,
        py: Python<'_>,
        params: &Bound<'_, SearchParams>,
        cursor: Option<String>,
    ) -> PyResult<PendingCall> {
        let params = search::SearchParams { with_segments: false, ..params.get().at(cursor) };
        self.json(py, self.caller(), |service, caller| async move { service.search(&caller, params).await })
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

    /// The transcript in the first available language: `(transcript, metadata)`.
    ///
    /// A batch is that of [`Self::lookup`]. Its idempotency key is one for all links and languages.
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
        let is_batch = batch.is_some();
        if idempotency_key.is_some() && languages.len() > 1 && !is_batch {
            return Err(PyValueError::new_err(
                "an idempotency_key belongs to one language: pass one as lang",
            ));
        }
        self.call(
            py,
            self.request_caller(Caller::default(), batch.map(|_| ApiKind::V1)),
            move |service, caller| async move {
                let caller = |language: Option<String>| {
                    let derive = |key| derive_idempotency_key(key, &link, language.as_deref());
                    let key = idempotency_key.as_deref();
                    let key = if is_batch { key.map(derive) } else { key.map(str::to_owned) };
                    Caller { idempotency_key: key, ..caller.current() }
                };
                let buy = || buy_in_order(service.as_ref(), caller, link.clone(), languages.clone());
                let reply = batch::call_service(&waits, &is_closed, &link, buy, |_| None).await;
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
