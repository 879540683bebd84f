//! What a person meets first: help, version, first steps, completions and manual pages.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use super::harness::{ServerFixture, binary, run, verbatim};

fn output_of(mut command: Command) -> Result<(Option<i32>, String, String)> {
    command.env_remove("VERBATIM_CONFIG");
    let output = run(command, b"")?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok((output.status.code(), text(output.stdout), text(output.stderr)))
}

fn bare(arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(arguments);
    command
}

#[test]
fn program_without_arguments_shows_what_to_do() -> Result<()> {
    let (status, stdout, stderr) = output_of(bare(&[]))?;
    assert_eq!((status, stdout.as_str()), (Some(2), ""));
    for text in ["verbatim get https://youtu.be/", "verbatim serve", "Usage: verbatim"] {
        assert!(stderr.contains(text), "{stderr}");
    }
    Ok(())
}

#[test]
fn version_has_commit_and_features() -> Result<()> {
    let (status, stdout, _) = output_of(bare(&["--version"]))?;
    assert_eq!(status, Some(0));
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines[0], format!("verbatim {}", env!("CARGO_PKG_VERSION")));
    assert!(lines[1].starts_with("commit: "), "{stdout}");
    // The tests build the program with all features.
    let features = "features: chat-model, documents, mcp, otel, postgres, speech, static-embeddings";
    assert_eq!(lines[2], features, "{stdout}");
    assert_eq!(output_of(bare(&["-V"]))?.1, format!("{}\n", lines[0]));
    Ok(())
}

/// Bash reads the completions, and offers the commands that begin with the typed letters.
#[test]
fn bash_completes_commands() -> Result<()> {
    let folder = TempDir::new()?;
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (status, script, stderr) = output_of(bare(&["completions", shell]))?;
        assert_eq!(status, Some(0), "{shell}: {stderr}");
        assert!(script.contains("check-config"), "{shell}");
        std::fs::write(folder.path().join(shell), script)?;
    }
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c"])
        .arg("source ./bash; COMP_WORDS=(verbatim ar); COMP_CWORD=1; _verbatim verbatim ar verbatim; echo \"${COMPREPLY[@]}\"")
        .current_dir(folder.path());
    assert_eq!(output_of(bash)?.1.trim(), "archive");
    // fish gets the shells in place of files.
    let fish = std::fs::read_to_string(folder.path().join("fish"))?;
    let shells = "using_subcommand completions\" -f -a \"bash elvish fish powershell zsh\"";
    assert!(fish.contains(shells), "{fish}");
    Ok(())
}

#[test]
fn every_command_has_a_manual_page() -> Result<()> {
    let folder = TempDir::new()?;
    let pages = folder.path().join("share/man1");
    let (status, stdout, stderr) = output_of(bare(&["man-pages", pages.to_str().unwrap_or_default()]))?;
    assert_eq!((status, stdout.as_str(), stderr.as_str()), (Some(0), "", ""));
    for (page, text) in [
        ("verbatim.1", r"check\-config"),
        ("verbatim-get.1", "frontmatter"),
        ("verbatim-archive-export.1", "format"),
    ] {
        let page = std::fs::read_to_string(pages.join(page)).context(page)?;
        // The name of the page, its section, the date of the release, the version and the manual.
        let title = page.lines().find(|line| line.starts_with(".TH ")).context("no title")?;
        assert!(title.contains(" 1 20"), "{title}");
        let source = concat!(" \"verbatim ", env!("CARGO_PKG_VERSION"), "\" Verbatim");
        assert!(title.ends_with(source), "{title}");
        assert!(page.contains(".SH EXAMPLES\n") && page.contains("\n.nf\n  verbatim "), "{page}");
        assert!(page.contains(text), "{page}");
    }
    // A folder that cannot be created.
    let file = folder.path().join("file");
    std::fs::write(&file, "")?;
    let (status, _, stderr) = output_of(bare(&["man-pages", file.join("x").to_str().unwrap_or_default()]))?;
    assert_eq!(status, Some(1));
    assert!(stderr.contains("manual pages cannot be written"), "{stderr}");
    Ok(())
}

/// A terminal gets the first steps, each of which works, and Ctrl-C stops the server.
#[tokio::test(flavor = "multi_thread")]
async fn serve_on_a_terminal_prints_first_steps() -> Result<()> {
    let data = TempDir::new()?;
    let path = data.path().display().to_string();
    // Without `exec` the shell would report Ctrl-C itself, whatever the server's exit status.
    let line = format!("exec '{}' serve --listen 127.0.0.1:0 --data '{path}'", binary().display());
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env("VERBATIM_LOG__LEVEL", "warn");
    let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    let mut shown = Vec::new();
    let mut lines = BufReader::new(child.stdout.take().context("no standard output")?).lines();
    for line in lines.by_ref() {
        let line = line?.trim_end().to_owned();
        let is_last = line.starts_with("Ctrl-C");
        shown.push(line);
        if is_last {
            break;
        }
    }
    let value = |name: &str| {
        let line = shown.iter().find_map(|line| line.trim_start().strip_prefix(name));
        line.map(|rest| rest.trim().to_owned()).with_context(|| format!("no {name}: {shown:?}"))
    };
    let page = value("Read a transcript:")?;
    let docs = value("Use the API:")?;
    for (address, text) in [(&page, "<form"), (&docs, "Authorization")] {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--fail", address]);
        let (status, body, stderr) = output_of(curl)?;
        assert_eq!(status, Some(0), "{address}: {stderr}");
        assert!(body.contains(text), "{address}: {body}");
    }
    let create = value("Create an API key:")?;
    assert_eq!(create, format!("verbatim keys create --data {path}"));
    let words: Vec<&str> = create.split(' ').skip(1).collect();
    assert_eq!(output_of(bare(&words))?.0, Some(0));

    stdin.write_all(b"\x03")?;
    // `script` fails if its output is not read.
    lines.for_each(drop);
    let status = child.wait()?;
    ensure!(status.success(), "{status}");
    Ok(())
}

