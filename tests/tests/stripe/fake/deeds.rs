//! What buyers, banks and operators do at Stripe, and the events that tell of it.

use serde_json::{Value, json};

use super::{Event, Stripe, money::Bill};

impl Stripe {
    /// The checkout of an order.
    pub(crate) fn session(&self, order: &str) -> String {
        let sessions = self.books().all("cs");
        let found = sessions.iter().find(|session| session["client_reference_id"] == order);
        found.and_then(|session| session["id"].as_str()).expect("a checkout was opened").to_owned()
    }

    /// Whether a checkout was opened for an order.
    pub(crate) fn has_session(&self, order: &str) -> bool {
        self.books().all("cs").iter().any(|session| session["client_reference_id"] == order)
    }

    /// All idempotency keys are a day old.
    pub(crate) fn forget_replies(&self) {
        self.books().replies.clear();
    }

    /// An object as it is now.
    pub(crate) fn object(&self, id: &str) -> Value {
        self.books().object(id)
    }

    /// How many of a kind there are.
    pub(crate) fn count(&self, kind: &str) -> usize {
        self.books().all(kind).len()
    }

    /// Changes a field of an object, whatever follows from that.
    pub(crate) fn change(&self, id: &str, field: &str, value: impl Into<Value>) {
        self.books().change(id, field, value);
    }

    /// A customer is deleted.
    pub(crate) fn delete(&self, id: &str) {
        self.books().objects.remove(id);
    }

    /// The subscription that an order began.
    pub(crate) fn subscription(&self, order: &str) -> String {
        let session = self.object(&self.session(order));
        session["subscription"].as_str().expect("a plan was paid").to_owned()
    }

    /// The payment of an order, or of the latest invoice of its subscription.
    pub(crate) fn payment(&self, order: &str) -> String {
        let session = self.object(&self.session(order));
        if let Some(intent) = session["payment_intent"].as_str() {
            return intent.to_owned();
        }
        let subscription = self.object(session["subscription"].as_str().unwrap_or_default());
        let invoice = self.object(subscription["latest_invoice"].as_str().unwrap_or_default());
        invoice["payments"]["data"][0]["payment"]["payment_intent"].as_str().unwrap_or_default().to_owned()
    }

    /// The buyer pays an order's checkout at a moment, in seconds.
    pub(crate) fn pay(&self, order: &str, at: i64) -> Vec<Event> {
        self.complete(order, at, "checkout.session.completed")
    }

