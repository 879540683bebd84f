//! Mails as MIME messages.

use lettre::{
    Address, Message,
    address::Envelope,
    message::{
        Body, Mailbox, MultiPart, SinglePart,
        header::{ContentTransferEncoding, ContentType, Header, HeaderName, HeaderValue},
    },
};
use sha2::{Digest, Sha256};
use transcript_core::{Error, accounts::mail::MailMessage, hex};

/// Longest line without transfer encoding, in bytes (RFC 5322, 2.1.1).
const LINE_MAX: usize = 998;

/// Marks automatic mails, so that autoresponders do not reply (RFC 3834).
#[derive(Clone)]
struct AutoSubmitted;

impl Header for AutoSubmitted {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Auto-Submitted")
    }

    fn parse(_: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self)
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), "auto-generated".to_owned())
    }
}

/// Where a message goes, which decides how letters outside ASCII are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    /// To a mail server, which may take ASCII only.
    Smtp,
    /// To a file, whose links people copy.
    File,
}

/// Builds a message with plain text and HTML.
///
/// # Errors
/// Not retryable: the recipient is not a valid email address.
pub(super) fn message(mail: &MailMessage, from: &Mailbox, transport: Transport) -> Result<Message, Error> {
    let to = recipient(&mail.to).ok_or_else(|| Error::invalid("the recipient is not an email address"))?;
    let id = format!("<{}@{}>", name(mail), from.email.domain());
    let envelope = Envelope::new(Some(from.email.clone()), vec![to.clone()])
        .map_err(|_| Error::invalid("the mail has no recipient"))?;
    let parts = MultiPart::alternative()
        .singlepart(part(ContentType::TEXT_PLAIN, &mail.text, transport))
        .singlepart(part(ContentType::TEXT_HTML, &mail.html, transport));
    Message::builder()
        .from(from.clone())
        .to(Mailbox::new(None, to))
        .subject(mail.subject.as_str())
        .message_id(Some(id))
        .header(AutoSubmitted)
        // Otherwise lettre parses it from the headers, which fails for quoted names.
        .envelope(envelope)
        .multipart(parts)
        // Only the recipient and the sender can be invalid.
        .map_err(|_| Error::invalid("the mail cannot be encoded as a message"))
}

/// Returns a name derived from the mail by a digest, because the text contains a token.
pub(super) fn name(mail: &MailMessage) -> String {
    let digest = Sha256::new().chain_update(&mail.to).chain_update(&mail.text).finalize();
    hex::encode(digest.get(..16).unwrap_or_default())
}

/// Encodes a part without transfer encoding if possible, so that links can be copied.
fn part(kind: ContentType, text: &str, transport: Transport) -> SinglePart {
    let lines = text.replace('\n', "\r\n");
    let is_short = lines.lines().all(|line| line.len() <= LINE_MAX);
    let encoding = match (lines.is_ascii(), transport) {
        (true, _) => Some(ContentTransferEncoding::SevenBit),
        (false, Transport::File) => Some(ContentTransferEncoding::EightBit),
        (false, Transport::Smtp) => None,
    };
    let body = match encoding.filter(|_| is_short) {
        // lettre's limit for these encodings is shorter than a link may be.
        Some(encoding) => Body::dangerous_pre_encoded(lines.into_bytes(), encoding),
        None => Body::new(lines),
    };
    SinglePart::builder().header(kind).body(body)
}

/// Parses the address and converts an international domain to ASCII.
///
/// The mail server then does not need SMTPUTF8.
fn recipient(text: &str) -> Option<Address> {
    let (user, domain) = text.rsplit_once('@')?;
    let domain = match domain.is_ascii() {
        true => domain.to_owned(),
        false => url::Host::parse(domain).ok()?.to_string(),
    };
    Address::new(user, domain).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formatted(to: &str) -> Result<String, Error> {
        let mail = MailMessage {
            to: to.to_owned(),
            subject: "A subject".to_owned(),
            text: format!("Hello,\n\nhttps://v.example/api/v1/verify?token={}\n", "0".repeat(64)),
            html: "<p>Hello, <a href=\"https://v.example/?token=0123\">here</a></p>\n".to_owned(),
        };
        let from = "Verbatim <no-reply@v.example>".parse().unwrap();
        Ok(String::from_utf8(message(&mail, &from, Transport::Smtp)?.formatted()).unwrap())
    }

    #[test]
    fn message_parts_are_unchanged() {
        let text = formatted("ann@example.org").unwrap();
        for line in [
            "From: Verbatim <no-reply@v.example>",
            "To: ann@example.org",
            "Subject: A subject",
            "Auto-Submitted: auto-generated",
            "MIME-Version: 1.0",
            &format!("https://v.example/api/v1/verify?token={}", "0".repeat(64)),
            "<p>Hello, <a href=\"https://v.example/?token=0123\">here</a></p>",
        ] {
            assert!(text.split("\r\n").any(|other| other == line), "{line}\n{text}");
        }
        assert!(text.contains("\r\nDate: ") && text.contains("@v.example>\r\n"), "{text}");
        assert!(!text.replace("\r\n", "").contains(['\r', '\n']), "every line must end with CRLF");
    }

    #[test]
    fn message_address_injection_is_refused() {
        for to in [
            "",
            "no-address",
            "@example.org",
            "ann@",
            "ann@example.org\r\nBcc: x@y.example",
            "ann@example.org, x@y.example",
            "ann@example.org>",
            "ann\0@example.org",
            "ann@exa mple.org",
            "ann@ü\u{ad}\n.example",
        ] {
            let refused = formatted(to).unwrap_err();
            assert_eq!(refused.retry(), transcript_core::Retry::Never, "{to:?}");
        }
        for (to, header) in [
            ("\"a, b\"@example.org", "To: \"a, b\"@example.org"),
            ("o'brien+x@example.org", "To: o'brien+x@example.org"),
            ("ann@bücher.example", "To: ann@xn--bcher-kva.example"),
            ("ann@[192.0.2.1]", "To: ann@[192.0.2.1]"),
        ] {
            let text = formatted(to).unwrap();
            assert!(text.split("\r\n").any(|line| line == header), "{to}\n{text}");
            assert_eq!(text.matches("@").count() - text.matches("@v.example").count(), 1, "{text}");
        }
    }

    #[test]
    fn message_non_ascii_is_encoded() {
        let from: Mailbox = "Wörtlich <no-reply@v.example>".parse().unwrap();
        let mail = MailMessage {
            to: "ann@example.org".to_owned(),
            subject: "Wörtlich: ein Schlüssel".to_owned(),
            text: format!("Grüße\n{}\n", "x".repeat(2_000)),
            html: "<p>Grüße</p>".to_owned(),
        };
        let text = message(&mail, &from, Transport::Smtp).unwrap().formatted();
        assert!(text.is_ascii());
        let short = MailMessage { text: "Grüße\n".to_owned(), ..mail };
        let file = message(&short, &from, Transport::File).unwrap().formatted();
        assert!(String::from_utf8(file).unwrap().contains("\r\n\r\nGrüße\r\n"));
        assert!(text.split(|byte| *byte == b'\n').all(|line| line.len() <= LINE_MAX));
    }
}
