//! Credits that return each month, and credits that do not.

use transcript_core::{
    accounts::{CreditBalance, PlanPayment, apply_payments},
    directory::{Account, Plan as AccountPlan},
    ids::GrantId,
};

use super::*;

const DAY: u64 = 24 * 3_600;

async fn grant(life: &ProcessLife, account: &SimAccount, id: &str, amount: u64) {
    let granted = life.accounts[0].admin.grant(&account.email, GrantId::new(id), amount, "gift").await;
    granted.unwrap();
}

/// Pays `days` of a plan from now.
async fn pay(life: &ProcessLife, account: &SimAccount, plan: AccountPlan, days: u64) {
    let from = life.now();
    let credits = life.accounts[0].options().plans.terms(plan).credits;
    let through = from.plus(Duration::from_secs(days * DAY));
    let payment = PlanPayment { plan, credits, refunded_credits: 0, from, through };
    let change = move |account: &Account| {
        let subscription = Some("sub".to_owned());
        Account { subscription, ..apply_payments(account, &[payment], from) }
    };
    life.accounts[0].admin.change(&account.id, change).await.unwrap();
}

async fn check_credits(life: &ProcessLife, account: &SimAccount, expect: (AccountPlan, u64, u64, &str)) {
    let CreditBalance { plan, remaining, total, resets_at } = account.credits(life).await;
    assert_eq!((plan, remaining, total, resets_at.to_string().as_str()), expect);
    let options = life.accounts[0].options();
    life.world.oracle.check_credits(&account.wallet, account.credits(life).await, options, life.now());
}

use AccountPlan::{Free, Pro, Starter};

#[test]
fn period_end_resets_plan_credits_and_keeps_purchased() {
    run_scenario(with_credits([2, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let (first, second) = ("2026-12-20T12:00:00Z", "2027-01-20T12:00:00Z");
        check_credits(&life, &account, (Free, 2, 2, first)).await;
        grant(&life, &account, "one", 3).await;
        check_credits(&life, &account, (Free, 5, 5, first)).await;
        for left in [4, 3, 2, 1] {
            let answer = call(&life, &account, video()).await;
            assert!(matches!(answer, AccountAnswer::New { left: Some(n), .. } if n == left), "{answer:?}");
        }
        check_credits(&life, &account, (Free, 1, 5, first)).await;
        let left = Duration::from_secs(30 * DAY) - life.now().since(account_anchor(&life, &account).await);
        tokio::time::sleep(left - Duration::from_millis(1)).await;
        check_credits(&life, &account, (Free, 1, 5, first)).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        // Two credits of the plan and one remaining purchased credit.
        check_credits(&life, &account, (Free, 3, 3, second)).await;
        grant(&life, &account, "two", 10).await;
        check_credits(&life, &account, (Free, 13, 13, second)).await;
    });
}

async fn account_anchor(life: &ProcessLife, account: &SimAccount) -> transcript_core::Timestamp {
    life.accounts[0].admin.show(&account.email).await.unwrap().account.anchor
}

#[test]
fn plan_payment_starts_new_period() {
    run_scenario(with_credits([1, 3, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        call(&life, &account, video()).await;
        advance(5 * DAY).await;
        pay(&life, &account, Starter, 30).await;
        check_credits(&life, &account, (Starter, 3, 3, "2026-12-25T12:00:00.800Z")).await;
        call(&life, &account, video()).await;
        check_credits(&life, &account, (Starter, 2, 3, "2026-12-25T12:00:00.800Z")).await;
        advance(30 * DAY).await;
        // Overdue: the plan name and the rate limit stay, the credits are those of the free plan.
        check_credits(&life, &account, (Starter, 1, 1, "2027-01-25T12:00:00.800Z")).await;
        let answer = call(&life, &account, video()).await;
        assert_eq!(answer, AccountAnswer::New { from_cache: true, left: Some(0) });
        // Paid late: the same month, in which one credit is used.
        pay(&life, &account, Starter, 31).await;
        check_credits(&life, &account, (Starter, 2, 3, "2027-01-25T12:00:00.800Z")).await;
        advance(31 * DAY).await;
        check_credits(&life, &account, (Starter, 1, 1, "2027-02-25T12:00:00.800Z")).await;
        advance(7 * DAY).await;
        check_credits(&life, &account, (Free, 1, 1, "2027-02-25T12:00:00.800Z")).await;
    });
}

#[test]
fn plan_switch_keeps_used_credits() {
    run_scenario(with_credits([0, 4, 10, 0]), |life| async move {
        let account = new_account(&life).await;
        pay(&life, &account, Starter, 30).await;
        for _ in 0..4 {
            call(&life, &account, video()).await;
        }
        advance(15 * DAY - 1).await;
        let paid = life.accounts[0].admin.show(&account.email).await.unwrap().account.paid.unwrap();
        // The larger plan for the rest of the month, and an immediate switch back.
        for (plan, remaining) in [(Pro, 3), (Starter, 0), (Pro, 3)] {
            let from = life.now();
            let payment = |plan, from| PlanPayment {
                plan,
                credits: life.accounts[0].options().plans.terms(plan).credits,
                refunded_credits: 0,
                from,
                through: paid.through,
            };
            let payments = match plan {
                Pro => vec![payment(Starter, paid.from), payment(Pro, from)],
                _ => vec![payment(Starter, paid.from)],
            };
            let change = move |account: &Account| apply_payments(account, &payments, from);
            life.accounts[0].admin.change(&account.id, change).await.unwrap();
            let credits = account.credits(&life).await;
            assert_eq!((credits.plan, credits.remaining), (plan, remaining));
        }
    });
}

#[test]
fn hold_settled_after_period_counts_in_old_period() {
    run_scenario(with_credits([2, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        advance(30 * DAY - 1).await;
        let ready = ready(&life, &account, by_id(&video())).await.unwrap();
        advance(30).await;
        assert_eq!(remaining(&life, &account).await, 2);
        let answer = answer_of(&ready);
        ready.deliver(answer).await.unwrap();
        assert_eq!(remaining(&life, &account).await, 2);
        assert_eq!(life.world.oracle.sums(&account.wallet).spent, 1);
    });
}
