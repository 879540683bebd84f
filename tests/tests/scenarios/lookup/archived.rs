//! Lookups that are free, and their callers.

use transcript_core::{
    archive::TrackSelector,
    engine::{FetchOutcome, FetchRequest},
    lookup::{AttributionTag, FailureReason, LookupRequest, VideoReference},
    transcript::LanguageTag,
};

use crate::{
    scenarios::{
        ScenarioResult, check, check_message, fetch_count, keyed, look_up_as, new_key, other_video,
        run_scenario, script_captions, service_spent, spent, unkeyed, video,
    },
    simulation::{
        ops::{SimCaller, SimRequest, Target},
        supplier::SupplierStep,
        world::WorldConfig,
    },
};

#[test]
fn archived_transcript_is_free_for_every_caller() {
    let mut config = WorldConfig::default();
    config.lookup.misses_per_network_per_minute = 1;
    config.lookup.attempts_per_key_per_hour = 1;
    config.lookup.free_per_month = 1;
    run_scenario(config, |life| async move {
        let (payer, other) = (new_key(&life).await, new_key(&life).await);
        check(&keyed(&life, &payer, video()).await, ScenarioResult::New);
        for _ in 0..5 {
            check(&unkeyed(&life, video()).await, ScenarioResult::Archived);
            check(&keyed(&life, &payer, video()).await, ScenarioResult::Archived);
            check(&keyed(&life, &other, video()).await, ScenarioResult::Archived);
            let caller = SimCaller::InvalidKey("vbk_mistyped");
            check(&look_up_as(&life, caller, Target::new(video())).await, ScenarioResult::Archived);
        }
        assert_eq!((fetch_count(&life, &video()), service_spent(&life)), (1, 1));
        assert_eq!((spent(&life, &payer), spent(&life, &other)), (1, 0));
        let lazy = life.world.archive.find_lazy(&video(), &TrackSelector::Default).await.unwrap();
        assert!(lazy.is_some(), "the archive is behind the gate with all its methods");
    });
}

#[test]
fn miss_without_key_needs_verification() {
    run_scenario(WorldConfig::default(), |life| async move {
        let answer = unkeyed(&life, video()).await;
        check(&answer, ScenarioResult::None(FailureReason::NeedsVerification));
        assert_eq!(answer.watch_url, "https://verbatim.example/watch/video_site/videoNumber?src=mcp_other");
        assert!(answer.key.is_none());
        assert_eq!(fetch_count(&life, &video()), 0);
    });
}

#[test]
fn watch_url_carries_attribution_tag() {
    run_scenario(WorldConfig::default(), |life| async move {
        for src in AttributionTag::ALL.map(Some).into_iter().chain([None]) {
            let reference = VideoReference::Id(video().id().to_owned());
            let request = LookupRequest { src, ..LookupRequest::new(reference) };
            let answer = life.lookups[0].look_up(request).await.unwrap();
            let tag = src.map_or(String::new(), |tag| format!("?src={}", tag.as_str()));
            assert_eq!(
                answer.watch_url,
                format!("https://verbatim.example/watch/video_site/videoNumber{tag}")
            );
        }
    });
}

#[test]
fn invalid_key_message_names_cause() {
    run_scenario(WorldConfig::default(), |life| async move {
        let check = async |text: &'static str, part: &str| {
            let answer = look_up_as(&life, SimCaller::InvalidKey(text), Target::new(video())).await;
            check(&answer, ScenarioResult::None(FailureReason::NeedsVerification));
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
fn revoked_key_needs_verification() {
    run_scenario(WorldConfig::default(), |life| async move {
        let key = new_key(&life).await;
        let keys = life.world.directory.keys(transcript_core::PageRequest::first()).await.unwrap();
        life.world.directory.revoke_key(&keys.items[0].key.key.id, life.now()).await.unwrap();
        let caller = SimCaller::InvalidKey(Box::leak(key.text.into_boxed_str()));
        let answer = look_up_as(&life, caller, Target::new(video())).await;
        check(&answer, ScenarioResult::None(FailureReason::NeedsVerification));
        check_message(&answer, "revoked");
    });
}

#[test]
fn absence_without_key_needs_verification() {
    run_scenario(WorldConfig::default(), |life| async move {
        let key = new_key(&life).await;
        script_captions(&life, &[SupplierStep::fail(transcript_core::supplier::SupplyReason::NoCaptions)]);
        check(&keyed(&life, &key, video()).await, ScenarioResult::None(FailureReason::NoCaptions));
        check(&unkeyed(&life, video()).await, ScenarioResult::None(FailureReason::NeedsVerification));
    });
}

#[test]
fn peek_neither_fetches_nor_holds_nor_counts() {
    let mut config = WorldConfig::default();
    config.lookup.misses_per_network_per_minute = 1;
    run_scenario(config, |life| async move {
        let key = new_key(&life).await;
        for caller in [SimCaller::Anonymous(None), SimCaller::Key(key.clone())] {
            for _ in 0..3 {
                let target = Target::new(video());
                let lookup = &life.lookups[0];
                let request = SimRequest {
                    life: &life,
                    lookup,
                    caller: caller.clone(),
                    target,
                    peek: true,
                    fair: true,
                };
                let answer = request.send(None).await.unwrap();
                check(&answer, ScenarioResult::None(FailureReason::NeedsVerification));
            }
        }
        // Nothing was counted: the one miss of the network is still available.
        check(&unkeyed(&life, video()).await, ScenarioResult::None(FailureReason::NeedsVerification));
        assert_eq!(life.world.oracle.sums(&key.wallet).held, 0);
    });
}

#[test]
fn other_language_is_returned_without_payment() {
    let mut config = WorldConfig::default();
    config.lookup.free_per_month = 1;
    run_scenario(config, |life| async move {
        let (poor, rich) = (new_key(&life).await, new_key(&life).await);
        check(&keyed(&life, &poor, other_video()).await, ScenarioResult::New);
        let french = TrackSelector::Language(LanguageTag::from_canonical("fr"));
        // The video has English too, so French is not its default.
        script_captions(&life, &[SupplierStep::give_one_of(&["fr", "en"])]);
        let fetch = FetchRequest { video: video(), selector: french, payer: None };
        assert!(matches!(life.lookups[0].transcripts().get(fetch).await, FetchOutcome::Fetched(_)));
        check(&unkeyed(&life, video()).await, ScenarioResult::Archived);
        // A caller that can pay gets the default; any other gets the free track.
        check(&keyed(&life, &poor, video()).await, ScenarioResult::Archived);
        // Another server would store it as the default.
        for (key, expect) in
            [(None, FailureReason::NeedsVerification), (Some(&poor), FailureReason::KeyAllowance)]
        {
            let reference = VideoReference::Id(video().id().to_owned());
            let key = key.map(|key| key.text.clone());
            let request = LookupRequest { key, default_only: true, ..LookupRequest::new(reference) };
            check(&life.lookups[0].look_up(request).await.unwrap(), ScenarioResult::None(expect));
        }
        script_captions(&life, &[SupplierStep::give(&["en"])]);
        let answer = keyed(&life, &rich, video()).await;
        check(&answer, ScenarioResult::New);
        assert!(crate::simulation::ops::summary(&answer).contains(" en "));
        check(&unkeyed(&life, video()).await, ScenarioResult::Archived);
    });
}
