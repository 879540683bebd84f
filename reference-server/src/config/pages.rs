//! Settings of the pages.

use std::path::PathBuf;

use url::Url;

use super::{
    layers::RawSettings,
    value::{ParseSetting, WordSetting, text},
};
use crate::messages::Messages;

/// `pages.*`
#[derive(Clone, Debug, smart_default::SmartDefault)]
pub(crate) struct PageSettings {
    /// `pages.status_url`: state of the service.
    pub(crate) status: Option<PageLink>,
    /// `pages.privacy_url`: privacy statement.
    pub(crate) privacy: Option<PageLink>,
    /// `pages.terms_url`: terms of use.
    pub(crate) terms: Option<PageLink>,
    /// `pages.imprint_url`: who operates the service.
    pub(crate) imprint: Option<PageLink>,
    /// `pages.contact_url`: contact, also for takedown requests.
    pub(crate) contact: Option<PageLink>,
    /// `pages.messages`: messages of the operator.
    pub(crate) messages: Option<PageMessages>,
    /// `pages.index`: pages that search engines may list.
    #[default(PageIndex::Site)]
    pub(crate) index: PageIndex,
}

/// Messages of the operator: further languages, or other words.
#[derive(Clone, Debug)]
pub(crate) struct PageMessages {
    folder: PathBuf,
    languages: Vec<Messages>,
}

impl PageMessages {
    /// The languages of the folder.
    pub(crate) fn languages(&self) -> &[Messages] {
        &self.languages
    }
}

impl ParseSetting for PageMessages {
    const ALLOWED: &'static str = "the path of a folder with message files such as pt.toml";

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        let folder = PathBuf::from(text(raw)?);
        let languages = Messages::read_folder(&folder).map_err(Some)?;
        Ok(Self { folder, languages })
    }

    fn show(&self) -> String {
        format!("{:?}", self.folder)
    }
}

/// Pages that search engines may list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageIndex {
    None,
    /// The front page, the prices and the documentation.
    Site,
    /// Also the transcripts.
    Transcripts,
}

impl WordSetting for PageIndex {
    const ALLOWED: &'static str = "none, site or transcripts";
    const WORDS: &'static [(&'static str, Self)] =
        &[("none", Self::None), ("site", Self::Site), ("transcripts", Self::Transcripts)];
}

/// Target of a link: an http or https address, or an email address with `mailto:`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageLink(Url);

impl PageLink {
    /// Returns the address.
    pub(crate) fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl ParseSetting for PageLink {
    const ALLOWED: &'static str = "an address such as https://example.org/terms or mailto:help@example.org";

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        let url = Url::parse(text(raw)?).map_err(|_| None)?;
        let is_link = match url.scheme() {
            "http" | "https" => url.host().is_some() && url.username().is_empty() && url.password().is_none(),
            "mailto" => url.path().contains('@'),
            _ => false,
        };
        if is_link { Ok(Self(url)) } else { Err(None) }
    }

    fn show(&self) -> String {
        format!("{:?}", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_link_is_web_or_mail_address() {
        for (text, is_link) in [
            ("https://example.org/terms?v=2#a", true),
            ("http://example.org", true),
            ("mailto:help@example.org", true),
            ("mailto:help", false),
            ("javascript:alert(1)", false),
            ("data:text/html,x", false),
            ("//example.org", false),
            ("https://me:hush@example.org", false),
        ] {
            assert_eq!(PageLink::read(&RawSettings::Text(text.to_owned())).is_ok(), is_link, "{text}");
        }
    }
}
