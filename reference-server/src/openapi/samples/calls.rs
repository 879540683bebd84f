//! Sample calls: one per operation.

use transcript_core::headers::STRIPE_SIGNATURE;

/// Value of a parameter.
#[derive(Clone, Copy, Debug)]
pub(super) enum SampleParameter {
    /// Literal text.
    Text(&'static str),
    /// Environment variable that the reader must set.
    Variable(&'static str),
    /// List of literal texts, in a JSON body.
    List(&'static [&'static str]),
}

/// Body of a call.
#[derive(Clone, Copy, Debug)]
pub(super) enum SampleBody {
    /// No body.
    None,
    /// JSON object.
    Json(&'static [(&'static str, SampleParameter)]),
    Form(&'static [(&'static str, SampleParameter)]),
    /// Content of an environment variable, unchanged.
    Raw(&'static str),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SampleCall {
    /// `operationId` of the operation.
    pub(super) operation: &'static str,
    pub(super) path: &'static [(&'static str, SampleParameter)],
    pub(super) query: &'static [(&'static str, SampleParameter)],
    /// Environment variable with the key, if the operation needs one.
    pub(super) key: Option<&'static str>,
    pub(super) headers: &'static [(&'static str, SampleParameter)],
    pub(super) body: SampleBody,
    /// Whether the response is JSON.
    pub(super) is_json: bool,
}

use SampleParameter::{List, Text, Variable};

/// Key of the lookup API.
pub(super) const KEY: Option<&str> = Some("VERBATIM_KEY");
pub(super) const ACCOUNT_KEY: Option<&str> = Some("VERBATIM_ACCOUNT_KEY");
const ORDER: &[(&str, SampleParameter)] = &[("order", Variable("VERBATIM_ORDER"))];
const JOB: &[(&str, SampleParameter)] = &[("job", Variable("VERBATIM_JOB"))];
pub(super) const VIDEO: &str = crate::routes::document::examples::VIDEO;

const PLAIN: SampleCall = SampleCall {
    operation: "",
    path: &[],
    query: &[],
    key: None,
    headers: &[],
    body: SampleBody::None,
    is_json: true,
};

pub(super) const fn plain(operation: &'static str) -> SampleCall {
    SampleCall { operation, ..PLAIN }
}

pub(super) const CALLS: &[SampleCall] = &[
    SampleCall {
        query: &[("url", Text("https://youtu.be/dQw4w9WgXcQ"))],
        key: KEY,
        ..plain("getTranscript")
    },
    SampleCall { query: &[("v", Text(VIDEO))], is_json: false, ..plain("headTranscript") },
    SampleCall { query: &[("q", Text("tide tables"))], key: KEY, ..plain("searchArchive") },
    SampleCall { body: SampleBody::Json(&[("label", Text("laptop"))]), ..plain("createApiKey") },
    SampleCall { key: KEY, ..plain("getKeyStatus") },
    SampleCall {
        path: &[("platform", Text("video_site")), ("id", Text(VIDEO))],
        is_json: false,
        ..plain("getWatchPage")
    },
    plain("getHealth"),
    plain("getVersion"),
    plain("getOpenApi"),
    SampleCall { is_json: false, ..plain("getDocs") },
    SampleCall {
        path: &[("operation", Text("getTranscript"))],
        is_json: false,
        ..plain("getDocsOfOperation")
    },
    SampleCall { path: &[("guide", Text("quick-start"))], is_json: false, ..plain("getGuide") },
    SampleCall { is_json: false, ..plain("getLlmsTxt") },
    SampleCall { body: SampleBody::Json(&[("email", Text("ann@example.org"))]), ..plain("registerAccount") },
    SampleCall { query: &[("token", Variable("VERBATIM_TOKEN"))], ..plain("openVerificationLink") },
    SampleCall {
        body: SampleBody::Json(&[("token", Variable("VERBATIM_TOKEN"))]),
        ..plain("confirmVerification")
    },
    SampleCall { key: ACCOUNT_KEY, ..plain("getAccount") },
    SampleCall { key: ACCOUNT_KEY, ..plain("rotateKey") },
    SampleCall {
        query: &[("video_id", Text(VIDEO)), ("lang", Text("en"))],
        key: ACCOUNT_KEY,
        ..plain("getVideoTranscript")
    },
    SampleCall {
        key: ACCOUNT_KEY,
        body: SampleBody::Json(&[("video_id", Text(VIDEO)), ("message", Text("What is it about?"))]),
        ..plain("askAboutVideo")
    },
    SampleCall { key: ACCOUNT_KEY, body: SampleBody::Json(&[("plan", Text("pro"))]), ..plain("subscribe") },
    SampleCall { key: ACCOUNT_KEY, body: SampleBody::Json(&[("pack", Text("1k"))]), ..plain("buyCredits") },
    SampleCall {
        key: ACCOUNT_KEY,
        body: SampleBody::Json(&[("urls", List(&["https://youtu.be/dQw4w9WgXcQ", "jNQXAC9IVRw"]))]),
        ..plain("startJob")
    },
    SampleCall { key: ACCOUNT_KEY, ..plain("listJobs") },
    SampleCall { key: ACCOUNT_KEY, path: JOB, ..plain("getJob") },
    SampleCall { key: ACCOUNT_KEY, path: JOB, ..plain("getJobResults") },
    SampleCall { key: ACCOUNT_KEY, path: JOB, ..plain("getJobDeliveries") },
    SampleCall { key: ACCOUNT_KEY, path: JOB, ..plain("cancelJob") },
    SampleCall { key: ACCOUNT_KEY, ..plain("getWebhookSecret") },
    SampleCall { key: ACCOUNT_KEY, ..plain("rotateWebhookSecret") },
    SampleCall {
        headers: &[
            (STRIPE_SIGNATURE, Variable("STRIPE_SIGNATURE")),
            ("Content-Type", Text("application/json")),
        ],
        body: SampleBody::Raw("STRIPE_EVENT"),
        ..plain("takeStripeEvent")
    },
    SampleCall { path: ORDER, is_json: false, ..plain("getOrderPage") },
    SampleCall {
        path: ORDER,
        query: &[("token", Variable("VERBATIM_ORDER_TOKEN"))],
        is_json: false,
        ..plain("getSandboxPage")
    },
    SampleCall {
        path: ORDER,
        body: SampleBody::Form(&[("token", Variable("VERBATIM_ORDER_TOKEN")), ("deed", Text("pay"))]),
        is_json: false,
        ..plain("pressSandboxButton")
    },
];
