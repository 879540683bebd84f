//! Messages of the core in the words of Python: keywords in place of settings, the reader in place of an operator.

use std::borrow::Cow;

/// Words of the messages, and those of Python.
const WORDS: [(&str, &str); 21] = [
    ("the operator can ", "you can "),
    ("The operator can ", "You can "),
    ("this server's address", "your address"),
    ("from this server", "from your address"),
    ("to this server", "to you"),
    ("for this server", "for you"),
    ("upstream.proxy", "proxies"),
    ("upstream.ca_file", "ca_file"),
    ("upstream.timeout", "request_timeout"),
    ("upstream.retries", "retries"),
    ("upstream.concurrency", "concurrency"),
    ("youtube.clients", "youtube_clients"),
    ("ytdlp.program", "ytdlp"),
    ("speech.base_url", "speech"),
    ("speech.model", "speech"),
    ("speech.api_key", "speech"),
    ("service.base_url", "server"),
    ("service.api_key", "server"),
    ("chat.base_url", "chat"),
    ("chat.model", "chat"),
    ("chat.api_key", "chat"),
];

/// The message of a failure in this process. Those of servers are for their callers already.
pub(crate) fn for_python(message: &str) -> Cow<'_, str> {
    WORDS.iter().fold(Cow::Borrowed(message), |message, (word, python)| match message.contains(word) {
        true => Cow::Owned(message.replace(word, python)),
        false => message,
    })
}
