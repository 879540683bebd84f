//! Purchases with credits within the process, from admission to charge.

use serde::{Serialize, de::DeserializeOwned};
use transcript_core::{
    accounts::{
        ChatParams, RequestGuard, StoredHeader, StoredResponse, TranscriptParams, V1Admission, V1Endpoint,
        V1Error, V1Request,
    },
    wire::v1::{AccountInfo, ChatAnswer, RotateKeyResponse, VideoTranscript},
};

use crate::Verbatim;

/// Header of a stored response with the remaining credits.
const CREDITS: &str = "x-credits-remaining";
/// Header of a stored response that states whether the archive served it.
const CACHE: &str = "x-cache";

/// API key and idempotency key of a purchase.
#[derive(Clone, PartialEq, Eq)]
pub struct PurchaseAuth {
    /// API key of the account: `vba_…`.
    pub key: String,
    /// Idempotency key: requests with the same one are charged once; `None`: every request is charged.
    pub name: Option<String>,
}

impl std::fmt::Debug for PurchaseAuth {
    /// Without the API key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PurchaseAuth").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A purchased transcript.
#[derive(Clone, Debug, PartialEq)]
pub struct PurchasedTranscript {
    /// The transcript, as the v1 API sends it.
    pub body: VideoTranscript,
    /// Receipt of the purchase.
    pub charge: PurchaseReceipt,
}

/// A purchased answer about a video.
#[derive(Clone, Debug, PartialEq)]
pub struct PurchasedAnswer {
    /// The answer, as the v1 API sends it.
    pub body: ChatAnswer,
    /// Receipt of the purchase.
    pub charge: PurchaseReceipt,
}

/// Receipt of a purchase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PurchaseReceipt {
    /// Remaining credits; `None` if the ledger was unavailable.
    pub credits_remaining: Option<u64>,
    /// Whether the transcript was archived already.
    pub from_cache: Option<bool>,
    /// Whether this is a replayed response, which costs nothing.
    pub is_replayed: bool,
}

impl Verbatim {
    /// Returns a transcript for credits, charged on return.
    ///
    /// # Errors
    /// Every [`V1Error`]; then nothing is charged.
    ///
    /// # Cancellation
    /// Dropping the future releases everything that it holds.
    pub async fn buy_transcript(
        &self,
        payer: PurchaseAuth,
        params: TranscriptParams,
    ) -> Result<PurchasedTranscript, V1Error> {
        let fingerprint = format!("{:?}", (&params.video_id, &params.url, &params.lang)).into_bytes();
        let (response, is_replayed) = match self.admit(V1Endpoint::Transcript, payer, fingerprint).await? {
            V1Admission::Replayed(response) => (response, true),
            V1Admission::Admitted(guard) => {
                let ready = self.accounts().transcript(guard, params).await?;
                let body = VideoTranscript::from(ready.stored.transcript.as_ref());
                let response = response(&body, ready.from_cache, ready.credits_remaining)?;
                (ready.deliver(response).await?, false)
            }
        };
        Ok(PurchasedTranscript { body: read(&response)?, charge: receipt(&response, is_replayed) })
    }

    /// Returns an answer about a video for one credit, charged on return.
    ///
    /// # Errors
    /// As [`Verbatim::buy_transcript`].
    ///
    /// # Cancellation
    /// Dropping the future releases everything that it holds.
    pub async fn buy_answer(
        &self,
        payer: PurchaseAuth,
        params: ChatParams,
    ) -> Result<PurchasedAnswer, V1Error> {
        let turn_text = |turn: &transcript_core::chat::ChatTurn| (turn.role.as_str(), turn.content.clone());
        let history: Vec<_> = params.history.iter().map(turn_text).collect();
        let fingerprint = format!("{:?}", (&params.video_id, &params.message, history)).into_bytes();
        let (response, is_replayed) = match self.admit(V1Endpoint::Chat, payer, fingerprint).await? {
            V1Admission::Replayed(response) => (response, true),
            V1Admission::Admitted(guard) => {
                let ready = self.accounts().chat(guard, self.chat(), params).await?;
                let response =
                    response(&ChatAnswer::from(&ready), ready.from_cache, Some(ready.credits.remaining))?;
                (ready.deliver(response).await?, false)
            }
        };
        Ok(PurchasedAnswer { body: read(&response)?, charge: receipt(&response, is_replayed) })
    }

    /// Returns the account of an API key.
    ///
    /// # Errors
    /// [`V1Error::Unauthorized`], [`V1Error::RateLimited`], [`V1Error::Internal`].
    pub async fn account(&self, key: String) -> Result<AccountInfo, V1Error> {
        let guard = self.admit_unkeyed(V1Endpoint::Me, key).await?;
        Ok(AccountInfo::from(&self.accounts().me(guard).await?))
    }

    /// Replaces the API key of an account; the old one is dead at once.
    ///
    /// # Errors
    /// As [`Verbatim::account`].
    pub async fn rotate_key(&self, key: String) -> Result<RotateKeyResponse, V1Error> {
        let guard = self.admit_unkeyed(V1Endpoint::RotateKey, key).await?;
        Ok(RotateKeyResponse::from(&self.accounts().rotate(guard).await?))
    }

    async fn admit(
        &self,
        route: V1Endpoint,
        payer: PurchaseAuth,
        body: Vec<u8>,
    ) -> Result<V1Admission, V1Error> {
        let PurchaseAuth { key, name } = payer;
        self.accounts().admit(V1Request { route, bearer: Some(key), idempotency_key: name, body }).await
    }

    /// Admits a request without an idempotency key.
    async fn admit_unkeyed(&self, route: V1Endpoint, key: String) -> Result<RequestGuard, V1Error> {
        match self.admit(route, PurchaseAuth { key, name: None }, Vec::new()).await? {
            V1Admission::Admitted(guard) => Ok(guard),
            V1Admission::Replayed(_) => Err(defect("a request without an idempotency key was replayed")),
        }
    }
}

#[cold]
fn defect(what: &str) -> V1Error {
    V1Error::Internal(what.to_owned())
}

/// Encodes a response for the idempotency store.
fn response(
    body: &impl Serialize,
    from_cache: bool,
    credits_remaining: Option<u64>,
) -> Result<StoredResponse, V1Error> {
    let body = serde_json::to_vec(body).map_err(|_| defect("a response cannot be encoded as JSON"))?;
    let header = |name: &str, value: String| StoredHeader { name: name.to_owned(), value };
    let cache = if from_cache { "HIT" } else { "MISS" };
    let mut headers = vec![header(CACHE, cache.to_owned())];
    headers.extend(credits_remaining.map(|left| header(CREDITS, left.to_string())));
    Ok(StoredResponse { status: 200, headers, body })
}

fn read<T: DeserializeOwned>(response: &StoredResponse) -> Result<T, V1Error> {
    serde_json::from_slice(&response.body).map_err(|_| defect("a stored response cannot be decoded"))
}

fn receipt(response: &StoredResponse, is_replayed: bool) -> PurchaseReceipt {
    let header = |name: &str| {
        response
            .headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case(name))
            .map(|header| &header.value)
    };
    PurchaseReceipt {
        credits_remaining: header(CREDITS).and_then(|left| left.parse().ok()),
        from_cache: header(CACHE).map(|cache| cache == "HIT"),
        is_replayed,
    }
}
