//! The service in the process for one client, without a server.
//!
//! Its calls have the names, arguments and results of [`crate::client::RemoteConnection`], so the package's `Client`
//! works with both.

use std::{
    future::Future,
    sync::{Arc, Mutex, PoisonError},
};

use pyo3::{exceptions::PyValueError, prelude::*, types::PyDict};
use serde::Serialize;
use transcript_core::{
    Error, ErrorKind, Retry,
    accounts::{ChatParams, TranscriptParams, V1Error, VerifyOutcome},
    captions,
    chat::{ChatRole, ChatTurn},
    lookup::{
        Availability, CreateKeyOutcome, CreateKeyRequest, EntitlementProof, FailureReason, KeyOrigin,
        LookupRequest, VideoReference,
    },
    transcript,
    wire::{
        lookup::{CreateKeyResponse, KeyStatus, TranscriptResult},
        v1::VerifyResponse,
    },
};
use verbatim::{PurchaseAuth, PurchaseReceipt, Verbatim};

use crate::{
    client::{parse_tag, v1_transcript},
    exceptions::BindingError,
    lazy_open::LazyVerbatim,
    pending::PendingCall,
    transcript::Transcript,
};

/// One client of the service in the process. Every call returns a [`PendingCall`].
#[pyclass(frozen, module = "verbatim_transcripts._native")]
pub(crate) struct LocalConnection {
    lazy: Arc<LazyVerbatim>,
    key: Mutex<Option<String>>,
}

impl LocalConnection {
    pub(crate) fn new(lazy: Arc<LazyVerbatim>, key: Option<String>) -> Self {
        Self { lazy, key: Mutex::new(key) }
    }

    fn key(&self) -> Option<String> {
        self.key.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn lookup_request(&self, link: String, src: Option<String>) -> PyResult<LookupRequest> {
        Ok(LookupRequest {
            reference: VideoReference::Url(link),
            src: parse_tag(src)?,
            key: self.key(),
            proof: None,
            client: None,
            default_only: false,
        })
    }

    fn payer(&self, name: Option<String>) -> PurchaseAuth {
        PurchaseAuth { key: self.key().unwrap_or_default(), name }
    }

    /// Returns a call whose response body is JSON for Python.
    fn json<T, F>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(Verbatim) -> F + Send + 'static,
    ) -> PyResult<PendingCall>
    where
        T: Serialize + Send + 'static,
        F: Future<Output = Result<(T, Option<PurchaseReceipt>), BindingError>> + Send + 'static,
    {
        let open = self.lazy.open(py)?;
        let work = async move { call(open.await?).await };
        Ok(PendingCall::new(work, |py, (body, charge)| {
            let json =
                serde_json::to_string(&body).map_err(|error| PyValueError::new_err(error.to_string()))?;
            let object = py.import("json")?.call_method1("loads", (json,))?;
            Ok((object, meta_dict(py, charge)?).into_pyobject(py)?.into_any().unbind())
        }))
    }
}

/// Data of a response besides its body, under the names that [`crate::client`] uses for headers.
fn meta_dict(py: Python<'_>, charge: Option<PurchaseReceipt>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    if let Some(charge) = charge {
        dict.set_item("credits_remaining", charge.credits_remaining)?;
        dict.set_item("is_cached", charge.from_cache)?;
        dict.set_item("is_replayed", charge.is_replayed)?;
    }
    Ok(dict)
}

fn service_error(error: V1Error) -> BindingError {
    BindingError::V1(Box::new(error))
}

fn invalid(message: String) -> BindingError {
    BindingError::Core(Error::invalid(message))
}

/// The failure of calls that need the payment pages of a server.
fn purchase_unsupported() -> PendingCall {
    let message = "The service in the process sells nothing. Use a server.";
    let work = async move { Err::<(), _>(Error::new(ErrorKind::Unsupported, Retry::Never, message).into()) };
    PendingCall::new(work, |py, ()| Ok(py.None()))
}

