//! Transcripts of many links from one client.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    future::{Future, pending},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use tokio::{task::JoinSet, time::sleep};
use transcript_core::{directory::api_key::ApiKind, engine::FailureReason, transcript::LanguageTag};
use verbatim::service::{Caller, ConnectionKey, LookupReply, ServiceReply, derive_idempotency_key};

use super::{Client, ClientCalls, parse_languages, records::LookupResponse};
use crate::{
    batch::Batch,
    call::{CallOptions, run},
    error::{Failure, FailureKind, VerbatimError},
    progress::{Progress, ProgressListener},
    transcript::Transcript,
    transcripts::{BatchResult, batch_concurrency, finish},
};

#[uniffi::export]
impl Client {
    /// Returns the transcripts of several videos in the order of the links. A failure is a result.
    ///
    /// With the key of an account the transcripts are bought: only of YouTube, and without a language in English.
    /// Otherwise they are looked up, without a language that of the default track; `reason` says why there is none.
    /// `language` and `other_languages` are those of [`Client::look_up`]. A repeated link is requested once.
    /// A later [`Client::use_key`] with a key of the other API changes nothing for the links of this call.
    ///
    /// `concurrency` links are requested at the same time, by default 8. `listener` receives each result when it is
    /// complete, and no stages. While the server refuses calls or cannot fetch, and says when to retry, the links wait
    /// as `batch` says, by default at most 300 seconds without a success in between.
    ///
    /// After the timeout, the links that are not complete have failed as `TimedOut`. A cancelled call returns nothing;
    /// `listener` has received what was complete. The server may charge purchases that were sent, and it charges a
    /// repeat again unless both calls have the same `idempotency_key`: with it, a link in a language is charged once in
    /// 24 hours, whatever the other links are. Pass one if the call has a timeout or may be cancelled: the failures of
    /// links that were not complete have no key.
    ///
    /// # Errors
    /// `InvalidInput` if a language is invalid or `concurrency` is 0; `Cancelled`.
    #[uniffi::method(default(
        language = None,
        concurrency = None,
        listener = None,
        call = None,
        batch = None,
        other_languages = [],
        idempotency_key = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Kotlin and Swift")]
    pub async fn get_many(
        &self,
        links: Vec<String>,
        language: Option<String>,
        concurrency: Option<u32>,
        listener: Option<Arc<dyn ProgressListener>>,
        call: Option<CallOptions>,
        batch: Option<Arc<Batch>>,
        other_languages: Vec<String>,
        idempotency_key: Option<String>,
    ) -> Result<Vec<BatchResult>, VerbatimError> {
        let concurrency = batch_concurrency(concurrency)?;
        let languages = parse_languages(language, other_languages)?;
        let waits = batch.map_or_else(verbatim::Batch::default, |batch| batch.waits.clone());
        let timeout = call.as_ref().and_then(|call| call.timeout);
        let untimed = call.map(|call| CallOptions { timeout: None, ..call });
        // Which API is called is decided once: a later key must not turn free lookups into purchases.
        let (calls, caller) = (self.calls.clone(), self.caller_once(idempotency_key));
        let (results, listening) = run(untimed.clone(), async move {
            // No video has stages: the server fetches.
            let subscribe = |listener| Arc::<Progress>::default().subscribe(listener, Some(HashSet::new()));
            let listening = listener.map(subscribe);
            let request = |link: String| {
                calls.clone().transcript(caller.clone(), link, languages.clone(), waits.clone())
            };
            let on_result = |result: &BatchResult| {
                if let Some(listening) = &listening {
                    listening.send_result(result.clone());
                }
            };
            let results = collect(links, concurrency, timeout, request, on_result).await;
            Ok((results, listening))
        })
        .await?;
        finish(listening, untimed).await?;
        Ok(results)
    }
}