/// The error of a missing argument shows both forms of the command.
#[test]
fn missing_argument_error_shows_all_forms() -> Result<()> {
    for (command, forms) in [
        (["jobs", "pause"], ["verbatim jobs pause [OPTIONS] ID", "verbatim jobs pause [OPTIONS] --all"]),
        (["jobs", "resume"], ["verbatim jobs resume [OPTIONS] ID", "verbatim jobs resume [OPTIONS] --all"]),
        (
            ["archive", "export"],
            ["verbatim archive export [OPTIONS] LINK...", "verbatim archive export [OPTIONS] --all"],
        ),
    ] {
        let (status, _, stderr) = output_of(bare(&command))?;
        assert_eq!(status, Some(2), "{command:?}");
        assert!(forms.iter().all(|form| stderr.contains(form)), "{command:?}: {stderr}");
    }
    Ok(())
}

/// A second server at the same address says what is wrong and what to do.
#[tokio::test(flavor = "multi_thread")]
async fn address_in_use_is_explained() -> Result<()> {
    let (data, other) = (TempDir::new()?, TempDir::new()?);
    let first = ServerFixture::start(&data, &[])?;
    let folder: &Path = other.path();
    let (status, _, stderr) = output_of(verbatim(folder, &["serve", "--listen", first.address()]))?;
    assert_eq!(status, Some(1));
    assert!(stderr.contains("in use by another program; port 0"), "{stderr}");
    let socket = format!("unix:{}", data.path().join("socket").display());
    let base = ("VERBATIM_SERVER__BASE_URL", "https://example.org");
    let _at_socket = ServerFixture::start_at(&other, &socket, &[base])?;
    let mut second = verbatim(data.path(), &["serve", "--listen", &socket]);
    second.env(base.0, base.1);
    let (status, _, stderr) = output_of(second)?;
    assert_eq!(status, Some(1));
    assert!(stderr.contains("another program listens at it") && !stderr.contains("port 0"), "{stderr}");
    Ok(())
}

/// A supervisor learns whether the server answers, at a port and at a unix socket.
#[tokio::test(flavor = "multi_thread")]
async fn health_follows_the_server() -> Result<()> {
    let data = TempDir::new()?;
    let socket = format!("unix:{}", data.path().join("socket").display());
    let health = |listen: &str| {
        let mut command = bare(&["health", "--ready"]);
        command
            .env("VERBATIM_SERVER__LISTEN", listen)
            .env("VERBATIM_SERVER__BASE_URL", "https://example.org");
        output_of(command)
    };
    for listen in ["127.0.0.1:0", &socket] {
        let base = ("VERBATIM_SERVER__BASE_URL", "https://example.org");
        let mut server = ServerFixture::start_at(&data, listen, &[base])?;
        let listen = if listen == socket { listen } else { server.address() }.to_owned();
        let (status, stdout, stderr) = health(&listen)?;
        assert_eq!((status, stdout), (Some(0), format!("the server at {listen} answers\n")), "{stderr}");
        ensure!(server.stop()?.success());
        let (status, _, stderr) = health(&listen)?;
        assert_eq!(status, Some(1));
        assert!(stderr.contains("does not answer"), "{stderr}");
    }
    Ok(())
}

/// A settings file that is edited while the server runs does not make it unhealthy.
#[tokio::test(flavor = "multi_thread")]
async fn health_reads_the_address_only() -> Result<()> {
    let data = TempDir::new()?;
    let server = ServerFixture::start(&data, &[])?;
    let file = data.path().join("edited.toml");
    let health = |text: &str, listen: Option<&str>| -> Result<_> {
        std::fs::write(&file, text)?;
        let mut command = bare(&["health", "--config"]);
        command.arg(&file);
        if let Some(listen) = listen {
            command.env("VERBATIM_SERVER__LISTEN", listen);
        }
        let (status, _, stderr) = output_of(command)?;
        Ok((status, stderr))
    };
    let wrong =
        format!("[server]\nlisten = {:?}\n[limits]\nwait = \"many\"\nunknown = 1\n", server.address());
    assert_eq!(health(&wrong, None)?, (Some(0), String::new()));
    assert_eq!(health("[server", Some(server.address()))?, (Some(0), String::new()));
    assert_eq!(health("[server", None)?.0, Some(2));
    assert_eq!(health("[server]\nlisten = \"here\"\n", None)?.0, Some(2));
    Ok(())
}
