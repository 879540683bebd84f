//! How questions are answered.

use std::time::Duration;

/// How questions are answered.
#[derive(Clone, Debug)]
pub struct ChatOptions {
    /// How long the whole answer may take (`chat.timeout`).
    pub timeout: Duration,
    /// About how many tokens a model may write.
    pub output_tokens_max: u32,
    /// Into how many parts a transcript that is too long for the model is cut at most, for a question about the
    /// whole of it; each is given to the model once.
    pub parts_max: u32,
    /// How many parts are with the model at the same time.
    pub parts_at_once: usize,
}

impl Default for ChatOptions {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(60), output_tokens_max: 1_024, parts_max: 8, parts_at_once: 4 }
    }
}
