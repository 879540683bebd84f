//! Jobs: the charge of long fetches, the places of accounts, and repeated requests.

use async_trait::async_trait;
use tokio::task::JoinHandle;
use transcript_core::{
    Error, ErrorKind, PageRequest, Result, Retry,
    accounts::{
        AccountsOptions, V1Admission, V1Endpoint,
        jobs::{AccountJobs, CreatedJob, Job, JobLimits, JobParams, JobStatus, PauseReason, run_jobs},
        webhooks::{EventState, WebhookBody, WebhookClient, WebhookPost, WebhookSenderDeps, send_webhooks},
    },
    ids::{GrantId, JobId},
};

use super::*;

/// Works on the jobs of the only process.
pub(super) fn start_runner(life: &ProcessLife) -> JoinHandle<()> {
    start_runner_of(Arc::clone(&life.accounts[0].jobs))
}

fn start_runner_of(jobs: Arc<AccountJobs>) -> JoinHandle<()> {
    tokio::spawn(run_jobs(move || Arc::clone(&jobs), std::future::pending()))
}

/// Creates a job. Its response is not delivered.
pub(super) async fn try_create(
    life: &ProcessLife,
    account: &SimAccount,
    idempotency_key: Option<&str>,
    params: JobParams,
) -> Result<CreatedJob, V1Error> {
    let accounts = &life.accounts[0];
    let admitted = account.admit(accounts, V1Endpoint::StartJob, idempotency_key, "").await.unwrap();
    let V1Admission::Admitted(guard) = admitted else { panic!("a stored response") };
    accounts.jobs.create(*guard, params).await
}

/// The parameters of a job for a link.
pub(super) fn for_link(url: &str) -> JobParams {
    JobParams { urls: Some(vec![url.to_owned()]), ..JobParams::default() }
}

/// Creates a job for a link. Its response is not delivered.
async fn create(
    life: &ProcessLife,
    account: &SimAccount,
    idempotency_key: Option<&str>,
    url: &str,
) -> CreatedJob {
    try_create(life, account, idempotency_key, for_link(url)).await.unwrap()
}

pub(super) async fn start(life: &ProcessLife, account: &SimAccount, video: &VideoId) -> JobId {
    create(life, account, None, &video.address()).await.view.job.id.clone()
}

pub(super) async fn job(life: &ProcessLife, id: &JobId) -> Job {
    life.accounts[0].jobs.store().job(id).await.unwrap().unwrap()
}

/// Stores a job without items.
pub(super) async fn store(life: &ProcessLife, job: Job) {
    let limits = JobLimits { unfinished: 1_000, stored: 1_000 };
    life.accounts[0].jobs.store().create(job, Vec::new(), limits).await.unwrap();
}

/// Starts a job for an archived video while a spend takes these seconds: it takes effect, its result comes too late.
pub(super) async fn start_with_slow_spend(
    life: &ProcessLife,
    account: &SimAccount,
    seconds: u64,
) -> (PaidCall, JoinHandle<()>, JobId) {
    call(life, account, video()).await;
    let paid = begin_paid(life, account, &video());
    let delay = Duration::from_secs(seconds);
    life.world.gate.set_faults(FaultPlan::SlowStore { stores: "ledger.spend", delay });
    let runner = start_runner(life);
    let id = start(life, account, &video()).await;
    (paid, runner, id)
}

#[test]
fn job_cancelled_during_long_fetch_is_charged() {
    run_scenario(with_credits([2, 0, 0, 0]), |life| async move {
        let (account, runner) = (new_account(&life).await, start_runner(&life));
        script_captions(&life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(20 * 60))]);
        let paid = begin_paid(&life, &account, &video());
        let id = start(&life, &account, &video()).await;
        advance(15 * 60).await;
        assert_eq!(job(&life, &id).await.counts.running, 1, "the item waits for its fetch");
        assert_eq!(remaining(&life, &account).await, 1, "its credit is held");
        let guard = account.admit_unkeyed(&life.accounts[0], V1Endpoint::CancelJob).await.unwrap();
        let cancelled = life.accounts[0].jobs.cancel(guard, id.as_str()).await.unwrap().job;
        assert_eq!((cancelled.status, cancelled.counts.skipped), (JobStatus::Cancelled, 0));
        advance(10 * 60).await;
        let ended = job(&life, &id).await;
        assert_eq!((ended.counts.done, ended.spent), (1, 1));
        assert_eq!(remaining(&life, &account).await, 1);
        assert_eq!(fetch_count(&life, &video()), 1);
        paid.end(CallEnd::Delivered);
        runner.abort();
    });
}

