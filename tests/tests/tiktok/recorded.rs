//! Recorded responses outside the checkout, with the expected outcome of each.
//!
//! The folder is named by `VERBATIM_RECORDINGS`. A file without a row fails the test, and so does a row without a file.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Rule, Script};

use super::{CAPTIONS, FILES, HOST, PLATFORM, good_page, make, replay_script, script};
use crate::social::{
    read_recording,
    recordings::{check_files, check_metadata},
    supplier_calls::{behind, check_failure, fetch},
};

/// Kind of a file and its expected outcome.
#[derive(Clone, Copy, Debug)]
enum Case {
    /// A page, or the state of one: its default track has this language, and these are all tracks.
    Plays(&'static str, &'static [&'static str]),
    /// A page with this failure.
    Fails(&'static str),
    /// A caption body with this number of segments and this beginning of the first one.
    Words(usize, &'static str),
}

use Case::{Fails, Plays, Words};

const ROWS: &[(&str, Case)] = &[
    ("caption.asr.vtt", Words(3, "Day 2 of what if Disney")),
    ("item.7370152455633472788.no-captions.json", Fails("no_captions")),
    ("item.7458607278405471496.mt-first.json", Plays("vi", &["en", "vi"])),
    ("page.7524919459643919624.html", Plays("vi", &["vi", "en"])),
    ("page.shell.html", Fails("unreadable")),
    ("page.status-10204.cross-border.html", Fails("region")),
    ("page.status-10204.deleted.html", Fails("removed")),
    ("page.status-10222.private-account.html", Fails("private")),
    ("video-detail.7524919459643919624.asr+mt.json", Plays("vi", &["vi", "en"])),
];

#[tokio::test]
async fn tiktok_external_recordings_have_expected_outcomes() -> Result<()> {
    check_files(PLATFORM, ROWS, check).await
}

/// The post that a file's name contains, or the default one.
fn post_id(name: &str) -> &str {
    name.split('.')
        .find(|part| part.len() == 19 && part.bytes().all(|c| c.is_ascii_digit()))
        .unwrap_or(super::VIDEO)
}

/// The page; state without a page is embedded in one as TikTok does.
fn page(name: &str, bytes: &[u8]) -> ReplayResponse {
    if !name.ends_with(".json") {
        return ReplayResponse::bytes("text/html", bytes.to_vec());
    }
    let state = String::from_utf8_lossy(bytes).replace('/', "\\u002F");
    let open = "<script id=\"__UNIVERSAL_DATA_FOR_REHYDRATION__\" type=\"application/json\">";
    ReplayResponse::bytes("text/html", format!("<html>{open}{state}</script></html>"))
}

async fn check(name: &str, bytes: Vec<u8>, row: Case) -> Result<()> {
    let video = post_id(name);
    let only_page =
        || Script::new().rule(Rule::get(HOST, &format!("/@_/video/{video}")).respond(page(name, &bytes)));
    match row {
        Fails(reason) => {
            let proxy = ReplayProxy::start(only_page())?;
            check_failure(&fetch(&behind(make, &proxy)?, video, None).await?, reason)?;
            ensure!(proxy.requests().len() == 1, "{:?}", proxy.requests());
            Ok(())
        }
        Words(segments, first) => {
            let body = ReplayResponse::bytes("video/mp4", bytes);
            let (outcome, _) = replay_script(script(vec![good_page()?], vec![body])).await?;
            let supplied = outcome.map_err(|error| anyhow::anyhow!("{error:?}"))?;
            let found = &supplied.transcripts.first().context("no transcript")?.segments;
            ensure!(found.len() == segments, "{found:?}");
            ensure!(found.first().is_some_and(|segment| segment.text.starts_with(first)), "{found:?}");
            Ok(())
        }
        Plays(language, tracks) => {
            let captions = Rule::get(FILES, "/*").respond(read_recording(PLATFORM, "captions/laying.vtt")?);
            let proxy = ReplayProxy::start(only_page().rule(captions))?;
            let outcome = fetch(&behind(make, &proxy)?, video, None).await?;
            let supplied = outcome.map_err(|error| anyhow::anyhow!("{error:?}"))?;
            let transcript = supplied.transcripts.first().context("no transcript")?;
            ensure!(transcript.track.language.as_str() == language, "{:?}", transcript.track);
            ensure!(transcript.track.kind.as_str() == "generated" && transcript.track.original);
            let known: Vec<_> = supplied.known_tracks.iter().map(|track| track.language.as_str()).collect();
            ensure!(known == tracks, "{known:?}");
            ensure!(
                transcript.title.is_some() && transcript.author.is_some() && transcript.duration_ms.is_some()
            );
            check_metadata(&supplied.metadata, "https://www.tiktok.com/@")?;
            // The requested file is the one of speech recognition, under its own address.
            let captions_request = proxy.requests().pop().context("no request")?;
            let address = speech_address(name, &bytes)?;
            ensure!(
                address.contains(&captions_request.path) && captions_request.path != CAPTIONS,
                "{} of {address}",
                captions_request.path
            );
            Ok(())
        }
    }
}

/// The address of the speech recognition track, read independently of the supplier.
fn speech_address(name: &str, bytes: &[u8]) -> Result<String> {
    let text = String::from_utf8_lossy(bytes);
    let json = match name.ends_with(".json") {
        true => &text,
        false => {
            let begin = text.find("{\"__DEFAULT_SCOPE__\"").context("no state")?;
            text.get(begin..).and_then(|rest| rest.split("</script>").next()).context("no end")?
        }
    };
    let state: Value = serde_json::from_str(json)?;
    let list =
        state.pointer("/__DEFAULT_SCOPE__/webapp.video-detail/itemInfo/itemStruct/video/subtitleInfos");
    let list = list.and_then(Value::as_array).context("no subtitles")?;
    let speech = list.iter().find(|entry| entry["Source"] == "ASR").context("no speech recognition")?;
    Ok(speech["Url"].as_str().context("no address")?.to_owned())
}
