//! How the platforms and other services are reached.

use std::{path::PathBuf, time::Duration};

use super::{
    layers::Raw,
    reader::Reader,
    value::{SecretUrl, Setting},
};

/// `upstream.*`
#[derive(Clone, Debug)]
pub struct Upstream {
    /// `upstream.proxy`: the proxies through which platforms are reached, used in turn.
    pub proxies: Vec<ProxyUrl>,
    /// `upstream.ca_file`: extra root certificates, as PEM.
    pub ca_file: Option<PathBuf>,
    /// `upstream.timeout`: how long one request to a platform may take.
    pub timeout: Duration,
    /// `upstream.retries`: how often a request that failed in passing is repeated.
    pub retries: u32,
    /// `upstream.concurrency`: how many requests to platforms run at once.
    pub concurrency: u32,
}

impl Upstream {
    /// Reads the section.
    pub fn read(reader: &mut Reader<'_>) -> Self {
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

impl Setting for ProxyUrl {
    const ALLOWED: &'static str = "one or several proxies such as http://host:3128 or socks5://host:1080";
    const SECRET: bool = true;

    fn read(raw: &Raw) -> Result<Self, Option<String>> {
        SecretUrl::read(raw, &["http", "https", "socks5", "socks5h"]).map(Self)
    }

    fn show(&self) -> String {
        self.0.redacted().show()
    }
}

/// `youtube.*`
#[derive(Clone, Debug)]
pub struct Youtube {
    /// `youtube.clients`: the client identities to try, in order; when absent, those built in.
    pub clients: Option<Vec<String>>,
}

impl Youtube {
    /// Reads the section.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        Self { clients: reader.optional("youtube.clients") }
    }
}

/// `x.*`
#[derive(Clone, Debug)]
pub struct X {
    /// `x.query_id`: the query that gives one post; when absent, the one built in.
    pub query_id: Option<String>,
    /// `x.features`: the switches that it is asked with; when absent, those built in.
    pub features: Option<Vec<String>>,
}

impl X {
    /// Reads the section.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        Self { query_id: reader.optional("x.query_id"), features: reader.optional("x.features") }
    }
}

/// `ytdlp.*`
#[derive(Clone, Debug)]
pub struct Ytdlp {
    /// `ytdlp.program`: the path of yt-dlp.
    pub program: Option<PathBuf>,
}

impl Ytdlp {
    /// Reads the section.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        Self { program: reader.optional("ytdlp.program") }
    }
}
