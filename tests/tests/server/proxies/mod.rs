//! Real proxies in front of the server, with the configurations of `deploy`: shared caches and load balancers.

mod balancing;
mod forwarding;
mod shared_caches;
mod stale;

use std::{
    fs::{self, File},
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use http::Method;
use tempfile::TempDir;

use super::harness::{HttpClient, ServerReply, http_client, send_with};
use crate::install::installed;

/// Timeout of the start and the stop of a proxy.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The programs are in folders that only root has in its path.
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A port that is free: these programs do not report a port that the system chose.
///
/// It is below the ports that Linux gives to other sockets, which could take it until the program listens.
fn free_port() -> Result<u16> {
    static CHOSEN: AtomicU32 = AtomicU32::new(0);
    let mut ports =
        (0..12_000).map(|_| std::process::id().wrapping_add(CHOSEN.fetch_add(1, Relaxed)) % 12_000);
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    ports.find_map(|port| u16::try_from(20_000 + port).ok().filter(is_free)).context("no port is free")
}

/// An example of the folder `deploy`, with these texts replaced. Each must occur in it.
fn example(name: &str, replaced: &[(&str, &str)]) -> Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(name);
    let mut text = fs::read_to_string(path)?;
    for (old, new) in replaced {
        ensure!(text.contains(old), "{name} does not contain {old}");
        text = text.replace(old, new);
    }
    Ok(text)
}

/// A running proxy. Dropping it stops it.
struct ProxyFixture {
    child: Child,
    address: String,
    client: HttpClient,
    folder: TempDir,
}

impl ProxyFixture {
    /// Starts Varnish with this configuration.
    async fn varnish(port: u16, vcl: &str) -> Result<Self> {
        let folder = TempDir::new()?;
        let file = folder.path().join("verbatim.vcl");
        fs::write(&file, vcl)?;
        let mut command = program("varnishd")?;
        command.arg("-F").args(["-j", "none", "-s", "malloc,64m", "-a", &format!("127.0.0.1:{port}")]);
        command.arg("-f").arg(&file).arg("-n").arg(folder.path().join("work"));
        Self::start(command, port, folder).await
    }

    /// Starts nginx with this part of its configuration.
    async fn nginx(port: u16, site: &str) -> Result<Self> {
        let folder = TempDir::new()?;
        let place = folder.path().display();
        fs::write(folder.path().join("verbatim.conf"), site)?;
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .iter()
            .map(|name| format!("{name}_temp_path {place}/{name};\n"))
            .collect();
        // The folder belongs to the user of the test.
        let user = if rustix::process::getuid().is_root() { "user root;\n" } else { "" };
        let main = format!(
            "{user}daemon off;\nworker_processes 2;\npid {place}/pid;\nerror_log stderr warn;\n\
             events {{ worker_connections 512; }}\nhttp {{\naccess_log {place}/access;\n{temporary}include {place}/verbatim.conf;\n}}\n"
        );
        let file = folder.path().join("nginx.conf");
        fs::write(&file, main)?;
        let mut command = program("nginx")?;
        command.args(["-e", "stderr", "-p"]).arg(folder.path()).arg("-c").arg(&file);
        Self::start(command, port, folder).await
    }

    /// Starts `HAProxy` with this configuration.
    async fn haproxy(port: u16, configuration: &str) -> Result<Self> {
        let folder = TempDir::new()?;
        let file = folder.path().join("haproxy.cfg");
        fs::write(&file, configuration)?;
        let mut command = program("haproxy")?;
        command.args(["-db", "-f"]).arg(&file);
        Self::start(command, port, folder).await
    }

    /// Starts Caddy with this configuration.
    async fn caddy(port: u16, configuration: &str) -> Result<Self> {
        let folder = TempDir::new()?;
        let file = folder.path().join("Caddyfile");
        fs::write(&file, format!("{{\n\tadmin off\n}}\n{configuration}"))?;
        let mut command = program("caddy")?;
        command.args(["run", "--adapter", "caddyfile", "--config"]).arg(&file);
        command.env("HOME", folder.path());
        Self::start(command, port, folder).await
    }

    async fn start(mut command: Command, port: u16, folder: TempDir) -> Result<Self> {
        let log = folder.path().join("log");
        let output = File::create(&log)?;
        let child = command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).spawn()?;
        let mut proxy = Self { child, address: format!("127.0.0.1:{port}"), client: http_client(), folder };
        let deadline = Instant::now() + TIMEOUT;
        while !proxy.send(Method::GET, "/healthz", &[]).await.is_ok_and(|reply| reply.status == 200) {
            let ended = proxy.child.try_wait()?;
            if ended.is_some() || Instant::now() > deadline {
                bail!("the proxy does not serve: {ended:?} {}", fs::read_to_string(&log)?);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(proxy)
    }

    async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> Result<ServerReply> {
        send_with(&self.client, &self.address, method, path, headers, "").await
    }

    async fn get(&self, path: &str) -> Result<ServerReply> {
        self.send(Method::GET, path, &[]).await
    }

    /// What the proxy wrote.
    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for ProxyFixture {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        // Its workers end with it.
        let _ = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        let deadline = Instant::now() + TIMEOUT;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A proxy program. The first call installs all.
fn program(name: &str) -> Result<Command> {
    installed("proxies")?;
    let path = std::env::split_paths(SYSTEM_PATH).map(|folder| folder.join(name)).find(|file| file.exists());
    let mut command = Command::new(path.with_context(|| format!("there is no {name}"))?);
    command.env("PATH", SYSTEM_PATH);
    Ok(command)
}
