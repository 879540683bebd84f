//! Conditions on terms in the query languages of FTS5 and PostgreSQL.

use transcript_core::search::{IndexQuery, TermCondition};

/// The query in FTS5's language.
pub(super) fn fts5(query: &IndexQuery) -> String {
    let mut text = join(&query.all, " AND ", fts5_condition);
    for condition in &query.none {
        text = format!("({text}) NOT {}", fts5_condition(condition));
    }
    text
}

fn fts5_condition(condition: &TermCondition) -> String {
    // A quoted string is split into terms at spaces, and no term has a quotation mark.
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', ""));
    match condition {
        TermCondition::Term(term) => quoted(term),
        TermCondition::Prefix(prefix) => format!("{} *", quoted(prefix)),
        TermCondition::Phrase(words) => format!("({{title channel words}} : {})", quoted(&words.join(" "))),
        TermCondition::Channel(words) => format!("(channel : {})", quoted(&words.join(" "))),
        TermCondition::All(all) => join(all, " AND ", fts5_condition),
        TermCondition::Any(any) => join(any, " OR ", fts5_condition),
    }
}

/// The query as a `tsquery`.
pub(super) fn tsquery(query: &IndexQuery) -> String {
    let mut text = join(&query.all, " & ", tsquery_condition);
    for condition in &query.none {
        text = format!("{text} & !({})", tsquery_condition(condition));
    }
    text
}

fn tsquery_condition(condition: &TermCondition) -> String {
    let phrase = |words: &[String], weight: &str| {
        let words: Vec<String> = words.iter().map(|word| format!("{}{weight}", lexeme(word))).collect();
        format!("({})", words.join(" <-> "))
    };
    match condition {
        TermCondition::Term(term) => lexeme(term),
        TermCondition::Prefix(prefix) => format!("{}:*", lexeme(prefix)),
        TermCondition::Phrase(words) => phrase(words, ""),
        // PostgreSQL ignores the weight of a lexeme without positions; only operators of phrases need them.
        TermCondition::Channel(words) => match words.as_slice() {
            [word] => format!("({0}:B <0> {0}:B)", lexeme(word)),
            _ => phrase(words, ":B"),
        },
        TermCondition::All(all) => join(all, " & ", tsquery_condition),
        TermCondition::Any(any) => join(any, " | ", tsquery_condition),
    }
}

/// A quoted lexeme, as in the text forms of `tsquery` and `tsvector`.
pub(super) fn lexeme(term: &str) -> String {
    format!("'{}'", term.replace('\\', "\\\\").replace('\'', "''"))
}

fn join(conditions: &[TermCondition], operator: &str, write: fn(&TermCondition) -> String) -> String {
    let parts: Vec<String> = conditions.iter().map(write).collect();
    format!("({})", parts.join(operator))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query() -> IndexQuery {
        let term = |term: &str| TermCondition::Term(term.to_owned());
        let words = vec!["a".to_owned(), "b".to_owned()];
        IndexQuery::new(
            vec![
                TermCondition::Any(vec![term("x"), TermCondition::Prefix("y".to_owned())]),
                TermCondition::Phrase(words.clone()),
                TermCondition::Channel(words),
            ],
            vec![term("it's")],
        )
    }

    #[test]
    fn expression_has_both_forms() {
        assert_eq!(
            fts5(&query()),
            "(((\"x\" OR \"y\" *) AND ({title channel words} : \"a b\") AND (channel : \"a b\"))) NOT \"it's\""
        );
        assert_eq!(tsquery(&query()), "(('x' | 'y':*) & ('a' <-> 'b') & ('a':B <-> 'b':B)) & !('it''s')");
        let channel = IndexQuery::new(vec![TermCondition::Channel(vec!["a".to_owned()])], Vec::new());
        assert_eq!(tsquery(&channel), "(('a':B <0> 'a':B))");
    }
}
