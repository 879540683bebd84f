//! The service within the process: what a caller with a key may have, without a server in between.
//!
//! Its calls have the names, arguments and results of [`crate::client::Server`]'s, so that the package's `Client`
//! works over both.

use std::{
    future::Future,
    sync::{Arc, Mutex, PoisonError},
};

use pyo3::{exceptions::PyValueError, prelude::*, types::PyDict};
use serde::Serialize;
use transcript_core::{
    Error, ErrorKind, Retry,
    accounts::{ChatAsk, Refused, TranscriptAsk, Verification},
    chat::{Role, Turn},
    lookup::{Availability, CreateKey, CreateKeyOutcome, FailureReason, LookupAsk, Origin, Proof, Reference},
    transcript,
    wire::{
        lookup::{KeyCreated, KeyStatus, TranscriptResult},
        v1::Verified,
    },
};
use verbatim::{Charged, Payer, Verbatim};

use crate::{
    client::{bought, tag},
    fault::Fault,
    opener::Opener,
    pending::Pending,
    transcript::Transcript,
};

/// One caller of the service within the process. Every call gives a [`Pending`].
#[pyclass(frozen, module = "verbatim._native")]
pub(crate) struct Desk {
    opener: Arc<Opener>,
    key: Mutex<Option<String>>,
}

impl Desk {
    pub(crate) fn new(opener: Arc<Opener>, key: Option<String>) -> Self {
        Self { opener, key: Mutex::new(key) }
    }

    fn key(&self) -> Option<String> {
        self.key.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn ask(&self, link: String, src: Option<String>) -> PyResult<LookupAsk> {
        Ok(LookupAsk {
            reference: Reference::Url(link),
            src: tag(src)?,
            key: self.key(),
            proof: None,
            client: None,
            default_only: false,
        })
    }

    fn payer(&self, name: Option<String>) -> Payer {
        Payer { key: self.key().unwrap_or_default(), name }
    }

    /// A call whose answer is JSON for Python.
    fn json<T, F>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(Verbatim) -> F + Send + 'static,
    ) -> PyResult<Pending>
    where
        T: Serialize + Send + 'static,
        F: Future<Output = Result<(T, Option<Charged>), Fault>> + Send + 'static,
    {
        let open = self.opener.open(py)?;
        let work = async move { call(open.await?).await };
        Ok(Pending::new(work, |py, (body, charge)| {
            let json =
                serde_json::to_string(&body).map_err(|error| PyValueError::new_err(error.to_string()))?;
            let object = py.import("json")?.call_method1("loads", (json,))?;
            Ok((object, said(py, charge)?).into_pyobject(py)?.into_any().unbind())
        }))
    }
}

/// What is known of an answer beside its body, under the names of a server's headers.
fn said(py: Python<'_>, charge: Option<Charged>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    if let Some(charge) = charge {
        dict.set_item("credits_remaining", charge.credits_remaining)?;
        dict.set_item("is_cached", charge.from_cache)?;
        dict.set_item("is_replayed", charge.is_replayed)?;
    }
    Ok(dict)
}

fn refused(refused: Refused) -> Fault {
    Fault::Refused(Box::new(refused))
}

fn invalid(message: String) -> Fault {
    Fault::Core(Error::invalid(message))
}

/// What only a server does: it has pages on which people pay.
fn not_sold() -> Pending {
    let message = "Nothing is sold within the process: a server does that.";
    let work = async move { Err::<(), _>(Error::new(ErrorKind::Unsupported, Retry::Never, message).into()) };
    Pending::new(work, |py, ()| Ok(py.None()))
}

fn unauthorized() -> Fault {
    refused(Refused::Unauthorized("This key is not known.".to_owned()))
}

#[pymethods]
impl Desk {
    /// Goes on with another key.
    fn use_key(&self, key: String) {
        *self.key.lock().unwrap_or_else(PoisonError::into_inner) = Some(key);
    }

    fn look_up(&self, py: Python<'_>, link: String, src: Option<String>) -> PyResult<Pending> {
        let open = self.opener.open(py)?;
        let ask = self.ask(link, src)?;
        let work = async move {
            let answer = open.await?.lookup().look_up(ask).await;
            answer.map_err(|bad| invalid(bad.message))
        };
        Ok(Pending::new(work, |py, mut answer| {
            let (words, after) = match &answer.availability {
                Availability::Available { stored, from_cache } => {
                    (Some(Transcript::of(stored, *from_cache)), None)
                }
                Availability::Unavailable { retry_after, .. } => (None, *retry_after),
            };
            if let Availability::Available { stored, .. } = &mut answer.availability {
                // The words are there already, as an object.
                let bare = transcript::Transcript { segments: Vec::new(), ..(*stored.transcript).clone() };
                stored.transcript = Arc::new(bare);
            }
            let json = serde_json::to_string(&TranscriptResult::from(&answer));
            let json = json.map_err(|error| PyValueError::new_err(error.to_string()))?;
            let object = py.import("json")?.call_method1("loads", (json,))?;
            let facts = said(py, None)?;
            facts.set_item("retry_after", after.map(|wait| wait.as_secs_f64()))?;
            let words = words.map(|words| Bound::new(py, words)).transpose()?;
            Ok((words, object, facts).into_pyobject(py)?.into_any().unbind())
        }))
    }

