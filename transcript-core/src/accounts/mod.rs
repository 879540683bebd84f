//! Surface B's stores beside directory and ledger: orders, outgoing mail, and replies to repeat.

pub mod mail;
mod orders;
mod outbox;
mod replies;

pub use orders::{Item, Order, OrderState, Orders};
pub use outbox::{MailIntent, Outbox};
pub use replies::{Attempt, Begun, Header, Replies, Reply};
