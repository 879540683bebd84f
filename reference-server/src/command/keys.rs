//! `verbatim keys create`: keys from the operator's hand.

use transcript_core::lookup::{CreateKey, CreateKeyOutcome, Origin};

use super::{Failure, arguments::CreateKeys, open, print};
use crate::config::Settings;

/// Makes keys and prints each on its own line, as soon as it is made: what was printed exists.
pub(super) async fn run(settings: &Settings, ask: CreateKeys) -> Result<(), Failure> {
    let verbatim = open(settings).await?;
    let mut made = Ok(());
    for _ in 0..ask.count {
        let create =
            CreateKey { label: ask.label.clone(), email: ask.email.clone(), origin: Origin::Operator };
        made = match verbatim.lookup().create_key(create).await {
            Ok(CreateKeyOutcome::Created(created)) => print(&format!("{}\n", created.key.reveal())),
            Ok(CreateKeyOutcome::Bad(bad)) => Err(Failure::Wrong(format!("--{bad}"))),
            Ok(CreateKeyOutcome::Limited { .. }) => {
                Err(Failure::Fault("the operator's own keys were limited".to_owned()))
            }
            Err(error) => Err(error.into()),
        };
        if made.is_err() {
            break;
        }
    }
    verbatim.close().await;
    made
}
