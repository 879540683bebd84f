//! Where the files of the sitemap begin, found in steps of bounded size, and the files that are kept.

use std::{collections::HashSet, sync::Arc};

use tokio::time::{Duration, Instant};
use transcript_core::{
    Page, PageRequest, Result, archive::ArchivedTrack, engine::Transcripts, ids::Cursor, page::PAGE_LIMIT,
    video::VideoId,
};

/// How long a plan and the files of it are used.
const AGE_MAX: Duration = Duration::from_secs(3_600);
/// Maximum number of files. The format allows 50,000.
const FILES_MAX: usize = 1_000;
/// Maximum number of files that are kept, about 1 MB each.
const KEPT_MAX: usize = 8;

/// Sizes of the files, and of the steps in which they are planned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SitemapSizes {
    /// Tracks in a page of the archive.
    pub(crate) page: u32,
    /// Pages in a file. The format allows 50,000 addresses in one.
    pub(crate) pages_per_file: usize,
    /// Pages that one request for the index reads.
    pub(crate) pages_per_step: usize,
}

impl Default for SitemapSizes {
    fn default() -> Self {
        Self { page: PAGE_LIMIT, pages_per_file: 10, pages_per_step: 100 }
    }
}

/// The plan of the sitemap, and files of it.
#[derive(Debug, Default)]
pub(crate) struct Sitemap {
    sizes: SitemapSizes,
    /// The plan that is shown, once it is complete.
    shown: Option<SitemapPlan>,
    /// The first or next plan, while it is made.
    draft: Option<SitemapPlan>,
    /// Files of the shown plan by number, the latest first.
    kept: Vec<(usize, Arc<str>)>,
}

/// Where the files begin.
#[derive(Debug)]
struct SitemapPlan {
    made_at: Instant,
    withdrawn: HashSet<VideoId>,
    starts: Vec<FileStart>,
    /// Whether the archive was read to its end.
    is_complete: bool,
    /// Position after the last page, and the number of pages of the last file.
    rest: FileStart,
    pages: usize,
}

/// Position of the first track of a file.
#[derive(Clone, Debug, Default)]
struct FileStart {
    after: Option<Cursor>,
    /// Video of the track before: it is in the file before.
    previous: Option<VideoId>,
}

impl Sitemap {
    /// A sitemap with files of these sizes.
    #[cfg(test)]
    pub(crate) fn new(sizes: SitemapSizes) -> Self {
        Self { sizes, ..Self::default() }
    }

    /// The number of files with transcripts that are known, after a step of the plan if one is due.
    ///
    /// # Errors
    /// Those of the archive.
    pub(crate) async fn file_count(&mut self, transcripts: &Transcripts) -> Result<usize> {
        if self.shown.as_ref().is_none_or(|plan| plan.made_at.elapsed() >= AGE_MAX) {
            self.extend_draft(transcripts).await?;
        }
        Ok(self.plan().map_or(0, |plan| plan.starts.len()))
    }

    /// Whether more files may be found by the next call of [`Sitemap::file_count`].
    pub(crate) fn is_incomplete(&self) -> bool {
        self.shown.is_none()
    }

    /// A file that is kept.
    pub(crate) fn kept(&self, number: usize) -> Option<Arc<str>> {
        let kept = self.kept.iter().find(|(known, _)| *known == number);
        kept.map(|(_, text)| Arc::clone(text))
    }

    /// Keeps a file until the plan changes or too many others are kept.
    pub(crate) fn keep(&mut self, number: usize, text: &Arc<str>) {
        // A draft grows: its last file is not complete.
        if self.shown.is_some() {
            self.kept.truncate(KEPT_MAX - 1);
            self.kept.insert(0, (number, Arc::clone(text)));
        }
    }

    /// The newest track of each video of a file; `None` for a file that is not planned.
    ///
    /// What was archived since the plan may be in no file until the next plan.
    ///
    /// # Errors
    /// Those of the archive.
    pub(crate) async fn videos(
        &self,
        transcripts: &Transcripts,
        number: usize,
    ) -> Result<Option<Vec<ArchivedTrack>>> {
        let Some((plan, start)) = self.plan().and_then(|plan| Some((plan, plan.starts.get(number)?))) else {
            return Ok(None);
        };
        let (mut at, mut found) = (start.clone(), Vec::new());
        for _ in 0..self.sizes.pages_per_file {
            let page = self.read(transcripts, &at).await?;
            for track in page.items {
                // The tracks of a video are neighbours.
                let is_new = at.previous.as_ref() != Some(&track.video);
                at.previous = Some(track.video.clone());
                if is_new && !plan.withdrawn.contains(&track.video) {
                    found.push(track);
                }
            }
            at.after = page.next;
            if at.after.is_none() {
                break;
            }
        }
        Ok(Some(found))
    }

    fn plan(&self) -> Option<&SitemapPlan> {
        self.shown.as_ref().or(self.draft.as_ref())
    }

    async fn read(&self, transcripts: &Transcripts, at: &FileStart) -> Result<Page<ArchivedTrack>> {
        transcripts.list_tracks(PageRequest { after: at.after.clone(), limit: self.sizes.page }).await
    }

    /// Reads a bounded number of pages; shows the draft once it is complete.
    async fn extend_draft(&mut self, transcripts: &Transcripts) -> Result<()> {
        let mut draft = match self.draft.take() {
            Some(draft) => draft,
            None => SitemapPlan::new(withdrawn(transcripts).await?),
        };
        for _ in 0..self.sizes.pages_per_step {
            let page = match self.read(transcripts, &draft.rest).await {
                Ok(page) => page,
                Err(error) => {
                    self.draft = Some(draft);
                    return Err(error);
                }
            };
            draft.add(page, self.sizes.pages_per_file);
            if draft.is_complete {
                self.shown = Some(draft);
                self.kept.clear();
                return Ok(());
            }
        }
        self.draft = Some(draft);
        Ok(())
    }
}

impl SitemapPlan {
    fn new(withdrawn: HashSet<VideoId>) -> Self {
        let (starts, rest) = (Vec::new(), FileStart::default());
        Self { made_at: Instant::now(), withdrawn, starts, is_complete: false, rest, pages: 0 }
    }

    /// Adds a page to the last file, or begins a file with it.
    fn add(&mut self, page: Page<ArchivedTrack>, pages_per_file: usize) {
        if self.pages.is_multiple_of(pages_per_file) {
            self.starts.push(self.rest.clone());
        }
        self.pages += 1;
        let is_last = self.pages == FILES_MAX * pages_per_file;
        self.is_complete = is_last || page.next.is_none();
        self.rest =
            FileStart { after: page.next, previous: page.items.last().map(|last| last.video.clone()) };
    }
}

async fn withdrawn(transcripts: &Transcripts) -> Result<HashSet<VideoId>> {
    let mut found = HashSet::new();
    let mut request = Some(PageRequest::first());
    while let Some(next) = request.take() {
        let page = transcripts.list_withdrawn(next).await?;
        found.extend(page.items);
        request = page.next.map(|after| PageRequest { after: Some(after), ..PageRequest::first() });
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
