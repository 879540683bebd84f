//! The identities under which YouTube is called. Only this file contains their versions.
//!
//! The response depends on the client: the caption URLs of some need a proof-of-origin token, which Verbatim does not
//! have, some do not play videos made for children, and outdated versions are rejected. So several clients are tried
//! in order, and their versions are settings.

use std::{fmt, time::Duration};

use transcript_core::{Error, Result};

/// Maximum length of a version in bytes.
const VERSION_MAX: usize = 32;

/// Fixed properties of a known client.
#[derive(Debug, PartialEq, Eq)]
struct KnownClient {
    name: &'static str,
    context_name: &'static str,
    number: u32,
    version: &'static str,
    /// `{version}` marks the position of the version.
    user_agent: &'static str,
    device: ClientDevice,
}

/// The known clients, in their default order.
///
/// All three return caption URLs that need no proof-of-origin token. Context numbers, versions and device
/// fields are those that the clients themselves sent in the summer of 2026.
static KNOWN: [KnownClient; 3] = [
    KnownClient {
        name: "visionos",
        context_name: "VISIONOS",
        number: 101,
        version: "1.02",
        user_agent: "Mozilla/5.0 (Macintosh; Intel Mac OS X 15_7_3) AppleWebKit/605.1.15 \
                     (KHTML, like Gecko) Version/26.0 Safari/605.1.15",
        device: ClientDevice {
            make: Some("Apple"),
            model: Some("RealityDevice17,1"),
            os_name: "visionOS",
            os_version: "26.5.23O471",
            android_sdk: None,
        },
    },
    KnownClient {
        name: "android",
        context_name: "ANDROID",
        number: 3,
        version: "21.26.364",
        user_agent: "com.google.android.youtube/{version} (Linux; U; Android 11) gzip",
        device: ClientDevice {
            make: None,
            model: None,
            os_name: "Android",
            os_version: "11",
            android_sdk: Some(30),
        },
    },
    KnownClient {
        name: "ios",
        context_name: "IOS",
        number: 5,
        version: "21.26.4",
        user_agent: "com.google.ios.youtube/{version} (iPhone16,2; U; CPU iOS 18_3_2 like Mac OS X;)",
        device: ClientDevice {
            make: Some("Apple"),
            model: Some("iPhone16,2"),
            os_name: "iPhone",
            os_version: "18.3.2.22D82",
            android_sdk: None,
        },
    },
];

/// The client of the website, for lists of videos. Its caption URLs need a proof-of-origin token.
///
/// Version and fields are those that the site sent in the summer of 2026.
static WEB: KnownClient = KnownClient {
    name: "web",
    context_name: "WEB",
    number: 1,
    version: "2.20260708.00.00",
    user_agent: "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) \
                 Chrome/138.0.0.0 Safari/537.36",
    device: ClientDevice {
        make: None,
        model: None,
        os_name: "Windows",
        os_version: "10.0",
        android_sdk: None,
    },
};

/// The device of a client, as its requests describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClientDevice {
    pub(super) make: Option<&'static str>,
    pub(super) model: Option<&'static str>,
    pub(super) os_name: &'static str,
    pub(super) os_version: &'static str,
    pub(super) android_sdk: Option<u32>,
}

/// One of YouTube's own clients in one version, used as the identity of requests to YouTube.
///
/// ```
/// use upstream_reqwest::ClientIdentity;
///
/// let client = ClientIdentity::parse("android@21.30.100")?;
/// assert_eq!(client.name(), "android");
/// assert!(client.user_agent().contains("/21.30.100 "));
/// # Ok::<(), transcript_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientIdentity {
    known: &'static KnownClient,
    version: String,
    user_agent: String,
}

impl fmt::Display for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.known.name, self.version)
    }
}

impl ClientIdentity {
    /// Parses an entry of the setting `youtube.clients`.
    ///
    /// It is `visionos`, `android` or `ios`, in the version that is known to work or, as in `android@21.30.100`, in
    /// another one. The user agent contains the same version.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] when the client is unknown (the message lists the known
    /// ones) or the version has other characters than digits and dots.
    pub fn parse(text: &str) -> Result<Self> {
        let (name, version) = match text.trim().split_once('@') {
            Some((name, version)) => (name, Some(version)),
            None => (text.trim(), None),
        };
        let known = KNOWN.iter().find(|known| known.name.eq_ignore_ascii_case(name)).ok_or_else(unknown)?;
        let version = version.unwrap_or(known.version);
        if !is_version(version) {
            return Err(Error::invalid(format!(
                "youtube.clients: the version of {} must be digits and dots, such as {}",
                known.name, known.version
            )));
        }
        Ok(Self::new(known, version))
    }

    /// The default clients, in order.
    pub fn defaults() -> Vec<Self> {
        KNOWN.iter().map(|known| Self::new(known, known.version)).collect()
    }

