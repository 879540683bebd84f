//! Jobs of the service within the process.

use transcript_core::{
    accounts::{
        Accounts, V1Error,
        jobs::{JobParams, JobView, ResultsPage},
    },
    transcript::LanguageTag,
    wire::v1::{JobInfo, JobRequest, JobResult, JobResults, VideoTranscript},
};

pub(super) fn job_params(request: JobRequest) -> JobParams {
    let JobRequest { urls, playlist, channel, search, limit, since, lang, callback_url } = request;
    JobParams { urls, playlist, channel, search, limit, since, lang, callback_url }
}

pub(super) fn job_info(accounts: &Accounts, view: &JobView) -> JobInfo {
    JobInfo::new(view, &accounts.options().base_url)
}

/// Items of a job with their transcripts.
pub(super) async fn job_results(accounts: &Accounts, page: ResultsPage) -> Result<JobResults, V1Error> {
    let ResultsPage { job, items, next } = page;
    let language = job.language.as_deref().and_then(|tag| LanguageTag::parse(tag).ok());
    let mut results = Vec::with_capacity(items.len());
    for item in &items {
        let found = accounts.jobs.transcript(&job, item).await?;
        let languages = accounts.jobs.languages_instead(&job, item).await;
        let result = JobResult::new(item, found.loss()).with_languages(&languages);
        let transcript = |stored| VideoTranscript::from(stored).with_requested(language.as_ref());
        results.push(JobResult { transcript: found.stored().map(transcript), ..result });
    }
    let next_cursor = next.map(|next| next.to_string());
    Ok(JobResults { job_id: job.id.as_str().to_owned(), next_cursor, items: results })
}
