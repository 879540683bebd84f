//! A payment provider in memory: its state changes immediately and is read by snapshots.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use transcript_core::{
    Result, Timestamp,
    accounts::{
        Order, OrderItem,
        payments::{
            CheckoutRequest, CheckoutSession, PaidInvoice, PaymentAmounts, PaymentProgress, PaymentProvider,
            PaymentSnapshot, PaymentState, ProviderObject, SubscriptionState, WebhookOutcome, WebhookRequest,
        },
    },
    directory::Plan,
    ids::OrderId,
};

use crate::simulation::store_gate::StoreGate;

/// Signature of valid webhook requests.
pub(crate) const SIGNATURE: &str = "signed";

/// A day of the provider's calendar, counted from the start of every story.
pub(crate) fn day(day: i64) -> Timestamp {
    Timestamp::from_millis(super::fixture::BEGIN_MS + day * 86_400_000)
}

#[derive(Clone, Debug)]
struct FakePayment {
    order: Order,
    progress: PaymentProgress,
    money: PaymentAmounts,
    subscription: Option<String>,
}

#[derive(Clone, Debug)]
struct FakeSubscription {
    customer: String,
    anchor: Timestamp,
    is_ended: bool,
    /// Ends with its current month.
    is_ending: bool,
    orders: BTreeMap<Plan, OrderId>,
    invoices: Vec<PaidInvoice>,
}

#[derive(Debug, Default)]
struct ProviderState {
    /// By checkout session id: `cs_` and the order id.
    payments: BTreeMap<String, FakePayment>,
    subscriptions: BTreeMap<String, FakeSubscription>,
    invoices: u32,
}

/// The fake provider. Actions of stories cannot fail; calls of the port pass the gate.
#[derive(Clone, Debug)]
pub(crate) struct FakeProvider {
    state: Arc<Mutex<ProviderState>>,
    gate: Arc<StoreGate>,
}

fn paid(amount_minor: u64) -> PaymentAmounts {
    PaymentAmounts {
        amount_minor,
        currency: "usd".to_owned(),
        paid_minor: amount_minor,
        returned_minor: 0,
        disputed: false,
    }
}

impl FakeProvider {
    pub(crate) fn new(gate: Arc<StoreGate>) -> Self {
        Self { state: Arc::default(), gate }
    }

    /// The same provider behind another gate.
    pub(crate) fn with_gate(&self, gate: Arc<StoreGate>) -> Self {
        Self { state: Arc::clone(&self.state), gate }
    }

    fn state(&self) -> MutexGuard<'_, ProviderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pays an order, or completes a pending payment; returns the events.
    pub(crate) fn pay(&self, order: &OrderId, on: i64) -> Vec<ProviderObject> {
        self.pay_at(order, day(on), None, false)
    }

    /// Pays an amount other than the price.
    pub(crate) fn pay_amount(&self, order: &OrderId, on: i64, amount: Option<u64>) -> Vec<ProviderObject> {
        self.pay_at(order, day(on), amount, false)
    }

    /// Pays for a second subscription.
    pub(crate) fn pay_second(&self, order: &OrderId, on: i64) -> Vec<ProviderObject> {
        self.pay_at(order, day(on), None, true)
    }

    /// Pays at a time: `amount` or the price; with `is_beside`, for a second subscription.
    pub(crate) fn pay_at(
        &self,
        order: &OrderId,
        at: Timestamp,
        amount: Option<u64>,
        is_second: bool,
    ) -> Vec<ProviderObject> {
        let mut state = self.state();
        let name = format!("cs_{order}");
        let payment = state.payments.get_mut(&name).expect("the order must have a checkout session");
        payment.progress = PaymentProgress::Paid;
        let sold = payment.order.clone();
        let money = paid(amount.unwrap_or(sold.amount_minor));
        payment.money = money.clone();
        let customer = format!("cus_{}", sold.account);
        let mut subjects = vec![ProviderObject { object: name.clone(), customer: Some(customer.clone()) }];
        let OrderItem::Plan(plan) = sold.item else { return subjects };
        // An order for another plan changes the existing subscription.
        let present =
            state.subscriptions.iter().find(|(_, present)| present.customer == customer && !is_second);
        let id = present.map_or_else(|| format!("sub_{order}"), |(id, _)| id.clone());
        let fresh = FakeSubscription {
            customer,
            anchor: at,
            is_ended: false,
            is_ending: false,
            orders: BTreeMap::new(),
            invoices: Vec::new(),
        };
        let subscription = state.subscriptions.entry(id.clone()).or_insert(fresh);
        subscription.anchor = at;
        subscription.orders.insert(plan, sold.id.clone());
        if let Some(payment) = state.payments.get_mut(&name) {
            payment.subscription = Some(id.clone());
        }
        subjects.extend(state.invoice(&id, plan, at, true, money));
        subjects
    }

