//! Email addresses in normal form, for storage, comparison and delivery.

use email_address::{EmailAddress, Options};

/// The longest address, in characters (RFC 5321: a path of 256 with its brackets).
const LENGTH_MAX: usize = 254;

/// An email address in normal form: two spellings of one mailbox are one address.
///
/// White space around it is removed. The domain is converted to A-labels (`xn--…`), the form that mail servers
/// use, and the whole address to lower case: no major provider distinguishes `Ann@` from `ann@`, and a person
/// who could register both would have two free plans. Parts that only some providers ignore (`+tag`, dots) stay.
///
/// Besides addresses that violate RFC 5321, these are rejected: a domain without a dot or of digits, an address
/// literal (`[192.0.2.1]`), a quoted name, and a name beyond ASCII, which many mail servers do not support.
///
/// ```
/// use transcript_core::accounts::Email;
///
/// assert_eq!(Email::parse(" Ann@BÜCHER.example ")?.as_str(), "ann@xn--bcher-kva.example");
/// assert!(Email::parse("ann@localhost").is_err());
/// # Ok::<(), transcript_core::accounts::EmailError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Email(String);

// Addresses stay out of logs.
crate::display::debug_as!(Email, |_this| "Email(…)");

/// The text is not a usable email address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmailError;

crate::display::display!(EmailError, |_this| "email: give an email address such as name@example.org");

impl std::error::Error for EmailError {}

impl Email {
    /// Parses an address and normalizes it.
    ///
    /// # Errors
    /// [`EmailError`] for any other text.
    pub fn parse(text: &str) -> Result<Self, EmailError> {
        let text = text.trim();
        // Checked first, because a domain in A-labels is longer than its source text.
        if text.chars().count() > LENGTH_MAX {
            return Err(EmailError);
        }
        let (name, domain) = text.rsplit_once('@').ok_or(EmailError)?;
        let domain = idna::domain_to_ascii_strict(domain).map_err(|_| EmailError)?;
        let is_numeric =
            domain.rsplit('.').next().is_none_or(|last| last.bytes().all(|b| b.is_ascii_digit()));
        if !name.is_ascii() || name.starts_with('"') || is_numeric {
            return Err(EmailError);
        }
        let address = format!("{}@{domain}", name.to_ascii_lowercase());
        let rules = Options::default().without_display_text().without_domain_literal().with_required_tld();
        match EmailAddress::parse_with_options(&address, rules) {
            Ok(_) if address.len() <= LENGTH_MAX => Ok(Self(address)),
            _ => Err(EmailError),
        }
    }

    /// The address.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn email_spellings_of_one_mailbox_are_equal() {
        for (text, expect) in [
            ("ann@example.org", "ann@example.org"),
            ("  Ann.Lee+News@Example.ORG\n", "ann.lee+news@example.org"),
            ("ann@bücher.example", "ann@xn--bcher-kva.example"),
            ("ann@BÜCHER。example", "ann@xn--bcher-kva.example"),
            ("ann@xn--bcher-kva.example", "ann@xn--bcher-kva.example"),
            ("o'neil_{1}@mail.example.co.uk", "o'neil_{1}@mail.example.co.uk"),
        ] {
            assert_eq!(Email::parse(text).unwrap().as_str(), expect, "{text:?}");
        }
    }

    #[test]
    fn email_undeliverable_text_is_rejected() {
        let long_name = format!("{}@example.org", "a".repeat(65));
        let long = format!("a@{}example.org", "a.".repeat(130));
        for text in [
            "",
            "@",
            "ann",
            "ann@",
            "@example.org",
            "ann@@example.org",
            "ann@localhost",
            "ann@example..org",
            "ann@.org",
            "ann@example.org.",
            "ann@-example.org",
            "ann@exa mple.org",
            "ann lee@example.org",
            "ann..lee@example.org",
            ".ann@example.org",
            "\"ann\"@example.org",
            "Ann <ann@example.org>",
            "ann@[192.0.2.1]",
            "ann@192.0.2.1",
            "ünn@example.org",
            "ann@example.org\r\nBcc: bob@example.org",
            "ann\0@example.org",
            "ann@example.org,bob@example.org",
            &long_name,
            &long,
        ] {
            assert_eq!(Email::parse(text), Err(EmailError), "{text:?}");
        }
    }

    #[test]
    fn email_debug_hides_address() {
        assert_eq!(format!("{:?}", Email::parse("ann@example.org").unwrap()), "Email(…)");
    }

    proptest! {
        #[test]
        fn email_any_text_is_normalized_or_rejected(text in ".*|[a-zA-Z0-9.+]{1,9}@[a-zA-Zäß0-9.-]{1,20}") {
            if let Ok(email) = Email::parse(&text) {
                prop_assert_eq!(Email::parse(email.as_str()), Ok(email.clone()));
                prop_assert!(email.as_str().len() <= LENGTH_MAX && email.as_str().is_ascii());
                prop_assert!(!email.as_str().contains(|c: char| c.is_ascii_control() || c == ' '));
            }
        }
    }
}