/// The archived default transcript is in another language than the items, which are in English.
#[test]
fn job_item_beside_other_default_is_fetched_and_charged() {
    run_scenario(with_credits([2, 0, 0, 0]), |life| async move {
        let (account, key) = (new_account(&life).await, new_key(&life).await);
        script_captions(&life, &[SupplierStep::give_one_of(&["fr", "en"]), SupplierStep::give(&["en"])]);
        check(&keyed(&life, &key, video()).await, ScenarioResult::New);
        let runner = start_runner(&life);
        let paid = begin_paid(&life, &account, &video());
        let id = start(&life, &account, &video()).await;
        advance(60).await;
        let ended = job(&life, &id).await;
        assert_eq!((ended.status, ended.counts.done, ended.spent), (JobStatus::Completed, 1, 1));
        assert_eq!((fetch_count(&life, &video()), remaining(&life, &account).await), (2, 1));
        paid.end(CallEnd::Delivered);
        runner.abort();
    });
}

#[test]
fn account_gets_half_of_places_and_returns_them_when_deleted() {
    let mut config = with_credits([5, 0, 0, 0]);
    config.accounts.job_items_at_once = 2;
    run_scenario(config, |life| async move {
        let runner = start_runner(&life);
        let one = SimAccount::create(&life, "one@example.org").await;
        let two = SimAccount::create(&life, "two@example.org").await;
        let three = SimAccount::create(&life, "three@example.org").await;
        script_captions(&life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(20 * 60))]);
        let running = async |ids: [&JobId; 4]| {
            let mut counts = [0; 4];
            for (count, id) in counts.iter_mut().zip(ids) {
                let stored = life.accounts[0].jobs.store().job(id).await.unwrap();
                *count = stored.map_or(0, |job| job.counts.running);
            }
            // Of two jobs of one account, either is first.
            [counts[0] + counts[1], counts[2], counts[3]]
        };
        let first = start(&life, &one, &video()).await;
        let second = start(&life, &one, &other_video()).await;
        advance(5).await;
        let third = start(&life, &two, &video()).await;
        let last = start(&life, &three, &other_video()).await;
        advance(60).await;
        let ids = [&first, &second, &third, &last];
        assert_eq!(running(ids).await, [1, 1, 0], "another account has the second place");
        let read = life.accounts[0].admin.show(&one.email).await.unwrap().account;
        life.accounts[0].admin.delete(&read, false).await.unwrap();
        advance(60).await;
        assert_eq!(running(ids).await, [0, 1, 1], "the work of a deleted account keeps no place");
        runner.abort();
    });
}

#[test]
fn job_created_again_after_its_deletion_is_charged_again() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let (account, runner) = (new_account(&life).await, start_runner(&life));
        let mut ids = Vec::new();
        for (video, left) in [(video(), 4), (other_video(), 3)] {
            let paid = begin_paid(&life, &account, &video);
            let created = create(&life, &account, Some("key"), &video.address()).await;
            let id = created.view.job.id.clone();
            // The client disconnects: the key is free again.
            drop(created);
            advance(60).await;
            let ended = job(&life, &id).await;
            assert_eq!((ended.status, ended.spent), (JobStatus::Completed, 1));
            assert_eq!(remaining(&life, &account).await, left);
            paid.end(CallEnd::Delivered);
            for _ in 0..100 {
                create(&life, &account, None, "no link").await;
            }
            assert_eq!(life.accounts[0].jobs.store().job(&id).await.unwrap(), None);
            ids.push(id);
        }
        assert_eq!(ids[0], ids[1]);
        runner.abort();
    });
}

#[test]
fn job_item_charged_before_price_change_ends() {
    run_scenario(with_credits([9, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let (paid, runner, id) = start_with_slow_spend(&life, &account, 2).await;
        advance(20).await;
        runner.abort();
        life.world.gate.set_faults(FaultPlan::NoFaults);
        assert_eq!((job(&life, &id).await.counts.ended(), remaining(&life, &account).await), (0, 7));
        let accounts = &life.accounts[0];
        let options = AccountsOptions { credits_per_transcript: 3, ..accounts.options().clone() };
        let runner = start_runner_of(accounts.with_options(options).jobs);
        advance(90).await;
        let ended = job(&life, &id).await;
        assert_eq!((ended.status, ended.spent), (JobStatus::Completed, 1), "it costs what was charged");
        assert_eq!(remaining(&life, &account).await, 7);
        paid.end(CallEnd::Delivered);
        runner.abort();
    });
}

#[test]
fn job_idempotency_key_reused_next_day_starts_new_job() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let mut ids = Vec::new();
        // The last request comes when the responses of the first ones are no longer stored.
        for (hours, video) in [(0, video()), (1, video()), (21, video()), (2, other_video())] {
            advance(hours * 3_600).await;
            let created = create(&life, &account, Some("daily"), &video.address()).await;
            ids.push(created.view.job.id.clone());
            drop(created);
            // The key is free again.
            advance(1).await;
        }
        assert_eq!(ids[..2], ids[1..3], "repeats return the job");
        assert_ne!(ids[2], ids[3]);
        let items = life.accounts[0].jobs.store().items(&ids[3], 0, 9).await.unwrap();
        assert_eq!(items[0].video, Some(other_video()));
    });
}

