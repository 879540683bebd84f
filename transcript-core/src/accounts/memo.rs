//! The purposes of the entries of an account's credits.

use std::fmt;

use super::OrderItem;
use crate::{directory::Plan, video::VideoId};

/// The purpose of an entry of an account's credits. Its `Display` is the memo of the entry, which is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Memo {
    /// A transcript of a video.
    Transcript(VideoId),
    /// A question about a video.
    Question(VideoId),
    /// An item that was sold.
    Sale(OrderItem),
    /// The refund of an item.
    Refund(OrderItem),
}

impl fmt::Display for Memo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transcript(video) => write!(f, "transcript {video}"),
            Self::Question(video) => write!(f, "chat {video}"),
            Self::Sale(item) => write_item(f, item),
            Self::Refund(item) => {
                f.write_str("refund of ")?;
                write_item(f, item)
            }
        }
    }
}

impl Memo {
    /// The purpose that a memo states; `None` for another text, such as an operator's.
    pub fn parse(memo: &str) -> Option<Self> {
        if let Some(video) = memo.strip_prefix("transcript ") {
            return VideoId::from_name(video).map(Self::Transcript);
        }
        if let Some(video) = memo.strip_prefix("chat ") {
            return VideoId::from_name(video).map(Self::Question);
        }
        match memo.strip_prefix("refund of ") {
            Some(item) => parse_item(item).map(Self::Refund),
            None => parse_item(memo).map(Self::Sale),
        }
    }
}

fn write_item(f: &mut fmt::Formatter<'_>, item: &OrderItem) -> fmt::Result {
    match item {
        OrderItem::Pack(name) => write!(f, "pack {name}"),
        OrderItem::Plan(plan) => write!(f, "plan {}", plan.as_str()),
    }
}

fn parse_item(text: &str) -> Option<OrderItem> {
    match text.strip_prefix("plan ") {
        Some(plan) => Plan::from_wire(plan).map(OrderItem::Plan),
        None => text.strip_prefix("pack ").map(|name| OrderItem::Pack(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::video::Platform;

    #[test]
    fn memos_are_read_back() {
        let video = VideoId::new(Platform::YouTube, "dQw4w9WgXcQ").unwrap();
        let pack = OrderItem::Pack("2k".to_owned());
        let plan = OrderItem::Plan(Plan::Starter);
        for (memo, text) in [
            (Memo::Transcript(video.clone()), "transcript video_site/dQw4w9WgXcQ"),
            (Memo::Question(video), "chat video_site/dQw4w9WgXcQ"),
            (Memo::Sale(pack.clone()), "pack 2k"),
            (Memo::Sale(plan.clone()), "plan starter"),
            (Memo::Refund(pack), "refund of pack 2k"),
            (Memo::Refund(plan), "refund of plan starter"),
        ] {
            assert_eq!(memo.to_string(), text);
            assert_eq!(Memo::parse(text), Some(memo));
        }
        for other in ["", "contract 17", "transcript", "chat a/b?c", "plan x", "refund of chat a/b"] {
            assert_eq!(Memo::parse(other), None, "{other}");
        }
    }
}
