//! Examples of all bodies, as values of the wire types.
//! The check digits of keys are wrong on purpose: they can never be real keys.

pub(crate) mod jobs;
pub(crate) mod webhooks;

use serde_json::Value;
use transcript_core::{
    accounts::{AccountsOptions, payments::Pack},
    directory::Plan,
    wire::{
        lookup::Segment,
        v1::{
            AccountInfo, ChatAnswer, ChatBalance, ChatCitation, ChatQuestion, ChatRole, ChatTurn,
            CreditsCheckout, PlanCheckout, RegisterRequest, RegisterResponse, RotateKeyResponse,
            VerifyResponse, VideoTranscript,
        },
    },
};

use crate::routes::document::examples::{VIDEO, languages, segments, value};

pub(crate) fn register() -> Value {
    value(RegisterRequest { email: "ann@example.org".to_owned() })
}

pub(crate) fn registered() -> Value {
    value(RegisterResponse {
        success: true,
        message: "Check your inbox: the link in the email creates your API key.".to_owned(),
    })
}

pub(crate) fn verified() -> Value {
    let plan = Plan::Free.as_str().to_owned();
    value(VerifyResponse { success: true, api_key: key('0'), credits: 200, plan, notice: None })
}

pub(crate) fn me(options: &AccountsOptions) -> Value {
    let credits = options.plans.terms(Plan::Free).credits;
    value(AccountInfo {
        email: "ann@example.org".to_owned(),
        plan: Plan::Free.as_str().to_owned(),
        credits_remaining: credits.saturating_sub(1),
        credits_total: credits,
        resets_at: "2026-12-20T09:30:00Z".to_owned(),
    })
}

pub(crate) fn rotated() -> Value {
    value(RotateKeyResponse { success: true, api_key: key('1') })
}

pub(crate) fn transcript() -> Value {
    value(VideoTranscript {
        video_id: VIDEO.to_owned(),
        title: "A talk".to_owned(),
        language: "en".to_owned(),
        is_generated: false,
        requested_language: None,
        languages: languages(),
        metadata: None,
        chapters: Vec::new(),
        chunks: Vec::new(),
        next_cursor: None,
        total_chars: None,
        segments: segments().iter().map(Segment::from).collect(),
    })
}

pub(crate) fn chat_question(is_follow_up: bool) -> Value {
    let turn = |role, content: &str| ChatTurn { role, content: content.to_owned() };
    let history = vec![
        turn(ChatRole::User, "When did the pier break?"),
        turn(
            ChatRole::Assistant,
            "In nineteen twelve: “the ice broke the old pier in a single night” [1:05].",
        ),
    ];
    value(ChatQuestion {
        video_id: VIDEO.to_owned(),
        message: if is_follow_up { "And after that?" } else { "When did the pier break?" }.to_owned(),
        conversation_history: is_follow_up.then_some(history),
    })
}

pub(crate) fn chat_answer() -> Value {
    value(answered())
}

pub(crate) fn chat_not_covered() -> Value {
    let response = transcript_core::chat::NOT_COVERED_SENTENCE.to_owned();
    value(ChatAnswer { response, citations: Vec::new(), ..answered() })
}

pub(crate) fn chat_events() -> String {
    let answer = answered();
    let sentence = serde_json::json!({ "text": answer.response, "citations": answer.citations });
    format!("event: sentence\ndata: {sentence}\n\nevent: answer\ndata: {}\n\n", value(answer))
}

fn answered() -> ChatAnswer {
    let text = "In nineteen twelve the ice broke the old pier in a single night.";
    let citation = ChatCitation {
        start: 65.0,
        end: 69.5,
        text: text.to_owned(),
        url: format!("https://www.youtube.com/watch?v={VIDEO}&t=65s"),
    };
    ChatAnswer {
        video_id: VIDEO.to_owned(),
        response: "In nineteen twelve: “the ice broke the old pier in a single night” [1:05].".to_owned(),
        credits: ChatBalance { used: 1, limit: 200, remaining: 199 },
        citations: vec![citation],
        coverage: 1.0,
    }
}

pub(crate) fn plan_checkout(options: &AccountsOptions) -> Value {
    value(PlanCheckout { success: true, checkout_url: sandbox(options) })
}

pub(crate) fn credits_checkout(options: &AccountsOptions) -> Value {
    let [pack, ..] = Pack::ALL;
    value(CreditsCheckout {
        checkout_url: sandbox(options),
        pack: pack.name.to_owned(),
        credits: pack.credits,
        price_usd: pack.price_usd as f64,
    })
}

/// Id of the example order.
pub(crate) fn order() -> String {
    format!("buy-credits-{}", "0".repeat(32))
}

fn sandbox(options: &AccountsOptions) -> String {
    format!("{}/checkout/{}/sandbox?token={}", options.base_url, order(), "0".repeat(64))
}

fn key(digit: char) -> String {
    format!("vba_{}", String::from(digit).repeat(36))
}
