//! Look-ups of TikTok and X, one after the other, beside yt-dlp through the same replay proxy.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use tempfile::TempDir;
use verbatim_tests::replay::{Answer, ReplayProxy, Rule, Script};

use crate::{
    ask::{Client, text},
    corpus::Speaker,
    process::{serve, verbatim},
    report::{Goal, line, median, ratio},
};

const ROUNDS: usize = 5;
/// How many we look up in a round, and how many yt-dlp.
const OURS: u64 = 60;
const PEERS: u64 = 12;
/// What a page of TikTok has, in bytes. Instagram has no captions to compare.
const PAGE_BYTES: usize = 300_000;

/// A platform that is measured.
struct Site {
    name: &'static str,
    /// The address of a post before its number.
    prefix: &'static str,
    /// The number of the first post; what we look up begins here, what yt-dlp does 10,000 later.
    first: u64,
}

const SITES: [Site; 2] = [
    Site { name: "TikTok", prefix: "https://www.tiktok.com/@_/video/", first: 7_600_000_000_000_000_000 },
    Site { name: "X", prefix: "https://x.com/i/status/", first: 1_990_000_000_000_000_000 },
];

/// The numbers of all posts of a site: ours of all rounds and one to warm up, and yt-dlp's.
fn posts(site: &Site) -> impl Iterator<Item = u64> {
    let ours = 1 + OURS * ROUNDS as u64;
    let peers = (PEERS + 1) * ROUNDS as u64;
    (0..ours).chain(10_000..10_000 + peers).map(|number| site.first + number)
}

/// A proxy for both platforms, with posts of a minute of speech.
fn platforms() -> Result<ReplayProxy> {
    let mut speaker = Speaker::new(3);
    let words = words(&mut speaker);
    let page = pad(&mut speaker);
    let vtt = Answer::bytes("text/vtt", words).gzipped();
    let mut script = Script::new();
    for post in posts(&SITES[0]) {
        let body = Answer::bytes("text/html; charset=utf-8", tiktok_page(post, &page)).gzipped();
        script = script.rule(Rule::get("www.tiktok.com", &format!("/@_/video/{post}")).answer(body));
    }
    script = script.rule(Rule::get("v16-webapp.tiktok.com", "/captions/*").answer(vtt.clone()));
    let pass = Answer::json(&json!({ "guest_token": "1990000000000000777" }));
    script = script.rule(Rule::post("api.x.com", "/1.1/guest/activate.json").answer(pass));
    for post in posts(&SITES[1]) {
        let body = Answer::json(&x_post(post)).gzipped();
        let rule = Rule::get("x.com", "/i/api/graphql/*");
        script = script.rule(rule.query_json("variables", "/tweetId", post.to_string()).answer(body));
    }
    let master = "#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"subs\",NAME=\"English\",DEFAULT=YES,\
                  LANGUAGE=\"en\",URI=\"/s.m3u8\"\n#EXT-X-STREAM-INF:BANDWIDTH=273034,RESOLUTION=320x180,\
                  CODECS=\"mp4a.40.2,avc1.4D401E\",SUBTITLES=\"subs\"\n/v.m3u8\n";
    let subs = "#EXTM3U\n#EXT-X-TARGETDURATION:61\n#EXT-X-PLAYLIST-TYPE:VOD\n#EXTINF:60.0,\n/s.vtt\n#EXT-X-ENDLIST\n";
    let playlist = |text: &str| Answer::bytes("application/x-mpegURL", text.to_owned());
    script = script
        .rule(Rule::get("video.twimg.com", "/pl/*").answer(playlist(master)))
        .rule(Rule::get("video.twimg.com", "/s.m3u8").answer(playlist(subs)))
        .rule(Rule::get("video.twimg.com", "/s.vtt").answer(vtt));
    ReplayProxy::start(script)
}

fn words(speaker: &mut Speaker) -> String {
    let mut text = "WEBVTT\n\n".to_owned();
    for second in (0..60).step_by(2) {
        let line = speaker.say(7);
        text.push_str(&format!("00:00:{second:02}.000 --> 00:00:{:02}.900\n{line}\n\n", second + 1));
    }
    text
}

