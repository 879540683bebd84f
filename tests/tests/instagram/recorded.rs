//! Recorded answers that lie beside the checkout, where `VERBATIM_RECORDINGS` says, and what must come of each.
//! A file without a row fails the test, and so does a row without a file.

use anyhow::{Context as _, Result, ensure};
use verbatim_tests::replay::Answer;

use super::{PLATFORM, check_failure, played};
use crate::social::beside::{all_right, check_rows, read_all};

/// What must come of a file: a video of so many milliseconds, or this failure.
#[derive(Clone, Copy, Debug)]
enum Row {
    Video(&'static str, Option<u64>),
    Fails(&'static str, &'static str),
}

use Row::{Fails, Video};

const ROWS: &[(&str, Row)] = &[
    // Pictures, and one video among them that has no sound.
    ("graphql-GraphSidecar.C4JBRNsrJph.json", Fails("C4JBRNsrJph", "no_captions")),
    ("graphql-GraphVideo.C4JLyNNvDNk.json", Video("C4JLyNNvDNk", None)),
    ("page.gated.html", Fails("DeAZ0uAgNuA", "age")),
    ("page.login-wall.html", Fails("DdG4RIxIPyf", "throttled")),
    ("page.reel.DdG4RIxIPyf.html", Video("DdG4RIxIPyf", Some(72_000))),
    ("page.throttled-post.html", Fails("DdG4RIxIPyf", "throttled")),
    ("xdt_shortcode_media.null.json", Fails("DdG4RIxIPyf", "platform_fault")),
];

#[tokio::test]
async fn every_recording_comes_out_as_its_row_says() -> Result<()> {
    check_rows(PLATFORM, ROWS)?;
    let mut wrong = Vec::new();
    for (name, bytes, row) in read_all(PLATFORM, ROWS)? {
        if let Err(error) = check(name, bytes, row).await {
            wrong.push(format!("{name}, {row:?}: {error:#}"));
        }
    }
    all_right(&wrong)
}

async fn check(name: &str, bytes: Vec<u8>, row: Row) -> Result<()> {
    let page = match name.ends_with(".json") {
        // Older answers come alone: a page holds them in a script.
        true => {
            let json = String::from_utf8(bytes)?.replace("</", "<\\/");
            format!("<html><script type=\"application/json\" data-sjs>{json}</script></html>")
        }
        false => String::from_utf8(bytes)?,
    };
    let answer = Answer::bytes("text/html; charset=utf-8", page.clone());
    match row {
        Fails(code, reason) => check_failure(&played(answer, code).await?.0, reason),
        Video(code, duration_ms) => {
            let media = played(answer, code).await?.0?;
            ensure!(media.duration_ms == duration_ms, "{:?}", media.duration_ms);
            ensure!(media.title.is_some() && media.author.is_some());
            let first = media.addresses.first().context("no address")?;
            let name = first.url.path().rsplit('/').next().context("no file")?;
            ensure!(page.contains(name) && name.ends_with(".mp4"), "{name}");
            ensure!(media.addresses.len() == 1, "the same file several times");
            Ok(())
        }
    }
}