#[test]
fn job_created_while_account_is_erased_is_deleted() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let (accounts, account) = (&life.accounts[0], new_account(&life).await);
        let stored = async || {
            accounts.jobs.store().jobs_of(&account.id, PageRequest::first()).await.unwrap().items.len()
        };
        let late = account.admit_unkeyed(accounts, V1Endpoint::StartJob).await.unwrap();
        let id = start(&life, &account, &video()).await;
        let read = accounts.admin.show(&account.email).await.unwrap().account;
        // The jobs end at once, the account after half a second. Then the jobs are deleted.
        let delay = Duration::from_millis(500);
        life.world.gate.set_faults(FaultPlan::SlowStore { stores: "directory.erase_account", delay });
        let between = async {
            tokio::time::sleep(Duration::from_millis(250)).await;
            store(&life, Job::new(JobId::new("job_a"), account.id.clone(), None, &[], life.now())).await;
            (stored().await, job(&life, &id).await.status)
        };
        let (erased, found) = tokio::join!(accounts.admin.delete(&read, false), between);
        erased.unwrap();
        assert_eq!((found, stored().await), ((2, JobStatus::Cancelled), 0));
        life.world.gate.set_faults(FaultPlan::NoFaults);
        check_refused(accounts.jobs.create(late, for_link(&video().address())).await, 401, "deleted");
        let runner = start_runner(&life);
        advance(10).await;
        assert_eq!(stored().await, 0, "the servers delete its jobs");
        runner.abort();
    });
}

/// Stores a job that waits for credits, without items.
async fn store_paused(life: &ProcessLife, account: &SimAccount, id: &JobId) {
    let job = Job::new(id.clone(), account.id.clone(), None, &[], life.now());
    let (pause_reason, due_at) = (Some(PauseReason::PaymentRequired), Some(life.now()));
    store(life, Job { status: JobStatus::Paused, pause_reason, ended_at: None, due_at, ..job }).await;
}

#[test]
fn paused_job_resumes_beside_many_that_stay_paused() {
    run_scenario(with_credits([0, 0, 0, 0]), |life| async move {
        let poor = SimAccount::create(&life, "poor@example.org").await;
        let rich = SimAccount::create(&life, "rich@example.org").await;
        let gift = life.accounts[0].admin.grant(&rich.email, GrantId::new("gift"), 5, "").await;
        assert_eq!(gift.unwrap().credits.remaining, 5);
        let ids: Vec<_> = (0..300).map(|number| JobId::new(format!("job_{number:0>3}"))).collect();
        for (number, id) in ids.iter().enumerate() {
            store_paused(&life, if number == 299 { &rich } else { &poor }, id).await;
        }
        let runner = start_runner(&life);
        advance(5).await;
        assert_eq!(job(&life, &ids[0]).await.status, JobStatus::Paused);
        assert_eq!(job(&life, &ids[299]).await.status, JobStatus::Running);
        runner.abort();
    });
}

#[test]
fn old_jobs_are_deleted_within_two_minutes() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let ended = life.now().minus(Duration::from_secs(31 * 24 * 3_600));
        for number in 0..100 {
            let id = JobId::new(format!("job_{number}"));
            store(&life, Job::new(id, account.id.clone(), None, &[], ended)).await;
        }
        let runner = start_runner(&life);
        advance(120).await;
        let jobs = life.accounts[0].jobs.store().jobs_of(&account.id, PageRequest::first()).await.unwrap();
        assert_eq!(jobs.items, []);
        runner.abort();
    });
}