    /// Renews a plan for a month.
    pub(crate) fn renew(&self, order: &OrderId, on: i64) -> Vec<ProviderObject> {
        let mut state = self.state();
        let payment = &state.payments[&format!("cs_{order}")];
        let OrderItem::Plan(plan) = payment.order.item else { panic!("no plan") };
        let (id, money) = (payment.subscription.clone().unwrap(), payment.money.clone());
        state.invoice(&id, plan, day(on), false, money)
    }

    /// Ends the subscription of an order: no further payment follows.
    pub(crate) fn cancel(&self, order: &OrderId) -> Vec<ProviderObject> {
        let mut state = self.state();
        let id = state.payments[&format!("cs_{order}")].subscription.clone().unwrap();
        let subscription = state.subscriptions.get_mut(&id).unwrap();
        subscription.is_ended = true;
        vec![ProviderObject { object: id, customer: Some(subscription.customer.clone()) }]
    }

    /// Expires the checkout session.
    pub(crate) fn expire(&self, order: &OrderId) -> Vec<ProviderObject> {
        self.state().payments.get_mut(&format!("cs_{order}")).unwrap().progress = PaymentProgress::Ended;
        vec![ProviderObject::new(format!("cs_{order}"))]
    }

    /// Refunds a further amount of the order's payment, or of its last invoice.
    pub(crate) fn refund(&self, order: &OrderId, minor: u64) -> Vec<ProviderObject> {
        self.change(order, |money| money.returned_minor += minor)
    }

    /// Fails all refunds of the order's payment, or of its last invoice: the seller has the money again.
    pub(crate) fn fail_refunds(&self, order: &OrderId) -> Vec<ProviderObject> {
        self.change(order, |money| money.returned_minor = 0)
    }

    /// Opens a dispute of the payment.
    pub(crate) fn dispute(&self, order: &OrderId) -> Vec<ProviderObject> {
        self.change(order, |money| money.disputed = true)
    }

    /// Loses the dispute: the whole amount is returned.
    pub(crate) fn lose_dispute(&self, order: &OrderId) -> Vec<ProviderObject> {
        self.change(order, |money| money.returned_minor = money.paid_minor)
    }

    fn change(&self, order: &OrderId, change: impl FnOnce(&mut PaymentAmounts)) -> Vec<ProviderObject> {
        let mut state = self.state();
        let name = format!("cs_{order}");
        let payment = state.payments.get_mut(&name).unwrap();
        let Some(id) = payment.subscription.clone() else {
            change(&mut payment.money);
            return vec![ProviderObject::new(name)];
        };
        let subscription = state.subscriptions.get_mut(&id).unwrap();
        let invoice = subscription.invoices.last_mut().unwrap();
        change(&mut invoice.money);
        vec![ProviderObject {
            object: invoice.invoice.clone(),
            customer: Some(subscription.customer.clone()),
        }]
    }

    /// Whether all subscriptions end with their current month.
    pub(crate) fn is_ending(&self) -> bool {
        self.state().subscriptions.values().all(|subscription| subscription.is_ending)
    }

    /// All paid plan months of an account.
    pub(crate) fn months(&self, account: &str) -> Vec<PaidInvoice> {
        let customer = format!("cus_{account}");
        let state = self.state();
        let of_account =
            state.subscriptions.values().filter(|subscription| subscription.customer == customer);
        of_account.flat_map(|subscription| subscription.invoices.clone()).collect()
    }

    /// Number of subscriptions.
    pub(crate) fn subscriptions(&self) -> usize {
        self.state().subscriptions.len()
    }
}

impl ProviderState {
    fn invoice(
        &mut self,
        id: &str,
        plan: Plan,
        at: Timestamp,
        first: bool,
        money: PaymentAmounts,
    ) -> Vec<ProviderObject> {
        self.invoices += 1;
        let subscription = self.subscriptions.get_mut(id).unwrap();
        let invoice = format!("in_{}", self.invoices);
        subscription.invoices.push(PaidInvoice {
            invoice: invoice.clone(),
            order: Some(subscription.orders[&plan].clone()),
            is_first_payment: first,
            plan,
            created_at: at,
            period_start: at,
            period_end: at.plus(Duration::from_secs(30 * 86_400)),
            money,
        });
        let customer = Some(subscription.customer.clone());
        [invoice, id.to_owned()].map(|object| ProviderObject { object, customer: customer.clone() }).to_vec()
    }

