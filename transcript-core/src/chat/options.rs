//! Options of the chat.

use std::time::Duration;

/// Timeout, output limit and chunking of chat answers.
#[derive(Clone, Debug)]
pub struct ChatOptions {
    /// Timeout of the whole answer (`chat.timeout`).
    pub timeout: Duration,
    /// Approximate maximum of tokens that a model writes.
    pub output_tokens_max: u32,
    /// Maximum of chunks of a transcript that exceeds the model's context.
    ///
    /// They are used for a question about the whole transcript; the model reads each chunk once.
    pub chunks_max: u32,
    /// Maximum of chunks that the model reads at the same time.
    pub chunk_concurrency: usize,
}

impl Default for ChatOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(60),
            output_tokens_max: 1_024,
            chunks_max: 8,
            chunk_concurrency: 4,
        }
    }
}
