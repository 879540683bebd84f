//! The frame of all pages: masthead, content, footer.

use maud::{DOCTYPE, Markup, html};

use super::{
    assets::{Asset, ICON, STYLE, TOUCH_ICON},
    context::PageContext,
};
use crate::config::PageIndex;

/// Section of the masthead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    /// Front page and transcripts.
    Transcripts,
    /// Search in all transcripts.
    Search,
    /// Documentation.
    Api,
    /// Packs and plans.
    Pricing,
    /// Registration, sign-in and the account.
    Account,
}

/// Width of the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageWidth {
    /// Forms and short text.
    Narrow,
    /// A transcript.
    Reading,
    /// Several columns.
    Wide,
    /// Documentation.
    Docs,
}

impl PageWidth {
    /// CSS class of the body.
    fn class(self) -> &'static str {
        match self {
            Self::Narrow => "narrow",
            Self::Reading => "reading",
            Self::Wide => "wide",
            Self::Docs => "docs",
        }
    }
}

/// Frame of a page around its content.
///
/// ```text
/// Frame::new(&context, "Sign in").section(Section::Account).render(html! { h1 { "Sign in" } })
/// ```
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    context: &'a PageContext,
    title: &'a str,
    section: Option<Section>,
    width: PageWidth,
    scripts: Vec<&'static Asset>,
    styles: Vec<&'static Asset>,
    head: Markup,
    /// Path relative to the root, and summary.
    description: Option<(&'a str, &'a str)>,
    query: &'a str,
    is_indexable: bool,
    content_language: Option<&'a str>,
}

impl<'a> Frame<'a> {
    /// Narrow page of no section, without scripts. `title` is that of the browser tab.
    pub(crate) fn new(context: &'a PageContext, title: &'a str) -> Self {
        Self {
            context,
            title,
            section: None,
            width: PageWidth::Narrow,
            scripts: Vec::new(),
            styles: Vec::new(),
            head: Markup::default(),
            description: None,
            query: "",
            is_indexable: false,
            content_language: None,
        }
    }

    /// The page in a section of the masthead.
    pub(crate) fn section(self, section: Section) -> Self {
        Self { section: Some(section), ..self }
    }

    pub(crate) fn width(self, width: PageWidth) -> Self {
        Self { width, ..self }
    }

    /// The page with a script.
    pub(crate) fn with_script(mut self, script: &'static Asset) -> Self {
        self.scripts.push(script);
        self
    }

    /// The page with a further style sheet.
    pub(crate) fn with_style(mut self, style: &'static Asset) -> Self {
        self.styles.push(style);
        self
    }

    /// The page with further elements of the head.
    pub(crate) fn head(self, head: Markup) -> Self {
        Self { head, ..self }
    }

    /// The page with a summary for search engines and link previews. `path` is relative to the root.
    pub(crate) fn described(self, path: &'a str, summary: &'a str) -> Self {
        Self { description: Some((path, summary)), ..self }
    }

    /// The page with parameters that select its content, such as `lang=de`: links to other languages keep them.
    pub(crate) fn query(self, query: &'a str) -> Self {
        Self { query, ..self }
    }

    /// The page in search engines, if `pages.index` lists pages like this one.
    pub(crate) fn indexed_with(self, least: PageIndex) -> Self {
        let index = self.context.site().index;
        Self { is_indexable: index == PageIndex::Transcripts || index == least, ..self }
    }

    /// The page with content in a language that is not that of the frame.
    pub(crate) fn content_language(self, tag: &'a str) -> Self {
        Self { content_language: Some(tag), ..self }
    }

