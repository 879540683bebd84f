//! What comes back each month, and what does not.

use transcript_core::{
    accounts::{Credits, PlanPayment, after_payments},
    directory::{Account, Plan as AccountPlan},
    ids::GrantId,
};

use super::*;

const DAY: u64 = 24 * 3_600;

async fn grant(life: &Life, account: &SimAccount, id: &str, amount: u64) {
    let granted = life.accounts[0].grant(&account.email, GrantId::new(id), amount, "gift").await;
    granted.unwrap();
}

/// A month of a plan, from now, is paid.
async fn pay(life: &Life, account: &SimAccount, plan: AccountPlan, days: u64) {
    let from = life.now();
    let credits = life.accounts[0].options().plans.of(plan).credits;
    let through = from.plus(Duration::from_secs(days * DAY));
    let payment = PlanPayment { plan, credits, credits_back: 0, from, through };
    let change = move |account: &Account| {
        let subscription = Some("sub".to_owned());
        Account { subscription, ..after_payments(account, &[payment], from) }
    };
    life.accounts[0].change(&account.id, change).await.unwrap();
}

async fn check_credits(life: &Life, account: &SimAccount, expect: (AccountPlan, u64, u64, &str)) {
    let Credits { plan, remaining, total, resets_at } = account.credits(life).await;
    assert_eq!((plan, remaining, total, resets_at.to_string().as_str()), expect);
    let options = life.accounts[0].options();
    life.world.oracle.check_credits(&account.wallet, account.credits(life).await, options, life.now());
}

use AccountPlan::{Free, Pro, Starter};

#[test]
fn plan_credits_come_back_to_the_millisecond_and_bought_ones_stay() {
    play(plan([2, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let (first, second) = ("2026-12-20T12:00:00Z", "2027-01-20T12:00:00Z");
        check_credits(&life, &account, (Free, 2, 2, first)).await;
        grant(&life, &account, "one", 3).await;
        check_credits(&life, &account, (Free, 5, 5, first)).await;
        for left in [4, 3, 2, 1] {
            let answer = call(&life, &account, video()).await;
            assert!(matches!(answer, Answer::New { left: Some(n), .. } if n == left), "{answer:?}");
        }
        check_credits(&life, &account, (Free, 1, 5, first)).await;
        let left = Duration::from_secs(30 * DAY) - life.now().since(account_began(&life, &account).await);
        tokio::time::sleep(left - Duration::from_millis(1)).await;
        check_credits(&life, &account, (Free, 1, 5, first)).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        // Two of the plan, and the one that is left of what was bought.
        check_credits(&life, &account, (Free, 3, 3, second)).await;
        grant(&life, &account, "two", 10).await;
        check_credits(&life, &account, (Free, 13, 13, second)).await;
    });
}

async fn account_began(life: &Life, account: &SimAccount) -> transcript_core::Timestamp {
    life.accounts[0].show(&account.email).await.unwrap().account.anchor
}

#[test]
fn a_plan_begins_a_month_of_its_own_and_ends_with_it() {
    play(plan([1, 3, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        call(&life, &account, video()).await;
        pass(5 * DAY).await;
        pay(&life, &account, Starter, 30).await;
        check_credits(&life, &account, (Starter, 3, 3, "2026-12-25T12:00:00.800Z")).await;
        call(&life, &account, video()).await;
        check_credits(&life, &account, (Starter, 2, 3, "2026-12-25T12:00:00.800Z")).await;
        pass(30 * DAY).await;
        // Overdue: the name and the rate stay, the credits are the free plan's.
        check_credits(&life, &account, (Starter, 1, 1, "2027-01-25T12:00:00.800Z")).await;
        let answer = call(&life, &account, video()).await;
        assert_eq!(answer, Answer::New { from_cache: true, left: Some(0) });
        // Paid after all: the same month, in which one is used.
        pay(&life, &account, Starter, 31).await;
        check_credits(&life, &account, (Starter, 2, 3, "2027-01-25T12:00:00.800Z")).await;
        pass(31 * DAY).await;
        check_credits(&life, &account, (Starter, 1, 1, "2027-02-25T12:00:00.800Z")).await;
        pass(7 * DAY).await;
        check_credits(&life, &account, (Free, 1, 1, "2027-02-25T12:00:00.800Z")).await;
    });
}

#[test]
fn switching_plans_never_resets_what_was_used() {
    play(plan([0, 4, 10, 0]), |life| async move {
        let account = new_account(&life).await;
        pay(&life, &account, Starter, 30).await;
        for _ in 0..4 {
            call(&life, &account, video()).await;
        }
        pass(15 * DAY - 1).await;
        let paid = life.accounts[0].show(&account.email).await.unwrap().account.paid.unwrap();
        // The rest of the month on the larger plan, and back at once.
        for (plan, remaining) in [(Pro, 3), (Starter, 0), (Pro, 3)] {
            let from = life.now();
            let told = |plan, from| PlanPayment {
                plan,
                credits: life.accounts[0].options().plans.of(plan).credits,
                credits_back: 0,
                from,
                through: paid.through,
            };
            let payments = match plan {
                Pro => vec![told(Starter, paid.from), told(Pro, from)],
                _ => vec![told(Starter, paid.from)],
            };
            let change = move |account: &Account| after_payments(account, &payments, from);
            life.accounts[0].change(&account.id, change).await.unwrap();
            let credits = account.credits(&life).await;
            assert_eq!((credits.plan, credits.remaining), (plan, remaining));
        }
    });
}

#[test]
fn a_hold_that_is_settled_after_the_month_belongs_to_it() {
    play(plan([2, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        pass(30 * DAY - 1).await;
        let ready = ready(&life, &account, by_id(&video())).await.unwrap();
        pass(30).await;
        assert_eq!(remaining(&life, &account).await, 2);
        let answer = answer_of(&ready);
        ready.deliver(answer).await.unwrap();
        assert_eq!(remaining(&life, &account).await, 2);
        assert_eq!(life.world.oracle.sums(&account.wallet).spent, 1);
    });
}
