//! Options of the chat.

use std::time::Duration;

/// Timeout, output limit and chunking of chat answers.
#[derive(Clone, Debug, smart_default::SmartDefault)]
pub struct ChatOptions {
    /// Timeout of the whole answer (`chat.timeout`).
    #[default(Duration::from_secs(60))]
    pub timeout: Duration,
    /// Approximate maximum of tokens that a model writes.
    #[default(1_024)]
    pub output_tokens_max: u32,
    /// Maximum of chunks of a transcript that exceeds the model's context.
    ///
    /// They are used for a question about the whole transcript; the model reads each chunk once.
    #[default(8)]
    pub chunks_max: u32,
    /// Maximum of chunks that the model reads at the same time.
    #[default(4)]
    pub chunk_concurrency: usize,
}
