//! Jobs, and the deliveries of their webhooks.

use maud::{Markup, html};
use transcript_core::accounts::{
    jobs::{Job, JobStatus, PauseReason},
    webhooks::{EventState, JobEventKind, JobEventLog, WebhookAttempt},
};

use super::{AccountPage, account_page, date_and_time, post_form};
use crate::page::PageContext;

/// Page with the newest jobs.
pub(crate) fn jobs(context: &PageContext, jobs: &[Job]) -> Markup {
    let text = |key| context.text(key);
    account_page(
        context,
        AccountPage::Jobs,
        "account.jobs",
        html! {
            p { (text("jobs.lead")) }
            @if jobs.is_empty() {
                p { (text("jobs.empty")) }
            } @else {
                div.scroll tabindex="0" role="region" aria-label=(text("account.jobs")) {
                    table {
                        thead {
                            tr {
                                th scope="col" { (text("jobs.started")) }
                                th scope="col" { (text("jobs.state")) }
                                th.number scope="col" { (text("jobs.done")) }
                                th.number.detail scope="col" { (text("jobs.failed")) }
                                th.number scope="col" { (text("jobs.credits")) }
                            }
                        }
                        tbody {
                            @for job in jobs {
                                tr {
                                    td {
                                        a href=(context.href(&format!("account/jobs/{}", job.id))) {
                                            (date_and_time(job.created_at))
                                        }
                                    }
                                    td { (text(state_message(job))) }
                                    td.number { (done(context, job)) }
                                    td.number.detail { (context.number(job.counts.failed)) }
                                    td.number { (context.number(job.spent)) }
                                }
                            }
                        }
                    }
                }
            }
        },
    )
}

pub(crate) fn job(context: &PageContext, job: &Job, log: &[JobEventLog]) -> Markup {
    let text = |key| context.text(key);
    let counts = &job.counts;
    account_page(
        context,
        AccountPage::Jobs,
        "jobs.job",
        html! {
            dl.facts {
                dt { (text("jobs.id")) }
                dd { code { (job.id) } }
                dt { (text("jobs.started")) }
                dd { (date_and_time(job.created_at)) }
                @if let Some(ended_at) = job.ended_at {
                    dt { (text("jobs.ended")) }
                    dd { (date_and_time(ended_at)) }
                }
                @if let Some(list) = &job.list {
                    dt { (text("jobs.list")) }
                    dd { a href=(list.list.address()) rel="noopener noreferrer" { (list.list.address()) } }
                }
                dt { (text("jobs.state")) }
                dd { (text(state_message(job))) }
                @if let Some(failure) = &job.failure {
                    dt { (text("jobs.reason")) }
                    dd { (text(failure_message(&failure.reason))) }
                }
                dt { (text("jobs.done")) }
                dd { (done(context, job)) }
                dt { (text("jobs.failed")) }
                dd { (context.number(counts.failed)) }
                @if counts.skipped > 0 {
                    dt { (text("jobs.skipped")) }
                    dd { (context.number(counts.skipped)) }
                }
                dt { (text("jobs.credits")) }
                dd { (context.number(job.spent)) }
                @if let Some(url) = &job.callback_url {
                    dt { (text("jobs.callback")) }
                    dd { code { (url) } }
                }
            }
            @if !job.status.has_ended() {
                p { (text("jobs.cancel_hint")) }
                (post_form(context, "account/jobs/cancel", html! {
                    input type="hidden" name="job" value=(job.id);
                    button.other type="submit" { (text("jobs.cancel")) }
                }))
            }
            @if job.callback_url.is_some() { (deliveries(context, log)) }
            p { a href=(context.href("account/jobs")) { (text("jobs.all")) } }
        },
    )
}

fn done(context: &PageContext, job: &Job) -> String {
    let (done, total) = (context.number(job.counts.done), context.number(job.counts.total));
    context.fill("jobs.done_of", &[("done", &done), ("total", &total)])
}

