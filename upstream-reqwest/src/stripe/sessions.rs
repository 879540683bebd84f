//! Creates hosted pages: a checkout for a new purchase, a portal page for an existing subscription.

use transcript_core::{
    accounts::{
        OrderItem,
        payments::{CheckoutRequest, CheckoutSession},
    },
    directory::Plan,
    ids::AccountId,
};

use super::{
    StripeProvider,
    api::{StripeError, StripeResult, is_id},
    catalog::{PortalKind, plan_for_product},
    form::StripeForm,
    objects::{ObjectRef, StripeInvoice, StripeList, StripePortalSession, StripeSession, StripeSubscription},
};

/// Metadata key of an order.
pub(super) const ORDER: &str = "verbatim_order";

/// Metadata key on a subscription for the order that sold this plan at this price.
///
/// The key contains plan and price, so an unconfirmed order does not replace a paid one.
pub(super) fn plan_order_key(plan: Plan, amount_minor: u64) -> String {
    format!("{ORDER}_{}_{amount_minor}", plan.as_str())
}

impl StripeProvider {
    pub(super) async fn create_page(&self, sale: CheckoutRequest) -> StripeResult<CheckoutSession> {
        if let Some(known) =
            sale.order.payment.as_deref().filter(|name| name.starts_with("cs_") && is_id(name))
        {
            match self.session(known).await {
                // It belongs to the test mode or another account.
                Err(fault) if fault.is_unknown() => {}
                // A second page could be paid in addition to the first.
                known => return page(known?, sale.customer.as_deref()),
            }
        }
        let customer = match &sale.customer {
            Some(customer) => customer.clone(),
            None => self.customer(&sale, None).await?,
        };
        match self.create_page_for(&sale, &customer, sale.order.id.as_str()).await {
            // Deleted at Stripe, or of its test mode.
            Err(fault) if fault.is_missing("customer") => {
                let recreated = self.customer(&sale, Some(&customer)).await?;
                // With the first key Stripe would return its stored response.
                self.create_page_for(&sale, &recreated, &format!("{}-anew", sale.order.id)).await
            }
            outcome => outcome,
        }
    }

    /// Creates the Stripe customer of an account: once, and again after one was deleted.
    async fn customer(&self, sale: &CheckoutRequest, gone: Option<&str>) -> StripeResult<String> {
        let account: &AccountId = &sale.order.account;
        let key = match gone {
            None => format!("customer-{account}"),
            Some(gone) => format!("customer-{account}-after-{gone}"),
        };
        // An account without an address has a name instead, which Stripe rejects as an address.
        let field = if sale.email.contains('@') { "email" } else { "name" };
        let form =
            StripeForm::new().with(field, &sale.email).with("metadata[verbatim_account]", account.as_str());
        let customer: ObjectRef = self.api.post("/v1/customers", &form, &key).await?;
        Ok(customer.id)
    }

    async fn create_page_for(
        &self,
        sale: &CheckoutRequest,
        customer: &str,
        key: &str,
    ) -> StripeResult<CheckoutSession> {
        let OrderItem::Plan(plan) = sale.order.item else { return self.sell_pack(sale, customer, key).await };
        if let Some(current) = self.current_subscription(customer).await? {
            return self.change(sale, plan, &current, customer).await;
        }
        let created = self.sell_plan(sale, plan, customer, key).await?;
        // Each request checks for other pages after creating its own, so of two concurrent pages, also on two servers,
        // at least one is closed. A page that was paid before is a subscription by now.
        self.close_other_pages(&created, customer).await?;
        let Some(current) = self.current_subscription(customer).await? else {
            return page(self.session(&created.id).await?, Some(customer));
        };
        self.expire(&created.id).await?;
        self.change(sale, plan, &current, customer).await
    }

    async fn session(&self, id: &str) -> StripeResult<StripeSession> {
        self.api.get(&format!("/v1/checkout/sessions/{id}"), &StripeForm::new()).await
    }

    /// The fields of every checkout.
    fn checkout(&self, sale: &CheckoutRequest, customer: &str, mode: &str) -> StripeForm {
        let order = sale.order.id.as_str();
        let return_url = self.return_url(sale);
        StripeForm::new()
            .with("mode", mode)
            .with("customer", customer)
            .with("client_reference_id", order)
            .with(format!("metadata[{ORDER}]"), order)
            .with("success_url", &return_url)
            .with("cancel_url", return_url)
            // The buyer pays the ordered amount in the ordered currency.
            .with("adaptive_pricing[enabled]", "false")
            .with("line_items[0][quantity]", "1")
    }

