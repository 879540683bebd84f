//! Two servers that are each other's suppliers.

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

use super::fixture::{OTHER, VIDEO};
use crate::server::{
    harness::{ServerFixture, create_keys},
    platform::{fetch_count, serve_platform, start_platform},
};

/// An address that is known before the server behind it runs.
struct LoopGate {
    url: String,
    server_address: watch::Sender<Option<String>>,
    _tasks: JoinSet<()>,
}

impl LoopGate {
    async fn open() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let (server_address, server) = watch::channel(None::<String>);
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
                        // Either side may disconnect.
                        let _ = copy_bidirectional(&mut here, &mut there).await;
                    }
                });
            }
        });
        Ok(Self { url, server_address, _tasks: tasks })
    }
}

/// Time in which a loop must be detected, far below the timeout of a fetch.
const DETECTION_TIMEOUT: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread")]
async fn loop_two_servers_do_not_wait_for_each_other() -> Result<()> {
    let proxy = start_platform(&[VIDEO], Duration::ZERO)?;
    let (first_data, second_data) = (TempDir::new()?, TempDir::new()?);
    let (first_key, second_key) =
        (create_keys(&first_data, 1)?.remove(0), create_keys(&second_data, 1)?.remove(0));
    let gate = LoopGate::open().await?;
    // The second server is the first one's only supplier, and would itself call the first one before the platform.
    let first = ServerFixture::start(
        &first_data,
        &[
            ("VERBATIM_SERVICE__BASE_URL", &gate.url),
            ("VERBATIM_SERVICE__API_KEY", &second_key),
            ("VERBATIM_SUPPLIERS__VIDEO_SITE", "verbatim-service"),
        ],
    )?;
    let first_url = format!("http://{}", first.address());
    let settings = [
        ("VERBATIM_SERVICE__BASE_URL", first_url.as_str()),
        ("VERBATIM_SERVICE__API_KEY", &first_key),
        ("VERBATIM_SUPPLIERS__VIDEO_SITE", "verbatim-service,youtube-captions"),
    ];
    let second = serve_platform(&second_data, &proxy, &settings)?;
    gate.server_address.send_replace(Some(second.address().to_owned()));

    let began = Instant::now();
    let found = first.get_as(&first_key, &format!("/api/transcript?v={VIDEO}")).await?.json();
    assert_eq!(
        (&found["available"], &found["source"]),
        (&json!(true), &json!("youtube-captions")),
        "{found}"
    );
    assert_eq!(fetch_count(&proxy, VIDEO), 1);
    // A video that neither has fails quickly, whichever server is called first.
    let none = first.get_as(&first_key, &format!("/api/transcript?v={OTHER}")).await?.json();
    assert_eq!(none["failureReason"], json!("fetch_error"), "{none}");
    let none = second.get_as(&second_key, "/api/transcript?v=dyke-walk-2").await?.json();
    assert_eq!((&none["available"], &none["key"]["used"]), (&json!(false), &json!(1)), "{none}");
    assert!(began.elapsed() < DETECTION_TIMEOUT, "{:?}", began.elapsed());
    Ok(())
}
