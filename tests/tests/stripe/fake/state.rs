//! State of the fake, and its reaction to requests.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value, json};
use url::form_urlencoded;

use super::{FakeEvent, now_s};

/// A rejected request.
#[derive(Debug)]
pub(super) struct FakeRejection {
    pub(super) status: u16,
    pub(super) code: &'static str,
    pub(super) param: &'static str,
}

impl FakeRejection {
    pub(super) fn new(status: u16, code: &'static str, param: &'static str) -> Self {
        Self { status, code, param }
    }

    fn missing(param: &'static str) -> Self {
        Self::new(if param == "id" { 404 } else { 400 }, "resource_missing", param)
    }
}

/// The fields of a request.
#[derive(Debug)]
pub(super) struct FormFields(BTreeMap<String, String>);

impl FormFields {
    pub(super) fn parse(text: &str) -> Self {
        Self(form_urlencoded::parse(text.as_bytes()).into_owned().collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn number(&self, name: &str) -> Option<i64> {
        self.get(name)?.parse().ok()
    }

    /// The values below a name, such as those of `metadata[…]`.
    fn map(&self, name: &str) -> Value {
        let inside =
            |key: &str| key.strip_prefix(name)?.strip_prefix('[')?.strip_suffix(']').map(str::to_owned);
        let found = self.0.iter().filter_map(|(key, value)| Some((inside(key)?, value.clone().into())));
        Value::Object(found.collect())
    }

    fn expansions(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(name, _)| name.starts_with("expand[")).map(|(_, value)| value.as_str())
    }
}

/// All objects of the fake.
#[derive(Debug, Default)]
pub(super) struct StripeState {
    /// Objects by id; ids grow.
    pub(super) objects: BTreeMap<String, Value>,
    /// Values that a subscription gets from its checkout session, by session.
    pub(super) subscription_metadata: BTreeMap<String, Value>,
    /// Checkout sessions that are paid when an attempt to expire them is made.
    pub(super) paid_on_expire: Vec<String>,
    /// The events of refunds and disputes, oldest first.
    pub(super) events: Vec<Value>,
    /// First request and its response, by idempotency key.
    pub(super) idempotent_responses: BTreeMap<String, (String, u16, Value)>,
    count: u64,
}

type CallOutcome = Result<Value, FakeRejection>;

impl StripeState {
    pub(super) fn new_id(&mut self, kind: &str) -> String {
        self.count += 1;
        format!("{kind}_test{:06}", self.count)
    }

    pub(super) fn insert_object(&mut self, object: Value) -> Value {
        let id = object["id"].as_str().unwrap_or_default().to_owned();
        self.objects.insert(id, object.clone());
        object
    }

    pub(super) fn object(&self, id: &str) -> Value {
        self.objects.get(id).cloned().unwrap_or_default()
    }

    pub(super) fn change(&mut self, id: &str, field: &str, value: impl Into<Value>) {
        if let Some(object) = self.objects.get_mut(id) {
            object[field] = value.into();
        }
    }

    /// The objects of a kind, the latest first.
    pub(super) fn all(&self, kind: &str) -> Vec<Value> {
        let prefix = format!("{kind}_test");
        let found = self.objects.iter().rev().filter(|(id, _)| id.starts_with(&prefix));
        found.map(|(_, object)| object.clone()).collect()
    }

    /// Stores events for the list endpoint.
    pub(super) fn record_events(&mut self, events: &[FakeEvent]) {
        self.events.extend(events.iter().filter_map(|event| serde_json::from_str::<Value>(&event.body).ok()));
    }