    /// The client of the website in a version: the setting `youtube.web_version`.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] when the version has other characters than digits and dots.
    pub fn web(version: &str) -> Result<Self> {
        if !is_version(version) {
            let message = format!("youtube.web_version must be digits and dots, such as {}", WEB.version);
            return Err(Error::invalid(message));
        }
        Ok(Self::new(&WEB, version))
    }

    fn new(known: &'static KnownClient, version: &str) -> Self {
        Self {
            known,
            version: version.to_owned(),
            user_agent: known.user_agent.replace("{version}", version),
        }
    }

    /// The name in settings.
    pub fn name(&self) -> &str {
        self.known.name
    }

    /// The version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The user agent of all requests of this client.
    pub fn user_agent(&self) -> &str {
        &self.user_agent
    }

    /// The name in the context of its requests.
    pub(super) fn context_name(&self) -> &'static str {
        self.known.context_name
    }

    /// The number of the client in headers.
    pub(super) fn number(&self) -> u32 {
        self.known.number
    }

    /// Whether it lists every language that YouTube translates captions into; the others list up to 18 of 156.
    pub(super) fn lists_all_translations(&self) -> bool {
        self.known.name == "visionos"
    }

    pub(super) fn device(&self) -> ClientDevice {
        self.known.device
    }
}

fn is_version(text: &str) -> bool {
    let numeric = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.len() <= VERSION_MAX && text.split('.').all(numeric)
}

#[cold]
fn unknown() -> Error {
    let known: Vec<_> = KNOWN.iter().map(|known| known.name).collect();
    Error::invalid(format!("youtube.clients: unknown client; known are {}", known.join(", ")))
}

/// Options of the YouTube supplier: settings `youtube.*`.
#[derive(Clone, Debug, PartialEq, Eq, smart_default::SmartDefault)]
pub struct YouTubeOptions {
    /// The client identities, in order; at least one. By default all known ones, in the versions known to work.
    #[default(ClientIdentity::defaults())]
    pub clients: Vec<ClientIdentity>,
    /// The client identity of requests for lists of videos: [`ClientIdentity::web`].
    #[default(ClientIdentity::new(&WEB, WEB.version))]
    pub list_client: ClientIdentity,
    /// The pause between two requests for lists, of all callers together; a quarter longer or shorter at random.
    #[default(Duration::from_secs(1))]
    pub list_pause: Duration,
}

impl YouTubeOptions {
    /// Options with the entries of the setting, each parsed by [`ClientIdentity::parse`].
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] when the list is empty or an entry is invalid.
    pub fn with_clients<T: AsRef<str>>(clients: &[T]) -> Result<Self> {
        if clients.is_empty() {
            return Err(Error::invalid("youtube.clients must name at least one client"));
        }
        let clients = clients.iter().map(|text| ClientIdentity::parse(text.as_ref()));
        Ok(Self { clients: clients.collect::<Result<_>>()?, ..Self::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_setting_is_parsed() {
        for (text, expect) in
            [("visionos", "visionos@1.02"), (" Android ", "android@21.26.364"), ("ios@22.1.0", "ios@22.1.0")]
        {
            let client = ClientIdentity::parse(text).unwrap();
            assert_eq!(client.to_string(), expect);
            assert_eq!(ClientIdentity::parse(&client.to_string()).unwrap(), client);
        }
    }

    #[test]
    fn user_agent_contains_client_version() {
        for client in ClientIdentity::defaults() {
            assert!(!client.user_agent().contains('{'));
        }
        let client = ClientIdentity::parse("ios@22.1.0").unwrap();
        assert!(client.user_agent().starts_with("com.google.ios.youtube/22.1.0 ("));
    }

    #[test]
    fn client_setting_invalid_is_named() {
        for (text, word) in [
            ("web", "visionos, android, ios"),
            ("", "known are"),
            ("android@", "digits"),
            ("android@1..2", "digits"),
            ("android@latest", "digits"),
            ("android@1\r\nX: y", "digits"),
            ("ios@1234567890.1234567890.1234567890.1", "digits"),
        ] {
            let error = ClientIdentity::parse(text).unwrap_err();
            assert!(error.message().contains("youtube.clients"), "{error}");
            assert!(error.message().contains(word), "{text}: {error}");
        }
        assert!(
            ClientIdentity::web("2.20260708.00.00")
                .is_ok_and(|client| client == YouTubeOptions::default().list_client)
        );
        assert!(ClientIdentity::web("latest").unwrap_err().message().contains("youtube.web_version"));
        assert!(YouTubeOptions::with_clients::<&str>(&[]).is_err());
        assert!(YouTubeOptions::with_clients(&["ios", "tv"]).is_err());
        let options = YouTubeOptions::with_clients(&["visionos", "android", "ios"]).unwrap();
        assert_eq!(options, YouTubeOptions::default());
    }
}
