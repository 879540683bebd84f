//! A receiver of webhooks.

use std::{
    io::{BufRead, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result};
use serde_json::Value;
use tokio::sync::mpsc;
use transcript_core::{
    Timestamp,
    accounts::webhooks::{SIGNATURE_TOLERANCE, SignatureError, verify_signature},
};

/// Timeout of a webhook: longer than the lease of a killed server.
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(90);

/// How the receiver answers a call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    /// With this status.
    Status(u16),
    /// Never.
    Hang,
    /// With a redirect to the same receiver.
    Redirect,
}

/// A call of the receiver.
#[derive(Debug)]
pub(super) struct WebhookCall {
    pub(super) path: String,
    signature: String,
    body: Vec<u8>,
}

impl WebhookCall {
    pub(super) fn event(&self) -> Result<Value> {
        Ok(serde_json::from_slice(&self.body)?)
    }

    /// The number of signatures.
    pub(super) fn signatures(&self) -> usize {
        self.signature.matches(",v1=").count()
    }

    /// Verifies the signature with this secret.
    pub(super) fn verify(&self, secret: &str) -> Result<(), SignatureError> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let now = Timestamp::from_millis(i64::try_from(now.as_millis()).unwrap_or(i64::MAX));
        let secrets = [secret.to_owned()];
        verify_signature(Some(&self.signature), &self.body, &secrets, now, SIGNATURE_TOLERANCE)
    }
}

/// A receiver on this machine, which answers each call as a function of its number decides.
pub(super) struct WebhookReceiver {
    pub(super) url: String,
    calls: mpsc::UnboundedReceiver<WebhookCall>,
}

impl WebhookReceiver {
    pub(super) fn start(answer: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}/hook", listener.local_addr()?);
        let (sender, calls) = mpsc::unbounded_channel();
        let answer = Arc::new(answer);
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let (stream, sender, answer) = (stream?, sender.clone(), Arc::clone(&answer));
                std::thread::spawn(move || receive(stream, answer(number), &sender));
            }
            std::io::Result::Ok(())
        });
        Ok(Self { url, calls })
    }

    /// Waits for the next call.
    pub(super) async fn next(&mut self) -> Result<WebhookCall> {
        let call = tokio::time::timeout(WEBHOOK_TIMEOUT, self.calls.recv()).await;
        call.context("no webhook arrived")?.context("the receiver has ended")
    }

    /// The calls that were not read.
    pub(super) fn rest(&mut self) -> Vec<WebhookCall> {
        std::iter::from_fn(|| self.calls.try_recv().ok()).collect()
    }
}

fn receive(
    stream: TcpStream,
    answer: Answer,
    sender: &mpsc::UnboundedSender<WebhookCall>,
) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head)? > 0 {}
    let header = |name: &str| {
        let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with(name));
        line.and_then(|line| line.split_once(": ")).map_or("", |(_, value)| value).to_owned()
    };
    let mut body = vec![0; header("content-length").parse().unwrap_or(0)];
    stream.read_exact(&mut body)?;
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let call = WebhookCall { path, signature: header("verbatim-signature"), body };
    // The test may have ended.
    let _ = sender.send(call);
    let reply = match answer {
        Answer::Status(status) => {
            format!("HTTP/1.1 {status} Any\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        }
        Answer::Redirect => {
            "HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n".to_owned()
        }
        Answer::Hang => {
            std::thread::sleep(WEBHOOK_TIMEOUT);
            return Ok(());
        }
    };
    stream.get_mut().write_all(reply.as_bytes())
}
