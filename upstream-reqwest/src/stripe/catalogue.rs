//! What Stripe has to know of the plans before one can be sold: products, prices, and how its portal changes
//! a subscription. All of it is found by names of ours, or made when it is first needed.

use std::collections::BTreeMap;

use tokio::sync::Mutex;
use transcript_core::{accounts::payments::CURRENCY, directory::Plan};

use super::{
    StripeCheckout,
    api::{Fault, Result},
    form::Form,
    objects::{List, Named, PortalConfiguration, Price},
};

/// The product of a plan: the same for ever, so that an invoice tells the plan.
const PRODUCT: &str = "verbatim_plan_";
/// The mark of the portal's configuration: the prices that it offers.
const OFFERS: &str = "verbatim_offers";

/// What was found or made: it never changes, so it is asked for once.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    prices: BTreeMap<Plan, String>,
    portals: BTreeMap<Portal, String>,
}

/// What a page of Stripe's portal is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Portal {
    /// To confirm another plan, which was ordered before.
    Changing,
    /// To see everything else. No plan is picked there: nobody would know what was sold.
    Plain,
}

/// The plan whose product this is.
pub(super) fn plan_of(product: &str) -> Option<Plan> {
    product.strip_prefix(PRODUCT).and_then(Plan::from_wire).filter(|plan| *plan != Plan::Free)
}

fn product_of(plan: Plan) -> String {
    format!("{PRODUCT}{}", plan.as_str())
}

impl StripeCheckout {
    /// The price of a plan, which costs so much.
    pub(super) async fn price(&self, plan: Plan, amount_minor: u64) -> Result<String> {
        let mut known = self.catalogue.known.lock().await;
        let is_current = self.options.plans.of(plan).price_cents == Some(amount_minor);
        if let Some(price) = known.prices.get(&plan).filter(|_| is_current) {
            return Ok(price.clone());
        }
        let price = self.find_or_make_price(plan, amount_minor).await?;
        if is_current {
            known.prices.insert(plan, price.clone());
        }
        Ok(price)
    }

    /// Forgets what was found: it is not there any more.
    pub(super) async fn forget_catalogue(&self) {
        *self.catalogue.known.lock().await = Known::default();
    }

    async fn find_or_make_price(&self, plan: Plan, amount_minor: u64) -> Result<String> {
        // A price is what it costs: another amount is another price, and old subscribers keep theirs.
        let name = format!("{}_{CURRENCY}_{amount_minor}", product_of(plan));
        let query = Form::new().with("lookup_keys[]", &name).with("active", "true").with("limit", "1");
        let found: List<Price> = self.api.get("/v1/prices", &query).await?;
        if let Some(price) = found.data.first() {
            return Ok(price.id.clone());
        }
        self.make_product(plan).await?;
        let form = Form::new()
            .with("product", product_of(plan))
            .with("currency", CURRENCY)
            .with("unit_amount", amount_minor.to_string())
            .with("recurring[interval]", "month")
            .with("lookup_key", &name)
            .with("transfer_lookup_key", "true");
        let price: Price = self.api.post("/v1/prices", &form, &format!("price-{name}")).await?;
        Ok(price.id)
    }

    async fn make_product(&self, plan: Plan) -> Result<()> {
        let id = product_of(plan);
        let known: Result<Named> = self.api.get(&format!("/v1/products/{id}"), &Form::new()).await;
        match known {
            Ok(_) => return Ok(()),
            Err(fault) if fault.is_unknown() => {}
            Err(fault) => return Err(fault),
        }
        let form = Form::new().with("id", &id).with("name", format!("Plan {}", plan.as_str()));
        let made: Result<Named> = self.api.post("/v1/products", &form, &format!("product-{id}")).await;
        match made {
            Ok(_) => Ok(()),
            // Another server made it meanwhile.
            Err(Fault::Refused(no)) if no.code == "resource_already_exists" => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// How the portal is set up: plans are changed at once where more is paid, at the month's end where less
    /// is, and a subscription ends when its month does.
    pub(super) async fn portal(&self, portal: Portal) -> Result<String> {
        if let Some(known) = self.catalogue.known.lock().await.portals.get(&portal) {
            return Ok(known.clone());
        }
        let mut offered = Vec::new();
        for plan in Plan::ALL.into_iter().filter(|plan| *plan != Plan::Free && portal == Portal::Changing) {
            if let Some(amount) = self.options.plans.of(plan).price_cents {
                offered.push((plan, self.price(plan, amount).await?));
            }
        }
        let id = self.find_or_make_portal(&offered).await?;
        self.catalogue.known.lock().await.portals.insert(portal, id.clone());
        Ok(id)
    }

    async fn find_or_make_portal(&self, offered: &[(Plan, String)]) -> Result<String> {
        let mark = match offered {
            [] => "nothing".to_owned(),
            _ => offered.iter().map(|(_, price)| price.as_str()).collect::<Vec<_>>().join(" "),
        };
        let query = Form::new().with("active", "true").with("limit", "100");
        let found: List<PortalConfiguration> =
            self.api.get("/v1/billing_portal/configurations", &query).await?;
        let has_mark = |configuration: &&PortalConfiguration| {
            configuration.metadata.as_ref().and_then(|metadata| metadata.get(OFFERS)) == Some(&mark)
        };
        if let Some(configuration) = found.data.iter().find(has_mark) {
            return Ok(configuration.id.clone());
        }
        let form = Form::new()
            .with(format!("metadata[{OFFERS}]"), &mark)
            .with("features[invoice_history][enabled]", "true")
            .with("features[payment_method_update][enabled]", "true")
            .with("features[subscription_cancel][enabled]", "true")
            .with("features[subscription_cancel][mode]", "at_period_end");
        let form = if offered.is_empty() { form } else { with_offers(form, offered) };
        let key = format!("portal-{}", mark.replace(' ', "-"));
        let made: Named = self.api.post("/v1/billing_portal/configurations", &form, &key).await?;
        Ok(made.id)
    }
}

/// Lets the portal change plans to these.
fn with_offers(form: Form, offered: &[(Plan, String)]) -> Form {
    let update = "features[subscription_update]";
    let mut form = form
        .with(format!("{update}[enabled]"), "true")
        .with(format!("{update}[default_allowed_updates][0]"), "price")
        .with(format!("{update}[proration_behavior]"), "always_invoice")
        // A month that is paid in full starts with the change, so what an invoice says is the whole price.
        .with(format!("{update}[billing_cycle_anchor]"), "now")
        .with(format!("{update}[schedule_at_period_end][conditions][0][type]"), "decreasing_item_amount");
    for (place, (plan, price)) in offered.iter().enumerate() {
        form = form
            .with(format!("{update}[products][{place}][product]"), product_of(*plan))
            .with(format!("{update}[products][{place}][prices][0]"), price);
    }
    form
}
