use std::time::Duration;

use super::*;
use crate::{GetOutcome, Import, Options, StorageOptions, SupplierOptions};

const LINK: &str = "https://youtu.be/dQw4w9WgXcQ";

fn ask(link: &str) -> Arc<Get> {
    Arc::new(Get { link: link.to_owned(), language: None })
}

async fn import(parts: &Verbatim, link: &str, words: &str, replace: bool) {
    let captions = format!("1\n00:00:01,000 --> 00:00:02,000\n{words}\n");
    let import = Import {
        link: link.to_owned(),
        captions: captions.into_bytes(),
        language: Some("en".to_owned()),
        title: None,
        author: None,
        generated: false,
        replace,
    };
    parts.import(import).await.unwrap();
}

async fn words(at_hand: &AtHand) -> String {
    if let Some(archived) = at_hand.archived(&ask(LINK)).await {
        return first_words(&archived);
    }
    match at_hand.parts().get(Get::clone(&ask(LINK))).await.unwrap() {
        GetOutcome::Found(found) => panic!("{found:?}"),
        GetOutcome::Missing(missing) => missing.reason.as_str().to_owned(),
    }
}

/// Asks twice: what is found is at hand then.
async fn words_again(at_hand: &AtHand) -> String {
    words(at_hand).await;
    let words = words(at_hand).await;
    assert!(at_hand.kept().transcripts.contains_key(&ask(LINK)));
    words
}

fn first_words(archived: &Shelved) -> String {
    archived.read().unwrap().transcript.segments[0].text.clone()
}

async fn opened(bytes_max: u64) -> AtHand {
    let options = Options { suppliers: SupplierOptions::none(), ..Options::default() };
    AtHand::new(Verbatim::open(options).await.unwrap(), bytes_max)
}

#[tokio::test(start_paused = true)]
async fn what_was_read_is_at_hand_for_a_moment_and_then_looked_after() {
    let at_hand = opened(1 << 20).await;
    import(at_hand.parts(), LINK, "one", false).await;
    assert!(at_hand.peek(&ask(LINK)).is_none());
    assert_eq!(words(&at_hand).await, "one");
    // Who asks once may never ask again.
    assert!(at_hand.peek(&ask(LINK)).is_none());
    assert_eq!(words(&at_hand).await, "one");
    assert!(at_hand.peek(&ask(LINK)).is_some());
    assert!(at_hand.peek(&ask("dQw4w9WgXcQ")).is_none());
    assert!(at_hand.peek(&Get { language: Some("de".to_owned()), ..Get::clone(&ask(LINK)) }).is_none());
    // Somebody else replaces it: seen once the moment is over.
    import(at_hand.parts(), LINK, "two", true).await;
    tokio::time::advance(FRESH).await;
    assert!(at_hand.peek(&ask(LINK)).is_none());
    assert_eq!(words(&at_hand).await, "two");
    // Nothing has changed: it is at hand again without being read.
    tokio::time::advance(FRESH).await;
    assert_eq!(at_hand.look().await, Some(1));
    assert_eq!(first_words(&at_hand.peek(&ask(LINK)).unwrap()), "two");
}

#[tokio::test(start_paused = true)]
async fn whoever_changes_the_archive_clears_it() {
    let at_hand = opened(1 << 20).await;
    import(at_hand.parts(), LINK, "one", false).await;
    assert_eq!(words_again(&at_hand).await, "one");
    let video = at_hand.parts().known_video(LINK).await.unwrap();
    at_hand.parts().delete(&video).await.unwrap();
    at_hand.clear();
    assert!(at_hand.peek(&ask(LINK)).is_none());
    import(at_hand.parts(), LINK, "two", false).await;
    assert_eq!(words(&at_hand).await, "two");
}

#[tokio::test(start_paused = true)]
async fn what_was_read_before_all_was_forgotten_is_not_kept() {
    let at_hand = opened(1 << 20).await;
    import(at_hand.parts(), LINK, "one", false).await;
    let times_cleared = at_hand.look().await.unwrap();
    let stored = at_hand.archived(&ask(LINK)).await.unwrap().read().unwrap().clone();
    at_hand.clear();
    let now = at_hand.look().await.unwrap();
    let keep = |times_cleared| {
        at_hand.keep(ask(LINK), Form::Read(stored.clone()), times_cleared, None);
    };
    keep(times_cleared);
    assert!(at_hand.peek(&ask(LINK)).is_none());
    keep(now);
    assert!(at_hand.peek(&ask(LINK)).is_some());
}

#[tokio::test(start_paused = true)]
async fn its_room_is_bounded() {
    let at_hand = opened(20_000).await;
    for number in 0..20 {
        let link = format!("{number:011}");
        import(at_hand.parts(), &link, &"x".repeat(4_000), false).await;
        for _ in 0..2 {
            at_hand.archived(&ask(&link)).await.unwrap();
        }
    }
    {
        let kept = at_hand.kept();
        assert_eq!((kept.transcripts.len(), kept.order.len()), (3, 3));
        assert!(kept.bytes <= 20_000);
    }
    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(at_hand.peek(&ask(&format!("{:011}", 19))).is_some());
    assert!(at_hand.peek(&ask(&format!("{:011}", 1))).is_none());
    import(at_hand.parts(), LINK, &"x".repeat(30_000), false).await;
    for _ in 0..2 {
        assert_eq!(words(&at_hand).await.len(), 30_000);
    }
    assert!(at_hand.peek(&ask(LINK)).is_none());
}

