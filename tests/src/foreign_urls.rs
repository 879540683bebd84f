//! URLs that the response of a platform must not lead to, and a listener that counts connections.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::Result;

/// A listener on loopback to which no client may connect.
#[derive(Debug)]
pub struct ConnectionTrap {
    listener: TcpListener,
}

impl ConnectionTrap {
    /// Binds a free port.
    ///
    /// # Errors
    /// There is none.
    pub fn bind() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener })
    }

    /// The port.
    ///
    /// # Errors
    /// The listener has no address.
    pub fn port(&self) -> Result<u16> {
        Ok(self.listener.local_addr()?.port())
    }

    /// The number of connections since the last call.
    pub fn connections(&self) -> usize {
        std::iter::from_fn(|| self.listener.accept().ok()).count()
    }
}

/// URLs that are not on `host`, or that reach it in another way than https on its port, without a user name.
///
/// Those with `port` lead to a [`ConnectionTrap`].
pub fn foreign_urls(host: &str, port: u16) -> Vec<String> {
    let mut urls = Vec::new();
    for address in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0.0.0.0",
        "localhost",
        "localhost.",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.169.254",
        "169.254.169.254.",
        "[::]",
        "[::1]",
        "[::127.0.0.1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::169.254.169.254]",
        "[fd00:ec2::254]",
        "[fe80::1]",
        // Digits and dots of other scripts, which are mapped to ASCII.
        "１２７.0.0.1",
        "①②⑦.⓪.⓪.①",
        "127。0。0。1",
        "ｌｏｃａｌｈｏｓｔ",
    ] {
        urls.extend(["https", "http"].map(|scheme| format!("{scheme}://{address}/")));
        urls.push(format!("https://{address}:{port}/"));
        urls.push(format!("https://{host}@{address}:{port}/"));
    }
    urls.extend(look_alikes(host).map(|host| format!("https://{host}/")));
    urls.extend([
        format!("http://{host}/"),
        format!("ftp://{host}/"),
        format!("ws://{host}/"),
        format!("https://{host}:80/"),
        format!("https://{host}:{port}/"),
        format!("https://{host}./"),
        format!("https://me@{host}/"),
        format!("https://:secret@{host}/"),
        format!("https://me:secret@{host}/"),
        format!("https://{host}:443@127.0.0.1:{port}/"),
        format!("https://{host}%2f@127.0.0.1:{port}/"),
        format!("https://{host}%00@127.0.0.1:{port}/"),
        format!("https://127.0.0.1:{port}\\@{host}/"),
        format!("https://127.0.0.1:{port}#@{host}/"),
        format!("https://127.0.0.1:{port}?@{host}/"),
        format!("//127.0.0.1:{port}/{host}/"),
        format!("\\\\127.0.0.1:{port}\\{host}"),
        format!("https:\\\\127.0.0.1:{port}/"),
    ]);
    urls.extend(
        ["https://captions.example/", "//captions.example/", "file:///etc/hostname", "data:text/vtt,WEBVTT"]
            .map(str::to_owned),
    );
    urls
}

/// Hosts that look like this one.
fn look_alikes(host: &str) -> impl Iterator<Item = String> {
    // Only the registered domain counts: a name below it belongs to the platform, however odd.
    let start = host.rmatch_indices('.').nth(1).map_or(0, |(dot, _)| dot + 1);
    let (prefix, domain) = host.split_at(start);
    let below = |domain: &str| format!("{prefix}{domain}");
    let mut found = vec![
        format!("{host}.evil.example"),
        format!("{host}。evil。example"),
        format!("{host}．evil．example"),
        format!("{host}%2eevil.example"),
        format!("{host}\u{2024}evil.example"),
        // An invisible character is removed, so the next label belongs to the name.
        format!("{host}\u{200b}.evil.example"),
        format!("{host}\u{ad}.evil.example"),
        // A slash of another script is no end of the host.
        format!("{host}\u{2044}.evil.example"),
        format!("{host}\u{2215}evil.example"),
        format!("evil{domain}"),
        below(&format!("evil{domain}")),
        below(&format!("evil-{domain}")),
        below(&format!("xn--{domain}")),
        // A combining accent, and a name with a label less or more.
        format!("{host}\u{301}"),
        format!("a.b.{host}.example"),
    ];
    // Cyrillic and Greek letters, and a dotless i.
    for (from, to) in
        [("o", "\u{43e}"), ("t", "\u{442}"), ("c", "\u{441}"), ("i", "\u{131}"), ("o", "\u{3bf}")]
    {
        found.push(below(&domain.replacen(from, to, 1)));
    }
    found.retain(|found| found != host);
    found.into_iter()
}
