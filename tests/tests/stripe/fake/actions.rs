//! Actions of buyers, banks and operators at Stripe, and the resulting events.

use serde_json::{Value, json};

use super::{FakeEvent, FakeStripe, money::FakeBill};

impl FakeStripe {
    /// The id of an order's checkout session.
    pub(crate) fn session(&self, order: &str) -> String {
        let sessions = self.state().all("cs");
        let found = sessions.iter().find(|session| session["client_reference_id"] == order);
        found
            .and_then(|session| session["id"].as_str())
            .expect("the order needs a checkout session")
            .to_owned()
    }

    /// Whether an order has a checkout session.
    pub(crate) fn has_session(&self, order: &str) -> bool {
        self.state().all("cs").iter().any(|session| session["client_reference_id"] == order)
    }

    /// Discards all idempotency keys, as Stripe does after a day.
    pub(crate) fn discard_idempotency_keys(&self) {
        self.state().idempotent_responses.clear();
    }

    /// The current state of an object.
    pub(crate) fn object(&self, id: &str) -> Value {
        self.state().object(id)
    }

    /// Number of objects of a kind.
    pub(crate) fn count(&self, kind: &str) -> usize {
        self.state().all(kind).len()
    }

    /// Sets a field of an object without side effects.
    pub(crate) fn change(&self, id: &str, field: &str, value: impl Into<Value>) {
        self.state().change(id, field, value);
    }

    /// Deletes an object, for example a customer.
    pub(crate) fn delete(&self, id: &str) {
        self.state().objects.remove(id);
    }

    /// The id of the subscription that an order started.
    pub(crate) fn subscription(&self, order: &str) -> String {
        let session = self.object(&self.session(order));
        session["subscription"].as_str().expect("the plan must be paid").to_owned()
    }

    /// The payment intent of an order, or of the latest invoice of its subscription.
    pub(crate) fn payment(&self, order: &str) -> String {
        let session = self.object(&self.session(order));
        if let Some(intent) = session["payment_intent"].as_str() {
            return intent.to_owned();
        }
        let subscription = self.object(session["subscription"].as_str().unwrap_or_default());
        let invoice = self.object(subscription["latest_invoice"].as_str().unwrap_or_default());
        invoice["payments"]["data"][0]["payment"]["payment_intent"].as_str().unwrap_or_default().to_owned()
    }

    /// Pays an order's checkout session at a time, in seconds.
    pub(crate) fn pay(&self, order: &str, at: i64) -> Vec<FakeEvent> {
        self.complete(order, at, "checkout.session.completed")
    }

    /// Pays a session with the same order, price and buyer that another program on the account created.
    pub(crate) fn pay_elsewhere(&self, order: &str, metadata: Value, at: i64) -> Vec<FakeEvent> {
        let own = self.session(order);
        let mut state = self.state();
        let (id, mut session) = (state.new_id("cs"), state.object(&own));
        state.subscription_metadata.insert(id.clone(), json!({ "payment": metadata }));
        (session["id"], session["metadata"]) = (json!(id), metadata);
        state.insert_object(session);
        state.complete(&id, at, "checkout.session.completed")
    }

    /// Pays with a delayed payment method.
    pub(crate) fn pay_later(&self, order: &str) -> Vec<FakeEvent> {
        let (id, mut state) = (self.session(order), self.state());
        let (intent, session) = (state.new_id("pi"), state.object(&id));
        state.insert_object(json!({
            "id": intent,
            "object": "payment_intent",
            "amount": session["amount_total"],
            "amount_received": 0,
            "currency": session["currency"],
            "customer": session["customer"],
            "latest_charge": null,
            "metadata": {},
            "status": "processing",
        }));
        state.change(&id, "payment_intent", intent);
        state.change(&id, "status", "complete");
        vec![FakeEvent::new("checkout.session.completed", &state.object(&id))]
    }

    /// Completes a delayed payment.
    pub(crate) fn complete_delayed(&self, order: &str, at: i64) -> Vec<FakeEvent> {
        self.complete(order, at, "checkout.session.async_payment_succeeded")
    }

    /// Fails a delayed payment.
    pub(crate) fn fail(&self, order: &str) -> Vec<FakeEvent> {
        let (id, mut state) = (self.session(order), self.state());
        let intent = state.object(&id)["payment_intent"].as_str().unwrap_or_default().to_owned();
        state.change(&intent, "status", "requires_payment_method");
        vec![FakeEvent::new("checkout.session.async_payment_failed", &state.object(&id))]
    }

    /// Expires an order's checkout session.
    pub(crate) fn expire(&self, order: &str) -> Vec<FakeEvent> {
        let (id, mut state) = (self.session(order), self.state());
        state.change(&id, "status", "expired");
        vec![FakeEvent::new("checkout.session.expired", &state.object(&id))]
    }

    fn complete(&self, order: &str, at: i64, kind: &str) -> Vec<FakeEvent> {
        let session = self.session(order);
        self.state().complete(&session, at, kind)
    }

    /// Arranges that an attempt to expire the checkout session finds it paid.
    pub(crate) fn pay_on_expire(&self, order: &str) {
        let session = self.session(order);
        self.state().paid_on_expire.push(session);
    }

    /// Creates a price for a plan, as the operator.
    pub(crate) fn create_price(&self, plan: &str, amount: i64) {
        let mut state = self.state();
        let (product, id) = (format!("verbatim_plan_{plan}"), state.new_id("price"));
        state.insert_object(json!({ "id": product, "object": "product", "name": plan, "active": true }));
        state.insert_object(json!({
            "id": id, "object": "price", "active": true, "currency": "usd", "lookup_key": null,
            "product": product, "unit_amount": amount, "type": "recurring",
        }));
    }

