//! `verbatim get` with many links, playlists and files of links.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::Arc,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Semaphore;
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Rule, Script};

use super::{
    harness::{binary, run, run_ok, send_signal, sqlite, text, verbatim, wait_until},
    platform::{HOST, fetch_count, platform_settings, player, video_rules},
};

const PLAYLIST: &str = "PL0123456789abcdef";

/// The rules of videos with these ids and titles.
fn videos(
    script: Script,
    videos: &[(&str, &str)],
    adapt: impl Fn(ReplayResponse) -> ReplayResponse,
) -> Script {
    script.rules(videos.iter().flat_map(|(video, title)| {
        let mut page = player(video);
        page["videoDetails"]["title"] = json!(title);
        if title.starts_with("silent") {
            page["captions"] = Value::Null;
        }
        video_rules(video, &page, &adapt)
    }))
}

/// The rule of a playlist with these videos, which follows the other responses of the same rule.
fn playlist_after(others: Vec<ReplayResponse>, videos: &[&str]) -> Rule {
    let entry =
        |video: &&str| json!({ "playlistVideoRenderer": { "videoId": video, "lengthSeconds": "60" } });
    let entries: Vec<_> = videos.iter().map(entry).collect();
    let rule = Rule::post(HOST, "/youtubei/v1/browse").json("/browseId", format!("VL{PLAYLIST}"));
    rule.respond_all(others).respond(ReplayResponse::json(&json!({
        "onResponseReceivedActions": [
            { "appendContinuationItemsAction": { "continuationItems": entries } }] })))
}

fn playlist(videos: &[&str]) -> Rule {
    playlist_after(Vec::new(), videos)
}

/// A data folder and a platform.
struct GetFixture {
    folder: TempDir,
    proxy: ReplayProxy,
}

impl GetFixture {
    fn new(script: Script) -> Result<Self> {
        Ok(Self { folder: TempDir::new()?, proxy: ReplayProxy::start(script)? })
    }

    /// The folder of `--to`.
    fn to(&self) -> PathBuf {
        self.folder.path().join("files")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = verbatim(&self.folder.path().join("data"), &[&["get"], arguments].concat());
        command.envs(platform_settings(&self.proxy));
        command
    }

    fn get(&self, arguments: &[&str], input: &str) -> Result<Output> {
        run(self.command(arguments), input.as_bytes())
    }

    fn get_to(&self, arguments: &[&str]) -> Result<Output> {
        self.get(&[arguments, &["--to", &self.to().display().to_string()]].concat(), "")
    }

    /// The paths of all files below the folder, with `/` between folders.
    fn files(&self) -> Result<BTreeSet<String>> {
        let mut found = BTreeSet::new();
        let mut folders = vec![self.to()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let path = entry?.path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => drop(found.insert(path.strip_prefix(self.to())?.display().to_string())),
                }
            }
        }
        Ok(found)
    }
}

/// A row of the summary.
fn count(stderr: &str, name: &str) -> Option<u64> {
    let row = |line: &str| line.trim().strip_prefix(name)?.trim().parse().ok();
    stderr.lines().find_map(row)
}

