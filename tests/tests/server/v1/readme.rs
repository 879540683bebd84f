//! The README's way to an account, line by line, as a newcomer's shell runs it.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use super::post::Outbox;
use crate::server::harness::{Server, run, verbatim};

const README: &str = include_str!("../../../../README.md");
const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/lighthouse.vtt");

/// What these lines of the README print, for this server and data folder.
fn ran(lines: &str, server: &Server, data: &TempDir) -> Result<String> {
    let lines = lines
        .replace("127.0.0.1:8080", server.address())
        .replace("~/.local/share/verbatim", &data.path().display().to_string());
    let output = Command::new("sh").args(["-euc", &lines]).output()?;
    let (stdout, stderr) = (String::from_utf8(output.stdout)?, String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{lines}\n{stdout}\n{stderr}");
    Ok(stdout)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_readmes_lines_work_as_they_stand() -> Result<()> {
    let (_, section) = README.split_once("\n## Accounts and credits\n").context("the section")?;
    let blocks: Vec<&str> =
        section.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let [register, rest, ..] = blocks.as_slice() else { anyhow::bail!("two blocks of lines: {blocks:?}") };

    let data = TempDir::new()?;
    let import = ["import", EXAMPLE, "--video", "https://youtu.be/L1ghth0use1", "--lang", "en"];
    ensure!(run(verbatim(data.path(), &import), b"")?.status.success(), "the example is imported");
    let mut outbox = Outbox::of(&data);
    let server = Server::start(&data, &[])?;
    assert!(ran(register, &server, &data)?.contains(r#""success":true"#));
    outbox.next().await?;
    let told = ran(rest, &server, &data)?;
    for part in [
        r#""email":"me@example.org""#,
        r#""credits_remaining":200"#,
        r#""video_id":"L1ghth0use1""#,
        r#""api_key":"vba_"#,
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    Ok(())
}
