//! Servers that name each other.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

use super::stage::{OTHER, VIDEO};
use crate::server::{
    harness::{Server, keys},
    platform::{fetches, platform, settings},
};

/// An address that is known before the server behind it is there.
struct Door {
    url: String,
    behind: watch::Sender<Option<String>>,
    _tasks: JoinSet<()>,
}

impl Door {
    async fn open() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let (behind, server) = watch::channel(None::<String>);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut here, _)) = listener.accept().await {
                let mut server = server.clone();
                connections.spawn(async move {
                    let Ok(address) = server.wait_for(Option::is_some).await.map(|found| found.clone())
                    else {
                        return;
                    };
                    if let Ok(mut there) = TcpStream::connect(address.unwrap_or_default()).await {
                        // Either side may leave.
                        let _ = copy_bidirectional(&mut here, &mut there).await;
                    }
                });
            }
        });
        Ok(Self { url, behind, _tasks: tasks })
    }
}

/// How long a circle may take to be noticed: far less than anybody waits for a fetch.
const SOON: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_that_name_each_other_do_not_wait_for_each_other() -> Result<()> {
    let proxy = platform(&[VIDEO], Duration::ZERO)?;
    let (first_data, second_data) = (TempDir::new()?, TempDir::new()?);
    let (first_key, second_key) = (keys(&first_data, 1)?.remove(0), keys(&second_data, 1)?.remove(0));
    let door = Door::open().await?;
    // The first one has no source but the second one; that one would ask the first before the platform.
    let first = Server::start(
        &first_data,
        &[
            ("VERBATIM_SERVICE__BASE_URL", &door.url),
            ("VERBATIM_SERVICE__API_KEY", &second_key),
            ("VERBATIM_SUPPLIERS__VIDEO_SITE", "verbatim-service"),
        ],
    )?;
    let first_url = format!("http://{}", first.address());
    let own = settings(&proxy);
    let mut second: Vec<_> = own.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    second.extend([
        ("VERBATIM_SERVICE__BASE_URL", first_url.as_str()),
        ("VERBATIM_SERVICE__API_KEY", &first_key),
        ("VERBATIM_SUPPLIERS__VIDEO_SITE", "verbatim-service,youtube-captions"),
    ]);
    let second = Server::start(&second_data, &second)?;
    door.behind.send_replace(Some(second.address().to_owned()));

    let began = Instant::now();
    let found = first.get_as(&first_key, &format!("/api/transcript?v={VIDEO}")).await?.json();
    assert_eq!(
        (&found["available"], &found["source"]),
        (&json!(true), &json!("youtube-captions")),
        "{found}"
    );
    assert_eq!(fetches(&proxy, VIDEO), 1);
    // What neither has is told by both, and soon; whoever is asked first.
    let none = first.get_as(&first_key, &format!("/api/transcript?v={OTHER}")).await?.json();
    assert_eq!(none["failureReason"], json!("fetch_error"), "{none}");
    let none = second.get_as(&second_key, "/api/transcript?v=dyke-walk-2").await?.json();
    assert_eq!((&none["available"], &none["key"]["used"]), (&json!(false), &json!(1)), "{none}");
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    Ok(())
}
