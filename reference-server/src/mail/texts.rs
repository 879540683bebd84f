//! The text of the mails, from the messages of the pages.

use transcript_core::accounts::mail::{MailTemplate, MailTexts};

use crate::messages::{Messages, number_format};

/// The text of the mails in these languages. A message that a language does not have is in the first one's.
pub(crate) fn mail_texts(languages: &[Messages]) -> Vec<MailTexts> {
    let first = languages.first();
    let texts = |messages: &Messages| {
        let find = |key| messages.find(key).or_else(|| first?.find(key)).unwrap_or_default().to_owned();
        texts_for(messages, &find)
    };
    languages.iter().map(texts).collect()
}

fn texts_for(messages: &Messages, find: &impl Fn(&'static str) -> String) -> MailTexts {
    let template = |[subject, request, link, hint, ignore]: [&'static str; 5]| MailTemplate {
        subject: find(subject),
        request: find(request),
        link: find(link),
        hint: find(hint),
        ignore: find(ignore),
    };
    MailTexts {
        language: messages.tag.clone(),
        is_right_to_left: messages.is_right_to_left,
        numbers: number_format(find),
        greeting: find("mail.greeting"),
        verify: template([
            "mail.verify_subject",
            "mail.verify_request",
            "mail.verify_link",
            "mail.verify_hint",
            "mail.verify_ignore",
        ]),
        recover: template([
            "mail.recover_subject",
            "mail.recover_request",
            "mail.recover_link",
            "mail.recover_hint",
            "mail.recover_ignore",
        ]),
        sign_in: template([
            "mail.sign_in_subject",
            "mail.sign_in_request",
            "mail.sign_in_link",
            "mail.sign_in_hint",
            "mail.sign_in_ignore",
        ]),
        receipt: template([
            "mail.receipt_subject",
            "mail.receipt_request",
            "mail.receipt_link",
            "mail.receipt_hint",
            "mail.receipt_ignore",
        ]),
        pack: find("mail.pack"),
        plan: find("mail.plan"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mail_texts_english_is_default_of_library() {
        let texts = mail_texts(&Messages::built_in());
        assert_eq!(texts.first(), Some(&MailTexts::default()));
        let tags: Vec<&str> = texts.iter().map(|texts| texts.language.as_str()).collect();
        assert_eq!(tags, ["en", "de", "es", "fr", "ja", "ar"]);
        // As on the pages.
        let price = |index: usize| texts[index].numbers.price(123_405, "usd");
        let spaced = "1\u{a0}234,05\u{a0}";
        let expected = ["$1,234.05", "1.234,05\u{a0}$", &format!("{spaced}US$"), &format!("{spaced}$US")];
        assert_eq!([0, 1, 2, 3].map(price), expected);
        assert_eq!([4, 5].map(price), ["$1,234.05"; 2]);
    }

    #[test]
    fn mail_texts_of_partial_language_fall_back_to_english() {
        let head = "[language]\ntag = \"pt\"\nname = \"P\"\ndirection = \"ltr\"\n";
        let partial = format!("{head}[mail]\ngreeting = \"Olá,\"\n[frame]\nthousands = \".\"\n");
        let partial = Messages::parse(&partial).unwrap();
        let mut languages = Messages::built_in();
        Messages::extend(&mut languages, &[partial]);
        let texts = mail_texts(&languages).pop().unwrap();
        assert_eq!((texts.language.as_str(), texts.greeting.as_str()), ("pt", "Olá,"));
        assert_eq!(texts.verify, MailTexts::default().verify);
        // Not "$1.234.05".
        assert_eq!(texts.numbers.price(123_405, "usd"), "$1,234.05");
    }
}
