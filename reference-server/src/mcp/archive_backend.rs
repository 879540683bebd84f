//! Tools over the user's archive: new transcripts are fetched and free.

use async_trait::async_trait;
use transcript_core::{
    chat::{Chat, Question},
    lookup::AttributionTag,
    video::{VideoId, VideoLink},
    wire::v1::ChatCitation,
};
use verbatim::{FoundTranscript, GetOutcome, GetRequest, UnavailableTranscript, Verbatim};

use super::backend::{
    LanguageList, ToolAnswer, ToolBackend, ToolCaller, ToolError, ToolTranscript, TranscriptQuery,
};

/// Tool backend over the user's archive.
#[derive(Clone, Debug)]
pub(crate) struct ArchiveBackend(Verbatim);

impl ArchiveBackend {
    /// Creates a backend over this archive.
    pub(crate) fn new(verbatim: Verbatim) -> Self {
        Self(verbatim)
    }

    async fn get(&self, video: &str, language: Option<String>) -> Result<FoundTranscript, ToolError> {
        match self.0.get(GetRequest { link: video.to_owned(), language }).await {
            Ok(GetOutcome::Found(found)) => Ok(found),
            Ok(GetOutcome::Missing(missing)) => Err(self.missing(video, missing)),
            Err(error) => Err(ToolError::from_error(&error)),
        }
    }

    fn missing(&self, link: &str, missing: UnavailableTranscript) -> ToolError {
        let video = VideoId::new(missing.platform, &missing.video_id).map(VideoLink::Video);
        // If a short link could not be resolved, the watch page is the short link's.
        let watch_url = match video.or_else(|_| VideoLink::parse(link)) {
            Ok(link) => self.watch_url(&link),
            Err(_) => missing.watch_url,
        };
        ToolError::Missing {
            reason: missing.reason.as_str(),
            message: missing.message,
            watch_url,
            retry_after: None,
        }
    }

    fn watch_url(&self, link: &VideoLink) -> String {
        self.0.lookup().options().watch_url(link, Some(AttributionTag::McpOther))
    }

    fn watch_url_of(&self, found: &FoundTranscript) -> String {
        self.watch_url(&VideoLink::Video(found.stored.transcript.video.clone()))
    }
}

#[async_trait]
impl ToolBackend for ArchiveBackend {
    async fn transcript(&self, query: TranscriptQuery, _: ToolCaller) -> Result<ToolTranscript, ToolError> {
        let language = query.language.map(|language| language.as_str().to_owned());
        let found = self.get(&query.video, language).await?;
        let watch_url = self.watch_url_of(&found);
        Ok(ToolTranscript { stored: found.stored, watch_url, notes: Vec::new() })
    }

    async fn languages(&self, video: String, _: ToolCaller) -> Result<LanguageList, ToolError> {
        let found = self.get(&video, None).await?;
        let tracks = self.0.transcripts().tracks(&found.stored.transcript.video).await;
        let tracks = tracks.map_err(|error| ToolError::from_error(&error))?;
        let watch_url = self.watch_url_of(&found);
        Ok(LanguageList { stored: found.stored, tracks, watch_url })
    }

    async fn answer(&self, video: String, question: String, _: ToolCaller) -> Result<ToolAnswer, ToolError> {
        let question =
            Question::new(&question, Vec::new()).map_err(|error| ToolError::invalid(error.to_string()))?;
        let found = self.get(&video, None).await?;
        let answer = self.0.chat().answer(found.stored.transcript, question).await;
        let answer = answer.map_err(|error| {
            tracing::error!(%error, "chat model call failed");
            let message = "The chat model did not respond. Retry in a few seconds.".to_owned();
            ToolError::Refused { code: 500, message, watch_url: None }
        })?;
        Ok(ToolAnswer {
            citations: answer.citations.iter().map(ChatCitation::from).collect(),
            response: answer.response,
            coverage: answer.coverage,
            notes: Vec::new(),
        })
    }

    fn chat(&self) -> &Chat {
        self.0.chat()
    }
}
