//! Large bodies share a budget of memory.

use std::{io::Write as _, sync::Arc, time::Duration};

use flate2::{Compression, write::GzEncoder};
use tokio::{sync::Semaphore, task::JoinSet, time::sleep};

use super::{
    FakePlatform, HttpError, HttpOptions, HttpRequest, HttpTransport, get, reply, test_deadline, video,
};
use crate::http::{body_budget::BodyBudget, egress_pool::EgressPool};

/// A body of 4 MiB takes two units: the first 2 MiB of each are not counted.
const LARGE_BYTES: usize = 4 << 20;

fn transport(options: HttpOptions, units: usize) -> Arc<HttpTransport> {
    let pool = EgressPool::new(&options).unwrap();
    let permits = Semaphore::new(options.concurrency as usize);
    Arc::new(HttpTransport { options, pool, permits, bodies: BodyBudget::new(units) })
}

fn large() -> HttpRequest {
    HttpRequest { response_max: 8 << 20, ..get("https://www.youtube.com/large") }
}

#[tokio::test]
async fn large_bodies_share_budget_until_they_are_dropped() {
    let platform = FakePlatform::start(|request, _| {
        reply(200, "", vec![b'x'; if request.line == "GET /large" { LARGE_BYTES } else { 1_000 }])
    })
    .await;
    let http = transport(HttpOptions { retries: 10, ..platform.options() }, 4);
    let first = http.session().send(&large(), test_deadline()).await.unwrap();
    let second = http.session().send(&large(), test_deadline()).await.unwrap();
    let fault = http.session().send_once(&large(), test_deadline()).await.unwrap_err();
    assert_eq!(fault, HttpError::Busy);
    // Neither the route nor the platform is paused, and small bodies need no budget.
    let small = get("https://www.youtube.com/small");
    assert_eq!(http.session().send_once(&small, test_deadline()).await.unwrap().body.len(), 1_000);
    assert_eq!(platform.requests().len(), 4);
    // A retry succeeds once a body is dropped.
    let drop_first = async {
        while platform.requests().len() < 6 {
            sleep(Duration::from_millis(2)).await;
        }
        drop(first);
    };
    let mut session = http.session();
    let request = large();
    let (retried, ()) = tokio::join!(session.send(&request, test_deadline()), drop_first);
    assert_eq!((retried.unwrap().body.len(), second.body.len()), (LARGE_BYTES, LARGE_BYTES));
}

#[test]
fn busy_transport_is_no_attempt_of_platform() {
    let error = HttpError::Busy.supply_error(video::Platform::YouTube);
    assert!(error.reason().is_transient() && !error.was_attempted() && !error.counts_against_supplier());
}

#[tokio::test]
async fn forty_large_captions_at_once_fit_default_budget() {
    let words = "and the same words as in every other line of these captions ".repeat(4);
    let line = |number: u32| format!("{} {words}\n", number.wrapping_mul(2_654_435_761));
    let mut captions: String = (0..20_000).map(line).collect();
    captions.truncate(LARGE_BYTES);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(captions.as_bytes()).unwrap();
    let packed = encoder.finish().unwrap();
    let platform = FakePlatform::start(move |_, _| reply(200, "content-encoding: gzip\r\n", &packed)).await;
    let http = platform.http();
    let mut calls = JoinSet::new();
    for _ in 0..40 {
        let http = Arc::clone(&http);
        calls.spawn(async move { http.session().send(&large(), test_deadline()).await });
    }
    let bodies = calls.join_all().await;
    assert!(bodies.iter().all(|one| one.as_ref().is_ok_and(|head| head.body == captions)));
    assert_eq!(platform.requests().len(), 40, "without retries");
}