fn unknown_key() -> BindingError {
    service_error(V1Error::Unauthorized("Unknown API key.".to_owned()))
}

#[pymethods]
impl LocalConnection {
    /// Replaces the key.
    fn use_key(&self, key: String) {
        *self.key.lock().unwrap_or_else(PoisonError::into_inner) = Some(key);
    }

    fn lookup(&self, py: Python<'_>, link: String, src: Option<String>) -> PyResult<PendingCall> {
        let open = self.lazy.open(py)?;
        let request = self.lookup_request(link, src)?;
        let work = async move {
            let response = open.await?.lookup().look_up(request).await;
            response.map_err(|error| invalid(error.message))
        };
        Ok(PendingCall::new(work, |py, mut response| {
            let (transcript, retry_after) = match &response.availability {
                Availability::Available { stored, from_cache } => {
                    (Some(Transcript::from_stored(stored, *from_cache)), None)
                }
                Availability::Unavailable { retry_after, .. } => (None, *retry_after),
            };
            if let Availability::Available { stored, .. } = &mut response.availability {
                // The segments are passed as an object, not in the JSON body.
                let without_segments =
                    transcript::Transcript { segments: Vec::new(), ..(*stored.transcript).clone() };
                stored.transcript = Arc::new(without_segments);
            }
            let json = serde_json::to_string(&TranscriptResult::from(&response));
            let json = json.map_err(|error| PyValueError::new_err(error.to_string()))?;
            let object = py.import("json")?.call_method1("loads", (json,))?;
            let meta = meta_dict(py, None)?;
            meta.set_item("retry_after", retry_after.map(|wait| wait.as_secs_f64()))?;
            let transcript = transcript.map(|transcript| Bound::new(py, transcript)).transpose()?;
            Ok((transcript, object, meta).into_pyobject(py)?.into_any().unbind())
        }))
    }

    fn get_text(
        &self,
        py: Python<'_>,
        link: String,
        format: &str,
        src: Option<String>,
    ) -> PyResult<PendingCall> {
        let format_text: fn(&transcript::Transcript) -> String = match format {
            "text" => |transcript| transcript::prose(&transcript.segments),
            "md" => transcript::markdown,
            "srt" => |transcript| captions::write_srt(&transcript.segments),
            "vtt" => |transcript| captions::write_webvtt(&transcript.segments),
            _ => {
                return Err(PyValueError::new_err(format!(
                    "format must be 'text', 'md', 'srt' or 'vtt', not {format:?}"
                )));
            }
        };
        let open = self.lazy.open(py)?;
        let request = self.lookup_request(link, src)?;
        let work = async move {
            let response =
                open.await?.lookup().look_up(request).await.map_err(|error| invalid(error.message))?;
            Ok(match response.availability {
                Availability::Available { stored, .. } => {
                    (Some(format_text(&stored.transcript)), None, None, false)
                }
                Availability::Unavailable { reason, message, .. } => {
                    (None, Some(message), Some(response.watch_url), reason == FailureReason::KeyAllowance)
                }
            })
        };
        Ok(PendingCall::new(work, |py, fields| Ok(fields.into_pyobject(py)?.into_any().unbind())))
    }

    fn create_key(
        &self,
        py: Python<'_>,
        label: Option<String>,
        email: Option<String>,
        entitlement: Option<String>,
    ) -> PyResult<PendingCall> {
        self.json(py, |verbatim| async move {
            let proof = entitlement.map(EntitlementProof::new);
            let request = CreateKeyRequest { label, email, proof, origin: KeyOrigin::Operator };
            match verbatim.lookup().create_key(request).await? {
                CreateKeyOutcome::Created(created) => Ok((CreateKeyResponse::from(&created), None)),
                CreateKeyOutcome::Invalid(error) => {
                    Err(invalid(format!("{}: {}", error.field, error.message)))
                }
                CreateKeyOutcome::SubjectFull { limit, .. } => {
                    let message = format!("This plan already has {limit} active keys, the maximum.");
                    Err(service_error(V1Error::RateLimited { message, retry_after_s: 0, rate: None }))
                }
                CreateKeyOutcome::Limited { retry_after_ms } => {
                    let (message, retry_after_s) =
                        ("Too many keys were created. Retry later.".to_owned(), retry_after_ms / 1_000);
                    Err(service_error(V1Error::RateLimited { message, retry_after_s, rate: None }))
                }
            }
        })
    }

