//! Questions about a video, answered from its transcript with verified quotations and citations.
//!
//! Language models invent times, passages and words. Model output is therefore untrusted: a model never writes a
//! time, and the verifier checks every sentence before it leaves (specification 2.6, 4.5, 15):
//!
//! - The model receives the transcript as numbered [`passages`] and cites their numbers. The service turns a number
//!   into the start time of whole segments, and drops a number that the model was not given.
//! - Each quotation is looked up in the transcript. The text between quotation marks is the transcript's own text.
//! - A sentence that cites no passage is removed. If no sentence remains, the model is called once more; if that also
//!   fails, the answer is the best passages of the transcript.
//!
//! Without a model, the answer is those passages at once: [`Chat::extractive`].
//!
//!
//! ```
//! use std::sync::Arc;
//! use transcript_core::{
//!     chat::{Chat, Question},
//!     transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
//!     video::{Platform, VideoId},
//! };
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let transcript = Transcript {
//!     video: VideoId::new(Platform::YouTube, "dQw4w9WgXcQ")?,
//!     title: None,
//!     author: None,
//!     duration_ms: None,
//!     track: TrackInfo::new(LanguageTag::english(), TrackKind::Human),
//!     source: "imported".to_owned(),
//!     segments: vec![
//!         Segment::new("Welcome to the harbour.", 0, 4_000),
//!         Segment::new("The ice broke the pier in 1912.", 65_000, 4_000),
//!     ],
//! };
//! let chat = Chat::extractive(tokio::runtime::Handle::current());
//! let answer = chat.answer(Arc::new(transcript), Question::new("When did the pier break?", Vec::new())?).await?;
//! assert_eq!(answer.response, "“The ice broke the pier in 1912.” [1:05]");
//! assert_eq!(answer.citations[0].url, "https://www.youtube.com/watch?v=dQw4w9WgXcQ&t=65s");
//! # Ok(())
//! # }
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
//! # runtime.block_on(example()).unwrap();
//! ```

mod answer;
mod bm25;
pub(crate) mod common_words;
mod content_words;
pub(crate) mod cpu_pool;
mod delta_buffer;
pub(crate) mod distance;
mod embedder;
mod extractive;
pub(crate) mod fold;
mod generic_words;
mod intent;
mod map_reduce;
mod meaning;
mod model;
mod options;
mod passage;
mod pipeline;
mod prompt;
mod question;
mod question_language;
mod required_content;
mod retrieve;
mod search;
mod search_index;
mod separated_number;
pub(crate) mod stemmer;
mod subject_ngrams;
mod task;
#[cfg(test)]
mod tests;
pub(crate) mod tokenizer;
mod vector_archive;
pub(crate) mod verb_forms;
mod verify;
mod video_part;
mod whole_video;
mod word_query;

pub use answer::{AnswerOrigin, Citation, NOT_COVERED_SENTENCE, Sentence, VerifiedAnswer};
pub use embedder::{EMBED_DIMENSIONS_MAX, EMBED_TEXTS_MAX, EmbedPurpose, Embedder};
pub use extractive::ExtractiveModel;
pub use model::{
    CONTEXT_TOKENS_DEFAULT, ChatMessage, ChatModel, DeltaSink, MessageRole, ModelReply, ModelRequest,
    ModelTask, TokenUsage,
};
pub use options::ChatOptions;
pub use passage::{Passage, passages};
pub use pipeline::{Chat, SentenceSink};
pub use question::{ChatRole, ChatTurn, HISTORY_ITEMS_MAX, MESSAGE_CHARS_MAX, Question, QuestionError};
pub use search::TranscriptHits;
pub use word_query::WordQuery;

use crate::transcript::tokens;
