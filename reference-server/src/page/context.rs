//! What a page depends on besides its content: the site, the language of the visitor, and the page's address.

use std::sync::Arc;

use http::{HeaderMap, Method, Uri, header::ACCEPT_LANGUAGE, request::Parts};
use maud::{Markup, html};
use transcript_core::accounts::NumberFormat;

use super::{root_of, site::Site};
use crate::{
    api::parameter,
    messages::{Messages, PageLanguage, fill, fill_markup, number_format},
};

/// Name of the parameter with the language of the pages.
pub(crate) const LANGUAGE_PARAMETER: &str = "hl";
/// Longest `Accept-Language` that is read, in bytes.
const ACCEPT_LANGUAGE_MAX: usize = 1_024;

/// The address of a request. A nested router shortens that of the request itself.
#[derive(Clone, Debug)]
pub(crate) struct WholeUri(pub(crate) Uri);

/// What a page depends on besides its content. Handlers take it as an argument.
#[derive(Clone, Debug)]
pub(crate) struct PageContext {
    site: Arc<Site>,
    language: PageLanguage,
    /// Relative path to the root of the service: `../../` for `/watch/reels/7`; empty at the root.
    root: String,
    /// Whether the page can be opened in another language by its address.
    has_languages: bool,
}

impl PageContext {
    /// Context of a request. `uri` has the whole path.
    pub(crate) fn new(site: Arc<Site>, method: &Method, uri: &Uri, headers: &HeaderMap) -> Self {
        let requested = parameter(uri.query().unwrap_or_default(), LANGUAGE_PARAMETER).ok().flatten();
        let named = requested.and_then(|tag| find_language(&site.languages, &tag));
        let language = PageLanguage {
            index: named.unwrap_or_else(|| accepted_language(&site.languages, headers)),
            is_explicit: named.is_some(),
        };
        let has_languages = matches!(*method, Method::GET | Method::HEAD) && site.languages.len() > 1;
        Self { site, language, root: root_of(uri.path()), has_languages }
    }

    /// Context of a request whose head a router has changed.
    pub(crate) fn from_head(head: &Parts, site: &Arc<Site>) -> Self {
        let uri = head.extensions.get::<WholeUri>().map_or(&head.uri, |whole| &whole.0);
        Self::new(Arc::clone(site), &head.method, uri, &head.headers)
    }

    /// English page of a default site at this address.
    #[cfg(test)]
    pub(crate) fn for_test(path: &str) -> Self {
        let uri = Uri::try_from(path).unwrap();
        Self::new(Arc::default(), &Method::GET, &uri, &HeaderMap::new())
    }

    /// What all pages of the server have in common.
    pub(crate) fn site(&self) -> &Site {
        &self.site
    }

    pub(crate) fn language(&self) -> PageLanguage {
        self.language
    }

    /// Tag of the page's language.
    pub(crate) fn tag(&self) -> Option<&str> {
        self.messages().map(|messages| messages.tag.as_str())
    }

    /// Messages of the page's language.
    pub(super) fn messages(&self) -> Option<&Messages> {
        self.site.languages.get(self.language.index)
    }

    /// Languages that the page can be opened in, with their addresses. `query` has the parameters of the page.
    pub(super) fn languages(&self, query: &str) -> Vec<(&Messages, String)> {
        if !self.has_languages {
            return Vec::new();
        }
        let query = if query.is_empty() { String::new() } else { format!("&{query}") };
        let address = |messages: &Messages| format!("?{LANGUAGE_PARAMETER}={}{query}", messages.tag);
        self.site.languages.iter().map(|messages| (messages, address(messages))).collect()
    }

    /// Relative path to the root of the service; empty at the root.
    pub(crate) fn root(&self) -> &str {
        &self.root
    }

    /// Address of a page of this service, relative to this page and in the same language. `path` is relative to the
    /// root and may have a query: `account/keys`; the front page is empty.
    pub(crate) fn href(&self, path: &str) -> String {
        let address = match (self.root.as_str(), path) {
            // On the front page itself the root is the page.
            ("", "") => "./".to_owned(),
            (root, path) => format!("{root}{path}"),
        };
        match self.messages().filter(|_| self.language.is_explicit) {
            Some(messages) => {
                let separator = if path.contains('?') { '&' } else { '?' };
                format!("{address}{separator}{LANGUAGE_PARAMETER}={}", messages.tag)
            }
            None => address,
        }
    }

    /// Address of this page with these parameters, in the same language.
    pub(crate) fn here(&self, query: &str) -> String {
        self.with_language(&format!("?{query}"))
    }

    /// A query, empty or with `?` in front, that also names an explicit language.
    pub(crate) fn with_language(&self, query: &str) -> String {
        match (self.messages().filter(|_| self.language.is_explicit), query) {
            (None, query) => query.to_owned(),
            (Some(messages), "") => format!("?{LANGUAGE_PARAMETER}={}", messages.tag),
            (Some(messages), query) => format!("{query}&{LANGUAGE_PARAMETER}={}", messages.tag),
        }
    }

