//! `verbatim mcp`: the tools for assistants on standard input and output.

use std::io::{self, IsTerminal};

use rmcp::{serve_server, service::ServerInitializeError, transport::async_rw::AsyncRwTransport};

use super::{Failure, opening::open_archive_within, tell};
use crate::{
    config::Settings,
    mcp::{Local, MESSAGE_MAX, Tools},
};

/// Serves until standard input ends.
///
/// A call waits for a new transcript as long as a request over HTTP does (`limits.wait`): assistants give up on calls,
/// and the work goes on while this process lives.
pub(super) async fn run(settings: &Settings) -> Result<(), Failure> {
    if io::stdin().is_terminal() {
        tell(
            "verbatim: this speaks the Model Context Protocol on standard input and output: an assistant starts it",
        );
    }
    let verbatim = open_archive_within(settings, settings.limits.wait).await?;
    let tools = Tools::of_archive(Local::new(verbatim.clone()));
    let transport = AsyncRwTransport::new_server(tokio::io::stdin(), tokio::io::stdout());
    let ended = match serve_server(tools, transport.with_max_line_length(MESSAGE_MAX)).await {
        Ok(running) => running.waiting().await.map(|_| ()).map_err(|error| error.to_string()),
        // Nothing was said.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(ServerInitializeError::ExpectedInitializeRequest(_)) => {
            Err("the first message is no beginning of the protocol".to_owned())
        }
        Err(error) => Err(error.to_string()),
    };
    verbatim.close().await;
    ended.map_err(Failure::Fault)
}
