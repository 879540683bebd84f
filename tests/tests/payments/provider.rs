//! A payment provider in memory: what it knows changes at once, and is told only when it is asked.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use transcript_core::{
    Result, Timestamp,
    accounts::{
        Item, Order,
        payments::{
            Checkout, CheckoutPage, Heard, Money, PaidInvoice, PaymentFact, PaymentState, Progress, Sale,
            Subject, SubscriptionState, WebhookCall,
        },
    },
    directory::Plan,
    ids::OrderId,
};

use crate::simulation::gate::Gate;

/// What a signed call carries.
pub(crate) const SIGNATURE: &str = "signed";

/// A day of the provider's calendar, from the beginning of every story.
pub(crate) fn day(day: i64) -> Timestamp {
    Timestamp::from_millis(super::shop::BEGIN_MS + day * 86_400_000)
}

#[derive(Clone, Debug)]
struct Payment {
    order: Order,
    progress: Progress,
    money: Money,
    subscription: Option<String>,
}

#[derive(Clone, Debug)]
struct Subscription {
    customer: String,
    anchor: Timestamp,
    is_ended: bool,
    /// It ends with its month.
    is_stopped: bool,
    orders: BTreeMap<Plan, OrderId>,
    invoices: Vec<PaidInvoice>,
}

#[derive(Debug, Default)]
struct Books {
    /// By the checkout's name: `cs_` and the order.
    payments: BTreeMap<String, Payment>,
    subscriptions: BTreeMap<String, Subscription>,
    invoices: u32,
}

/// The provider. What it does for the stories cannot fail; what it is asked passes the gate.
#[derive(Clone, Debug)]
pub(crate) struct Provider {
    books: Arc<Mutex<Books>>,
    gate: Arc<Gate>,
}

fn paid(amount_minor: u64) -> Money {
    Money {
        amount_minor,
        currency: "usd".to_owned(),
        paid_minor: amount_minor,
        returned_minor: 0,
        disputed: false,
    }
}

impl Provider {
    pub(crate) fn new(gate: Arc<Gate>) -> Self {
        Self { books: Arc::default(), gate }
    }