    /// A page of the events of the requested kinds since a time, the latest first.
    fn events(&self, fields: &FormFields) -> Value {
        let since = fields.number("created[gte]").unwrap_or(0);
        let kinds: Vec<_> = fields.0.iter().filter(|(name, _)| name.starts_with("types[")).collect();
        let is_wanted = |event: &&Value| {
            let kind = event["type"].as_str().unwrap_or_default();
            event["created"].as_i64() >= Some(since) && kinds.iter().any(|(_, wanted)| *wanted == kind)
        };
        let all = self.events.iter().rev().filter(is_wanted);
        let after = fields.get("starting_after");
        let mut rest: Vec<&Value> = match after {
            Some(after) => all.skip_while(|event| event["id"] != after).skip(1).collect(),
            None => all.collect(),
        };
        let limit = fields.number("limit").and_then(|limit| limit.try_into().ok()).unwrap_or(10);
        let has_more = rest.len() > limit;
        rest.truncate(limit);
        json!({ "object": "list", "url": "/v1/events", "has_more": has_more, "data": rest })
    }

    pub(super) fn handle(&mut self, method: &Method, path: &str, fields: &FormFields) -> CallOutcome {
        let parts: Vec<&str> = path.trim_start_matches("/v1/").split('/').collect();
        let mut value = match (method.as_str(), parts.as_slice()) {
            ("POST", ["customers"]) => self.make_customer(fields),
            ("POST", ["products"]) => self.make_product(fields)?,
            ("GET", ["events"]) => self.events(fields),
            ("GET", ["products", id]) => self.read(id)?,
            ("GET", ["prices"]) => self.list_active("price", &[("lookup_key", fields.get("lookup_keys[]"))]),
            ("POST", ["prices"]) => self.make_price(fields)?,
            ("GET", ["checkout", "sessions"]) => {
                let wanted = ["customer", "status", "payment_intent"].map(|name| (name, fields.get(name)));
                self.list("cs", &wanted)
            }
            ("POST", ["checkout", "sessions"]) => self.make_session(fields)?,
            ("GET", ["checkout", "sessions", id]) => self.read(id)?,
            ("POST", ["checkout", "sessions", id, "expire"]) => self.expire(id)?,
            ("GET", ["subscriptions"]) => {
                let mut found = self.list("sub", &[("customer", fields.get("customer"))]);
                // Cancelled ones are listed only on request.
                if let Some(data) = found["data"].as_array_mut() {
                    data.retain(|subscription| subscription["status"] != "canceled");
                }
                found
            }
            ("GET", ["subscriptions", id]) => self.read(id)?,
            ("POST", ["subscription_schedules", id, "release"]) => self.release(id)?,
            ("POST", ["subscriptions", id]) => self.change_subscription(id, fields)?,
            ("GET", ["invoices"]) => {
                let mut found = self.list("in", &[("status", fields.get("status"))]);
                if let Some(data) = found["data"].as_array_mut() {
                    let of =
                        |invoice: &Value| invoice["parent"]["subscription_details"]["subscription"].clone();
                    data.retain(|invoice| of(invoice).as_str() == fields.get("subscription"));
                }
                found
            }
            ("GET", ["invoices" | "payment_intents", id]) => self.read(id)?,
            ("GET", ["invoice_payments"]) => self.payments_of(fields.get("payment[payment_intent]")),
            ("GET", ["disputes"]) => self.list("dp", &[("payment_intent", fields.get("payment_intent"))]),
            ("GET", ["billing_portal", "configurations"]) => self.list_active("bpc", &[]),
            ("POST", ["billing_portal", "configurations"]) => self.make_configuration(fields),
            ("POST", ["billing_portal", "sessions"]) => self.make_portal_session(fields)?,
            _ => return Err(FakeRejection::missing("id")),
        };
        if value["object"] == "list" {
            value["url"] = path.into();
        }
        Ok(self.expand(value, &fields.expansions().collect::<Vec<_>>()))
    }

    fn read(&self, id: &str) -> CallOutcome {
        self.objects.get(id).cloned().ok_or_else(|| FakeRejection::missing("id"))
    }

    /// The objects whose fields have these values, the latest first.
    fn list(&self, kind: &str, wanted: &[(&str, Option<&str>)]) -> Value {
        let mut found = self.all(kind);
        found.retain(|object| {
            wanted.iter().all(|(name, value)| value.is_none_or(|value| object[*name].as_str() == Some(value)))
        });
        json!({ "object": "list", "data": found, "has_more": false, "url": "/v1/things" })
    }

