//! Messages of the core in the words of Python: keywords in place of settings, the reader in place of an operator.

use std::borrow::Cow;

use crate::options;

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

/// What messages contain if there may be no root certificates; the TLS library does not say so.
const FAILURES_WITHOUT_ROOTS: [&str; 2] = ["reached: the connection failed", "no usable root certificates"];

/// The message with the variables for certificates that name no file, if these may be the cause.
pub(crate) fn with_missing_certificates(message: Cow<'_, str>) -> Cow<'_, str> {
    let is_untrusted = message.contains("is not trusted; add a private root");
    let may_be_cause = is_untrusted || FAILURES_WITHOUT_ROOTS.iter().any(|failure| message.contains(failure));
    match may_be_cause.then(|| options::missing_certificates(is_untrusted)).flatten() {
        Some(missing) if message.ends_with('.') => Cow::Owned(format!("{message} {missing}.")),
        Some(missing) => Cow::Owned(format!("{message}; {missing}")),
        None => message,
    }
}

/// The message of a failure in this process. Those of servers are for their callers already.
pub(crate) fn for_python(message: &str) -> Cow<'_, str> {
    let mut worded = Cow::Borrowed(message);
    for (word, python) in WORDS {
        if worded.contains(word) {
            worded = Cow::Owned(worded.replace(word, python));
        }
    }
    with_missing_certificates(worded)
}
