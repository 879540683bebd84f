//! How a service of the tests sells.

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{
    Error, Result, Timestamp,
    accounts::{
        AccountsParts, PlanTable,
        payments::{
            Checkout, CheckoutPage, Heard, PaymentFact, PaymentParts, Payments, Sale, Sandbox, SandboxParts,
            Subject, WebhookCall,
        },
    },
    memory::MemorySecrets,
};

use super::BASE_URL;

/// Who takes the money.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selling {
    /// Nobody.
    Nothing,
    /// Our own test checkout.
    Sandbox,
    /// A provider that is away, and believes every call that is signed with `good`.
    Away,
}

impl Selling {
    /// Payments over these parts.
    pub(super) async fn till(
        self,
        parts: &AccountsParts,
        secrets: &MemorySecrets,
    ) -> (Payments, Option<Sandbox>) {
        let orders = &parts.orders;
        let sandbox = SandboxParts {
            orders: Arc::clone(orders),
            clock: Arc::clone(&parts.clock),
            base_url: BASE_URL.to_owned(),
        };
        let sandbox = Sandbox::open(sandbox, secrets, parts.random.as_ref()).await.unwrap();
        let sandbox = Some(sandbox).filter(|_| self == Self::Sandbox);
        let checkout: Option<Arc<dyn Checkout>> = match self {
            Self::Nothing => None,
            Self::Sandbox => sandbox.clone().map(|sandbox| Arc::new(sandbox) as _),
            Self::Away => Some(Arc::new(Away)),
        };
        let mut plans = PlanTable::default();
        plans.starter.price_cents = Some(900);
        plans.pro.price_cents = Some(2_900);
        let payments = PaymentParts {
            orders: Arc::clone(orders),
            directory: Arc::clone(&parts.directory),
            ledger: Arc::clone(&parts.ledger),
            limiter: Arc::clone(&parts.limiter),
            checkout,
            clock: Arc::clone(&parts.clock),
            plans,
        };
        (Payments::new(payments), sandbox)
    }
}

#[derive(Debug)]
struct Away;

#[async_trait]
impl Checkout for Away {
    async fn open(&self, _: Sale) -> Result<CheckoutPage> {
        Err(Error::unavailable("the provider is away"))
    }

    async fn hear(&self, call: WebhookCall, _: Timestamp) -> Result<Heard> {
        Ok(match call.signature.as_deref() {
            Some("good") => {
                let object = String::from_utf8(call.body).unwrap();
                Heard::About((object != "nothing").then(|| Subject::new(object)).into_iter().collect())
            }
            Some(_) => Heard::Refused { why: "the signature is wrong".to_owned() },
            None => Heard::Refused { why: "the signature is missing".to_owned() },
        })
    }

    async fn facts(&self, subject: &Subject) -> Result<Vec<PaymentFact>> {
        match subject.object.as_str() {
            "defect" => panic!("a provider's defect"),
            "slow" => std::future::pending().await,
            _ => Err(Error::unavailable("the provider is away")),
        }
    }

    async fn stop(&self, _: &str) -> Result<()> {
        Err(Error::unavailable("the provider is away"))
    }

    async fn close(&self, _: &str) -> Result<()> {
        Err(Error::unavailable("the provider is away"))
    }

    fn knows(&self, _: &str) -> bool {
        true
    }
}
