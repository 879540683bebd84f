//! One suite for both services with accounts: within the process, and the client of the built server.

use std::{fmt, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, bail};
use async_trait::async_trait;
use tempfile::TempDir;
use transcript_core::{
    ErrorKind,
    accounts::{
        TranscriptParams,
        mail::{MailMessage, Mailer},
    },
    archive::StoredTranscript,
    ids::{Cursor, JobId},
    lookup::{AttributionTag, FailureReason, VideoReference},
    page::PageRequest,
    service::{
        Caller, Service, ServiceError, ServiceErrorKind, ServiceLookup, ServiceQuestion, ServiceReply,
        ServiceResult, TextFormat, TextResponse, v1_transcript,
    },
    wire::{
        lookup::KeyRequest,
        v1::{JobRequest, RegisterRequest},
    },
};
use verbatim::{HttpOptions, Options, SupplierOptions, Verbatim, service::LocalService};

use super::fixture::{NONE, OTHER, ServiceFixture, VIDEO, link};
use crate::server::{
    harness::wait_until,
    platform::start_platform,
    v1::mail_client::{MailClient, token_from},
};

/// Credits of a new account.
const CREDITS: u64 = 3;

/// A service whose platform has [`VIDEO`] and [`OTHER`], and whose lookup keys get one transcript a month.
struct Subject {
    service: Arc<dyn Service>,
    mails: MailClient,
}

/// Writes mails as files, like a server without a mail server.
#[derive(Debug)]
struct FolderMailer(TempDir);

