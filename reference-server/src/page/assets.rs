//! Static files of the pages: style sheets, scripts, icons, and the challenge widget.
//!
//! Each name contains a digest of the content, so that browsers cache the file permanently and never combine files of
//! different versions. Each file is compressed once per encoding.

use std::sync::{LazyLock, OnceLock};

use bytes::Bytes;
use sha2::{Digest, Sha256};
use transcript_core::hex;

use crate::{api::ContentEncoding, response_cache::compress};

/// Hexadecimal digits of the digest in a name.
const DIGITS: usize = 12;

/// Static file.
#[derive(Debug)]
pub(crate) struct Asset {
    /// Name below `assets/`.
    pub(crate) name: String,
    /// Media type.
    pub(crate) kind: &'static str,
    content: Vec<u8>,
    ready: [OnceLock<Bytes>; 4],
}

impl Asset {
    fn new(stem: &str, extension: &str, kind: &'static str, content: impl Into<Vec<u8>>) -> Self {
        let content = content.into();
        let mut digest = hex::encode(&Sha256::digest(&content));
        digest.truncate(DIGITS);
        Self { name: format!("{stem}.{digest}.{extension}"), kind, content, ready: Default::default() }
    }

    pub(crate) fn bytes(&self, encoding: ContentEncoding) -> Bytes {
        let content = || self.content.clone();
        let Some(cell) = self.ready.get(encoding as usize) else { return content().into() };
        // Compression in memory does not fail.
        cell.get_or_init(|| compress(content(), encoding).unwrap_or_default().into()).clone()
    }
}

const SCRIPT_KIND: &str = "text/javascript; charset=utf-8";

/// Style sheet of all pages.
pub(crate) static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("style", "css", "text/css; charset=utf-8", include_str!("style.css").to_owned())
});
/// Further style sheet of the documentation.
pub(crate) static DOCS_STYLE: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("docs", "css", "text/css; charset=utf-8", include_str!("../docs/style.css").to_owned())
});
/// Script of the documentation: two sources in one file, as of transcripts.
pub(crate) static DOCS_SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    let sources = [include_str!("copy.js"), include_str!("../docs/docs.js")];
    Asset::new("docs", "js", SCRIPT_KIND, without_comments(&sources))
});
/// Script of transcripts: two sources in one file, so that a page loads one.
pub(crate) static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new(
        "page",
        "js",
        SCRIPT_KIND,
        without_comments(&[include_str!("fold.js"), include_str!("page.js")]),
    )
});
/// Script of the search page.
pub(crate) static SEARCH_SCRIPT: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("search", "js", SCRIPT_KIND, include_str!("search.js").to_owned()));
/// Module that the scripts of the transcribe button and of questions import.
static CHALLENGE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("challenge", "js", SCRIPT_KIND, include_str!("challenge.js").to_owned()));
/// Script of the transcribe button.
pub(crate) static TRANSCRIBE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("transcribe", "js", SCRIPT_KIND, importing(include_str!("transcribe.js"))));
/// Script of questions, loaded only by the first one.
pub(crate) static QUESTION_SCRIPT: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("question", "js", SCRIPT_KIND, importing(include_str!("question.js"))));
/// Script of the player, loaded only by its button.
pub(crate) static PLAYER: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("player", "js", SCRIPT_KIND, include_str!("player.js").to_owned()));
/// Script of the buttons that copy a key.
pub(crate) static COPY_SCRIPT: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("copy", "js", SCRIPT_KIND, include_str!("copy.js").to_owned()));
/// Icon of the browser tab.
pub(crate) static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("icon", "svg", "image/svg+xml", include_str!("icon.svg").to_owned()));
/// Icon on the home screen of Apple's devices, which show no SVG and round the corners.
pub(crate) static TOUCH_ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("touch-icon", "png", "image/png", include_bytes!("touch-icon.png")));
/// ALTCHA's widget, loaded only by the transcribe button.
pub(crate) static WIDGET: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("altcha", "js", SCRIPT_KIND, licensed(include_str!("altcha/altcha.min.js"))));
/// Worker script of the widget.
pub(crate) static WORKER: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("worker", "js", SCRIPT_KIND, licensed(include_str!("altcha/pbkdf2.js"))));

/// Returns the file with this name.
pub(crate) fn named(name: &str) -> Option<&'static Asset> {
    let all: [&'static Asset; 14] = [
        &STYLE,
        &DOCS_STYLE,
        &DOCS_SCRIPT,
        &SCRIPT,
        &SEARCH_SCRIPT,
        &CHALLENGE,
        &TRANSCRIBE,
        &QUESTION_SCRIPT,
        &PLAYER,
        &COPY_SCRIPT,
        &ICON,
        &TOUCH_ICON,
        &WIDGET,
        &WORKER,
    ];
    all.into_iter().find(|asset| asset.name == name)
}

/// A script whose import has the name of this version's module.
fn importing(text: &str) -> String {
    text.replace("\"./challenge.js\"", &format!("\"./{}\"", CHALLENGE.name))
}

/// Scripts in one, without the lines that are comments: they are a quarter of it after compression.
fn without_comments(scripts: &[&str]) -> String {
    let lines = scripts.iter().flat_map(|script| script.lines());
    lines.filter(|line| !line.trim_start().starts_with("//")).flat_map(|line| [line, "\n"]).collect()
}

/// ALTCHA source with its licence in front.
fn licensed(text: &str) -> String {
    format!("/*! altcha 3.2.2\n{}*/\n{text}", include_str!("altcha/LICENSE.txt"))
}
