//! Jobs: servers that end, requests without a response, and jobs that are deleted.

use transcript_core::{
    PageRequest,
    accounts::{
        V1Endpoint,
        jobs::{ClaimLimits, Job, JobParams, JobStatus, ListingOutcome, PauseReason, SourceList, run_jobs},
    },
    ids::{JobId, WalletId},
    supplier::SupplyReason,
    video::VideoList,
};

use super::{
    jobs::{for_link, job, start, start_runner, start_with_slow_spend, store, try_create},
    *,
};

/// Claims the only item of a server that ends during the work: its lease expires. Returns the number of the claim.
async fn claim_and_end(life: &ProcessLife) -> u64 {
    let now = life.now();
    let claimed = life.accounts[0].jobs.store().claim(now, now, ClaimLimits::new(1, 1)).await.unwrap();
    assert_eq!(claimed.len(), 1);
    claimed[0].claim.number
}

/// Stores a job with a list, of which no server of these scenarios reads any.
async fn store_list(life: &ProcessLife) -> JobId {
    let (account, id) = (new_account(life).await, JobId::new("job_a"));
    let list = VideoList::parse("PL0123456789abcdef").unwrap();
    let list = SourceList { list, limit: 9, since: None, is_open: true };
    store(life, Job::of_list(id.clone(), account.id.clone(), None, list, life.now())).await;
    id
}

/// Why the list of a job could not be read.
async fn failure_of_list(life: &ProcessLife, id: &JobId) -> Option<String> {
    let failed = job(life, id).await;
    assert_eq!(failed.status, JobStatus::Failed);
    failed.failure.map(|failure| failure.reason)
}

/// Why the first item of a job failed.
async fn failure_of_item(life: &ProcessLife, id: &JobId) -> Option<String> {
    let items = life.accounts[0].jobs.store().items(id, 0, 1).await.unwrap();
    items[0].failure.as_ref().map(|failure| failure.reason.clone())
}

#[test]
fn job_item_that_ends_each_server_fails() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let id = start(&life, &account, &video()).await;
        for _ in 0..5 {
            claim_and_end(&life).await;
        }
        let runner = start_runner(&life);
        advance(5).await;
        assert_eq!(job(&life, &id).await.status, JobStatus::Completed);
        assert_eq!(failure_of_item(&life, &id).await.as_deref(), Some("interrupted"));
        assert_eq!((fetch_count(&life, &video()), remaining(&life, &account).await), (0, 5));
        runner.abort();
    });
}

#[test]
fn job_item_delivers_after_four_servers_ended() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let paid = begin_paid(&life, &account, &video());
        let id = start(&life, &account, &video()).await;
        for _ in 0..4 {
            claim_and_end(&life).await;
        }
        let runner = start_runner(&life);
        advance(60).await;
        let ended = job(&life, &id).await;
        assert_eq!((ended.counts.done, remaining(&life, &account).await), (1, 4));
        paid.end(CallEnd::Delivered);
        runner.abort();
    });
}

#[test]
fn job_item_has_all_its_attempts_after_four_servers_ended() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let paid = begin_paid(&life, &account, &video());
        let failed = || SupplierStep::fail(SupplyReason::Timeout);
        script_captions(&life, &[failed(), failed(), failed(), SupplierStep::give(&["en"])]);
        let id = start(&life, &account, &video()).await;
        for _ in 0..4 {
            claim_and_end(&life).await;
        }
        let runner = start_runner(&life);
        advance(120).await;
        assert_eq!((job(&life, &id).await.counts.done, fetch_count(&life, &video())), (1, 4));
        paid.end(CallEnd::Delivered);
        runner.abort();
    });
}

#[test]
fn job_item_outlasts_failure_of_ledger() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let paid = begin_paid(&life, &account, &video());
        let id = start(&life, &account, &video()).await;
        claim_and_end(&life).await;
        // Its charge cannot be looked up for longer than five leases last.
        life.world.gate.set_faults(FaultPlan::StoreDown { stores: "ledger.settle" });
        let runner = start_runner(&life);
        advance(900).await;
        assert_eq!(job(&life, &id).await.counts.ended(), 0);
        life.world.gate.set_faults(FaultPlan::NoFaults);
        advance(60).await;
        assert_eq!((job(&life, &id).await.counts.done, remaining(&life, &account).await), (1, 4));
        paid.end(CallEnd::Delivered);
        runner.abort();
    });
}

