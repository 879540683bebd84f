//! Questions about a video, answered from its transcript, with every quotation and citation verified (specification
//! 2.6, 4 `POST /api/v1/chat`).
//!
//! Models invent: times, passages, and words that nobody said. So here a model never writes a time, and nothing that
//! it writes leaves unchecked:
//!
//! - It is given the transcript as numbered [`passages`], and cites their numbers. The service turns a number into
//!   the moment of whole segments, and drops one that was not given.
//! - What it quotes is looked for in the transcript; what leaves between quotation marks is the transcript's own text.
//! - A sentence that rests on no passage stays behind. When nothing is left, the model is asked once more, and then the
//!   transcript's own best passages are the answer.
//!
//! Without a model the answer is those passages at once: [`Chat::extractive`].
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
//!     video: VideoId::new(Platform::VideoSite, "dQw4w9WgXcQ")?,
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
//! let answer = chat.ask(Arc::new(transcript), Question::new("When did the pier break?", Vec::new())?).await?;
//! assert_eq!(answer.response, "“The ice broke the pier in 1912” [1:05]");
//! assert_eq!(answer.citations[0].url, "https://www.youtube.com/watch?v=dQw4w9WgXcQ&t=65s");
//! # Ok(())
//! # }
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
//! # runtime.block_on(example()).unwrap();
//! ```

mod answer;
mod ask;
mod check;
mod common_words;
mod desk;
mod extractive;
mod feed;
mod fold;
mod intent;
mod model;
mod options;
mod passage;
mod prompt;
mod question;
mod rank;
mod retrieve;
mod search;
mod terms;
#[cfg(test)]
mod tests;
mod tokens;
mod whole;
mod words;

pub use answer::{Answer, Citation, NOT_COVERED_SENTENCE, Origin, Sentence};
pub use ask::{Chat, Sentences};
pub use extractive::ExtractiveModel;
pub use model::{ChatMessage, ChatModel, ChatReply, ChatRequest, Deltas, Speaker, Task, Usage};
pub use options::ChatOptions;
pub use passage::{Passage, passages};
pub use question::{HISTORY_ITEMS_MAX, MESSAGE_CHARS_MAX, NoQuestion, Question, Role, Turn};
pub use search::Hits;
pub use words::Words;
