//! Examples of jobs.

use serde_json::Value;
use transcript_core::{
    accounts::{
        AccountsOptions,
        jobs::{ItemStatus, JobStatus},
    },
    video::Platform,
    wire::v1::{JobCredits, JobInfo, JobItemCounts, JobList, JobRequest, JobResult, JobResults},
};

use super::{VIDEO, transcript, value};

/// Id of the example job.
pub(crate) fn id() -> String {
    format!("job_{}", "0".repeat(32))
}

pub(crate) fn request() -> Value {
    let urls = vec![link(), "https://youtu.be/jNQXAC9IVRw".to_owned()];
    value(JobRequest { urls: Some(urls), lang: Some("en".to_owned()), ..JobRequest::default() })
}

pub(crate) fn channel_request() -> Value {
    let since = Some("2026-01-01".to_owned());
    let channel = Some("@name".to_owned());
    value(JobRequest { channel, limit: Some(100), since, ..JobRequest::default() })
}

pub(crate) fn new(options: &AccountsOptions) -> Value {
    value(job(options))
}

pub(crate) fn running(options: &AccountsOptions) -> Value {
    let job = job(options);
    value(JobInfo {
        status: JobStatus::Running.as_str().to_owned(),
        counts: JobItemCounts { queued: 0, running: 1, done: 1, ..job.counts },
        credits: JobCredits { spent: 1, estimate: 1, remaining: 198 },
        ..job
    })
}

pub(crate) fn listing(options: &AccountsOptions) -> Value {
    let job = job(options);
    value(JobInfo {
        status: JobStatus::Listing.as_str().to_owned(),
        list_url: Some("https://www.youtube.com/@name/videos".to_owned()),
        counts: JobItemCounts { total: 0, queued: 0, ..job.counts },
        credits: JobCredits { estimate: 0, ..job.credits },
        ..job
    })
}

pub(crate) fn completed(options: &AccountsOptions, callback_url: &str) -> JobInfo {
    let job = job(options);
    JobInfo {
        status: JobStatus::Completed.as_str().to_owned(),
        ended_at: Some("2026-11-22T09:04:00Z".to_owned()),
        counts: JobItemCounts { queued: 0, done: 1, failed: 1, ..job.counts },
        credits: JobCredits { spent: 1, estimate: 0, remaining: 199 },
        callback_url: Some(callback_url.to_owned()),
        ..job
    }
}

pub(crate) fn list(options: &AccountsOptions) -> Value {
    value(JobList { success: true, jobs: vec![job(options)], next_cursor: None })
}

pub(crate) fn results() -> Value {
    let items = items().to_vec();
    value(JobResults { job_id: id(), next_cursor: None, items })
}

pub(crate) fn lines() -> String {
    items().iter().map(|item| format!("{}\n", value(item))).collect()
}

fn link() -> String {
    format!("https://www.youtube.com/watch?v={VIDEO}")
}

fn job(options: &AccountsOptions) -> JobInfo {
    let poll_url = format!("{}/api/v1/jobs/{}", options.base_url, id());
    JobInfo {
        success: true,
        job_id: id(),
        status: JobStatus::Queued.as_str().to_owned(),
        created_at: "2026-11-22T09:00:00Z".to_owned(),
        ended_at: None,
        list_url: None,
        counts: JobItemCounts { total: 2, queued: 2, running: 0, done: 0, failed: 0, skipped: 0 },
        credits: JobCredits { spent: 0, estimate: 2, remaining: 200 },
        pause_reason: None,
        reason: None,
        message: None,
        results_url: format!("{poll_url}/results"),
        poll_url,
        callback_url: None,
    }
}

fn items() -> [JobResult; 2] {
    let done = JobResult {
        index: 0,
        url: link(),
        platform: Some(Platform::YouTube.as_str().to_owned()),
        video_id: Some(VIDEO.to_owned()),
        status: ItemStatus::Done.as_str().to_owned(),
        reason: None,
        message: None,
        languages: Vec::new(),
        transcript: serde_json::from_value(transcript()).ok(),
    };
    let failed = JobResult {
        index: 1,
        url: "https://youtu.be/jNQXAC9IVRw".to_owned(),
        video_id: Some("jNQXAC9IVRw".to_owned()),
        status: ItemStatus::Failed.as_str().to_owned(),
        reason: Some("no_captions".to_owned()),
        message: Some("This video has no captions.".to_owned()),
        transcript: None,
        ..done.clone()
    };
    [done, failed]
}
