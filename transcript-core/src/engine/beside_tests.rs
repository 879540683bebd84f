//! Where work runs, by where it is asked for.

use std::{sync::Mutex, time::Duration};

use async_trait::async_trait;
use tokio::runtime::{self, Id, Runtime};

use super::{
    refresh_tests::{Counting, Still, transcript, video},
    *,
};
use crate::{
    memory::MemoryArchive,
    supplier::{Ask, Supplied, Supplier, SupplierCard, SupplierKind, Watcher},
};

/// Notes on which runtime it is asked.
#[derive(Debug, Default)]
struct Noting(Mutex<Vec<Id>>);

#[async_trait]
impl Supplier for Noting {
    fn card(&self) -> SupplierCard {
        let platforms = vec![Platform::VideoSite];
        SupplierCard { name: "words".to_owned(), platforms, kind: SupplierKind::Captions }
    }

    async fn supply(&self, _: Ask, _: Arc<dyn Watcher>) -> Result<Supplied, SupplyError> {
        self.0.lock().unwrap().push(Handle::current().id());
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok(Supplied { tracks: vec![transcript("words")], known_tracks: Vec::new() })
    }
}

fn runtime() -> Runtime {
    runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

#[test]
fn what_is_asked_for_from_the_runtime_beside_runs_there_and_all_else_on_the_own_one() {
    let (own, beside, other) = (runtime(), runtime(), runtime());
    let noting = Arc::new(Noting::default());
    let (archive, random) = (Arc::new(MemoryArchive::default()), Arc::new(Counting::default()));
    let transcripts = Transcripts::builder(archive, Arc::new(Still), random, own.handle().clone())
        .supplier(Platform::VideoSite, Arc::clone(&noting) as _)
        .beside(beside.handle().clone())
        .build();
    let askers = [&own, &beside, &other, &beside];
    for asker in askers {
        let outcome = asker.block_on(transcripts.refresh(&video(), &Wish::Default));
        assert!(matches!(outcome, Outcome::Fetched(_)), "{outcome:?}");
    }
    let expect = [&own, &beside, &own, &beside].map(|runtime| runtime.handle().id());
    assert_eq!(*noting.0.lock().unwrap(), expect);
    // One that is fetched there is waited for from anywhere.
    let fetch = || Fetch { video: video(), wish: Wish::Default, payment: None };
    let both = [&beside, &other].map(|asker| {
        asker.spawn({
            let transcripts = transcripts.clone();
            async move { transcripts.get(fetch()).await }
        })
    });
    for outcome in both {
        assert!(matches!(other.block_on(outcome).unwrap(), Outcome::Archived(_)));
    }
}