#[test]
fn job_item_that_failed_outlasts_two_days_without_servers() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let paid = begin_paid(&life, &account, &video());
        let id = start(&life, &account, &video()).await;
        life.world.gate.set_faults(FaultPlan::StoreDown { stores: "directory.account" });
        for wait in [0, 2 * 24 * 3_600] {
            advance(wait).await;
            let runner = start_runner(&life);
            advance(30).await;
            runner.abort();
            assert_eq!(job(&life, &id).await.counts.ended(), 0, "it is tried again");
        }
        life.world.gate.set_faults(FaultPlan::NoFaults);
        let runner = start_runner(&life);
        advance(120).await;
        assert_eq!((job(&life, &id).await.counts.done, remaining(&life, &account).await), (1, 4));
        paid.end(CallEnd::Delivered);
        runner.abort();
    });
}

#[test]
fn job_item_charged_before_crash_is_done_with_text_if_possible() {
    let give = || SupplierStep::give(&["en"]);
    let fail = || SupplierStep::fail(SupplyReason::NoCaptions);
    // Without a third credit nothing is fetched.
    for (credits, step, fetches, loss) in
        [(2, give(), 1, Some("missing")), (3, give(), 2, None), (3, fail(), 2, Some("no_captions"))]
    {
        run_scenario(with_credits([credits, 0, 0, 0]), |life| async move {
            let account = new_account(&life).await;
            let (paid, runner, id) = start_with_slow_spend(&life, &account, 2).await;
            advance(20).await;
            runner.abort();
            life.world.gate.set_faults(FaultPlan::NoFaults);
            let left = credits - 2;
            assert_eq!((job(&life, &id).await.counts.ended(), remaining(&life, &account).await), (0, left));
            life.world.archive.delete(&video()).await.unwrap();
            script_captions(&life, &[step]);
            let runner = start_runner(&life);
            advance(90).await;
            let ended = job(&life, &id).await;
            assert_eq!((ended.status, ended.counts.done, ended.spent), (JobStatus::Completed, 1, 1));
            assert_eq!((fetch_count(&life, &video()), remaining(&life, &account).await), (fetches, left));
            let jobs = &life.accounts[0].jobs;
            let items = jobs.store().items(&id, 0, 1).await.unwrap();
            let found = jobs.transcript(&ended, &items[0]).await.unwrap();
            assert_eq!(found.stored().is_some(), loss.is_none());
            assert_eq!(found.loss().map(|failure| failure.reason.as_str()), loss);
            paid.end(CallEnd::Delivered);
            runner.abort();
        });
    }
}

#[test]
fn job_item_outlasts_uncertain_charges() {
    run_scenario(with_credits([2, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let (paid, runner, id) = start_with_slow_spend(&life, &account, 10).await;
        // The result of no spend is known, for longer than five leases last.
        advance(900).await;
        assert_eq!(job(&life, &id).await.counts.ended(), 0);
        runner.abort();
        advance(600).await;
        let claims = claim_and_end(&life).await;
        assert!(claims <= 8, "the pauses grow from one minute to ten: {claims} claims");
        life.world.gate.set_faults(FaultPlan::NoFaults);
        let runner = start_runner(&life);
        advance(120).await;
        assert_eq!((job(&life, &id).await.counts.done, remaining(&life, &account).await), (1, 0));
        paid.end(CallEnd::Delivered);
        runner.abort();
    });
}

/// Cancels a job; returns it.
async fn cancel(life: &ProcessLife, account: &SimAccount, id: &JobId) -> Job {
    let guard = account.admit_unkeyed(&life.accounts[0], V1Endpoint::CancelJob).await.unwrap();
    life.accounts[0].jobs.cancel(guard, id.as_str()).await.unwrap().job
}

#[test]
fn job_item_charged_and_queued_before_cancellation_is_done() {
    run_scenario(with_credits([2, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let (paid, runner, id) = start_with_slow_spend(&life, &account, 2).await;
        advance(20).await;
        life.world.gate.set_faults(FaultPlan::NoFaults);
        assert_eq!((job(&life, &id).await.counts.queued(), remaining(&life, &account).await), (1, 0));
        let cancelled = cancel(&life, &account, &id).await;
        assert_eq!((cancelled.status, cancelled.counts.skipped), (JobStatus::Cancelled, 0));
        advance(120).await;
        let ended = job(&life, &id).await;
        assert_eq!((ended.counts.done, ended.counts.skipped, ended.spent), (1, 0, 1));
        assert_eq!(remaining(&life, &account).await, 0);
        paid.end(CallEnd::Delivered);
        runner.abort();
    });
}

#[test]
fn job_item_started_and_not_charged_before_cancellation_is_skipped() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let id = start(&life, &account, &video()).await;
        claim_and_end(&life).await;
        assert_eq!(cancel(&life, &account, &id).await.counts.skipped, 0);
        let runner = start_runner(&life);
        advance(60).await;
        assert_eq!(job(&life, &id).await.counts.skipped, 1);
        assert_eq!((fetch_count(&life, &video()), remaining(&life, &account).await), (0, 5));
        runner.abort();
    });
}

