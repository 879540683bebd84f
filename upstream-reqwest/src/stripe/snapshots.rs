//! Reads payment snapshots from Stripe.

use transcript_core::{
    Timestamp,
    accounts::payments::{
        PaidInvoice, PaymentAmounts, PaymentProgress, PaymentSnapshot, PaymentState, SubscriptionState,
    },
    ids::OrderId,
};

use super::{
    StripeProvider,
    api::{StripeError, StripeResult, is_id},
    catalog::plan_for_product,
    form::StripeForm,
    objects::{
        self, Expandable, StripeCharge, StripeDispute, StripeInvoice, StripeInvoiceLine, StripeList,
        StripeMetadata, StripePaymentIntent, StripeSession, StripeSubscription,
    },
    sessions::{ORDER, plan_order_key},
};

/// Number of a subscription's paid invoices that are read: the latest ones.
const INVOICES_MAX: &str = "24";

impl StripeProvider {
    pub(super) async fn read_snapshots(&self, object: &str) -> StripeResult<Vec<PaymentSnapshot>> {
        if !is_id(object) {
            return Ok(Vec::new());
        }
        let snapshots = match object.split_once('_').map(|(kind, _)| kind) {
            Some("cs") => self.session_snapshots(object).await,
            Some("pi") => self.payment_snapshots(object).await,
            Some("in") => self.invoice_snapshots(object).await,
            Some("sub") => self.subscription_snapshots(object, None, None).await,
            _ => Ok(Vec::new()),
        };
        match snapshots {
            // It was deleted, or belongs to the other mode.
            Err(fault) if fault.is_unknown() => Ok(Vec::new()),
            snapshots => snapshots,
        }
    }

    async fn session_snapshots(&self, id: &str) -> StripeResult<Vec<PaymentSnapshot>> {
        let query = StripeForm::new().with("expand[]", "payment_intent.latest_charge");
        let session: StripeSession = self.api.get(&format!("/v1/checkout/sessions/{id}"), &query).await?;
        self.snapshots_of(&session).await
    }

    /// The snapshots of a session that this server created; none of any other.
    async fn snapshots_of(&self, session: &StripeSession) -> StripeResult<Vec<PaymentSnapshot>> {
        let is_other_mode = self.options.is_live().is_some_and(|live| session.livemode == Some(!live));
        let Some(order) = session.order().filter(|_| !is_other_mode) else {
            tracing::debug!("checkout session was not created by this server");
            return Ok(Vec::new());
        };
        if let Some(subscription) = session.subscription.as_ref().map(Expandable::id).filter(|id| is_id(id)) {
            let first_invoice = session.invoice.as_ref().map(Expandable::id);
            return self.subscription_snapshots(subscription, None, first_invoice).await;
        }
        let money = match &session.payment_intent {
            Some(Expandable::Whole(intent)) => {
                self.money(intent, minor(session.amount_total), &session.currency).await?
            }
            _ => unpaid(minor(session.amount_total), &session.currency),
        };
        Ok(vec![PaymentSnapshot::Payment(PaymentState {
            order: OrderId::new(order),
            session: Some(session.id.clone()),
            progress: progress(session),
            money,
        })])
    }

    /// The snapshot of a payment for a pack or an invoice.
    async fn payment_snapshots(&self, id: &str) -> StripeResult<Vec<PaymentSnapshot>> {
        if self.intent(id).await?.metadata.contains_key(ORDER) {
            // The session proves what was sold, not the payment.
            let query = StripeForm::new()
                .with("payment_intent", id)
                .with("limit", "1")
                .with("expand[]", "data.payment_intent.latest_charge");
            let found: StripeList<StripeSession> = self.api.get("/v1/checkout/sessions", &query).await?;
            return match found.data.first() {
                Some(session) => self.snapshots_of(session).await,
                None => Ok(Vec::new()),
            };
        }
        let query = StripeForm::new()
            .with("payment[type]", "payment_intent")
            .with("payment[payment_intent]", id)
            .with("limit", "1");
        let found: StripeList<objects::StripePaidInvoice> =
            self.api.get("/v1/invoice_payments", &query).await?;
        match found.data.first().map(|payment| payment.invoice.id()).filter(|id| is_id(id)) {
            Some(invoice) => self.invoice_snapshots(invoice).await,
            None => Ok(Vec::new()),
        }
    }

