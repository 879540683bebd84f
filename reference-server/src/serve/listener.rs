//! The listening socket: at an address, or in the file system.

#[cfg(unix)]
use std::{fs, os::unix::fs::MetadataExt as _, os::unix::fs::PermissionsExt as _, path::Path, path::PathBuf};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
};

use tokio::net::{TcpListener, TcpStream};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};

use crate::config::{FileMode, ListenAddress};

/// A listening socket.
#[derive(Debug)]
pub(crate) enum Listener {
    /// At an address.
    Tcp(TcpListener),
    /// In the file system.
    #[cfg(unix)]
    Unix(UnixListener, SocketFile),
}

/// An accepted connection, and the address of the peer.
#[derive(Debug)]
pub(super) enum Accepted {
    Tcp(TcpStream, IpAddr),
    /// Of a program on this machine.
    #[cfg(unix)]
    Unix(UnixStream, IpAddr),
}

impl Listener {
    /// Listens; also returns the address with the port that the system chose.
    ///
    /// A socket file that a dead server left is replaced.
    ///
    /// # Errors
    /// The address is in use or not permitted, or the path is not that of a socket.
    pub(crate) async fn bind(requested: &ListenAddress, mode: FileMode) -> io::Result<(Self, ListenAddress)> {
        match requested {
            ListenAddress::Tcp(address) => {
                let (listener, address) = Self::bind_tcp(*address).await?;
                Ok((listener, ListenAddress::Tcp(address)))
            }
            #[cfg(unix)]
            ListenAddress::Unix(path) => {
                let (listener, file) = bind_unix(path, mode)?;
                Ok((Self::Unix(listener, file), requested.clone()))
            }
            #[cfg(not(unix))]
            ListenAddress::Unix(_) => {
                let _ = mode;
                Err(io::ErrorKind::Unsupported.into())
            }
        }
    }

    /// Listens at an address; also returns it with the port that the system chose.
    ///
    /// # Errors
    /// The address is in use or not permitted.
    pub(crate) async fn bind_tcp(address: SocketAddr) -> io::Result<(Self, SocketAddr)> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok((Self::Tcp(listener), address))
    }

    /// Refuses further connections; those that are established can be accepted.
    ///
    /// An address cannot do that before it is closed.
    pub(super) fn refuse(&mut self) {
        #[cfg(unix)]
        if let Self::Unix(_, file) = self {
            file.remove();
        }
    }

    pub(super) async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Tcp(listener) => {
                listener.accept().await.map(|(stream, peer)| Accepted::Tcp(stream, peer.ip()))
            }
            #[cfg(unix)]
            Self::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                Ok(Accepted::Unix(stream, Ipv4Addr::LOCALHOST.into()))
            }
        }
    }
}

/// The file of a unix socket. Drop removes it, unless another server replaced it.
#[cfg(unix)]
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Device and number of the file.
    inode: (u64, u64),
}

#[cfg(unix)]
impl Drop for SocketFile {
    fn drop(&mut self) {
        self.remove();
    }
}

#[cfg(unix)]
impl SocketFile {
    fn remove(&self) {
        if inode(&self.path).is_ok_and(|inode| inode == self.inode)
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(%error, path = %self.path.display(), "socket file not removed");
        }
    }
}

#[cfg(unix)]
fn inode(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|file| (file.dev(), file.ino()))
}

/// Listens at a path of the file system.
///
/// The socket gets its permissions under another name, so that no other user connects before.
#[cfg(unix)]
fn bind_unix(path: &Path, FileMode(mode): FileMode) -> io::Result<(UnixListener, SocketFile)> {
    check_unused(path)?;
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let new = PathBuf::from(name);
    let _ = fs::remove_file(&new);
    let listener = UnixListener::bind(&new)?;
    let listening = fs::set_permissions(&new, fs::Permissions::from_mode(mode))
        .and_then(|()| inode(&new))
        .and_then(|inode| fs::rename(&new, path).map(|()| inode));
    match listening {
        Ok(inode) => Ok((listener, SocketFile { path: path.to_owned(), inode })),
        Err(error) => {
            let _ = fs::remove_file(&new);
            Err(error)
        }
    }
}

/// Checks that the path is free, or a socket on which no program listens.
#[cfg(unix)]
fn check_unused(path: &Path) -> io::Result<()> {
    use std::os::unix::{fs::FileTypeExt as _, net::UnixStream};
    match fs::symlink_metadata(path) {
        Ok(file) if file.file_type().is_socket() => match UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
            Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
            Err(error) => Err(error),
        },
        Ok(_) => Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is a file that is not a socket")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn unix_listener_replaces_dead_socket_and_removes_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let address = ListenAddress::Unix(path.clone());
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let (listener, _) = Listener::bind(&address, FileMode(0o620)).await.unwrap();
        assert_eq!(fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o777, 0o620);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let second = Listener::bind(&address, FileMode(0o660)).await.unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::AddrInUse);
        drop(listener);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn unix_listener_leaves_files_of_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let address = ListenAddress::Unix(path.clone());
        let (listener, _) = Listener::bind(&address, FileMode(0o660)).await.unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "text").unwrap();
        drop(listener);
        assert!(Listener::bind(&address, FileMode(0o660)).await.is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "text");
    }
}
