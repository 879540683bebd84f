//! Requests the transcript of a video from a Verbatim server.
//!
//! ```sh
//! VERBATIM_KEY=vbk_… cargo run -p verbatim-transcripts --example ask_a_server -- \
//!     https://verbatim.example https://youtu.be/dQw4w9WgXcQ
//! ```
//!
//! It prints one segment per line, after its start in seconds. If there is no transcript, it prints the reason and,
//! last, the address of the watch page on standard error, and exits with status 3. Without an API key only archived
//! transcripts are found.

use std::{error::Error, process::ExitCode, time::Duration};

use verbatim::{
    service::{Caller, Service, ServiceClient, ServiceLookup, ServiceOptions},
    transcript_core,
};

#[expect(clippy::print_stdout, reason = "its purpose is to print")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(server), Some(link)) = (arguments.next(), arguments.next()) else {
        return Err("give the address of a server, and a link to a video".into());
    };
    let key = std::env::var("VERBATIM_KEY").ok();
    match fetch_lines(&server, key.as_deref(), &link).await? {
        Ok(lines) => {
            lines.iter().for_each(|line| println!("{line}"));
            Ok(ExitCode::SUCCESS)
        }
        Err(reason) => {
            eprintln!("{reason}");
            Ok(ExitCode::from(3))
        }
    }
}

/// Returns the lines of the transcript, or the reason and, on the last line, the watch page.
pub(crate) async fn fetch_lines(
    server: &str,
    key: Option<&str>,
    link: &str,
) -> Result<Result<Vec<String>, String>, Box<dyn Error>> {
    let client = ServiceClient::new(&ServiceOptions::new(server))?;
    let caller = key.map(Caller::with_key).unwrap_or_default();
    let reply = client.look_up(&caller, ServiceLookup::url(link)).await?.body;
    let Some(stored) = reply.transcript else {
        // The address is printed as the server sent it.
        let (result, reason) = (&reply.result, reply.result.failure_message.as_deref().unwrap_or_default());
        return Ok(Err(format!("{reason}\n{}", result.watch_url)));
    };
    let line = |segment: &transcript_core::transcript::Segment| {
        let start = Duration::from_millis(segment.start_ms);
        format!("{} {}", start.as_secs_f64(), segment.text)
    };
    Ok(Ok(stored.transcript.segments.iter().map(line).collect()))
}
