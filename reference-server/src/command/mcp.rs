//! `verbatim mcp`: MCP tools on standard input and output.

use std::io::{self, IsTerminal};

use rmcp::{serve_server, service::ServerInitializeError, transport::async_rw::AsyncRwTransport};
use verbatim::Options;

use super::{CommandError, open::open_archive_with, print_stderr};
use crate::{
    config::Settings,
    mcp::{MESSAGE_MAX, McpTools, ToolSearch},
};

/// Serves until standard input ends.
///
/// A call waits for a new transcript as long as a request over HTTP (`limits.wait`), because assistants time out; the
/// fetch continues while this process runs.
pub(super) async fn run(settings: &Settings) -> Result<(), CommandError> {
    if io::stdin().is_terminal() {
        print_stderr(
            "verbatim: this command serves the Model Context Protocol on standard input and output; an assistant starts it",
        );
    }
    let wait = settings.options.wait;
    let verbatim = open_archive_with(settings, |options| Options { wait, ..options }).await?;
    let search = ToolSearch { service: verbatim.search().clone(), limits: None };
    let tools = McpTools::for_archive(verbatim.clone()).with_search(search);
    let transport = AsyncRwTransport::new_server(tokio::io::stdin(), tokio::io::stdout());
    let ended = match serve_server(tools, transport.with_max_line_length(MESSAGE_MAX)).await {
        Ok(running) => running.waiting().await.map(|_| ()).map_err(|error| error.to_string()),
        // The client sent no message.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(ServerInitializeError::ExpectedInitializeRequest(_)) => {
            Err("the first message is not an initialize request".to_owned())
        }
        Err(error) => Err(error.to_string()),
    };
    verbatim.close().await;
    ended.map_err(CommandError::Fault)
}