    /// Starts a paid subscription for a customer, as the operator.
    pub(crate) fn start_subscription(&self, customer: &str, plan: &str, at: i64) -> Vec<FakeEvent> {
        let mut state = self.state();
        let price = state.price_of(plan);
        let subscription = state.subscription(&json!(customer), price, &json!({}), at);
        let bill = FakeBill {
            subscription: &subscription,
            reason: "subscription_create",
            from: at,
            is_paid: true,
            credit: 0,
        };
        let invoice = state.invoice(&bill);
        vec![FakeEvent::new("invoice.paid", &state.object(&invoice))]
    }

    /// The payment intent of an invoice.
    pub(crate) fn payment_of_invoice(&self, invoice: &str) -> String {
        let payment = &self.object(invoice)["payments"]["data"][0]["payment"]["payment_intent"];
        payment.as_str().expect("the invoice must be paid").to_owned()
    }

    /// The id of the subscription's latest invoice.
    pub(crate) fn latest_invoice(&self, subscription: &str) -> String {
        self.object(subscription)["latest_invoice"]
            .as_str()
            .expect("the subscription needs an invoice")
            .to_owned()
    }

    /// Invoices the next month of a subscription, paid or unpaid.
    pub(crate) fn renew(&self, subscription: &str, from: i64, is_paid: bool) -> Vec<FakeEvent> {
        let mut state = self.state();
        let bill = FakeBill { subscription, reason: "subscription_cycle", from, is_paid, credit: 0 };
        let invoice = state.invoice(&bill);
        state.change(subscription, "status", if is_paid { "active" } else { "past_due" });
        let kind = if is_paid { "invoice.paid" } else { "invoice.payment_failed" };
        let subscription = state.object(subscription);
        vec![
            FakeEvent::new("customer.subscription.updated", &subscription),
            FakeEvent::new(kind, &state.object(&invoice)),
        ]
    }

    /// Confirms a plan change on the portal page, as the buyer.
    pub(crate) fn exchange(&self, subscription: &str, plan: &str, at: i64, credit: i64) -> Vec<FakeEvent> {
        self.switch(subscription, plan);
        let mut state = self.state();
        state.change(subscription, "billing_cycle_anchor", at);
        let bill = FakeBill { subscription, reason: "subscription_update", from: at, is_paid: true, credit };
        let invoice = state.invoice(&bill);
        let subscription = state.object(subscription);
        vec![
            FakeEvent::new("customer.subscription.updated", &subscription),
            FakeEvent::new("invoice.paid", &state.object(&invoice)),
        ]
    }

    /// Schedules a change of the subscription for the end of its month.
    pub(crate) fn schedule(&self, subscription: &str) {
        let mut state = self.state();
        let id = state.new_id("sub_sched");
        state.insert_object(json!({
            "id": id, "object": "subscription_schedule", "subscription": subscription, "status": "active",
        }));
        state.change(subscription, "schedule", id);
    }

    /// Replaces the plan of a subscription from its next invoice on.
    pub(crate) fn switch(&self, subscription: &str, plan: &str) {
        let mut state = self.state();
        let price = state.price_of(plan);
        let mut items = state.object(subscription)["items"].clone();
        items["data"][0]["price"] = price;
        state.change(subscription, "items", items);
    }

    /// Cancels a subscription immediately.
    pub(crate) fn cancel(&self, subscription: &str) -> Vec<FakeEvent> {
        let mut state = self.state();
        state.change(subscription, "status", "canceled");
        vec![FakeEvent::new("customer.subscription.deleted", &state.object(subscription))]
    }

    /// Refunds an amount of a payment.
    pub(crate) fn refund(&self, intent: &str, amount: i64) -> Vec<FakeEvent> {
        let mut state = self.state();
        let charge = state.object(intent)["latest_charge"].as_str().unwrap_or_default().to_owned();
        let returned = state.object(&charge)["amount_refunded"].as_i64().unwrap_or(0) + amount;
        state.change(&charge, "amount_refunded", returned);
        let refund = json!({
            "id": state.new_id("re"), "object": "refund", "amount": amount, "charge": charge,
            "payment_intent": intent, "status": "succeeded",
        });
        let events = vec![
            FakeEvent::new("refund.created", &refund),
            FakeEvent::new("charge.refunded", &state.object(&charge)),
        ];
        state.record_events(&events);
        events
    }

    /// Opens a dispute of a payment, or sets its status.
    pub(crate) fn dispute(&self, intent: &str, status: &str) -> Vec<FakeEvent> {
        let mut state = self.state();
        let charge = state.object(intent)["latest_charge"].as_str().unwrap_or_default().to_owned();
        state.change(&charge, "disputed", true);
        let known = state.all("dp").into_iter().find(|dispute| dispute["payment_intent"] == intent);
        let id = known.as_ref().and_then(|dispute| dispute["id"].as_str()).map(str::to_owned);
        let kind = if id.is_some() { "charge.dispute.updated" } else { "charge.dispute.created" };
        let id = id.unwrap_or_else(|| state.new_id("dp"));
        let amount = state.object(&charge)["amount"].clone();
        let dispute = state.insert_object(json!({
            "id": id, "object": "dispute", "amount": amount, "charge": charge, "payment_intent": intent,
            "status": status,
        }));
        let events = vec![FakeEvent::new(kind, &dispute)];
        state.record_events(&events);
        events
    }
}