    /// The buyer pays with something that takes days.
    pub(crate) fn pay_later(&self, order: &str) -> Vec<Event> {
        let (id, mut books) = (self.session(order), self.books());
        let (intent, session) = (books.name("pi"), books.object(&id));
        books.keep(json!({
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
        books.change(&id, "payment_intent", intent);
        books.change(&id, "status", "complete");
        vec![Event::new("checkout.session.completed", &books.object(&id))]
    }

    /// That money arrives.
    pub(crate) fn arrive(&self, order: &str, at: i64) -> Vec<Event> {
        self.complete(order, at, "checkout.session.async_payment_succeeded")
    }

    /// That money never arrives.
    pub(crate) fn fail(&self, order: &str) -> Vec<Event> {
        let (id, mut books) = (self.session(order), self.books());
        let intent = books.object(&id)["payment_intent"].as_str().unwrap_or_default().to_owned();
        books.change(&intent, "status", "requires_payment_method");
        vec![Event::new("checkout.session.async_payment_failed", &books.object(&id))]
    }

    /// Nobody pays in time.
    pub(crate) fn expire(&self, order: &str) -> Vec<Event> {
        let (id, mut books) = (self.session(order), self.books());
        books.change(&id, "status", "expired");
        vec![Event::new("checkout.session.expired", &books.object(&id))]
    }

    fn complete(&self, order: &str, at: i64, kind: &str) -> Vec<Event> {
        let session = self.session(order);
        self.books().complete(&session, at, kind)
    }

    /// The buyer pays an order's checkout in the moment when somebody wants to close it.
    pub(crate) fn pay_when_closed(&self, order: &str) {
        let session = self.session(order);
        self.books().paid_when_closed.push(session);
    }

    /// The operator makes a price for a plan.
    pub(crate) fn offer(&self, plan: &str, amount: i64) {
        let mut books = self.books();
        let (product, id) = (format!("verbatim_plan_{plan}"), books.name("price"));
        books.keep(json!({ "id": product, "object": "product", "name": plan, "active": true }));
        books.keep(json!({
            "id": id, "object": "price", "active": true, "currency": "usd", "lookup_key": null,
            "product": product, "unit_amount": amount, "type": "recurring",
        }));
    }

    /// The operator starts a subscription for a customer, who pays it at a moment.
    pub(crate) fn start_by_hand(&self, customer: &str, plan: &str, at: i64) -> Vec<Event> {
        let mut books = self.books();
        let price = books.price_of(plan);
        let subscription = books.subscription(&json!(customer), price, &json!({}), at);
        let bill = Bill {
            subscription: &subscription,
            reason: "subscription_create",
            from: at,
            is_paid: true,
            credit: 0,
        };
        let invoice = books.invoice(&bill);
        vec![Event::new("invoice.paid", &books.object(&invoice))]
    }

    /// The payment of an invoice.
    pub(crate) fn payment_of_invoice(&self, invoice: &str) -> String {
        let payment = &self.object(invoice)["payments"]["data"][0]["payment"]["payment_intent"];
        payment.as_str().expect("it was paid").to_owned()
    }

    /// The subscription's latest invoice.
    pub(crate) fn latest_invoice(&self, subscription: &str) -> String {
        self.object(subscription)["latest_invoice"].as_str().expect("one was made out").to_owned()
    }

    /// A subscription's next month is invoiced, and paid or not.
    pub(crate) fn renew(&self, subscription: &str, from: i64, is_paid: bool) -> Vec<Event> {
        let mut books = self.books();
        let bill = Bill { subscription, reason: "subscription_cycle", from, is_paid, credit: 0 };
        let invoice = books.invoice(&bill);
        books.change(subscription, "status", if is_paid { "active" } else { "past_due" });
        let kind = if is_paid { "invoice.paid" } else { "invoice.payment_failed" };
        let subscription = books.object(subscription);
        vec![
            Event::new("customer.subscription.updated", &subscription),
            Event::new(kind, &books.object(&invoice)),
        ]
    }

    /// The buyer confirms on the portal's page that a subscription changes to another plan.
    pub(crate) fn exchange(&self, subscription: &str, plan: &str, at: i64, credit: i64) -> Vec<Event> {
        self.switch(subscription, plan);
        let mut books = self.books();
        books.change(subscription, "billing_cycle_anchor", at);
        let bill = Bill { subscription, reason: "subscription_update", from: at, is_paid: true, credit };
        let invoice = books.invoice(&bill);
        let subscription = books.object(subscription);
        vec![
            Event::new("customer.subscription.updated", &subscription),
            Event::new("invoice.paid", &books.object(&invoice)),
        ]
    }

    /// A subscription is to become something else when its month ends.
    pub(crate) fn schedule(&self, subscription: &str) {
        let mut books = self.books();
        let id = books.name("sub_sched");
        books.keep(json!({
            "id": id, "object": "subscription_schedule", "subscription": subscription, "status": "active",
        }));
        books.change(subscription, "schedule", id);
    }

    /// From its next invoice on a subscription is one of another plan.
    pub(crate) fn switch(&self, subscription: &str, plan: &str) {
        let mut books = self.books();
        let price = books.price_of(plan);
        let mut items = books.object(subscription)["items"].clone();
        items["data"][0]["price"] = price;
        books.change(subscription, "items", items);
    }

    /// A subscription ends.
    pub(crate) fn cancel(&self, subscription: &str) -> Vec<Event> {
        let mut books = self.books();
        books.change(subscription, "status", "canceled");
        vec![Event::new("customer.subscription.deleted", &books.object(subscription))]
    }

    /// Money of a payment goes back.
    pub(crate) fn refund(&self, intent: &str, amount: i64) -> Vec<Event> {
        let mut books = self.books();
        let charge = books.object(intent)["latest_charge"].as_str().unwrap_or_default().to_owned();
        let returned = books.object(&charge)["amount_refunded"].as_i64().unwrap_or(0) + amount;
        books.change(&charge, "amount_refunded", returned);
        let refund = json!({
            "id": books.name("re"), "object": "refund", "amount": amount, "charge": charge,
            "payment_intent": intent, "status": "succeeded",
        });
        let events = vec![
            Event::new("refund.created", &refund),
            Event::new("charge.refunded", &books.object(&charge)),
        ];
        books.remember(&events);
        events
    }

    /// The buyer's bank contests a payment, or the dispute comes to this state.
    pub(crate) fn dispute(&self, intent: &str, status: &str) -> Vec<Event> {
        let mut books = self.books();
        let charge = books.object(intent)["latest_charge"].as_str().unwrap_or_default().to_owned();
        books.change(&charge, "disputed", true);
        let known = books.all("dp").into_iter().find(|dispute| dispute["payment_intent"] == intent);
        let id = known.as_ref().and_then(|dispute| dispute["id"].as_str()).map(str::to_owned);
        let kind = if id.is_some() { "charge.dispute.updated" } else { "charge.dispute.created" };
        let id = id.unwrap_or_else(|| books.name("dp"));
        let amount = books.object(&charge)["amount"].clone();
        let dispute = books.keep(json!({
            "id": id, "object": "dispute", "amount": amount, "charge": charge, "payment_intent": intent,
            "status": status,
        }));
        let events = vec![Event::new(kind, &dispute)];
        books.remember(&events);
        events
    }
}
