//! Questions of visitors: `POST …/ask`, from the script of the page, or from its form without scripts.
//!
//! The script sends the solution of a challenge, and its answer may come from the chat model. Without scripts there is
//! no challenge: the answer consists of the transcript's own passages, which cost the operator nothing.

use std::{sync::Arc, time::Duration};

use axum::{
    Extension,
    body::Body,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use http::{
    HeaderValue, StatusCode, Uri,
    header::{LOCATION, RETRY_AFTER},
    request::Parts,
};
use http_body_util::Full;
use maud::Markup;
use serde::Deserialize;
use transcript_core::{
    archive::StoredTranscript,
    chat::{Question, VerifiedAnswer},
    lookup::{AdmittedQuestion, Availability, QuestionLimit, QuestionOutcome, QuestionRequest},
    video::{VideoId, VideoLink},
};

use super::{
    PageOptions, VideoPath, answer_stream, lookup_request, parse_path,
    transcribe::{VISITOR_COOKIE, check_same_origin, no_store, no_video, set_visitor_cookie},
};
use crate::{
    api::{ClientAddress, ProblemResponse, ResponseFormat, cookie, counted, is_form, read_body},
    page::{self, PageContext, question::PageAnswer, transcript::page_segment},
    response_cache::{ResponseVariant, rendered_length},
    routes::{
        account::{own_referrer, session::is_own_form},
        html::{CacheMode, html},
    },
    state::AppState,
};

/// Limit of the script's body, in bytes: a question and a solution.
const BODY_MAX: usize = 16 * 1024;
/// Limit of a form, in bytes: the longest question, with each byte escaped.
const FORM_MAX: usize = 32 * 1024;

/// Body sent by the script.
#[derive(Deserialize)]
struct QuestionBody {
    question: String,
    /// Solution of the challenge.
    altcha: String,
}

/// Answers a question: that of a form with the page, and that of the script with a stream.
pub(crate) async fn answer(
    State(app): State<AppState>,
    Extension(client): Extension<ClientAddress>,
    context: PageContext,
    path: VideoPath,
    request: Request,
) -> Result<Response, ProblemResponse> {
    let (head, body) = request.into_parts();
    let video = video(&app, path)?;
    match is_form(&head.headers) {
        true => answer_form(&app, client, &context, video, (head, body)).await,
        false => answer_script(&app, client, context, video, (head, body)).await,
    }
}

/// Leads to the page: the address of an answer names none that can be read again.
pub(crate) async fn page_of_answer(
    State(app): State<AppState>,
    context: PageContext,
    path: VideoPath,
    uri: Uri,
) -> Result<Response, ProblemResponse> {
    Ok(redirect_to_page(&context, &video(&app, path)?, &PageOptions::parse(&uri)))
}

fn redirect_to_page(context: &PageContext, video: &VideoId, options: &PageOptions) -> Response {
    let page = format!("../{}{}", page_segment(video.id()), context.with_language(&options.whole_query()));
    let mut response = StatusCode::SEE_OTHER.into_response();
    if let Ok(page) = HeaderValue::try_from(page) {
        response.headers_mut().insert(LOCATION, page);
    }
    response
}

/// Answers a question of the script with a stream of sentences.
async fn answer_script(
    app: &AppState,
    client: ClientAddress,
    context: PageContext,
    video: VideoId,
    (head, body): (Parts, Body),
) -> Result<Response, ProblemResponse> {
    check_same_origin(&head.headers)?;
    let body = read_body(&head.headers, body, BODY_MAX, &app.body_budget).await?;
    let body: QuestionBody = serde_json::from_slice(&body).map_err(|_| {
        ProblemResponse::bad("body", "it must be JSON like {\"question\": \"…\", \"altcha\": \"…\"}")
    })?;
    let question = Question::new(&body.question, Vec::new())
        .map_err(|_| ProblemResponse::new(StatusCode::BAD_REQUEST, context.text("ask.invalid")))?;
    let stored = archived(app, &video, &PageOptions::parse(&head.uri)).await?;
    let stored = stored.ok_or_else(no_video)?;
    let request = QuestionRequest {
        video,
        solution: Some(body.altcha),
        cookie: cookie(&head.headers, VISITOR_COOKIE),
        client: Some(client.0),
    };
    let admitted = admit(app, &context, request).await?;
    let transcript = Arc::clone(&stored.transcript);
    let mut response = answer_stream::stream_answer(context, &app.chat.for_visitors(), transcript, question);
    let base_url = &app.lookup.options().base_url;
    set_visitor_cookie(&mut response, &admitted.cookie, admitted.cookie_lifetime, base_url);
    Ok(no_store(response))
}

/// Answers the question of a form with the page, which then has the answer above the transcript.
async fn answer_form(
    app: &AppState,
    client: ClientAddress,
    context: &PageContext,
    video: VideoId,
    (head, body): (Parts, Body),
) -> Result<Response, ProblemResponse> {
    if !is_own_form(&head, &app.lookup.options().base_url) {
        let detail = context.text("account.foreign");
        return Err(ProblemResponse::new(StatusCode::FORBIDDEN, detail));
    }
    let body = read_body(&head.headers, body, FORM_MAX, &app.body_budget).await?;
    let question = url::form_urlencoded::parse(&body)
        .find_map(|(name, value)| (name == "question").then(|| value.into_owned()))
        .unwrap_or_default();
    let options = PageOptions::parse(&head.uri);
    let Some(stored) = archived(app, &video, &options).await? else {
        // The page says why there is no transcript.
        return Ok(redirect_to_page(context, &video, &options));
    };
    let request = QuestionRequest {
        video: video.clone(),
        solution: None,
        cookie: cookie(&head.headers, VISITOR_COOKIE),
        client: Some(client.0),
    };
    let found = find_answer(app, context, &stored, &question, request).await;
    let (status, wait) = match &found {
        Ok(_) => (StatusCode::OK, None),
        Err(refusal) => (refusal.status(), refusal.retry_after()),
    };
    let (admitted, outcome) = match found {
        Ok((admitted, answer)) => (Some(admitted), Ok(answer)),
        Err(refusal) => (None, Err(refusal.detail().to_owned())),
    };
    let page_answer = PageAnswer { question, outcome };
    let watch_url = app.lookup.options().watch_url(&VideoLink::Video(video.clone()), None);
    let (context, requested) = (context.clone(), options.language);
    let length = rendered_length(&stored, ResponseVariant::plain(ResponseFormat::Page, None));
    let render = move || {
        let answer = Some(&page_answer);
        page::transcript::transcript(&context, &stored, requested.as_ref(), &watch_url, answer).into_string()
    };
    let (page, reserved) = app.body_budget.build(length, render).await?;
    let page = app.body_budget.sent_bytes(page.into_bytes(), reserved);
    let response = html(status, Markup::default(), CacheMode::Never, page::transcript::policy(&video));
    let mut response = own_referrer(counted(response.map(|_| Full::new(page))));
    if let Some(wait) = wait {
        response.headers_mut().insert(RETRY_AFTER, wait);
    }
    if let Some(admitted) = admitted {
        let base_url = &app.lookup.options().base_url;
        set_visitor_cookie(&mut response, &admitted.cookie, admitted.cookie_lifetime, base_url);
    }
    Ok(response)
}

/// The answer to a question of a form.
async fn find_answer(
    app: &AppState,
    context: &PageContext,
    stored: &StoredTranscript,
    question: &str,
    request: QuestionRequest,
) -> Result<(AdmittedQuestion, VerifiedAnswer), ProblemResponse> {
    let invalid = |_| ProblemResponse::new(StatusCode::BAD_REQUEST, context.text("ask.invalid"));
    let question = Question::new(question, Vec::new()).map_err(invalid)?;
    let admitted = admit(app, context, request).await?;
    let chat = app.chat.for_visitors().without_model();
    let answer = chat.answer(Arc::clone(&stored.transcript), question).await;
    let failed = |error| {
        tracing::error!(%error, "question of a visitor failed");
        ProblemResponse::new(StatusCode::SERVICE_UNAVAILABLE, context.text("ask.lost"))
    };
    Ok((admitted, answer.map_err(failed)?))
}

async fn admit(
    app: &AppState,
    context: &PageContext,
    request: QuestionRequest,
) -> Result<AdmittedQuestion, ProblemResponse> {
    match app.visitors.admit_question(request).await {
        Ok(QuestionOutcome::Admitted(admitted)) => Ok(admitted),
        Ok(QuestionOutcome::CheckFailed) => {
            Err(ProblemResponse::new(StatusCode::FORBIDDEN, context.text("script.unsolved")))
        }
        Ok(QuestionOutcome::Limited { limit, retry_after_ms }) => {
            let count = context.number(app.lookup.options().questions_per_visitor_per_day.into());
            let message = match limit {
                QuestionLimit::Visitor => context.fill("ask.limit", &[("limit", &count)]),
                QuestionLimit::Network => context.text("ask.limit_network").to_owned(),
                QuestionLimit::Service => context.text("ask.limit_service").to_owned(),
            };
            let refusal = ProblemResponse::new(StatusCode::TOO_MANY_REQUESTS, message);
            Err(refusal.with_retry_after(Duration::from_millis(retry_after_ms)))
        }
        Err(error) => {
            tracing::error!(%error, "count of a question failed");
            Err(ProblemResponse::new(StatusCode::SERVICE_UNAVAILABLE, context.text("ask.lost")))
        }
    }
}

/// The video of the path, if visitors may ask.
fn video(app: &AppState, path: VideoPath) -> Result<VideoId, ProblemResponse> {
    match parse_path(path) {
        Some(VideoLink::Video(video)) if app.visitors.can_ask() => Ok(video),
        _ => Err(no_video()),
    }
}

/// The archived transcript that the page shows; `None` if there is none.
///
/// # Errors
/// 503 if the archive failed.
pub(super) async fn archived(
    app: &AppState,
    video: &VideoId,
    options: &PageOptions,
) -> Result<Option<StoredTranscript>, ProblemResponse> {
    match app.lookup.look_up_archived(lookup_request(video, options)).await.map(|answer| answer.availability)
    {
        Ok(Availability::Available { stored, .. }) => Ok(Some(stored)),
        Ok(Availability::Unavailable(none)) if none.is_storage_failure() => {
            Err(ProblemResponse::new(StatusCode::SERVICE_UNAVAILABLE, none.message))
        }
        // A video's own address is always a valid reference.
        Ok(Availability::Unavailable(_)) | Err(_) => Ok(None),
    }
}