/// The results of requests for links, in the order of the links.
///
/// The timeout ends the requests and not the call, so that no transcript is lost that was bought before. A link that is
/// listed twice is requested once: two requests would be charged twice, or conflict with one idempotency key.
async fn collect<F>(
    links: Vec<String>,
    concurrency: usize,
    timeout: Option<Duration>,
    request: impl Fn(String) -> F,
    on_result: impl Fn(&BatchResult),
) -> Vec<BatchResult>
where
    F: Future<Output = Result<Transcript, VerbatimError>> + Send + 'static,
{
    let mut timed_out = pin!(async {
        match timeout {
            Some(timeout) => sleep(timeout).await,
            None => pending().await,
        }
    });
    let (mut tasks, mut running, mut done) = (JoinSet::new(), HashMap::new(), BTreeMap::new());
    let mut positions = HashMap::<_, Vec<_>>::new();
    for (index, link) in links.iter().cloned().enumerate() {
        positions.entry(link).or_default().push(index);
    }
    let distinct: Vec<_> = links.iter().filter_map(|link| positions.remove_entry(link)).collect();
    let mut waiting = distinct.into_iter();
    loop {
        while tasks.len() < concurrency
            && let Some((link, indexes)) = waiting.next()
        {
            let task = tasks.spawn(request(link.clone()));
            running.insert(task.id(), (link, indexes));
        }
        let joined = tokio::select! {
            biased;
            joined = tasks.join_next_with_id() => joined,
            () = &mut timed_out => break,
        };
        let (task, outcome) = match joined {
            None => break,
            Some(Ok(joined)) => joined,
            Some(Err(error)) => {
                (error.id(), Err(Failure::error(FailureKind::Unexpected, "the call panicked")))
            }
        };
        if let Some((link, indexes)) = running.remove(&task) {
            let result = BatchResult::new(link, outcome);
            for index in indexes {
                on_result(&result);
                done.insert(index, result.clone());
            }
        }
    }
    let complete = |(index, link): (usize, String)| {
        done.remove(&index).unwrap_or_else(|| {
            let failure = Failure::error(FailureKind::TimedOut, "the call exceeded its timeout");
            let result = BatchResult::new(link, Err(failure));
            on_result(&result);
            result
        })
    };
    links.into_iter().enumerate().map(complete).collect()
}

impl ClientCalls {
    /// The transcript of a link: bought with the key of an account, otherwise looked up.
    async fn transcript(
        self,
        caller: Caller,
        link: String,
        languages: Vec<LanguageTag>,
        waits: verbatim::Batch,
    ) -> Result<Transcript, VerbatimError> {
        if ConnectionKey::api_of(caller.key.as_deref()) == ApiKind::Lookup {
            return into_transcript(self.look_up(caller, link, languages, waits).await?);
        }
        let languages = languages.iter().map(|tag| tag.as_str().to_owned()).collect();
        let (batch_key, video) = (caller.idempotency_key.clone(), link.clone());
        let key = move |language: Option<String>| {
            batch_key.as_deref().map(|key| derive_idempotency_key(key, &video, language.as_deref()))
        };
        Ok(self.buy(caller, link, languages, waits, key).await?.transcript)
    }
}

/// The transcript of a lookup, or why there is none.
fn into_transcript(reply: ServiceReply<LookupReply>) -> Result<Transcript, VerbatimError> {
    let detail = reply.meta.failure_detail.clone();
    let response = LookupResponse::from(reply);
    let Some(transcript) = response.transcript else {
        let reason = response.reason.as_deref().and_then(FailureReason::from_wire);
        let kind = reason.map_or(FailureKind::Refused, FailureKind::from);
        return Err(Failure {
            reason: detail.or(response.reason),
            platform: response.platform,
            video_id: Some(response.video_id),
            watch_url: Some(response.watch_url),
            languages: response.languages,
            retry_after: response.retry_after,
            ..Failure::new(kind, response.message.unwrap_or_default())
        }
        .into());
    };
    Ok(transcript)
}
