//! Operations of jobs in the `OpenAPI` document.

use serde_json::{Value, json};
use transcript_core::{
    headers,
    wire::v1::{JobDeliveries, JobInfo, JobList, JobRequest, JobResults, WebhookEvent},
};

use super::{JOB_BODY_MAX, zip::ZipFormat};
use crate::routes::{
    document::optional_header,
    v1::document::{
        self, DocumentOptions,
        examples::{jobs, webhooks},
        parameters,
    },
};

/// Operation of `POST /api/v1/jobs`.
pub(crate) fn create(settings: &DocumentOptions<'_>) -> Value {
    let options = settings.accounts;
    let (cost, items, unfinished) =
        (options.credits_per_transcript, options.items_per_job, options.jobs_per_account);
    let mut responses = document::keyed(json!({
        "202": document::answer(
            "The job is stored and will run.",
            document::json_body::<JobInfo>(
                json!({
                    "new": document::example("A new job", jobs::new(options)),
                    "listing": document::example("A new job of a channel", jobs::listing(options))
                }),
            ),
            std::iter::once(document::replayed()).chain(document::rate_limit()),
        ),
        "400": document::denial(
            400,
            "The body is missing, is not a JSON object, or a field is invalid; or the Idempotency-Key was used for \
             another request.",
            &[
                ("missing", "urls: it is missing: name videos by urls, or a list by playlist, channel or search"),
                ("two", "body: it has more than one of urls, playlist, channel and search: name one"),
                ("long", &format!("urls: it has 9000 links; at most {items} are allowed")),
            ],
            document::rate_limit(),
        ),
        "409": document::busy()
    }));
    document::limited_body_denials(&mut responses, JOB_BODY_MAX);
    json!({
        "operationId": "startJob",
        "tags": ["jobs"],
        "summary": "Start a job: transcripts of many videos",
        "description": format!(
            "Exactly one of `urls`, `playlist`, `channel` and `search` names the videos. They are worked on in the \
             background, in their order; those of a list after it was read (`listing`). A list that cannot be read fails its job, and \
             costs nothing. Each delivered transcript is charged (credits: {cost}); what \
             fails or is skipped is free. Links of the same video are one item. A link that names no video is \
             an item that failed with `invalid_url`. At most {items} videos, and {unfinished} unfinished jobs per \
             account. Without credits the job pauses, and resumes after a purchase. Ended jobs are deleted after 30 \
             days. With a `callback_url` its events are sent there."
        ),
        "security": document::key(),
        "parameters": [parameters::idempotency_key()],
        "requestBody": {
            "description": format!("At most {JOB_BODY_MAX} bytes; unknown fields are rejected."),
            "required": true,
            "content": document::json_body::<JobRequest>(json!({
                "links": document::example("Two videos", jobs::request()),
                "channel": document::example("New videos of a channel", jobs::channel_request())
            }))
        },
        "callbacks": { "event": callback(settings) },
        "responses": responses
    })
}

/// Operation of `GET /api/v1/jobs`.
pub(crate) fn list(options: &DocumentOptions<'_>) -> Value {
    let list = json!({ "jobs": document::example("One job", jobs::list(options.accounts)) });
    json!({
        "operationId": "listJobs",
        "tags": ["jobs"],
        "summary": "List the jobs of an account",
        "description": "The newest first. The call is free. It counts toward the account's rate limit.",
        "security": document::key(),
        "parameters": [list_cursor(), limit(20, 100)],
        "responses": document::keyed(json!({
            "200": document::answer("The jobs.", document::json_body::<JobList>(list), document::rate_limit()),
            "400": bad_page()
        }))
    })
}

/// Operation of `GET /api/v1/jobs/{job}`.
pub(crate) fn show(options: &DocumentOptions<'_>) -> Value {
    one_job(
        options,
        ("getJob", "Get the state of a job", "The call is free. It counts toward the account's rate limit."),
    )
}

/// Operation of `DELETE /api/v1/jobs/{job}`.
pub(crate) fn cancel(options: &DocumentOptions<'_>) -> Value {
    let description = "What has not started is skipped and costs nothing; what runs ends. A job that has ended is \
                       unchanged. The results stay.";
    one_job(options, ("cancelJob", "Cancel a job", description))
}

fn one_job(options: &DocumentOptions<'_>, (id, summary, description): (&str, &str, &str)) -> Value {
    let body = document::json_body::<JobInfo>(
        json!({ "running": document::example("A running job", jobs::running(options.accounts)) }),
    );
    json!({
        "operationId": id,
        "tags": ["jobs"],
        "summary": summary,
        "description": description,
        "security": document::key(),
        "parameters": [job_id()],
        "responses": document::keyed(json!({
            "200": document::answer("The job.", body, document::rate_limit()),
            "404": not_found()
        }))
    })
}

