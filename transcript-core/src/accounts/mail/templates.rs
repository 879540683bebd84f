//! Texts of the mails.
//!
//! They contain no text from the request, not even the address: registering another person's address sends
//! only the service's own text. The operator's product name and address are escaped.

use html_escape::{encode_double_quoted_attribute, encode_text};

use super::MailMessage;
use crate::accounts::{Order, OrderItem};

/// Name and URL of the service, for every mail.
#[derive(Clone, Debug, PartialEq, Eq, smart_default::SmartDefault)]
pub struct MailBranding {
    /// The name of the service, on one line.
    #[default("Verbatim")]
    pub product: String,
    /// The base of links (`server.base_url`), without a trailing slash.
    #[default("http://127.0.0.1:8080")]
    pub base_url: String,
}

/// A mail with a link that works once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkMail {
    /// The link creates an account.
    Verify,
    /// The link replaces the key of an account.
    Recover,
    /// The link signs in to an account.
    SignIn,
}

/// The parts of a mail that depend on its kind.
struct MailTemplate {
    subject: String,
    /// The request that caused the mail.
    request: String,
    /// The effect of the link.
    link: &'static str,
    /// Information before the link is opened.
    hint: &'static str,
    /// The effect of ignoring the mail.
    ignore: &'static str,
}

impl MailBranding {
    /// Builds the mail of this kind. `token` has only characters that a URL allows.
    pub(super) fn link_mail(&self, kind: LinkMail, to: String, token: &str) -> MailMessage {
        let base_url = self.base_url.trim_end_matches('/');
        let link = match kind {
            LinkMail::SignIn => format!("{base_url}/sign-in/confirm?token={token}"),
            LinkMail::Verify | LinkMail::Recover => {
                format!("{base_url}/api/v1/verify?token={token}")
            }
        };
        let template = template_for(kind, &to_single_line(&self.product), base_url);
        Self::message(template, to, &link)
    }

    /// Builds the receipt of a paid order. Names of items are the service's own.
    pub(super) fn receipt(&self, order: &Order, to: String) -> MailMessage {
        let base_url = self.base_url.trim_end_matches('/');
        let link = format!("{base_url}/account/orders/{}", order.id);
        let product = to_single_line(&self.product);
        let item = match &order.item {
            OrderItem::Pack(_) => format!("{} credits", order.credits),
            OrderItem::Plan(plan) => {
                format!("one month of the plan {}, with {} credits", plan.as_str(), order.credits)
            }
        };
        let (major, minor) = (order.amount_minor / 100, order.amount_minor % 100);
        let currency = order.currency.to_ascii_uppercase();
        let template = MailTemplate {
            subject: format!("Your receipt from {product}"),
            request: format!(
                "We received your payment at {product} ({base_url}). You bought {item}. Price: {major}.{minor:02} \
                 {currency}. Ordered on {}. Order: {}.",
                order.created_at.to_string().get(..10).unwrap_or_default(),
                order.id
            ),
            link: "The order and its receipt are on this page of your account:",
            hint: "If the payment is refunded, the page shows the amount.",
            ignore: "If you did not buy this, please write to the operator of the service.",
        };
        Self::message(template, to, &link)
    }

    fn message(template: MailTemplate, to: String, link: &str) -> MailMessage {
        let (text, html) = (text(&template, link), html(&template, link));
        MailMessage { to, subject: template.subject, text, html }
    }
}

fn template_for(kind: LinkMail, product: &str, base_url: &str) -> MailTemplate {
    match kind {
        LinkMail::SignIn => MailTemplate {
            subject: format!("Sign in to {product}"),
            request: format!("We received a request to sign in to your account at {product} ({base_url})."),
            link: "Open this link and press the button there:",
            hint: "It works once, within 30 minutes. Your API keys do not change.",
            ignore: "If that was not you, please ignore this mail: nothing happens without the link.",
        },
        LinkMail::Verify => MailTemplate {
            subject: format!("Your {product} account: please confirm this address"),
            request: format!(
                "We received a request for an account at {product} ({base_url}) with this address."
            ),
            link: "Open this link to confirm the address and get your API key:",
            hint: "It works once, within 24 hours. The key is shown once: have a safe place for it ready.",
            ignore: "If that was not you, please ignore this mail: without the link, nothing happens.",
        },
        LinkMail::Recover => MailTemplate {
            subject: format!("Your {product} account: a new API key"),
            request: format!(
                "We received a request for a new API key for your account at {product} ({base_url})."
            ),
            link: "Open this link and press the button there:",
            hint: "It works once, within 24 hours. Your credits stay; all API keys that you have now stop \
                   working when the new one is shown.",
            ignore: "If that was not you, please ignore this mail: nothing changes, and your keys keep \
                     working.",
        },
    }
}

