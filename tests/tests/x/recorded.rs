//! Recorded responses outside the checkout, with the expected outcome of each.
//!
//! The folder is named by `VERBATIM_RECORDINGS`. A file without a row fails the test, and so does a row without a file.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use verbatim_tests::replay::{ReplayResponse, Rule, Script};

use super::{
    API, FILES, GUEST_TOKEN, PLATFORM, POST, SITE, SYNDICATED, SYNDICATION, VIDEO, XFixture, file, make,
    replay_script,
};
use crate::social::{
    recordings::{check_files, check_metadata, read_all},
    supplier_calls::{check_failure, replay},
};

/// Kind of a file and its expected outcome.
#[derive(Clone, Copy, Debug)]
enum Case {
    /// The guest API's response for a post whose video has this length in milliseconds.
    Video(u64),
    /// The guest API's response for a post with this failure.
    Fails(&'static str),
    /// The syndication API's response, with this failure.
    Syndicated(&'static str),
    /// The playlist of a video with one English track, and the playlist of that track.
    Playlists,
    /// A caption body with this number of segments and this beginning of the first one.
    Words(usize, &'static str),
}

use Case::{Fails, Playlists, Syndicated, Video, Words};

const ROWS: &[(&str, Case)] = &[
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
async fn x_external_recordings_have_expected_outcomes() -> Result<()> {
    let all = read_all(PLATFORM, ROWS)?;
    let body = |name: &str| all.iter().find(|row| row.0 == name).map(|row| row.1.clone());
    check_files(PLATFORM, ROWS, async |name: &str, bytes: Vec<u8>, row: Case| match row {
        Playlists => {
            let lists = [body("hls.master.with-subs.m3u8"), body("hls.subs.m3u8")];
            playlists(lists.into_iter().flatten().collect()).await
        }
        row => check(name, bytes, row).await,
    })
    .await
}

/// The post that a file's name contains, or the default one.
fn post_id(name: &str) -> &str {
    let is_id = |part: &&str| part.len() <= 19 && part.bytes().all(|c| c.is_ascii_digit());
    name.split('.').find(is_id).unwrap_or(VIDEO)
}

fn post(body: Vec<u8>) -> Result<Script> {
    let guest_token = Rule::post(API, GUEST_TOKEN).respond(file("posts/pass.json")?);
    Ok(Script::new()
        .rule(guest_token)
        .rule(Rule::get(SITE, POST).respond(ReplayResponse::bytes("application/json", body))))
}

async fn check(name: &str, bytes: Vec<u8>, row: Case) -> Result<()> {
    let video = post_id(name);
    match row {
        Fails(reason) => check_failure(&replay(make, post(bytes)?, video).await?.0, reason),
        Syndicated(reason) => {
            let guest_token = Rule::post(API, GUEST_TOKEN).respond(ReplayResponse::status(429));
            let syndicated_post =
                Rule::get(SYNDICATION, SYNDICATED).respond(ReplayResponse::bytes("application/json", bytes));
            check_failure(
                &replay(make, Script::new().rule(guest_token).rule(syndicated_post), video).await?.0,
                reason,
            )
        }
        Words(segments, first) => {
            let captions = vec![ReplayResponse::bytes("text/plain", bytes)];
            let supplied = replay_script(XFixture { captions, ..XFixture::good()? }).await?.0?;
            let found = &supplied.transcripts.first().context("no transcript")?.segments;
            ensure!(found.len() == segments, "{found:?}");
            ensure!(found.first().is_some_and(|segment| segment.text.starts_with(first)), "{found:?}");
            ensure!(found.iter().all(|segment| !segment.text.contains('<')), "{found:?}");
            Ok(())
        }
        Video(duration_ms) => plays(&bytes, video, duration_ms).await,
        Playlists => Ok(()),
    }
}

/// Fails unless the post's playlist is requested at its own address; its content is a test file.
async fn plays(bytes: &[u8], video: &str, duration_ms: u64) -> Result<()> {
    let text = String::from_utf8_lossy(bytes);
    let end = text.find(".m3u8").context("no playlist")?;
    let begin = text[..end].rfind("https://video.twimg.com/").context("no playlist")?;
    let path = format!("{}.m3u8", &text[begin + "https://video.twimg.com".len()..end]);
    let script = post(bytes.to_vec())?
        .rule(Rule::get(FILES, &path).respond(file("files/master.m3u8")?))
        .rule(Rule::get(FILES, super::SUBS).respond(file("files/subs.m3u8")?))
        .rule(Rule::get(FILES, super::WORDS).respond(file("files/a.vtt")?));
    let supplied = replay(make, script, video).await?.0?;
    let transcript = supplied.transcripts.first().context("no transcript")?;
    ensure!(transcript.duration_ms == Some(duration_ms), "{:?}", transcript.duration_ms);
    check_metadata(&supplied.metadata, "https://x.com/")?;
    // The text and the author are read independently of the supplier.
    let value: Value = serde_json::from_slice(bytes)?;
    let title = transcript.title.as_deref().context("no title")?;
    let first = title.split_whitespace().next().context("an empty title")?;
    ensure!(!title.contains("t.co") && text.contains(first) && title.chars().count() <= 74, "{title}");
    let author = transcript.author.as_deref().context("no author")?;
    ensure!(value.to_string().contains(&format!("\"name\":{}", serde_json::to_string(author)?)), "{author}");
    Ok(())
}

/// Fails unless a real playlist leads to the real one of its captions, and that one to their file.
async fn playlists(lists: Vec<Vec<u8>>) -> Result<()> {
    let [master, subtitle_list] = lists.as_slice() else { anyhow::bail!("not exactly two playlists") };
    let body = |bytes: &[u8]| ReplayResponse::bytes("application/x-mpegURL", bytes.to_vec());
    let folder = "/amplify_video/2042527457786679296";
    let script = post(std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/recordings/x/posts/video.json"))?)?
        .rule(Rule::get(FILES, super::MASTER).respond(body(master)))
        .rule(Rule::get(FILES, &format!("{folder}/pl/s0/S15DavmEi29Ma0Vw.m3u8")).respond(body(subtitle_list)))
        .rule(
            Rule::get(FILES, &format!("/subtitles{folder}/0/KGw6GlOWXiwUxoKA.vtt"))
                .respond(file("files/a.vtt")?),
        );
    let (outcome, proxy) = replay(make, script, VIDEO).await?;
    let supplied = outcome?;
    ensure!(supplied.known_tracks.len() == 1, "{:?}", supplied.known_tracks);
    ensure!(
        supplied.known_tracks.iter().all(|track| track.language.as_str() == "en" && track.is_generated())
    );
    ensure!(proxy.requests().len() == 5, "{:?}", proxy.requests());
    Ok(())
}
