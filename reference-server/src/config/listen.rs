//! Where the server listens.

use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use super::{
    layers::RawSettings,
    value::{ParseSetting, word},
};

/// Prefix of a path.
const UNIX: &str = "unix:";
/// Longest path of a unix socket, in bytes: the smallest limit of the systems is 103, and it is created under a longer
/// name.
const PATH_BYTES_MAX: usize = 90;

/// Where the server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListenAddress {
    /// At an address and port.
    Tcp(SocketAddr),
    /// At a unix socket, for a proxy on the same machine.
    Unix(PathBuf),
}

impl ListenAddress {
    /// The address and port. A unix socket serves callers of every address, so its address is unspecified.
    pub(crate) fn socket_address(&self) -> SocketAddr {
        match self {
            Self::Tcp(address) => *address,
            Self::Unix(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        }
    }

    /// The path of a unix socket.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Tcp(_) => None,
            Self::Unix(path) => Some(path),
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "{UNIX}{}", path.display()),
        }
    }
}

impl ParseSetting for ListenAddress {
    const ALLOWED: &'static str =
        "an IP address and a port, such as 127.0.0.1:8080 or [::]:8080, or unix: and an absolute path";

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        let text = String::read(raw)?;
        let Some(path) = text.strip_prefix(UNIX) else {
            return text.parse().map(Self::Tcp).map_err(|_| None);
        };
        if !cfg!(unix) {
            return Err(Some("this system has no unix sockets".to_owned()));
        }
        if path.len() > PATH_BYTES_MAX {
            return Err(Some(format!("the path is longer than {PATH_BYTES_MAX} bytes")));
        }
        let path = PathBuf::from(path);
        if path.is_absolute() && path.file_name().is_some() { Ok(Self::Unix(path)) } else { Err(None) }
    }

    fn show(&self) -> String {
        self.to_string().show()
    }
}

/// Permissions of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileMode(pub(crate) u32);

impl ParseSetting for FileMode {
    const ALLOWED: &'static str = "an octal number such as \"660\"";

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        // Digits without quotes are octal as well, and TOML writes such numbers as 0o660.
        let text = word(raw)?;
        let mode = u32::from_str_radix(text.strip_prefix("0o").unwrap_or(text), 8).map_err(|_| None)?;
        if mode <= 0o777 { Ok(Self(mode)) } else { Err(None) }
    }

    fn show(&self) -> String {
        format!("\"{:03o}\"", self.0)
    }
}