fn text(template: &MailTemplate, link: &str) -> String {
    let paragraphs = [
        "Hello,".to_owned(),
        wrap(&template.request),
        template.link.to_owned(),
        // Alone on its line, so that every mail client makes it a link as a whole.
        link.to_owned(),
        wrap(template.hint),
        wrap(template.ignore),
    ];
    format!("{}\n", paragraphs.join("\n\n"))
}

fn html(template: &MailTemplate, link: &str) -> String {
    let (target, shown) = (encode_double_quoted_attribute(link), encode_text(link));
    let (subject, request) = (encode_text(&template.subject), encode_text(&template.request));
    let MailTemplate { link, hint, ignore, .. } = template;
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{subject}</title>\n</head>\n\
         <body style=\"font-family: sans-serif; line-height: 1.5\">\n<p>Hello,</p>\n<p>{request}</p>\n\
         <p>{link}</p>\n<p><a href=\"{target}\">{shown}</a></p>\n<p>{hint}</p>\n<p>{ignore}</p>\n\
         </body>\n</html>\n"
    )
}

/// The line width of plain text, in characters: mail is read on narrow screens and quoted.
const WIDTH: usize = 72;

/// Wraps a paragraph. A word wider than a line gets its own line.
fn wrap(paragraph: &str) -> String {
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

/// Replaces line ends and other control characters by spaces, so that the text may stand in a header.
fn to_single_line(text: &str) -> String {
    let spaced: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123abcd";

    fn mail(kind: LinkMail) -> MailMessage {
        let branding = MailBranding { base_url: "https://v.example/".to_owned(), ..MailBranding::default() };
        branding.link_mail(kind, "ann@example.org".to_owned(), TOKEN)
    }

    #[test]
    fn mail_template_names_service_and_link_in_both_parts() {
        let link = "https://v.example/api/v1/verify?token=0123abcd";
        for kind in [LinkMail::Verify, LinkMail::Recover] {
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
        }
        assert_ne!(mail(LinkMail::Verify).subject, mail(LinkMail::Recover).subject);
        assert!(mail(LinkMail::Recover).text.replace('\n', " ").contains("stop working"));
    }

    #[test]
    fn mail_template_omits_recipient_address() {
        let plain = mail(LinkMail::Verify);
        for to in [
            "\"<script>alert(1)</script>\"@example.org",
            "a@b.example\r\nBcc: everyone@example.org",
            "ü@exämple.org",
            "",
            &"x".repeat(10_000),
        ] {
            let branding =
                MailBranding { base_url: "https://v.example".to_owned(), ..MailBranding::default() };
            let mail = branding.link_mail(LinkMail::Verify, to.to_owned(), TOKEN);
            assert_eq!((mail.subject, mail.text, mail.html), {
                let MailMessage { subject, text, html, .. } = plain.clone();
                (subject, text, html)
            });
            assert_eq!(mail.to, to);
        }
    }

    #[test]
    fn mail_template_operator_values_are_escaped() {
        let branding = MailBranding {
            product: "Müller & <b>Söhne</b>\r\nBcc: x@example.org".to_owned(),
            base_url: "https://v.example/a&b/'\"".to_owned(),
        };
        let mail = branding.link_mail(LinkMail::Recover, String::new(), TOKEN);
        assert!(!mail.subject.contains(['\r', '\n']), "{}", mail.subject);
        assert!(mail.html.contains("Müller &amp; &lt;b&gt;Söhne&lt;/b&gt; Bcc"), "{}", mail.html);
        assert!(mail.html.contains("href=\"https://v.example/a&amp;b/'&quot;/api/v1/"), "{}", mail.html);
        assert!(mail.text.contains("https://v.example/a&b/'\"/api/v1/verify?token=0123abcd\n"));
    }

    #[test]
    fn mail_template_paragraphs_wrap_between_words() {
        let long = "y".repeat(WIDTH + 1);
        let text = wrap(&format!("{} {long} z", "word ".repeat(20)));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0].len(), 69);
        assert!(lines.contains(&long.as_str()) && lines.contains(&"z"), "{text}");
        assert_eq!(wrap(" \n "), "");
    }
}