/// Another request takes the only credit between the release of the hold of the fetch and the charge.
#[test]
fn job_item_fetched_and_unpaid_before_cancellation_is_charged() {
    run_scenario(with_credits([1, 0, 0, 0]), |life| async move {
        let (account, runner) = (new_account(&life).await, start_runner(&life));
        let refused = SupplierStep::fail(SupplyReason::NoCaptions).after(Duration::from_secs(15));
        script_captions(&life, &[SupplierStep::give(&["en"]), refused]);
        let paid = begin_paid(&life, &account, &video());
        let delay = Duration::from_secs(1);
        life.world.gate.set_faults(FaultPlan::SlowStore { stores: "ledger.settle", delay });
        let id = start(&life, &account, &video()).await;
        advance(1).await;
        while remaining(&life, &account).await == 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        life.world.gate.set_faults(FaultPlan::NoFaults);
        let cancelled = async {
            advance(5).await;
            let paused = job(&life, &id).await;
            assert_eq!(paused.pause_reason, Some(PauseReason::PaymentRequired));
            cancel(&life, &account, &id).await
        };
        let (other, cancelled) = tokio::join!(ready(&life, &account, by_id(&other_video())), cancelled);
        check_refused(other, 404, "");
        assert_eq!((cancelled.status, cancelled.counts.skipped), (JobStatus::Cancelled, 0));
        assert_eq!(job(&life, &id).await.counts.ended(), 0, "it waits for the credit");
        advance(60).await;
        let ended = job(&life, &id).await;
        assert_eq!((ended.counts.done, ended.spent, ended.due_at), (1, 1, None));
        assert_eq!((fetch_count(&life, &video()), remaining(&life, &account).await), (1, 0));
        paid.end(CallEnd::Delivered);
        runner.abort();
    });
}

#[test]
fn job_item_archived_since_its_start_and_cancelled_is_charged() {
    for (credits, done) in [(5, 1), (0, 0)] {
        run_scenario(with_credits([credits, 0, 0, 0]), |life| async move {
            let account = new_account(&life).await;
            let paid = begin_paid(&life, &account, &video());
            let id = start(&life, &account, &video()).await;
            claim_and_end(&life).await;
            import_default(&life, "en").await;
            assert_eq!(cancel(&life, &account, &id).await.counts.skipped, 0);
            let runner = start_runner(&life);
            advance(60).await;
            let counts = job(&life, &id).await.counts;
            assert_eq!((counts.done, counts.skipped), (done, 1 - done));
            assert_eq!(remaining(&life, &account).await, credits - done);
            paid.end(if done == 1 { CallEnd::Delivered } else { CallEnd::Refused });
            runner.abort();
        });
    }
}

/// The fetch goes on while a server stops, and is archived.
#[test]
fn job_item_of_stopped_server_is_charged_if_it_was_fetched() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        script_captions(&life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(5))]);
        let paid = begin_paid(&life, &account, &video());
        let id = start(&life, &account, &video()).await;
        let jobs = Arc::clone(&life.accounts[0].jobs);
        run_jobs(move || Arc::clone(&jobs), advance(2)).await;
        let cancelled = cancel(&life, &account, &id).await;
        assert_eq!((cancelled.counts.queued(), cancelled.counts.skipped), (1, 0));
        advance(10).await;
        let runner = start_runner(&life);
        advance(60).await;
        assert_eq!((job(&life, &id).await.counts.done, remaining(&life, &account).await), (1, 4));
        assert_eq!(fetch_count(&life, &video()), 1);
        paid.end(CallEnd::Delivered);
        runner.abort();
    });
}

