//! Settings of requests to platforms.

use std::{path::PathBuf, time::Duration};

use super::{
    layers::RawSettings,
    reader::SettingsReader,
    value::{ParseSetting, SecretUrl},
};

/// `upstream.*`
#[derive(Clone, Debug)]
pub struct UpstreamSettings {
    /// `upstream.proxy`: proxies, used in rotation.
    pub proxies: Vec<ProxyUrl>,
    /// `upstream.ca_file`: additional root certificates, as PEM.
    pub ca_file: Option<PathBuf>,
    /// `upstream.timeout`: timeout of one request.
    pub timeout: Duration,
    /// `upstream.retries`: number of retries after a transient failure.
    pub retries: u32,
    /// `upstream.concurrency`: maximum number of concurrent requests.
    pub concurrency: u32,
}

impl UpstreamSettings {
    /// Reads the section.
    pub fn read(reader: &mut SettingsReader<'_>) -> Self {
        let upstream = Self {
            proxies: reader.value("upstream.proxy", Vec::new()),
            ca_file: reader.optional("upstream.ca_file"),
            timeout: reader.duration(
                "upstream.timeout",
                Duration::from_secs(20),
                Duration::from_millis(100)..=Duration::from_secs(600),
            ),
            retries: reader.small("upstream.retries", 2, 0..=10),
            concurrency: reader.small("upstream.concurrency", 32, 1..=1_024),
        };
        if let Some(file) = upstream.ca_file.as_ref().filter(|file| !file.is_file()) {
            reader.refuse(
                "upstream.ca_file",
                &format!("there is no file {}", file.display()),
                "give the path of a PEM file",
            );
        }
        upstream
    }
}

/// The address of a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyUrl(pub SecretUrl);

impl ParseSetting for ProxyUrl {
    const ALLOWED: &'static str = "one or several proxies such as http://host:3128 or socks5://host:1080";
    const SECRET: bool = true;

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        SecretUrl::read(raw, &["http", "https", "socks5", "socks5h"]).map(Self)
    }

    fn show(&self) -> String {
        self.0.redacted().show()
    }
}

/// `youtube.*`
#[derive(Clone, Debug)]
pub struct YouTubeSettings {
    /// `youtube.clients`: client identities, in order. If unset, the built-in ones.
    pub clients: Option<Vec<String>>,
}

impl YouTubeSettings {
    /// Reads the section.
    pub fn read(reader: &mut SettingsReader<'_>) -> Self {
        Self { clients: reader.optional("youtube.clients") }
    }
}

/// `x.*`
#[derive(Clone, Debug)]
pub struct XSettings {
    /// `x.query_id`: id of the query that returns one post. If unset, the built-in one.
    pub query_id: Option<String>,
    /// `x.features`: feature switches of that query. If unset, the built-in ones.
    pub features: Option<Vec<String>>,
}

impl XSettings {
    /// Reads the section.
    pub fn read(reader: &mut SettingsReader<'_>) -> Self {
        Self { query_id: reader.optional("x.query_id"), features: reader.optional("x.features") }
    }
}

/// `ytdlp.*`
#[derive(Clone, Debug)]
pub struct YtDlpSettings {
    /// `ytdlp.program`: the path of yt-dlp.
    pub program: Option<PathBuf>,
}

impl YtDlpSettings {
    /// Reads the section.
    pub fn read(reader: &mut SettingsReader<'_>) -> Self {
        Self { program: reader.optional("ytdlp.program") }
    }
}
