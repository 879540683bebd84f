//! What Stripe says when it is asked again.

use transcript_core::{
    Timestamp,
    accounts::payments::{Money, PaidInvoice, PaymentFact, PaymentState, Progress, SubscriptionState},
    ids::OrderId,
};

use super::{
    StripeCheckout,
    api::{Fault, Result, is_id},
    catalogue::plan_of,
    form::Form,
    objects::{
        self, Charge, Dispute, Invoice, Line, Link, List, Metadata, PaymentIntent, Session, Subscription,
    },
    open::{ORDER, order_of_plan},
};

/// How many of a subscription's paid invoices are looked at: the latest ones.
const INVOICES_MAX: &str = "24";

impl StripeCheckout {
    pub(super) async fn facts_of(&self, object: &str) -> Result<Vec<PaymentFact>> {
        if !is_id(object) {
            return Ok(Vec::new());
        }
        let facts = match object.split_once('_').map(|(kind, _)| kind) {
            Some("cs") => self.of_session(object).await,
            Some("pi") => self.of_payment(object).await,
            Some("in") => self.of_invoice(object).await,
            Some("sub") => self.of_subscription(object, None).await,
            _ => Ok(Vec::new()),
        };
        match facts {
            // It was deleted, or is of the other mode.
            Err(fault) if fault.is_unknown() => Ok(Vec::new()),
            facts => facts,
        }
    }

    async fn of_session(&self, id: &str) -> Result<Vec<PaymentFact>> {
        let query = Form::new().with("expand[]", "payment_intent.latest_charge");
        let session: Session = self.api.get(&format!("/v1/checkout/sessions/{id}"), &query).await?;
        let Some(order) = session.client_reference_id.clone() else { return Ok(Vec::new()) };
        if let Some(subscription) = session.subscription.as_ref().map(Link::id).filter(|id| is_id(id)) {
            return self.of_subscription(subscription, None).await;
        }
        let money = match &session.payment_intent {
            Some(Link::Whole(intent)) => {
                self.money(intent, minor(session.amount_total), &session.currency).await?
            }
            _ => nothing_paid(minor(session.amount_total), &session.currency),
        };
        let state = PaymentState { order: OrderId::new(order), progress: progress(&session), money };
        Ok(vec![PaymentFact::Payment(state)])
    }

    /// A payment, of a pack or of an invoice.
    async fn of_payment(&self, id: &str) -> Result<Vec<PaymentFact>> {
        let intent = self.intent(id).await?;
        if let Some(order) = intent.metadata.get(ORDER).cloned() {
            let progress = match intent.status.as_str() {
                "succeeded" => Progress::Paid,
                "canceled" => Progress::Ended,
                _ => Progress::Pending,
            };
            let currency = Some(intent.currency.clone());
            let money = self.money(&intent, minor(intent.amount_received), &currency).await?;
            let state = PaymentState { order: OrderId::new(order), progress, money };
            return Ok(vec![PaymentFact::Payment(state)]);
        }
        let query = Form::new()
            .with("payment[type]", "payment_intent")
            .with("payment[payment_intent]", id)
            .with("limit", "1");
        let found: List<objects::PaidInvoice> = self.api.get("/v1/invoice_payments", &query).await?;
        match found.data.first().map(|payment| payment.invoice.id()).filter(|id| is_id(id)) {
            Some(invoice) => self.of_invoice(invoice).await,
            None => Ok(Vec::new()),
        }
    }

    async fn of_invoice(&self, id: &str) -> Result<Vec<PaymentFact>> {
        let query = Form::new().with("expand[]", "payments");
        let invoice: Invoice = self.api.get(&format!("/v1/invoices/{id}"), &query).await?;
        let details = invoice.parent.as_ref().and_then(|parent| parent.subscription_details.as_ref());
        let Some(subscription) = details.map(|details| details.subscription.id().to_owned()) else {
            return Ok(Vec::new());
        };
        match is_id(&subscription) {
            true => self.of_subscription(&subscription, Some(invoice)).await,
            false => Ok(Vec::new()),
        }
    }

