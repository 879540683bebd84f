//! The pages in Chromium and Firefox, driven by the scripts in `tests/browser`, against the built command.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read as _, Seek as _, Write as _},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::Arc,
};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;
use tokio::sync::Semaphore;
use verbatim_tests::replay::{ReplayProxy, Rule, Script, recordings::Recordings};

use crate::{
    install::installed,
    server::{
        harness::{ServerFixture, run_ok, verbatim},
        v1::smtpd::Smtpd,
    },
};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/browser");
/// A video of one hour whose title contains markup.
const LONG: &str = "lamp-warden";
/// A video with chapters, and words in letters that are typed otherwise.
const CHAPTERS: &str = "two-harbors";
/// A video in Hebrew.
const HEBREW: &str = "hebrew-talk";
/// A recording of the repository, and its video.
const RECORDING: (&str, &str) = ("several-tracks", "vb-tracks-0");
/// A video without an archived transcript.
const UNWRITTEN: &str = "not-there-0";

/// A running browser script.
struct BrowserScript {
    child: Child,
    /// Its standard error.
    errors: File,
}

fn start_script(name: &str, server: &ServerFixture, settings: &[(&str, String)]) -> Result<BrowserScript> {
    let errors = tempfile::tempfile()?;
    let mut command = Command::new("node");
    command.arg(format!("{FOLDER}/{name}.mjs"));
    command.env("BASE", format!("http://{}", server.address())).env("TOOLS", installed("browser")?);
    command.envs(settings.iter().map(|(name, value)| (*name, value.as_str())));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors.try_clone()?);
    Ok(BrowserScript { child: command.spawn()?, errors })
}

/// Waits for the script to succeed; `on_line` receives each line that it prints.
fn wait_for_success(mut browser_script: BrowserScript, mut on_line: impl FnMut(&str)) -> Result<()> {
    let output = browser_script.child.stdout.take().context("no standard output")?;
    for line in BufReader::new(output).lines() {
        let line = line?;
        on_line(&line);
    }
    let status = browser_script.child.wait()?;
    let mut errors = String::new();
    browser_script.errors.rewind()?;
    browser_script.errors.read_to_string(&mut errors)?;
    ensure!(status.success(), "the script ended with {status}: {errors}");
    Ok(())
}

/// Archives a text with one caption per line, five seconds each.
fn import(data: &TempDir, link: &str, lines: &[String], arguments: &[&str]) -> Result<()> {
    let format_time =
        |seconds: usize| format!("{:02}:{:02}:{:02}.000", seconds / 3600, seconds / 60 % 60, seconds % 60);
    let mut captions = "WEBVTT\n\n".to_owned();
    for (index, line) in lines.iter().enumerate() {
        let start = 5 * index;
        captions += &format!("{} --> {}\n{line}\n\n", format_time(start), format_time(start + 5));
    }
    let file = data.path().join("captions.vtt");
    std::fs::write(&file, captions)?;
    let file = file.display().to_string();
    let arguments = [&["import", file.as_str(), "--video", link], arguments].concat();
    run_ok(verbatim(data.path(), &arguments), b"").map(drop)
}

/// An hour of sentences.
fn hour_of_sentences() -> Vec<String> {
    const SENTENCES: [&str; 6] = [
        "The warden trims the wick before the sun is down.",
        "From the gallery she can see three ships, and none of them is late.",
        "A lantern is cleaned from the top to the bottom, never the other way.",
        "The log says who came by, what the wind did, and how much oil is left.",
        "When the fog comes in, she counts the seconds between the bells aloud.",
        "Until today there was no record of any of this; now there is one.",
    ];
    SENTENCES.iter().cycle().take(720).map(|sentence| (*sentence).to_owned()).collect()
}

fn import_long(data: &TempDir) -> Result<()> {
    let title = "The lamp & the <b>warden</b>";
    import(
        data,
        LONG,
        &hour_of_sentences(),
        &[
            "--lang",
            "en",
            "--title",
            title,
            "--author",
            "LighthouseSocietyOfTheNorthernCoastAndOfItsIslandsInOneWord",
        ],
    )
}

