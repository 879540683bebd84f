//! Status line of a fetch on the terminal.

use std::{
    io::{self, Write as _},
    pin::pin,
    sync::Arc,
};

use tokio::sync::watch;
use transcript_core::engine::{EngineObserver, FetchStage};

use super::progress::can_redraw;

/// Status line. There is none unless [`can_redraw`].
#[derive(Debug)]
pub(super) struct FetchStatusLine {
    stages: watch::Receiver<Option<FetchStage>>,
    is_live: bool,
    /// Whether the line has text that must be cleared.
    is_shown: bool,
}

/// Receives the stages of the fetch.
#[derive(Debug)]
struct StageObserver(watch::Sender<Option<FetchStage>>);

impl EngineObserver for StageObserver {
    fn on_stage(&self, stage: FetchStage) {
        self.0.send_replace(Some(stage));
    }
}

impl FetchStatusLine {
    /// Creates a line and the observer that feeds it.
    pub(super) fn new() -> (Self, Arc<dyn EngineObserver>) {
        let (sender, stages) = watch::channel(None);
        (Self { stages, is_live: can_redraw(), is_shown: false }, Arc::new(StageObserver(sender)))
    }

    /// Shows the line while `work` runs.
    pub(super) async fn show_during<T>(mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => {
                    // The last stage is shown even if the fetch has ended, so that the terminal's log is complete.
                    if self.stages.has_changed().unwrap_or_default() {
                        self.show_stage();
                    }
                    if self.is_shown {
                        self.show("");
                    }
                    return done;
                }
                Ok(()) = self.stages.changed() => self.show_stage(),
            }
        }
    }

    fn show_stage(&mut self) {
        let text = self.stages.borrow_and_update().as_ref().map(describe);
        self.show(&text.unwrap_or_default());
    }

    fn show(&mut self, text: &str) {
        if self.is_live {
            self.is_shown = true;
            // A closed standard error is ignored.
            let _ = io::stderr().lock().write_all(format!("\r\x1b[K{text}").as_bytes());
        }
    }
}

fn describe(stage: &FetchStage) -> String {
    let FetchStage { name, done, total: of, .. } = stage;
    match name.as_str() {
        "tracks" | "looking" => "looking for captions".to_owned(),
        "captions" => "fetching captions".to_owned(),
        "audio" if *of > 0 => format!("fetching audio {} %", done.saturating_mul(100) / of),
        "audio" => format!("fetching audio, {} MB", done / 1_000_000),
        "decoding" => "decoding audio".to_owned(),
        "transcribing" if *of > 0 => format!("transcribing part {} of {of}", (done + 1).min(*of)),
        _ => "fetching".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use transcript_core::video::{Platform, VideoId};

    use super::*;

    #[test]
    fn stage_is_described() {
        for (name, done, of, expect) in [
            ("tracks", 0, 1, "looking for captions"),
            ("audio", 2, 5, "fetching audio 40 %"),
            ("audio", 7_300_000, 0, "fetching audio, 7 MB"),
            ("transcribing", 2, 9, "transcribing part 3 of 9"),
            ("transcribing", 9, 9, "transcribing part 9 of 9"),
            ("\u{1b}[2J", 1, 2, "fetching"),
        ] {
            let video = VideoId::new(Platform::YouTube, "dyke-walk-0").unwrap();
            let stage =
                FetchStage { video, supplier: "a".to_owned(), name: name.to_owned(), done, total: of };
            assert_eq!(describe(&stage), expect);
        }
    }
}