    async fn of_subscription(&self, id: &str, asked: Option<Invoice>) -> Result<Vec<PaymentFact>> {
        let subscription: Subscription =
            self.api.get(&format!("/v1/subscriptions/{id}"), &Form::new()).await?;
        if !subscription.is_ours() {
            return Ok(Vec::new());
        }
        let query = Form::new()
            .with("subscription", id)
            .with("status", "paid")
            .with("limit", INVOICES_MAX)
            .with("expand[]", "data.payments");
        let paid: List<Invoice> = self.api.get("/v1/invoices", &query).await?;
        let asked = asked.filter(|asked| {
            asked.status.as_deref() == Some("paid") && paid.data.iter().all(|known| known.id != asked.id)
        });
        Ok(vec![PaymentFact::Subscription(SubscriptionState {
            invoices: self.paid_invoices(paid.data, asked, &subscription.metadata).await?,
            customer: Some(subscription.customer.id().to_owned()),
            anchor: moment(subscription.billing_cycle_anchor),
            is_ended: subscription.is_over(),
            replaces: None,
            subscription: subscription.id,
        })])
    }

    /// The invoices that matter: from the latest one back to the first that was kept and touches no later
    /// one, and the one that was asked about.
    async fn paid_invoices(
        &self,
        latest_first: Vec<Invoice>,
        asked: Option<Invoice>,
        metadata: &Metadata,
    ) -> Result<Vec<PaidInvoice>> {
        let mut found = Vec::new();
        let mut kept_from = None;
        for invoice in &latest_first {
            let Some((line, order)) = plan_line(invoice, metadata) else { continue };
            let touches = kept_from.is_none_or(|from| line.period.end > from);
            if !touches {
                break;
            }
            let paid = self.paid_invoice(invoice, line, order).await?;
            if !paid.money.is_returned() {
                kept_from = Some(line.period.start);
            }
            found.push(paid);
        }
        if let Some(invoice) = &asked
            && let Some((line, order)) = plan_line(invoice, metadata)
        {
            found.push(self.paid_invoice(invoice, line, order).await?);
        }
        Ok(found)
    }

    async fn paid_invoice(
        &self,
        invoice: &Invoice,
        line: &Line,
        order: Option<OrderId>,
    ) -> Result<PaidInvoice> {
        let plan = plan_of_line(line).ok_or(Fault::Unreadable("an invoice's line lost its plan"))?;
        let discounts = line.discount_amounts.iter().flatten().map(|discount| discount.amount).sum::<i64>();
        let mut money =
            nothing_paid(minor(Some(line.amount.saturating_sub(discounts))), &Some(line.currency.clone()));
        for payment in invoice.payments.iter().flat_map(|payments| &payments.data) {
            let intent = payment.payment.payment_intent.as_ref().map(Link::id).filter(|id| is_id(id));
            let Some(intent) = intent.filter(|_| payment.status == "paid") else { continue };
            let part = self.money(&self.intent(intent).await?, 0, &None).await?;
            money.paid_minor = money.paid_minor.saturating_add(part.paid_minor);
            money.returned_minor = money.returned_minor.saturating_add(part.returned_minor);
            money.disputed |= part.disputed;
        }
        Ok(PaidInvoice {
            invoice: invoice.id.clone(),
            order,
            first: matches!(
                invoice.billing_reason.as_deref(),
                Some("subscription_create" | "subscription_update")
            ),
            plan,
            created_at: moment(invoice.created),
            period_start: moment(line.period.start),
            period_end: moment(line.period.end),
            money,
        })
    }

    async fn intent(&self, id: &str) -> Result<PaymentIntent> {
        let query = Form::new().with("expand[]", "latest_charge");
        self.api.get(&format!("/v1/payment_intents/{id}"), &query).await
    }