    /// Renders the page with this content.
    pub(crate) fn render(self, body: Markup) -> Markup {
        let Self { context, title, width, scripts, styles, head, content_language, .. } = &self;
        let asset = |asset: &Asset| format!("{}assets/{}", context.root(), asset.name);
        let (tag, direction) = context.messages().map_or(("en", None), |messages| {
            (messages.tag.as_str(), messages.is_right_to_left.then_some("rtl"))
        });
        let content_direction = content_language.and(direction).map(|_| "ltr");
        html! {
            (DOCTYPE)
            html lang=(tag) dir=[direction] {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    @if !self.is_indexable { meta name="robots" content="noindex"; }
                    title { (title) }
                    @if let Some((path, summary)) = self.description { (self.card(path, summary)) }
                    (head)
                    link rel="icon" type="image/svg+xml" href=(asset(&ICON));
                    link rel="apple-touch-icon" href=(asset(&TOUCH_ICON));
                    link rel="stylesheet" href=(asset(&STYLE));
                    @for style in styles { link rel="stylesheet" href=(asset(style)); }
                    @for script in scripts { script type="module" src=(asset(script)) {} }
                }
                body class=(width.class()) {
                    a.skip href="#content" { (context.text("frame.skip")) }
                    (self.masthead())
                    main #content tabindex="-1" lang=[content_language] dir=[content_direction] { (body) }
                    (self.footer())
                }
            }
        }
    }

    /// What search engines and link previews show of the page.
    fn card(&self, path: &str, summary: &str) -> Markup {
        let context = self.context;
        let page = format!("{}/{path}", context.site().base_url);
        // The documentation is the same text in the frame of every language.
        let is_translated = self.content_language.is_none();
        let address = match is_translated {
            true => format!("{page}{}", context.with_language("")),
            false => page.clone(),
        };
        html! {
            meta name="description" content=(summary);
            meta property="og:type" content="website";
            meta property="og:site_name" content="Verbatim";
            meta property="og:title" content=(self.title);
            meta property="og:description" content=(summary);
            meta property="og:url" content=(address);
            @if self.is_indexable {
                link rel="canonical" href=(address);
                @if is_translated {
                    link rel="alternate" hreflang="x-default" href=(page);
                    @for (messages, query) in context.languages("") {
                        link rel="alternate" hreflang=(messages.tag) href={ (page) (query) };
                    }
                }
            }
        }
    }

    /// The masthead, which has the same place on every page.
    fn masthead(&self) -> Markup {
        let context = self.context;
        let (has_search, has_accounts) = (context.site().has_search, context.site().has_account_pages);
        let sections = [
            (Section::Transcripts, "", "frame.transcripts", true),
            (Section::Search, "search", "frame.search", has_search),
            (Section::Api, "docs", "frame.api", true),
            (Section::Pricing, "pricing", "frame.pricing", true),
            (Section::Account, "account", "frame.account", has_accounts),
        ];
        html! {
            header.masthead {
                a.brand href=(context.href("")) { "Verbatim" }
                nav aria-label=(context.text("frame.navigation")) {
                    ul {
                        @for (section, path, label, is_shown) in sections {
                            @if is_shown {
                                @let current = (self.section == Some(section)).then_some("true");
                                li { a href=(context.href(path)) aria-current=[current] { (context.text(label)) } }
                            }
                        }
                    }
                }
            }
        }
    }

    /// The footer: links of the operator, and the languages of the page.
    fn footer(&self) -> Markup {
        let context = self.context;
        let links = &context.site().links;
        let external = [
            (&links.status, "frame.status"),
            (&links.privacy, "frame.privacy"),
            (&links.terms, "frame.terms"),
            (&links.imprint, "frame.imprint"),
            (&links.contact, "frame.contact"),
        ];
        let languages = context.languages(self.query);
        let current = context.messages().map(|messages| messages.tag.as_str());
        html! {
            footer.site {
                nav aria-label=(context.text("frame.about")) {
                    ul {
                        li { a href=(context.href("docs")) { (context.text("frame.docs")) } }
                        @for (address, label) in external {
                            @if let Some(address) = address {
                                li { a href=(address) rel="noreferrer" { (context.text(label)) } }
                            }
                        }
                        li { (context.fill("frame.version", &[("version", env!("CARGO_PKG_VERSION"))])) }
                    }
                }
                @if !languages.is_empty() {
                    nav aria-label=(context.text("frame.languages")) {
                        ul {
                            @for (messages, address) in languages {
                                @let is_current = current == Some(messages.tag.as_str());
                                li {
                                    a href=(address) lang=(messages.tag) hreflang=(messages.tag)
                                        aria-current=[is_current.then_some("true")] { (messages.name) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
