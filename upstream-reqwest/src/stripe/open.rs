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
    catalogue::{Portal, plan_of},
    form::Form,
    objects::{Invoice, List, Named, PortalSession, Session, Subscription},
};

/// Under which name an order is attached to what it is paid with.
pub(super) const ORDER: &str = "verbatim_order";

/// Under which name the order is attached to a subscription by which a plan was sold in it, for so much. An order
/// that nobody confirmed stands beside those that were paid, and never for them.
pub(super) fn order_of_plan(plan: Plan, amount_minor: u64) -> String {
    format!("{ORDER}_{}_{amount_minor}", plan.as_str())
}

impl StripeCheckout {
    pub(super) async fn open_page(&self, sale: Sale) -> Result<CheckoutPage> {
        if let Some(known) =
            sale.order.payment.as_deref().filter(|name| name.starts_with("cs_") && is_id(name))
        {
            match self.session(known).await {
                // Of the test mode, or of another account.
                Err(fault) if fault.is_unknown() => {}
                // A second one could be paid beside the first.
                known => return page(known?, sale.customer.as_deref()),
            }
        }
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
        let own = self.sell_plan(sale, plan, customer, key).await?;
        // Whoever opens two pages at once, here or on two servers, closes one of them or both: each looks for
        // others once its own is there. What was paid before that is a subscription by now.
        self.close_others(&own, customer).await?;
        let Some(present) = self.present_subscription(customer).await? else {
            return page(self.session(&own.id).await?, Some(customer));
        };
        self.expire(&own.id).await?;
        self.change(sale, plan, &present, customer).await
    }

    async fn session(&self, id: &str) -> Result<Session> {
        self.api.get(&format!("/v1/checkout/sessions/{id}"), &Form::new()).await
    }

    /// What every checkout has.
    fn checkout(&self, sale: &Sale, customer: &str, mode: &str) -> Form {
        let order = sale.order.id.as_str();
        let back = self.back(sale);
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
        page(session, Some(customer))
    }

    async fn sell_plan(&self, sale: &Sale, plan: Plan, customer: &str, key: &str) -> Result<Session> {
        let amount = sale.order.amount_minor;
        let price = self.price(plan, amount).await?;
        let form = self.checkout(sale, customer, "subscription").with("line_items[0][price]", price).with(
            format!("subscription_data[metadata][{}]", order_of_plan(plan, amount)),
            sale.order.id.as_str(),
        );
        let session: Result<Session> = self.api.post("/v1/checkout/sessions", &form, key).await;
        if session.as_ref().is_err_and(Fault::is_refused) {
            // The price may have been archived by hand: the next try looks for it anew.
            self.forget_catalogue().await;
        }
        session.and_then(|session| match is_id(&session.id) {
            true => Ok(session),
            false => Err(Fault::Unreadable("a checkout's name is none")),
        })
    }

    /// The customer's subscription by which a plan of ours was sold, when it goes on.
    async fn present_subscription(&self, customer: &str) -> Result<Option<Subscription>> {
        let query = Form::new().with("customer", customer).with("limit", "100");
        let found: List<Subscription> = self.api.get("/v1/subscriptions", &query).await?;
        let goes_on = |subscription: &Subscription| {
            // One that is `incomplete` may yet be paid.
            !subscription.is_over() && subscription.is_ours()
        };
        Ok(found.data.into_iter().find(goes_on))
    }

    /// Closes the customer's other pages for plans, so that nobody pays on two of them.
    async fn close_others(&self, own: &Session, customer: &str) -> Result<()> {
        let query = Form::new().with("customer", customer).with("status", "open").with("limit", "100");
        let open: List<Session> = self.api.get("/v1/checkout/sessions", &query).await?;
        let is_other = |session: &&Session| session.mode == "subscription" && session.id != own.id;
        for other in open.data.iter().filter(is_other).filter(|session| is_id(&session.id)) {
            // Another shop's page is none of ours.
            if other.client_reference_id.is_some() {
                self.expire(&other.id).await?;
            }
        }
        Ok(())
    }

