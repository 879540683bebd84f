//! `verbatim mcp`: MCP tools on standard input and output.

use std::{
    io::{self, IsTerminal},
    pin::Pin,
    task::{Context, Poll, ready},
};

use rmcp::{serve_server, service::ServerInitializeError, transport::async_rw::AsyncRwTransport};
use tokio::io::{AsyncRead, ReadBuf};
use verbatim::Options;

use super::{CommandError, open::open_archive_with, print_stderr};
use crate::{
    config::Settings,
    mcp::{MESSAGE_MAX, McpTools, ToolSearch},
};

/// Input whose lines are measured. The library drops those that are too long without a word.
struct MeasuredInput<R> {
    input: R,
    /// Bytes of the current line.
    length: usize,
}

impl<R: AsyncRead + Unpin> AsyncRead for MeasuredInput<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let start = buffer.filled().len();
        ready!(Pin::new(&mut self.input).poll_read(context, buffer))?;
        let received = buffer.filled().get(start..).unwrap_or_default();
        for line in received.split_inclusive(|byte| *byte == b'\n') {
            let before = self.length;
            self.length = before.saturating_add(line.len());
            if before <= MESSAGE_MAX && self.length > MESSAGE_MAX {
                print_stderr(&format!(
                    "verbatim: a message of more than {MESSAGE_MAX} bytes was dropped: it gets no response"
                ));
            }
            if line.ends_with(b"\n") {
                self.length = 0;
            }
        }
        Poll::Ready(Ok(()))
    }
}

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
    let input = MeasuredInput { input: tokio::io::stdin(), length: 0 };
    let transport = AsyncRwTransport::new_server(input, tokio::io::stdout());
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