/// What a page has beside its post.
fn pad(speaker: &mut Speaker) -> String {
    let mut text = String::with_capacity(PAGE_BYTES + 200);
    while text.len() < PAGE_BYTES {
        text.push_str(&speaker.say(12));
    }
    text
}

fn tiktok_page(post: u64, padding: &str) -> String {
    let video = json!({
        "id": post.to_string(), "duration": 60, "width": 576, "height": 1024, "format": "mp4",
        "playAddr": format!("https://v16-webapp.tiktok.com/video/{post}"),
        "subtitleInfos": [{
            "LanguageCodeName": "eng-US", "Url": format!("https://v16-webapp.tiktok.com/captions/{post}"),
            "Format": "webvtt", "Source": "ASR", "UrlExpire": "1795000000"
        }],
    });
    let item = json!({
        "id": post.to_string(), "desc": "A walk along the dyke", "createTime": "1790000000",
        "author": { "uniqueId": "dyke", "nickname": "Dyke Society", "id": "1", "secUid": "MS4" },
        "music": {}, "stats": {}, "video": video
    });
    let state = json!({ "__DEFAULT_SCOPE__": {
        "webapp.app-context": { "padding": padding },
        "webapp.video-detail": { "statusCode": 0, "statusMsg": "", "itemInfo": { "itemStruct": item } }
    } });
    format!(
        "<!DOCTYPE html><html><body><script id=\"__UNIVERSAL_DATA_FOR_REHYDRATION__\" type=\"application/json\">\
         {state}</script></body></html>"
    )
}

fn x_post(post: u64) -> serde_json::Value {
    let video = json!({
        "type": "video", "id_str": post.to_string(), "media_key": format!("13_{post}"), "ext_media_availability": { "status": "Available" },
        "media_url_https": "https://pbs.twimg.com/a.jpg", "sizes": {},
        "video_info": { "duration_millis": 60_000, "aspect_ratio": [16, 9], "variants": [
            { "content_type": "application/x-mpegURL", "url": format!("https://video.twimg.com/pl/{post}.m3u8") },
            { "content_type": "video/mp4", "bitrate": 256_000, "url": "https://video.twimg.com/480x270/a.mp4" }
        ] }
    });
    let user = json!({ "__typename": "User", "rest_id": "77", "legacy": { "name": "Dyke Society", "screen_name": "dyke" } });
    json!({ "data": { "tweetResult": { "result": {
        "__typename": "Tweet", "rest_id": post.to_string(), "core": { "user_results": { "result": user } },
        "legacy": {
            "id_str": post.to_string(), "full_text": "A walk along the dyke https://t.co/a", "lang": "en",
            "created_at": "Tue Oct 06 08:00:00 +0000 2026", "extended_entities": { "media": [video] }
        }
    } } } })
}

/// yt-dlp's Python, installed below `target` when it is not there yet. None without Python.
fn python() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/peer/ytdlp");
    let python = folder.join("bin/python");
    let has_peer = || {
        let import = Command::new(&python).args(["-c", "import yt_dlp"]).output();
        import.is_ok_and(|output| output.status.success())
    };
    if has_peer() {
        return Some(python);
    }
    Command::new("python3").args(["-m", "venv"]).arg(&folder).status().ok()?;
    let wanted = ["-m", "pip", "install", "--quiet", "yt-dlp==2026.10.26"];
    Command::new(&python).args(wanted).status().ok()?;
    has_peer().then_some(python)
}

