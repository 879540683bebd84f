//! What the mails say in one language.

use crate::accounts::NumberFormat;

/// The text of one kind of mail. Names in braces are replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailTemplate {
    /// The subject, with `{product}`: the name of the service.
    pub subject: String,
    /// The request that caused the mail, with `{product}` and `{address}`. A receipt also has `{item}`, `{price}`,
    /// `{date}` and `{order}`.
    pub request: String,
    /// The effect of the link.
    pub link: String,
    /// Information before the link is opened.
    pub hint: String,
    /// The effect of ignoring the mail.
    pub ignore: String,
}

/// The text of all mails in one language. The default is English.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailTexts {
    /// Tag of the language.
    pub language: String,
    /// Whether the language is written from right to left.
    pub is_right_to_left: bool,
    /// Numbers and amounts of money.
    pub numbers: NumberFormat,
    /// The first line.
    pub greeting: String,
    /// To an address without an account.
    pub verify: MailTemplate,
    /// The link that issues a new key.
    pub recover: MailTemplate,
    /// The link that signs in.
    pub sign_in: MailTemplate,
    /// The receipt of a payment.
    pub receipt: MailTemplate,
    /// A pack as the item of a receipt, with `{credits}`.
    pub pack: String,
    /// A month of a plan as the item of a receipt, with `{plan}` and `{credits}`.
    pub plan: String,
}

impl Default for MailTexts {
    fn default() -> Self {
        let template = |[subject, request, link, hint, ignore]: [&str; 5]| MailTemplate {
            subject: subject.to_owned(),
            request: request.to_owned(),
            link: link.to_owned(),
            hint: hint.to_owned(),
            ignore: ignore.to_owned(),
        };
        Self {
            language: "en".to_owned(),
            is_right_to_left: false,
            numbers: NumberFormat::default(),
            greeting: "Hello,".to_owned(),
            verify: template(VERIFY),
            recover: template(RECOVER),
            sign_in: template(SIGN_IN),
            receipt: template(RECEIPT),
            pack: "{credits} credits".to_owned(),
            plan: "one month of the plan {plan}, with {credits} credits".to_owned(),
        }
    }
}

const VERIFY: [&str; 5] = [
    "Your {product} account: please confirm this address",
    "We received a request for an account at {product} ({address}) with this address.",
    "Open this link to confirm the address and get your API key:",
    "It works once, within 24 hours. The key is shown once: have a safe place for it ready.",
    "If that was not you, please ignore this email: without the link, nothing happens.",
];
const RECOVER: [&str; 5] = [
    "Your {product} account: a new API key",
    "We received a request for a new API key for your account at {product} ({address}).",
    "Open this link and press the button there:",
    "It works once, within 24 hours. Your credits stay; all API keys that you have now stop working when the new one \
     is shown.",
    "If that was not you, please ignore this email: nothing changes, and your keys keep working.",
];
const SIGN_IN: [&str; 5] = [
    "Sign in to {product}",
    "We received a request to sign in to your account at {product} ({address}).",
    "Open this link and press the button there:",
    "It works once, within 30 minutes. Your API keys do not change.",
    "If that was not you, please ignore this email: nothing happens without the link.",
];
const RECEIPT: [&str; 5] = [
    "Your receipt from {product}",
    "We received your payment at {product} ({address}). You bought {item}. Price: {price}. Ordered on {date}. Order: \
     {order}.",
    "The order and its receipt are on this page of your account:",
    "If the payment is refunded, the page shows the amount.",
    "If you did not buy this, please write to the operator of the service.",
];
