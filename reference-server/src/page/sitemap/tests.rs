//! Tests of the plan, with small files.

use std::ops::Range;

use transcript_core::{
    Timestamp,
    archive::{Archive as _, PutRequest, TrackSelector},
    transcript::{LanguageTag, VideoMetadata},
    video::Platform,
};

use super::*;
use crate::testing::{ServiceFixture, transcript};

/// Two tracks in a page, four in a file, four in a step.
const SIZES: SitemapSizes = SitemapSizes { page: 2, pages_per_file: 2, pages_per_step: 2 };

fn video(number: usize) -> VideoId {
    VideoId::new(Platform::YouTube, &format!("sitemap-{number:03}")).unwrap()
}

/// Archives transcripts of these videos in two languages.
async fn archive(service: &ServiceFixture, videos: Range<usize>) {
    for number in videos {
        for language in ["en", "de"] {
            let mut kept = transcript(&video(number));
            kept.track.language = LanguageTag::parse(language).unwrap();
            let request = PutRequest {
                video: video(number),
                selectors: vec![TrackSelector::Language(kept.track.language.clone())],
                known_tracks: Vec::new(),
                transcript: Arc::new(kept),
                metadata: VideoMetadata::default(),
                parser_version: 1,
                replace: false,
                now: Timestamp::from_millis(0),
            };
            service.archive.put(request).await.unwrap();
        }
    }
}

/// Calls until the plan is complete; returns the number of files after each call.
async fn complete(sitemap: &mut Sitemap, service: &ServiceFixture) -> Vec<usize> {
    let mut counts = Vec::new();
    while counts.is_empty() || sitemap.is_incomplete() {
        counts.push(sitemap.file_count(&service.transcripts).await.unwrap());
    }
    counts
}

async fn all_videos(sitemap: &Sitemap, service: &ServiceFixture, files: usize) -> Vec<VideoId> {
    let mut found = Vec::new();
    for number in 0..files {
        let file = sitemap.videos(&service.transcripts, number).await.unwrap().unwrap();
        assert!(file.len() <= 4, "file {number} has {} addresses", file.len());
        found.extend(file.into_iter().map(|track| track.video));
    }
    assert!(sitemap.videos(&service.transcripts, files).await.unwrap().is_none());
    found
}

#[tokio::test]
async fn sitemap_files_have_each_video_once() {
    let service = ServiceFixture::start().await;
    archive(&service, 0..9).await;
    service.archive.withdraw(&video(1), true, Timestamp::from_millis(0)).await.unwrap();
    let mut sitemap = Sitemap::new(SIZES);
    // 18 tracks and the one of the fixture: four steps of four tracks, and one of three.
    assert_eq!(complete(&mut sitemap, &service).await, [1, 2, 3, 4, 5]);
    let found = all_videos(&sitemap, &service, 5).await;
    let unique: HashSet<_> = found.iter().collect();
    assert_eq!(unique.len(), found.len(), "a video is in two files: {found:?}");
    assert_eq!(found.len(), 9, "eight videos and that of the fixture: {found:?}");
    assert!(!unique.contains(&video(1)), "a withdrawn video is listed");
}

#[tokio::test(start_paused = true)]
async fn sitemap_keeps_its_plan_until_the_next_is_complete() {
    let service = ServiceFixture::start().await;
    archive(&service, 0..3).await;
    let mut sitemap = Sitemap::new(SIZES);
    let files = complete(&mut sitemap, &service).await.pop().unwrap();
    assert_eq!(files, 2, "seven tracks");
    for number in 0..2 * KEPT_MAX {
        sitemap.keep(number, &"text".into());
    }
    assert_eq!(sitemap.kept.len(), KEPT_MAX);
    assert!(sitemap.kept(0).is_none() && sitemap.kept(2 * KEPT_MAX - 1).is_some());

    archive(&service, 3..7).await;
    let mut count = async || sitemap.file_count(&service.transcripts).await.unwrap();
    assert_eq!(count().await, 2, "a plan is used for an hour");
    tokio::time::advance(AGE_MAX).await;
    let counts = [count().await, count().await, count().await, count().await];
    assert_eq!(counts, [2, 2, 2, 4], "15 tracks, of which a step reads four");
    assert!(sitemap.kept.is_empty(), "files of the earlier plan are kept");
    assert_eq!(all_videos(&sitemap, &service, 4).await.len(), 8, "seven, and that of the fixture");
}

#[tokio::test]
async fn sitemap_of_empty_archive_has_one_file() {
    let service = ServiceFixture::start().await;
    service
        .archive
        .delete(&VideoId::new(Platform::YouTube, crate::testing::ARCHIVED).unwrap())
        .await
        .unwrap();
    let mut sitemap = Sitemap::new(SIZES);
    assert_eq!(complete(&mut sitemap, &service).await, [1]);
    assert!(all_videos(&sitemap, &service, 1).await.is_empty());
}
