//! Settings of the mail server.

use lettre::{Address, message::Mailbox};
use percent_encoding::percent_decode_str;
use url::{Host, Url};

use super::{
    layers::RawSettings,
    value::{ParseSetting, Secret, SecretUrl},
};

/// Folder in the data folder that receives mails if no mail server is set.
pub(crate) const OUTBOX_FOLDER: &str = "outbox";

/// `mail.*`
#[derive(Clone, Debug, Default)]
pub(crate) struct MailSettings {
    /// `mail.smtp_url`: the mail server. If unset, mails are written to a folder.
    pub(crate) smtp_url: Option<SmtpUrl>,
    /// `mail.from`: sender address, such as `Verbatim <no-reply@example.org>`.
    pub(crate) from: Option<Mailbox>,
}

impl MailSettings {
    /// Returns the sender, or a default if it is not set.
    pub(crate) fn sender(&self) -> Mailbox {
        self.from.clone().unwrap_or_else(|| {
            // Both parts are valid.
            let address = Address::new_dangerous("verbatim", "localhost");
            Mailbox::new(Some("Verbatim".to_owned()), address)
        })
    }
}

impl ParseSetting for Mailbox {
    const ALLOWED: &'static str =
        "an address such as no-reply@example.org, or \"Verbatim <no-reply@example.org>\"";

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        let text = String::read(raw)?;
        if text.contains(char::is_control) { Err(None) } else { text.parse().map_err(|_| None) }
    }

    fn show(&self) -> String {
        self.to_string().show()
    }
}

/// Encryption of the connection to the mail server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SmtpSecurity {
    /// `smtps://`: TLS from the first byte.
    Tls,
    /// `smtp://…?tls=required`: STARTTLS; fails without it.
    StartTls,
    /// `smtp://…?tls=opportunistic`: STARTTLS if the server offers it.
    StartTlsIfOffered,
    /// `smtp://`: unencrypted.
    None,
}

/// Address of a mail server in lettre's syntax:
/// `smtps://USER:PASSWORD@HOST:PORT/EHLO-NAME`, or `smtp://` with `?tls=required`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SmtpUrl {
    shown: String,
    /// Host name or address, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Encryption.
    pub(crate) security: SmtpSecurity,
    /// User name and password.
    pub(crate) credentials: Option<(String, Secret)>,
    /// EHLO name.
    pub(crate) greeting: Option<String>,
}

impl SmtpUrl {
    /// Whether mails and the password can be read in transit.
    pub(crate) fn is_exposed(&self) -> bool {
        let address = self.host.parse::<std::net::IpAddr>();
        let here = self.host == "localhost" || address.is_ok_and(|address| address.is_loopback());
        !here && matches!(self.security, SmtpSecurity::None | SmtpSecurity::StartTlsIfOffered)
    }

    fn new(url: &Url, shown: String) -> Result<Self, String> {
        let security = security(url)?;
        let host = match url.host() {
            Some(Host::Domain(name)) if !name.is_empty() => name.to_owned(),
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => address.to_string(),
            _ => return Err("it has no host".to_owned()),
        };
        let port = url.port().unwrap_or(match security {
            SmtpSecurity::Tls => 465,
            SmtpSecurity::StartTls | SmtpSecurity::StartTlsIfOffered => 587,
            SmtpSecurity::None => 25,
        });
        let decoded = |text: &str| {
            let text = percent_decode_str(text).decode_utf8().map_err(|_| "it is not UTF-8".to_owned())?;
            let fits = !text.is_empty() && !text.contains(char::is_control);
            fits.then(|| text.into_owned())
                .ok_or_else(|| "a part is empty or has control characters".to_owned())
        };
        let credentials = match (url.username(), url.password()) {
            ("", None) => None,
            (user, Some(password)) => Some((decoded(user)?, Secret::new(decoded(password)?))),
            (_, None) => return Err("it has a user name, but no password".to_owned()),
        };
        let greeting = match url.path().trim_matches('/') {
            "" => None,
            name if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-[]:".contains(&byte)) => {
                Some(name.to_owned())
            }
            _ => return Err("its path is not a valid EHLO name".to_owned()),
        };
        Ok(Self { shown, host, port, security, credentials, greeting })
    }
}