    /// As [`StripeState::list`], without archived objects.
    fn list_active(&self, kind: &str, wanted: &[(&str, Option<&str>)]) -> Value {
        let mut found = self.list(kind, wanted);
        if let Some(data) = found["data"].as_array_mut() {
            data.retain(|object| object["active"] == true);
        }
        found
    }

    /// Replaces ids by whole objects where requested, and removes fields that are sent only on request.
    fn expand(&self, mut value: Value, paths: &[&str]) -> Value {
        if value["object"] == "list" {
            let inside: Vec<&str> = paths.iter().filter_map(|path| path.strip_prefix("data.")).collect();
            if let Some(data) = value["data"].as_array_mut() {
                *data = data.iter().map(|item| self.expand(item.clone(), &inside)).collect();
            }
            return value;
        }
        if value["object"] == "invoice"
            && !paths.contains(&"payments")
            && let Some(invoice) = value.as_object_mut()
        {
            invoice.remove("payments");
        }
        for path in paths {
            let (first, rest) =
                path.split_once('.').map_or((*path, None), |(first, rest)| (first, Some(rest)));
            if let Some(id) = value[first].as_str() {
                let rest: Vec<&str> = rest.into_iter().collect();
                value[first] = self.expand(self.object(id), &rest);
            }
        }
        value
    }

    fn make_customer(&mut self, fields: &FormFields) -> Value {
        let id = self.new_id("cus");
        let email = fields.get("email");
        self.insert_object(
            json!({ "id": id, "object": "customer", "email": email, "metadata": fields.map("metadata") }),
        )
    }

    fn make_product(&mut self, fields: &FormFields) -> CallOutcome {
        let id = fields.get("id").ok_or_else(|| FakeRejection::missing("id"))?;
        if self.objects.contains_key(id) {
            return Err(FakeRejection::new(400, "resource_already_exists", "id"));
        }
        Ok(self.insert_object(
            json!({ "id": id, "object": "product", "name": fields.get("name"), "active": true }),
        ))
    }

    fn make_price(&mut self, fields: &FormFields) -> CallOutcome {
        let product = fields.get("product").filter(|id| self.objects.contains_key(*id));
        let product = product.ok_or_else(|| FakeRejection::missing("product"))?;
        let id = self.new_id("price");
        Ok(self.insert_object(json!({
            "id": id,
            "object": "price",
            "active": true,
            "currency": fields.get("currency"),
            "lookup_key": fields.get("lookup_key"),
            "product": product,
            "unit_amount": fields.number("unit_amount"),
            "type": "recurring",
        })))
    }

    fn make_session(&mut self, fields: &FormFields) -> CallOutcome {
        let customer = fields.get("customer").filter(|id| self.objects.contains_key(*id));
        let customer = customer.ok_or_else(|| FakeRejection::missing("customer"))?.to_owned();
        let mode = fields.get("mode").unwrap_or_default();
        let (amount, currency) = if mode == "subscription" {
            let price = self.read(fields.get("line_items[0][price]").unwrap_or_default())?;
            (price["unit_amount"].clone(), price["currency"].clone())
        } else {
            let data = "line_items[0][price_data]";
            let amount = fields.number(&format!("{data}[unit_amount]"));
            (json!(amount), json!(fields.get(&format!("{data}[currency]"))))
        };
        let id = self.new_id("cs");
        self.subscription_metadata.insert(
            id.clone(),
            json!({
                "metadata": fields.map("subscription_data[metadata]"),
                "price": fields.get("line_items[0][price]"),
                "payment": fields.map("payment_intent_data[metadata]"),
            }),
        );
        Ok(self.insert_object(json!({
            "id": id,
            "object": "checkout.session",
            "mode": mode,
            "status": "open",
            "payment_status": "unpaid",
            "amount_total": amount,
            "currency": currency,
            "client_reference_id": fields.get("client_reference_id"),
            "customer": customer,
            "livemode": false,
            "metadata": fields.map("metadata"),
            "url": format!("https://checkout.stripe.example/c/pay/{id}"),
            "success_url": fields.get("success_url"),
            "payment_intent": null,
            "subscription": null,
            "created": now_s(),
            "expires_at": now_s() + 86_400,
        })))
    }