/// Archives a transcript whose second and third paragraph begin in the same second, in a chapter each.
fn import_chapters(data: &TempDir) -> Result<()> {
    let transcript = serde_json::json!({
        "format": "verbatim-export/1", "platform": "video_site", "videoId": CHAPTERS, "title": "Two harbours",
        "author": "Ann", "language": "en", "kind": "human", "wishes": ["default"],
        "transcript": [
            { "text": "We left the harbour at dawn", "start": 0, "duration": 4 },
            { "text": "and came home at night.", "start": 60.1, "duration": 0.4 },
            {
                "text": "צה״ל ג׳ירפה می\u{200c}خواهم الســلام λόγος ΟΔΟΣ itʼs",
                "start": 60.7, "duration": 3,
            },
        ],
        "chapters": [
            { "title": "How Bob lied", "start": 30 },
            { "title": "The second harbour", "start": 60.5 },
        ],
    });
    run_ok(verbatim(data.path(), &["import", "-"]), transcript.to_string().as_bytes()).map(drop)
}

fn start_server(data: &TempDir, settings: &[(&str, &str)]) -> Result<ServerFixture> {
    ServerFixture::start(data, settings)
}

#[test]
fn browser_transcript_is_read_searched_copied_downloaded() -> Result<()> {
    let data = TempDir::new()?;
    import_long(&data)?;
    import_chapters(&data)?;
    let server = start_server(&data, &[])?;
    let [long, chapters] = [LONG, CHAPTERS].map(|video| format!("/watch/video_site/{video}"));
    let browser_script = start_script("reading", &server, &[("LONG", long), ("CHAPTERS", chapters)])?;
    wait_for_success(browser_script, |_| ())
}

#[test]
fn browser_search_of_four_hours_has_no_long_task() -> Result<()> {
    let data = TempDir::new()?;
    let lines: Vec<String> = (0..4).flat_map(|_| hour_of_sentences()).collect();
    import(&data, LONG, &lines, &["--lang", "en"])?;
    let server = start_server(&data, &[])?;
    let browser_script =
        start_script("long", &server, &[("FOUR_HOURS", format!("/watch/video_site/{LONG}"))])?;
    wait_for_success(browser_script, |_| ())
}

#[test]
fn browser_archive_is_searched() -> Result<()> {
    let data = TempDir::new()?;
    import_long(&data)?;
    let translation = serde_json::json!({
        "format": "verbatim-export/1", "platform": "video_site", "videoId": LONG, "language": "fr",
        "kind": "translated", "wishes": ["translation:fr"],
        "transcript": [{ "text": "Le phare veille sur la mer.", "start": 0, "duration": 5 }],
    });
    run_ok(verbatim(data.path(), &["import", "-"]), translation.to_string().as_bytes())?;
    let server = start_server(&data, &[("VERBATIM_SEARCH__REQUESTS_PER_MINUTE", "1000")])?;
    wait_for_success(start_script("searching", &server, &[])?, |_| ())
}

#[test]
fn browser_questions_are_answered_with_and_without_scripts() -> Result<()> {
    let data = TempDir::new()?;
    import_long(&data)?;
    let server = start_server(&data, &[])?;
    let browser_script = start_script("asking", &server, &[("LONG", format!("/watch/video_site/{LONG}"))])?;
    wait_for_success(browser_script, |_| ())
}

#[test]
fn browser_documentation_copies_remembers_language_and_tries_lookup() -> Result<()> {
    use_documentation("chromium")
}

#[test]
fn browser_firefox_uses_documentation() -> Result<()> {
    use_documentation("firefox")
}

fn use_documentation(browser: &str) -> Result<()> {
    let data = TempDir::new()?;
    import(&data, "https://youtu.be/dQw4w9WgXcQ", &hour_of_sentences(), &["--lang", "en"])?;
    let server = start_server(&data, &[])?;
    wait_for_success(start_script("documenting", &server, &[("BROWSER", browser.to_owned())])?, |_| ())
}

#[test]
fn browser_player_follows_words_and_seeks() -> Result<()> {
    let data = TempDir::new()?;
    import_long(&data)?;
    import_chapters(&data)?;
    let server = start_server(&data, &[])?;
    let [long, chapters] = [LONG, CHAPTERS].map(|video| format!("/watch/video_site/{video}"));
    let browser_script = start_script("watching", &server, &[("LONG", long), ("CHAPTERS", chapters)])?;
    wait_for_success(browser_script, |_| ())
}

#[test]
fn browser_transcription_shows_progress_and_result() -> Result<()> {
    transcribe_video("chromium")
}

#[test]
fn browser_firefox_transcribes_video() -> Result<()> {
    transcribe_video("firefox")
}

