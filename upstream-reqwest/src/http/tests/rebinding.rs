//! Allowed names that resolve to this machine or its network (DNS rebinding): no connection is made.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::{net::TcpListener, sync::Semaphore, time::timeout};

use super::{HttpError, HttpOptions, HttpTransport, page, test_deadline};
use crate::http::{body_budget::BodyBudget, egress_pool::EgressPool, tls::TlsConfigFactory};

/// Answers of a name server, one after the other; after the last one the first again.
#[derive(Clone)]
struct ScriptedResolver {
    answers: Arc<Vec<Vec<SocketAddr>>>,
    lookups: Arc<AtomicUsize>,
}

impl ScriptedResolver {
    /// Addresses with this port, which a connection uses because the URL names none.
    fn new(answers: &[&[&str]], port: u16) -> Self {
        let address = |ip: &&str| SocketAddr::new(ip.parse::<IpAddr>().unwrap(), port);
        let answers = answers.iter().map(|ips| ips.iter().map(address).collect()).collect();
        Self { answers: Arc::new(answers), lookups: Arc::default() }
    }
}

impl Resolve for ScriptedResolver {
    fn resolve(&self, _: Name) -> Resolving {
        let number = self.lookups.fetch_add(1, Ordering::Relaxed);
        let answer = self.answers[number % self.answers.len()].clone();
        Box::pin(async move { Ok(Box::new(answer.into_iter()) as Addrs) })
    }
}

/// Names of this machine, which reach the listener without the check.
const LOOPBACK: &[&[&str]] =
    &[&["127.0.0.1"], &["0.0.0.0"], &["::ffff:127.0.0.1"], &["127.0.0.1", "::1", "10.0.0.1"]];

#[tokio::test]
async fn allowed_name_with_private_address_opens_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let answers = [
        LOOPBACK,
        &[
            &["::1"],
            &["10.0.0.1"],
            &["172.16.0.1", "192.168.0.1"],
            &["169.254.169.254"],
            &["::ffff:169.254.169.254"],
            &["64:ff9b::127.0.0.1"],
            &["fe80::1"],
            &["fd00:ec2::254"],
            &[],
        ],
    ]
    .concat();
    let resolver = ScriptedResolver::new(&answers, port);
    let options = HttpOptions { retries: 0, ..HttpOptions::default() };
    let pool = EgressPool::with_resolver(&options, resolver.clone()).unwrap();
    let http =
        Arc::new(HttpTransport { options, pool, permits: Semaphore::new(1), bodies: BodyBudget::default() });
    for answer in &answers {
        let error = http.session().send(&page(), test_deadline()).await.unwrap_err();
        assert_eq!(error, HttpError::PrivateAddress, "{answer:?}");
    }
    // Each request asked once: the checked addresses are those of the connection.
    assert_eq!(resolver.lookups.load(Ordering::Relaxed), answers.len());
    // A connection would wait in the queue of the listener.
    assert!(listener.into_std().unwrap().accept().is_err());
}

/// The listener would have counted the connections.
#[tokio::test]
async fn name_with_loopback_address_and_no_check_reaches_listener() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    for answer in LOOPBACK {
        let resolver = ScriptedResolver::new(&[answer], listener.local_addr().unwrap().port());
        let tls = TlsConfigFactory::new(None).unwrap().config().unwrap();
        let client =
            reqwest::Client::builder().no_proxy().tls_backend_preconfigured(tls).dns_resolver(resolver);
        let client = client.timeout(Duration::from_secs(5)).build().unwrap();
        let connected = async { timeout(Duration::from_secs(60), listener.accept()).await.is_ok() };
        let (_, connected) = tokio::join!(client.get("https://www.youtube.com/").send(), connected);
        assert!(connected, "{answer:?}");
    }
}