    /// The same provider, as somebody reaches it by another way.
    pub(crate) fn by(&self, gate: Arc<Gate>) -> Self {
        Self { books: Arc::clone(&self.books), gate }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The buyer pays, or the money that was under way arrives: the events that tell of it.
    pub(crate) fn pay(&self, order: &OrderId, on: i64) -> Vec<Subject> {
        self.pay_at(order, day(on), None, false)
    }

    /// Somebody pays another amount than was asked for.
    pub(crate) fn pay_amount(&self, order: &OrderId, on: i64, amount: Option<u64>) -> Vec<Subject> {
        self.pay_at(order, day(on), amount, false)
    }

    /// The buyer pays for a second subscription.
    pub(crate) fn pay_beside(&self, order: &OrderId, on: i64) -> Vec<Subject> {
        self.pay_at(order, day(on), None, true)
    }

    /// The buyer pays at a moment: so much, where it is not the price; for a second subscription, or not.
    pub(crate) fn pay_at(
        &self,
        order: &OrderId,
        at: Timestamp,
        amount: Option<u64>,
        is_beside: bool,
    ) -> Vec<Subject> {
        let mut books = self.books();
        let name = format!("cs_{order}");
        let payment = books.payments.get_mut(&name).expect("an order that was opened");
        payment.progress = Progress::Paid;
        let sold = payment.order.clone();
        let money = paid(amount.unwrap_or(sold.amount_minor));
        payment.money = money.clone();
        let customer = format!("cus_{}", sold.account);
        let mut subjects = vec![Subject { object: name.clone(), customer: Some(customer.clone()) }];
        let Item::Plan(plan) = sold.item else { return subjects };
        // An order for another plan changes the subscription that there is.
        let present =
            books.subscriptions.iter().find(|(_, present)| present.customer == customer && !is_beside);
        let id = present.map_or_else(|| format!("sub_{order}"), |(id, _)| id.clone());
        let fresh = Subscription {
            customer,
            anchor: at,
            is_ended: false,
            is_stopped: false,
            orders: BTreeMap::new(),
            invoices: Vec::new(),
        };
        let subscription = books.subscriptions.entry(id.clone()).or_insert(fresh);
        subscription.anchor = at;
        subscription.orders.insert(plan, sold.id.clone());
        if let Some(payment) = books.payments.get_mut(&name) {
            payment.subscription = Some(id.clone());
        }
        subjects.extend(books.invoice(&id, plan, at, true, money));
        subjects
    }

    /// A month of a plan is renewed.
    pub(crate) fn renew(&self, order: &OrderId, on: i64) -> Vec<Subject> {
        let mut books = self.books();
        let payment = &books.payments[&format!("cs_{order}")];
        let Item::Plan(plan) = payment.order.item else { panic!("no plan") };
        let (id, money) = (payment.subscription.clone().unwrap(), payment.money.clone());
        books.invoice(&id, plan, day(on), false, money)
    }

    /// The subscription that an order is for ends: nothing will be paid for it any more.
    pub(crate) fn cancel(&self, order: &OrderId) -> Vec<Subject> {
        let mut books = self.books();
        let id = books.payments[&format!("cs_{order}")].subscription.clone().unwrap();
        let subscription = books.subscriptions.get_mut(&id).unwrap();
        subscription.is_ended = true;
        vec![Subject { object: id, customer: Some(subscription.customer.clone()) }]
    }

    /// The buyer leaves the page until it closes.
    pub(crate) fn expire(&self, order: &OrderId) -> Vec<Subject> {
        self.books().payments.get_mut(&format!("cs_{order}")).unwrap().progress = Progress::Ended;
        vec![Subject::new(format!("cs_{order}"))]
    }

    /// Money goes back: so much more of the order's payment, or of its last invoice.
    pub(crate) fn refund(&self, order: &OrderId, minor: u64) -> Vec<Subject> {
        self.change(order, |money| money.returned_minor += minor)
    }

    /// The buyer's bank contests the payment.
    pub(crate) fn dispute(&self, order: &OrderId) -> Vec<Subject> {
        self.change(order, |money| money.disputed = true)
    }

    /// The money is gone for good.
    pub(crate) fn lose_dispute(&self, order: &OrderId) -> Vec<Subject> {
        self.change(order, |money| money.returned_minor = money.paid_minor)
    }

    fn change(&self, order: &OrderId, change: impl FnOnce(&mut Money)) -> Vec<Subject> {
        let mut books = self.books();
        let name = format!("cs_{order}");
        let payment = books.payments.get_mut(&name).unwrap();
        let Some(id) = payment.subscription.clone() else {
            change(&mut payment.money);
            return vec![Subject::new(name)];
        };
        let subscription = books.subscriptions.get_mut(&id).unwrap();
        let invoice = subscription.invoices.last_mut().unwrap();
        change(&mut invoice.money);
        vec![Subject { object: invoice.invoice.clone(), customer: Some(subscription.customer.clone()) }]
    }

    /// Whether all subscriptions end with their month.
    pub(crate) fn is_stopped(&self) -> bool {
        self.books().subscriptions.values().all(|subscription| subscription.is_stopped)
    }

    /// All months of plans that an account paid.
    pub(crate) fn months(&self, account: &str) -> Vec<PaidInvoice> {
        let customer = format!("cus_{account}");
        let books = self.books();
        let of_account =
            books.subscriptions.values().filter(|subscription| subscription.customer == customer);
        of_account.flat_map(|subscription| subscription.invoices.clone()).collect()
    }

    /// How many subscriptions are there.
    pub(crate) fn subscriptions(&self) -> usize {
        self.books().subscriptions.len()
    }
}

impl Books {
    fn invoice(&mut self, id: &str, plan: Plan, at: Timestamp, first: bool, money: Money) -> Vec<Subject> {
        self.invoices += 1;
        let subscription = self.subscriptions.get_mut(id).unwrap();
        let invoice = format!("in_{}", self.invoices);
        subscription.invoices.push(PaidInvoice {
            invoice: invoice.clone(),
            order: Some(subscription.orders[&plan].clone()),
            first,
            plan,
            created_at: at,
            period_start: at,
            period_end: at.plus(Duration::from_secs(30 * 86_400)),
            money,
        });
        let customer = Some(subscription.customer.clone());
        [invoice, id.to_owned()].map(|object| Subject { object, customer: customer.clone() }).to_vec()
    }