    /// Field of a form that is sent with GET: the next page has the same language.
    pub(crate) fn language_field(&self) -> Markup {
        let messages = self.messages().filter(|_| self.language.is_explicit);
        html! {
            @if let Some(messages) = messages {
                input type="hidden" name=(LANGUAGE_PARAMETER) value=(messages.tag);
            }
        }
    }

    /// A message in the page's language.
    pub(crate) fn text<'a>(&'a self, key: &'a str) -> &'a str {
        let find = |index: usize| self.site.languages.get(index).and_then(|messages| messages.find(key));
        // A test finds keys that are in no file.
        find(self.language.index).or_else(|| find(0)).unwrap_or(key)
    }

    /// Messages for the script, as a JSON object of names and texts.
    pub(crate) fn json(&self, messages: &[(&str, &str)]) -> String {
        let texts = messages.iter().map(|(name, key)| ((*name).to_owned(), self.text(key).into()));
        serde_json::Value::Object(texts.collect()).to_string()
    }

    /// A number as the page's language writes it.
    pub(crate) fn number(&self, number: u64) -> String {
        self.numbers().number(number)
    }

    fn numbers(&self) -> NumberFormat {
        number_format(|key| self.text(key).to_owned())
    }

    /// An amount of money as the page's language writes it.
    pub(crate) fn price(&self, minor: u64, currency: &str) -> String {
        self.numbers().price(minor, currency)
    }

    /// A message with values for its placeholders.
    pub(crate) fn fill(&self, key: &str, values: &[(&str, &str)]) -> String {
        fill(self.text(key), values)
    }

    /// A message with markup for its placeholders. The text is escaped.
    pub(crate) fn markup(&self, key: &str, values: &[(&str, Markup)]) -> Markup {
        fill_markup(self.text(key), values)
    }
}

/// Index of the language with this tag, or of its main language: `de` for `de-AT`.
fn find_language(languages: &[Messages], tag: &str) -> Option<usize> {
    let find = |tag: &str| languages.iter().position(|messages| messages.tag.eq_ignore_ascii_case(tag));
    find(tag).or_else(|| find(tag.split('-').next()?))
}

/// Index of the language that the client prefers; the first one if it names none of the site.
fn accepted_language(languages: &[Messages], headers: &HeaderMap) -> usize {
    let accepted = headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let accepted = accepted.get(..accepted.len().min(ACCEPT_LANGUAGE_MAX)).unwrap_or_default();
    let mut best: Option<(f32, usize)> = None;
    for item in accepted.split(',') {
        let mut parts = item.split(';');
        let Some(index) = parts.next().and_then(|tag| find_language(languages, tag.trim())) else { continue };
        let quality =
            parts.find_map(|part| part.trim().strip_prefix("q=")).map_or(Some(1.0), |q| q.parse().ok());
        let Some(quality) = quality.filter(|quality| *quality > 0.0) else { continue };
        if best.is_none_or(|(before, _)| quality > before) {
            best = Some((quality, index));
        }
    }
    best.map_or(0, |(_, index)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn languages() -> Vec<Messages> {
        let parse = |tag: &str| {
            Messages::parse(&format!("[language]\ntag = \"{tag}\"\nname = \"\"\ndirection = \"ltr\"\n"))
                .unwrap()
        };
        ["en", "de", "pt-BR"].map(parse).into()
    }

    #[test]
    fn page_language_is_the_preferred_one_of_the_site() {
        for (accepted, tag) in [
            ("", "en"),
            ("fr", "en"),
            ("de", "de"),
            ("DE-at", "de"),
            ("fr, de;q=0.8, en;q=0.9", "en"),
            ("de;q=0, en;q=0.1", "en"),
            ("pt-br", "pt-BR"),
            ("pt", "en"),
            ("de;q=x", "en"),
            ("*", "en"),
            ("en;q=0.5,de;q=0.5", "en"),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT_LANGUAGE, accepted.parse().unwrap())]);
            let languages = languages();
            assert_eq!(languages[accepted_language(&languages, &headers)].tag, tag, "{accepted}");
        }
    }

    #[test]
    fn page_links_name_an_explicit_language() {
        let site = Arc::new(Site { languages: languages().into(), ..Site::default() });
        let context = |address: &str| {
            PageContext::new(Arc::clone(&site), &Method::GET, &address.parse().unwrap(), &HeaderMap::new())
        };
        let named = context("/watch/reels/7?hl=de");
        assert_eq!(named.href("pricing"), "../../pricing?hl=de");
        assert_eq!(named.href("search?q=a"), "../../search?q=a&hl=de");
        assert_eq!(named.languages("lang=ja")[2].1, "?hl=pt-BR&lang=ja");
        let plain = context("/?hl=xx");
        assert_eq!((plain.href("").as_str(), plain.href("docs").as_str()), ("./", "docs"));
    }
}
