//! How far a fetch is, on a line of the terminal that changes.

use std::{
    io::{self, IsTerminal as _, Write as _},
    pin::pin,
    sync::Arc,
};

use tokio::sync::watch;
use transcript_core::engine::{Observer, Stage};

/// The line. Where standard error is no terminal there is none.
#[derive(Debug)]
pub(super) struct FetchLine {
    stages: watch::Receiver<Option<Stage>>,
    is_live: bool,
    /// Whether something stands there that must be cleared.
    is_shown: bool,
}

/// Puts down how far the fetch is, for whoever shows it.
#[derive(Debug)]
struct Stages(watch::Sender<Option<Stage>>);

impl Observer for Stages {
    fn stage(&self, stage: Stage) {
        self.0.send_replace(Some(stage));
    }
}

impl FetchLine {
    /// A line, and who tells it how far the fetch is.
    pub(super) fn new() -> (Self, Arc<dyn Observer>) {
        let (sender, stages) = watch::channel(None);
        (Self { stages, is_live: io::stderr().is_terminal(), is_shown: false }, Arc::new(Stages(sender)))
    }

    /// Shows the line as long as the work goes on.
    pub(super) async fn during<T>(mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => {
                    // What came last is shown even if nobody was looking: the terminal's log is whole.
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
        let text = self.stages.borrow_and_update().as_ref().map(said);
        self.show(&text.unwrap_or_default());
    }

    fn show(&mut self, text: &str) {
        if self.is_live {
            self.is_shown = true;
            // Nobody need read it, so it is no failure when nobody can.
            let _ = io::stderr().lock().write_all(format!("\r\x1b[K{text}").as_bytes());
        }
    }
}

/// What a stage is for people.
fn said(stage: &Stage) -> String {
    let Stage { name, done, of, .. } = stage;
    match name.as_str() {
        "tracks" | "looking" => "looking for captions".to_owned(),
        "captions" => "fetching captions".to_owned(),
        "audio" if *of > 0 => format!("fetching audio {} %", done.saturating_mul(100) / of),
        "audio" => format!("fetching audio, {} MB", done / 1_000_000),
        "decoding" => "reading the sound".to_owned(),
        "transcribing" if *of > 0 => format!("transcribing part {} of {of}", (done + 1).min(*of)),
        _ => "fetching".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use transcript_core::video::{Platform, VideoId};

    use super::*;

    #[test]
    fn stages_are_said_in_words() {
        for (name, done, of, expect) in [
            ("tracks", 0, 1, "looking for captions"),
            ("audio", 2, 5, "fetching audio 40 %"),
            ("audio", 7_300_000, 0, "fetching audio, 7 MB"),
            ("transcribing", 2, 9, "transcribing part 3 of 9"),
            ("transcribing", 9, 9, "transcribing part 9 of 9"),
            ("\u{1b}[2J", 1, 2, "fetching"),
        ] {
            let video = VideoId::new(Platform::VideoSite, "dyke-walk-0").unwrap();
            let stage = Stage { video, supplier: "a".to_owned(), name: name.to_owned(), done, of };
            assert_eq!(said(&stage), expect);
        }
    }
}