/// The events of a job with their attempts.
fn deliveries(context: &PageContext, log: &[JobEventLog]) -> Markup {
    let text = |key| context.text(key);
    html! {
        h2 { (text("jobs.deliveries")) }
        @if log.is_empty() {
            p { (text("jobs.no_deliveries")) }
        } @else {
            div.scroll tabindex="0" role="region" aria-label=(text("jobs.deliveries")) {
                table {
                    thead {
                        tr {
                            th scope="col" { (text("jobs.event")) }
                            th.number scope="col" { (text("jobs.attempt")) }
                            th scope="col" { (text("jobs.time")) }
                            th scope="col" { (text("jobs.result")) }
                        }
                    }
                    tbody {
                        @for event in log {
                            @for attempt in &event.attempts {
                                tr {
                                    td { (text(event_message(event.event.kind))) }
                                    td.number { (attempt.number) }
                                    td { (date_and_time(attempt.at)) }
                                    td { (result(context, attempt)) }
                                }
                            }
                            (state(context, event))
                        }
                    }
                }
            }
        }
    }
}

/// The row of an event that is still to be sent, or was given up.
fn state(context: &PageContext, event: &JobEventLog) -> Markup {
    let label = match (event.state(), event.due_at) {
        (EventState::Pending, Some(due_at)) => {
            context.markup("jobs.next", &[("time", date_and_time(due_at))])
        }
        (EventState::Abandoned, _) => html! { (context.text("jobs.abandoned")) },
        _ => return Markup::default(),
    };
    html! {
        tr {
            td { (context.text(event_message(event.event.kind))) }
            td {}
            td {}
            td { (label) }
        }
    }
}

/// What the receiver answered: its status, or why there was no answer, whose detail is in English as in the API.
fn result(context: &PageContext, attempt: &WebhookAttempt) -> Markup {
    match (attempt.status, &attempt.error) {
        (Some(status), None) => {
            html! { (context.fill("jobs.accepted", &[("status", &status.to_string())])) }
        }
        (Some(status), Some(_)) => {
            html! { (context.fill("jobs.refused", &[("status", &status.to_string())])) }
        }
        (None, error) => html! {
            (context.text("jobs.no_response"))
            @if let Some(error) = error { " (" span lang="en" dir="ltr" { (error) } ")" }
        },
    }
}

/// Message with the reason why a list could not be read.
fn failure_message(reason: &str) -> &'static str {
    match reason {
        "private" => "jobs.list_private",
        "removed" => "jobs.list_removed",
        "no_tab" => "jobs.list_no_tab",
        "unviewable" => "jobs.list_unviewable",
        "empty" => "jobs.list_empty",
        "misconfigured" | "stale" => "jobs.list_misconfigured",
        _ => "jobs.list_failed",
    }
}

fn state_message(job: &Job) -> &'static str {
    match (job.status, job.pause_reason) {
        (JobStatus::Listing, _) => "jobs.state_listing",
        (JobStatus::Queued, _) => "jobs.state_queued",
        (JobStatus::Running, _) => "jobs.state_running",
        (JobStatus::Paused, Some(PauseReason::PaymentRequired)) => "jobs.state_unpaid",
        (JobStatus::Paused, _) => "jobs.state_paused",
        (JobStatus::Completed, _) => "jobs.state_completed",
        (JobStatus::Cancelled, _) => "jobs.state_cancelled",
        (JobStatus::Failed, _) => "jobs.state_failed",
    }
}

fn event_message(kind: JobEventKind) -> &'static str {
    match kind {
        JobEventKind::Completed => "jobs.state_completed",
        JobEventKind::Paused => "jobs.event_paused",
        JobEventKind::Cancelled => "jobs.state_cancelled",
        JobEventKind::Failed => "jobs.state_failed",
    }
}

#[cfg(test)]
mod tests {
    use transcript_core::supplier::ListAbsenceReason;

    use super::*;

    #[test]
    fn failure_message_of_absent_list_is_specific() {
        let messages: std::collections::BTreeSet<_> =
            ListAbsenceReason::ALL.iter().map(|reason| failure_message(reason.as_str())).collect();
        assert_eq!(messages.len(), ListAbsenceReason::ALL.len());
        assert!(!messages.contains(failure_message("timeout")));
    }
}
