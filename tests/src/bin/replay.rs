//! `replay`: folders of recordings behind a proxy, for the tests of the bindings and for manual tests.

use std::{io::Write as _, path::PathBuf};

use anyhow::{Context as _, Result};
use clap::Parser;
use verbatim_tests::replay::{ReplayProxy, Script, recordings::Recordings};

const AFTER_HELP: &str = "\
Give the printed addresses to the program as its proxy and its extra root certificate:

  VERBATIM_UPSTREAM__PROXY=http://127.0.0.1:PORT VERBATIM_UPSTREAM__CA_FILE=FILE verbatim get LINK

A request without a recording gets status 599, and nothing leaves this machine.
Ctrl-C stops the proxy and lists the unexpected requests.";

/// Serve recorded responses of the platforms, to try a program without them
#[derive(Debug, Parser)]
#[command(name = "replay", after_help = AFTER_HELP)]
struct ReplayArgs {
    /// Folders of recordings, each with its index.toml
    #[arg(long, value_name = "DIR", required = true)]
    recordings: Vec<PathBuf>,

    /// Play only the recording with this name, which every folder must have
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = ReplayArgs::parse();
    let folders = arguments.recordings.iter().map(|folder| Recordings::open(folder));
    let folders = folders.collect::<Result<Vec<_>>>()?;
    let mut rules = Vec::new();
    for folder in &folders {
        match &arguments.only {
            Some(name) => rules.extend(folder.rules(folder.find(name)?)?),
            None => rules.extend(folder.all_rules()?),
        }
    }
    let proxy = ReplayProxy::start(Script::new().rules(rules))?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "proxy {}", proxy.url())?;
    writeln!(out, "ca {}", proxy.ca_file().display())?;
    out.flush()?;
    drop(out);
    for recording in folders.iter().flat_map(Recordings::all) {
        eprintln!(
            "{:11}  {}: {}",
            recording.video.as_deref().unwrap_or("any"),
            recording.name,
            recording.about
        );
    }
    tokio::signal::ctrl_c().await.context("cannot wait for Ctrl-C")?;
    for request in proxy.unexpected() {
        eprintln!("unexpected: {} {}://{}{}", request.method, request.scheme, request.host, request.path);
    }
    Ok(())
}