fn security(url: &Url) -> Result<SmtpSecurity, String> {
    let parameters: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    let tls = match parameters.as_slice() {
        [] => None,
        [(name, value)] if name == "tls" => Some(value.as_str()),
        _ => return Err("its only allowed parameter is tls".to_owned()),
    };
    match (url.scheme(), tls) {
        ("smtps", None) => Ok(SmtpSecurity::Tls),
        ("smtps", Some(_)) => Err("smtps always uses TLS: omit the tls parameter".to_owned()),
        (_, None) => Ok(SmtpSecurity::None),
        (_, Some("required")) => Ok(SmtpSecurity::StartTls),
        (_, Some("opportunistic")) => Ok(SmtpSecurity::StartTlsIfOffered),
        (_, Some(_)) => Err("tls must be required or opportunistic".to_owned()),
    }
}

impl ParseSetting for SmtpUrl {
    const ALLOWED: &'static str = "smtps://USER:PASSWORD@HOST or smtp://USER:PASSWORD@HOST?tls=required";
    const SECRET: bool = true;

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        let secret = SecretUrl::read(raw, &["smtp", "smtps"])?;
        let url = Url::parse(secret.reveal()).map_err(|_| None)?;
        // The query is not secret: it is a valid tls parameter.
        let query = url.query().map_or(String::new(), |query| format!("?{query}"));
        Self::new(&url, secret.redacted() + &query).map_err(Some)
    }

    fn show(&self) -> String {
        self.shown.show()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<SmtpUrl, Option<String>> {
        SmtpUrl::read(&RawSettings::Text(text.to_owned()))
    }

    #[test]
    fn smtp_url_is_parsed() {
        use SmtpSecurity::{None as Clear, StartTls, StartTlsIfOffered, Tls};
        for (text, host, port, security, user, greeting) in [
            ("smtps://me:p%40ss@mail.example", "mail.example", 465, Tls, Some(("me", "p@ss")), None),
            ("smtps://mail.example:4465/v.example", "mail.example", 4465, Tls, None, Some("v.example")),
            (
                "smtp://me%40x:p@mail.example?tls=required",
                "mail.example",
                587,
                StartTls,
                Some(("me@x", "p")),
                None,
            ),
            ("smtp://mail.example/?tls=opportunistic", "mail.example", 587, StartTlsIfOffered, None, None),
            ("smtp://[::1]:2525", "::1", 2525, Clear, None, None),
            ("smtp://127.0.0.1", "127.0.0.1", 25, Clear, None, None),
        ] {
            let url = read(text).unwrap();
            assert_eq!((url.host.as_str(), url.port, url.security), (host, port, security), "{text}");
            let credentials = url.credentials.as_ref().map(|(user, secret)| (user.as_str(), secret.reveal()));
            assert_eq!((credentials, url.greeting.as_deref()), (user, greeting), "{text}");
        }
    }

    #[test]
    fn smtp_url_invalid_is_refused_without_secret() {
        for text in [
            "http://mail.example",
            "smtp:mail.example",
            "smtp://",
            "smtp://me@mail.example",
            "smtp://:hush@mail.example",
            "smtp://mail.example?tls=maybe",
            "smtps://mail.example?tls=required",
            "smtp://mail.example?password=hush",
            "smtp://me:%ff@mail.example",
            "smtp://me:hu%0ash@mail.example",
            "smtp://mail.example/a%20b",
        ] {
            let detail = read(text).unwrap_err();
            assert!(!detail.is_some_and(|detail| detail.contains("hush")), "{text}");
        }
        let url = read("smtp://me:hush@mail.example?tls=required").unwrap();
        assert_eq!(url.show(), "\"smtp://me:…@mail.example?tls=required\"");
        assert!(!format!("{url:?}").contains("hush"));
    }

    #[test]
    fn smtp_url_remote_without_tls_is_exposed() {
        for (text, expect) in [
            ("smtp://mail.example", true),
            ("smtp://mail.example?tls=opportunistic", true),
            ("smtp://mail.example?tls=required", false),
            ("smtps://mail.example", false),
            ("smtp://localhost", false),
            ("smtp://127.0.0.1", false),
            ("smtp://[::1]", false),
        ] {
            assert_eq!(read(text).unwrap().is_exposed(), expect, "{text}");
        }
    }

    #[test]
    fn sender_name_is_optional() {
        for (text, expect) in [
            ("a@b.example", Some("\"a@b.example\"")),
            ("Verbatim <a@b.example>", Some("'Verbatim <a@b.example>'")),
            ("no-address", None),
            ("a@b.example\nBcc: x@y.example", None),
            ("", None),
        ] {
            let read = Mailbox::read(&RawSettings::Text(text.to_owned()))
                .ok()
                .map(|mailbox| ParseSetting::show(&mailbox));
            assert_eq!(read.is_some(), expect.is_some(), "{text}: {read:?}");
        }
        assert_eq!(MailSettings::default().sender().to_string(), "Verbatim <verbatim@localhost>");
    }
}
