//! Payments, charges, invoices and subscriptions of the fake.

use serde_json::{Value, json};

use super::{FakeEvent, state::StripeState};

/// A month, in seconds: 30 days.
pub(crate) const MONTH_S: i64 = 30 * 86_400;

/// An invoice for a month of a plan.
pub(super) struct FakeBill<'a> {
    pub(super) subscription: &'a str,
    pub(super) reason: &'a str,
    /// Start of the month, in seconds.
    pub(super) from: i64,
    pub(super) is_paid: bool,
    /// Value of the unused part of the previous month.
    pub(super) credit: i64,
}

impl StripeState {
    /// Creates a succeeded payment intent with its charge.
    pub(super) fn charge(
        &mut self,
        amount: i64,
        currency: &Value,
        customer: &Value,
        metadata: &Value,
    ) -> String {
        let (intent, charge) = (self.new_id("pi"), self.new_id("ch"));
        self.insert_object(json!({
            "id": charge,
            "object": "charge",
            "amount": amount,
            "amount_captured": amount,
            "amount_refunded": 0,
            "captured": true,
            "currency": currency,
            "customer": customer,
            "disputed": false,
            "metadata": metadata,
            "paid": true,
            "payment_intent": intent,
            "refunded": false,
            "status": "succeeded",
        }));
        self.insert_object(json!({
            "id": intent,
            "object": "payment_intent",
            "amount": amount,
            "amount_received": amount,
            "currency": currency,
            "customer": customer,
            "latest_charge": charge,
            "metadata": metadata,
            "status": "succeeded",
        }));
        intent
    }

    /// Completes a checkout session, or its delayed payment.
    pub(super) fn complete(&mut self, session: &str, at: i64, kind: &str) -> Vec<FakeEvent> {
        let (whole, mut events) = (self.object(session), Vec::new());
        let made = self.subscription_metadata[session].clone();
        if whole["mode"] == "subscription" {
            let price = self.object(made["price"].as_str().unwrap_or_default());
            let subscription = self.subscription(&whole["customer"], price, &made["metadata"], at);
            let bill = FakeBill {
                subscription: &subscription,
                reason: "subscription_create",
                from: at,
                is_paid: true,
                credit: 0,
            };
            let invoice = self.invoice(&bill);
            self.change(session, "subscription", subscription.clone());
            self.change(session, "invoice", invoice.clone());
            events.push(FakeEvent::new("customer.subscription.created", &self.object(&subscription)));
            events.push(FakeEvent::new("invoice.paid", &self.object(&invoice)));
            events.push(FakeEvent::new("invoice.payment_succeeded", &self.object(&invoice)));
        } else {
            let amount = whole["amount_total"].as_i64().unwrap_or(0);
            let intent = self.charge(amount, &whole["currency"], &whole["customer"], &made["payment"]);
            self.change(session, "payment_intent", intent.clone());
            events.push(FakeEvent::new("payment_intent.succeeded", &self.object(&intent)));
        }
        self.change(session, "status", "complete");
        self.change(session, "payment_status", "paid");
        events.push(FakeEvent::new(kind, &self.object(session)));
        events
    }

    /// The latest price of a plan.
    pub(super) fn price_of(&self, plan: &str) -> Value {
        let product = format!("verbatim_plan_{plan}");
        let price = self.all("price").into_iter().find(|price| price["product"] == product);
        price.expect("the plan needs a price")
    }

    pub(super) fn subscription(
        &mut self,
        customer: &Value,
        price: Value,
        metadata: &Value,
        from: i64,
    ) -> String {
        let (id, item) = (self.new_id("sub"), self.new_id("si"));
        self.insert_object(json!({
            "id": id,
            "object": "subscription",
            "status": "active",
            "billing_cycle_anchor": from,
            "cancel_at_period_end": false,
            "schedule": null,
            "created": from,
            "customer": customer,
            "items": {
                "object": "list",
                "has_more": false,
                "url": "/v1/subscription_items",
                "data": [{ "id": item, "object": "subscription_item", "price": price, "quantity": 1 }],
            },
            "latest_invoice": null,
            "metadata": metadata,
        }));
        id
    }

    /// Creates an invoice for a month of a subscription's plan.
    pub(super) fn invoice(&mut self, bill: &FakeBill<'_>) -> String {
        let subscription = self.object(bill.subscription);
        let price = subscription["items"]["data"][0]["price"].clone();
        let full = price["unit_amount"].as_i64().unwrap_or(0);
        let (id, total) = (self.new_id("in"), (full - bill.credit).max(0));
        let mut lines = vec![self.line(&id, full, &price, bill.from, bill.from + MONTH_S)];
        if bill.credit > 0 {
            lines.insert(0, self.line(&id, -bill.credit, &price, bill.from - 86_400, bill.from));
        }
        let payments = match bill.is_paid && total > 0 {
            true => self.invoice_payment(&id, total, &price["currency"], &subscription["customer"]),
            false => Vec::new(),
        };
        self.insert_object(json!({
            "id": id,
            "object": "invoice",
            "status": if bill.is_paid { "paid" } else { "open" },
            "amount_due": total,
            "amount_paid": if bill.is_paid { total } else { 0 },
            "billing_reason": bill.reason,
            "created": bill.from,
            "currency": price["currency"],
            "customer": subscription["customer"],
            "hosted_invoice_url": format!("https://invoice.stripe.example/i/{id}"),
            "lines": { "object": "list", "has_more": false, "url": "/v1/lines", "data": lines },
            "parent": {
                "type": "subscription_details",
                "quote_details": null,
                "subscription_details": {
                    "subscription": bill.subscription,
                    "metadata": subscription["metadata"],
                },
            },
            "payments": { "object": "list", "has_more": false, "url": "/v1/payments", "data": payments },
            "total": total,
        }));
        self.change(bill.subscription, "latest_invoice", id.clone());
        id
    }

    fn line(&mut self, invoice: &str, amount: i64, price: &Value, start: i64, end: i64) -> Value {
        json!({
            "id": self.new_id("il"),
            "object": "line_item",
            "amount": amount,
            "currency": price["currency"],
            "discount_amounts": [],
            "invoice": invoice,
            "period": { "start": start, "end": end },
            "pricing": {
                "type": "price_details",
                "price_details": { "price": price["id"], "product": price["product"] },
                "unit_amount_decimal": price["unit_amount"].to_string(),
            },
            "quantity": 1,
        })
    }

    fn invoice_payment(
        &mut self,
        invoice: &str,
        total: i64,
        currency: &Value,
        customer: &Value,
    ) -> Vec<Value> {
        let intent = self.charge(total, currency, customer, &json!({}));
        vec![json!({
            "id": self.new_id("inpay"),
            "object": "invoice_payment",
            "amount_paid": total,
            "amount_requested": total,
            "currency": currency,
            "invoice": invoice,
            "payment": { "type": "payment_intent", "payment_intent": intent },
            "status": "paid",
        })]
    }
}
