//! `verbatim jobs`: lists, pauses and resumes the jobs of accounts, also next to running servers.

use clap::{Args, Subcommand};
use transcript_core::accounts::jobs::{Job, PauseReason};

use super::{
    CommandError,
    arguments::JsonListArgs,
    listing::{print_all, seconds, table},
    open_existing, operations, print,
};
use crate::{
    config::Settings,
    operations::{JobRow, Operations},
};

#[derive(Debug, Subcommand)]
pub(super) enum JobsCommand {
    /// List the jobs of all accounts that have not ended
    List(JsonListArgs),
    /// Pause a job, or all: videos that have started end, and nothing else starts until it is resumed
    #[command(override_usage = "verbatim jobs pause [OPTIONS] ID
       verbatim jobs pause [OPTIONS] --all")]
    Pause(JobArgs),
    /// Resume a job that the operator paused, or all
    #[command(override_usage = "verbatim jobs resume [OPTIONS] ID
       verbatim jobs resume [OPTIONS] --all")]
    Resume(JobArgs),
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim jobs pause job_0123456789abcdef0123456789abcdef
  verbatim jobs pause --all
  verbatim jobs resume --all

Takes effect within seconds, also on running servers. Jobs that are started later run. Exit status 1: there \
is no such job.")]
pub(super) struct JobArgs {
    /// Id of the job
    #[arg(value_name = "ID", required_unless_present = "all")]
    id: Option<String>,
    /// All jobs that have not ended
    #[arg(long, conflicts_with = "id")]
    all: bool,
}

/// Runs a subcommand of `jobs`.
pub(super) async fn run(settings: &Settings, command: JobsCommand) -> Result<(), CommandError> {
    let verbatim = open_existing(settings).await?;
    let operations = &operations(settings, &verbatim);
    let done = match command {
        JobsCommand::List(args) => {
            print_all::<JobRow, _, _>(args.json, |page| operations.list_jobs(page), job_table).await
        }
        JobsCommand::Pause(args) => set_paused(operations, &args, true).await,
        JobsCommand::Resume(args) => set_paused(operations, &args, false).await,
    };
    verbatim.close().await;
    done
}

async fn set_paused(operations: &Operations, args: &JobArgs, is_paused: bool) -> Result<(), CommandError> {
    match &args.id {
        Some(id) => {
            let job = operations.set_job_paused(id, is_paused).await?;
            print(&format!("{}: {}\n", job.id, state(&job)))
        }
        None => {
            let count = operations.set_all_jobs_paused(is_paused).await?;
            print(&format!("{count} {}\n", if is_paused { "paused" } else { "resumed" }))
        }
    }
}

fn state(job: &Job) -> String {
    match job.pause_reason.map(PauseReason::as_str) {
        Some(reason) => format!("{} ({reason})", job.status.as_str()),
        None => job.status.as_str().to_owned(),
    }
}

fn job_table(jobs: &[Job], with_heading: bool) -> String {
    let columns = [("ID", 36), ("CREATED", 20), ("STATE", 25), ("DONE", -11), ("FAILED", -6), ("ACCOUNT", 0)];
    let row = |job: &Job| {
        [
            job.id.to_string(),
            seconds(&job.created_at.to_string()),
            state(job),
            format!("{}/{}", job.counts.done, job.counts.total),
            job.counts.failed.to_string(),
            job.account.to_string(),
        ]
    };
    table(columns, with_heading, jobs.iter().map(row))
}
