//! Asks a Verbatim server for the transcript of a video.
//!
//! ```sh
//! VERBATIM_KEY=vbk_… cargo run -p verbatim --example ask_a_server -- https://verbatim.example https://youtu.be/dQw4w9WgXcQ
//! ```
//!
//! It prints one segment a line, each behind its start in seconds. Where there is no transcript it says why on standard
//! error, and last the address of the page for people, and ends with 3. Without a key only what is archived is found.

use std::{error::Error, process::ExitCode};

use verbatim::service::{LookupRequest, ServiceClient, ServiceOptions};

#[expect(clippy::print_stdout, reason = "its output is what it is for")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(server), Some(link)) = (arguments.next(), arguments.next()) else {
        return Err("give the address of a server, and a link to a video".into());
    };
    let key = std::env::var("VERBATIM_KEY").ok();
    match ask(&server, key.as_deref(), &link).await? {
        Ok(lines) => {
            lines.iter().for_each(|line| println!("{line}"));
            Ok(ExitCode::SUCCESS)
        }
        Err(why) => {
            eprintln!("{why}");
            Ok(ExitCode::from(3))
        }
    }
}

/// The lines of the transcript; or why there is none, and on the last line the page for people.
pub(crate) async fn ask(
    server: &str,
    key: Option<&str>,
    link: &str,
) -> Result<Result<Vec<String>, String>, Box<dyn Error>> {
    let mut client = ServiceClient::new(&ServiceOptions::new(server))?;
    if let Some(key) = key {
        client = client.with_key(key)?;
    }
    let answer = client.look_up(&LookupRequest::url(link)).await?.body;
    if !answer.available {
        // The address goes to a person as the server sent it.
        return Ok(Err(format!("{}\n{}", answer.failure_message.unwrap_or_default(), answer.watch_url)));
    }
    let line =
        |segment: &verbatim::core::wire::lookup::Segment| format!("{} {}", segment.start, segment.text);
    Ok(Ok(answer.transcript.iter().map(line).collect()))
}