    async fn invoice_snapshots(&self, id: &str) -> StripeResult<Vec<PaymentSnapshot>> {
        let query = StripeForm::new().with("expand[]", "payments");
        let invoice: StripeInvoice = self.api.get(&format!("/v1/invoices/{id}"), &query).await?;
        let details = invoice.parent.as_ref().and_then(|parent| parent.subscription_details.as_ref());
        let Some(subscription) = details.map(|details| details.subscription.id().to_owned()) else {
            return Ok(Vec::new());
        };
        match is_id(&subscription) {
            true => self.subscription_snapshots(&subscription, Some(invoice), None).await,
            false => Ok(Vec::new()),
        }
    }

    /// The snapshot of a subscription, with the requested invoice or the one with the id `named`.
    async fn subscription_snapshots(
        &self,
        id: &str,
        requested: Option<StripeInvoice>,
        named: Option<&str>,
    ) -> StripeResult<Vec<PaymentSnapshot>> {
        let subscription: StripeSubscription =
            self.api.get(&format!("/v1/subscriptions/{id}"), &StripeForm::new()).await?;
        if !subscription.is_ours() {
            return Ok(Vec::new());
        }
        let query = StripeForm::new()
            .with("subscription", id)
            .with("status", "paid")
            .with("limit", INVOICES_MAX)
            .with("expand[]", "data.payments");
        let paid: StripeList<StripeInvoice> = self.api.get("/v1/invoices", &query).await?;
        let requested = requested.filter(|requested| requested.status.as_deref() == Some("paid"));
        let named = || paid.data.iter().find(|invoice| Some(invoice.id.as_str()) == named).cloned();
        let requested = requested.or_else(named);
        Ok(vec![PaymentSnapshot::Subscription(SubscriptionState {
            invoices: self.paid_invoices(paid.data, requested, &subscription.metadata).await?,
            customer: Some(subscription.customer.id().to_owned()),
            anchor: timestamp(subscription.billing_cycle_anchor),
            is_ended: subscription.is_over(),
            replaces: None,
            subscription: subscription.id,
        })])
    }

    /// The relevant invoices of a subscription.
    ///
    /// They are those from the latest one back to the first that was not refunded and does not overlap a later one,
    /// and the one that was requested.
    async fn paid_invoices(
        &self,
        latest_first: Vec<StripeInvoice>,
        requested: Option<StripeInvoice>,
        metadata: &StripeMetadata,
    ) -> StripeResult<Vec<PaidInvoice>> {
        let mut found = Vec::new();
        let mut kept_from = None;
        for invoice in &latest_first {
            let Some((line, order)) = plan_line(invoice, metadata) else { continue };
            let overlaps = kept_from.is_none_or(|from| line.period.end > from);
            if !overlaps {
                break;
            }
            let paid = self.paid_invoice(invoice, line, order).await?;
            if !paid.money.is_returned() {
                kept_from = Some(line.period.start);
            }
            found.push(paid);
        }
        if let Some(invoice) = requested.filter(|one| found.iter().all(|paid| paid.invoice != one.id))
            && let Some((line, order)) = plan_line(&invoice, metadata)
        {
            found.push(self.paid_invoice(&invoice, line, order).await?);
        }
        Ok(found)
    }

    async fn paid_invoice(
        &self,
        invoice: &StripeInvoice,
        line: &StripeInvoiceLine,
        order: Option<OrderId>,
    ) -> StripeResult<PaidInvoice> {
        let plan = plan_of_line(line).ok_or(StripeError::Unreadable("an invoice line has no plan"))?;
        let discounts = line.discount_amounts.iter().flatten().map(|discount| discount.amount).sum::<i64>();
        let mut money =
            unpaid(minor(Some(line.amount.saturating_sub(discounts))), &Some(line.currency.clone()));
        for payment in invoice.payments.iter().flat_map(|payments| &payments.data) {
            let intent = payment.payment.payment_intent.as_ref().map(Expandable::id).filter(|id| is_id(id));
            let Some(intent) = intent.filter(|_| payment.status == "paid") else { continue };
            let part = self.money(&self.intent(intent).await?, 0, &None).await?;
            money.paid_minor = money.paid_minor.saturating_add(part.paid_minor);
            money.returned_minor = money.returned_minor.saturating_add(part.returned_minor);
            money.disputed |= part.disputed;
        }
        Ok(PaidInvoice {
            invoice: invoice.id.clone(),
            order,
            is_first_payment: matches!(
                invoice.billing_reason.as_deref(),
                Some("subscription_create" | "subscription_update")
            ),
            plan,
            created_at: timestamp(invoice.created),
            period_start: timestamp(line.period.start),
            period_end: timestamp(line.period.end),
            money,
        })
    }