/// CPU and wall seconds of yt-dlp for each look-up of a round.
fn peer(python: &Path, proxy: &ReplayProxy, site: &Site, round: usize) -> Result<(f64, f64)> {
    let first = site.first + 10_000 + (PEERS + 1) * round as u64;
    let output = Command::new(python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/ytdlp.py"))
        .args([site.prefix, &first.to_string(), &PEERS.to_string()])
        .env("HTTPS_PROXY", proxy.url())
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "yt-dlp: {said}{}", String::from_utf8_lossy(&output.stderr));
    let (cpu, wall) =
        said.trim().lines().last().and_then(|line| line.split_once(' ')).context("it said nothing")?;
    let each = |seconds: &str| anyhow::Ok(seconds.parse::<f64>()? / PEERS as f64);
    Ok((each(cpu)?, each(wall)?))
}

/// All measurements of the other platforms.
pub(crate) async fn run() -> Result<()> {
    let proxy = platforms()?;
    let data = TempDir::new()?;
    let many = || "1000000".to_owned();
    let settings = [
        ("VERBATIM_UPSTREAM__PROXY", proxy.url()),
        ("VERBATIM_UPSTREAM__CA_FILE", proxy.ca_file().display().to_string()),
        ("VERBATIM_LIMITS__FREE_PER_MONTH", many()),
        ("VERBATIM_LIMITS__SERVICE_PER_DAY", many()),
        ("VERBATIM_LIMITS__ATTEMPTS_PER_KEY_PER_HOUR", "10000".to_owned()),
        ("VERBATIM_LOG__LEVEL", "warn".to_owned()),
    ];
    let made = verbatim(data.path(), &["keys", "create"], &[])?.output()?;
    ensure!(made.status.success(), "keys create failed");
    let bearer = format!("Bearer {}", String::from_utf8(made.stdout)?.trim());
    let server = serve(data.path(), &settings)?;
    let client = Client::new();
    let look_up = async |site: &Site, post: u64| {
        let path = format!("/api/transcript?url={}{post}", site.prefix);
        let body = text(&client, server.address(), &path, &[("authorization", &bearer)]).await?;
        ensure!(body.contains("\"fromCache\":false,") && body.contains("-captions\""), "{body:.400}");
        Ok(())
    };
    let python = python();
    for site in &SITES {
        look_up(site, site.first).await?;
        let mut rounds = Vec::new();
        for round in 0..ROUNDS {
            let first = site.first + 1 + OURS * round as u64;
            let (cpu, begun) = (server.cpu_seconds()?, Instant::now());
            for post in first..first + OURS {
                look_up(site, post).await?;
            }
            let wall = begun.elapsed().as_secs_f64() / OURS as f64;
            let cpu = (server.cpu_seconds()? - cpu) / OURS as f64;
            let peer = python.as_deref().map(|python| peer(python, &proxy, site, round)).transpose()?;
            rounds.push((cpu, wall, peer));
        }
        tell(site, &rounds);
    }
    Ok(())
}

/// Our CPU and wall seconds a look-up in one round, and yt-dlp's.
type Figures = (f64, f64, Option<(f64, f64)>);

fn tell(site: &Site, rounds: &[Figures]) {
    let name = site.name;
    let of = |figure: fn(&Figures) -> f64| median(rounds.iter().map(figure).collect());
    line(&format!("{name}: our CPU"), of(|round| round.0 * 1e3), "ms a look-up");
    line(&format!("{name}: our wall time"), of(|round| round.1 * 1e3), "ms a look-up");
    if rounds.iter().any(|round| round.2.is_none()) {
        println!("there is no Python with yt-dlp: nothing to compare with");
        return;
    }
    line(&format!("{name}: yt-dlp's CPU"), of(|round| peer_of(round).0 * 1e3), "ms a look-up");
    line(&format!("{name}: yt-dlp's wall time"), of(|round| peer_of(round).1 * 1e3), "ms a look-up");
    ratio(
        &format!("{name}: CPU beside yt-dlp"),
        of(|round| round.0 / peer_of(round).0),
        Goal::AtMost(1.0 / 20.0),
    );
    ratio(&format!("{name}: wall time beside yt-dlp"), of(|round| round.1 / peer_of(round).1), Goal::None);
}

fn peer_of(round: &Figures) -> (f64, f64) {
    round.2.unwrap_or((f64::NAN, f64::NAN))
}
