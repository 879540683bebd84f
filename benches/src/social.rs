//! Lookups of the other platforms by the library, one after the other, compared with yt-dlp.
//!
//! Both use the same replay proxy: for captions of TikTok and X, and for media addresses of Instagram, which has no
//! captions.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::json;
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Rule, Script};

use crate::{
    corpus::WordSource,
    library::LibraryRun,
    posts,
    report::{Goal, line, median, ratio},
};

const ROUNDS: usize = 5;
/// Lookups in a round: the library's, and yt-dlp's below.
const OURS: u64 = 60;
const PEERS: u64 = 12;
/// A measured platform.
struct FakeSite {
    name: &'static str,
    /// The address of a post before its number.
    prefix: &'static str,
    /// The number of the first post. The library starts here, yt-dlp 10,000 later.
    first: u64,
}

const SITES: [FakeSite; 3] = [
    FakeSite { name: "TikTok", prefix: "https://www.tiktok.com/@_/video/", first: 7_600_000_000_000_000_000 },
    FakeSite { name: "X", prefix: "https://x.com/i/status/", first: 1_990_000_000_000_000_000 },
    FakeSite { name: "Instagram", prefix: REELS, first: 100_000_000 },
];

/// The prefix of an Instagram video's address: two letters of its code, before nine digits.
pub(crate) const REELS: &str = "https://www.instagram.com/reel/Cv";

/// The numbers of all posts of a site: the library's of all rounds and one to warm up, and yt-dlp's.
fn numbers(site: &FakeSite) -> impl Iterator<Item = u64> {
    let ours = 1 + OURS * ROUNDS as u64;
    let peers = (PEERS + 2) * ROUNDS as u64;
    (0..ours).chain(10_000..10_000 + peers).map(|number| site.first + number)
}

/// A proxy for the platforms, with posts of one minute of speech.
fn platforms() -> Result<ReplayProxy> {
    let mut word_source = WordSource::new(3);
    let words = posts::words(&mut word_source);
    let page = posts::pad(&mut word_source);
    let vtt = ReplayResponse::bytes("text/vtt", words).gzipped();
    let mut script = Script::new();
    let html = |text: String| ReplayResponse::bytes("text/html; charset=utf-8", text).gzipped();
    for post in numbers(&SITES[0]) {
        let body = html(posts::tiktok(post, 60, true, &page));
        script = script.rule(Rule::get("www.tiktok.com", &format!("/@_/video/{post}")).respond(body));
    }
    script = script.rule(Rule::get("v16-webapp.tiktok.com", "/captions/*").respond(vtt.clone()));
    let guest_token = ReplayResponse::json(&json!({ "guest_token": "1990000000000000777" }));
    script = script.rule(Rule::post("api.x.com", "/1.1/guest/activate.json").respond(guest_token));
    for post in numbers(&SITES[1]) {
        let body = ReplayResponse::json(&posts::x(post)).gzipped();
        let rule = Rule::get("x.com", "/i/api/graphql/*");
        script = script.rule(rule.query_json("variables", "/tweetId", post.to_string()).respond(body));
    }
    let master = "#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"subs\",NAME=\"English\",DEFAULT=YES,\
                  LANGUAGE=\"en\",URI=\"/s.m3u8\"\n#EXT-X-STREAM-INF:BANDWIDTH=273034,RESOLUTION=320x180,\
                  CODECS=\"mp4a.40.2,avc1.4D401E\",SUBTITLES=\"subs\"\n/v.m3u8\n";
    let subs = "#EXTM3U\n#EXT-X-TARGETDURATION:61\n#EXT-X-PLAYLIST-TYPE:VOD\n#EXTINF:60.0,\n/s.vtt\n#EXT-X-ENDLIST\n";
    let playlist = |text: &str| ReplayResponse::bytes("application/x-mpegURL", text.to_owned());
    script = script
        .rule(Rule::get("video.twimg.com", "/pl/*").respond(playlist(master)))
        .rule(Rule::get("video.twimg.com", "/s.m3u8").respond(playlist(subs)))
        .rule(Rule::get("video.twimg.com", "/s.vtt").respond(vtt));
    for post in numbers(&SITES[2]) {
        let page = html(posts::instagram(&format!("Cv{post}"), &page));
        // The library requests the first address, yt-dlp the second one after two others.
        for kind in ["reel", "p"] {
            script = script
                .rule(Rule::get("www.instagram.com", &format!("/{kind}/Cv{post}")).respond(page.clone()))
                .rule(Rule::get("www.instagram.com", &format!("/{kind}/Cv{post}/")).respond(page.clone()));
        }
    }
    let ruling =
        ReplayResponse::json(&json!({ "status": "ok" })).header("set-cookie", "csrftoken=bench; Path=/");
    script = script
        .rule(Rule::get("www.instagram.com", "/api/v1/web/get_ruling_for_content/").respond(ruling))
        .rule(Rule::get("www.instagram.com", "/").respond(html(posts::INSTAGRAM_FRONT.to_owned())));
    ReplayProxy::start(script)
}

