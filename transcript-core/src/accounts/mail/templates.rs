//! Mails from the texts of a language.
//!
//! They contain no text from the request, not even the address: registering another person's address sends
//! only the service's own text. The operator's texts, product name and address are escaped.

use std::borrow::Cow;

use html_escape::{encode_double_quoted_attribute, encode_text};

use super::{MailMessage, MailTemplate, MailTexts};
use crate::{
    accounts::{Order, OrderItem},
    text::one_line,
};

/// Name, URL and texts of the service, for every mail.
#[derive(Clone, Debug, PartialEq, Eq, smart_default::SmartDefault)]
pub struct MailBranding {
    /// The name of the service, on one line.
    #[default("Verbatim")]
    pub product: String,
    /// The base of links (`server.base_url`), without a trailing slash.
    #[default("http://127.0.0.1:8080")]
    pub base_url: String,
    /// The languages of the mails. The first one is that of mails without a language; without any it is English.
    pub languages: Vec<MailTexts>,
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

impl MailBranding {
    /// Builds the mail of this kind. `token` has only characters that a URL allows.
    pub(super) fn link_mail(
        &self,
        kind: LinkMail,
        language: Option<&str>,
        to: String,
        token: &str,
    ) -> MailMessage {
        let (texts, base_url) = (self.texts(language), self.base_url.trim_end_matches('/'));
        let (template, path) = match kind {
            LinkMail::Verify => (&texts.verify, "api/v1/verify"),
            LinkMail::Recover => (&texts.recover, "api/v1/verify"),
            LinkMail::SignIn => (&texts.sign_in, "sign-in/confirm"),
        };
        let language = page_language(language, &texts).map(|tag| format!("&{tag}")).unwrap_or_default();
        let link = format!("{base_url}/{path}?token={token}{language}");
        self.message(&texts, template, &[], to, &link)
    }

    /// Builds the receipt of a paid order. Names of items are the service's own.
    pub(super) fn receipt(&self, language: Option<&str>, order: &Order, to: String) -> MailMessage {
        let (texts, base_url) = (self.texts(language), self.base_url.trim_end_matches('/'));
        let language = page_language(language, &texts).map(|tag| format!("?{tag}")).unwrap_or_default();
        let link = format!("{base_url}/account/orders/{}{language}", order.id);
        let credits = texts.numbers.number(order.credits);
        let item = match &order.item {
            OrderItem::Pack(_) => fill(&texts.pack, &[("credits", &credits)]),
            OrderItem::Plan(plan) => fill(&texts.plan, &[("plan", plan.as_str()), ("credits", &credits)]),
        };
        let price = texts.numbers.price(order.charged_minor(), &order.currency);
        let date = order.created_at.to_string();
        let values = [
            ("item", item.as_str()),
            ("price", &price),
            ("date", date.get(..10).unwrap_or_default()),
            ("order", order.id.as_str()),
        ];
        self.message(&texts, &texts.receipt, &values, to, &link)
    }

    /// The texts of a language; those of the first one if there are none.
    fn texts(&self, language: Option<&str>) -> Cow<'_, MailTexts> {
        let is_requested =
            |texts: &&MailTexts| language.is_some_and(|tag| texts.language.eq_ignore_ascii_case(tag));
        let texts = self.languages.iter().find(is_requested).or_else(|| self.languages.first());
        texts.map_or_else(Cow::default, Cow::Borrowed)
    }

    fn message(
        &self,
        texts: &MailTexts,
        template: &MailTemplate,
        values: &[(&str, &str)],
        to: String,
        link: &str,
    ) -> MailMessage {
        let product = one_line(&self.product);
        let service = [("product", product.as_str()), ("address", self.base_url.trim_end_matches('/'))];
        let template = MailTemplate {
            // A line end would begin another header.
            subject: one_line(&fill(&template.subject, &service)),
            request: fill(&template.request, &[&service, values].concat()),
            ..template.clone()
        };
        let (text, html) = (text(texts, &template, link), html(texts, &template, link));
        MailMessage { to, subject: template.subject, text, html }
    }
}

/// The parameter of a page in the language of the mail; `None` if it has another one than the page.
fn page_language(tag: Option<&str>, texts: &MailTexts) -> Option<String> {
    tag.filter(|tag| tag.eq_ignore_ascii_case(&texts.language)).map(|_| format!("hl={}", texts.language))
}