    fn text(&self, py: Python<'_>, link: String, format: &str, src: Option<String>) -> PyResult<Pending> {
        let write: fn(&transcript::Transcript) -> String = match format {
            "text" => |transcript| transcript::prose(&transcript.segments),
            "md" => transcript::markdown,
            "srt" => |transcript| transcript::srt(&transcript.segments),
            "vtt" => |transcript| transcript::webvtt(&transcript.segments),
            _ => {
                return Err(PyValueError::new_err(format!(
                    "format must be 'text', 'md', 'srt' or 'vtt', not {format:?}"
                )));
            }
        };
        let open = self.opener.open(py)?;
        let ask = self.ask(link, src)?;
        let work = async move {
            let answer = open.await?.lookup().look_up(ask).await.map_err(|bad| invalid(bad.message))?;
            Ok(match answer.availability {
                Availability::Available { stored, .. } => {
                    (Some(write(&stored.transcript)), None, None, false)
                }
                Availability::Unavailable { reason, message, .. } => {
                    (None, Some(message), Some(answer.watch_url), reason == FailureReason::KeyAllowance)
                }
            })
        };
        Ok(Pending::new(work, |py, told| Ok(told.into_pyobject(py)?.into_any().unbind())))
    }

    fn create_key(
        &self,
        py: Python<'_>,
        label: Option<String>,
        email: Option<String>,
        entitlement: Option<String>,
    ) -> PyResult<Pending> {
        self.json(py, |parts| async move {
            let proof = entitlement.map(Proof::new);
            let ask = CreateKey { label, email, proof, origin: Origin::Operator };
            match parts.lookup().create_key(ask).await? {
                CreateKeyOutcome::Created(created) => Ok((KeyCreated::from(&created), None)),
                CreateKeyOutcome::Bad(bad) => Err(invalid(format!("{}: {}", bad.field, bad.message))),
                CreateKeyOutcome::SubjectFull { limit, .. } => {
                    let message = format!("There are {limit} live keys of this plan already.");
                    Err(refused(Refused::RateLimited { message, retry_after_s: 0, rate: None }))
                }
                CreateKeyOutcome::Limited { retry_after_ms } => {
                    let (message, after) = ("Too many keys were made.".to_owned(), retry_after_ms / 1_000);
                    Err(refused(Refused::RateLimited { message, retry_after_s: after, rate: None }))
                }
            }
        })
    }

    fn key_status(&self, py: Python<'_>, entitlement: Option<String>) -> PyResult<Pending> {
        let key = self.key().unwrap_or_default();
        self.json(py, |parts| async move {
            let proof = entitlement.map(Proof::new);
            let status = parts.lookup().key_status(&key, proof.as_ref()).await?;
            Ok((KeyStatus::from(&status.ok_or_else(unauthorized)?), None))
        })
    }

    fn register(&self, py: Python<'_>, email: String) -> PyResult<Pending> {
        self.json(py, |parts| async move {
            parts.accounts().register(&email, None).await.map_err(refused)?;
            Ok((serde_json::json!({ "message": "A mail is on its way." }), None))
        })
    }

    fn verify(&self, py: Python<'_>, token: String, confirmed: bool) -> PyResult<Pending> {
        self.json(py, move |parts| async move {
            match parts.accounts().verify(&token, confirmed, None).await.map_err(refused)? {
                Verification::Issued(key) => Ok((Verified::from(&key), None)),
                Verification::NeedsConfirmation => {
                    let message = "The account has a key, which this would end: confirm it.";
                    Err(refused(Refused::Conflict(message.to_owned())))
                }
            }
        })
    }

    fn me(&self, py: Python<'_>) -> PyResult<Pending> {
        let key = self.key().unwrap_or_default();
        self.json(py, |parts| async move { Ok((parts.account_of(key).await.map_err(refused)?, None)) })
    }

    fn rotate_key(&self, py: Python<'_>) -> PyResult<Pending> {
        let key = self.key().unwrap_or_default();
        self.json(py, |parts| async move { Ok((parts.rotate_key(key).await.map_err(refused)?, None)) })
    }

    fn transcript(
        &self,
        py: Python<'_>,
        link: String,
        lang: Option<String>,
        idempotency_key: Option<String>,
    ) -> PyResult<Pending> {
        let open = self.opener.open(py)?;
        let payer = self.payer(idempotency_key);
        let ask = TranscriptAsk { url: Some(link), lang, video_id: None };
        let work = async move {
            let answer = open.await?.buy_transcript(payer, ask).await.map_err(refused)?;
            Ok((bought(answer.body, answer.charge.from_cache)?, answer.charge))
        };
        Ok(Pending::new(work, |py, (transcript, charge)| {
            let transcript = Bound::new(py, transcript)?;
            Ok((transcript, said(py, Some(charge))?).into_pyobject(py)?.into_any().unbind())
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
        let turn = |(role, content): (String, String)| match Role::from_name(&role) {
            Some(role) => Ok(Turn { role, content }),
            None => Err(PyValueError::new_err(format!("a role is 'user' or 'assistant', not {role:?}"))),
        };
        let history = history.into_iter().map(turn).collect::<PyResult<Vec<_>>>()?;
        let payer = self.payer(idempotency_key);
        self.json(py, |parts| async move {
            let ask = ChatAsk { video_id, message, history };
            let answer = parts.buy_answer(payer, ask).await.map_err(refused)?;
            Ok((answer.body, Some(answer.charge)))
        })
    }

    fn subscribe(&self, plan: String, idempotency_key: Option<String>) -> Pending {
        let _ = (plan, idempotency_key);
        not_sold()
    }

    fn buy_credits(&self, pack: String, idempotency_key: Option<String>) -> Pending {
        let _ = (pack, idempotency_key);
        not_sold()
    }
}
