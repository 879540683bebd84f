//! Settings of the lookup API.

/// Limits and URLs of the lookup API; the defaults are those of specification 8.
#[derive(Clone, Debug, smart_default::SmartDefault)]
pub struct LookupOptions {
    /// The `{base_url}` of watch URLs, without a trailing slash.
    #[default("http://127.0.0.1:8080")]
    pub base_url: String,
    /// New transcripts per UTC month for a free key (`limits.free_per_month`).
    #[default(25)]
    pub free_per_month: u64,
    /// New transcripts per UTC day for a plus key (`limits.plus_per_day`).
    #[default(100)]
    pub plus_per_day: u64,
    /// Live plus keys per subject (`limits.plus_keys_per_subject`).
    #[default(3)]
    pub plus_keys_per_subject: u32,
    /// New transcripts per UTC day for a visitor of the watch page (`limits.visitor_per_day`).
    #[default(3)]
    pub visitor_per_day: u64,
    /// The same for a visitor's network (`limits.visitor_per_network_per_day`).
    #[default(30)]
    pub visitor_per_network_per_day: u64,
    /// New transcripts per UTC day for the whole service (`limits.service_per_day`).
    #[default(10_000)]
    pub service_per_day: u64,
    /// Questions per UTC day for a visitor of the watch page (`pages.questions_per_day`); 0: none at all.
    #[default(3)]
    pub questions_per_visitor_per_day: u32,
    /// The same for a visitor's network (`pages.questions_per_network_per_day`).
    #[default(30)]
    pub questions_per_network_per_day: u32,
    /// Questions of all visitors per UTC day that may use the chat model (`pages.questions_per_service_per_day`).
    #[default(1_000)]
    pub questions_per_service_per_day: u32,
    /// Misses without a key per network and minute (`limits.misses_per_network_per_minute`).
    #[default(60)]
    pub misses_per_network_per_minute: u32,
    /// Calls of the free assistant tools without a key, and documents of pages, per network and minute
    /// (`limits.tool_calls_per_network_per_minute`).
    #[default(120)]
    pub tool_calls_per_network_per_minute: u32,
    /// Searches of the archive per key, or without one per network, and minute (`search.requests_per_minute`).
    #[default(60)]
    pub searches_per_minute: u32,
    /// Failed attempts at new transcripts per key and hour (`limits.attempts_per_key_per_hour`).
    #[default(60)]
    pub attempts_per_key_per_hour: u32,
    /// New keys per network and day (`limits.mint_per_network_per_day`).
    #[default(5)]
    pub mint_per_network_per_day: u32,
}