/// Operation of `GET /api/v1/jobs/{job}/results`.
pub(crate) fn results(_: &DocumentOptions<'_>) -> Value {
    let mut content = document::json_body::<JobResults>(
        json!({ "two": document::example("A transcript and a failure", jobs::results()) }),
    );
    content["application/x-ndjson"] = json!({
        "schema": { "type": "string" },
        "examples": { "lines": { "value": jobs::lines() } }
    });
    content["application/zip"] = json!({
        "schema": { "type": "string", "format": "binary" },
        "examples": { "files": document::example("The beginning of a ZIP file", json!("PK\u{3}\u{4}")) }
    });
    let name = json!({ "type": "string", "examples": ["attachment; filename=\"job_1f2e.zip\""] });
    let name = ("Content-Disposition", optional_header("The name of the ZIP file.", name));
    json!({
        "operationId": "getJobResults",
        "tags": ["jobs"],
        "summary": "Get the results of a job",
        "description": "The items in the order of their links, also while the job runs: an item that has not ended has \
                        neither transcript nor reason. With `Accept: application/x-ndjson` each line is an item, and \
                        without `limit` all items are sent. With a `format` other than `json` the response is a ZIP file: a \
                        file for each transcript, named by its number, title and video, and `failures.csv` with the \
                        items that have none. The call is free. It counts toward the account's rate \
                        limit.",
        "security": document::key(),
        "parameters": [job_id(), item_cursor(), results_limit(), format()],
        "responses": document::keyed(json!({
            "200": document::answer("The items.", content, document::rate_limit().chain([name])),
            "400": bad_page(),
            "404": not_found()
        }))
    })
}

/// Operation of `GET /api/v1/jobs/{job}/deliveries`.
pub(crate) fn deliveries(_: &DocumentOptions<'_>) -> Value {
    let body = document::json_body::<JobDeliveries>(
        json!({ "second": document::example("Delivered by the second attempt", webhooks::deliveries()) }),
    );
    json!({
        "operationId": "getJobDeliveries",
        "tags": ["jobs"],
        "summary": "Get the webhook deliveries of a job",
        "description": "The events of the job, and the attempts to send them to its `callback_url`. They are deleted \
                        with the job. The call is free. It counts toward the account's rate limit.",
        "security": document::key(),
        "parameters": [job_id()],
        "responses": document::keyed(json!({
            "200": document::answer("The deliveries.", body, document::rate_limit()),
            "404": not_found()
        }))
    })
}

/// The webhook of an event, as the receiver is called.
fn callback(options: &DocumentOptions<'_>) -> Value {
    let event = document::json_body::<WebhookEvent>(
        json!({ "completed": document::example("A completed job", webhooks::event(options.accounts)) }),
    );
    let signature = json!({
        "name": headers::VERBATIM_SIGNATURE,
        "in": "header",
        "required": true,
        "description": "`t=` with the time in seconds since 1970, and one or two `v1=` with the HMAC-SHA256 of \
                        `{t}.{body}` in hexadecimal digits, keyed with the account's webhook secret.",
        "schema": { "type": "string", "pattern": "^t=[0-9]+(,v1=[0-9a-f]{64}){1,2}$" }
    });
    json!({ "{$request.body#/callback_url}": { "post": {
        "summary": "An event of the job",
        "description": "The job is completed, paused, cancelled or failed. Sent again with the same id until a response \
                        with a status from 200 to 299 arrives within ten seconds, for a day. Redirects are not \
                        followed.",
        "parameters": [signature],
        "requestBody": { "required": true, "content": event },
        "responses": { "2XX": { "description": "The event is accepted. The body is not read." } }
    } } })
}

fn job_id() -> Value {
    json!({
        "name": "job",
        "in": "path",
        "required": true,
        "description": "The id of the job.",
        "schema": { "type": "string", "pattern": "^job_[0-9a-f]{32}$" },
        "examples": { "job": { "value": jobs::id() } }
    })
}

fn list_cursor() -> Value {
    cursor(json!({ "type": "string", "minLength": 1 }), "1795132800000/job_00000000000000000000000000000000")
}

fn item_cursor() -> Value {
    cursor(json!({ "type": "string", "pattern": "^[0-9]{1,9}$" }), "20")
}

fn cursor(schema: Value, example: &str) -> Value {
    json!({
        "name": "cursor",
        "in": "query",
        "description": "`next_cursor` of the previous page.",
        "schema": schema,
        "examples": { "next": { "value": example } }
    })
}

fn limit(default: u32, max: u32) -> Value {
    json!({
        "name": "limit",
        "in": "query",
        "description": "The size of the page.",
        "schema": { "type": "integer", "minimum": 1, "maximum": max, "default": default },
        "examples": { "ten": { "value": 10 } }
    })
}

/// `limit` of results, whose default and bound depend on their form.
fn results_limit() -> Value {
    json!({
        "name": "limit",
        "in": "query",
        "description": "The number of items. Of JSON it is at most 100, and 20 by default. Lines and files have no \
                        bound, and without it all items are sent.",
        "schema": { "type": "integer", "minimum": 1, "maximum": u32::MAX },
        "examples": { "ten": { "value": 10 } }
    })
}

fn format() -> Value {
    let names: Vec<&str> = std::iter::once("json").chain(ZipFormat::names()).collect();
    json!({
        "name": "format",
        "in": "query",
        "description": "The form of the transcripts: JSON, or files in a ZIP file.",
        "schema": { "type": "string", "enum": names, "default": "json" },
        "examples": { "subtitles": { "value": "srt" } }
    })
}

fn not_found() -> Value {
    let message = "This account has no job with this id.";
    document::denial(404, "There is no such job.", &[("unknown", message)], document::rate_limit())
}

fn bad_page() -> Value {
    let examples = [("limit", "limit: it must be a number from 1 to 100")];
    document::denial(400, "A parameter is invalid.", &examples, document::rate_limit())
}
