//! `verbatim mcp`: MCP tools on standard input and output.

use std::io::{self, IsTerminal};

use futures_util::future::BoxFuture;
use rmcp::{
    ErrorData, RoleServer,
    model::RequestId,
    serve_server,
    service::{RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage},
    transport::{Transport, async_rw::AsyncRwTransport},
};
use serde::Deserialize;
use serde_json::Value;
use tokio::{
    io::{
        AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream,
        Stdout,
    },
    sync::mpsc::{Receiver, Sender, channel},
};
use verbatim::Options;

use super::{CommandError, open::open_archive_with, print_stderr};
use crate::{
    config::Settings,
    mcp::{MESSAGE_MAX, McpTools, ToolSearch},
};

/// Bytes of a line up to which a message that is too large has its id read: clients write it before or behind the rest.
const LINE_MAX: u64 = 1 << 20;

/// The error about a line that is no message, and the id of the request if it is known.
type Rejection = (ErrorData, Option<RequestId>);

/// The id of a message that is too large.
#[derive(Deserialize)]
struct MessageId {
    id: Option<RequestId>,
}

/// The library's transport. The library itself drops lines that are too long or no JSON, without a response.
struct StdioTransport {
    messages: AsyncRwTransport<RoleServer, DuplexStream, Stdout>,
    rejections: Receiver<Rejection>,
    /// A response to a rejected line that is being written: the library cancels `receive` at any time.
    response: Option<BoxFuture<'static, io::Result<()>>>,
}

impl Transport<RoleServer> for StdioTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.messages.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(response) = &mut self.response {
                let written = response.await;
                self.response = None;
                written.ok()?;
            }
            let (error, id) = tokio::select! {
                biased;
                Some(rejection) = self.rejections.recv() => rejection,
                message = self.messages.receive() => match message {
                    Some(message) => return Some(message),
                    None => self.rejections.try_recv().ok()?,
                },
            };
            let response = TxJsonRpcMessage::<RoleServer>::error(error, id);
            self.response = Some(Box::pin(self.messages.send(response)));
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.messages.close().await
    }
}

/// Copies lines of JSON to `messages`, and sends a rejection for every other line.
async fn read_lines(
    input: impl AsyncRead + Unpin,
    mut messages: DuplexStream,
    rejections: Sender<Rejection>,
) -> io::Result<()> {
    let mut input = BufReader::new(input);
    let mut line = Vec::new();
    while (&mut input).take(LINE_MAX).read_until(b'\n', &mut line).await? > 0 {
        match rejection(&line) {
            Some(rejection) => rejections.send(rejection).await.map_err(io::Error::other)?,
            None => {
                messages.write_all(&line).await?;
                // The library drops a last line without an end.
                if !line.ends_with(b"\n") {
                    messages.write_all(b"\n").await?;
                }
            }
        }
        // The rest of a longer line.
        while !line.ends_with(b"\n") {
            line.clear();
            if (&mut input).take(LINE_MAX).read_until(b'\n', &mut line).await? == 0 {
                return Ok(());
            }
        }
        line.clear();
    }
    Ok(())
}

/// The error about a line that is too long or no JSON; `None` for any other.
fn rejection(line: &[u8]) -> Option<Rejection> {
    let text = line.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(line);
    if line.strip_suffix(b"\n").unwrap_or(line).len() > MESSAGE_MAX {
        let id = serde_json::from_slice::<MessageId>(text).ok().and_then(|message| message.id);
        let message = format!("The message is too large: at most {MESSAGE_MAX} bytes are read.");
        return Some((ErrorData::invalid_request(message, None), id));
    }
    let text = text.trim_ascii();
    if text.is_empty() {
        return None;
    }
    let fault = serde_json::from_slice::<Value>(text).err()?;
    let message = format!("The message is no valid JSON (column {}).", fault.column());
    Some((ErrorData::parse_error(message, None), None))
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
    let (messages, input) = tokio::io::duplex(MESSAGE_MAX);
    let (sender, rejections) = channel(1);
    let reading = tokio::spawn(read_lines(tokio::io::stdin(), messages, sender));
    let messages = AsyncRwTransport::new_server(input, tokio::io::stdout());
    let ended = match serve_server(tools, StdioTransport { messages, rejections, response: None }).await {
        Ok(running) => running.waiting().await.map(|_| ()).map_err(|error| error.to_string()),
        // The client sent no message.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(ServerInitializeError::ExpectedInitializeRequest(_)) => {
            Err("the first message is not an initialize request".to_owned())
        }
        Err(error) => Err(error.to_string()),
    };
    reading.abort();
    verbatim.close().await;
    ended.map_err(CommandError::Fault)
}
