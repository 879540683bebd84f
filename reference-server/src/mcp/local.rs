//! The tools over the user's own archive: what is new is fetched, and nobody is charged.

use async_trait::async_trait;
use transcript_core::{
    chat::{Chat, Question},
    lookup::SourceTag,
    video::{VideoId, VideoLink},
    wire::v1::ChatCitation,
};
use verbatim::{Found, Get, GetOutcome, Missing, Verbatim};

use super::source::{Caller, Got, Languages, No, Source, Told, Wanted};

/// The user's own archive.
#[derive(Clone, Debug)]
pub(crate) struct Local(Verbatim);

impl Local {
    /// The tools over this archive.
    pub(crate) fn new(verbatim: Verbatim) -> Self {
        Self(verbatim)
    }

    async fn get(&self, video: &str, language: Option<String>) -> Result<Found, No> {
        match self.0.get(Get { link: video.to_owned(), language }).await {
            Ok(GetOutcome::Found(found)) => Ok(found),
            Ok(GetOutcome::Missing(missing)) => Err(self.missing(video, missing)),
            Err(error) => Err(No::of_error(&error)),
        }
    }

    fn missing(&self, asked: &str, missing: Missing) -> No {
        let video = VideoId::new(missing.platform, &missing.video_id).map(VideoLink::Video);
        // Where a short link could not be followed, its page is the link's own.
        let watch_url = match video.or_else(|_| VideoLink::parse(asked)) {
            Ok(link) => self.watch_url(&link),
            Err(_) => missing.watch_url,
        };
        No::Missing {
            reason: missing.reason.as_str(),
            message: missing.message,
            watch_url,
            again_after: None,
        }
    }

    fn watch_url(&self, link: &VideoLink) -> String {
        self.0.lookup().options().watch_url(link, Some(SourceTag::McpOther))
    }

    fn page_of(&self, found: &Found) -> String {
        self.watch_url(&VideoLink::Video(found.stored.transcript.video.clone()))
    }
}

#[async_trait]
impl Source for Local {
    async fn transcript(&self, wanted: Wanted, _: Caller) -> Result<Got, No> {
        let language = wanted.language.map(|language| language.as_str().to_owned());
        let found = self.get(&wanted.video, language).await?;
        let watch_url = self.page_of(&found);
        Ok(Got { stored: found.stored, watch_url, notes: Vec::new() })
    }

    async fn languages(&self, video: String, _: Caller) -> Result<Languages, No> {
        let found = self.get(&video, None).await?;
        let tracks = self.0.transcripts().tracks(&found.stored.transcript.video).await;
        let tracks = tracks.map_err(|error| No::of_error(&error))?;
        let watch_url = self.page_of(&found);
        Ok(Languages { of: found.stored, tracks, watch_url })
    }

    async fn ask(&self, video: String, question: String, _: Caller) -> Result<Told, No> {
        let question = Question::new(&question, Vec::new()).map_err(|error| No::bad(error.to_string()))?;
        let found = self.get(&video, None).await?;
        let answer = self.0.chat().ask(found.stored.transcript, question).await;
        let answer = answer.map_err(|error| {
            tracing::error!(%error, "a chat model did not answer");
            let message = "The chat model did not answer: please try again in a moment.".to_owned();
            No::Refused { code: 500, message, watch_url: None }
        })?;
        Ok(Told {
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
