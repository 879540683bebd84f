use std::time::Duration;

use super::*;
use crate::{Import, Options, SupplierOptions};

const LINK: &str = "https://youtu.be/dQw4w9WgXcQ";

fn ask(link: &str) -> Get {
    Get { link: link.to_owned(), language: None }
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
    match at_hand.get(ask(LINK)).await.unwrap() {
        GetOutcome::Found(found) => {
            assert!(found.from_cache);
            found.stored.transcript.segments[0].text.clone()
        }
        GetOutcome::Missing(missing) => missing.reason.as_str().to_owned(),
    }
}

async fn opened(bytes_max: u64) -> AtHand {
    let options = Options { suppliers: SupplierOptions::none(), ..Options::default() };
    AtHand::new(Verbatim::open(options).await.unwrap(), bytes_max)
}

#[tokio::test(start_paused = true)]
async fn what_was_read_is_at_hand_for_a_moment_and_then_looked_after() {
    let at_hand = opened(1 << 20).await;
    import(at_hand.parts(), LINK, "one", false).await;
    assert_eq!(at_hand.peek(&ask(LINK)), None);
    assert_eq!(words(&at_hand).await, "one");
    assert!(at_hand.peek(&ask(LINK)).is_some());
    assert_eq!(at_hand.peek(&ask("dQw4w9WgXcQ")), None);
    assert_eq!(at_hand.peek(&Get { language: Some("de".to_owned()), ..ask(LINK) }), None);
    // Somebody else replaces it: seen once the moment is over.
    import(at_hand.parts(), LINK, "two", true).await;
    tokio::time::advance(FRESH).await;
    assert_eq!(at_hand.peek(&ask(LINK)), None);
    assert_eq!(words(&at_hand).await, "two");
    // Nothing has changed: it is at hand again without being read.
    tokio::time::advance(FRESH).await;
    assert_eq!(at_hand.look().await, Some(1));
    assert_eq!(at_hand.peek(&ask(LINK)).unwrap().transcript.segments[0].text, "two");
}

#[tokio::test(start_paused = true)]
async fn whoever_changes_the_archive_clears_it() {
    let at_hand = opened(1 << 20).await;
    import(at_hand.parts(), LINK, "one", false).await;
    assert_eq!(words(&at_hand).await, "one");
    let video = at_hand.parts().known_video(LINK).await.unwrap();
    at_hand.parts().delete(&video).await.unwrap();
    at_hand.clear();
    assert_eq!(at_hand.peek(&ask(LINK)), None);
    import(at_hand.parts(), LINK, "two", false).await;
    assert_eq!(words(&at_hand).await, "two");
}

#[tokio::test(start_paused = true)]
async fn what_was_read_before_all_was_forgotten_is_not_kept() {
    let at_hand = opened(1 << 20).await;
    import(at_hand.parts(), LINK, "one", false).await;
    let times_cleared = at_hand.look().await.unwrap();
    let stored = at_hand.archived(&ask(LINK)).await.unwrap();
    at_hand.clear();
    let now = at_hand.look().await.unwrap();
    at_hand.keep(ask(LINK), &stored, times_cleared);
    assert_eq!(at_hand.peek(&ask(LINK)), None);
    at_hand.keep(ask(LINK), &stored, now);
    assert!(at_hand.peek(&ask(LINK)).is_some());
}

#[tokio::test(start_paused = true)]
async fn its_room_is_bounded() {
    let at_hand = opened(20_000).await;
    for number in 0..20 {
        let link = format!("{number:011}");
        import(at_hand.parts(), &link, &"x".repeat(4_000), false).await;
        at_hand.get(ask(&link)).await.unwrap();
    }
    {
        let kept = at_hand.kept();
        assert_eq!((kept.transcripts.len(), kept.order.len()), (3, 3));
        assert!(kept.bytes <= 20_000);
    }
    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(at_hand.peek(&ask(&format!("{:011}", 19))).is_some());
    assert_eq!(at_hand.peek(&ask(&format!("{:011}", 1))), None);
    import(at_hand.parts(), LINK, &"x".repeat(30_000), false).await;
    assert_eq!(words(&at_hand).await.len(), 30_000);
    assert_eq!(at_hand.peek(&ask(LINK)), None);
}
