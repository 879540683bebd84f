//! What a stored reply says to us and to nobody else.

use super::{Header, Reply, charge::Charge};
use crate::{
    ids::HoldId,
    video::{Platform, VideoId},
};

/// The names of the notes. No header can have such a name, so that none can be sent to anybody.
const HOLD: &str = ":hold";
const VIDEO: &str = ":video";

/// The notes in a stored reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Notes {
    /// The hold that pays for it: whoever repeats it settles that first.
    pub(super) charge: Option<Charge>,
    /// The video whose words are in it: it is repeated only as long as they may be told.
    pub(super) video: Option<VideoId>,
}

impl Notes {
    /// Puts the notes into a reply that is to be stored.
    pub(super) fn put(&self, reply: &mut Reply) {
        let mut note = |name: &str, value: String| {
            reply.headers.push(Header { name: name.to_owned(), value });
        };
        if let Some(Charge { hold, amount }) = &self.charge {
            note(HOLD, format!("{amount} {hold}"));
        }
        if let Some(video) = &self.video {
            note(VIDEO, video.to_string());
        }
    }

    /// Takes the notes out of a stored reply.
    pub(super) fn take(reply: &mut Reply) -> Self {
        let mut notes = Self::default();
        reply.headers.retain(|Header { name, value }| {
            match name.as_str() {
                HOLD => notes.charge = charge(value),
                VIDEO => notes.video = video(value),
                _ => return true,
            }
            false
        });
        notes
    }
}

fn charge(note: &str) -> Option<Charge> {
    let (amount, hold) = note.split_once(' ')?;
    Some(Charge { hold: HoldId::new(hold), amount: amount.parse().ok()? })
}

fn video(note: &str) -> Option<VideoId> {
    let (platform, id) = note.split_once('/')?;
    VideoId::new(Platform::from_wire(platform)?, id).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(name: &str, value: &str) -> Header {
        Header { name: name.to_owned(), value: value.to_owned() }
    }

    #[test]
    fn notes_are_read_back_and_gone() {
        let reply = Reply { status: 200, headers: vec![header("x-cache", "HIT")], body: b"{}".to_vec() };
        let charge = Charge { hold: HoldId::new("transcript-1 2-3"), amount: 7 };
        let video = VideoId::new(Platform::VideoSite, "dQw4w9WgXcQ").unwrap();
        for notes in [
            Notes::default(),
            Notes { charge: Some(charge.clone()), video: None },
            Notes { charge: Some(charge), video: Some(video) },
        ] {
            let mut stored = reply.clone();
            notes.put(&mut stored);
            assert_eq!(stored == reply, notes == Notes::default());
            assert_eq!((Notes::take(&mut stored), stored), (notes, reply.clone()));
        }
    }

    #[test]
    fn damaged_notes_are_gone_too() {
        for (name, damaged) in [
            (HOLD, ""),
            (HOLD, "7"),
            (HOLD, "x hold"),
            (HOLD, "-1 hold"),
            (VIDEO, "reels"),
            (VIDEO, "video_site/no"),
        ] {
            let mut reply = Reply { status: 200, headers: vec![header(name, damaged)], body: Vec::new() };
            assert_eq!(Notes::take(&mut reply), Notes::default());
            assert_eq!(reply.headers, []);
        }
    }
}
