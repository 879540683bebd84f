//! Requests of the service that have no type of their own elsewhere.

use crate::{
    chat::{ChatRole, ChatTurn},
    debug_fields,
    error::{Error, Result},
    lookup::VideoReference,
    transcript::LanguageTag,
    video::{Platform, VideoLink},
    wire::v1,
};

/// A video to look up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceLookup {
    /// The video: a link, or a YouTube id.
    pub reference: VideoReference,
    /// The language; `None`: English if there is English, else the spoken language.
    pub language: Option<LanguageTag>,
    /// Whether a machine translation into the language is returned if the video has no other transcript in it.
    pub translated: bool,
    /// Whether a server is to send the times of words.
    pub words: bool,
    /// Whether a server is to send the description of the video.
    pub description: bool,
    /// Whether a transcript that is not archived may be fetched and paid for.
    pub may_fetch: bool,
    /// Whether no archived transcript in another language stands in for the default one.
    ///
    /// Only the service of this process observes it.
    pub default_only: bool,
}

impl ServiceLookup {
    /// Looks up the video of this link.
    pub fn url(url: impl Into<String>) -> Self {
        Self {
            reference: VideoReference::Url(url.into()),
            language: None,
            translated: false,
            words: false,
            description: false,
            may_fetch: true,
            default_only: false,
        }
    }

    /// Looks up the YouTube video with this id.
    pub fn id(id: impl Into<String>) -> Self {
        Self { reference: VideoReference::Id(id.into()), ..Self::url("") }
    }
}

/// A question about a video.
#[derive(Clone, PartialEq, Eq)]
pub struct ServiceQuestion {
    /// The video. Where answers cost credits, it is a YouTube video.
    pub reference: VideoReference,
    /// The question.
    pub message: String,
    /// Earlier messages of the conversation, oldest first: the service stores none.
    pub history: Vec<ChatTurn>,
}

impl ServiceQuestion {
    /// The body of a question to the v1 API.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if a link is not that of a YouTube video.
    pub fn to_wire(&self) -> Result<v1::ChatQuestion> {
        let video_id = match &self.reference {
            VideoReference::Id(id) => id.clone(),
            VideoReference::Url(link) => match VideoLink::parse(link)? {
                VideoLink::Video(video) if video.platform() == Platform::YouTube => video.id().to_owned(),
                VideoLink::Video(_) | VideoLink::Short(_) => {
                    let platform = Platform::YouTube.name();
                    return Err(Error::invalid(format!(
                        "questions are answered for videos on {platform} only"
                    )));
                }
            },
        };
        let turn = |turn: &ChatTurn| v1::ChatTurn {
            role: match turn.role {
                ChatRole::User => v1::ChatRole::User,
                ChatRole::Assistant => v1::ChatRole::Assistant,
            },
            content: turn.content.clone(),
        };
        let history: Vec<_> = self.history.iter().map(turn).collect();
        let conversation_history = (!history.is_empty()).then_some(history);
        Ok(v1::ChatQuestion { video_id, message: self.message.clone(), conversation_history })
    }
}

// Without the texts.
debug_fields!(ServiceQuestion { reference });