/// Replaces the names in braces.
fn fill(text: &str, values: &[(&str, &str)]) -> String {
    values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

fn text(texts: &MailTexts, template: &MailTemplate, link: &str) -> String {
    let paragraphs = [
        texts.greeting.clone(),
        wrap(&template.request),
        wrap(&template.link),
        // Alone on its line, so that every mail client makes it a link as a whole.
        link.to_owned(),
        wrap(&template.hint),
        wrap(&template.ignore),
    ];
    format!("{}\n", paragraphs.join("\n\n"))
}

fn html(texts: &MailTexts, template: &MailTemplate, link: &str) -> String {
    let (target, shown) = (encode_double_quoted_attribute(link), encode_text(link));
    let language = encode_double_quoted_attribute(&texts.language);
    // Also on the body: mail clients drop the element around it.
    let direction = if texts.is_right_to_left { " dir=\"rtl\"" } else { "" };
    let MailTemplate { subject, request, link, hint, ignore } = template;
    let [greeting, subject, request, link, hint, ignore] =
        [&texts.greeting, subject, request, link, hint, ignore].map(|text| encode_text(text));
    format!(
        "<!DOCTYPE html>\n<html lang=\"{language}\"{direction}>\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{subject}</title>\n</head>\n\
         <body{direction} style=\"font-family: sans-serif; line-height: 1.5\">\n<p>{greeting}</p>\n<p>{request}</p>\n\
         <p>{link}</p>\n<p><a href=\"{target}\" dir=\"ltr\">{shown}</a></p>\n<p>{hint}</p>\n<p>{ignore}</p>\n\
         </body>\n</html>\n"
    )
}

/// The line width of plain text, in characters: mail is read on narrow screens and quoted.
const WIDTH: usize = 72;

/// Wraps a paragraph. A word wider than a line gets its own line.
fn wrap(paragraph: &str) -> String {
    let (mut text, mut width) = (String::new(), 0);
    for word in paragraph.split_ascii_whitespace() {
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

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123abcd";

    fn mail(kind: LinkMail) -> MailMessage {
        let branding = MailBranding { base_url: "https://v.example/".to_owned(), ..MailBranding::default() };
        branding.link_mail(kind, None, "ann@example.org".to_owned(), TOKEN)
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
            assert!(
                mail.html.contains(&format!("<a href=\"{link}\" dir=\"ltr\">{link}</a>")),
                "{}",
                mail.html
            );
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
            let mail = branding.link_mail(LinkMail::Verify, None, to.to_owned(), TOKEN);
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
            languages: Vec::new(),
        };
        let mail = branding.link_mail(LinkMail::Recover, None, String::new(), TOKEN);
        assert!(!mail.subject.contains(['\r', '\n']), "{}", mail.subject);
        assert!(mail.html.contains("Müller &amp; &lt;b&gt;Söhne&lt;/b&gt; Bcc"), "{}", mail.html);
        assert!(mail.html.contains("href=\"https://v.example/a&amp;b/'&quot;/api/v1/"), "{}", mail.html);
        assert!(mail.text.contains("https://v.example/a&b/'\"/api/v1/verify?token=0123abcd\n"));
    }

    #[test]
    fn mail_template_language_is_requested_or_first() {
        let arabic = MailTexts {
            language: "ar".to_owned(),
            is_right_to_left: true,
            greeting: "<مرحبا>".to_owned(),
            verify: MailTemplate {
                subject: "{product}\n: تأكيد".to_owned(), ..MailTexts::default().verify
            },
            ..MailTexts::default()
        };
        let languages = vec![MailTexts::default(), arabic];
        let branding = MailBranding { languages, ..MailBranding::default() };
        let mail = |language| branding.link_mail(LinkMail::Verify, language, String::new(), TOKEN);
        let arabic = mail(Some("AR"));
        assert_eq!(arabic.subject, "Verbatim : تأكيد");
        assert!(arabic.text.starts_with("<مرحبا>\n\n"), "{}", arabic.text);
        for part in ["<html lang=\"ar\" dir=\"rtl\">", "<body dir=\"rtl\" ", "<p>&lt;مرحبا&gt;</p>"] {
            assert!(arabic.html.contains(part), "{}", arabic.html);
        }
        // The page of the link has the language, too.
        assert!(arabic.text.contains("/api/v1/verify?token=0123abcd&hl=ar\n"), "{}", arabic.text);
        assert!(arabic.html.contains("?token=0123abcd&amp;hl=ar\""), "{}", arabic.html);
        let plain = MailBranding::default().link_mail(LinkMail::Verify, None, String::new(), TOKEN);
        assert_eq!((mail(None), mail(Some("x\"y"))), (plain.clone(), plain));
    }

    #[test]
    fn mail_template_paragraphs_wrap_between_words() {
        let long = "y".repeat(WIDTH + 1);
        let text = wrap(&format!("{} {long} z", "word ".repeat(20)));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0].len(), 69);
        assert!(lines.contains(&long.as_str()) && lines.contains(&"z"), "{text}");
        assert_eq!(wrap(" \n "), "");
        // No line ends between an amount and its currency.
        assert_eq!(wrap("20,00\u{a0}$"), "20,00\u{a0}$");
    }
}
