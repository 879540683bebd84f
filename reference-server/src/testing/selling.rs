//! Payment setups of the test service.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

use async_trait::async_trait;
use transcript_core::{
    Error, Result, Timestamp,
    accounts::{
        AccountsDeps, PlanTable,
        payments::{
            CheckoutRequest, CheckoutSession, PaymentDeps, PaymentProvider, PaymentSnapshot, Payments,
            ProviderObject, Sandbox, SandboxDeps, WebhookOutcome, WebhookRequest,
        },
    },
    memory::MemorySecrets,
};

use super::BASE_URL;

/// Payment provider of the service.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PaymentSetup {
    /// No provider: payments are not configured.
    Nothing,
    Sandbox,
    /// Unavailable provider that accepts every webhook signed with `good`.
    Unavailable,
    /// Provider that opens payment pages, and whose reads of payments never end. It counts them.
    Stalled(&'static AtomicU32),
}

impl PaymentSetup {
    /// Creates the payments.
    pub(super) async fn build(
        self,
        parts: &AccountsDeps,
        secrets: &MemorySecrets,
    ) -> (Payments, Option<Sandbox>) {
        let orders = &parts.orders;
        let sandbox = SandboxDeps {
            orders: Arc::clone(orders),
            clock: Arc::clone(&parts.clock),
            base_url: BASE_URL.to_owned(),
        };
        let sandbox = Sandbox::open(sandbox, secrets, parts.random.as_ref()).await.unwrap();
        let sandbox = Some(sandbox).filter(|_| matches!(self, Self::Sandbox));
        let checkout: Option<Arc<dyn PaymentProvider>> = match self {
            Self::Nothing => None,
            Self::Sandbox => sandbox.clone().map(|sandbox| Arc::new(sandbox) as _),
            Self::Unavailable => Some(Arc::new(UnreachableProvider)),
            Self::Stalled(reads) => Some(Arc::new(StalledProvider(reads))),
        };
        let mut plans = PlanTable::default();
        plans.starter.price_cents = Some(900);
        plans.pro.price_cents = Some(2_900);
        let payments = PaymentDeps {
            orders: Arc::clone(orders),
            directory: Arc::clone(&parts.directory),
            ledger: Arc::clone(&parts.ledger),
            outbox: Arc::clone(&parts.outbox),
            limiter: Arc::clone(&parts.limiter),
            provider: checkout,
            clock: Arc::clone(&parts.clock),
            plans,
        };
        (Payments::new(payments), sandbox)
    }
}

#[derive(Debug)]
struct UnreachableProvider;

#[async_trait]
impl PaymentProvider for UnreachableProvider {
    async fn create_checkout(&self, _: CheckoutRequest) -> Result<CheckoutSession> {
        Err(Error::unavailable("the provider is unavailable"))
    }

    async fn parse_webhook(&self, call: WebhookRequest, _: Timestamp) -> Result<WebhookOutcome> {
        Ok(match call.signature.as_deref() {
            Some("good") => {
                let object = String::from_utf8(call.body).unwrap();
                WebhookOutcome::Events(
                    (object != "nothing").then(|| ProviderObject::new(object)).into_iter().collect(),
                )
            }
            Some(_) => WebhookOutcome::Rejected { reason: "the signature is wrong".to_owned() },
            None => WebhookOutcome::Rejected { reason: "the signature is missing".to_owned() },
        })
    }

    async fn snapshots(&self, subject: &ProviderObject) -> Result<Vec<PaymentSnapshot>> {
        match subject.object.as_str() {
            "defect" => panic!("a provider's defect"),
            "slow" => std::future::pending().await,
            _ => Err(Error::unavailable("the provider is unavailable")),
        }
    }

    async fn cancel_at_period_end(&self, _: &str) -> Result<()> {
        Err(Error::unavailable("the provider is unavailable"))
    }

    /// Only the portal can be reached.
    async fn open_portal(&self, customer: &str, return_url: &str) -> Result<Option<CheckoutSession>> {
        Ok(Some(CheckoutSession {
            url: format!("https://pay.example/{customer}?back={return_url}"),
            payment: None,
            customer: Some(customer.to_owned()),
            is_lasting: false,
        }))
    }

    async fn expire_checkout(&self, _: &str) -> Result<()> {
        Err(Error::unavailable("the provider is unavailable"))
    }

    fn owns(&self, _: &str) -> bool {
        true
    }
}

#[derive(Debug)]
struct StalledProvider(&'static AtomicU32);

#[async_trait]
impl PaymentProvider for StalledProvider {
    async fn create_checkout(&self, sale: CheckoutRequest) -> Result<CheckoutSession> {
        Ok(CheckoutSession {
            url: format!("{BASE_URL}/checkout/{}", sale.order.id),
            payment: Some("payment".to_owned()),
            customer: None,
            is_lasting: true,
        })
    }

    async fn parse_webhook(&self, _: WebhookRequest, _: Timestamp) -> Result<WebhookOutcome> {
        Ok(WebhookOutcome::Events(Vec::new()))
    }

    async fn snapshots(&self, _: &ProviderObject) -> Result<Vec<PaymentSnapshot>> {
        self.0.fetch_add(1, Relaxed);
        std::future::pending().await
    }

    async fn cancel_at_period_end(&self, _: &str) -> Result<()> {
        Ok(())
    }

    async fn expire_checkout(&self, _: &str) -> Result<()> {
        Ok(())
    }

    fn owns(&self, _: &str) -> bool {
        true
    }
}