/// Items that wait for a source, the daily limit or the hourly one write nothing to the ledger.
#[test]
fn waiting_job_items_leave_ledger_unchanged() {
    let throttled = || SupplyReason::Throttled(Some(Duration::from_secs(600)));
    for (reason, per_day, per_hour) in [
        (throttled(), 1_000, 1_000),
        (SupplyReason::NoCaptions, 1, 1_000),
        (SupplyReason::NoCaptions, 1_000, 1),
    ] {
        let mut config = with_credits([50, 0, 0, 0]);
        config.accounts.job_items_at_once = 4;
        config.accounts.fetches_per_day = per_day;
        config.accounts.attempts_per_account_per_hour = per_hour;
        run_scenario(config, |life| async move {
            let account = new_account(&life).await;
            script_captions(&life, &[SupplierStep::fail(reason)]);
            let links = (0..40).map(|number| format!("waiting{number:04}")).collect();
            let params = JobParams { urls: Some(links), ..JobParams::default() };
            let id = try_create(&life, &account, None, params).await.unwrap().view.job.id.clone();
            let runner = start_runner(&life);
            advance(1_500).await;
            let waiting = job(&life, &id).await;
            assert_eq!(waiting.status, JobStatus::Running);
            assert!(waiting.counts.ended() < 5, "{:?}", waiting.counts);
            let daily_limit = WalletId::new("service-accounts");
            for wallet in [&account.wallet, &daily_limit] {
                let page = PageRequest { after: None, limit: 1_000 };
                let entries = life.world.ledger.recent_entries(wallet, page).await.unwrap().items;
                // Two for each fetch, and for an item beside the trial of the source.
                assert!(entries.len() < 40, "{} {wallet}, {per_day}, {per_hour}", entries.len());
            }
            runner.abort();
        });
    }
}

#[test]
fn job_idempotency_key_without_response_is_bound_to_its_body() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let link = || for_link(&video().address());
        let mut ids = Vec::new();
        for _ in 0..2 {
            let created = try_create(&life, &account, Some("key"), link()).await.unwrap();
            ids.push(created.view.job.id.clone());
            // The client disconnects: the idempotency store forgets the key.
            drop(created);
            advance(1).await;
            for other in [
                for_link(&other_video().address()),
                JobParams { lang: Some("de".to_owned()), ..link() },
                JobParams { urls: Some(vec![video().address(), other_video().address()]), ..link() },
                JobParams { callback_url: Some("https://example.org/".to_owned()), ..link() },
            ] {
                let refused = try_create(&life, &account, Some("key"), other).await;
                check_refused(refused, 400, "another request");
            }
        }
        assert_eq!(ids[0], ids[1], "the same request returns its job");
    });
}

#[test]
fn results_of_deleted_job_break_off() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let (accounts, account) = (&life.accounts[0], new_account(&life).await);
        let links = ["no link", "no link either"].map(str::to_owned).to_vec();
        let params = JobParams { urls: Some(links), ..JobParams::default() };
        let id = try_create(&life, &account, None, params).await.unwrap().view.job.id.clone();
        let guard = account.admit_unkeyed(accounts, V1Endpoint::ReadJobs).await.unwrap();
        let page = accounts.jobs.results(guard, id.as_str(), 0, 1).await.unwrap();
        assert_eq!((page.items.len(), page.next), (1, Some(1)));
        let rest = accounts.jobs.next_results(page.job.clone(), 1, 100).await.unwrap();
        assert_eq!((rest.items.len(), rest.next), (1, None));
        accounts.jobs.store().discard_for_account(&account.id).await.unwrap();
        assert_eq!(accounts.jobs.store().delete_ended(life.now(), 9).await.unwrap(), 1);
        check_refused(accounts.jobs.next_results(page.job, 1, 100).await, 404, "no job");
    });
}

#[test]
fn list_that_no_server_reads_fails_after_one_day() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let id = store_list(&life).await;
        let runner = start_runner(&life);
        advance(3_700).await;
        assert_eq!(job(&life, &id).await.status, JobStatus::Listing, "another server may read it");
        // As if the first failure were a day ago.
        let (now, jobs) = (life.now(), life.accounts[0].jobs.store());
        let listing = jobs.claim_listing(now, now, &[]).await.unwrap().unwrap();
        assert!(listing.failing_since.is_some());
        let again = ListingOutcome::Again { due_at: now, is_failure: true, is_attempt: false };
        let day_ago = now.minus(Duration::from_secs(24 * 3_600));
        assert!(jobs.end_listing(&listing.claim, again, day_ago).await.unwrap());
        advance(3_500).await;
        assert_eq!(job(&life, &id).await.status, JobStatus::Listing, "it waits for another server");
        advance(200).await;
        assert_eq!(failure_of_list(&life, &id).await.as_deref(), Some("misconfigured"));
        runner.abort();
    });
}

#[test]
fn list_page_that_ends_each_server_fails_job() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let (id, now) = (store_list(&life).await, life.now());
        for _ in 0..5 {
            let claimed = life.accounts[0].jobs.store().claim_listing(now, now, &[]).await.unwrap();
            assert!(claimed.is_some());
        }
        let runner = start_runner(&life);
        advance(3_700).await;
        assert_eq!(failure_of_list(&life, &id).await.as_deref(), Some("interrupted"));
        runner.abort();
    });
}
