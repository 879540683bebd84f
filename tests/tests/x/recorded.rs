//! Recorded answers that lie beside the checkout, where `VERBATIM_RECORDINGS` says, and what must come of each.
//! A file without a row fails the test, and so does a row without a file.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use verbatim_tests::replay::{Answer, ReplayProxy, Rule, Script};

use super::{
    API, FILES, PASS, PLATFORM, POST, SITE, SYNDICATED, SYNDICATION, Stage, VIDEO, file, make, played,
};
use crate::social::{
    asking::{Outcome, ask, behind, check_failure},
    beside::{all_right, check_rows, read_all},
};

/// What a file is, and what must come of it.
#[derive(Clone, Copy, Debug)]
enum Row {
    /// What a guest is told of a post whose video takes so many milliseconds.
    Video(u64),
    /// What a guest is told of a post of which this failure comes.
    Fails(&'static str),
    /// What other sites' pages are told, of which this failure comes.
    Syndicated(&'static str),
    /// The playlist of a video with one English track, and that track's own.
    Playlists,
    /// A caption body with so many segments, of which the first begins so.
    Words(usize, &'static str),
}

use Row::{Fails, Playlists, Syndicated, Video, Words};

const ROWS: &[(&str, Row)] = &[
    ("TweetDetail.1841206275088290279.json", Video(29_626)),
    ("TweetResultByRestId.1841206275088290279.json", Video(29_626)),
    ("TweetResultByRestId.1848831595014459513.json", Fails("no_captions")),
    ("TweetResultByRestId.20.json", Fails("no_captions")),
    ("caption.x-word-ms.vtt", Words(3, "You know, people really love")),
    ("fail.empty-result.json", Fails("removed")),
    ("fail.errors.not-authorized.json", Fails("login")),
    ("fail.syndication.tombstone.json", Syndicated("removed")),
    ("fail.unavailable.NsfwLoggedOut.json", Fails("age")),
    ("fail.unavailable.Protected.json", Fails("private")),
    ("hls.master.with-subs.m3u8", Playlists),
    ("hls.subs.m3u8", Playlists),
    ("tweet.1649263296434806785.gif.json", Fails("no_captions")),
    ("tweet.1665863576060575744.video.json", Video(16_000)),
];

#[tokio::test]
async fn every_recording_comes_out_as_its_row_says() -> Result<()> {
    check_rows(PLATFORM, ROWS)?;
    let all = read_all(PLATFORM, ROWS)?;
    let body = |name: &str| all.iter().find(|row| row.0 == name).map(|row| row.1.clone());
    let mut wrong = Vec::new();
    for (name, bytes, row) in &all {
        let result = match row {
            Playlists => {
                let lists = [body("hls.master.with-subs.m3u8"), body("hls.subs.m3u8")];
                playlists(lists.into_iter().flatten().collect()).await
            }
            row => check(name, bytes.clone(), *row).await,
        };
        if let Err(error) = result {
            wrong.push(format!("{name}, {row:?}: {error:#}"));
        }
    }
    all_right(&wrong)
}

/// The post that a file's name tells; any other where it tells none.
fn video_of(name: &str) -> &str {
    let is_id = |part: &&str| part.len() <= 19 && part.bytes().all(|c| c.is_ascii_digit());
    name.split('.').find(is_id).unwrap_or(VIDEO)
}

async fn asked(script: Script, video: &str) -> Result<(Outcome, ReplayProxy)> {
    let proxy = ReplayProxy::start(script)?;
    let outcome = ask(&behind(make, &proxy)?, video, None).await?;
    ensure!(proxy.unexpected().is_empty(), "unexpected: {:?}", proxy.unexpected());
    Ok((outcome, proxy))
}

fn post(body: Vec<u8>) -> Result<Script> {
    let pass = Rule::post(API, PASS).answer(file("posts/pass.json")?);
    Ok(Script::new().rule(pass).rule(Rule::get(SITE, POST).answer(Answer::bytes("application/json", body))))
}

async fn check(name: &str, bytes: Vec<u8>, row: Row) -> Result<()> {
    let video = video_of(name);
    match row {
        Fails(reason) => check_failure(&asked(post(bytes)?, video).await?.0, reason),
        Syndicated(reason) => {
            let pass = Rule::post(API, PASS).answer(Answer::status(429));
            let told = Rule::get(SYNDICATION, SYNDICATED).answer(Answer::bytes("application/json", bytes));
            check_failure(&asked(Script::new().rule(pass).rule(told), video).await?.0, reason)
        }
        Words(segments, first) => {
            let words = vec![Answer::bytes("text/plain", bytes)];
            let supplied = played(Stage { words, ..Stage::good()? }).await?.0?;
            let found = &supplied.tracks.first().context("no transcript")?.segments;
            ensure!(found.len() == segments, "{found:?}");
            ensure!(found.first().is_some_and(|segment| segment.text.starts_with(first)), "{found:?}");
            ensure!(found.iter().all(|segment| !segment.text.contains('<')), "{found:?}");
            Ok(())
        }
        Video(duration_ms) => plays(&bytes, video, duration_ms).await,
        Playlists => Ok(()),
    }
}

/// The post's playlist is asked for at its own address; what is behind it is ours.
async fn plays(bytes: &[u8], video: &str, duration_ms: u64) -> Result<()> {
    let text = String::from_utf8_lossy(bytes);
    let end = text.find(".m3u8").context("no playlist")?;
    let begin = text[..end].rfind("https://video.twimg.com/").context("no playlist")?;
    let path = format!("{}.m3u8", &text[begin + "https://video.twimg.com".len()..end]);
    let script = post(bytes.to_vec())?
        .rule(Rule::get(FILES, &path).answer(file("files/master.m3u8")?))
        .rule(Rule::get(FILES, super::SUBS).answer(file("files/subs.m3u8")?))
        .rule(Rule::get(FILES, super::WORDS).answer(file("files/a.vtt")?));
    let supplied = asked(script, video).await?.0?;
    let transcript = supplied.tracks.first().context("no transcript")?;
    ensure!(transcript.duration_ms == Some(duration_ms), "{:?}", transcript.duration_ms);
    // The text and the author, read in another way than the supplier does.
    let value: Value = serde_json::from_slice(bytes)?;
    let title = transcript.title.as_deref().context("no title")?;
    let first = title.split_whitespace().next().context("an empty title")?;
    ensure!(!title.contains("t.co") && text.contains(first) && title.chars().count() <= 74, "{title}");
    let author = transcript.author.as_deref().context("no author")?;
    ensure!(value.to_string().contains(&format!("\"name\":{}", serde_json::to_string(author)?)), "{author}");
    Ok(())
}

/// A real playlist leads to the real one of its captions, and that to their file.
async fn playlists(lists: Vec<Vec<u8>>) -> Result<()> {
    let [master, subs] = lists.as_slice() else { anyhow::bail!("two playlists belong together") };
    let body = |bytes: &[u8]| Answer::bytes("application/x-mpegURL", bytes.to_vec());
    let folder = "/amplify_video/2042527457786679296";
    let script = post(std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/recordings/x/posts/video.json"))?)?
        .rule(Rule::get(FILES, super::MASTER).answer(body(master)))
        .rule(Rule::get(FILES, &format!("{folder}/pl/s0/S15DavmEi29Ma0Vw.m3u8")).answer(body(subs)))
        .rule(
            Rule::get(FILES, &format!("/subtitles{folder}/0/KGw6GlOWXiwUxoKA.vtt"))
                .answer(file("files/a.vtt")?),
        );
    let (outcome, proxy) = asked(script, VIDEO).await?;
    let supplied = outcome?;
    ensure!(supplied.known_tracks.len() == 1, "{:?}", supplied.known_tracks);
    ensure!(
        supplied.known_tracks.iter().all(|track| track.language.as_str() == "en" && track.is_generated())
    );
    ensure!(proxy.requests().len() == 5, "{:?}", proxy.requests());
    Ok(())
}