#[tokio::test(flavor = "multi_thread")]
async fn get_playlist_writes_files_and_continues() -> Result<()> {
    let known = [("get-many-00", "One"), ("get-many-01", "silent"), ("get-many-02", "AC/DC: ../live")];
    let script = videos(Script::new(), &known, |response| response);
    // A list may have a video twice.
    let list = playlist(&["get-many-00", "get-many-01", "get-many-02", "get-many-00"]);
    let fixture = GetFixture::new(script.rule(list))?;

    let first = fixture.get_to(&[PLAYLIST])?;
    let stderr = text(&first.stderr);
    ensure!(first.status.code() == Some(4), "{stderr}");
    let expect = ["AC_DC_ .._live [get-many-02].en.txt", "One [get-many-00].en.txt"];
    ensure!(fixture.files()? == expect.map(str::to_owned).into(), "{:?}", fixture.files()?);
    let paths: BTreeSet<String> = text(&first.stdout).lines().map(str::to_owned).collect();
    ensure!(paths == expect.map(|name| fixture.to().join(name).display().to_string()).into(), "{paths:?}");
    let one = fs::read_to_string(fixture.to().join(expect[1]))?;
    ensure!(one.contains("This is get-many-00."), "{one}");
    let failure = "https://www.youtube.com/watch?v=get-many-01: no_captions: ";
    ensure!(stderr.contains(failure), "{stderr}");
    for (name, expect) in [("written", 2), ("named more than once", 1), ("failed", 1), ("no_captions", 1)] {
        ensure!(count(&stderr, name) == Some(expect), "{name}: {stderr}");
    }

    // An edited file is kept, a deleted one is written again, and nothing is fetched.
    fs::write(fixture.to().join(expect[1]), "notes")?;
    fs::remove_file(fixture.to().join(expect[0]))?;
    let fetches: Vec<_> = known.iter().map(|(video, _)| fetch_count(&fixture.proxy, video)).collect();
    let second = fixture.get_to(&[PLAYLIST])?;
    let stderr = text(&second.stderr);
    ensure!(second.status.code() == Some(4), "{stderr}");
    ensure!(fixture.files()? == expect.map(str::to_owned).into(), "{:?}", fixture.files()?);
    ensure!(fs::read_to_string(fixture.to().join(expect[1]))? == "notes");
    ensure!(
        count(&stderr, "written") == Some(1) && count(&stderr, "skipped, file exists") == Some(1),
        "{stderr}"
    );
    let again: Vec<_> = known.iter().map(|(video, _)| fetch_count(&fixture.proxy, video)).collect();
    ensure!(again == fetches, "{again:?} fetches after {fetches:?}");

    // Files with the default name are imported into another archive.
    let data = TempDir::new()?;
    fs::remove_file(fixture.to().join(expect[1]))?;
    ensure!(fixture.get_to(&[PLAYLIST, "--limit", "1", "--format", "srt"])?.status.success());
    run_ok(verbatim(data.path(), &["import", &fixture.to().display().to_string()]), b"")?;
    run_ok(verbatim(data.path(), &["archive", "show", "get-many-00"]), b"").map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn get_waits_for_throttled_list() -> Result<()> {
    let script = || videos(Script::new(), &[("get-many-90", "One")], |response| response);
    let throttled = || ReplayResponse::status(429).header("retry-after", "2");
    let list = playlist_after(vec![throttled(), throttled()], &["get-many-90"]);
    let fixture = GetFixture::new(script().rule(list))?;
    let found = fixture.get_to(&[PLAYLIST])?;
    ensure!(found.status.success(), "{}", text(&found.stderr));
    ensure!(fixture.files()?.len() == 1, "{:?}", fixture.files()?);

    let list = playlist_after(vec![throttled(); 9], &["get-many-90"]);
    let fixture = GetFixture::new(script().rule(list))?;
    let failed = fixture.get_to(&[PLAYLIST, "--max-wait", "1s"])?;
    let stderr = text(&failed.stderr);
    ensure!(failed.status.code() == Some(3), "{:?} {stderr}", failed.status);
    ensure!(fixture.files()?.is_empty(), "{:?}", fixture.files()?);
    ensure!(stderr.contains(&format!("{PLAYLIST}: rate_limited: ")), "{stderr}");
    ensure!(count(&stderr, "rate_limited") == Some(1) && stderr.contains("failures may pass"), "{stderr}");
    Ok(())
}

/// The list is a recording; the responses for its videos are made for the test.
#[tokio::test(flavor = "multi_thread")]
async fn get_recorded_playlist_until_limit() -> Result<()> {
    let Some(recordings) = std::env::var_os("VERBATIM_RECORDINGS") else { return Ok(()) };
    let page = Path::new(&recordings).join("youtube-lists/playlist/renderer_17_one_page.json");
    let page = ReplayResponse::bytes("application/json", fs::read(page)?);
    let known = [("UKwSQSFN4Nw", "silent")];
    let script = videos(Script::new(), &known, |response| response);
    let script = script.rule(Rule::post(HOST, "/youtubei/v1/browse").respond(page));
    let fixture = GetFixture::new(script)?;
    let link = format!("https://www.youtube.com/playlist?list={PLAYLIST}");
    let none = fixture.get_to(&[&link, "--limit", "1"])?;
    let stderr = text(&none.stderr);
    ensure!(none.status.code() == Some(3), "{stderr}");
    ensure!(stderr.contains("https://www.youtube.com/watch?v=UKwSQSFN4Nw: no_captions: "), "{stderr}");
    ensure!(count(&stderr, "failed") == Some(1), "{stderr}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn get_links_of_file_and_standard_input() -> Result<()> {
    let known = [("get-many-10", "One"), ("get-many-11", "Two")];
    let fixture = GetFixture::new(videos(Script::new(), &known, |response| response))?;
    let file = fixture.folder.path().join("links.txt").display().to_string();
    fs::write(
        &file,
        "\u{feff}# talks\r\n\r\nhttps://youtu.be/get-many-10\r\nnothing\r\nget-many-11\r\nget-many-10",
    )?;

    let lines = fixture.get(&["--from", &file, "--format", "json"], "")?;
    let stderr = text(&lines.stderr);
    ensure!(lines.status.code() == Some(4), "{stderr}");
    ensure!(stderr.contains(&format!("{file}:4: nothing: invalid_url: this is not a link")), "{stderr}");
    ensure!(
        count(&stderr, "printed") == Some(2) && count(&stderr, "named more than once") == Some(1),
        "{stderr}"
    );
    let rows: Vec<Value> =
        text(&lines.stdout).lines().map(serde_json::from_str).collect::<serde_json::Result<_>>()?;
    let found: Vec<_> = rows.iter().filter(|row| row["available"] == true).collect();
    ensure!(found.len() == 2 && rows.len() == 3, "{rows:?}");
    ensure!(found[0]["videoId"] == "get-many-10" && found[1]["videoId"] == "get-many-11", "{rows:?}");
    ensure!(found[1]["transcript"][0]["text"] == "This is get-many-11.", "{rows:?}");
    ensure!(rows.iter().any(|row| row["failureReason"] == "invalid_url"), "{rows:?}");

    let texts = fixture.get(&["get-many-11", "--from", "-"], "https://youtu.be/get-many-10\n")?;
    ensure!(texts.status.code() == Some(0), "{}", text(&texts.stderr));
    let heading = |title: &str, id: &str| format!("==> {title} (https://www.youtube.com/watch?v={id}) <==");
    let stdout = text(&texts.stdout);
    let headings: Vec<_> = stdout.lines().filter(|line| line.starts_with("==>")).collect();
    ensure!(headings == [heading("Two", "get-many-11"), heading("One", "get-many-10")], "{stdout}");

    for (arguments, input, why) in [
        (&["get-many-10", "get-many-11", "--format", "srt"][..], "", "name a folder with --to"),
        (&["--from", "-"], "\n# nothing\n", "standard input has no links"),
        (&["--from", "/nowhere/links"], "", "cannot be read"),
        (&["--lnag", "de", "get-many-10"], "", "neither an option nor a link"),
        (&["get-many-10", "--to", "x", "--name", "../{id}"], "", "below the folder"),
        (&[PLAYLIST, "--since", "yesterday"], "", "a date such as"),
        (&["get-many-10", "--since", "yesterday"], "", "a date such as"),
        (&["--search", " ", "--limit", "1"], "", "--search needs words"),
        (&["https://www.youtube.com/playlist?list=WL"], "", "logged-in viewer"),
    ] {
        let wrong = fixture.get(arguments, input)?;
        let stderr = text(&wrong.stderr);
        ensure!(wrong.status.code() == Some(2) && wrong.stdout.is_empty(), "{arguments:?}: {stderr}");
        ensure!(stderr.to_lowercase().contains(why), "{arguments:?}: {stderr}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn get_equal_titles_have_different_files() -> Result<()> {
    let known = [("get-many-20", "Talk"), ("get-many-21", "talk"), ("get-many-22", "Talk")];
    let fixture = GetFixture::new(videos(Script::new(), &known, |response| response))?;
    let name = ["--name", "{channel}/{title}"];
    ensure!(fixture.get_to(&[&["get-many-20"], &name[..]].concat())?.status.success());
    // The new video comes first, and the name is taken.
    let all = fixture.get_to(&[&["get-many-22", "get-many-21", "get-many-20"], &name[..]].concat())?;
    let stderr = text(&all.stderr);
    ensure!(all.status.success(), "{stderr}");
    ensure!(
        count(&stderr, "written") == Some(2) && count(&stderr, "skipped, file exists") == Some(1),
        "{stderr}"
    );
    let files = fixture.files()?;
    ensure!(files.len() == 3, "{files:?}");
    for (file, video) in [("Talk.txt", "get-many-20"), ("Talk [get-many-22].txt", "get-many-22")] {
        let text = fs::read_to_string(fixture.to().join("Dyke Society").join(file))?;
        ensure!(text.contains(video), "{file}: {text}");
    }
    let index = fixture.get_to(&["get-many-22", "get-many-21", "--name", "{index}.txt"])?;
    ensure!(index.status.success() && fixture.files()?.contains("0002.txt"), "{:?}", fixture.files()?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn get_interrupted_continues_without_second_fetch() -> Result<()> {
    let gate = Arc::new(Semaphore::new(0));
    let script = videos(Script::new(), &[("get-many-30", "One")], |response| response);
    let script =
        videos(script, &[("get-many-31", "Two"), ("get-many-32", "Three")], |response| response.gated(&gate));
    let fixture = GetFixture::new(script)?;
    let to = fixture.to().display().to_string();
    let arguments = ["get-many-30", "get-many-31", "get-many-32", "--to", &to, "--name", "{id}"];

    let mut command = fixture.command(&arguments);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let written =
        wait_until("no file was written", async || Ok(fixture.to().join("get-many-30.txt").exists()));
    written.await?;
    send_signal(child.id(), "INT")?;
    let stopped = child.wait_with_output()?;
    let stderr = text(&stopped.stderr);
    ensure!(stopped.status.code() == Some(130), "{:?}: {stderr}", stopped.status);
    ensure!(
        count(&stderr, "written") == Some(1) && stderr.contains("The same command continues"),
        "{stderr}"
    );
    ensure!(fixture.files()?.len() == 1, "{:?}", fixture.files()?);

    gate.add_permits(1);
    let second = fixture.get(&arguments, "")?;
    let stderr = text(&second.stderr);
    ensure!(second.status.success(), "{stderr}");
    ensure!(
        count(&stderr, "written") == Some(2) && count(&stderr, "skipped, file exists") == Some(1),
        "{stderr}"
    );
    ensure!(fixture.files()?.len() == 3 && fetch_count(&fixture.proxy, "get-many-30") == 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn get_of_one_link_releases_lease_when_interrupted() -> Result<()> {
    let gate = Arc::new(Semaphore::new(0));
    let script = videos(Script::new(), &[("get-many-50", "One")], |response| response.gated(&gate));
    let fixture = GetFixture::new(script)?;
    let mut command = fixture.command(&["get-many-50"]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let requested = wait_until("no request reached the platform", async || {
        Ok(fetch_count(&fixture.proxy, "get-many-50") > 0)
    });
    requested.await?;
    send_signal(child.id(), "INT")?;
    let stopped = child.wait_with_output()?;
    let stderr = text(&stopped.stderr);
    ensure!(
        stopped.status.code() == Some(130) && stopped.stdout.is_empty(),
        "{:?}: {stderr}",
        stopped.status
    );
    let archive = fixture.folder.path().join("data").join("archive.db");
    ensure!(sqlite(&archive, "SELECT count(*) FROM leases")?.trim() == "0");

    gate.add_permits(1);
    let second = fixture.get(&["get-many-50"], "")?;
    ensure!(second.status.success(), "{}", text(&second.stderr));
    ensure!(text(&second.stdout).contains("This is get-many-50."), "{}", text(&second.stdout));
    Ok(())
}

/// Output of `get --to` of these videos on a terminal with this value of `TERM`.
fn get_on_terminal(fixture: &GetFixture, term: &str, videos: &str) -> Result<Output> {
    let data = fixture.folder.path().join("data").display().to_string();
    let line = format!(
        "exec '{}' get {videos} --to '{}' --data '{data}'",
        binary().display(),
        fixture.to().display()
    );
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    script.env("VERBATIM_LOG__LEVEL", "warn").env("TERM", term).envs(platform_settings(&fixture.proxy));
    run(script, b"")
}

/// A terminal that cannot draw a bar gets the paths.
#[tokio::test(flavor = "multi_thread")]
async fn get_on_dumb_terminal_prints_paths() -> Result<()> {
    let known = [("get-many-60", "One"), ("get-many-61", "Two")];
    let fixture = GetFixture::new(videos(Script::new(), &known, |response| response))?;
    let output = get_on_terminal(&fixture, "dumb", "get-many-60 get-many-61")?;
    let shown = text(&output.stdout).replace("\r\n", "\n");
    ensure!(output.status.success(), "{shown:?}");
    for file in fixture.files()? {
        let path = fixture.to().join(file).display().to_string();
        ensure!(shown.lines().any(|line| line == path), "{path}: {shown:?}");
    }
    ensure!(fixture.files()?.len() == 2 && !shown.contains(['\r', '\u{1b}']), "{shown:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn get_on_terminal_shows_bar_and_summary() -> Result<()> {
    let known = [("get-many-40", "One\u{1b}[2Jtwo"), ("get-many-41", "silent"), ("get-many-42", "Three")];
    let delay = std::time::Duration::from_millis(200);
    let fixture = GetFixture::new(videos(Script::new(), &known, |response| response.after(delay)))?;
    let output = get_on_terminal(&fixture, "xterm", "get-many-40 get-many-41 get-many-42")?;
    let shown = text(&output.stdout);
    ensure!(output.status.code() == Some(4), "{shown:?}");
    for part in ["done 0 of 3 [", "/s, ", " left: ", "1 failed; ", "get-many-41: no_captions: "] {
        ensure!(shown.contains(part), "{part}: {shown:?}");
    }
    ensure!(!shown.contains("\u{1b}[2Jtwo"), "{shown:?}");
    let lines = shown.replace('\r', "").replace("\u{1b}[2K", "\n");
    ensure!(count(&lines, "written") == Some(2) && count(&lines, "failed") == Some(1), "{lines:?}");
    let path = fixture.to().display().to_string();
    ensure!(!shown.contains(&path), "paths pass by a bar: {shown:?}");
    fixture.files()?.first().context("no file")?;
    Ok(())
}