    fn payment(&self, name: &str) -> Vec<PaymentSnapshot> {
        let Some(payment) = self.payments.get(name) else { return Vec::new() };
        match &payment.subscription {
            Some(id) => self.subscription(id),
            None => vec![PaymentSnapshot::Payment(PaymentState {
                order: payment.order.id.clone(),
                session: Some(name.to_owned()),
                progress: payment.progress,
                money: payment.money.clone(),
            })],
        }
    }

    fn subscription(&self, id: &str) -> Vec<PaymentSnapshot> {
        let Some(subscription) = self.subscriptions.get(id) else { return Vec::new() };
        vec![PaymentSnapshot::Subscription(SubscriptionState {
            subscription: id.to_owned(),
            customer: Some(subscription.customer.clone()),
            anchor: subscription.anchor,
            is_ended: subscription.is_ended,
            replaces: None,
            invoices: subscription.invoices.clone(),
        })]
    }

    fn object_snapshots(&self, object: &str) -> Vec<PaymentSnapshot> {
        match object.split_once('_') {
            Some(("cs", _)) => self.payment(object),
            Some(("sub", _)) => self.subscription(object),
            _ => {
                let has = |subscription: &FakeSubscription| {
                    subscription.invoices.iter().any(|invoice| invoice.invoice == object)
                };
                let id = self.subscriptions.iter().find(|(_, subscription)| has(subscription));
                id.map_or_else(Vec::new, |(id, _)| self.subscription(id))
            }
        }
    }
}

#[async_trait]
impl PaymentProvider for FakeProvider {
    async fn create_checkout(&self, sale: CheckoutRequest) -> Result<CheckoutSession> {
        let (state, what) = (Arc::clone(&self.state), sale.order.id.to_string());
        let work = async move {
            let name = format!("cs_{}", sale.order.id);
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            state.payments.entry(name.clone()).or_insert_with(|| FakePayment {
                progress: PaymentProgress::Pending,
                money: paid(sale.order.amount_minor),
                subscription: None,
                order: sale.order.clone(),
            });
            let customer = Some(format!("cus_{}", sale.order.account));
            let url = format!("https://pay.example/{name}");
            Ok(CheckoutSession { url, payment: Some(name), customer, is_lasting: true })
        };
        self.gate.pass("provider.create_checkout", || what, work, |_, _| ()).await
    }

    async fn parse_webhook(&self, call: WebhookRequest, _: Timestamp) -> Result<WebhookOutcome> {
        if call.signature.as_deref() != Some(SIGNATURE) {
            return Ok(WebhookOutcome::Rejected { reason: "the signature is wrong".to_owned() });
        }
        let text = String::from_utf8(call.body).unwrap();
        let (object, customer) = text.split_once(' ').unwrap_or((&text, ""));
        let customer = (!customer.is_empty()).then(|| customer.to_owned());
        Ok(WebhookOutcome::Events(vec![ProviderObject { object: object.to_owned(), customer }]))
    }

    async fn snapshots(&self, subject: &ProviderObject) -> Result<Vec<PaymentSnapshot>> {
        let (state, object) = (Arc::clone(&self.state), subject.object.clone());
        let what = object.clone();
        let work = async move {
            let state = state.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(state.object_snapshots(&object))
        };
        self.gate.pass("provider.snapshots", || what, work, |_, _| ()).await
    }

    async fn cancel_at_period_end(&self, subscription: &str) -> Result<()> {
        let (state, name) = (Arc::clone(&self.state), subscription.to_owned());
        let what = name.clone();
        let work = async move {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(subscription) = state.subscriptions.get_mut(&name) {
                subscription.is_ending = true;
            }
            Ok(())
        };
        self.gate.pass("provider.cancel_at_period_end", || what, work, |_, _| ()).await
    }

    async fn expire_checkout(&self, payment: &str) -> Result<()> {
        let (state, name) = (Arc::clone(&self.state), payment.to_owned());
        let what = name.clone();
        let work = async move {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(payment) = state.payments.get_mut(&name)
                && payment.progress == PaymentProgress::Pending
            {
                payment.progress = PaymentProgress::Ended;
            }
            Ok(())
        };
        self.gate.pass("provider.expire_checkout", || what, work, |_, _| ()).await
    }

    fn owns(&self, name: &str) -> bool {
        ["cs_", "in_", "sub_", "cus_"].iter().any(|start| name.starts_with(start))
    }
}