    fn payment(&self, name: &str) -> Vec<PaymentFact> {
        let Some(payment) = self.payments.get(name) else { return Vec::new() };
        match &payment.subscription {
            Some(id) => self.subscription(id),
            None => vec![PaymentFact::Payment(PaymentState {
                order: payment.order.id.clone(),
                progress: payment.progress,
                money: payment.money.clone(),
            })],
        }
    }

    fn subscription(&self, id: &str) -> Vec<PaymentFact> {
        let Some(subscription) = self.subscriptions.get(id) else { return Vec::new() };
        vec![PaymentFact::Subscription(SubscriptionState {
            subscription: id.to_owned(),
            customer: Some(subscription.customer.clone()),
            anchor: subscription.anchor,
            is_ended: subscription.is_ended,
            replaces: None,
            invoices: subscription.invoices.clone(),
        })]
    }

    fn facts(&self, object: &str) -> Vec<PaymentFact> {
        match object.split_once('_') {
            Some(("cs", _)) => self.payment(object),
            Some(("sub", _)) => self.subscription(object),
            _ => {
                let has = |subscription: &Subscription| {
                    subscription.invoices.iter().any(|invoice| invoice.invoice == object)
                };
                let id = self.subscriptions.iter().find(|(_, subscription)| has(subscription));
                id.map_or_else(Vec::new, |(id, _)| self.subscription(id))
            }
        }
    }
}

#[async_trait]
impl Checkout for Provider {
    async fn open(&self, sale: Sale) -> Result<CheckoutPage> {
        let (books, what) = (Arc::clone(&self.books), sale.order.id.to_string());
        let work = async move {
            let name = format!("cs_{}", sale.order.id);
            let mut books = books.lock().unwrap_or_else(PoisonError::into_inner);
            books.payments.entry(name.clone()).or_insert_with(|| Payment {
                progress: Progress::Pending,
                money: paid(sale.order.amount_minor),
                subscription: None,
                order: sale.order.clone(),
            });
            let customer = Some(format!("cus_{}", sale.order.account));
            let url = format!("https://pay.example/{name}");
            Ok(CheckoutPage { url, payment: Some(name), customer, is_lasting: true })
        };
        self.gate.pass("checkout.open", || what, work, |_, _| ()).await
    }

    async fn hear(&self, call: WebhookCall, _: Timestamp) -> Result<Heard> {
        if call.signature.as_deref() != Some(SIGNATURE) {
            return Ok(Heard::Refused { why: "the signature is wrong".to_owned() });
        }
        let text = String::from_utf8(call.body).unwrap();
        let (object, customer) = text.split_once(' ').unwrap_or((&text, ""));
        let customer = (!customer.is_empty()).then(|| customer.to_owned());
        Ok(Heard::About(vec![Subject { object: object.to_owned(), customer }]))
    }

    async fn facts(&self, subject: &Subject) -> Result<Vec<PaymentFact>> {
        let (books, object) = (Arc::clone(&self.books), subject.object.clone());
        let what = object.clone();
        let work = async move {
            let books = books.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(books.facts(&object))
        };
        self.gate.pass("checkout.facts", || what, work, |_, _| ()).await
    }

    async fn stop(&self, subscription: &str) -> Result<()> {
        let (books, name) = (Arc::clone(&self.books), subscription.to_owned());
        let what = name.clone();
        let work = async move {
            let mut books = books.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(subscription) = books.subscriptions.get_mut(&name) {
                subscription.is_stopped = true;
            }
            Ok(())
        };
        self.gate.pass("checkout.stop", || what, work, |_, _| ()).await
    }

    async fn close(&self, payment: &str) -> Result<()> {
        let (books, name) = (Arc::clone(&self.books), payment.to_owned());
        let what = name.clone();
        let work = async move {
            let mut books = books.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(payment) = books.payments.get_mut(&name)
                && payment.progress == Progress::Pending
            {
                payment.progress = Progress::Ended;
            }
            Ok(())
        };
        self.gate.pass("checkout.close", || what, work, |_, _| ()).await
    }

    fn knows(&self, name: &str) -> bool {
        ["cs_", "in_", "sub_", "cus_"].iter().any(|start| name.starts_with(start))
    }
}
