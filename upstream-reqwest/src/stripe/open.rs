//! Opening pages: a checkout for what is new, a page of the portal for a subscription that goes on.

use transcript_core::{
    accounts::{
        Item,
        payments::{CheckoutPage, Sale},
    },
    directory::Plan,
    ids::AccountId,
};

use super::{
    StripeCheckout,
    api::{Fault, Result, is_id},
    catalogue::plan_of,
    form::Form,
    objects::{Invoice, List, Named, PortalSession, Session, Subscription},
};

/// Under which name an order is attached to what it is paid with.
pub(super) const ORDER: &str = "verbatim_order";

/// Under which name the order is attached to a subscription by which a plan was sold in it.
pub(super) fn order_of_plan(plan: Plan) -> String {
    format!("{ORDER}_{}", plan.as_str())
}

impl StripeCheckout {
    pub(super) async fn open_page(&self, sale: Sale) -> Result<CheckoutPage> {
        let customer = match &sale.customer {
            Some(customer) => customer.clone(),
            None => self.customer(&sale, None).await?,
        };
        match self.page_for(&sale, &customer, sale.order.id.as_str()).await {
            // Deleted at Stripe, or of its test mode.
            Err(fault) if fault.is_missing("customer") => {
                let anew = self.customer(&sale, Some(&customer)).await?;
                // Stripe would repeat its answer to the first key.
                self.page_for(&sale, &anew, &format!("{}-anew", sale.order.id)).await
            }
            outcome => outcome,
        }
    }

    /// Stripe's name for a buyer: made once for each account, and once more after one that is gone.
    async fn customer(&self, sale: &Sale, gone: Option<&str>) -> Result<String> {
        let account: &AccountId = &sale.order.account;
        let key = match gone {
            None => format!("customer-{account}"),
            Some(gone) => format!("customer-{account}-after-{gone}"),
        };
        let form =
            Form::new().with("email", &sale.email).with("metadata[verbatim_account]", account.as_str());
        let customer: Named = self.api.post("/v1/customers", &form, &key).await?;
        Ok(customer.id)
    }

    async fn page_for(&self, sale: &Sale, customer: &str, key: &str) -> Result<CheckoutPage> {
        let Item::Plan(plan) = sale.order.item else { return self.sell_pack(sale, customer, key).await };
        if let Some(present) = self.present_subscription(customer).await? {
            return self.change(sale, plan, &present, customer).await;
        }
        self.close_others(sale, customer).await?;
        self.sell_plan(sale, plan, customer, key).await
    }

    /// What every checkout has.
    fn checkout(&self, sale: &Sale, customer: &str, mode: &str) -> Form {
        let order = sale.order.id.as_str();
        let back = format!("{}/checkout/{order}", self.options.base_url);
        Form::new()
            .with("mode", mode)
            .with("customer", customer)
            .with("client_reference_id", order)
            .with(format!("metadata[{ORDER}]"), order)
            .with("success_url", &back)
            .with("cancel_url", back)
            // What is paid is the amount that was sold, in the currency that it was sold in.
            .with("adaptive_pricing[enabled]", "false")
            .with("line_items[0][quantity]", "1")
    }

    async fn sell_pack(&self, sale: &Sale, customer: &str, key: &str) -> Result<CheckoutPage> {
        let order = &sale.order;
        let name = format!("{} credits", order.credits);
        let form = self
            .checkout(sale, customer, "payment")
            .with("line_items[0][price_data][currency]", &order.currency)
            .with("line_items[0][price_data][unit_amount]", order.amount_minor.to_string())
            .with("line_items[0][price_data][product_data][name]", &name)
            .with("payment_intent_data[description]", name)
            .with(format!("payment_intent_data[metadata][{ORDER}]"), order.id.as_str());
        let session: Session = self.api.post("/v1/checkout/sessions", &form, key).await?;
        page(session, customer)
    }

    async fn sell_plan(&self, sale: &Sale, plan: Plan, customer: &str, key: &str) -> Result<CheckoutPage> {
        let price = self.price(plan, sale.order.amount_minor).await?;
        let form = self
            .checkout(sale, customer, "subscription")
            .with("line_items[0][price]", price)
            .with(format!("subscription_data[metadata][{}]", order_of_plan(plan)), sale.order.id.as_str());
        let session: Result<Session> = self.api.post("/v1/checkout/sessions", &form, key).await;
        if session.as_ref().is_err_and(Fault::is_refused) {
            // The price may have been archived by hand: the next try looks for it anew.
            self.forget_catalogue().await;
        }
        page(session?, customer)
    }