/// yt-dlp's Python, installed below `target` if it is missing; `None` without Python.
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

/// CPU and wall seconds of yt-dlp for one lookup.
#[derive(Clone, Copy)]
struct BaselinePeer {
    /// As a library in a running process.
    cpu: f64,
    wall: f64,
    /// As the program, from start to exit.
    program_cpu: f64,
    program_wall: f64,
}

/// Measures yt-dlp in a round.
fn peer(python: &Path, proxy: &ReplayProxy, site: &FakeSite, round: usize) -> Result<BaselinePeer> {
    let first = site.first + 10_000 + (PEERS + 2) * round as u64;
    let output = Command::new(python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/ytdlp.py"))
        .args([site.prefix, &first.to_string(), &PEERS.to_string()])
        .arg(if site.prefix == REELS { "media" } else { "captions" })
        .env("HTTPS_PROXY", proxy.url())
        .output()?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "yt-dlp: {stdout}{}", String::from_utf8_lossy(&output.stderr));
    let last = stdout.trim().lines().last().context("no output of yt-dlp")?;
    let seconds: Vec<f64> = last
        .split(' ')
        .map(str::parse)
        .collect::<Result<_, _>>()
        .with_context(|| format!("yt-dlp: {stdout}"))?;
    let [cpu, wall, program_cpu, program_wall] = seconds[..] else { bail!("yt-dlp: {stdout}") };
    Ok(BaselinePeer { cpu: cpu / PEERS as f64, wall: wall / PEERS as f64, program_cpu, program_wall })
}

/// Runs all measurements of the other platforms.
pub(crate) fn run() -> Result<()> {
    let proxy = platforms()?;
    let python = python();
    for site in &SITES {
        let mut library = LibraryRun::start_posts(&proxy, site.prefix, site.first)?;
        library.fetch(1)?;
        let mut rounds = Vec::new();
        for round in 0..ROUNDS {
            let (cpu, wall) = library.fetch(OURS as usize)?;
            let peer = python.as_deref().map(|python| peer(python, &proxy, site, round)).transpose()?;
            rounds.push((cpu / OURS as f64, wall / OURS as f64, peer));
        }
        print_figures(site, &rounds);
    }
    Ok(())
}

/// CPU and wall seconds of the library per lookup in one round, and yt-dlp's figures.
type SocialFigures = (f64, f64, Option<BaselinePeer>);

fn print_figures(site: &FakeSite, rounds: &[SocialFigures]) {
    let name = site.name;
    let of = |figure: fn(&SocialFigures) -> f64| median(rounds.iter().map(figure).collect());
    line(&format!("{name}: Verbatim's CPU"), of(|round| round.0 * 1e3), "ms a lookup");
    line(&format!("{name}: Verbatim's wall time"), of(|round| round.1 * 1e3), "ms a lookup");
    if rounds.iter().any(|round| round.2.is_none()) {
        println!("no Python with yt-dlp: yt-dlp is not measured");
        return;
    }
    let peer = |figure: fn(&BaselinePeer) -> f64| {
        median(rounds.iter().filter_map(|round| round.2.as_ref()).map(figure).collect())
    };
    let beside = |ours: fn(&SocialFigures) -> f64, theirs: fn(&BaselinePeer) -> f64| {
        let ratio = |round: &SocialFigures| Some(ours(round) / theirs(round.2.as_ref()?));
        median(rounds.iter().filter_map(ratio).collect())
    };
    line(&format!("{name}: CPU of the program yt-dlp"), peer(|peer| peer.program_cpu * 1e3), "ms a lookup");
    line(&format!("{name}: its wall time"), peer(|peer| peer.program_wall * 1e3), "ms a lookup");
    ratio(
        &format!("{name}: CPU to the program"),
        beside(|ours| ours.0, |peer| peer.program_cpu),
        Goal::AtMost(1.0 / 20.0),
    );
    line(&format!("{name}: CPU of yt-dlp as a library"), peer(|peer| peer.cpu * 1e3), "ms a lookup");
    line(&format!("{name}: its wall time"), peer(|peer| peer.wall * 1e3), "ms a lookup");
    ratio(
        &format!("{name}: CPU to the library"),
        beside(|ours| ours.0, |peer| peer.cpu),
        Goal::AtMost(1.0 / 20.0),
    );
    ratio(&format!("{name}: wall time to the library"), beside(|ours| ours.1, |peer| peer.wall), Goal::None);
}