#[async_trait]
impl Mailer for FolderMailer {
    async fn send(&self, mail: MailMessage) -> transcript_core::Result<()> {
        let folder = self.0.path().join("outbox");
        let count = std::fs::read_dir(&folder).map_or(0, Iterator::count);
        let (draft, file) = (self.0.path().join("draft"), folder.join(format!("{count}.eml")));
        let write = || {
            std::fs::create_dir_all(&folder)?;
            std::fs::write(&draft, &mail.text)?;
            std::fs::rename(&draft, &file)
        };
        write().map_err(|error: std::io::Error| transcript_core::Error::unavailable(error.to_string()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn service_in_process_conforms() -> Result<()> {
    let proxy = start_platform(&[VIDEO, OTHER], Duration::ZERO)?;
    let youtube = SupplierOptions::default().youtube;
    let upstream = HttpOptions {
        proxies: vec![proxy.url()],
        ca_file: Some(proxy.ca_file().to_owned()),
        ..HttpOptions::default()
    };
    let suppliers = SupplierOptions { youtube, ..SupplierOptions::none() };
    let mut options = Options { suppliers, upstream, ..Options::default() };
    options.lookup.free_per_month = 1;
    options.accounts.plans.free.credits = CREDITS;
    options.accounts.plans.free.requests_per_minute = 1_000;
    let verbatim = Verbatim::open(options).await?;
    let outbox = TempDir::new()?;
    let mails = MailClient::new(&outbox);
    let _sender = verbatim.start_mail(Arc::new(FolderMailer(outbox)));
    let jobs = verbatim.start_jobs();
    conforms(Subject { service: Arc::new(LocalService::from(&verbatim)), mails }).await?;
    drop(jobs);
    verbatim.close().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn service_of_server_conforms() -> Result<()> {
    let credits = CREDITS.to_string();
    let fixture = ServiceFixture::start(&[
        ("VERBATIM_LIMITS__FREE_PER_MONTH", "1"),
        ("VERBATIM_PLANS__FREE__CREDITS", &credits),
        ("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "1000"),
    ])?;
    let mails = MailClient::new(&fixture.data);
    conforms(Subject { service: Arc::new(fixture.client()?), mails }).await
}

async fn conforms(mut subject: Subject) -> Result<()> {
    let service = Arc::clone(&subject.service);
    missing_lookup_has_reason_and_page(&*service).await.context("a lookup without a key")?;
    invalid_link_and_key_are_rejected(&*service).await.context("invalid input")?;
    key_pays_for_one_transcript(&*service).await.context("a lookup with a key")?;
    credits_pay_once(&mut subject).await.context("the v1 API")?;
    job_delivers_transcripts(&mut subject).await.context("jobs")
}

async fn missing_lookup_has_reason_and_page(service: &dyn Service) -> Result<()> {
    let caller = Caller { src: Some(AttributionTag::McpOther), ..Caller::default() };
    let reply = service.look_up(&caller, ServiceLookup::url(link(VIDEO))).await?.body;
    assert!(reply.transcript.is_none() && reply.platform().is_some() && !reply.result.available);
    assert_eq!(reply.result.video_id, VIDEO);
    let reason = reply.result.failure_reason.as_deref();
    assert_eq!(reason, Some(FailureReason::NeedsVerification.as_str()));
    let page = format!("/watch/video_site/{VIDEO}?src=mcp_other");
    assert!(reply.result.watch_url.ends_with(&page), "{reply:?}");
    for format in TextFormat::ALL {
        let expected = TextResponse::Missing {
            is_allowance_spent: false,
            message: reply.result.failure_message.clone().context("no message")?,
            watch_url: reply.result.watch_url.clone(),
        };
        assert_eq!(service.text(&caller, ServiceLookup::url(link(VIDEO)), format).await?.body, expected);
    }
    Ok(())
}

async fn invalid_link_and_key_are_rejected(service: &dyn Service) -> Result<()> {
    let anonymous = Caller::default();
    let bad = rejection(service.look_up(&anonymous, ServiceLookup::url("https://example.org/")).await)?;
    // Only a server rejects with a status.
    assert!(
        matches!(bad.kind, ServiceErrorKind::BadRequest | ServiceErrorKind::Core(ErrorKind::Invalid)),
        "{bad:?}"
    );
    let unknown = Caller::with_key("vbk_000000000000000000000000000000000000");
    for stranger in [&anonymous, &unknown] {
        let errors = [
            rejection(service.key_status(stranger).await)?,
            rejection(service.me(stranger).await)?,
            rejection(service.rotate_key(stranger).await)?,
            rejection(service.transcript(stranger, params(VIDEO)).await)?,
            rejection(service.chat(stranger, question("What?")).await)?,
        ];
        for error in errors {
            assert_eq!((error.kind, error.status), (ServiceErrorKind::Unauthorized, Some(401)), "{error}");
        }
    }
    let address = RegisterRequest { email: "no address".to_owned() };
    let refused = rejection(service.register(&anonymous, address).await)?;
    assert_eq!((refused.kind, refused.status), (ServiceErrorKind::BadRequest, Some(400)));
    Ok(())
}

async fn key_pays_for_one_transcript(service: &dyn Service) -> Result<()> {
    let anonymous = Caller::default();
    let request = KeyRequest { label: Some("laptop".to_owned()), email: None };
    let created = service.create_key(&anonymous, request).await?.body;
    assert_eq!((created.status.label.as_deref(), created.status.usage.used), (Some("laptop"), 0));
    service.check_key(&created.key)?;
    let keyed = Caller::with_key(created.key);
    let fetched = service.look_up(&keyed, ServiceLookup::id(VIDEO)).await?.body;
    let usage = fetched.result.key.context("no usage")?;
    assert_eq!((fetched.result.from_cache, usage.used, usage.remaining), (false, 1, 0));
    let stored = fetched.transcript.context("no transcript")?;
    let archived = service.look_up(&anonymous, ServiceLookup::id(VIDEO)).await?.body;
    let again = archived.transcript.context("no archived transcript")?;
    assert!(archived.result.from_cache && archived.result.available);
    assert_eq!(again.transcript.segments, stored.transcript.segments);
    for format in [TextFormat::Text, TextFormat::Srt, TextFormat::WebVtt] {
        let text = service.text(&anonymous, ServiceLookup::id(VIDEO), format).await?.body;
        assert_eq!(text, TextResponse::Text(format.format(&stored.transcript)));
    }
    let spent = service.look_up(&keyed, ServiceLookup::id(OTHER)).await?.body.result;
    assert_eq!(spent.failure_reason.as_deref(), Some(FailureReason::KeyAllowance.as_str()));
    let text = service.text(&keyed, ServiceLookup::id(OTHER), TextFormat::Text).await?;
    assert!(matches!(text.body, TextResponse::Missing { is_allowance_spent: true, .. }), "{text:?}");
    // The text does not name the reason.
    assert_eq!(text.meta.failure_detail.as_deref(), Some(FailureReason::KeyAllowance.as_str()));
    match service.tracks(&anonymous, ServiceLookup::id(VIDEO)).await {
        Ok(list) => {
            assert!(list.body.tracks.iter().any(|archived| archived.track == stored.transcript.track))
        }
        // A server has no such call.
        Err(error) => assert_eq!(error.kind, ServiceErrorKind::Core(ErrorKind::Unsupported), "{error}"),
    }
    assert_eq!(service.key_status(&keyed).await?.body.usage, usage);
    Ok(())
}

async fn credits_pay_once(subject: &mut Subject) -> Result<()> {
    let service = Arc::clone(&subject.service);
    let caller = Caller::with_key(verify(subject, "ann@example.org", false).await?);
    let keyed = Caller { idempotency_key: Some("order-1".to_owned()), ..caller.clone() };
    let paid = pay_twice_at_once(&*service, &keyed).await?;
    let expected = (Some(false), Some(CREDITS - 1), false);
    assert_eq!((paid.meta.is_cached, paid.meta.credits_remaining, paid.meta.is_replayed), expected);
    let replayed = service.transcript(&keyed, params(OTHER)).await?;
    assert_eq!((replayed.meta.is_replayed, replayed.meta.is_cached), (true, Some(false)));
    assert_eq!(v1_transcript(replayed.body), v1_transcript(paid.body));
    let other = rejection(service.transcript(&keyed, params(VIDEO)).await)?;
    assert_eq!((other.kind, other.status), (ServiceErrorKind::BadRequest, Some(400)), "{other}");
    let none = service.transcript(&caller, TranscriptParams { lang: Some("de".to_owned()), ..params(OTHER) });
    assert_eq!(rejection(none.await)?.kind, ServiceErrorKind::NotFound);
    let fault = rejection(service.transcript(&caller, params(NONE)).await)?;
    assert_eq!(fault.kind, ServiceErrorKind::ServerError, "{fault}");

    let keyed = Caller { idempotency_key: Some("question-1".to_owned()), ..caller.clone() };
    let answer = service.chat(&keyed, question("What do the sheep keep short?")).await?;
    assert!(answer.body.response.contains("The sheep keep the grass short."), "{answer:?}");
    assert_eq!((answer.body.credits.remaining, answer.meta.credits_remaining), (1, Some(1)));
    let again = service.chat(&keyed, question("What do the sheep keep short?")).await?;
    assert_eq!((again.meta.is_replayed, &again.body), (true, &answer.body));
    let long = question(&"x".repeat(2_001));
    assert_eq!(rejection(service.chat(&caller, long).await)?.kind, ServiceErrorKind::BadRequest);

    let hit = service.transcript(&caller, params(OTHER)).await?;
    assert_eq!((hit.meta.is_cached, hit.meta.credits_remaining), (Some(true), Some(0)));
    let spent = rejection(service.transcript(&caller, params(VIDEO)).await)?;
    assert_eq!((spent.kind, spent.status), (ServiceErrorKind::PaymentRequired, Some(402)));
    assert_eq!(spent.meta.credits_remaining, Some(0));
    let me = service.me(&caller).await?.body;
    assert_eq!((me.email.as_str(), me.credits_remaining), ("ann@example.org", 0));

    let rotated = Caller::with_key(service.rotate_key(&caller).await?.body.api_key);
    assert_eq!(rejection(service.me(&caller).await)?.kind, ServiceErrorKind::Unauthorized);
    assert_eq!(service.me(&rotated).await?.body.email, "ann@example.org");
    let replaced = Caller::with_key(verify(subject, "ann@example.org", true).await?);
    assert_eq!(rejection(service.me(&rotated).await)?.kind, ServiceErrorKind::Unauthorized);
    assert_eq!(service.me(&replaced).await?.body.credits_remaining, 0);
    Ok(())
}

/// Two requests with one idempotency key: one is paid, and the other is a repetition of a running or finished request.
async fn pay_twice_at_once(service: &dyn Service, keyed: &Caller) -> Result<ServiceReply<StoredTranscript>> {
    let request = || service.transcript(keyed, params(OTHER));
    let (first, second) = tokio::join!(request(), request());
    let is_first_paid = first.as_ref().is_ok_and(|reply| !reply.meta.is_replayed);
    let (paid, repeated) = if is_first_paid { (first, second) } else { (second, first) };
    match repeated {
        Ok(reply) => assert!(reply.meta.is_replayed, "{reply:?}"),
        Err(error) => {
            assert_eq!((error.kind, error.status), (ServiceErrorKind::Conflict, Some(409)), "{error}")
        }
    }
    Ok(paid?)
}

async fn job_delivers_transcripts(subject: &mut Subject) -> Result<()> {
    let service = Arc::clone(&subject.service);
    let caller = Caller::with_key(verify(subject, "bob@example.org", false).await?);
    let keyed = Caller { idempotency_key: Some("job-1".to_owned()), ..caller.clone() };
    let request = JobRequest { urls: Some(vec![link(OTHER), "no link".to_owned()]), ..JobRequest::default() };
    let started = service.start_job(&keyed, request.clone()).await?;
    let again = service.start_job(&keyed, request).await?;
    assert_eq!((again.meta.is_replayed, &again.body), (true, &started.body));
    let id = JobId::new(started.body.job_id);
    wait_until("the job did not end", async || Ok(service.job(&caller, &id).await?.body.ended_at.is_some()))
        .await?;
    let ended = service.job(&caller, &id).await?.body;
    assert_eq!((ended.status.as_str(), ended.credits.spent, ended.counts.failed), ("completed", 1, 1));
    let page = |after: Option<String>, limit| PageRequest { after: after.map(Cursor::new), limit };
    let first = service.job_results(&caller, &id, page(None, 1)).await?.body;
    let transcript = first.items[0].transcript.as_ref().context("no transcript")?;
    assert_eq!((transcript.video_id.as_str(), transcript.segments.is_empty()), (OTHER, false));
    let last = service.job_results(&caller, &id, page(first.next_cursor, 1)).await?.body;
    let reason = last.items[0].reason.as_deref();
    assert_eq!((reason, last.next_cursor), (Some("invalid_url"), None));
    let listed = service.jobs(&caller, page(None, 100)).await?.body;
    assert_eq!(listed.jobs, [service.cancel_job(&caller, &id).await?.body], "an ended job is unchanged");
    assert!(service.job_deliveries(&caller, &id).await?.body.events.is_empty());
    let rotated = service.rotate_webhook_secret(&caller).await?.body;
    assert_eq!(service.webhook_secret(&caller).await?.body, rotated);
    for failed in [
        service.jobs(&caller, page(None, 101)).await.map(|_| ()),
        service.job_results(&caller, &id, page(Some("x".to_owned()), 1)).await.map(|_| ()),
        service.start_job(&caller, JobRequest::default()).await.map(|_| ()),
    ] {
        let error = failed.err().context("a wrong request succeeded")?;
        assert_eq!((error.kind, error.status), (ServiceErrorKind::BadRequest, Some(400)), "{error}");
    }
    let other = rejection(service.job(&caller, &JobId::new("job_unknown")).await)?;
    assert_eq!(other.kind, ServiceErrorKind::NotFound);
    Ok(())
}

/// Registers the account and redeems the token; with `has_key`, the unconfirmed attempt must be refused.
async fn verify(subject: &mut Subject, email: &str, has_key: bool) -> Result<String> {
    let (service, anonymous) = (Arc::clone(&subject.service), Caller::default());
    let request = RegisterRequest { email: email.to_owned() };
    let registered = service.register(&anonymous, request).await?.body;
    assert!(registered.success && !registered.message.is_empty());
    let token = token_from(&subject.mails.next().await?)?;
    if has_key {
        let refused = rejection(service.verify(&anonymous, token.clone(), false).await)?;
        assert_eq!((refused.kind, refused.status), (ServiceErrorKind::Conflict, Some(409)));
    }
    let key = service.verify(&anonymous, token.clone(), has_key).await?.body.api_key;
    let used = rejection(service.verify(&anonymous, token, has_key).await)?;
    assert_eq!((used.kind, used.status), (ServiceErrorKind::BadRequest, Some(400)));
    Ok(key)
}

/// The failure of a call that must fail.
fn rejection<T: fmt::Debug>(result: ServiceResult<T>) -> Result<ServiceError> {
    match result {
        Ok(reply) => bail!("the call succeeded: {reply:?}"),
        Err(error) => Ok(error),
    }
}

fn params(video: &str) -> TranscriptParams {
    TranscriptParams { video_id: Some(video.to_owned()), ..TranscriptParams::default() }
}

fn question(message: &str) -> ServiceQuestion {
    let reference = VideoReference::Id(VIDEO.to_owned());
    ServiceQuestion { reference, message: message.to_owned(), history: Vec::new() }
}