    /// The customer's subscription by which a plan of ours was sold, when it goes on.
    async fn present_subscription(&self, customer: &str) -> Result<Option<Subscription>> {
        let query = Form::new().with("customer", customer).with("limit", "100");
        let found: List<Subscription> = self.api.get("/v1/subscriptions", &query).await?;
        let goes_on = |subscription: &Subscription| {
            ["active", "past_due", "trialing", "unpaid", "paused"].contains(&subscription.status.as_str())
                && subscription.metadata.keys().any(|name| name.starts_with(ORDER))
        };
        Ok(found.data.into_iter().find(goes_on))
    }

    /// Closes the customer's other pages for plans, so that nobody pays on two of them.
    async fn close_others(&self, sale: &Sale, customer: &str) -> Result<()> {
        let query = Form::new().with("customer", customer).with("status", "open").with("limit", "100");
        let open: List<Session> = self.api.get("/v1/checkout/sessions", &query).await?;
        for session in open.data.iter().filter(|session| session.mode == "subscription" && is_id(&session.id))
        {
            let order = session.client_reference_id.as_deref();
            if order.is_none_or(|order| order == sale.order.id.as_str()) {
                continue;
            }
            let path = format!("/v1/checkout/sessions/{}/expire", session.id);
            let closed: Result<Session> =
                self.api.post(&path, &Form::new(), &format!("close-{}", session.id)).await;
            match closed {
                Ok(_) => {}
                // It was paid or closed meanwhile.
                Err(fault) if fault.is_refused() => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(())
    }

    /// A page that changes a subscription, or on which its overdue invoice is paid.
    async fn change(
        &self,
        sale: &Sale,
        plan: Plan,
        present: &Subscription,
        customer: &str,
    ) -> Result<CheckoutPage> {
        let item = present.items.data.first().ok_or(Fault::Unreadable("a subscription has no item"))?;
        let url = if plan_of(item.price.product.id()) == Some(plan) {
            match self.overdue(present).await? {
                Some(url) => url,
                None => self.portal_page(sale, customer, Form::new()).await?,
            }
        } else {
            self.note_order(sale, plan, present).await?;
            let price = self.price(plan, sale.order.amount_minor).await?;
            let confirm = "flow_data[subscription_update_confirm]";
            let flow = Form::new()
                .with("flow_data[type]", "subscription_update_confirm")
                .with(format!("{confirm}[subscription]"), &present.id)
                .with(format!("{confirm}[items][0][id]"), &item.id)
                .with(format!("{confirm}[items][0][price]"), price)
                .with(format!("{confirm}[items][0][quantity]"), "1");
            match self.portal_page(sale, customer, flow).await {
                // Its next step is settled already (it ends, or changes at the month's end): the buyer sees
                // all of it, and can undo that first.
                Err(fault) if fault.is_refused() => self.portal_page(sale, customer, Form::new()).await?,
                outcome => outcome?,
            }
        };
        Ok(CheckoutPage { url, payment: Some(present.id.clone()), customer: Some(customer.to_owned()) })
    }

    /// Attaches the order to the subscription before it can be changed: its next invoice tells it.
    async fn note_order(&self, sale: &Sale, plan: Plan, present: &Subscription) -> Result<()> {
        if !is_id(&present.id) {
            return Err(Fault::Unreadable("a subscription's name is none"));
        }
        let order = sale.order.id.as_str();
        let form = Form::new().with(format!("metadata[{}]", order_of_plan(plan)), order);
        let path = format!("/v1/subscriptions/{}", present.id);
        let _: Named = self.api.post(&path, &form, &format!("{order}-note")).await?;
        Ok(())
    }

    /// Where the open invoice of a subscription is paid.
    async fn overdue(&self, present: &Subscription) -> Result<Option<String>> {
        let Some(latest) = present.latest_invoice.as_ref().filter(|invoice| is_id(invoice.id())) else {
            return Ok(None);
        };
        let invoice: Invoice = self.api.get(&format!("/v1/invoices/{}", latest.id()), &Form::new()).await?;
        Ok(invoice.hosted_invoice_url.filter(|_| invoice.status.as_deref() == Some("open")))
    }

    async fn portal_page(&self, sale: &Sale, customer: &str, flow: Form) -> Result<String> {
        let back = format!("{}/checkout/{}", self.options.base_url, sale.order.id);
        let form = flow
            .with("customer", customer)
            .with("configuration", self.portal().await?)
            .with("return_url", back);
        // A page is good for minutes, so whoever asks again needs another one.
        let session: PortalSession = self.api.post_anew("/v1/billing_portal/sessions", &form).await?;
        Ok(session.url)
    }
}

fn page(session: Session, customer: &str) -> Result<CheckoutPage> {
    let url = session.url.ok_or(Fault::Unreadable("a checkout has no address: it was closed meanwhile"))?;
    Ok(CheckoutPage { url, payment: Some(session.id), customer: Some(customer.to_owned()) })
}
