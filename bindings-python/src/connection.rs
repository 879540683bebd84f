//! How the calls of a service run: of a Verbatim server, or of the service in the process.

mod methods;
mod request_caller;

use std::{
    future::Future,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use pyo3::{exceptions::PyValueError, prelude::*, types::PyDict};
use serde::Serialize;
use transcript_core::{Error, directory::api_key::ApiKind};
use verbatim::service::{
    Caller, ConnectionKey, LocalService, ResponseMeta, Service, ServiceClient, ServiceOptions, ServiceReply,
    ServiceResult,
};

use self::request_caller::RequestCaller;
use crate::{
    exceptions::{BindingError, core_exception},
    lazy_open::LazyVerbatim,
    pending::PendingCall,
    runtime::PerProcess,
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
    key: Mutex<Arc<ConnectionKey>>,
    is_closed: Arc<AtomicBool>,
}

impl Connection {
    /// A connection to the service in the process.
    pub(crate) fn local(lazy: Arc<LazyVerbatim>, key: Option<String>) -> Self {
        Self::with_target(Target::Local(lazy), key)
    }

    fn with_target(target: Target, key: Option<String>) -> Self {
        Self { target, key: Mutex::new(ConnectionKey::new(key)), is_closed: Arc::default() }
    }

    fn lock_key(&self) -> MutexGuard<'_, Arc<ConnectionKey>> {
        self.key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The caller of a request.
    fn caller(&self) -> Caller {
        Caller { key: self.lock_key().text(), ..Caller::default() }
    }

    /// The caller of a call that sends several requests, or waits before one.
    ///
    /// `api` is that of the call's batch, which may have begun with an earlier key; `None`: that of the key.
    fn request_caller(&self, caller: Caller, api: Option<ApiKind>) -> RequestCaller {
        let key = Arc::clone(&self.lock_key());
        let api = api.unwrap_or_else(|| key.api());
        RequestCaller::new(caller, key, api)
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
    fn call<C, T, E, F>(
        &self,
        py: Python<'_>,
        caller: C,
        call: impl FnOnce(Arc<dyn Service>, C) -> F + Send + 'static,
        make: impl FnOnce(Python<'_>, ServiceReply<T>) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<PendingCall>
    where
        C: Send + 'static,
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
    fn json<T, F>(
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
