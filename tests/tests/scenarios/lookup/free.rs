//! What is free, and to whom.

use transcript_core::{
    archive::Wish,
    engine::{Fetch, Outcome},
    lookup::{FailureReason, LookupAsk, Reference, SourceTag},
    transcript::LanguageTag,
};

use crate::{
    scenarios::{
        End, ask, asks, captions_do, check, check_message, keyed, new_key, other_video, play, service_spent,
        spent, unkeyed, video,
    },
    simulation::{
        ops::{Asking, Caller, Target},
        supplier::Act,
        world::Plan,
    },
};

#[test]
fn an_archived_transcript_is_free_to_everyone_for_ever() {
    let mut plan = Plan::default();
    plan.lookup.misses_per_network_per_minute = 1;
    plan.lookup.attempts_per_key_per_hour = 1;
    plan.lookup.free_per_month = 1;
    play(plan, |life| async move {
        let (payer, other) = (new_key(&life).await, new_key(&life).await);
        check(&keyed(&life, &payer, video()).await, End::New);
        for _ in 0..5 {
            check(&unkeyed(&life, video()).await, End::Archived);
            check(&keyed(&life, &payer, video()).await, End::Archived);
            check(&keyed(&life, &other, video()).await, End::Archived);
            let stranger = Caller::Stranger("vbk_mistyped");
            check(&ask(&life, stranger, Target::of(video())).await, End::Archived);
        }
        assert_eq!((asks(&life, &video()), service_spent(&life)), (1, 1));
        assert_eq!((spent(&life, &payer), spent(&life, &other)), (1, 0));
    });
}

#[test]
fn without_a_key_a_miss_needs_verification() {
    play(Plan::default(), |life| async move {
        let answer = unkeyed(&life, video()).await;
        check(&answer, End::None(FailureReason::NeedsVerification));
        assert_eq!(answer.watch_url, "https://verbatim.example/watch/video_site/videoNumber?src=mcp_other");
        assert!(answer.key.is_none());
        assert_eq!(asks(&life, &video()), 0);
    });
}

#[test]
fn the_watch_address_carries_the_tag_that_was_sent() {
    play(Plan::default(), |life| async move {
        for src in SourceTag::ALL.map(Some).into_iter().chain([None]) {
            let reference = Reference::Id(video().id().to_owned());
            let ask = LookupAsk { reference, src, key: None, proof: None, client: None, default_only: false };
            let answer = life.lookups[0].look_up(ask).await.unwrap();
            let tag = src.map_or(String::new(), |tag| format!("?src={}", tag.as_str()));
            assert_eq!(
                answer.watch_url,
                format!("https://verbatim.example/watch/video_site/videoNumber{tag}")
            );
        }
    });
}

#[test]
fn what_is_no_key_of_this_surface_is_told_apart() {
    play(Plan::default(), |life| async move {
        let check = async |text: &'static str, part: &str| {
            let answer = ask(&life, Caller::Stranger(text), Target::of(video())).await;
            check(&answer, End::None(FailureReason::NeedsVerification));
            check_message(&answer, part);
            assert!(answer.key.is_none());
        };
        check("vbk_mistyped", "copied whole").await;
        check("something else", "copied whole").await;
        // Well formed, each with its own checksum.
        check("vbk_0000000000000000000000000000000Tx0eH", "unknown, or was revoked").await;
        check("vba_0000000000000000000000000000003Xujou", "begins with vbk_").await;
    });
}

#[test]
fn a_revoked_key_is_unknown() {
    play(Plan::default(), |life| async move {
        let key = new_key(&life).await;
        let keys = life.world.directory.keys(transcript_core::PageRequest::first()).await.unwrap();
        life.world.directory.revoke_key(&keys.items[0].key.key.id, life.now()).await.unwrap();
        let stranger = Caller::Stranger(Box::leak(key.text.into_boxed_str()));
        let answer = ask(&life, stranger, Target::of(video())).await;
        check(&answer, End::None(FailureReason::NeedsVerification));
        check_message(&answer, "revoked");
    });
}

#[test]
fn without_a_key_even_a_known_absence_needs_verification() {
    play(Plan::default(), |life| async move {
        let key = new_key(&life).await;
        captions_do(&life, &[Act::fail(transcript_core::supplier::SupplyReason::NoCaptions)]);
        check(&keyed(&life, &key, video()).await, End::None(FailureReason::NoCaptions));
        check(&unkeyed(&life, video()).await, End::None(FailureReason::NeedsVerification));
    });
}

#[test]
fn a_peek_never_fetches_holds_or_counts() {
    let mut plan = Plan::default();
    plan.lookup.misses_per_network_per_minute = 1;
    play(plan, |life| async move {
        let key = new_key(&life).await;
        for caller in [Caller::Nobody(None), Caller::Key(key.clone())] {
            for _ in 0..3 {
                let target = Target::of(video());
                let lookup = &life.lookups[0];
                let asking =
                    Asking { life: &life, lookup, caller: caller.clone(), target, peek: true, fair: true };
                let answer = asking.ask(None).await.unwrap();
                check(&answer, End::None(FailureReason::NeedsVerification));
            }
        }
        // Nothing was counted: the one miss that the network has is still there.
        check(&unkeyed(&life, video()).await, End::None(FailureReason::NeedsVerification));
        assert_eq!(life.world.oracle.sums(&key.wallet).held, 0);
    });
}

#[test]
fn another_language_is_better_than_nothing() {
    let mut plan = Plan::default();
    plan.lookup.free_per_month = 1;
    play(plan, |life| async move {
        let (poor, rich) = (new_key(&life).await, new_key(&life).await);
        check(&keyed(&life, &poor, other_video()).await, End::New);
        let french = Wish::Language(LanguageTag::from_canonical("fr"));
        // The video has English, too: French is not its default.
        captions_do(&life, &[Act::give_one_of(&["fr", "en"])]);
        let fetch = Fetch { video: video(), wish: french, payment: None };
        assert!(matches!(life.lookups[0].transcripts().get(fetch).await, Outcome::Fetched(_)));
        check(&unkeyed(&life, video()).await, End::Archived);
        // Whoever can pay gets the default; whoever cannot gets what nobody pays for.
        check(&keyed(&life, &poor, video()).await, End::Archived);
        // Another server would keep it as the default.
        for (key, expect) in
            [(None, FailureReason::NeedsVerification), (Some(&poor), FailureReason::KeyAllowance)]
        {
            let reference = Reference::Id(video().id().to_owned());
            let key = key.map(|key| key.text.clone());
            let ask = LookupAsk { reference, src: None, key, proof: None, client: None, default_only: true };
            check(&life.lookups[0].look_up(ask).await.unwrap(), End::None(expect));
        }
        captions_do(&life, &[Act::give(&["en"])]);
        let answer = keyed(&life, &rich, video()).await;
        check(&answer, End::New);
        assert!(crate::simulation::ops::summary(&answer).contains(" en "));
        check(&unkeyed(&life, video()).await, End::Archived);
    });
}
