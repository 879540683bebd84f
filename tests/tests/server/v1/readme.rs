//! The shell commands of `docs/accounts.md`, run unchanged.

use std::process::Command;

use anyhow::{Context as _, Result};
use tempfile::TempDir;

use super::mail_client::MailClient;
use crate::server::harness::{ServerFixture, import_example, run_ok};

const ACCOUNTS_PAGE: &str = include_str!("../../../../docs/accounts.md");

/// Output of these lines of the page, for this server and data folder.
fn run_lines(lines: &str, server: &ServerFixture, data: &TempDir) -> Result<String> {
    let lines = lines
        .replace("127.0.0.1:8080", server.address())
        .replace("~/.local/share/verbatim", &data.path().display().to_string());
    let mut shell = Command::new("sh");
    shell.args(["-euc", &lines]);
    run_ok(shell, b"").context(lines)
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_page_commands_work_unchanged() -> Result<()> {
    let (_, section) =
        ACCOUNTS_PAGE.split_once("\n## Accounts and credits\n").context("the page has no section")?;
    let blocks: Vec<&str> =
        section.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let [register, rest, ..] = blocks.as_slice() else { anyhow::bail!("expected two blocks: {blocks:?}") };

    let data = TempDir::new()?;
    import_example(&data, "https://youtu.be/L1ghth0use1")?;
    let mut outbox = MailClient::new(&data);
    let server = ServerFixture::start(&data, &[])?;
    assert!(run_lines(register, &server, &data)?.contains(r#""success":true"#));
    outbox.next().await?;
    let printed = run_lines(rest, &server, &data)?;
    for part in [
        r#""email":"me@example.org""#,
        r#""credits_remaining":200"#,
        r#""video_id":"L1ghth0use1""#,
        r#""api_key":"vba_"#,
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    Ok(())
}