    async fn sell_pack(
        &self,
        sale: &CheckoutRequest,
        customer: &str,
        key: &str,
    ) -> StripeResult<CheckoutSession> {
        let order = &sale.order;
        let name = format!("{} credits", order.credits);
        let form = self
            .checkout(sale, customer, "payment")
            .with("line_items[0][price_data][currency]", &order.currency)
            .with("line_items[0][price_data][unit_amount]", order.amount_minor.to_string())
            .with("line_items[0][price_data][product_data][name]", &name)
            .with("payment_intent_data[description]", name)
            .with(format!("payment_intent_data[metadata][{ORDER}]"), order.id.as_str());
        let session: StripeSession = self.api.post("/v1/checkout/sessions", &form, key).await?;
        page(session, Some(customer))
    }

    async fn sell_plan(
        &self,
        sale: &CheckoutRequest,
        plan: Plan,
        customer: &str,
        key: &str,
    ) -> StripeResult<StripeSession> {
        let amount = sale.order.amount_minor;
        let price = self.price(plan, amount).await?;
        let form = self.checkout(sale, customer, "subscription").with("line_items[0][price]", price).with(
            format!("subscription_data[metadata][{}]", plan_order_key(plan, amount)),
            sale.order.id.as_str(),
        );
        let session: StripeResult<StripeSession> = self.api.post("/v1/checkout/sessions", &form, key).await;
        if session.as_ref().is_err_and(StripeError::is_bad_request) {
            // The price may have been archived manually: the next attempt searches for it again.
            self.clear_catalog().await;
        }
        session.and_then(|session| match is_id(&session.id) {
            true => Ok(session),
            false => Err(StripeError::Unreadable("a checkout's id is invalid")),
        })
    }

    /// The customer's active subscription to a plan of this server.
    async fn current_subscription(&self, customer: &str) -> StripeResult<Option<StripeSubscription>> {
        let query = StripeForm::new().with("customer", customer).with("limit", "100");
        let found: StripeList<StripeSubscription> = self.api.get("/v1/subscriptions", &query).await?;
        let is_active = |subscription: &StripeSubscription| {
            // An `incomplete` one may still be paid.
            !subscription.is_over() && subscription.is_ours()
        };
        Ok(found.data.into_iter().find(is_active))
    }

    /// Closes the customer's other plan pages, so that two pages cannot both be paid.
    async fn close_other_pages(&self, created: &StripeSession, customer: &str) -> StripeResult<()> {
        let query = StripeForm::new().with("customer", customer).with("status", "open").with("limit", "100");
        let open: StripeList<StripeSession> = self.api.get("/v1/checkout/sessions", &query).await?;
        let is_other = |session: &&StripeSession| session.mode == "subscription" && session.id != created.id;
        for other in open.data.iter().filter(is_other).filter(|session| is_id(&session.id)) {
            // Pages of other programs on the same account stay open.
            if other.order().is_some() {
                self.expire(&other.id).await?;
            }
        }
        Ok(())
    }

    /// Closes a checkout page by its id; other payment ids have no page.
    pub(super) async fn close_page(&self, payment: &str) -> StripeResult<()> {
        match payment.starts_with("cs_") && is_id(payment) {
            true => self.expire(payment).await,
            false => Ok(()),
        }
    }