    /// What was paid with a payment, and what became of it.
    async fn money(
        &self,
        intent: &PaymentIntent,
        amount_minor: u64,
        currency: &Option<String>,
    ) -> Result<Money> {
        let mut money = nothing_paid(amount_minor, currency);
        let Some(Link::Whole(charge)) = &intent.latest_charge else { return Ok(money) };
        let Charge { amount_captured, amount_refunded, disputed } = **charge;
        money.paid_minor = minor(Some(amount_captured));
        money.returned_minor = minor(Some(amount_refunded));
        if disputed && is_id(&intent.id) {
            let query = Form::new().with("payment_intent", &intent.id).with("limit", "10");
            let disputes: List<Dispute> = self.api.get("/v1/disputes", &query).await?;
            for dispute in disputes.data {
                // Inquiries (`warning_…`) take no money, and what is `won` or `prevented` is settled.
                let is_lost = dispute.status == "lost";
                money.disputed |=
                    is_lost || ["needs_response", "under_review"].contains(&dispute.status.as_str());
                if is_lost {
                    money.returned_minor = money.returned_minor.saturating_add(minor(Some(dispute.amount)));
                }
            }
        }
        Ok(money)
    }
}

fn progress(session: &Session) -> Progress {
    let intent = match &session.payment_intent {
        Some(Link::Whole(intent)) => intent.status.as_str(),
        _ => "",
    };
    match (session.payment_status.as_str(), session.status.as_deref()) {
        ("paid" | "no_payment_required", _) => Progress::Paid,
        (_, Some("expired")) => Progress::Ended,
        // A transfer that was announced on the page and failed: the page is closed, and cannot be used again.
        (_, Some("complete")) if ["requires_payment_method", "canceled"].contains(&intent) => Progress::Ended,
        _ => Progress::Pending,
    }
}

/// The line of an invoice by which a month of a plan is paid, and the order under which it was sold, if one was.
fn plan_line<'a>(invoice: &'a Invoice, metadata: &Metadata) -> Option<(&'a Line, Option<OrderId>)> {
    let is_plan = |line: &&Line| line.amount > 0 && plan_of_line(line).is_some();
    let is_month = |line: &&Line| is_plan(line) && line.quantity.is_none_or(|quantity| quantity == 1);
    let line = invoice.lines.data.iter().filter(is_month).max_by_key(|line| line.period.end);
    if line.is_none() && invoice.lines.data.iter().any(|line| is_plan(&line)) {
        tracing::error!(invoice = %invoice.id, "several of a plan were paid at once: nothing was given");
    }
    let line = line?;
    let name = order_of_plan(plan_of_line(line)?, minor(Some(line.amount)));
    let details = invoice.parent.as_ref().and_then(|parent| parent.subscription_details.as_ref());
    // As it was when the invoice was made out comes first: the plan may have been sold again since.
    let then = details.and_then(|details| details.metadata.as_ref()).and_then(|metadata| metadata.get(&name));
    Some((line, then.or_else(|| metadata.get(&name)).map(|order| OrderId::new(order.clone()))))
}

fn plan_of_line(line: &Line) -> Option<transcript_core::directory::Plan> {
    plan_of(&line.pricing.as_ref()?.price_details.as_ref()?.product)
}

fn nothing_paid(amount_minor: u64, currency: &Option<String>) -> Money {
    Money {
        amount_minor,
        currency: currency.clone().unwrap_or_default(),
        paid_minor: 0,
        returned_minor: 0,
        disputed: false,
    }
}

/// An amount. None of those that are read is ever negative; one that is counts as nothing.
fn minor(amount: Option<i64>) -> u64 {
    amount.and_then(|amount| u64::try_from(amount).ok()).unwrap_or(0)
}

fn moment(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds.saturating_mul(1_000))
}
