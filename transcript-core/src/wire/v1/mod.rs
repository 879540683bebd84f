//! Bodies of the v1 API (specification 2.5 to 2.8, 4.4 to 4.12, 7.2).

mod account;
#[cfg(feature = "chat")]
mod chat;
mod error;
mod export;
mod jobs;
mod payments;
mod transcript;
mod webhooks;

pub use account::{AccountInfo, RegisterRequest, RegisterResponse, RotateKeyResponse, VerifyResponse};
#[cfg(feature = "chat")]
pub use chat::{ChatAnswer, ChatBalance, ChatCitation, ChatQuestion, ChatRole, ChatTurn};
pub use error::ErrorBody;
pub use export::{AccountExport, ExportedJob, ExportedKey, ExportedOrder, ExportedSession, StatementLine};
pub use jobs::{JobCredits, JobInfo, JobItemCounts, JobList, JobRequest, JobResult, JobResults};
pub use payments::{BuyCreditsRequest, CreditsCheckout, PlanCheckout, SubscribeRequest, WebhookAck};
pub use transcript::VideoTranscript;
pub use webhooks::{DeliveryAttempt, EventDelivery, JobDeliveries, WebhookEvent, WebhookSecretInfo};

#[cfg(test)]
mod tests;