    async fn expire(&self, session: &str) -> StripeResult<()> {
        let path = format!("/v1/checkout/sessions/{session}/expire");
        let closed: StripeResult<StripeSession> = self.api.post_unkeyed(&path, &StripeForm::new()).await;
        match closed {
            Ok(_) => Ok(()),
            // It was paid or closed in between, or belongs to the test mode or another account.
            Err(fault) if fault.is_bad_request() || fault.is_unknown() => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// A page that changes a subscription, or that collects its overdue invoice.
    async fn change(
        &self,
        sale: &CheckoutRequest,
        plan: Plan,
        current: &StripeSubscription,
        customer: &str,
    ) -> StripeResult<CheckoutSession> {
        let item = current.items.data.first().ok_or(StripeError::Unreadable("a subscription has no item"))?;
        let is_same = plan_for_product(item.price.product.id()) == Some(plan);
        let found = |url: String, is_lasting| {
            Ok(CheckoutSession {
                url,
                payment: Some(current.id.clone()),
                customer: Some(customer.to_owned()),
                is_lasting,
            })
        };
        // An overdue invoice comes first: no other plan is started before it is paid.
        let is_overdue = ["past_due", "unpaid", "incomplete"].contains(&current.status.as_str());
        if (is_same || is_overdue)
            && let Some(url) = self.open_invoice_page(current).await?
        {
            return found(url, true);
        }
        self.attach_order(sale, plan, current).await?;
        let return_url = self.return_url(sale);
        if is_same {
            return found(self.plain_portal_page(customer, &return_url).await?, false);
        }
        let price = self.price(plan, sale.order.amount_minor).await?;
        let confirm = "flow_data[subscription_update_confirm]";
        let flow = StripeForm::new()
            .with("flow_data[type]", "subscription_update_confirm")
            .with(format!("{confirm}[subscription]"), &current.id)
            .with(format!("{confirm}[items][0][id]"), &item.id)
            .with(format!("{confirm}[items][0][price]"), price)
            .with(format!("{confirm}[items][0][quantity]"), "1")
            // Return to this server, not to the portal's other pages.
            .with("flow_data[after_completion][type]", "redirect")
            .with("flow_data[after_completion][redirect][return_url]", &return_url);
        match self.portal_page(customer, &return_url, PortalKind::Changing, flow).await {
            // A cancellation or scheduled change blocks the flow: the plain page lets the buyer undo it first.
            Err(fault) if fault.is_bad_request() => {
                tracing::info!(order = %sale.order.id, %fault, "Stripe refused the page of a plan change");
                found(self.plain_portal_page(customer, &return_url).await?, false)
            }
            outcome => found(outcome?, false),
        }
    }

    /// Attaches the order to the subscription before a change, so that its next invoice contains it.
    async fn attach_order(
        &self,
        sale: &CheckoutRequest,
        plan: Plan,
        current: &StripeSubscription,
    ) -> StripeResult<()> {
        if !is_id(&current.id) {
            return Err(StripeError::Unreadable("a subscription's id is invalid"));
        }
        let order = sale.order.id.as_str();
        let name = plan_order_key(plan, sale.order.amount_minor);
        let form = StripeForm::new().with(format!("metadata[{name}]"), order);
        let path = format!("/v1/subscriptions/{}", current.id);
        let _: ObjectRef = self.api.post_unkeyed(&path, &form).await?;
        Ok(())
    }

    /// The payment page of a subscription's open invoice.
    async fn open_invoice_page(&self, current: &StripeSubscription) -> StripeResult<Option<String>> {
        let Some(latest) = current.latest_invoice.as_ref().filter(|invoice| is_id(invoice.id())) else {
            return Ok(None);
        };
        let invoice: StripeInvoice =
            self.api.get(&format!("/v1/invoices/{}", latest.id()), &StripeForm::new()).await?;
        Ok(invoice.hosted_invoice_url.filter(|_| invoice.status.as_deref() == Some("open")))
    }

    /// The portal on which a buyer ends a subscription, and sees its invoices and payment method.
    pub(super) async fn manage_page(
        &self,
        customer: &str,
        return_url: &str,
    ) -> StripeResult<CheckoutSession> {
        Ok(CheckoutSession {
            url: self.plain_portal_page(customer, return_url).await?,
            payment: None,
            customer: Some(customer.to_owned()),
            is_lasting: false,
        })
    }

    async fn plain_portal_page(&self, customer: &str, return_url: &str) -> StripeResult<String> {
        self.portal_page(customer, return_url, PortalKind::Plain, StripeForm::new()).await
    }

    async fn portal_page(
        &self,
        customer: &str,
        return_url: &str,
        portal: PortalKind,
        flow: StripeForm,
    ) -> StripeResult<String> {
        let form = flow
            .with("customer", customer)
            .with("configuration", self.portal(portal).await?)
            .with("return_url", return_url);
        // A page is valid for minutes, so each request needs a new one.
        let session: StripeResult<StripePortalSession> =
            self.api.post_unkeyed("/v1/billing_portal/sessions", &form).await;
        let may_be_archived = |fault: &StripeError| fault.is_bad_request() && !fault.is_missing("customer");
        if session.as_ref().is_err_and(may_be_archived) {
            // The price or the configuration may have been archived manually: the next attempt searches for it again.
            self.clear_catalog().await;
        }
        Ok(session?.url)
    }

    /// The page to which the buyer returns, in the language of the order.
    fn return_url(&self, sale: &CheckoutRequest) -> String {
        sale.order.page_in_language(format!("{}/checkout/{}", self.options.base_url, sale.order.id))
    }
}

/// The page of a checkout session, valid for one day.
fn page(session: StripeSession, customer: Option<&str>) -> StripeResult<CheckoutSession> {
    let is_open = session.status.as_deref() == Some("open");
    let url = session.url.filter(|_| is_open).ok_or(StripeError::Closed)?;
    let customer = customer.map(str::to_owned);
    Ok(CheckoutSession { url, payment: Some(session.id), customer, is_lasting: true })
}
