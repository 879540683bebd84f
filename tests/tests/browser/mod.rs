//! The pages in a real browser: Chromium, driven by the stories in `tests/browser`, against the built command.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read as _, Seek as _},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, OnceLock},
};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;
use tokio::sync::Semaphore;
use verbatim_tests::replay::{ReplayProxy, Rule, Script, recordings::Recordings};

use crate::server::harness::{Server, run, verbatim};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/browser");
/// A video that is an hour long, with a title that would be markup.
const LONG: &str = "lamp-keeper";
/// A video in Hebrew.
const HEBREW: &str = "hebrew-talk";
/// A recording of ours, and its video.
const RECORDING: (&str, &str) = ("several-tracks", "vb-tracks-0");
/// A video that nobody has asked for.
const UNWRITTEN: &str = "not-there-0";

/// The folder with the tools. The first caller has them installed.
fn tools() -> Result<&'static PathBuf> {
    static TOOLS: OnceLock<Option<PathBuf>> = OnceLock::new();
    let installed = TOOLS.get_or_init(|| {
        let output = Command::new(format!("{FOLDER}/install.sh")).stderr(Stdio::inherit()).output().ok()?;
        let path = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| PathBuf::from(path.trim()))
    });
    installed.as_ref().context("the browser of the tests cannot be installed")
}

/// A story that is being played.
struct Story {
    child: Child,
    /// What went wrong, as the story tells it.
    complaints: File,
}

fn story(name: &str, server: &Server, settings: &[(&str, String)]) -> Result<Story> {
    let complaints = tempfile::tempfile()?;
    let mut command = Command::new("node");
    command.arg(format!("{FOLDER}/{name}.mjs"));
    command.env("BASE", format!("http://{}", server.address())).env("TOOLS", tools()?);
    command.envs(settings.iter().map(|(name, value)| (*name, value.as_str())));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(complaints.try_clone()?);
    Ok(Story { child: command.spawn()?, complaints })
}

/// Waits for a story's end; `heard` is told each line that it prints.
fn ends_well(mut story: Story, mut heard: impl FnMut(&str)) -> Result<()> {
    let output = story.child.stdout.take().context("no standard output")?;
    for line in BufReader::new(output).lines() {
        let line = line?;
        heard(&line);
    }
    let status = story.child.wait()?;
    let mut complaints = String::new();
    story.complaints.rewind()?;
    story.complaints.read_to_string(&mut complaints)?;
    ensure!(status.success(), "the story ended with {status}: {complaints}");
    Ok(())
}

