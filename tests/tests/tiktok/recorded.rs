//! Recorded answers that lie beside the checkout, where `VERBATIM_RECORDINGS` says, and what must come of each.
//! A file without a row fails the test, and so does a row without a file.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use verbatim_tests::replay::{Answer, ReplayProxy, Rule, Script};

use super::{CAPTIONS, FILES, HOST, PLATFORM, good_page, make, played, script};
use crate::social::{
    asking::{ask, behind, check_failure},
    beside::{all_right, check_rows, read_all},
    recorded,
};

/// What a file is, and what must come of it.
#[derive(Clone, Copy, Debug)]
enum Row {
    /// A page, or the state of one: its default track has this language, and these are all tracks.
    Plays(&'static str, &'static [&'static str]),
    /// A page of which this failure comes.
    Fails(&'static str),
    /// A caption body with so many segments, of which the first begins so.
    Words(usize, &'static str),
}

use Row::{Fails, Plays, Words};

const ROWS: &[(&str, Row)] = &[
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

/// The post that a file's name tells; any other where it tells none.
fn video_of(name: &str) -> &str {
    name.split('.')
        .find(|part| part.len() == 19 && part.bytes().all(|c| c.is_ascii_digit()))
        .unwrap_or(super::VIDEO)
}

/// The page: state alone is put into one as TikTok does.
fn page(name: &str, bytes: &[u8]) -> Answer {
    if !name.ends_with(".json") {
        return Answer::bytes("text/html", bytes.to_vec());
    }
    let state = String::from_utf8_lossy(bytes).replace('/', "\\u002F");
    let open = "<script id=\"__UNIVERSAL_DATA_FOR_REHYDRATION__\" type=\"application/json\">";
    Answer::bytes("text/html", format!("<html>{open}{state}</script></html>"))
}

async fn check(name: &str, bytes: Vec<u8>, row: Row) -> Result<()> {
    let video = video_of(name);
    let only_page =
        || Script::new().rule(Rule::get(HOST, &format!("/@_/video/{video}")).answer(page(name, &bytes)));
    match row {
        Fails(reason) => {
            let proxy = ReplayProxy::start(only_page())?;
            check_failure(&ask(&behind(make, &proxy)?, video, None).await?, reason)?;
            ensure!(proxy.requests().len() == 1, "{:?}", proxy.requests());
            Ok(())
        }
        Words(segments, first) => {
            let body = Answer::bytes("video/mp4", bytes);
            let (outcome, _) = played(script(vec![good_page()?], vec![body])).await?;
            let supplied = outcome.map_err(|error| anyhow::anyhow!("{error:?}"))?;
            let found = &supplied.tracks.first().context("no transcript")?.segments;
            ensure!(found.len() == segments, "{found:?}");
            ensure!(found.first().is_some_and(|segment| segment.text.starts_with(first)), "{found:?}");
            Ok(())
        }
        Plays(language, tracks) => {
            let captions = Rule::get(FILES, "/*").answer(recorded(PLATFORM, "captions/laying.vtt")?);
            let proxy = ReplayProxy::start(only_page().rule(captions))?;
            let outcome = ask(&behind(make, &proxy)?, video, None).await?;
            let supplied = outcome.map_err(|error| anyhow::anyhow!("{error:?}"))?;
            let transcript = supplied.tracks.first().context("no transcript")?;
            ensure!(transcript.track.language.as_str() == language, "{:?}", transcript.track);
            ensure!(transcript.track.kind.as_str() == "generated" && transcript.track.original);
            let known: Vec<_> = supplied.known_tracks.iter().map(|track| track.language.as_str()).collect();
            ensure!(known == tracks, "{known:?}");
            ensure!(
                transcript.title.is_some() && transcript.author.is_some() && transcript.duration_ms.is_some()
            );
            // What was asked for is the file of speech recognition, under its own address.
            let asked = proxy.requests().pop().context("no request")?;
            let address = speech_address(name, &bytes)?;
            ensure!(address.contains(&asked.path) && asked.path != CAPTIONS, "{} of {address}", asked.path);
            Ok(())
        }
    }
}

/// The address of the track of speech recognition, read in another way than the supplier does.
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