    /// Closes a page by its name; what else an order may be paid with has none.
    pub(super) async fn close_page(&self, payment: &str) -> Result<()> {
        match payment.starts_with("cs_") && is_id(payment) {
            true => self.expire(payment).await,
            false => Ok(()),
        }
    }

    async fn expire(&self, session: &str) -> Result<()> {
        let path = format!("/v1/checkout/sessions/{session}/expire");
        let closed: Result<Session> = self.api.post_anew(&path, &Form::new()).await;
        match closed {
            Ok(_) => Ok(()),
            // It was paid or closed meanwhile, or is of the test mode or another account.
            Err(fault) if fault.is_refused() || fault.is_unknown() => Ok(()),
            Err(fault) => Err(fault),
        }
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
        let is_same = plan_of(item.price.product.id()) == Some(plan);
        let found = |url: String, is_lasting| {
            Ok(CheckoutPage {
                url,
                payment: Some(present.id.clone()),
                customer: Some(customer.to_owned()),
                is_lasting,
            })
        };
        // What is owed comes first: no other plan is begun on top of it.
        let is_owing = ["past_due", "unpaid", "incomplete"].contains(&present.status.as_str());
        if (is_same || is_owing)
            && let Some(url) = self.overdue(present).await?
        {
            return found(url, true);
        }
        self.note_order(sale, plan, present).await?;
        let plain = async || self.portal_page(sale, customer, Portal::Plain, Form::new()).await;
        if is_same {
            return found(plain().await?, false);
        }
        let price = self.price(plan, sale.order.amount_minor).await?;
        let confirm = "flow_data[subscription_update_confirm]";
        let flow = Form::new()
            .with("flow_data[type]", "subscription_update_confirm")
            .with(format!("{confirm}[subscription]"), &present.id)
            .with(format!("{confirm}[items][0][id]"), &item.id)
            .with(format!("{confirm}[items][0][price]"), price)
            .with(format!("{confirm}[items][0][quantity]"), "1")
            // Back to us, not on to the portal's other pages.
            .with("flow_data[after_completion][type]", "redirect")
            .with("flow_data[after_completion][redirect][return_url]", self.back(sale));
        match self.portal_page(sale, customer, Portal::Changing, flow).await {
            // Its next step is settled already (it ends, or changes at the month's end): the buyer sees all of it,
            // and can undo that first.
            Err(fault) if fault.is_refused() => found(plain().await?, false),
            outcome => found(outcome?, false),
        }
    }

    /// Attaches the order to the subscription before it can be changed: its next invoice tells it.
    async fn note_order(&self, sale: &Sale, plan: Plan, present: &Subscription) -> Result<()> {
        if !is_id(&present.id) {
            return Err(Fault::Unreadable("a subscription's name is none"));
        }
        let order = sale.order.id.as_str();
        let name = order_of_plan(plan, sale.order.amount_minor);
        let form = Form::new().with(format!("metadata[{name}]"), order);
        let path = format!("/v1/subscriptions/{}", present.id);
        let _: Named = self.api.post_anew(&path, &form).await?;
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

    async fn portal_page(&self, sale: &Sale, customer: &str, portal: Portal, flow: Form) -> Result<String> {
        let form = flow
            .with("customer", customer)
            .with("configuration", self.portal(portal).await?)
            .with("return_url", self.back(sale));
        // A page is good for minutes, so whoever asks again needs another one.
        let session: PortalSession = self.api.post_anew("/v1/billing_portal/sessions", &form).await?;
        Ok(session.url)
    }

    /// Where the buyer comes back to.
    fn back(&self, sale: &Sale) -> String {
        format!("{}/checkout/{}", self.options.base_url, sale.order.id)
    }
}

/// A checkout's page, which lasts for a day.
fn page(session: Session, customer: Option<&str>) -> Result<CheckoutPage> {
    let is_open = session.status.as_deref() == Some("open");
    let url = session.url.filter(|_| is_open).ok_or(Fault::Closed)?;
    let customer = customer.map(str::to_owned);
    Ok(CheckoutPage { url, payment: Some(session.id), customer, is_lasting: true })
}