/// A round of checks takes a second, and each job is due again after ten.
#[test]
fn old_job_is_deleted_while_paused_jobs_fill_rounds() {
    run_scenario(with_credits([0, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        for number in 0..800 {
            store_paused(&life, &account, &JobId::new(format!("job_{number:0>3}"))).await;
        }
        let (old, ended) = (JobId::new("job_old"), life.now().minus(Duration::from_secs(31 * 24 * 3_600)));
        store(&life, Job::new(old.clone(), account.id.clone(), None, &[], ended)).await;
        let delay = Duration::from_millis(500);
        life.world.gate.set_faults(FaultPlan::SlowStore { stores: "directory.account", delay });
        let (calls, runner) = (life.world.gate.calls(), start_runner(&life));
        advance(60).await;
        assert_eq!(life.accounts[0].jobs.store().job(&old).await.unwrap(), None);
        // Two or three for each round, in a quarter of the time.
        let calls = life.world.gate.calls() - calls;
        assert!(calls < 100, "{calls} calls of stores in a minute");
        life.world.gate.set_faults(FaultPlan::NoFaults);
        runner.abort();
    });
}

/// Stores a job that is complete, with an event.
async fn store_with_event(life: &ProcessLife, id: &JobId, account: &SimAccount) {
    let job = Job::new(id.clone(), account.id.clone(), None, &[], life.now());
    store(life, Job { callback_url: Some("https://example.org/".to_owned()), ..job }).await;
}

/// Sends webhooks for some time.
async fn send(life: &ProcessLife, client: impl WebhookClient, body: WebhookBody, seconds: u64) {
    let webhooks = Arc::clone(&life.accounts[0].webhooks);
    let deps = WebhookSenderDeps { client: Arc::new(client), body, observer: Arc::new(|_| {}) };
    send_webhooks(|| Arc::clone(&webhooks), deps, advance(seconds)).await;
}

/// A client whose receivers respond with this status.
#[derive(Debug)]
struct FixedClient(u16);

#[async_trait]
impl WebhookClient for FixedClient {
    async fn post(&self, _post: WebhookPost) -> Result<u16> {
        Ok(self.0)
    }
}

/// A client that must not be called.
#[derive(Debug)]
struct UnusedClient;

#[async_trait]
impl WebhookClient for UnusedClient {
    async fn post(&self, _post: WebhookPost) -> Result<u16> {
        panic!("a webhook is sent")
    }
}

#[test]
fn webhook_of_erased_account_is_abandoned() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let (accounts, account) = (&life.accounts[0], new_account(&life).await);
        let read = accounts.admin.show(&account.email).await.unwrap().account;
        accounts.admin.delete(&read, false).await.unwrap();
        let id = JobId::new("job_a");
        store_with_event(&life, &id, &account).await;
        send(&life, UnusedClient, |_, _, _| Ok(Vec::new()), 5).await;
        let log = accounts.webhooks.store().events(&id).await.unwrap();
        assert_eq!((log[0].state(), log[0].attempts.len()), (EventState::Abandoned, 1));
    });
}

#[test]
fn webhook_that_is_not_prepared_uses_no_attempts() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let (account, id) = (new_account(&life).await, JobId::new("job_a"));
        store_with_event(&life, &id, &account).await;
        let events = async || life.accounts[0].webhooks.store().events(&id).await.unwrap();
        // The leases of an hour are more than the attempts at an event.
        send(&life, UnusedClient, |_, _, _| Err(Error::unavailable("the body is not written")), 3_600).await;
        let log = events().await;
        assert_eq!((log[0].state(), log[0].attempts.len()), (EventState::Pending, 0));
        send(&life, FixedClient(500), |_, _, _| Ok(Vec::new()), 60).await;
        let log = events().await;
        assert_eq!(log[0].state(), EventState::Pending);
        let pauses = log[0].attempts.iter().map(|attempt| {
            let pause = attempt.next_at.map(|next| next.since(attempt.at).as_secs());
            (attempt.number, pause)
        });
        let pauses: Vec<_> = pauses.collect();
        assert_eq!(pauses[..2], [(1, Some(5)), (2, Some(10))]);
    });
}

#[test]
fn webhook_of_unreadable_job_is_abandoned_after_its_attempts() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let (account, id) = (new_account(&life).await, JobId::new("job_a"));
        store_with_event(&life, &id, &account).await;
        let unreadable: WebhookBody = |_, _, _| {
            Err(Error::new(
                ErrorKind::Corrupt,
                Retry::Never,
                "a row of the database /data cannot be read back",
            ))
        };
        send(&life, UnusedClient, unreadable, 24 * 3_600).await;
        let log = life.accounts[0].webhooks.store().events(&id).await.unwrap();
        assert_eq!((log[0].state(), log[0].attempts.len()), (EventState::Abandoned, 33));
        let error = log[0].attempts[0].error.as_deref();
        assert_eq!(error, Some("the server cannot read the job"), "no path of the server is shown");
    });
}

#[test]
fn webhook_that_ends_each_server_is_abandoned() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let webhooks = life.accounts[0].webhooks.store();
        for (name, leases, state) in
            [("job_a", 2_999, EventState::Delivered), ("job_b", 3_000, EventState::Abandoned)]
        {
            let id = JobId::new(name);
            store_with_event(&life, &id, &account).await;
            for _ in 0..leases {
                // A server that ends during the attempt: its lease expires.
                let now = life.now();
                let leased = webhooks.lease_events(now, now, 1).await.unwrap();
                assert_eq!(leased[0].attempt, 1, "nothing is recorded");
            }
            send(&life, FixedClient(204), |_, _, _| Ok(Vec::new()), 5).await;
            let log = webhooks.events(&id).await.unwrap();
            assert_eq!((log[0].state(), log[0].attempts.len()), (state, 1), "{log:?}");
        }
    });
}
