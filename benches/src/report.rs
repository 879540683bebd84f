//! Output of figures.

/// The goal of a ratio.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    /// At most this.
    AtMost(f64),
    /// At least this.
    AtLeast(f64),
    /// No goal; the ratio is only reported.
    None,
}

/// The median of some figures.
pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Prints a figure.
pub(crate) fn line(what: &str, figure: f64, unit: &str) {
    println!("{what:58} {figure:>12.2} {unit}");
}

/// Prints a ratio, and whether it meets its goal.
pub(crate) fn ratio(what: &str, figure: f64, goal: Goal) {
    let verdict = |met: bool| if met { "met" } else { "MISSED" };
    let goal = match goal {
        Goal::AtMost(most) => format!("goal at most {most}: {}", verdict(figure <= most)),
        Goal::AtLeast(least) => format!("goal at least {least}: {}", verdict(figure >= least)),
        Goal::None => String::new(),
    };
    println!("{what:58} {figure:>11.3}x {goal}");
}
