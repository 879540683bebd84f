//! Surface B's bodies (specification 2.5 to 2.8, 4 "Surface B", 7), field by field.

mod account;
mod chat;
mod error;
mod export;
mod payments;
mod transcript;

pub use account::{KeyRotated, Me, Register, Registered, Verified};
pub use chat::{ChatAnswer, ChatBalance, ChatCitation, ChatQuestion, ChatRole, ChatTurn};
pub use error::ErrorBody;
pub use export::{AccountExport, ExportedOrder, StatementLine};
pub use payments::{BuyCredits, CreditsCheckout, EventTaken, PlanCheckout, Subscribe};
pub use transcript::VideoTranscript;

#[cfg(test)]
mod tests;
