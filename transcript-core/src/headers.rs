//! Names of the HTTP headers of both APIs and of webhooks, as documents write them.
//!
//! HTTP ignores the case of a name.

/// Id of a request, which a client may choose.
pub const X_REQUEST_ID: &str = "x-request-id";
/// Proof of a paid plan (specification 5).
pub const X_VERBATIM_ENTITLEMENT: &str = "x-verbatim-entitlement";
/// Marks the request of another server. Its value is 1.
pub const X_VERBATIM_HOP: &str = "x-verbatim-hop";

/// Id under which a request of the v1 API is executed once.
pub const IDEMPOTENCY_KEY: &str = "Idempotency-Key";
/// Marks a stored response: `true`.
pub const IDEMPOTENT_REPLAYED: &str = "Idempotent-Replayed";

/// Whether a transcript is from the archive: `HIT` or `MISS` (specification 4.16).
pub const X_CACHE: &str = "X-Cache";
/// Remaining credits (specification 4.16).
pub const X_CREDITS_REMAINING: &str = "X-Credits-Remaining";
/// Detail of the failure reason, of both APIs; of the v1 API the reason, if it has no detail.
pub const X_FAILURE_DETAIL: &str = "X-Failure-Detail";
/// Whether the captions are machine-generated.
pub const X_IS_GENERATED: &str = "X-Is-Generated";
/// Start of the next page, for formats other than JSON.
pub const X_NEXT_CURSOR: &str = "X-Next-Cursor";

/// Remaining requests and seconds until the reset (draft-ietf-httpapi-ratelimit-headers).
pub const RATE_LIMIT: &str = "RateLimit";
/// Limit and window of a rate limit.
pub const RATE_LIMIT_POLICY: &str = "RateLimit-Policy";

/// Signature of a webhook that this service sends.
pub const VERBATIM_SIGNATURE: &str = "Verbatim-Signature";
/// Signature of an event that Stripe sends.
pub const STRIPE_SIGNATURE: &str = "Stripe-Signature";

/// Keys under which shared caches store a response, separated by spaces.
pub const SURROGATE_KEY: &str = "Surrogate-Key";
