//! What other sites show of a transcript: link previews, and structured data for search engines.

use maud::{Markup, PreEscaped, html};
use serde_json::{Map, Value, json};
use transcript_core::{
    archive::StoredTranscript,
    video::{Platform, VideoId},
};

/// A transcript as other sites show it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageCard<'a> {
    pub(super) stored: &'a StoredTranscript,
    /// Title of the video.
    pub(super) heading: &'a str,
    /// Beginning of the text.
    pub(super) summary: &'a str,
    /// Absolute address of the page.
    pub(super) address: &'a str,
}

impl PageCard<'_> {
    /// Elements of the head. Structured data is for search engines only.
    pub(super) fn head(self, is_indexed: bool) -> Markup {
        let Self { stored, heading, summary, address } = self;
        let image = thumbnail(&stored.transcript.video);
        html! {
            meta name="description" content=(summary);
            meta property="og:type" content="article";
            meta property="og:site_name" content="Verbatim";
            meta property="og:title" content=(heading);
            meta property="og:description" content=(summary);
            meta property="og:url" content=(address);
            @if let Some(image) = &image { meta property="og:image" content=(image); }
            meta name="twitter:card" content="summary";
            link rel="canonical" href=(address);
            @if let Some(data) = self.structured_data().filter(|_| is_indexed) {
                script type="application/ld+json" { (PreEscaped(data)) }
            }
        }
    }

    /// A `VideoObject` of schema.org; `None` without the picture and the date that search engines require.
    fn structured_data(self) -> Option<String> {
        let (transcript, metadata) = (&*self.stored.transcript, &self.stored.details.metadata);
        let video = &transcript.video;
        let (image, published_at) = (thumbnail(video)?, metadata.published_at?);
        let language = transcript.track.language.as_str();
        // Videos with a picture are those of the platform with this player.
        let player = format!("https://www.youtube-nocookie.com/embed/{}", video.id());
        let fields = [
            ("@context", Some(json!("https://schema.org"))),
            ("@type", Some(json!("VideoObject"))),
            ("name", Some(json!(self.heading))),
            ("description", Some(json!(self.summary))),
            ("url", Some(json!(self.address))),
            ("embedUrl", Some(json!(player))),
            ("inLanguage", Some(json!(language))),
            ("thumbnailUrl", Some(json!(image))),
            ("uploadDate", Some(json!(published_at.to_string()))),
            (
                "duration",
                transcript.duration_ms.map(|length| json!(format!("PT{}S", length.div_ceil(1_000)))),
            ),
        ];
        let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        // Only `<` can end the element or begin a comment in it.
        Some(Value::Object(fields.collect::<Map<_, _>>()).to_string().replace('<', "\\u003c"))
    }
}

/// Address of the platform's picture of a video; `None` if it has no permanent one.
fn thumbnail(video: &VideoId) -> Option<String> {
    (video.platform() == Platform::YouTube)
        .then(|| format!("https://i.ytimg.com/vi/{}/hqdefault.jpg", video.id()))
}