    fn key_status(&self, py: Python<'_>, entitlement: Option<String>) -> PyResult<PendingCall> {
        let key = self.key().unwrap_or_default();
        self.json(py, |verbatim| async move {
            let proof = entitlement.map(EntitlementProof::new);
            let status = verbatim.lookup().key_status(&key, proof.as_ref()).await?;
            Ok((KeyStatus::from(&status.ok_or_else(unknown_key)?), None))
        })
    }

    fn register(&self, py: Python<'_>, email: String) -> PyResult<PendingCall> {
        self.json(py, |verbatim| async move {
            verbatim.accounts().register(&email, None).await.map_err(service_error)?;
            Ok((serde_json::json!({ "message": "A verification mail is on its way." }), None))
        })
    }

    fn verify(&self, py: Python<'_>, token: String, confirmed: bool) -> PyResult<PendingCall> {
        self.json(py, move |verbatim| async move {
            match verbatim.accounts().verify(&token, confirmed, None).await.map_err(service_error)? {
                VerifyOutcome::Issued(key) => Ok((VerifyResponse::from(&key), None)),
                VerifyOutcome::NeedsConfirmation => {
                    let message = "The account has an active key. Confirm to replace it.";
                    Err(service_error(V1Error::Conflict(message.to_owned())))
                }
            }
        })
    }

    fn me(&self, py: Python<'_>) -> PyResult<PendingCall> {
        let key = self.key().unwrap_or_default();
        self.json(
            py,
            |verbatim| async move { Ok((verbatim.account(key).await.map_err(service_error)?, None)) },
        )
    }

    fn rotate_key(&self, py: Python<'_>) -> PyResult<PendingCall> {
        let key = self.key().unwrap_or_default();
        self.json(
            py,
            |verbatim| async move { Ok((verbatim.rotate_key(key).await.map_err(service_error)?, None)) },
        )
    }

    fn transcript(
        &self,
        py: Python<'_>,
        link: String,
        lang: Option<String>,
        idempotency_key: Option<String>,
    ) -> PyResult<PendingCall> {
        let open = self.lazy.open(py)?;
        let payer = self.payer(idempotency_key);
        let request = TranscriptParams { url: Some(link), lang, video_id: None };
        let work = async move {
            let response = open.await?.buy_transcript(payer, request).await.map_err(service_error)?;
            Ok((v1_transcript(response.body, response.charge.from_cache)?, response.charge))
        };
        Ok(PendingCall::new(work, |py, (transcript, charge)| {
            let transcript = Bound::new(py, transcript)?;
            Ok((transcript, meta_dict(py, Some(charge))?).into_pyobject(py)?.into_any().unbind())
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
        let to_turn = |(role, content): (String, String)| match ChatRole::from_name(&role) {
            Some(role) => Ok(ChatTurn { role, content }),
            None => Err(PyValueError::new_err(format!("a role must be 'user' or 'assistant', not {role:?}"))),
        };
        let history = history.into_iter().map(to_turn).collect::<PyResult<Vec<_>>>()?;
        let payer = self.payer(idempotency_key);
        self.json(py, |verbatim| async move {
            let request = ChatParams { video_id, message, history };
            let response = verbatim.buy_answer(payer, request).await.map_err(service_error)?;
            Ok((response.body, Some(response.charge)))
        })
    }

    fn subscribe(&self, plan: String, idempotency_key: Option<String>) -> PendingCall {
        let _ = (plan, idempotency_key);
        purchase_unsupported()
    }

    fn buy_credits(&self, pack: String, idempotency_key: Option<String>) -> PendingCall {
        let _ = (pack, idempotency_key);
        purchase_unsupported()
    }
}
