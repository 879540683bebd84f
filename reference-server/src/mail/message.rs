//! From a mail to the bytes that travel.

use lettre::{
    Address, Message,
    address::Envelope,
    message::{
        Body, Mailbox, MultiPart, SinglePart,
        header::{ContentTransferEncoding, ContentType, Header, HeaderName, HeaderValue},
    },
};
use sha2::{Digest, Sha256};
use transcript_core::{Error, accounts::mail::Mail};

/// The longest line that may travel as it is, in bytes (RFC 5322, 2.1.1).
const LINE_MAX: usize = 998;

/// Says that no person wrote it, so that no machine answers (RFC 3834).
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

/// The message of a mail: plain text and HTML.
///
/// # Errors
/// Never to be retried: the recipient is no address that mail can be sent to.
pub(super) fn message(mail: &Mail, from: &Mailbox) -> Result<Message, Error> {
    let to = recipient(&mail.to).ok_or_else(|| Error::invalid("the recipient is no mail address"))?;
    let id = format!("<{}@{}>", name(mail), from.email.domain());
    let envelope = Envelope::new(Some(from.email.clone()), vec![to.clone()])
        .map_err(|_| Error::invalid("the mail has no recipient"))?;
    let parts = MultiPart::alternative()
        .singlepart(part(ContentType::TEXT_PLAIN, &mail.text))
        .singlepart(part(ContentType::TEXT_HTML, &mail.html));
    Message::builder()
        .from(from.clone())
        .to(Mailbox::new(None, to))
        .subject(mail.subject.as_str())
        .message_id(Some(id))
        .header(AutoSubmitted)
        // Otherwise it is read back from the headers, which knows no quoted names.
        .envelope(envelope)
        .multipart(parts)
        // The recipient and the sender are all that can be wrong with it.
        .map_err(|_| Error::invalid("the mail cannot be put into a message"))
}

/// A name of this very mail, which tells nothing of what is in it: there is a token in the text.
pub(super) fn name(mail: &Mail) -> String {
    let digest = Sha256::new().chain_update(&mail.to).chain_update(&mail.text).finalize();
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// A body that stays readable, and whose link can be copied, where that is possible.
fn part(kind: ContentType, text: &str) -> SinglePart {
    let lines = text.replace('\n', "\r\n");
    let plain = lines.is_ascii() && lines.lines().all(|line| line.len() <= LINE_MAX);
    let body = match plain {
        // The library's own limit for this encoding is shorter than a link may be.
        true => Body::dangerous_pre_encoded(lines.into_bytes(), ContentTransferEncoding::SevenBit),
        false => Body::new(lines),
    };
    SinglePart::builder().header(kind).body(body)
}

/// The address in the form in which servers know it: a domain of other scripts in its ASCII form, so that a
/// server without SMTPUTF8 will do.
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
        let mail = Mail {
            to: to.to_owned(),
            subject: "A subject".to_owned(),
            text: format!("Hello,\n\nhttps://v.example/api/v1/verify?token={}\n", "0".repeat(64)),
            html: "<p>Hello, <a href=\"https://v.example/?token=0123\">here</a></p>\n".to_owned(),
        };
        let from = "Verbatim <no-reply@v.example>".parse().unwrap();
        Ok(String::from_utf8(message(&mail, &from)?.formatted()).unwrap())
    }

    #[test]
    fn a_message_has_both_parts_as_they_are() {
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
        assert!(!text.replace("\r\n", "").contains(['\r', '\n']), "every line ends with both");
    }

    #[test]
    fn no_address_adds_a_header_or_a_recipient() {
        for to in [
            "",
            "nobody",
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
    fn other_scripts_are_encoded() {
        let from: Mailbox = "Wörtlich <no-reply@v.example>".parse().unwrap();
        let mail = Mail {
            to: "ann@example.org".to_owned(),
            subject: "Wörtlich: ein Schlüssel".to_owned(),
            text: format!("Grüße\n{}\n", "x".repeat(2_000)),
            html: "<p>Grüße</p>".to_owned(),
        };
        let text = message(&mail, &from).unwrap().formatted();
        assert!(text.is_ascii());
        assert!(text.split(|byte| *byte == b'\n').all(|line| line.len() <= LINE_MAX));
    }
}
