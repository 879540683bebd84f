//! The calls: one for each operation, with what it takes.

/// A value of a call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Given {
    /// Itself.
    Text(&'static str),
    /// What the reader brings along: the name of a variable of the environment.
    Variable(&'static str),
}

/// The body of a call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Body {
    /// None.
    None,
    /// A JSON object.
    Json(&'static [(&'static str, Given)]),
    /// A form.
    Form(&'static [(&'static str, Given)]),
    /// Whatever a variable of the environment has, as it is.
    Raw(&'static str),
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    /// The `operationId`.
    pub(super) operation: &'static str,
    /// The parts of the path that vary.
    pub(super) path: &'static [(&'static str, Given)],
    /// The query.
    pub(super) query: &'static [(&'static str, Given)],
    /// The variable with the key that it needs.
    pub(super) key: Option<&'static str>,
    /// Other headers.
    pub(super) headers: &'static [(&'static str, Given)],
    /// The body.
    pub(super) body: Body,
    /// Whether the answer is JSON.
    pub(super) is_json: bool,
}

use Given::{Text, Variable};

/// A key of the look-up API.
const KEY: Option<&str> = Some("VERBATIM_KEY");
/// The key of an account.
const ACCOUNT_KEY: Option<&str> = Some("VERBATIM_ACCOUNT_KEY");
const ORDER: &[(&str, Given)] = &[("order", Variable("VERBATIM_ORDER"))];
const VIDEO: &str = super::super::examples::VIDEO;

const PLAIN: Call =
    Call { operation: "", path: &[], query: &[], key: None, headers: &[], body: Body::None, is_json: true };

const fn plain(operation: &'static str) -> Call {
    Call { operation, ..PLAIN }
}

/// All of them.
pub(super) const CALLS: &[Call] = &[
    Call { query: &[("url", Text("https://youtu.be/dQw4w9WgXcQ"))], key: KEY, ..plain("getTranscript") },
    Call { query: &[("v", Text(VIDEO))], is_json: false, ..plain("headTranscript") },
    Call { body: Body::Json(&[("label", Text("laptop"))]), ..plain("createApiKey") },
    Call { key: KEY, ..plain("getKeyStatus") },
    Call {
        path: &[("platform", Text("video_site")), ("id", Text(VIDEO))],
        is_json: false,
        ..plain("getWatchPage")
    },
    plain("getHealth"),
    plain("getVersion"),
    plain("getOpenApi"),
    Call { is_json: false, ..plain("getDocs") },
    Call { path: &[("operation", Text("getTranscript"))], is_json: false, ..plain("getDocsOfOperation") },
    Call { is_json: false, ..plain("getLlmsTxt") },
    Call { body: Body::Json(&[("email", Text("ann@example.org"))]), ..plain("registerAccount") },
    Call { query: &[("token", Variable("VERBATIM_TOKEN"))], ..plain("openVerificationLink") },
    Call { body: Body::Json(&[("token", Variable("VERBATIM_TOKEN"))]), ..plain("confirmVerification") },
    Call { key: ACCOUNT_KEY, ..plain("getAccount") },
    Call { key: ACCOUNT_KEY, ..plain("rotateKey") },
    Call {
        query: &[("video_id", Text(VIDEO)), ("lang", Text("en"))],
        key: ACCOUNT_KEY,
        ..plain("getVideoTranscript")
    },
    Call {
        key: ACCOUNT_KEY,
        body: Body::Json(&[("video_id", Text(VIDEO)), ("message", Text("What is it about?"))]),
        ..plain("askAboutVideo")
    },
    Call { key: ACCOUNT_KEY, body: Body::Json(&[("plan", Text("pro"))]), ..plain("subscribe") },
    Call { key: ACCOUNT_KEY, body: Body::Json(&[("pack", Text("1k"))]), ..plain("buyCredits") },
    Call {
        headers: &[
            ("Stripe-Signature", Variable("STRIPE_SIGNATURE")),
            ("Content-Type", Text("application/json")),
        ],
        body: Body::Raw("STRIPE_EVENT"),
        ..plain("takeStripeEvent")
    },
    Call { path: ORDER, is_json: false, ..plain("getOrderPage") },
    Call {
        path: ORDER,
        query: &[("token", Variable("VERBATIM_ORDER_TOKEN"))],
        is_json: false,
        ..plain("getSandboxPage")
    },
    Call {
        path: ORDER,
        body: Body::Form(&[("token", Variable("VERBATIM_ORDER_TOKEN")), ("deed", Text("pay"))]),
        is_json: false,
        ..plain("pressSandboxButton")
    },
];
