//! What pages load: the style sheet, the script, the icon, and what the check of a browser needs.
//!
//! Each has a name with a digest of its content in it, so that browsers keep it for good and never show a page with
//! the style of another version. It is compressed once for each encoding.

use std::sync::{LazyLock, OnceLock};

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::bodies::{Encoding, compressed};

/// How many digits of the digest are in a name.
const DIGITS: usize = 12;

/// A file that pages load.
#[derive(Debug)]
pub(crate) struct Asset {
    /// Its name within `assets/`.
    pub(crate) name: String,
    /// Its media type.
    pub(crate) kind: &'static str,
    text: String,
    ready: [OnceLock<Bytes>; 4],
}

impl Asset {
    fn new(stem: &str, extension: &str, kind: &'static str, text: String) -> Self {
        let digest: String =
            Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).take(DIGITS / 2).collect();
        Self { name: format!("{stem}.{digest}.{extension}"), kind, text, ready: Default::default() }
    }

    /// Its bytes in an encoding.
    pub(crate) fn bytes(&self, encoding: Encoding) -> Bytes {
        let text = || self.text.clone().into_bytes();
        let Some(place) = self.ready.get(encoding as usize) else { return text().into() };
        // Compressors fail on nothing that lies in memory.
        place.get_or_init(|| compressed(text(), encoding).unwrap_or_default().into()).clone()
    }
}

const SCRIPT_KIND: &str = "text/javascript; charset=utf-8";

/// The style of every page.
pub(crate) static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("style", "css", "text/css; charset=utf-8", include_str!("style.css").to_owned())
});
/// What pages do beside showing themselves.
pub(crate) static SCRIPT: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("page", "js", SCRIPT_KIND, include_str!("page.js").to_owned()));
/// The icon in a browser's tab.
pub(crate) static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("icon", "svg", "image/svg+xml", include_str!("icon.svg").to_owned()));
/// ALTCHA's widget, which only the button of a video without a transcript loads.
pub(crate) static WIDGET: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("altcha", "js", SCRIPT_KIND, licensed(include_str!("altcha/altcha.min.js"))));
/// What the widget has do the work.
pub(crate) static WORKER: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("worker", "js", SCRIPT_KIND, licensed(include_str!("altcha/pbkdf2.js"))));

/// The file with this name.
pub(crate) fn named(name: &str) -> Option<&'static Asset> {
    let all: [&'static Asset; 5] = [&STYLE, &SCRIPT, &ICON, &WIDGET, &WORKER];
    all.into_iter().find(|asset| asset.name == name)
}

/// A file of ALTCHA's, behind the licence under which it is passed on.
fn licensed(text: &str) -> String {
    format!("/*! altcha 3.2.2\n{}*/\n{text}", include_str!("altcha/LICENSE.txt"))
}