    async fn intent(&self, id: &str) -> StripeResult<StripePaymentIntent> {
        let query = StripeForm::new().with("expand[]", "latest_charge");
        self.api.get(&format!("/v1/payment_intents/{id}"), &query).await
    }

    /// The paid, refunded and disputed amounts of a payment.
    async fn money(
        &self,
        intent: &StripePaymentIntent,
        amount_minor: u64,
        currency: &Option<String>,
    ) -> StripeResult<PaymentAmounts> {
        let mut money = unpaid(amount_minor, currency);
        let Some(Expandable::Whole(charge)) = &intent.latest_charge else { return Ok(money) };
        let StripeCharge { amount_captured, amount_refunded, disputed } = **charge;
        money.paid_minor = minor(Some(amount_captured));
        money.returned_minor = minor(Some(amount_refunded));
        if disputed && is_id(&intent.id) {
            let query = StripeForm::new().with("payment_intent", &intent.id).with("limit", "10");
            let disputes: StripeList<StripeDispute> = self.api.get("/v1/disputes", &query).await?;
            for dispute in disputes.data {
                // Inquiries (`warning_…`) withdraw no money, and `won` or `prevented` disputes are closed.
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

fn progress(session: &StripeSession) -> PaymentProgress {
    let intent = match &session.payment_intent {
        Some(Expandable::Whole(intent)) => intent.status.as_str(),
        _ => "",
    };
    match (session.payment_status.as_str(), session.status.as_deref()) {
        ("paid" | "no_payment_required", _) => PaymentProgress::Paid,
        (_, Some("expired")) => PaymentProgress::Ended,
        // A delayed bank transfer failed: the session is complete and cannot be used again.
        (_, Some("complete")) if ["requires_payment_method", "canceled"].contains(&intent) => {
            PaymentProgress::Ended
        }
        _ => PaymentProgress::Pending,
    }
}

/// The invoice line that pays one month of a plan, and its order if there is one.
fn plan_line<'a>(
    invoice: &'a StripeInvoice,
    metadata: &StripeMetadata,
) -> Option<(&'a StripeInvoiceLine, Option<OrderId>)> {
    let is_plan = |line: &&StripeInvoiceLine| line.amount > 0 && plan_of_line(line).is_some();
    let is_month =
        |line: &&StripeInvoiceLine| is_plan(line) && line.quantity.is_none_or(|quantity| quantity == 1);
    let line = invoice.lines.data.iter().filter(is_month).max_by_key(|line| line.period.end);
    if line.is_none() && invoice.lines.data.iter().any(|line| is_plan(&line)) {
        tracing::error!(invoice = %invoice.id, "invoice has a plan quantity above one; nothing was granted");
    }
    let line = line?;
    let name = plan_order_key(plan_of_line(line)?, minor(Some(line.amount)));
    let details = invoice.parent.as_ref().and_then(|parent| parent.subscription_details.as_ref());
    // The metadata at invoice time takes precedence: the plan may have been sold again since.
    let then = details.and_then(|details| details.metadata.as_ref()).and_then(|metadata| metadata.get(&name));
    Some((line, then.or_else(|| metadata.get(&name)).map(|order| OrderId::new(order.clone()))))
}

fn plan_of_line(line: &StripeInvoiceLine) -> Option<transcript_core::directory::Plan> {
    plan_for_product(&line.pricing.as_ref()?.price_details.as_ref()?.product)
}

fn unpaid(amount_minor: u64, currency: &Option<String>) -> PaymentAmounts {
    PaymentAmounts {
        amount_minor,
        currency: currency.clone().unwrap_or_default(),
        paid_minor: 0,
        returned_minor: 0,
        disputed: false,
    }
}

/// An amount in minor units. Valid amounts are never negative; a negative one counts as 0.
fn minor(amount: Option<i64>) -> u64 {
    amount.and_then(|amount| u64::try_from(amount).ok()).unwrap_or(0)
}

fn timestamp(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds.saturating_mul(1_000))
}
