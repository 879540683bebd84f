//! Number of typing errors between two words.

/// Longest word that is compared, in letters.
pub(crate) const LETTERS_MAX: usize = 40;

/// Number of errors between two words, if at most `max`: a letter that is wrong, missing, added or swapped.
pub(crate) fn distance(word: &[char], other: &str, max: usize) -> Option<usize> {
    let other: Vec<char> = other.chars().take(LETTERS_MAX + max + 1).collect();
    if word.len().abs_diff(other.len()) > max {
        return None;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, letter) in word.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, candidate) in other.iter().enumerate() {
            let at = |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX / 2);
            let mut cost = (at(&row, j) + usize::from(letter != candidate))
                .min(at(&row, j + 1) + 1)
                .min(at(&next, j) + 1);
            let is_swapped =
                i > 0 && j > 0 && word.get(i - 1) == Some(candidate) && other.get(j - 1) == Some(letter);
            if is_swapped {
                cost = cost.min(at(&before, j - 1) + 1);
            }
            next.push(cost);
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().filter(|errors| *errors <= max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_typing_errors() {
        let check = |word: &str, other: &str, expect: Option<usize>| {
            assert_eq!(distance(&word.chars().collect::<Vec<_>>(), other, 2), expect, "{word} {other}");
        };
        check("harbour", "harbour", Some(0));
        check("harbuor", "harbour", Some(1));
        check("harbor", "harbour", Some(1));
        check("harbourr", "harbour", Some(1));
        check("hxrbxur", "harbour", Some(2));
        check("xxxbour", "harbour", None);
        check("", "", Some(0));
    }
}
