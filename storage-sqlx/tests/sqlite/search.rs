//! The search index in a file: an order that takes a server too long to test, and malformed names.

use transcript_core::testing::search_index::search_by_date_finds_newest_of_very_many;

// Twenty thousand rows: they take a server ten times as long.
#[tokio::test]
async fn newest_of_very_many_are_found() {
    let (index, _folder) = crate::search_index().await;
    search_by_date_finds_newest_of_very_many(index).await;
}

#[tokio::test]
async fn malformed_candidates_are_left_out() {
    let (index, folder) = crate::search_index().await;
    let file = folder.path().join("search/index.db");
    crate::common::changed::check_malformed_candidates_are_left_out(&*index, async |videos| {
        let named = format!(
            "UPDATE search_documents SET video = {videos}; UPDATE search_videos SET video = {videos}"
        );
        crate::opening::run(&file, &named);
    })
    .await;
}