#[tokio::test(start_paused = true)]
async fn whoever_goes_through_a_list_pushes_nothing_out() {
    let at_hand = opened(20_000).await;
    import(at_hand.parts(), LINK, "one", false).await;
    assert_eq!(words_again(&at_hand).await, "one");
    let links: Vec<_> = (0..20).map(|number| format!("{number:011}")).collect();
    for link in &links {
        import(at_hand.parts(), link, &"x".repeat(4_000), false).await;
    }
    // The second time round none of them is among the last that passed.
    for link in links.iter().chain(&links) {
        at_hand.archived(&ask(link)).await.unwrap();
        assert!(at_hand.peek(&ask(link)).is_none());
    }
    assert!(at_hand.peek(&ask(LINK)).is_some());
    // Asked for again while it is.
    at_hand.archived(&ask(&links[19])).await.unwrap();
    assert!(at_hand.peek(&ask(&links[19])).is_some());
}

#[cfg(feature = "sqlite")]
mod on_disk {
    use super::*;

    /// Over a file, whose transcripts stay unread until they are looked at.
    async fn opened(bytes_max: u64) -> (AtHand, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let storage = StorageOptions::ArchiveFile(folder.path().join("archive.db"));
        let options = Options { storage, suppliers: SupplierOptions::none(), ..Options::default() };
        (AtHand::new(Verbatim::open(options).await.unwrap(), bytes_max), folder)
    }

    fn link(number: u32) -> String {
        format!("{number:011}")
    }

    fn is_read(at_hand: &AtHand, number: u32) -> Option<bool> {
        let kept = at_hand.kept();
        kept.transcripts.get(&ask(&link(number))).map(|(form, _)| matches!(form, Form::Read(_)))
    }

    #[tokio::test]
    async fn what_is_read_is_at_hand_as_it_was_read_and_takes_its_room() {
        let (at_hand, _folder) = opened(20_000).await;
        for number in 1..=8 {
            import(at_hand.parts(), &link(number), &"x".repeat(6_000), false).await;
            assert_eq!(is_read(&at_hand, number), None);
            for _ in 0..2 {
                let archived = at_hand.archived(&ask(&link(number))).await.unwrap();
                assert_eq!(archived.revision(), 1);
            }
        }
        // Unread, all of them have room.
        assert!((1..=8).all(|number| is_read(&at_hand, number) == Some(false)));
        assert!(at_hand.kept().bytes < 8_000);
        let third = at_hand.archived(&ask(&link(3))).await.unwrap();
        assert_eq!(first_words(&third).len(), 6_000);
        assert_eq!(is_read(&at_hand, 3), Some(true));
        // Two more that are read leave room for no other one.
        for number in [7, 8] {
            first_words(&at_hand.archived(&ask(&link(number))).await.unwrap());
        }
        assert_eq!((is_read(&at_hand, 1), is_read(&at_hand, 3)), (None, None));
        assert_eq!((is_read(&at_hand, 7), is_read(&at_hand, 8)), (Some(true), Some(true)));
        let kept = at_hand.kept();
        assert_eq!(kept.bytes, kept.transcripts.values().map(|(_, bytes)| bytes).sum::<u64>());
        assert!(kept.bytes <= 20_000);
        // What has gone stays with whoever has it.
        drop(kept);
        assert_eq!(first_words(&third).len(), 6_000);
    }

    #[tokio::test]
    async fn what_is_read_late_takes_the_place_of_nothing_newer() {
        let (at_hand, _folder) = opened(1 << 20).await;
        import(at_hand.parts(), LINK, "one", false).await;
        words_again(&at_hand).await;
        at_hand.clear();
        let one = at_hand.archived(&ask(LINK)).await.unwrap();
        import(at_hand.parts(), LINK, "two", true).await;
        at_hand.clear();
        let two = at_hand.archived(&ask(LINK)).await.unwrap();
        assert_eq!((first_words(&one), one.revision()), ("one".to_owned(), 1));
        assert_eq!((first_words(&two), two.revision()), ("two".to_owned(), 2));
        assert_eq!(words(&at_hand).await, "two");
    }

    #[tokio::test]
    async fn a_change_elsewhere_is_seen_after_a_moment() {
        let (at_hand, folder) = opened(1 << 20).await;
        import(at_hand.parts(), LINK, "one", false).await;
        assert_eq!(words_again(&at_hand).await, "one");
        let storage = StorageOptions::ArchiveFile(folder.path().join("archive.db"));
        let options = Options { storage, suppliers: SupplierOptions::none(), ..Options::default() };
        let other = Verbatim::open(options).await.unwrap();
        import(&other, LINK, "two", true).await;
        tokio::time::sleep(FRESH).await;
        assert_eq!(words(&at_hand).await, "two");
        other.delete(&other.known_video(LINK).await.unwrap()).await.unwrap();
        tokio::time::sleep(FRESH).await;
        assert!(at_hand.archived(&ask(LINK)).await.is_none());
    }

    #[tokio::test]
    async fn a_count_from_before_keeps_nothing() {
        let (at_hand, _folder) = opened(1 << 20).await;
        import(at_hand.parts(), LINK, "one", false).await;
        assert_eq!(words(&at_hand).await, "one");
        let times_cleared = at_hand.kept().times_cleared;
        let before = Instant::now();
        let unread = {
            let VideoLink::Video(video) = VideoLink::parse(LINK).unwrap() else { panic!("{LINK}") };
            at_hand.parts().transcripts().unread(&video, &archive::Wish::Default).await.unwrap().unwrap()
        };
        import(at_hand.parts(), LINK, "two", true).await;
        tokio::time::sleep(FRESH).await;
        at_hand.look().await.unwrap();
        let changes = Some((unread.changes(), before));
        let archived = at_hand.keep(ask(LINK), Form::Unread(unread), times_cleared, changes);
        assert_eq!(first_words(&archived), "one");
        assert!(at_hand.peek(&ask(LINK)).is_none());
        assert_eq!(words(&at_hand).await, "two");
    }
}