    fn expire(&mut self, id: &str) -> CallOutcome {
        if self.paid_on_expire.iter().any(|paid| paid == id) && self.read(id)?["status"] == "open" {
            self.complete(id, now_s(), "checkout.session.completed");
        }
        if self.read(id)?["status"] != "open" {
            return Err(FakeRejection::new(400, "session_not_open", "session"));
        }
        self.change(id, "status", "expired");
        self.change(id, "url", Value::Null);
        self.read(id)
    }

    fn change_subscription(&mut self, id: &str, fields: &FormFields) -> CallOutcome {
        let mut metadata = self.read(id)?["metadata"].clone();
        if let (Some(old), Value::Object(new)) = (metadata.as_object_mut(), fields.map("metadata")) {
            old.extend(new);
        }
        self.change(id, "metadata", metadata);
        if let Some(ends) = fields.get("cancel_at_period_end") {
            let subscription = self.read(id)?;
            if subscription["status"] == "canceled" || !subscription["schedule"].is_null() {
                return Err(FakeRejection::new(400, "subscription_cannot_change", "cancel_at_period_end"));
            }
            self.change(id, "cancel_at_period_end", ends == "true");
        }
        self.read(id)
    }

    /// Discards the scheduled change of a subscription.
    fn release(&mut self, id: &str) -> CallOutcome {
        let schedule = self.read(id)?;
        self.change(schedule["subscription"].as_str().unwrap_or_default(), "schedule", Value::Null);
        self.change(id, "status", "released");
        self.read(id)
    }

    fn payments_of(&self, intent: Option<&str>) -> Value {
        let of = |invoice: &Value| invoice["payments"]["data"][0]["payment"]["payment_intent"].clone();
        let found = self.all("in").into_iter().filter(|invoice| of(invoice).as_str() == intent);
        let found: Vec<Value> = found.map(|invoice| invoice["payments"]["data"][0].clone()).collect();
        json!({ "object": "list", "data": found, "has_more": false, "url": "/v1/invoice_payments" })
    }

    fn make_configuration(&mut self, fields: &FormFields) -> Value {
        let id = self.new_id("bpc");
        let metadata = fields.map("metadata");
        self.insert_object(json!({
            "id": id, "object": "billing_portal.configuration", "active": true, "metadata": metadata,
        }))
    }

    fn make_portal_session(&mut self, fields: &FormFields) -> CallOutcome {
        if !fields.get("customer").is_some_and(|id| self.objects.contains_key(id)) {
            return Err(FakeRejection::missing("customer"));
        }
        let confirm = "flow_data[subscription_update_confirm]";
        for name in ["configuration".to_owned(), format!("{confirm}[items][0][price]")] {
            if fields.get(&name).is_some_and(|id| self.object(id)["active"] == false) {
                return Err(FakeRejection::new(400, "resource_inactive", "configuration"));
            }
        }
        if let Some(subscription) = fields.get(&format!("{confirm}[subscription]")) {
            let subscription = self.read(subscription)?;
            // A scheduled end must be reverted first.
            if subscription["cancel_at_period_end"] == true {
                return Err(FakeRejection::new(400, "subscription_is_ending", "flow_data"));
            }
        }
        let id = self.new_id("bps");
        Ok(self.insert_object(json!({
            "id": id,
            "object": "billing_portal.session",
            "customer": fields.get("customer"),
            "return_url": fields.get("return_url"),
            "url": format!("https://billing.stripe.example/p/session/{id}"),
            "livemode": false,
        })))
    }
}
