//! Objects that Stripe needs to sell plans: products, prices and portal configurations.
//!
//! They are found by fixed ids and keys, or created on first use.

use std::collections::BTreeMap;

use tokio::sync::Mutex;
use transcript_core::{accounts::payments::CURRENCY, directory::Plan};

use super::{
    StripeProvider,
    api::{StripeError, StripeResult},
    form::StripeForm,
    objects::{ObjectRef, StripeList, StripePortalConfiguration, StripePrice},
};

/// Prefix of a plan's product id. The id never changes, so an invoice identifies the plan.
const PRODUCT: &str = "verbatim_plan_";
/// Metadata key of a portal configuration: the offered prices.
const OFFERS: &str = "verbatim_offers";

/// Cache of found or created objects. They do not change, so each is requested once.
#[derive(Debug, Default)]
pub(super) struct StripeCatalog {
    cache: Mutex<CatalogState>,
}

#[derive(Debug, Default)]
struct CatalogState {
    prices: BTreeMap<Plan, String>,
    portals: BTreeMap<PortalKind, String>,
}

/// Purpose of a portal page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PortalKind {
    /// Confirmation of a plan change that was ordered before.
    Changing,
    /// All other actions. Plan selection is disabled there: it would have no order.
    Plain,
}

pub(super) fn plan_for_product(product: &str) -> Option<Plan> {
    product.strip_prefix(PRODUCT).and_then(Plan::from_wire).filter(|plan| *plan != Plan::Free)
}

fn product_id(plan: Plan) -> String {
    format!("{PRODUCT}{}", plan.as_str())
}

impl StripeProvider {
    /// The price object of a plan with this amount.
    pub(super) async fn price(&self, plan: Plan, amount_minor: u64) -> StripeResult<String> {
        let mut cache = self.catalog.cache.lock().await;
        let is_current = self.options.plans.terms(plan).price_cents == Some(amount_minor);
        if let Some(price) = cache.prices.get(&plan).filter(|_| is_current) {
            return Ok(price.clone());
        }
        let price = self.find_or_create_price(plan, amount_minor).await?;
        if is_current {
            cache.prices.insert(plan, price.clone());
        }
        Ok(price)
    }

    /// Clears the cache after an object turned out to be missing.
    pub(super) async fn clear_catalog(&self) {
        *self.catalog.cache.lock().await = CatalogState::default();
    }

    async fn find_or_create_price(&self, plan: Plan, amount_minor: u64) -> StripeResult<String> {
        // The amount is part of the key: another amount is another price, and existing subscribers keep theirs.
        let name = format!("{}_{CURRENCY}_{amount_minor}", product_id(plan));
        let query = StripeForm::new().with("lookup_keys[]", &name).with("active", "true").with("limit", "1");
        let found: StripeList<StripePrice> = self.api.get("/v1/prices", &query).await?;
        if let Some(price) = found.data.first() {
            return Ok(price.id.clone());
        }
        self.create_product(plan).await?;
        let form = StripeForm::new()
            .with("product", product_id(plan))
            .with("currency", CURRENCY)
            .with("unit_amount", amount_minor.to_string())
            .with("recurring[interval]", "month")
            .with("lookup_key", &name)
            .with("transfer_lookup_key", "true");
        let price: StripePrice = self.api.post("/v1/prices", &form, &format!("price-{name}")).await?;
        Ok(price.id)
    }

    async fn create_product(&self, plan: Plan) -> StripeResult<()> {
        let id = product_id(plan);
        let cache: StripeResult<ObjectRef> =
            self.api.get(&format!("/v1/products/{id}"), &StripeForm::new()).await;
        match cache {
            Ok(_) => return Ok(()),
            Err(fault) if fault.is_unknown() => {}
            Err(fault) => return Err(fault),
        }
        let form = StripeForm::new().with("id", &id).with("name", format!("Plan {}", plan.as_str()));
        let made: StripeResult<ObjectRef> =
            self.api.post("/v1/products", &form, &format!("product-{id}")).await;
        match made {
            Ok(_) => Ok(()),
            // Another server created it at the same time.
            Err(StripeError::Rejected(no)) if no.code == "resource_already_exists" => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// The portal configuration of plan changes.
    ///
    /// Upgrades take effect immediately, downgrades and cancellations at the end of the period.
    pub(super) async fn portal(&self, portal: PortalKind) -> StripeResult<String> {
        if let Some(cache) = self.catalog.cache.lock().await.portals.get(&portal) {
            return Ok(cache.clone());
        }
        let mut offered = Vec::new();
        for plan in Plan::ALL.into_iter().filter(|plan| *plan != Plan::Free && portal == PortalKind::Changing)
        {
            if let Some(amount) = self.options.plans.terms(plan).price_cents {
                offered.push((plan, self.price(plan, amount).await?));
            }
        }
        let id = self.find_or_create_portal(&offered).await?;
        self.catalog.cache.lock().await.portals.insert(portal, id.clone());
        Ok(id)
    }

    async fn find_or_create_portal(&self, offered: &[(Plan, String)]) -> StripeResult<String> {
        let mark = match offered {
            [] => "nothing".to_owned(),
            _ => offered.iter().map(|(_, price)| price.as_str()).collect::<Vec<_>>().join(" "),
        };
        let query = StripeForm::new().with("active", "true").with("limit", "100");
        let found: StripeList<StripePortalConfiguration> =
            self.api.get("/v1/billing_portal/configurations", &query).await?;
        let has_mark = |configuration: &&StripePortalConfiguration| {
            configuration.metadata.as_ref().and_then(|metadata| metadata.get(OFFERS)) == Some(&mark)
        };
        if let Some(configuration) = found.data.iter().find(has_mark) {
            return Ok(configuration.id.clone());
        }
        let form = StripeForm::new()
            .with(format!("metadata[{OFFERS}]"), &mark)
            .with("features[invoice_history][enabled]", "true")
            .with("features[payment_method_update][enabled]", "true")
            .with("features[subscription_cancel][enabled]", "true")
            .with("features[subscription_cancel][mode]", "at_period_end");
        let form = if offered.is_empty() { form } else { with_offers(form, offered) };
        let key = format!("portal-{}", mark.replace(' ', "-"));
        let made: ObjectRef = self.api.post("/v1/billing_portal/configurations", &form, &key).await?;
        Ok(made.id)
    }
}

/// Enables changes to these plans.
fn with_offers(form: StripeForm, offered: &[(Plan, String)]) -> StripeForm {
    let update = "features[subscription_update]";
    let mut form = form
        .with(format!("{update}[enabled]"), "true")
        .with(format!("{update}[default_allowed_updates][0]"), "price")
        .with(format!("{update}[proration_behavior]"), "always_invoice")
        // A new paid period starts with the change, so the invoice has the full price.
        .with(format!("{update}[billing_cycle_anchor]"), "now")
        .with(format!("{update}[schedule_at_period_end][conditions][0][type]"), "decreasing_item_amount");
    for (index, (plan, price)) in offered.iter().enumerate() {
        form = form
            .with(format!("{update}[products][{index}][product]"), product_id(*plan))
            .with(format!("{update}[products][{index}][prices][0]"), price);
    }
    form
}