fn transcribe_video(browser: &str) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let _inside = runtime.enter();
    let gate = Arc::new(Semaphore::new(0));
    let recordings =
        Recordings::open(&PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/recordings/youtube")))?;
    let rules: Vec<Rule> = recordings.rules(recordings.find(RECORDING.0)?)?;
    let script = Script::new().rules(rules.into_iter().map(|rule| rule.gated(&gate)));
    let proxy = ReplayProxy::start(script)?;
    let data = TempDir::new()?;
    let (url, ca_file) = (proxy.url(), proxy.ca_file().display().to_string());
    let settings = [
        ("VERBATIM_UPSTREAM__PROXY", url.as_str()),
        ("VERBATIM_UPSTREAM__CA_FILE", &ca_file),
        ("VERBATIM_LIMITS__VISITOR_PER_DAY", "1"),
    ];
    let server = start_server(&data, &settings)?;
    let settings = [
        ("LINK", format!("https://youtu.be/{}?si=abc", RECORDING.1)),
        ("SILENT", format!("/watch/video_site/{UNWRITTEN}")),
        ("BROWSER", browser.to_owned()),
    ];
    let browser_script = start_script("transcribing", &server, &settings)?;
    wait_for_success(browser_script, |line| {
        if line == "look" {
            gate.add_permits(Semaphore::MAX_PERMITS >> 3);
        }
    })?;
    ensure!(proxy.unexpected().is_empty(), "{:?}", proxy.unexpected());
    Ok(())
}

#[test]
fn browser_credit_purchase_completes() -> Result<()> {
    let data = TempDir::new()?;
    let server = start_server(&data, &[])?;
    let outbox = data.path().join("outbox").display().to_string();
    wait_for_success(start_script("buying", &server, &[("OUTBOX", outbox)])?, |_| ())
}

#[test]
fn browser_account_registers_signs_in_buys_and_reads_statement() -> Result<()> {
    let smtpd = Smtpd::start(&[])?;
    let data = TempDir::new()?;
    let url = format!("smtp://localhost:{}", smtpd.port);
    let settings = [("VERBATIM_MAIL__SMTP_URL", url.as_str()), ("VERBATIM_MAIL__FROM", "no-reply@v.example")];
    let server = start_server(&data, &settings)?;
    // A verification link, a receipt, and a sign-in link.
    play_with_mails(start_script("account", &server, &[])?, smtpd, 3)
}

/// Runs a story, and passes it this number of mails.
fn play_with_mails(mut script: BrowserScript, mut smtpd: Smtpd, count: usize) -> Result<()> {
    let mut input = script.child.stdin.take().context("no standard input")?;
    let mails = std::thread::spawn(move || -> Result<()> {
        for _ in 0..count {
            let mail = smtpd.line()?;
            writeln!(input, "{}", serde_json::to_string(&mail["data"])?)?;
        }
        Ok(())
    });
    wait_for_success(script, |_| ())?;
    mails.join().map_err(|_| anyhow::anyhow!("the mails were not passed on"))?
}

#[test]
fn browser_firefox_plays_main_stories() -> Result<()> {
    let smtpd = Smtpd::start(&[])?;
    let data = TempDir::new()?;
    import_long(&data)?;
    let url = format!("smtp://localhost:{}", smtpd.port);
    let settings = [
        ("VERBATIM_MAIL__SMTP_URL", url.as_str()),
        ("VERBATIM_MAIL__FROM", "no-reply@v.example"),
        ("VERBATIM_SEARCH__REQUESTS_PER_MINUTE", "1000"),
    ];
    let server = start_server(&data, &settings)?;
    let settings = [("LONG", format!("/watch/video_site/{LONG}"))];
    // A verification link, a receipt, and a sign-in link.
    play_with_mails(start_script("firefox", &server, &settings)?, smtpd, 3)
}

#[test]
fn browser_pages_render_on_all_screens() -> Result<()> {
    let data = TempDir::new()?;
    import_long(&data)?;
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
    let server = start_server(&data, &[])?;
    let settings = [
        ("LONG", format!("/watch/video_site/{LONG}")),
        ("HEBREW", format!("/watch/video_site/{HEBREW}")),
        ("CLIP", "/watch/short_video/7458607278405471496".to_owned()),
        ("UNWRITTEN", format!("/watch/video_site/{UNWRITTEN}")),
    ];
    wait_for_success(start_script("looks", &server, &settings)?, |_| ())
}
