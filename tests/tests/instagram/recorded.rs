//! Recorded responses outside the checkout, with the expected outcome of each.
//!
//! The folder is named by `VERBATIM_RECORDINGS`. A file without a row fails the test, and so does a row without a file.

use anyhow::{Context as _, Result, ensure};
use verbatim_tests::replay::ReplayResponse;

use super::{PLATFORM, replay_page};
use crate::social::{
    recordings::{check_files, check_metadata},
    supplier_calls::check_failure,
};

/// Expected outcome of a file: a video with this length in milliseconds, or this failure.
#[derive(Clone, Copy, Debug)]
enum Case {
    Video(&'static str, Option<u64>),
    Fails(&'static str, &'static str),
}

use Case::{Fails, Video};

const ROWS: &[(&str, Case)] = &[
    // Pictures, and among them one video without sound.
    ("graphql-GraphSidecar.C4JBRNsrJph.json", Fails("C4JBRNsrJph", "no_captions")),
    ("graphql-GraphVideo.C4JLyNNvDNk.json", Video("C4JLyNNvDNk", None)),
    ("page.gated.html", Fails("DeAZ0uAgNuA", "age")),
    ("page.login-wall.html", Fails("DdG4RIxIPyf", "throttled")),
    ("page.reel.DdG4RIxIPyf.html", Video("DdG4RIxIPyf", Some(72_000))),
    ("page.throttled-post.html", Fails("DdG4RIxIPyf", "throttled")),
    ("xdt_shortcode_media.null.json", Fails("DdG4RIxIPyf", "platform_fault")),
];

#[tokio::test]
async fn instagram_external_recordings_have_expected_outcomes() -> Result<()> {
    check_files(PLATFORM, ROWS, check).await
}

async fn check(name: &str, bytes: Vec<u8>, row: Case) -> Result<()> {
    let page = match name.ends_with(".json") {
        // Older responses are bare JSON, which a page embeds in a script.
        true => {
            let json = String::from_utf8(bytes)?.replace("</", "<\\/");
            format!("<html><script type=\"application/json\" data-sjs>{json}</script></html>")
        }
        false => String::from_utf8(bytes)?,
    };
    let response = ReplayResponse::bytes("text/html; charset=utf-8", page.clone());
    match row {
        Fails(code, reason) => check_failure(&replay_page(response, code).await?.0, reason),
        Video(code, duration_ms) => {
            let media = replay_page(response, code).await?.0?;
            ensure!(media.duration_ms == duration_ms, "{:?}", media.duration_ms);
            ensure!(media.title.is_some() && media.author.is_some());
            check_metadata(&media.metadata, "https://www.instagram.com/")?;
            let first = media.addresses.first().context("no address")?;
            let name = first.url.path().rsplit('/').next().context("no file")?;
            ensure!(page.contains(name) && name.ends_with(".mp4"), "{name}");
            ensure!(media.addresses.len() == 1, "the same file several times");
            Ok(())
        }
    }
}