/// Archives a text with a caption for each line, one every five seconds.
fn import(data: &TempDir, link: &str, lines: &[String], arguments: &[&str]) -> Result<()> {
    let moment =
        |seconds: usize| format!("{:02}:{:02}:{:02}.000", seconds / 3600, seconds / 60 % 60, seconds % 60);
    let mut captions = "WEBVTT\n\n".to_owned();
    for (place, line) in lines.iter().enumerate() {
        let start = 5 * place;
        captions += &format!("{} --> {}\n{line}\n\n", moment(start), moment(start + 5));
    }
    let file = data.path().join("captions.vtt");
    std::fs::write(&file, captions)?;
    let file = file.display().to_string();
    let arguments = [&["import", file.as_str(), "--video", link], arguments].concat();
    let output = run(verbatim(data.path(), &arguments), b"")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// An hour of sentences.
fn hour() -> Vec<String> {
    const SENTENCES: [&str; 6] = [
        "The keeper trims the wick before the sun is down.",
        "From the gallery she can see three ships, and none of them is late.",
        "A lantern is cleaned from the top to the bottom, never the other way.",
        "The log says who came by, what the wind did, and how much oil is left.",
        "When the fog comes in, she counts the seconds between the bells aloud.",
        "Nobody had written any of this down before; now somebody has.",
    ];
    SENTENCES.iter().cycle().take(720).map(|sentence| (*sentence).to_owned()).collect()
}

fn long(data: &TempDir) -> Result<()> {
    let title = "The lamp & the <b>keeper</b>";
    import(data, LONG, &hour(), &["--lang", "en", "--title", title, "--author", "Lighthouse Society"])
}

fn server(data: &TempDir, settings: &[(&str, &str)]) -> Result<Server> {
    Server::start(data, settings)
}

#[test]
fn a_transcript_is_read_searched_copied_and_kept() -> Result<()> {
    let data = TempDir::new()?;
    long(&data)?;
    let server = server(&data, &[])?;
    let story = story("reading", &server, &[("LONG", format!("/watch/video_site/{LONG}"))])?;
    ends_well(story, |_| ())
}

#[test]
fn a_video_is_transcribed_before_a_visitors_eyes() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let _inside = runtime.enter();
    let gate = Arc::new(Semaphore::new(0));
    let recordings =
        Recordings::open(&PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/recordings/youtube")))?;
    let rules: Vec<Rule> = recordings.rules(recordings.named(RECORDING.0)?)?;
    let script = Script::new().rules(rules.into_iter().map(|rule| rule.held(&gate)));
    let proxy = ReplayProxy::start(script)?;
    let data = TempDir::new()?;
    let (url, ca_file) = (proxy.url(), proxy.ca_file().display().to_string());
    let settings = [
        ("VERBATIM_UPSTREAM__PROXY", url.as_str()),
        ("VERBATIM_UPSTREAM__CA_FILE", &ca_file),
        ("VERBATIM_LIMITS__VISITOR_PER_DAY", "1"),
    ];
    let server = server(&data, &settings)?;
    let settings = [
        ("LINK", format!("https://youtu.be/{}?si=abc", RECORDING.1)),
        ("SILENT", format!("/watch/video_site/{UNWRITTEN}")),
    ];
    let story = story("transcribing", &server, &settings)?;
    ends_well(story, |line| {
        if line == "look" {
            gate.add_permits(Semaphore::MAX_PERMITS >> 3);
        }
    })?;
    ensure!(proxy.unexpected().is_empty(), "{:?}", proxy.unexpected());
    Ok(())
}

#[test]
fn credits_are_bought_from_the_first_page_to_the_last() -> Result<()> {
    let data = TempDir::new()?;
    let server = server(&data, &[])?;
    let outbox = data.path().join("outbox").display().to_string();
    ends_well(story("buying", &server, &[("OUTBOX", outbox)])?, |_| ())
}

#[test]
fn every_page_looks_well_everywhere() -> Result<()> {
    let data = TempDir::new()?;
    long(&data)?;
    let hebrew: Vec<String> = [
        "המגדלור נבנה על הסלע לפני יותר ממאה שנים.",
        "בכל ערב עולה השומרת במדרגות ומדליקה את האור.",
        "הספינות רואות אותו ממרחק של עשרים מיל.",
        "ביומן היא כותבת: \"Fog until 6:40, then clear\".",
    ]
    .iter()
    .cycle()
    .take(60)
    .map(|line| (*line).to_owned())
    .collect();
    import(
        &data,
        HEBREW,
        &hebrew,
        &["--lang", "he", "--title", "שומרת המגדלור", "--author", "החברה למגדלורים"],
    )?;
    let clip = ["One post, one thought.".to_owned(), "And that was it.".to_owned()];
    import(
        &data,
        "https://www.tiktok.com/@a/video/7458607278405471496",
        &clip,
        &["--lang", "en", "--generated"],
    )?;
    let server = server(&data, &[])?;
    let settings = [
        ("LONG", format!("/watch/video_site/{LONG}")),
        ("HEBREW", format!("/watch/video_site/{HEBREW}")),
        ("CLIP", "/watch/short_video/7458607278405471496".to_owned()),
        ("UNWRITTEN", format!("/watch/video_site/{UNWRITTEN}")),
    ];
    ends_well(story("looks", &server, &settings)?, |_| ())
}
