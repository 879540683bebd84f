//! The texts of the mails.
//!
//! Nothing that a stranger chose is in them, not even the address: whoever enters somebody else's address
//! sends them our words and no other. The operator's own product name and address are escaped.

use html_escape::{encode_double_quoted_attribute, encode_text};

use super::{Mail, MailKind};

/// Who writes: what stands in every mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letterhead {
    /// What the service is called: one line.
    pub product: String,
    /// What links begin with (`server.base_url`), without a slash at its end.
    pub base_url: String,
}

impl Default for Letterhead {
    fn default() -> Self {
        Self { product: "Verbatim".to_owned(), base_url: "http://127.0.0.1:8080".to_owned() }
    }
}

/// What differs from kind to kind.
struct Wording {
    subject: String,
    /// What somebody asked for.
    asked: String,
    /// What the link does.
    link: &'static str,
    /// What to know before it is opened.
    hint: &'static str,
    /// What happens when nothing is done.
    ignore: &'static str,
}

impl Letterhead {
    /// The mail of this kind. `token` is made of characters that an address can have.
    pub(super) fn mail(&self, kind: MailKind, to: String, token: &str) -> Mail {
        let base_url = self.base_url.trim_end_matches('/');
        let link = format!("{base_url}/api/v1/verify?token={token}");
        let words = wording(kind, &one_line(&self.product), base_url);
        let (text, html) = (text(&words, &link), html(&words, &link));
        Mail { to, subject: words.subject, text, html }
    }
}

fn wording(kind: MailKind, product: &str, base_url: &str) -> Wording {
    match kind {
        MailKind::Verify => Wording {
            subject: format!("Your {product} account: please confirm this address"),
            asked: format!("somebody asked for an account at {product} ({base_url}) with this address."),
            link: "Open this link to confirm the address and get your API key:",
            hint: "It works once, within 24 hours. The key is shown once: have a safe place for it ready.",
            ignore: "If that was not you, please ignore this mail: without the link, nothing happens.",
        },
        MailKind::Recover => Wording {
            subject: format!("Your {product} account: a new API key"),
            asked: format!("somebody asked for a new API key for your account at {product} ({base_url})."),
            link: "Open this link and press the button there:",
            hint: "It works once, within 24 hours. Your credits stay; the API key that you have now stops \
                   working when the new one is shown.",
            ignore: "If that was not you, please ignore this mail: nothing changes, and your key goes on \
                     working.",
        },
    }
}

fn text(words: &Wording, link: &str) -> String {
    let paragraphs = [
        "Hello,".to_owned(),
        wrapped(&words.asked),
        words.link.to_owned(),
        // Alone on its line, so that every reader of mail makes a link of it, whole.
        link.to_owned(),
        wrapped(words.hint),
        wrapped(words.ignore),
    ];
    format!("{}\n", paragraphs.join("\n\n"))
}

fn html(words: &Wording, link: &str) -> String {
    let (target, shown) = (encode_double_quoted_attribute(link), encode_text(link));
    let (subject, asked) = (encode_text(&words.subject), encode_text(&words.asked));
    let Wording { link, hint, ignore, .. } = words;
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{subject}</title>\n</head>\n\
         <body style=\"font-family: sans-serif; line-height: 1.5\">\n<p>Hello,</p>\n<p>{asked}</p>\n\
         <p>{link}</p>\n<p><a href=\"{target}\">{shown}</a></p>\n<p>{hint}</p>\n<p>{ignore}</p>\n\
         </body>\n</html>\n"
    )
}

/// The widest line of a plain text, in characters: mail is read on narrow screens, and quoted.
const WIDTH: usize = 72;

/// A paragraph in lines. A word that is wider than a line has one of its own.
fn wrapped(paragraph: &str) -> String {
    let (mut text, mut width) = (String::new(), 0);
    for word in paragraph.split_whitespace() {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > WIDTH {
            text.push('\n');
            width = 0;
        } else if width > 0 {
            text.push(' ');
            width += 1;
        }
        text.push_str(word);
        width += length;
    }
    text
}

/// A text without line ends and other control characters: it may stand in a header.
fn one_line(text: &str) -> String {
    let spaced: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123abcd";

    fn mail(kind: MailKind) -> Mail {
        let letterhead = Letterhead { base_url: "https://v.example/".to_owned(), ..Letterhead::default() };
        letterhead.mail(kind, "ann@example.org".to_owned(), TOKEN)
    }

    #[test]
    fn each_mail_names_the_service_and_has_its_link_in_both_parts() {
        let link = "https://v.example/api/v1/verify?token=0123abcd";
        for kind in MailKind::ALL {
            let mail = mail(kind);
            assert!(mail.subject.contains("Verbatim"), "{}", mail.subject);
            for part in [&mail.text, &mail.html] {
                assert!(part.replace('\n', " ").contains("Verbatim (https://v.example)"), "{part}");
            }
            assert!(mail.text.lines().any(|line| line == link), "{}", mail.text);
            assert!(mail.html.contains(&format!("<a href=\"{link}\">{link}</a>")), "{}", mail.html);
            assert!(mail.text.lines().all(|line| line.len() <= WIDTH), "{}", mail.text);
            assert!(mail.text.is_ascii() && mail.html.is_ascii() && mail.subject.is_ascii());
            assert!(!format!("{mail:?}").contains(TOKEN) && !format!("{mail:?}").contains("ann"));
            assert_eq!(MailKind::from_name(kind.as_str()), Some(kind));
        }
        assert_ne!(mail(MailKind::Verify).subject, mail(MailKind::Recover).subject);
        assert!(mail(MailKind::Recover).text.contains("stops"));
    }

    #[test]
    fn no_address_gets_into_the_words() {
        let plain = mail(MailKind::Verify);
        for to in [
            "\"<script>alert(1)</script>\"@example.org",
            "a@b.example\r\nBcc: everyone@example.org",
            "ü@exämple.org",
            "",
            &"x".repeat(10_000),
        ] {
            let letterhead = Letterhead { base_url: "https://v.example".to_owned(), ..Letterhead::default() };
            let mail = letterhead.mail(MailKind::Verify, to.to_owned(), TOKEN);
            assert_eq!((mail.subject, mail.text, mail.html), {
                let Mail { subject, text, html, .. } = plain.clone();
                (subject, text, html)
            });
            assert_eq!(mail.to, to);
        }
    }

    #[test]
    fn what_the_operator_chose_is_escaped() {
        let letterhead = Letterhead {
            product: "Müller & <b>Söhne</b>\r\nBcc: x@example.org".to_owned(),
            base_url: "https://v.example/a&b/'\"".to_owned(),
        };
        let mail = letterhead.mail(MailKind::Recover, String::new(), TOKEN);
        assert!(!mail.subject.contains(['\r', '\n']), "{}", mail.subject);
        assert!(mail.html.contains("Müller &amp; &lt;b&gt;Söhne&lt;/b&gt; Bcc"), "{}", mail.html);
        assert!(mail.html.contains("href=\"https://v.example/a&amp;b/'&quot;/api/v1/"), "{}", mail.html);
        assert!(mail.text.contains("https://v.example/a&b/'\"/api/v1/verify?token=0123abcd\n"));
    }

    #[test]
    fn paragraphs_are_wrapped_between_words() {
        let long = "y".repeat(WIDTH + 1);
        let text = wrapped(&format!("{} {long} z", "word ".repeat(20)));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0].len(), 69);
        assert!(lines.contains(&long.as_str()) && lines.contains(&"z"), "{text}");
        assert_eq!(wrapped(" \n "), "");
    }
}
