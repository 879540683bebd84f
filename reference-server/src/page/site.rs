//! What all pages of this server have in common: its sections, links and languages.

use std::sync::{Arc, LazyLock};

use crate::{
    config::{PageIndex, PageLink, PageSettings},
    messages::Messages,
};

/// What all pages of this server have in common.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// Links of the operator in the footer.
    pub(crate) links: SiteLinks,
    /// Whether the server has the page `/search`.
    pub(crate) has_search: bool,
    /// Whether the server has the pages of accounts.
    pub(crate) has_account_pages: bool,
    /// Questions that a visitor may ask a day on the page of a transcript; 0: none.
    pub(crate) questions_per_day: u32,
    /// Pages that search engines may list.
    pub(crate) index: PageIndex,
    /// Public address of the server, without `/` at the end.
    pub(crate) base_url: String,
    /// The languages of the pages; the first one is the default.
    pub(crate) languages: Arc<[Messages]>,
}

/// Links of the operator. One that is not set is not shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct SiteLinks {
    /// State of the service.
    pub(crate) status: Option<String>,
    /// Privacy statement.
    pub(crate) privacy: Option<String>,
    /// Terms of use.
    pub(crate) terms: Option<String>,
    /// Who operates the service.
    pub(crate) imprint: Option<String>,
    /// Contact, also for takedown requests.
    pub(crate) contact: Option<String>,
}

impl Default for Site {
    fn default() -> Self {
        static BUILT_IN: LazyLock<Arc<[Messages]>> = LazyLock::new(|| Messages::built_in().into());
        Self {
            links: SiteLinks::default(),
            has_search: false,
            has_account_pages: true,
            questions_per_day: 0,
            index: PageIndex::Site,
            base_url: String::new(),
            languages: Arc::clone(&BUILT_IN),
        }
    }
}

impl From<&PageSettings> for Site {
    fn from(settings: &PageSettings) -> Self {
        let link = |link: &Option<PageLink>| link.as_ref().map(|link| link.as_str().to_owned());
        let links = SiteLinks {
            status: link(&settings.status),
            privacy: link(&settings.privacy),
            terms: link(&settings.terms),
            imprint: link(&settings.imprint),
            contact: link(&settings.contact),
        };
        let site = Self { links, index: settings.index, ..Self::default() };
        let Some(messages) = &settings.messages else { return site };
        let mut languages = site.languages.to_vec();
        Messages::extend(&mut languages, messages.languages());
        Self { languages: languages.into(), ..site }
    }
}
